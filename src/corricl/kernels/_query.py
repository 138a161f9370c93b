"""How the query token relates to the context."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ._base import require_float64
from ._tabulated import read_array

if TYPE_CHECKING:
    from ._base import Kernel

LONGEST_GAP = 2**40
FORMS = "independent, continues, gap:G, strength:S or vector:FILE"


@dataclass(frozen=True)
class Query:
    """The query's correlations: `strength` times the kernel between position length+`gap` and the context.

    `Query(0)` is an independent query and `Query()` continues the sequence.

    Args:
        strength: S in [0, 1].
        gap: G >= 1, an integer.
        vector: the correlations themselves, shape (length,); then strength and gap must keep their defaults.
        source: file that the vector was read from.
    """

    strength: float = 1.0
    gap: int = 1
    vector: tuple[float, ...] | None = field(default=None, repr=False)
    source: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.strength <= 1:
            raise InputError(f"query strength must lie in [0, 1]; got {self.strength}")
        if not 1 <= self.gap <= LONGEST_GAP or int(self.gap) != self.gap:
            raise InputError(f"query gap must be an integer >= 1 and <= {LONGEST_GAP}; got {self.gap}")
        if self.vector is not None and (self.strength, self.gap) != (1.0, 1):
            raise InputError("a query given as a vector has no strength or gap")

    @classmethod
    def parse(cls, query: Query | str | np.ndarray) -> Query:
        """A Query from its SPEC string, from an array of correlations, or itself."""
        if isinstance(query, Query):
            return query
        if not isinstance(query, str):
            return cls._of_vector(np.asarray(query), "")
        name, _, rest = query.partition(":")
        try:
            match name, rest:
                case "independent", "":
                    return cls(0.0)
                case "continues", "":
                    return cls()
                case "gap", _:
                    return cls(gap=int(rest))
                case "strength", _:
                    return cls(strength=float(rest))
                case "vector", _ if rest:
                    return cls._of_vector(read_array(rest, "query"), rest)
        except InputError:
            raise
        except ValueError:
            pass
        raise InputError(f"query '{query}' is not understood; allowed: {FORMS}")

    @classmethod
    def _of_vector(cls, values: np.ndarray, source: str) -> Query:
        values = values.astype(np.float64)
        if values.ndim != 1 and 1 not in values.shape:
            raise InputError(f"a query vector must have one dimension; its shape is {values.shape}")
        return cls(vector=tuple(values.ravel().tolist()), source=source)

    @property
    def spec(self) -> str:
        """The SPEC string that parses back to this query."""
        if self.vector is not None:
            return f"vector:{self.source or '<array>'}"
        if self.strength == 0:
            return "independent"
        if self.strength < 1:
            return f"strength:{self.strength!r}"
        return "continues" if self.gap == 1 else f"gap:{self.gap}"

    @property
    def is_independent(self) -> bool:
        """True where every correlation is zero by construction."""
        return self.strength == 0 or (self.vector is not None and not any(self.vector))

    def correlations(self, kernel: Kernel, length: int) -> np.ndarray:
        """The vector k_test, shape (length,), float64."""
        if self.vector is not None:
            if len(self.vector) != length:
                raise InputError(f"the query vector has {len(self.vector)} entries; the context has {length} tokens")
            return np.array(self.vector)
        if self.strength == 0:
            return np.zeros(length)
        values = kernel.correlation(np.array(length + self.gap), np.arange(1, length + 1))
        return self.strength * require_float64(kernel, values)
