"""Kernels of a few parameters, each with a nugget, fitted to an estimated autocorrelation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..kernels import AR1, Cosine, Exponential, Kernel, Matern, PowerLaw, Query, parse, statistics

GRID = 24
ROUNDS = 4
SMOOTHNESS = (0.5, 1.0, 1.5, 2.5, 5.0)
"""Matern smoothness nu is chosen among these: data rarely tell more."""


@dataclass(frozen=True)
class Fit:
    """A kernel fitted to r(t), t >= 1.

    Attributes:
        family: exp, ar1, power, cosine or matern.
        kernel: SPEC string, usable wherever a kernel is.
        error: root of the weighted mean square of r(t) minus the kernel, weights 1 - t/length.
        k2: of the kernel at the measured length.
    """

    family: str
    kernel: str
    error: float
    k2: float


def fit_all(correlation: np.ndarray) -> tuple[Fit, ...]:
    """The best member of every family, the simplest first.

    Args:
        correlation: r(t) at lags 0..length.
    """
    length = len(correlation) - 1
    reach = 10.0 * length
    families: tuple[tuple[str, list[Callable[[float], Kernel]], tuple[float, float]], ...] = (
        ("exp", [Exponential], (0.1, reach)),
        ("ar1", [lambda x: AR1(-float(np.exp(-1 / x))), lambda x: AR1(float(np.exp(-1 / x)))], (0.1, reach)),
        ("power", [PowerLaw], (0.01, 10.0)),
        ("cosine", [lambda x, omega=omega: Cosine(omega, x) for omega in _frequencies(correlation)], (0.1, reach)),
        ("matern", [lambda x, nu=nu: Matern(nu, x) for nu in SMOOTHNESS], (0.1, reach)),
    )
    return tuple(_fit(name, makers, limits, correlation) for name, makers, limits in families)


def _frequencies(correlation: np.ndarray) -> list[float]:
    """Candidates around the peak of the spectrum, in radians a token."""
    length = len(correlation) - 1
    omega = np.pi * np.arange(1, 4 * length) / (4 * length)
    lag = np.arange(length + 1)
    peak = omega[(np.cos(omega[:, None] * lag) @ (correlation * (1 - lag / (length + 1)))).argmax()]
    around = peak + np.linspace(-1, 1, 13) * np.pi / length
    return [float(f"{x:.4g}") for x in around if 0 < x <= np.pi]


def best(fits: tuple[Fit, ...]) -> Fit:
    """The simplest fit whose error is within 2 % of the least."""
    least = min(fit.error for fit in fits)
    return next(fit for fit in fits if fit.error <= 1.02 * least + 1e-12)


def _fit(
    family: str, makers: list[Callable[[float], Kernel]], limits: tuple[float, float], correlation: np.ndarray
) -> Fit:
    """Least squares: one parameter on a logarithmic grid that is refined, the share of the kernel in closed form."""
    lag = np.arange(1, len(correlation))
    target, weight = correlation[1:], 1 - lag / (len(correlation))
    found: tuple[float, Kernel, float] | None = None
    for make in makers:
        low, high = np.log(limits)
        for _ in range(ROUNDS):
            grid = np.linspace(low, high, GRID)
            kernels = [make(float(f"{x:.4g}")) for x in np.exp(grid)]
            shapes = np.array([kernel.correlation(np.array(0), lag) for kernel in kernels])
            power = np.maximum((weight * shapes**2).sum(1), 1e-300)
            share = np.clip((weight * shapes * target).sum(1) / power, 0.0, 1.0)
            loss = (weight * (target - share[:, None] * shapes) ** 2).sum(1)
            i = int(loss.argmin())
            if found is None or loss[i] < found[0]:
                found = float(loss[i]), kernels[i], float(share[i])
            low, high = grid[max(i - 1, 0)], grid[min(i + 1, GRID - 1)]
    assert found is not None
    spec = _spec(found[1], found[2])
    kernel = parse(spec)
    error = float(np.sqrt((weight * (target - kernel.correlation(np.array(0), lag)) ** 2).sum() / weight.sum()))
    return Fit(family, spec, error, statistics(kernel, len(lag), Query(0.0)).k2)


def _spec(kernel: Kernel, share: float) -> str:
    """A kernel with a nugget as text, weights of four digits that add up to 1."""
    name, _, numbers = kernel.spec.partition(":")
    short = f"{name}:{','.join(f'{float(x):.6g}' for x in numbers.split(','))}"
    kept = f"{share:.4f}"
    if float(kept) in (0.0, 1.0):
        return short if float(kept) else "iid"
    return f"{kept}*{short}+{1 - float(kept):.4f}*iid"
