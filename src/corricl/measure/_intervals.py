"""How uncertain an estimate is: a multiplier bootstrap over groups of the data."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

DRAWS = 2000
"""Draws of the bootstrap."""


class Interval(NamedTuple):
    """An estimate and its interval of confidence."""

    estimate: float
    low: float
    high: float


def influence(without: np.ndarray) -> np.ndarray:
    """What each set of groups adds to the error of an estimate, from estimates without it.

    Args:
        without: estimates that leave one set out, shape (sets, ...).
    """
    sets = len(without)
    return math.sqrt((sets - 1) / sets) * (without.mean(0) - without)


def unbiased(full: float, without: np.ndarray) -> float:
    """The jackknife: full estimate minus its bias of first order in one over the number of sets."""
    return float(full - (len(without) - 1) * (without.mean() - full))


def errors(drawn: np.ndarray, linear: np.ndarray, quadratic: np.ndarray | None = None) -> np.ndarray:
    """Draws of the error of an estimate: sum of e_j l_j plus sum over j != k of e_j e_k q_jk, e standard normal.

    The jackknife counts the variance of the quadratic part twice; the linear part is scaled down to make up for that.

    Args:
        drawn: the normals e, shape (m, sets).
        linear: influences l, shape (sets,).
        quadratic: q, shape (sets, sets), or None.

    Returns:
        shape (m,), widened from normal to Student's quantiles of sets-1 degrees of freedom.
    """
    from scipy.special import ndtri, stdtrit

    out = drawn @ linear
    if quadratic is not None:
        off = quadratic - np.diag(np.diagonal(quadratic))
        variance, doubled = float(linear @ linear), 4 * float((off**2).sum())
        out *= math.sqrt(max(0.0, 1 - doubled / variance)) if variance else 0.0
        out += ((drawn @ off) * drawn).sum(1)
    return out * stdtrit(len(linear) - 1, 0.975) / ndtri(0.975)


def interval(estimate: float, drawn: np.ndarray, base: float, bounds: tuple[float, float], level: float) -> Interval:
    """Interval of an estimate whose error grows with base + estimate, cut to bounds.

    log(base + estimate) is shifted by quantiles of the drawn errors relative to base + estimate.
    """
    scale = base + estimate
    tail = (1 - level) / 2
    upper, lower = np.quantile(drawn, [1 - tail, tail])
    if scale > 0.2:
        low, high = (scale * math.exp(min(-q / scale, 50.0)) - base for q in (upper, lower))
    else:
        low, high = estimate - upper, estimate - lower
    return Interval(estimate, *(float(np.clip(end, *bounds)) for end in (low, high)))
