"""Reduced linear attention in the weak-correlation limit: d -> infinity with k0, k1, k2 of order one.

Every function broadcasts over arrays of settings and reads k0, k1, k2 and four ratios only.
Derivation: docs/theory/weak-limit.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray
Real = Any  # a float or an array that broadcasts with the others


class Couplings(NamedTuple):
    """How a prompt enters the limit: q = (k2+noise)/alpha, phi1 = (k1+noise k0)/alpha^2, phi2 = k0/alpha."""

    q: Array
    phi1: Array
    phi2: Array
    noise: Array


class State(NamedTuple):
    """Pretraining's side of the limit, from which any test error follows."""

    effective_ridge: Array
    mean_identity: Array  # tI = tr Gamma / d of the mean Gamma
    mean_square: Array  # G2 = tr Gamma^2 / d of the mean Gamma
    spread: Array  # (M - e p0)/tau: what a unit of idg adds to tr Gamma Gamma'/d by fluctuation
    idg: Array


def couplings(alpha: Real, noise: Real, k0: Real, k1: Real, k2: Real) -> Couplings:
    """Couplings of prompts with length/d = alpha > 0, label noise >= 0 and statistics k0, k1, k2."""
    alpha, noise, k0, k1, k2 = (np.asarray(x, dtype=np.float64) for x in (alpha, noise, k0, k1, k2))
    return Couplings((k2 + noise) / alpha, (k1 + noise * k0) / alpha**2, k0 / alpha, noise)


def task_resolvent(sigma: Real, inverse_kappa: Real) -> tuple[Array, Array]:
    """M(sigma) = lim tr (R+sigma)^-1 / d over the tasks' sample covariance R, and its derivative.

    M = 2/(A+D) with A = sigma+1-1/kappa, D = sqrt(A^2+4 sigma/kappa). Where A < 0 the sum cancels
    and the equal form kappa(D-A)/(2 sigma) keeps the digits.
    """
    sigma, c = np.broadcast_arrays(np.asarray(sigma, float), np.asarray(inverse_kappa, float))
    a = sigma + 1 - c
    root = np.sqrt(a * a + 4 * sigma * c)
    few = a < 0  # then c > 1 and sigma may be tiny
    m = np.where(few, (root - a) / np.where(few, 2 * sigma * c, 1.0), 2 / np.where(few, 1.0, a + root))
    return m, -0.5 * m * m * (1 + (sigma + 1 + c) / root)


def ridge_of_effective(effective: Real, q: Real, tau: Real, inverse_kappa: Real) -> Array:
    """The ridge whose effective ridge is `effective`: lambda = e (1 - (1 - e M(q+e))/tau)."""
    m, _ = task_resolvent(q + effective, inverse_kappa)
    return effective * (1 - (1 - effective * m) / tau)


def effective_ridge(ridge: Real, q: Real, tau: Real, inverse_kappa: Real) -> Array:
    """The unique root e >= 0 of `ridge_of_effective`(e) = ridge; broadcasts.

    It is bracketed by the roots of the two quadratics that bound M between 1/(1+sigma) (one
    eigenvalue) and 1/sigma (none), bisected in log e, so that small ridges keep their digits, and
    polished by Newton's steps inside the bracket.
    """
    ridge, q, tau, c = np.broadcast_arrays(*(np.asarray(x, float) for x in (ridge, q, tau, inverse_kappa)))
    low, high = _quadratic_root(ridge, q, tau), _quadratic_root(ridge, 1 + q, tau)
    zero = high <= 0  # ridge 0 and tau >= 1
    low, high = np.where(zero, 1.0, low * (1 - 1e-9)), np.where(zero, 1.0, high * (1 + 1e-9))
    for _ in range(14):
        middle = np.sqrt(low * high)
        above = ridge_of_effective(middle, q, tau, c) > ridge
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    root = np.sqrt(low * high)
    for _ in range(4):
        m, derivative = task_resolvent(q + root, c)
        excess = root * (1 - (1 - root * m) / tau) - ridge
        slope = 1 - (1 - 2 * root * m - root * root * derivative) / tau
        root = np.clip(root - excess / np.where(slope > 0, slope, np.inf), low, high)
    return np.where(zero, 0.0, root)


def _quadratic_root(ridge: Array, b: Array, tau: Array) -> Array:
    """Root e >= 0 of ridge = e (1 - b/(tau (b+e))), written without cancellation."""
    half = (ridge - b + b / tau) / 2
    root = np.sqrt(half * half + ridge * b)
    return np.where(half > 0, half + root, ridge * b / np.where(half > 0, 1.0, np.maximum(root - half, 1e-300)))


def state(pretrained: Couplings, tau: Real, kappa: Real, ridge: Real) -> State:
    """Solve the limit for pretraining prompts with the given couplings; broadcasts.

    Args:
        pretrained: `couplings` of the pretraining prompt.
        tau: sequences/d^2 > 0.
        kappa: tasks/d > 0, inf for a fresh task in every sequence.
        ridge: >= 0; 0 is the minimum-norm solution.
    """
    c = 1 / np.asarray(kappa, dtype=np.float64)
    tau = np.asarray(tau, dtype=np.float64)
    return _state_at(pretrained, tau, c, effective_ridge(ridge, pretrained.q, tau, c))


class _Mean(NamedTuple):
    """Mean Gamma = (along R + across I)(R+sigma)^-1 with t = tr Gamma/d and tr Gamma R/d."""

    along: Array
    across: Array
    t_identity: Array
    t_tasks: Array


def _mean_gamma(phi1: Array, phi2: Array, m: Array, r1: Array, r2: Array) -> _Mean:
    # tI = (1-phi2 tI) r1 + across M and tR = (1-phi2 tI) r2 + across r1, across = phi2 - phi1 tI - phi2 tR
    a11, a12 = 1 + phi2 * r1 + phi1 * m, phi2 * m
    a21, a22 = phi2 * r2 + phi1 * r1, 1 + phi2 * r1
    b1, b2 = r1 + phi2 * m, r2 + phi2 * r1
    determinant = a11 * a22 - a12 * a21
    t_identity, t_tasks = (b1 * a22 - a12 * b2) / determinant, (a11 * b2 - a21 * b1) / determinant
    return _Mean(1 - phi2 * t_identity, phi2 - phi1 * t_identity - phi2 * t_tasks, t_identity, t_tasks)


def _state_at(pretrained: Couplings, tau: Array, c: Array, effective: Array) -> State:
    q, phi1, phi2, noise = pretrained
    sigma = q + effective
    m, derivative = task_resolvent(sigma, c)
    r1, r2 = 1 - sigma * m, 1 - sigma + sigma**2 * m
    along, across, t_identity, t_tasks = _mean_gamma(phi1, phi2, m, r1, r2)
    p0 = -derivative  # p_j = tr R^j (R+sigma)^-2 / d
    p1 = m - sigma * p0
    p2 = r1 - sigma * p1
    p3 = r2 - sigma * p2
    square = along**2 * p2 + 2 * along * across * p1 + across**2 * p0
    square_tasks = along**2 * p3 + 2 * along * across * p2 + across**2 * p1
    bias = 1 + noise - 2 * (t_tasks + phi2 * t_identity) + square_tasks + q * square
    bias = bias + phi1 * t_identity**2 + 2 * phi2 * t_identity * t_tasks
    left = 1 - (1 - 2 * effective * m + effective**2 * p0) / tau
    with np.errstate(divide="ignore"):  # left is 0 at the ridgeless threshold, where the risk is infinite
        idg = bias / np.where(left > 0, left, 0.0)
    return State(effective, t_identity, square, (m - effective * p0) / tau, idg)


def fresh_task_error(trained: State, test: Couplings) -> Array:
    """Error on fresh tasks of the pretrained model, on prompts with the couplings `test` (same d)."""
    t, square = trained.mean_identity, trained.mean_square
    risk = 1 + test.noise - 2 * (1 + test.phi2) * t + (1 + test.q) * square + (test.phi1 + 2 * test.phi2) * t * t
    return risk + trained.idg * (1 + test.q) * trained.spread


def icl(
    alpha: Real, tau: Real, kappa: Real, noise: Real, ridge: Real, k0: Real = 0.0, k1: Real = 0.0, k2: Real = 1.0
) -> Array:
    """Error on fresh tasks, same prompt in pretraining and test; broadcasts. For a mismatch combine the parts.

    Args:
        alpha: length/d > 0.
        tau: sequences/d^2 > 0.
        kappa: tasks/d > 0 or inf.
        noise: label-noise variance >= 0.
        ridge: >= 0.
        k0, k1, k2: kernel statistics; the defaults are those of iid tokens.

    Returns:
        The limit of the error, inf at tau = 1 without ridge.

    >>> float(icl(10, 2, 0.5, 0.01, 0.0).round(4))
    0.8912
    """
    prompt = couplings(alpha, noise, k0, k1, k2)
    return fresh_task_error(state(prompt, tau, kappa, ridge), prompt)


def idg(
    alpha: Real, tau: Real, kappa: Real, noise: Real, ridge: Real, k0: Real = 0.0, k1: Real = 0.0, k2: Real = 1.0
) -> Array:
    """Error on the pretraining tasks with fresh tokens; arguments as in `icl`."""
    return state(couplings(alpha, noise, k0, k1, k2), tau, kappa, ridge).idg


def population(prompt: Couplings) -> tuple[Array, Array]:
    """Best Gamma = c I with unlimited pretraining on fresh tasks: (c, risk).

    c = a/(b+s), risk = 1+noise-a^2/(b+s) with a = 1+phi2, b = 1+q, s = 2 phi2+phi1.
    """
    a, total = 1 + prompt.phi2, 1 + prompt.q + 2 * prompt.phi2 + prompt.phi1
    return a / total, 1 + prompt.noise - a * a / total


def optimal_ridge(pretrained: Couplings, tau: Real, kappa: Real, test: Couplings | None = None) -> tuple[Array, Array]:
    """The ridge >= 0 that minimises the error on fresh tasks, and that error; broadcasts.

    Searches the effective ridge (a grid of two points a decade, then golden section), in which
    the ridge is explicit; the ridgeless end is one of the candidates.
    """
    test = pretrained if test is None else test
    c, tau = 1 / np.asarray(kappa, dtype=np.float64), np.asarray(tau, dtype=np.float64)
    floor = effective_ridge(0.0, pretrained.q, tau, c)
    shape = np.broadcast_shapes(floor.shape, *(np.shape(x) for x in test))

    def risk(x: Array) -> Array:
        return fresh_task_error(_state_at(pretrained, tau, c, floor + 10.0**x), test)

    grid = np.linspace(-12, 6, 37).reshape(-1, *(1,) * len(shape))
    best = np.argmin(np.broadcast_to(risk(grid), (37, *shape)), axis=0)
    x = golden_section(risk, grid.ravel()[np.maximum(best - 1, 0)], grid.ravel()[np.minimum(best + 1, 36)])
    ridgeless = fresh_task_error(_state_at(pretrained, tau, c, floor), test)
    found, value = ridge_of_effective(floor + 10.0**x, pretrained.q, tau, c), risk(x)
    better = value < ridgeless
    return np.where(better, np.maximum(found, 0.0), 0.0), np.where(better, value, ridgeless)


def golden_section(function: Callable[[Array], Array], low: Array, high: Array, steps: int = 60) -> Array:
    """Minimiser of a unimodal function between low and high, elementwise; width shrinks by .618 a step."""
    ratio = (5**0.5 - 1) / 2
    low, high = np.asarray(low, float), np.asarray(high, float)
    for _ in range(steps):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        down = function(left) < function(right)
        low, high = np.where(down, low, left), np.where(down, right, high)
    return (low + high) / 2


def effective_length(length: Real, noise: Real, k2: Real) -> Array:
    """Iid length of equal error when the query is independent: length (1+noise)/(k2+noise)."""
    return length * (1 + noise) / (k2 + noise)


def query_gain_is_positive(alpha: Real, noise: Real, k0: Real, k1: Real, k2: Real) -> Array:
    """True where a correlated query lowers the population risk.

    That is where k0^2 + 2 k0 k2 + noise k0 + k0^2 (k2+noise)/alpha > k1.
    """
    return np.asarray(k0**2 + 2 * k0 * k2 + noise * k0 + k0**2 * (k2 + noise) / alpha > k1)


def equivalent_alpha(risk: Real, alpha_start: Real, noise: Real, tau: Real, kappa: Real, ridge: Real) -> Array:
    """The alpha of an iid prompt at which the same pretraining has the error `risk`; broadcasts.

    Starting from alpha_start (that of the effective length), the first crossing towards longer prompts
    where `risk` is lower than there, towards shorter ones where it is higher. inf where no longer
    iid prompt is as good, 0 where none is as bad, within a factor 1e6.
    """
    risk, start, noise, tau, kappa, ridge = np.broadcast_arrays(
        *(np.asarray(x, float) for x in (risk, alpha_start, noise, tau, kappa, ridge))
    )

    def iid(log_alpha: Array) -> Array:
        prompt = couplings(np.exp(log_alpha), noise, 0.0, 0.0, 1.0)
        return fresh_task_error(state(prompt, tau, kappa, ridge), prompt)

    better = risk < iid(np.log(start))
    direction = np.where(better, 1.0, -1.0)

    def first_cell(low: Array, high: Array, cells: int) -> tuple[Array, Array, Array]:
        """Ends of the first of so many equal cells at whose end the error has crossed `risk`, and whether any has."""
        share = np.linspace(0, 1, cells + 1)[1:].reshape(-1, *(1,) * risk.ndim)
        value = iid(np.log(start) + direction * (low + (high - low) * share))
        crossed = np.where(better, value <= risk, value >= risk)
        width = (high - low) / cells
        low = low + width * np.argmax(crossed, axis=0)
        return low, low + width, crossed.any(axis=0)

    low, high, found = first_cell(np.zeros(risk.shape), np.full(risk.shape, np.log(1e6)), 280)
    for _ in range(8):  # 32^8 cells of the first
        low, high, _ = first_cell(low, high, 32)
    return np.where(found, start * np.exp(direction * high), np.where(better, np.inf, 0.0))
