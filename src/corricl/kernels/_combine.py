"""Sums and products of kernels. Both keep positive semidefiniteness and the unit diagonal."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ._base import Kernel, require_float64, shortest


@dataclass(frozen=True)
class _Composite(Kernel):
    parts: tuple[Kernel, ...]

    @property
    def proven(self) -> bool:  # type: ignore[override]
        return all(part.proven for part in self.parts)

    @property
    def stationary(self) -> bool:  # type: ignore[override]
        return all(part.stationary for part in self.parts)

    @property
    def size(self) -> int | None:  # type: ignore[override]
        sizes = {part.size for part in self.parts} - {None}
        if len(sizes) > 1:
            raise InputError(f"kernels read from files have different sizes: {sorted(sizes, key=str)}")
        return sizes.pop() if sizes else None


@dataclass(frozen=True)
class Mixture(_Composite):
    """Sum of weights times kernels; the weights are >= 0 and add up to 1 (1e-9).

    While it is being built (`0.7 * a + 0.3 * b`) the sum may still be below 1; it is checked on use.
    """

    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not all(math.isfinite(w) and w >= 0 for w in self.weights):
            raise InputError(f"weights of a kernel mixture must be >= 0; got {self.weights}")

    @property
    def spec(self) -> str:
        return "+".join(f"{shortest(w)}*{part.spec}" for w, part in zip(self.weights, self.parts, strict=True))

    def check(self) -> None:
        """Refuse weights that do not add up to 1."""
        if abs(math.fsum(self.weights) - 1) > 1e-9:
            raise InputError(
                f"weights of kernel '{self.spec}' add up to {math.fsum(self.weights):.10g}; they must add up to 1"
            )

    def correlation(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        self.check()
        terms = zip(self.weights, self.parts, strict=True)
        return np.sum([w * require_float64(part, part.correlation(a, b)) for w, part in terms], axis=0)


@dataclass(frozen=True)
class Product(_Composite):
    """Elementwise product of kernels."""

    @property
    def spec(self) -> str:
        return "*".join(part.spec for part in self.parts)

    def correlation(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.prod([require_float64(part, part.correlation(a, b)) for part in self.parts], axis=0)


def mix(left: Kernel, right: object) -> Mixture:
    """left + right, flattened; a kernel without a weight counts 1."""
    if not isinstance(right, Kernel):
        return NotImplemented
    a, b = ((k if isinstance(k, Mixture) else Mixture((k,), (1.0,))) for k in (left, right))
    return Mixture(a.parts + b.parts, a.weights + b.weights)


def multiply(kernel: Kernel, factor: object) -> Mixture | Product:
    """factor * kernel: a number weights it, a kernel multiplies it elementwise."""
    if isinstance(factor, Kernel):
        parts = tuple(p for k in (kernel, factor) for p in (k.parts if isinstance(k, Product) else (k,)))
        if any(isinstance(p, Mixture) for p in parts):
            raise InputError("multiply kernels before mixing them: write a*b + a*c instead of a*(b + c)")
        return Product(parts)
    if not isinstance(factor, int | float):
        return NotImplemented
    if isinstance(kernel, Mixture):
        return Mixture(kernel.parts, tuple(float(factor) * w for w in kernel.weights))
    return Mixture((kernel,), (float(factor),))
