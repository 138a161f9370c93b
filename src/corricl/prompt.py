"""The nouns: what a prompt is, what a model is pretrained on, and what an error is."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_UP, Decimal
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .errors import InputError
from .kernels import Kernel, Query, Statistics, parse, statistics
from .numerics import ZERO, eigen


class Basis(NamedTuple):
    """Eigenvalues of K, shape (length,), and the query correlations in its eigenbasis, shape (length,).

    Directions whose eigenvalue is a rounding error carry exact zeros in both. So does a correlation that is
    itself rounding.
    """

    eigenvalues: np.ndarray
    query: np.ndarray


@dataclass(frozen=True)
class Prompt:
    """A context of correlated tokens with noisy linear labels, and a query.

    Tokens x_1..x_length and the query x_t in R^d are jointly Gaussian with mean zero and
    E[x_a x_b'] = K_ab I/d, E[x_t x_a'] = k_a I/d. A task w ~ N(0, I) labels them,
    y_a = x_a.w + e_a with e_a ~ N(0, noise), and y_t likewise. See docs/theory/model.md.

    Args:
        d: token dimension >= 1.
        length: number of context tokens >= 1, the query not counted.
        kernel: a `Kernel` or its SPEC string; K is its matrix at positions 1..length.
        query: a `Query`, its SPEC string, or a vector of length `length`. A matrix of size
            length+1 read from a file brings its own query.
        noise: label-noise variance >= 0.

    Raises:
        InputError: sizes out of range, or a joint kernel that is not positive semidefinite
            (the message gives its smallest eigenvalue).

    >>> Prompt(d=32, length=128, kernel="exp:2", noise=0.01).statistics.k2  # doctest: +ELLIPSIS
    2.14...
    """

    d: int
    length: int
    kernel: Kernel
    query: Query
    noise: float

    def __init__(
        self,
        d: int,
        length: int,
        kernel: Kernel | str = "iid",
        query: Query | str | np.ndarray | None = None,
        noise: float = 0.0,
    ) -> None:
        kernel = parse(kernel) if isinstance(kernel, str) else kernel
        joint = kernel.size is not None and kernel.size == length + 1
        if joint and query is not None and Query.parse(query) != Query():
            raise InputError(f"kernel '{kernel.spec}' of size {kernel.size} already holds the query: give no query")
        default = Query() if joint else Query(0.0)
        for name, value in (
            ("d", whole(d, "d")),
            ("length", whole(length, "length")),
            ("kernel", kernel),
            ("query", default if query is None else Query.parse(query)),
            ("noise", number(noise, "noise")),
        ):
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        size = self.kernel.size
        if size is not None and size not in (self.length, self.length + 1):
            raise InputError(
                f"kernel '{self.kernel.spec}' is {size}x{size}; length {self.length} needs "
                f"{self.length}x{self.length}, or {self.length + 1}x{self.length + 1} with the query last"
            )
        if size == self.length and self.query.vector is None and not self.query.is_independent:
            raise InputError("a context matrix read from a file says nothing of the query: use independent or vector")
        if self.query.vector is not None and len(self.query.vector) != self.length:
            self.query.correlations(self.kernel, self.length)  # says what is wrong
        if not (self.kernel.proven and self.query.vector is None):
            _require_correlation_matrix(self)

    @property
    def alpha(self) -> float:
        """length / d."""
        return self.length / self.d

    @cached_property
    def statistics(self) -> Statistics:
        """(k0, k1, k2)."""
        return statistics(self.kernel, self.length, self.query)

    @cached_property
    def query_vector(self) -> np.ndarray:
        """Query correlations k, shape (length,)."""
        return self.query.correlations(self.kernel, self.length)

    @cached_property
    def joint(self) -> np.ndarray:
        """Joint correlation matrix of context and query, shape (length+1, length+1), the query last."""
        k = self.query_vector
        return np.block([[self.kernel.matrix(self.length), k[:, None]], [k[None, :], np.ones((1, 1))]])

    @cached_property
    def basis(self) -> Basis:
        """K in its eigenbasis, exact zeros where K is singular."""
        values, vectors = eigen(self.kernel.matrix(self.length))
        query = vectors.T @ self.query_vector
        return Basis(values, np.where(np.abs(query) > ZERO * np.linalg.norm(query), query, 0.0))

    def replace(self, **changes: Any) -> Prompt:
        """A copy with some fields changed.

        A query that came with a joint matrix stays with it unless the kernel or query changes.
        """
        return replace(self, **changes)


@dataclass(frozen=True)
class Pretraining:
    """A prompt law together with how much of it a model is pretrained on.

    Args:
        prompt: the law of one sequence.
        sequences: number n of pretraining sequences >= 1.
        tasks: number k of distinct tasks >= 1, from which each sequence draws one uniformly;
            None or inf gives each sequence a task of its own.
    """

    prompt: Prompt
    sequences: int
    tasks: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sequences", whole(self.sequences, "sequences"))
        unbounded = self.tasks is None or (isinstance(self.tasks, float) and self.tasks == math.inf)
        object.__setattr__(self, "tasks", None if unbounded else whole(self.tasks, "tasks"))  # type: ignore[arg-type]

    @classmethod
    def from_ratios(cls, d: int, alpha: float, tau: float, kappa: float = math.inf, **prompt: Any) -> Pretraining:
        """Sizes length = alpha d, sequences = tau d^2, tasks = kappa d, each rounded half up.

        Args:
            d: token dimension.
            alpha: length / d.
            tau: sequences / d^2.
            kappa: tasks / d, or inf.
            **prompt: kernel, query and noise of the `Prompt`.

        >>> Pretraining.from_ratios(100, alpha=2.3, tau=1, kappa=0.29).tasks
        29
        """
        d = whole(d, "d")
        tasks = None if kappa == math.inf else size_of_ratio(kappa, d, "kappa")
        length, sequences = size_of_ratio(alpha, d, "alpha"), size_of_ratio(tau, d * d, "tau")
        return cls(Prompt(d, length, **prompt), sequences, tasks)

    @property
    def tau(self) -> float:
        """sequences / d^2."""
        return self.sequences / self.prompt.d**2

    @property
    def kappa(self) -> float:
        """tasks / d, inf for unbounded tasks."""
        return math.inf if self.tasks is None else self.tasks / self.prompt.d


class Caution(NamedTuple):
    """A labelled warning that travels with a result."""

    code: str
    message: str
    values: dict[str, float]


class Estimate(NamedTuple):
    """A simulated number: mean and standard error over independent replicates (None for a single one)."""

    mean: float
    stderr: float | None


@dataclass(frozen=True)
class Risk:
    """Errors predicted by a theory, with its name and whether it can be trusted there.

    A field that the method does not define is None. An infinite risk is `inf`.

    Attributes:
        icl: mean squared error on fresh tasks.
        idg: mean squared error on the pretraining tasks, fresh tokens.
        method: which theory.
        valid: False where its expected error passes 10 %.
        warnings: what makes it doubtful, with numbers.
        k0, k1, k2: kernel statistics of the test prompt.
        effective_length: iid length of equal error when the query is independent, l(1+noise)/(k2+noise).
        equivalent_length: iid length at which the same pretraining has this error.
        query_gain: error with an independent query on both sides minus this error.
        effective_ridge: the ridge that the bulk of the features feels.
    """

    icl: float
    idg: float | None
    method: str
    valid: bool = True
    warnings: tuple[Caution, ...] = ()
    k0: float | None = None
    k1: float | None = None
    k2: float | None = None
    effective_length: float | None = None
    equivalent_length: float | None = None
    query_gain: float | None = None
    effective_ridge: float | None = None
    details: dict[str, Any] = field(default_factory=dict)


LARGEST = 2**53
"""Largest size: beyond it floats skip integers."""


def whole(value: Any, name: str) -> int:
    """A size: an integer >= 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(f"{name} must be an integer >= 1; got {value!r}")
    if not (1 <= value <= LARGEST and value == int(value)):
        shown = value if abs(value) <= LARGEST else f"a number beyond 2^{LARGEST.bit_length() - 1}"
        raise InputError(f"{name} must be an integer >= 1; got {shown}")
    return int(value)


def number(value: Any, name: str, positive: bool = False) -> float:
    """A finite number >= 0 (or > 0); beyond 1e100 squares overflow."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(f"{name} must be a number; got {value!r}")
    if not (value <= 1e100 and (value > 0 if positive else value >= 0)):
        raise InputError(f"{name} must be finite and {'> 0' if positive else '>= 0'}; got {value}")
    return float(value)


def size_of_ratio(ratio: float, unit: int, name: str) -> int:
    """ratio times unit, rounded half up in decimal arithmetic (.29 times 100 is 29)."""
    number(ratio, name, positive=True)
    if ratio * unit > LARGEST:
        raise InputError(f"{name} = {ratio} gives a size beyond 2^{LARGEST.bit_length() - 1}")
    size = int((Decimal(repr(float(ratio))) * unit).quantize(Decimal(1), ROUND_HALF_UP))
    if size < 1:
        raise InputError(f"{name} = {ratio} gives a size of 0; it must be at least {0.5 / unit:g}")
    return size


def _require_correlation_matrix(prompt: Prompt) -> None:
    joint = prompt.joint
    spec = f"'{prompt.kernel.spec}' with query '{prompt.query.spec}'"
    if joint.dtype != np.float64 or joint.shape != (prompt.length + 1,) * 2 or not np.isfinite(joint).all():
        raise InputError(f"kernel {spec} must give finite float64 correlations, one for each pair of tokens")
    if (error := float(np.abs(np.diagonal(joint) - 1).max())) > 1e-9:
        raise InputError(f"kernel {spec} must have a unit diagonal; it is off by {error:.3g}")
    if (error := float(np.abs(joint - joint.T).max())) > 1e-9:
        raise InputError(f"kernel {spec} must be symmetric; it is off by {error:.3g}")
    smallest = float(np.linalg.eigvalsh(joint)[0])
    if smallest < -ROUNDING * len(joint):
        raise InputError(
            f"kernel {spec} is not positive semidefinite at length {prompt.length}: "
            f"its smallest joint eigenvalue is {smallest:.6g}"
        )


ROUNDING = 2e-8
"""Negative eigenvalues to this size per token (as of a matrix stored in float32) count as zero."""
