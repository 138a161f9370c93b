"""What can be turned: its name in words, its range, and the grid that a curve takes over it."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from ..kernels import Kernel, known_kernels


@dataclass(frozen=True)
class Quantity:
    """A number that a control turns and a curve can run over.

    Attributes:
        label: its name with unit, as on an axis.
        low, high: ends of the control; on a logarithmic scale both are > 0.
        default: where the control starts.
        log: logarithmic scale.
        whole: integers alone.
        zero: the left end of a logarithmic control stands for 0.
    """

    label: str
    low: float
    high: float
    default: float
    log: bool = False
    whole: bool = False
    zero: bool = False

    def at(self, share: float) -> float:
        """The value at a share in [0, 1] of the control's way, to three digits."""
        if self.log and self.zero and share <= 0:
            return 0.0
        low, high = self._ends
        raw = low + min(max(share, 0.0), 1.0) * (high - low)
        value = math.exp(raw) if self.log else raw
        if self.whole:
            return float(round(value))
        return float(f"{value:.3g}") if self.log else round(value, 3)

    def share_of(self, value: float) -> float:
        """Where a value stands on the control's way; beyond an end it is at that end."""
        if self.log and value <= 0:
            return 0.0
        low, high = self._ends
        return min(max(((math.log(value) if self.log else value) - low) / (high - low), 0.0), 1.0)

    @property
    def _ends(self) -> tuple[float, float]:
        return (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)

    def grid(self, points: int) -> list[float]:
        """Distinct values from low to high, in order; 0 is on no logarithmic axis."""
        shares = np.linspace(1e-12, 1, points)
        return list(dict.fromkeys(self.at(share) for share in shares.tolist()))


SIZES = {
    "d": Quantity("token dimension d", 3, 128, 32, log=True, whole=True),
    "length": Quantity("context length ℓ (tokens)", 4, 512, 128, log=True, whole=True),
    "sequences": Quantity("pretraining sequences n", 16, 1e5, 4096, log=True, whole=True),
    "tasks": Quantity("pretraining tasks k", 1, 1e4, 320, log=True, whole=True),
    "noise": Quantity("label noise ρ (variance)", 1e-3, 10, 0.01, log=True, zero=True),
    "ridge": Quantity("ridge λ", 1e-8, 10, 1e-8, log=True, zero=True),
}
"""Fields of a setting that are numbers."""

FAMILIES = {
    "iid": (),
    "exp": (Quantity("correlation length ξ (tokens)", 0, 50, 2),),
    "ar1": (Quantity("coefficient φ", -1, 1, 0.5),),
    "power": (Quantity("exponent γ", 0, 3, 0.7),),
    "matern": (Quantity("range L (tokens)", 0.1, 50, 3, log=True), Quantity("smoothness ν", 0.1, 5, 1.5)),
    "sqexp": (Quantity("range L (tokens)", 0.1, 20, 2),),
    "cosine": (
        Quantity("damping ξ (tokens)", 0.5, 50, 10, log=True),
        Quantity("frequency ω (radians a token)", 0, 3.14, 0.3),
    ),
    "equi": (Quantity("correlation c", 0, 1, 0.1),),
    "ma": (Quantity("order q (tokens)", 0, 50, 3, whole=True),),
    "blocks": (Quantity("copies b of each token", 1, 32, 4, whole=True),),
}
"""Parameters of the kernels that come with the package, the one that an axis runs over first."""

ORDER = {"matern": (1, 0), "cosine": (1, 0)}
"""Where the parameters above do not stand in the order of the SPEC string: their places in it."""


def families() -> list[str]:
    """Every kernel that the controls can turn: those above, then those that a plug-in or a module has brought."""
    others = [name for name in known_kernels() if name not in FAMILIES and name != "file"]
    return [*FAMILIES, *others]


def parameters(family: str) -> tuple[Quantity, ...]:
    """The parameters of a family, the one that an axis runs over first."""
    if family in FAMILIES:
        return FAMILIES[family]
    fields = dataclasses.fields(known_kernels()[family])  # type: ignore[arg-type]
    return tuple(Quantity(field.name, 0, 10, 1) for field in fields)


def spec_of(family: str, values: tuple[float, ...]) -> str:
    """SPEC string of a family at parameter values in the order of `parameters`."""
    places = ORDER.get(family, tuple(range(len(values))))
    words = [""] * len(values)
    for place, value in zip(places, values, strict=True):
        words[place] = repr(float(value)).removesuffix(".0")
    return f"{family}:{','.join(words)}" if words else family


def values_of(kernel: Kernel) -> tuple[float, ...] | None:
    """Parameter values of a single family in the order of `parameters`.

    None for what sliders do not reach: mixtures, products and infinite parameters.
    """
    if kernel.name not in families():
        return None
    values = [float(getattr(kernel, field.name)) for field in dataclasses.fields(kernel)]  # type: ignore[arg-type]
    if not all(map(math.isfinite, values)):
        return None
    return tuple(values[place] for place in ORDER.get(kernel.name, tuple(range(len(values)))))
