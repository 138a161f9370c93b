"""Exact test risk of a given Gamma at finite d and length, in every regime; no Monte Carlo.

Derivation: docs/theory/exact-risk.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..prompt import Prompt

Array = Any  # numpy.ndarray or jax.Array


class Moments(NamedTuple):
    """Traces through which Gamma = [Gamma1 | gamma2] enters the risk on fresh Gaussian tasks."""

    trace: Array  # g = tr Gamma1
    square: Array  # F = |Gamma1|_F^2
    cross: Array  # T = tr Gamma1^2
    column: Array  # N = |gamma2|^2


def moments(gamma: Array) -> Moments:
    """Traces of Gamma, shape (d, d+1)."""
    bulk, column = gamma[:, :-1], gamma[:, -1]
    return Moments(bulk.trace(), (bulk * bulk).sum(), (bulk * bulk.T).sum(), (column * column).sum())


def fresh_task_risk(traces: Moments, prompt: Prompt) -> Array:
    """Mean squared error on fresh tasks w ~ N(0, I) of the reduced linear attention with these traces.

    risk = 1 + noise - 2 E[y_t y'] + E[y'^2], where E[y_t y'] = (g/d)(1 + (d+1)k0/l) and

    E[y'^2] = {F[l^2+l(d+1)k2+2k1] + (g^2+T)[(d+2)k1+2l k0]}/(d l^2) + (noise/l^2){l F + k0(g^2+T)}
    + (1/l^2){(N/d)[l^2(r+2 noise+noise^2)+2l(r k2+2 noise+noise^2)] + (N/d^2)[8(r k1+noise k0)+4 k0 l(r+noise)]}
    with r = (d+2)/d.

    Args:
        traces: `moments` of Gamma.
        prompt: the test prompt; its d is Gamma's.

    Validity: exact, for any kernel, query and noise.
    """
    g, f, t, n = traces
    d, length, noise = prompt.d, prompt.length, prompt.noise
    k0, k1, k2 = prompt.statistics
    r = (d + 2) / d
    agreement = (g / d) * (1 + (d + 1) * k0 / length)
    bulk = f * (length**2 + length * (d + 1) * k2 + 2 * k1) + (g * g + t) * ((d + 2) * k1 + 2 * length * k0)
    labels = noise * (length * f + k0 * (g * g + t))
    column = (n / d) * (length**2 * (r + 2 * noise + noise**2) + 2 * length * (r * k2 + 2 * noise + noise**2)) + (
        n / d**2
    ) * (8 * (r * k1 + noise * k0) + 4 * k0 * length * (r + noise))
    return 1 + noise - 2 * agreement + (bulk / d + labels + column) / length**2


def given_task_risk(gamma: Array, tasks: Array, prompt: Prompt) -> Array:
    """Mean squared error for each of k given tasks, averaged over tokens and label noise.

    Given the task, tokens split into their component along it and the rest; the rest is Gaussian
    given the labels, and what remains are moments of quadratic forms of Gaussian vectors, in k0, k1
    and k2 alone. Averaged over w ~ N(0, I) it is `fresh_task_risk`; averaged over the pretraining
    tasks it is the in-distribution error.

    Args:
        gamma: shape (d, d+1).
        tasks: shape (k, d), no zero row.
        prompt: the test prompt, d as in gamma.

    Returns:
        Shape (k,).
    """
    d, length, noise = prompt.d, prompt.length, prompt.noise
    k0, k1, k2 = prompt.statistics
    bulk, column = gamma[:, :-1], gamma[:, -1]
    power = (tasks * tasks).sum(1)
    norm = power**0.5
    right, left = tasks @ bulk.T / norm[:, None], tasks @ bulk / norm[:, None]  # Gamma1 w', Gamma1' w'; (k, d)
    a = (right * tasks).sum(1) / norm
    c = tasks @ column / norm
    # parts of Gamma orthogonal to w'
    u2, v2, uv = (left * left).sum(1) - a * a, (right * right).sum(1) - a * a, (left * right).sum(1) - a * a
    traces = moments(gamma)
    trace = traces.trace - a
    square = traces.square - (right * right).sum(1) - (left * left).sum(1) + a * a
    cross = traces.cross - 2 * (left * right).sum(1) + a * a
    u_column, v_column = left @ column - a * c, right @ column - a * c
    column2 = traces.column - c * c

    # E over (t, tau, e) of tau = x_t.w', P = (d/l) t.y, S = y.y/l, X = k.y/l, H = (d/l^2) y.Ky
    # with q = t.t: Eq, Eq^2 and their products with tau^2 and tau k.t, all for unit variance 1/d
    tr2 = length * k2
    q1, q2 = length / d, (length**2 + 2 * tr2) / d**2
    tq1, tq2 = (length + 2 * k0) / d**2, (length**2 + 2 * tr2 + 4 * length * k0 + 8 * k1) / d**3
    tk, tqk = k0 / d, (length * k0 + 2 * k1) / d**2
    ds = d / length
    e_ty = norm * tq1 * ds  # E[tau y_t P] / |w|, and so on below
    e_ts = (power * tq1 + noise * q1) / length
    e_tx = norm * tk / length
    e_tpp = ds**2 * (power * tq2 + noise * tq1)
    e_tps = ds / length * (norm * power * tq2 + norm * noise * (length + 2) * tq1)
    e_tss = (
        power**2 * tq2 + power * noise * (2 * length + 4) * tq1 + noise**2 * (length**2 + 2 * length) / d
    ) / length**2
    e_tpx = ds / length * (power * tqk + noise * tk)
    e_tsx = norm * (power * tqk + noise * (length + 2) * tk) / length**2
    e_th = d / length**2 * (power * (tr2 + 2 * k1) / d**2 + noise * length / d)
    e_pp = ds**2 * (power * q2 + noise * q1)
    e_xx = (power * k1 / d + noise * k0) / length**2
    e_h = d / length**2 * (power * tr2 / d + noise * length)
    e_ss = (power**2 * q2 + power * noise * (2 * length + 4) * q1 + noise**2 * (length**2 + 2 * length)) / length**2
    e_sp = ds / length * norm * (power * q2 + noise * (length + 2) * q1)

    agreement = norm * (a * e_ty + c * e_ts + trace * e_tx)
    prediction = (
        a * a * e_tpp + 2 * a * c * e_tps + c * c * e_tss
        + 2 * trace * (a * e_tpx + c * e_tsx)
        + u2 * e_th + 2 * uv * e_tpx + v2 * e_pp / d
        + (trace * trace + cross) * e_xx + square * e_h / d
        + column2 * e_ss / d + 2 * u_column * e_tsx + 2 * v_column * e_sp / d
    )  # fmt: skip
    return power / d + noise - 2 * agreement + prediction


def weak_approximation(traces: Moments, prompt: Prompt) -> Array:
    """Published approximation of `fresh_task_risk` for k0, k1, k2 of order one: its leading terms there."""
    g, f, _, n = traces
    d, noise, alpha = prompt.d, prompt.noise, prompt.alpha
    k0, k1, k2 = prompt.statistics
    linear = 1 + noise - 2 * (1 + k0 / alpha) * g / d + (1 + (k2 + noise) / alpha) * f / d
    return linear + ((k1 + noise * k0) / alpha**2 + 2 * k0 / alpha) * (g / d) ** 2 + (1 + noise) ** 2 * n / d


def strong_approximation(traces: Moments, prompt: Prompt) -> Array:
    """Published approximation of `fresh_task_risk` for k0, k2 of order length and k1 of order length^2."""
    g, f, t, _ = traces
    length = prompt.length
    k0, k1, k2 = prompt.statistics
    return 1 + prompt.noise - 2 * k0 / length * g + k2 / length * f + k1 / length**2 * (t + g * g)


def risk_of(gamma: Any, prompt: Prompt, tasks: np.ndarray | None = None) -> float:
    """Exact risk of Gamma: on fresh tasks, or averaged over given ones.

    Args:
        gamma: shape (d, d+1), an array of any library; the sums are float64.
        prompt: the test prompt.
        tasks: shape (k, d), or None for fresh ones.

    Raises:
        InputError: a Gamma of another shape, or not finite.
    """
    gamma = np.asarray(gamma, np.float64)
    if gamma.shape != (prompt.d, prompt.d + 1) or not np.isfinite(gamma).all():
        raise InputError(f"gamma must be finite, of shape ({prompt.d}, {prompt.d + 1}); got shape {gamma.shape}")
    if tasks is None:
        return float(fresh_task_risk(moments(gamma), prompt))
    return float(given_task_risk(gamma, tasks, prompt).mean())
