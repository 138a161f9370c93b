"""Softmax attention in the limit of large d, and the iid length that it is worth (docs/theory/softmax.md)."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ..errors import InputError
from ..prompt import Caution, Prompt, Risk
from ._grid import minimise_on_grid
from ._positional import linear_population
from ._softmax import SHIFTS, softmax

LONGEST = 2048
"""Longest iid prompt that `softmax_equivalent_length` tries."""


def softmax_spread(kernel: np.ndarray, b: np.ndarray | float, noise: float = 0.0) -> np.ndarray:
    """S(b) = (1/(l b^2)) sum_ab (K_ab + noise delta_ab) exp(b^2 K_ab), at each b.

    An iid kernel has S = e^{b^2} (1 + noise)/b^2, least at b = 1, where it is e (1 + noise).

    Args:
        kernel: K, shape (length, length).
        b: beta / sqrt(d), not 0, any shape.
        noise: label-noise variance.
    """
    square = np.square(np.asarray(b, dtype=np.float64))
    # a stationary kernel has no more than `length` distinct entries, which is what makes the search fast
    entries, counts = np.unique(kernel, return_counts=True)
    flat = square.reshape(-1)
    with np.errstate(over="ignore"):
        total = np.array([(counts * entries) @ np.exp(u * entries) for u in flat])
        total += noise * len(kernel) * np.exp(flat)
    return (total / (len(kernel) * flat)).reshape(square.shape)


def softmax_limit(prompt: Prompt, b: float | None = None) -> Risk:
    """Risk of one-layer softmax attention as d -> infinity at fixed length/d, for an independent query.

    With beta = b sqrt(d) and the best V the risk is 1 + noise - 1/(1 + S(b) d/length), S as in
    `softmax_spread`. Softmax thus pays a factor S >= 1 of effective length, e for iid tokens, and
    feels the sum of all correlations, which linear attention does not.

    Args:
        prompt: a law with an independent query; d enters through length/d alone.
        b: beta / sqrt(d) > 0; None takes the best.

    Returns:
        Risk with method "softmax_limit"; details hold b and spread = S(b).

    Raises:
        InputError: a correlated query, for which beta of this order attends to one token only.

    Validity: correlations of a range that stays finite while d and length grow. At finite d it is a limit, not a
    value: at d = 32, length = 128 it is off by 2-6 % for ranges up to 10; `softmax` is exact there.

    See docs/theory/softmax.md.

    >>> round(softmax_limit(Prompt(32, 128, noise=0.01)).icl, 3)
    0.417
    """
    if not prompt.query.is_independent and np.any(prompt.query_vector):
        raise InputError("the limit of softmax attention holds for an independent query; use softmax for others")
    if b is not None and not (math.isfinite(b) and b != 0):
        raise InputError(f"b must be finite and not 0; got {b}")
    matrix, noise = prompt.kernel.matrix(prompt.length), prompt.noise
    if b is None:
        logarithm, spread = minimise_on_grid(
            lambda x: softmax_spread(matrix, np.exp(x), noise), np.linspace(math.log(0.01), math.log(12), 60)
        )
        b = math.exp(logarithm)
    else:
        spread = float(softmax_spread(matrix, b, noise))
    icl = 1 + noise - 1 / (1 + spread / prompt.alpha)
    k0, k1, k2 = prompt.statistics
    return Risk(icl, None, "softmax_limit", k0=k0, k1=k1, k2=k2, details={"b": float(b), "spread": spread})


def equivalent_length(prompt: Prompt, method: str = "softmax") -> Risk:
    """The optimum of a method on a prompt, with the iid length at which the method has the same risk.

    Args:
        prompt: the law.
        method: "softmax", or "linear" (plain linear attention at finite d, where the length is explicit).
    """
    if method == "softmax":
        return softmax_equivalent_length(prompt)
    if method != "linear":
        raise InputError(f"an equivalent length exists for linear and softmax; got '{method}'")
    risk = linear_population(prompt)
    gain = 1 + prompt.noise - risk.icl  # of iid tokens it is 1/(1 + (d + 1 + noise d)/length)
    return replace(risk, equivalent_length=(prompt.d + 1 + prompt.noise * prompt.d) / (1 / gain - 1))


def softmax_equivalent_length(prompt: Prompt, *, shifts: int = SHIFTS) -> Risk:
    """`softmax` of a prompt, with the iid length at which softmax attention has the same risk (same d and noise).

    Args:
        prompt: the law.
        shifts: as in `softmax`.

    Returns:
        Risk of `softmax` with equivalent_length filled in: 1 where a single iid token does as well, and inf,
        with a caution, where it passes 2048 tokens.

    See docs/theory/softmax.md.
    """
    risk = softmax(prompt, shifts=shifts)
    length, warnings = _iid_length(prompt.d, prompt.noise, risk.icl, shifts), risk.warnings
    if length == math.inf:
        message = f"more than {LONGEST} independent tokens would be needed for this error"
        warnings = (*warnings, Caution("equivalent_length", message, {"longest": LONGEST}))
    return replace(risk, equivalent_length=length, warnings=warnings)


@lru_cache(maxsize=4096)
def _iid_odds(d: int, noise: float, length: int, shifts: int) -> float:
    """1/G - 1 for the gain G = 1 + noise - risk of iid tokens; close to e (1 + noise) d/length."""
    gain = 1 + noise - softmax(Prompt(d, length, noise=noise), shifts=shifts).icl
    return 1 / gain - 1 if gain > 1e-9 else math.inf


def _iid_length(d: int, noise: float, icl: float, shifts: int) -> float:
    """Solve for the iid length: secant steps in log length, where the log odds are nearly a line of slope -1."""
    gain = 1 + noise - icl
    if gain <= 1e-9:
        return 1.0
    if gain >= 1 - 1e-12:
        return math.inf
    target, slope = math.log(1 / gain - 1), -1.0
    x = math.log(math.e * (1 + noise) * d) - target
    known: tuple[float, float] | None = None
    for _ in range(6):
        length = min(max(round(math.exp(x)), 2), LONGEST)
        at, value = math.log(length), math.log(_iid_odds(d, noise, length, shifts))
        if length == LONGEST and value > target:
            return math.inf
        if known is not None and abs(at - known[0]) > 0.2:  # nearer points would divide quadrature noise
            slope = min(max((value - known[1]) / (at - known[0]), -2.0), -0.3)
        x = at + (target - value) / slope
        if abs(x - at) < 0.05 or (length == 2 and x < at):
            break
        known = (at, value)
    return max(math.exp(x), 1.0)
