"""Linear attention at its population optimum, with and without position weights (docs/theory/positional.md)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numerics import ZERO
from ..prompt import Prompt, Risk
from ._grid import minimise_on_grid

RATES = 80
"""Scales of the trial grid; each family is refined around its best."""


def linear_population(prompt: Prompt) -> Risk:
    """Plain linear attention at its population optimum, exact at finite d and length.

    With Gamma = c [I | 0], E[y_t yhat] = c A and E[yhat^2] = c^2 B,

        A = 1 + (d+1) k0/l,
        B = 1 + (d+1) k2/l + 2 k1/l^2 + (d+1) [(d+2) k1 + 2 l k0]/l^2 + noise d/l [1 + (d+1) k0/l],

    so c = A/B and the risk is 1 + noise - A^2/B. By rotation invariance no other Gamma does better.

    Args:
        prompt: the law; needs d, length, noise and (k0, k1, k2) only.

    Returns:
        Risk with method "linear"; details hold `scale`, the best c.

    Validity: exact, every d, length and kernel. See docs/theory/positional.md.

    >>> round(linear_population(Prompt(32, 128, "exp:4", noise=0.01)).icl, 4)
    0.5197
    """
    icl, scale = linear_optimum(prompt.d, prompt.length, prompt.noise, *prompt.statistics)
    k0, k1, k2 = prompt.statistics
    return Risk(float(icl), None, "linear", k0=k0, k1=k1, k2=k2, details={"scale": float(scale)})


def linear_optimum(
    d: np.ndarray | float,
    length: np.ndarray | float,
    noise: np.ndarray | float,
    k0: np.ndarray | float,
    k1: np.ndarray | float,
    k2: np.ndarray | float,
) -> tuple[np.ndarray, np.ndarray]:
    """Least risk of plain linear attention and the scale c that reaches it; every argument broadcasts."""
    d, length = np.asarray(d, dtype=np.float64), np.asarray(length, dtype=np.float64)
    signal = 1 + (d + 1) * k0 / length
    bulk = 1 + (d + 1) * k2 / length + 2 * k1 / length**2
    query = (d + 1) * ((d + 2) * k1 + 2 * length * k0) / length**2
    power = bulk + query + noise * d / length * signal
    return 1 + noise - signal**2 / power, signal / power


def position_moments(prompt: Prompt) -> tuple[np.ndarray, np.ndarray]:
    """The normal equations M c = b of yhat = sum_a c_a y_a (x_a.x_t), exact at finite d.

    Returns:
        M = E[y_a y_b (x_a.x_t)(x_b.x_t)], shape (length, length), and b = E[y_t y_a x_a.x_t], shape (length,).
    """
    d, k, noise = prompt.d, prompt.query_vector, prompt.noise
    kernel = prompt.kernel.matrix(prompt.length)
    signal = 1 / d + k * k * (1 + 1 / d)
    squares = k * k
    power = kernel**2 * ((d + 1) / d**2)
    power += kernel * np.outer(k, k) * ((d * d + 3 * d + 4) / d**2)
    power += 1 / d**2 + (squares[:, None] + squares) * ((d + 1) / d**2)
    power[np.diag_indices_from(power)] += noise * signal
    return power, signal


def positional(prompt: Prompt) -> Risk:
    """Linear attention with the best position weights, yhat = sum_a c_a y_a (x_a.x_t), and simple families of weights.

    The weights solve M c = b with exact moments; the risk is 1 + noise - b.c. Families, with
    the lag t = length + 1 - a of a token behind the query: "constant" A (plain linear
    attention), "decay" A exp(-t/s), "decay_constant" A exp(-t/s) + B, "ramp" A max(0, 1 - t/s),
    "last" A at the last token only, and "bias" (A x_a.x_t + B - m t) y_a, the linear relative
    bias that ALiBi adds to a score. The last is no weight: it also predicts from the labels alone.

    Args:
        prompt: the law.

    Returns:
        Risk with method "positional"; details hold `weights` (length,), and `families`, for each its
        risk, parameters and `share` = (plain - family) / (plain - optimum), None where there is nothing to gain.

    Validity: exact, every d, length and kernel. Time grows as length^3.

    See docs/theory/positional.md.

    >>> round(positional(Prompt(32, 128, "exp:4", "continues", 0.01)).icl, 4)
    0.3146
    """
    power, signal = position_moments(prompt)
    weights = _solve(power, signal)
    top = 1 + prompt.noise
    optimum = float(top - signal @ weights)
    families = _families(prompt, power, signal)
    plain = families["constant"]["risk"]
    worth = plain - optimum > 1e-9 * top
    for family in families.values():
        family["share"] = (plain - family["risk"]) / (plain - optimum) if worth else None
    k0, k1, k2 = prompt.statistics
    details = {"weights": weights, "families": families}
    return Risk(optimum, None, "positional", k0=k0, k1=k1, k2=k2, details=details)


def _solve(power: np.ndarray, signal: np.ndarray) -> np.ndarray:
    """Least-norm c with M c = b; M is singular where tokens repeat and nothing tells them apart."""
    try:
        pivots = np.diagonal(np.linalg.cholesky(power))
        if pivots.min() > 1e-5 * pivots.max():
            return np.linalg.solve(power, signal)
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(power)
    kept = values > ZERO * values[-1]
    return vectors[:, kept] @ ((vectors[:, kept].T @ signal) / values[kept])


def _families(prompt: Prompt, power: np.ndarray, signal: np.ndarray) -> dict[str, dict[str, Any]]:
    """Risk and parameters of the best member of each family."""
    length, top = prompt.length, 1 + prompt.noise
    lag = np.arange(length, 0, -1.0)  # of tokens 1..length behind the query
    ones = np.ones(length)
    constant = _gain(ones[None], power, signal)[0]
    summed = power @ ones

    def decay(scales: np.ndarray) -> np.ndarray:
        return np.exp(-(lag - 1) / scales[:, None])  # 1 at the last token, however short the scale

    def ramp(scales: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, 1 - (lag - 1) / scales[:, None])

    def apart(scales: np.ndarray) -> np.ndarray:
        """A decay with its part along the constant taken out, so that their gains add up."""
        shapes = decay(scales)
        return shapes - (shapes @ summed)[:, None] / (ones @ summed)

    grid = np.geomspace(0.05, 1e3 * (length + 1), RATES)
    found: dict[str, dict[str, Any]] = {"constant": {"risk": float(top - constant)}}
    for name, shape, already in (("decay", decay, 0.0), ("decay_constant", apart, constant), ("ramp", ramp, 0.0)):
        scale, loss = minimise_on_grid(lambda s, shape=shape: -_gain(shape(s), power, signal), grid)
        gain = already - loss
        # The constant is the limit of a long scale, and is what the family holds where no finite scale helps.
        found[name] = {"risk": float(top - max(gain, constant)), "scale": scale if gain > constant else np.inf}
    last = _gain(np.eye(length)[-1:], power, signal)[0]
    found["last"] = {"risk": float(top - last)}
    found["bias"] = _score_bias(prompt, summed, signal, lag)
    return found


def _gain(shapes: np.ndarray, power: np.ndarray, signal: np.ndarray) -> np.ndarray:
    """(b.f)^2 / f'Mf of weights along each row f, shape (shapes,): what its best multiple takes off the risk."""
    size = np.einsum("ij,ij->i", shapes @ power, shapes)
    reach = np.square(shapes @ signal)
    usable = size > 1e-10 * (shapes**2).sum(1) * np.trace(power) / len(power)  # else rounding errors of a zero shape
    usable &= (shapes**2).max(1) > 1e-16
    return np.where(usable, reach / np.where(usable, size, 1.0), 0.0)


def _score_bias(prompt: Prompt, summed: np.ndarray, signal: np.ndarray, lag: np.ndarray) -> dict[str, Any]:
    """Scores A x_a.x_t + B - m t_a: three regressors, their moments exact.

    For weights c and biases u, E[y_t sum u_b y_b] = u.k, E[(sum u_b y_b)^2] = u'(K + noise) u and
    E[y_a y_b x_a.x_t] = K_ab k_a (1 + 1/d) + k_b/d + noise k_a delta_ab.
    """
    d, k, noise = prompt.d, prompt.query_vector, prompt.noise
    kernel = prompt.kernel.matrix(prompt.length)
    biases = np.stack([np.ones_like(lag), lag / len(lag)])  # (2, length)
    cross = (1 + 1 / d) * (k @ kernel) + k * (len(lag) / d + noise)  # sum over a of the last moment, (length,)
    moments = np.empty((3, 3))
    moments[0, 0] = summed.sum()
    moments[0, 1:] = moments[1:, 0] = biases @ cross
    moments[1:, 1:] = biases @ kernel @ biases.T + noise * (biases @ biases.T)
    target = np.concatenate([[signal.sum()], biases @ k])
    solution = _solve_scaled(moments, target)
    scale, offset, slope = solution / [1.0, 1.0, -len(lag)]
    risk = float(1 + noise - target @ solution)
    return {"risk": risk, "scale": float(scale), "offset": float(offset), "slope": float(slope)}


def _solve_scaled(moments: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Solve a small positive semidefinite system whose rows differ in size."""
    unit = np.sqrt(np.maximum(np.diagonal(moments), np.finfo(float).tiny))
    return _solve(moments / np.outer(unit, unit), target / unit) / unit
