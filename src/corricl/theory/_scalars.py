"""The exact law of a sequence's scalar statistics, from independent standard normals.

Written against the array-API standard, so that the same lines serve the mixture theory in
NumPy and the sampler in JAX. Derivation: docs/theory/sampler.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Array = Any  # numpy.ndarray or jax.Array


class Scalars(NamedTuple):
    """Statistics of each of n sequences given its task, shape (n,) each.

    With w' the unit vector along the task and t = X w' the context's components along it.
    """

    label_power: Array  # y.y
    bulk: Array  # y.Ky
    coupling: Array  # y.k
    aligned: Array  # t.y
    query: Array  # x_t.w'


def scalars(z: Array, pair: Array, norm: Array, eigenvalues: Array, query: Array, noise: Any, d: int) -> Scalars:
    """Draw the scalars of n sequences.

    In the eigenbasis of K the labels are independent, y_i ~ N(0, |w|^2 L_i/d + noise), and given
    them (t.y, x_t.w') is Gaussian. Where a label has no variance nothing is known from it (0/0 = 0);
    conditional variances are clamped at 0, which rounding can miss by 1e-16.

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
    variance = power[:, None] * (eigenvalues[None, :] / d) + noise  # (n, length)
    deviation = xp.sqrt(variance)
    informative = variance > 0
    inverse = xp.where(informative, 1 / xp.where(informative, deviation, 1.0), 0.0)
    square = z * z
    total, first, second = square.sum(1), square @ eigenvalues, square @ (eigenvalues * eigenvalues)
    seen = (z * inverse) @ query
    coupling = (z * deviation) @ query

    aligned_deviation = xp.sqrt(noise * first / d)
    covariance = noise * seen / d
    resolved = aligned_deviation > 0
    slope = xp.where(resolved, covariance / xp.where(resolved, aligned_deviation, 1.0), 0.0)
    query_variance = 1 / d - power / d**2 * ((inverse * inverse) @ (query * query)) - slope * slope
    rest = xp.sqrt(xp.clip(query_variance, 0.0, None))
    return Scalars(
        label_power=power / d * first + noise * total,
        bulk=power / d * second + noise * first,
        coupling=coupling,
        aligned=norm / d * first + aligned_deviation * pair[:, 0],
        query=norm / d * seen + slope * pair[:, 0] + rest * pair[:, 1],
    )
