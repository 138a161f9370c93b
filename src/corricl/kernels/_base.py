"""What a kernel is: the correlation of two token positions."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..errors import InputError

if TYPE_CHECKING:
    from ._combine import Mixture, Product
    from ._statistics import Statistics


class Kernel:
    """A law for the correlation of two tokens, given their positions 1, 2, 3, ...

    A subclass is a frozen dataclass of float parameters that names itself by the class
    attribute `name` and defines `correlation`. Defining the class is enough to make
    `NAME:P1,P2` a valid SPEC string wherever the module has been imported.

    Attributes:
        name: the SPEC name; a class without one is not parsed from strings.
        proven: True only where a theorem says that the kernel is positive semidefinite at
            every length. Otherwise each matrix is checked before it is used.
        stationary: True where the correlation depends on the lag alone.
        size: number of positions at which the kernel is defined; None means all.
    """

    name: ClassVar[str] = ""
    proven: ClassVar[bool] = False
    stationary: bool = False
    size: int | None = None
    registry: ClassVar[dict[str, type[Kernel]]] = {}

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in cls.__dict__ and cls.name:
            known = Kernel.registry.get(cls.name)
            if known is not None and known.__qualname__ != cls.__qualname__:
                raise InputError(f"kernel name '{cls.name}' is taken by {known.__qualname__}")
            Kernel.registry[cls.name] = cls

    def correlation(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Correlation of the tokens at integer positions a and b (>= 1), broadcast together."""
        raise NotImplementedError

    def closed_statistics(self, length: float, gap: int) -> Statistics | None:
        """(k0, k1, k2) for the query at position length+gap, where a closed form exists; length may be inf."""
        return None

    @classmethod
    def from_text(cls, text: str) -> Kernel:
        """Build the kernel from what follows `NAME:` in a SPEC string (comma-separated numbers)."""
        fields = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
        words = text.split(",") if text else []
        form = f"{cls.name}:{','.join(f.upper() for f in fields)}" if fields else cls.name
        if len(words) != len(fields):
            raise InputError(f"kernel '{cls.name}' is written {form}; got '{cls.name}:{text}'")
        try:
            values = [float(word) for word in words]
        except ValueError:
            raise InputError(f"kernel '{cls.name}' is written {form} with numbers; got '{text}'") from None
        return cls(*values)

    @property
    def spec(self) -> str:
        """The SPEC string that parses back to this kernel."""
        values = [getattr(self, f.name) for f in dataclasses.fields(self)]  # type: ignore[arg-type]
        return f"{self.name}:{','.join(map(shortest, values))}" if values else self.name

    def matrix(self, length: int) -> np.ndarray:
        """Context correlation matrix K, shape (length, length), float64, unit diagonal."""
        positions = np.arange(1, length + 1)
        return require_float64(self, self.correlation(positions[:, None], positions[None, :]))

    def __add__(self, other: object) -> Mixture:
        from ._combine import mix

        return mix(self, other)

    def __mul__(self, other: object) -> Mixture | Product:
        from ._combine import multiply

        return multiply(self, other)

    __rmul__ = __mul__


class Stationary(Kernel):
    """A kernel that depends on the lag t = |a - b| alone; define `at_lag`."""

    stationary = True

    def at_lag(self, lag: np.ndarray) -> np.ndarray:
        """Correlation at lag t >= 0 (float64 array of any shape); must be 1 at lag 0."""
        raise NotImplementedError

    def correlation(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        lag = np.abs(np.asarray(a) - np.asarray(b))
        far = int(lag.max(initial=0))
        with np.errstate(all="ignore"):  # what is not finite is refused
            if far > 4 * lag.size:  # a long gap: no table up to it
                return require_float64(self, self.at_lag(lag.astype(np.float64)))
            return require_float64(self, self.at_lag(np.arange(far + 1, dtype=np.float64)))[lag]


def require_float64(kernel: Kernel, values: np.ndarray) -> np.ndarray:
    """Refuse correlations of lower precision, or not finite, before they mix with others."""
    values = np.asarray(values)
    if values.dtype != np.float64:
        raise InputError(f"kernel '{kernel.spec}' must return float64 correlations, not {values.dtype}")
    if not np.isfinite(values).all():
        raise InputError(f"kernel '{kernel.spec}' must give finite float64 correlations; some are NaN or infinite")
    return values


def shortest(value: float) -> str:
    """The shortest decimal text that reads back as the same float."""
    return repr(float(value)).removesuffix(".0")


def require(kernel: Kernel, holds: bool, allowed: str) -> None:
    """Refuse a kernel's parameters with a sentence unless `holds` and all are numbers."""
    values = [getattr(kernel, f.name) for f in dataclasses.fields(kernel)]  # type: ignore[arg-type]
    if not holds or any(math.isnan(v) for v in values):
        raise InputError(f"kernel '{kernel.spec}' is not allowed: {allowed}")
