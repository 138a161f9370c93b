"""The Bayes floor and in-context ridge regression, as deterministic equivalents. Derivation: docs/theory/bayes.md."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..numerics import difference
from ..prompt import Caution, Prompt, Risk, number


class _Spectrum(NamedTuple):
    """What the equivalents need of a prompt."""

    d: int
    values: np.ndarray  # eigenvalues L_i > 0 of K, (rank,)
    reach: np.ndarray  # (k_i / L_i)^2, squared coefficients of the query's regression on the context, (rank,)
    unexplained: float  # 1 - k K^+ k, the variance of the query that the context does not see

    @classmethod
    def of(cls, prompt: Prompt) -> _Spectrum:
        values, query = prompt.basis
        kept = values > 0
        reach = np.square(query[kept] / values[kept])
        return cls(prompt.d, values[kept], reach, float(difference(1.0, reach @ values[kept])))


SMALLEST_PENALTY = 1e-12
"""Stands for the limit of a vanishing penalty, which is smooth unless the rank of K equals d."""


def _theta(spectrum: _Spectrum, penalty: float) -> float:
    """The root t of penalty t + (1/d) sum_i t L_i/(1 + t L_i) = 1, the limit of tr (X'X + penalty)^{-1} / d.

    The left side rises with t. It is at most 1 with every 1 + t L_i replaced by 1 and at least 1
    without the sum, which brackets the root; bisection in log t then cannot miss.
    """
    d, values = spectrum.d, spectrum.values
    low, high = -math.log(penalty + values.sum() / d), -math.log(penalty)
    for _ in range(100):
        middle = 0.5 * (low + high)
        t = math.exp(middle)
        left = penalty * t + float((t * values / (1 + t * values)).sum()) / d
        low, high = (middle, high) if left < 1 else (low, middle)
        if high - low < 1e-15:
            break
    return math.exp(0.5 * (low + high))


def _excess(spectrum: _Spectrum, penalty: complex, theta: complex) -> np.ndarray:
    """D(penalty) = penalty E[x_t' (X'X + penalty)^{-1} x_t]: its limit and its correction of order 1/d.

    The query regresses on the context, x_t = sum_i u_i x_i + (rest), so that D has a part of the
    rest's variance and a part of each u_i^2. Analytic in both arguments: complex steps differentiate it.
    """
    d, values, reach, unexplained = spectrum
    shrink = 1 / (1 + theta * values)  # penalty E[(X X' + penalty)^{-1}]_ii in the limit
    slope = penalty + (values * shrink**2).sum() / d  # -theta / (d theta / d penalty)
    theta_shift = theta / (d * slope**2) * (values**2 * shrink**3).sum() / d
    shrink_shift = theta * values**2 * shrink**3 / (d * slope) - values * shrink**2 * theta_shift
    limit = penalty * (unexplained * theta + (reach * theta * values * shrink).sum())
    correction = penalty * (unexplained * theta_shift - (reach * shrink_shift).sum())
    return np.array([limit, correction])


def _ridge_parts(spectrum: _Spectrum, penalty: float, noise: float) -> np.ndarray:
    """Excess over the noise of ridge regression: its limit and its correction of order 1/d.

    With G = (X'X + penalty)^{-1} the excess is E x_t' [noise G + penalty (penalty - noise) G^2] x_t,
    which is the tangent of D at the penalty, read off at the noise.
    """
    penalty = max(penalty, SMALLEST_PENALTY)
    theta = _theta(spectrum, penalty)
    value = _excess(spectrum, penalty, theta)
    if penalty == noise:
        return value
    slope = penalty + float((spectrum.values / (1 + theta * spectrum.values) ** 2).sum()) / spectrum.d
    step = 1e-30 * penalty
    derivative = np.imag(_excess(spectrum, penalty + 1j * step, theta - 1j * step * theta / slope)) / step
    return value - (penalty - noise) * derivative


def bayes(prompt: Prompt) -> Risk:
    """The least risk of any predictor: in-context ridge regression with penalty equal to the noise.

    The deterministic equivalent of the posterior variance, with its correction of order 1/d:
    with t the root of noise t + (1/d) tr[t K (1 + t K)^{-1}] = 1 the limit is

        noise + noise (1 - k K^+ k) t + noise t k K^+ (1 + t K)^{-1} k.

    Args:
        prompt: the law; singular kernels and any query are fine.

    Returns:
        Risk with method "bayes"; details hold `limit`, the equivalent without its correction, and `correction`.

    Validity: d -> infinity at fixed length/d; the error is about the square of correction/icl. At d >= 24 it
    is within 1.5 % where length >= 1.5 d or noise >= 0.1, and exact at noise 0. Where the rank of the context
    meets d and the noise is small the correction grows: a caution from 10 % on, not valid from 25 % on.

    See docs/theory/bayes.md.

    >>> round(bayes(Prompt(32, 128, "exp:4", "continues", 0.01)).icl, 4)
    0.0144
    """
    return _risk_of(prompt, prompt.noise, "bayes")


def context_ridge(prompt: Prompt, penalty: float) -> Risk:
    """In-context ridge regression with any penalty: w = argmin |y - X w|^2 + penalty |w|^2, yhat = x_t.w.

    The classical contrast to linear attention: it depends on the whole spectrum of K, not on k2 alone.
    Its excess over the noise is D(p) - (p - noise) D'(p) with D the excess of `bayes` at noise p,
    least at penalty = noise because D is concave.

    Args:
        prompt: the law; singular kernels and any query are fine.
        penalty: >= 0; 0 means the minimum-norm solution.

    Returns:
        Risk with method "context_ridge"; details as in `bayes`, and `penalty`. It is infinite, with a caution, at
        penalty 0 with noise where the rank of K equals d.

    Raises:
        InputError: a negative penalty.

    Validity: as `bayes`, with the penalty in place of the noise.

    See docs/theory/bayes.md.
    """
    risk = _risk_of(prompt, number(penalty, "penalty"), "context_ridge")
    risk.details["penalty"] = float(penalty)
    return risk


def _risk_of(prompt: Prompt, penalty: float, method: str) -> Risk:
    spectrum = _Spectrum.of(prompt)
    noise, rank = prompt.noise, len(spectrum.values)
    k0, k1, k2 = prompt.statistics
    if penalty == 0 and noise == 0:  # a projection: exact
        limit, correction = spectrum.unexplained * max(0.0, 1 - rank / prompt.d), 0.0
    elif penalty == 0 and rank == prompt.d:
        message = f"without a penalty the error diverges where the rank of the context, {rank}, equals d"
        peak = Caution("interpolation_peak", message, {"rank": rank, "d": prompt.d})
        return Risk(math.inf, None, method, False, (peak,), k0, k1, k2)
    else:
        limit, correction = (float(x) for x in _ridge_parts(spectrum, penalty, noise))
    icl = noise + limit + correction
    share = abs(correction) / icl if icl > 0 else 0.0
    warnings = () if share < 0.1 else (_soft_spot(rank, prompt, share),)
    details = {"limit": noise + limit, "correction": correction, "rank": rank}
    return Risk(icl, None, method, share < 0.25, warnings, k0, k1, k2, details=details)


def _soft_spot(rank: int, prompt: Prompt, share: float) -> Caution:
    message = (
        f"the correction of order 1/d is {share:.0%} of the error (the context's rank {rank} is near d = {prompt.d} "
        "and the penalty small): expect an error of about the square of that share"
    )
    return Caution("rank_near_d", message, {"rank": rank, "d": prompt.d, "correction_share": share})
