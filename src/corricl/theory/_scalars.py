"""The exact law of a sequence's scalar statistics, from independent standard normals.

Written against the array-API standard, so that the same lines serve the mixture theory in
NumPy and the sampler in JAX. Derivation: docs/theory/sampler.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..numerics import difference

Array = Any  # numpy.ndarray or jax.Array


class Scalars(NamedTuple):
    """Statistics of each of n sequences given its task, shape (n,) each.

    With w' the unit vector along the task and t = X w' the context's components along it.
    """

    label_power: Array  # y.y
    coupling: Array  # y.k
    residual: Array  # y.Ky - (y.k)^2
    aligned: Array  # t.y
    query: Array  # x_t.w'


def scalars(z: Array, pair: Array, norm: Array, eigenvalues: Array, query: Array, noise: Any, d: int) -> Scalars:
    """Draw the scalars of n sequences.

    In the eigenbasis of K the labels are independent, y_i ~ N(0, |w|^2 L_i/d + noise), and given
    them (t.y, x_t.w') is Gaussian. Where a label has no variance nothing is known from it (0/0 = 0).

    Args:
        z: standard normals, shape (n, length).
        pair: standard normals, shape (n, 2).
        norm: task norms |w|, shape (n,).
        eigenvalues, query: the prompt's `Basis`, shape (length,) each, in the same array library.
        noise: label-noise variance.
        d: token dimension.
    """
    xp = z.__array_namespace__()
    power = norm * norm
    root = xp.sqrt(eigenvalues)
    reach = (query / xp.where(root > 0, root, 1.0))[None, :]  # of the query to each direction made white, (1, length)
    reach = reach / xp.sqrt(xp.maximum((reach * reach).sum(), 1.0))  # a joint matrix may be indefinite by rounding
    explained = (reach * reach).sum()
    unexplained = difference(1.0, explained)

    variance = power[:, None] * (eigenvalues[None, :] / d) + noise  # of the labels, (n, length)
    deviation = xp.sqrt(variance)
    inverse = xp.where(variance > 0, 1 / xp.where(variance > 0, deviation, 1.0), 0.0)
    white, felt = z * root[None, :], reach * inverse  # (n, length)
    labels = white * deviation
    first, seen, coupling = (white * white).sum(1), (white * felt).sum(1), (reach * labels).sum(1)
    slope = seen / xp.where(first > 0, first, 1.0)
    share = coupling / xp.where(explained > 0, explained, 1.0)

    # Conditional variances as sums of squares: as differences, which may be 0, their roots would be rounding errors.
    free = ((felt - slope[:, None] * white) ** 2).sum(1)
    apart = ((labels - share[:, None] * reach) ** 2).sum(1)
    fluctuation = xp.sqrt(noise * first / d) * pair[:, 0]  # of t.y
    return Scalars(
        label_power=power / d * first + noise * (z * z).sum(1),
        coupling=coupling,
        residual=apart + unexplained * share * coupling,
        aligned=norm / d * first + fluctuation,
        query=(norm / d) * seen + slope * fluctuation + xp.sqrt((unexplained + noise * free) / d) * pair[:, 1],
    )
