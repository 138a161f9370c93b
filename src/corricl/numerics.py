"""What float64 can tell from 0, and eigenvectors that are the same on every machine.

Linear algebra rounds differently on each processor, by a few units in the last place. Two things blow that up to what
one can see: the square root of a difference that is 0 in exact arithmetic (1e-16 becomes 1e-8), and eigenvectors, which
a matrix fixes up to their sign only or, where eigenvalues coincide, up to a rotation. Both are settled here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

ZERO = 4500 * float(np.finfo(np.float64).eps)
"""What lies below this fraction (1e-12) of the terms that it was computed from is rounding and counts as 0."""


def difference(whole: Any, part: Any) -> Any:
    """whole - part where whole >= part in exact arithmetic: exactly 0 where nothing but rounding is left.

    A variance less what is explained of it may be 0. In float64 it then comes out as +-1e-16 of its terms. A clamp at 0
    mends half of that; the square root of the other half is 1e-8, and another 1e-8 on each processor. So what is not
    above `ZERO` times `whole` is 0. No true variance changes by more than that; NaN stays NaN.

    Args:
        whole: >= 0 and finite, a number or an array of any library, any shape.
        part: what is subtracted, at most `whole`, broadcast against it.

    >>> difference(np.array([1.0, 1.0, 1.0]), np.array([0.5, 1 - 1e-15, 1 + 1e-15])).tolist()
    [0.5, 0.0, 0.0]
    """
    left = whole - part
    library = getattr(left, "__array_namespace__", lambda: np)()  # a number has none
    return library.where(left <= ZERO * whole, 0.0, left)


class Eigen(NamedTuple):
    """A positive semidefinite matrix as vectors @ diag(values) @ vectors.T.

    Values ascend, shape (n,). Vectors are columns, shape (n, n); the column of a value 0 is 0.
    """

    values: np.ndarray
    vectors: np.ndarray


def eigen(matrix: np.ndarray, size: float = 0.0) -> Eigen:
    """Eigenvalues, exactly 0 where they are rounding, and eigenvectors that do not depend on the machine.

    Eigenvalues closer to each other than rounding tells apart share one space, of which every orthonormal basis is as
    good. Taken is the one that Gram and Schmidt make of fixed directions projected to it: for one vector that fixes
    the sign. A multiple of the identity keeps the basis that it has. Vectors of eigenvalues that nearly coincide, at a
    relative distance g, are known to about 1e-16/g only.

    Args:
        matrix: symmetric, positive semidefinite in exact arithmetic, shape (n, n).
        size: norm of what was subtracted to make it, if it is a difference: rounding is relative to that too.

    >>> values, vectors = eigen(np.ones((2, 2)))
    >>> values.tolist()[0], (vectors * values @ vectors.T).round(12).tolist()
    (0.0, [[1.0, 1.0], [1.0, 1.0]])
    """
    values, vectors = np.linalg.eigh(matrix)
    count, least = len(values), ZERO * max(float(values[-1]), size)
    start = int(np.searchsorted(values, least, side="right"))
    values[:start], vectors[:, :start] = 0.0, 0.0
    directions = np.random.default_rng(0).standard_normal(matrix.shape)
    while start < count:
        stop = int(np.searchsorted(values, values[start] + least, side="right"))
        if stop - start == count:
            return Eigen(values, np.eye(count))
        space = vectors[:, start:stop]
        rotation, triangle = np.linalg.qr(space.T @ directions[:, : stop - start])
        vectors[:, start:stop] = space @ (rotation * np.sign(np.diagonal(triangle)))
        start = stop
    return Eigen(values, vectors)
