"""The kernel families. Each is one line of mathematics; t is the lag |a - b|."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ._base import Kernel, Stationary, require
from ._statistics import Statistics, ar1_statistics, closed_form_is_accurate


@dataclass(frozen=True)
class IID(Stationary):
    """Independent tokens: 1 at lag 0, else 0."""

    name = "iid"
    proven = True

    def at_lag(self, lag: np.ndarray) -> np.ndarray:
        return np.where(lag == 0, 1.0, 0.0)

    def closed_statistics(self, length: float, gap: int) -> Statistics:
        return Statistics(0.0, 0.0, 1.0)


@dataclass(frozen=True)
class AR1(Stationary):
    """First-order autoregression phi^t, -1 <= phi <= 1."""

    phi: float
    name = "ar1"
    proven = True

    def __post_init__(self) -> None:
        require(self, -1 <= self.phi <= 1, "PHI must lie in [-1, 1]")

    def at_lag(self, lag: np.ndarray) -> np.ndarray:
        return np.power(self.phi, lag)

    def closed_statistics(self, length: float, gap: int) -> Statistics | None:
        if not closed_form_is_accurate(self.phi):
            return None
        k0, k1, k2 = ar1_statistics(self.phi, length)
        further = self.phi ** (2 * (gap - 1))
        return Statistics(float(k0) * further, float(k1) * further, float(k2))


@dataclass(frozen=True)
class Exponential(Stationary):
    """exp(-t/xi) with correlation length xi >= 0: 0 is iid, inf is all ones."""

    xi: float
    name = "exp"
    proven = True

    def __post_init__(self) -> None:
        require(self, self.xi >= 0, "XI must be >= 0 (inf is allowed)")

    @property
    def phi(self) -> float:
        """The equivalent AR(1) coefficient exp(-1/xi)."""
        return math.exp(-1.0 / self.xi) if self.xi > 0 else 0.0

    def at_lag(self, lag: np.ndarray) -> np.ndarray:
        return np.exp(-lag / self.xi) if self.xi > 0 else np.where(lag == 0, 1.0, 0.0)

    def closed_statistics(self, length: float, gap: int) -> Statistics | None:
        return AR1(self.phi).closed_statistics(length, gap)


@dataclass(frozen=True)
class PowerLaw(Stationary):
    """(1+t)^(-gamma), gamma >= 0."""

    gamma: float
    name = "power"
    proven = True  # completely monotone in t

    def __post_init__(self) -> None:
        require(self, self.gamma >= 0, "GAMMA must be >= 0")

    def at_lag(self, lag: np.ndarray) -> np.ndarray:
        return np.power(1.0 + lag, -self.gamma)


@dataclass(frozen=True)
class Matern(Stationary):
    """Matern correlation of smoothness nu > 0 and scale l > 0, argument sqrt(2 nu) t / l."""

    nu: float
    l: float  # noqa: E741 - the symbol of the field
    name = "matern"
    proven = True

    def __post_init__(self) -> None:
        require(
            self,
            0 < self.nu <= 100 and 0 < self.l < math.inf,
            "NU must lie in (0, 100] (beyond, use sqexp) and L in (0, inf)",
        )

    def at_lag(self, lag: np.ndarray) -> np.ndarray:
        from scipy.special import gammaln, kve  # slow to load, needed here only

        z = np.sqrt(2 * self.nu) * np.where(lag == 0, 1.0, lag) / self.l
        with np.errstate(divide="ignore"):  # kve underflows to 0 at large z, log gives -inf, exp gives 0
            logs = self.nu * np.log(z) + np.log(kve(self.nu, z)) - z
        value = np.exp((1 - self.nu) * math.log(2) - gammaln(self.nu) + logs)
        return np.where(lag == 0, 1.0, np.minimum(value, 1.0))


@dataclass(frozen=True)
class SquaredExponential(Stationary):
    """exp(-t^2/(2 l^2)), l > 0."""

    l: float  # noqa: E741 - the symbol of the field
    name = "sqexp"
    proven = True

    def __post_init__(self) -> None:
        require(self, 0 < self.l < math.inf, "L must lie in (0, inf)")

    def at_lag(self, lag: np.ndarray) -> np.ndarray:
        return np.exp(-0.5 * (lag / self.l) ** 2)


@dataclass(frozen=True)
class Cosine(Stationary):
    """exp(-t/xi) cos(omega t), xi > 0 (inf: undamped)."""

    omega: float
    xi: float
    name = "cosine"
    proven = True

    def __post_init__(self) -> None:
        require(self, self.xi > 0 and math.isfinite(self.omega), "OMEGA must be finite and XI > 0 (inf is allowed)")

    def at_lag(self, lag: np.ndarray) -> np.ndarray:
        return np.exp(-lag / self.xi) * np.cos(self.omega * lag)


@dataclass(frozen=True)
class Equicorrelated(Stationary):
    """The same correlation c between any two tokens: (1-c) at equal positions plus c everywhere."""

    c: float
    name = "equi"

    def __post_init__(self) -> None:
        require(self, -1 <= self.c <= 1, "C must lie in [-1, 1] (and above -1/length)")

    @property
    def proven(self) -> bool:  # type: ignore[override]
        """A negative c is positive semidefinite only at short lengths."""
        return self.c >= 0

    def at_lag(self, lag: np.ndarray) -> np.ndarray:
        return np.where(lag == 0, 1.0, self.c)

    def closed_statistics(self, length: float, gap: int) -> Statistics:
        k0 = length * self.c**2
        return Statistics(k0, k0 * (1 + (length - 1) * self.c), 1 + (length - 1) * self.c**2)


@dataclass(frozen=True)
class MovingAverage(Stationary):
    """Moving average of q+1 equal weights: max(0, 1 - t/(q+1)), q = 0, 1, 2, ..."""

    q: float
    name = "ma"
    proven = True

    def __post_init__(self) -> None:
        require(self, self.q >= 0 and float(self.q).is_integer(), "Q must be an integer >= 0")

    def at_lag(self, lag: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, 1.0 - lag / (self.q + 1))


@dataclass(frozen=True)
class Blocks(Kernel):
    """Each token repeated b times, so that K is singular: 1 inside a block, else 0.

    A continuing query repeats the last token if its block is unfinished, else it is new.
    """

    b: float
    name = "blocks"
    proven = True

    def __post_init__(self) -> None:
        require(self, 1 <= self.b <= 2**40 and float(self.b).is_integer(), "B must be an integer >= 1 (and <= 2^40)")

    def correlation(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        block = int(self.b)
        return np.where((np.asarray(a) - 1) // block == (np.asarray(b) - 1) // block, 1.0, 0.0)
