"""Deterministic quasi-Monte Carlo points for Gaussian integrals in many dimensions."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

POINTS = 1021
"""Points of one copy of the lattice, a prime."""
GENERATOR = 695
"""Its powers modulo POINTS are the lattice's steps. Of all generators it has the least correlation in its worst pair of
the first 128 coordinates (no power below the 128th is a small number, or a ratio of small numbers, modulo POINTS)."""
LATTICE_DIMENSIONS = 128
"""Dimensions served by the lattice. Later ones, which carry little variance, are Latin hypercube columns."""


def uniforms(dimensions: int, shifts: int) -> np.ndarray:
    """Points in the open unit cube: `shifts` shifted copies of one lattice, one after the other.

    A Korobov lattice of POINTS points with the baker's transform, each copy moved by a fixed
    vector, so that the spread over copies measures the error. The first coordinates do not
    change with `dimensions`: put those that matter first.

    Args:
        dimensions: coordinates of a point >= 1.
        shifts: copies >= 1.

    Returns:
        Shape (shifts * POINTS, dimensions), float64.
    """
    lattice = min(dimensions, LATTICE_DIMENSIONS)
    steps = np.array([pow(GENERATOR, j, POINTS) for j in range(lattice)])
    index = np.arange(POINTS)
    base = (index[:, None] * steps % POINTS) / POINTS  # (POINTS, lattice)
    out = np.empty((shifts * POINTS, dimensions))
    for copy in range(shifts):
        rows = out[copy * POINTS : (copy + 1) * POINTS]
        generator = np.random.default_rng(copy)
        rows[:, :lattice] = 1 - np.abs(2 * ((base + generator.random(LATTICE_DIMENSIONS)[:lattice]) % 1) - 1)
        for column in range(lattice, dimensions):
            rows[:, column] = (generator.permutation(POINTS) + generator.random(POINTS)) / POINTS
    np.clip(out, 1e-12, 1 - 1e-12, out=out)
    return out


@lru_cache(maxsize=3)
def _padded_normals(dimensions: int, shifts: int) -> np.ndarray:
    from scipy.special import ndtri  # loaded on first use, it takes a third of a second

    normals = ndtri(uniforms(dimensions + 1, shifts)[:, 1:])
    normals.flags.writeable = False
    return normals


def radius_and_normals(d: int, dimensions: int, shifts: int) -> tuple[np.ndarray, np.ndarray]:
    """Squared length of a d-vector with variance 1/d a component, and independent standard normals.

    Args:
        d: degrees of freedom of the squared length >= 1.
        dimensions: number of normals of a point.
        shifts: copies of the lattice.

    Returns:
        chi^2_d / d, shape (shifts * POINTS,), and normals, shape (shifts * POINTS, dimensions).
    """
    from scipy.special import gammaincinv

    padded = 1 << max(dimensions - 1, 0).bit_length()  # one cached table serves every size up to a power of two
    radius = gammaincinv(d / 2, uniforms(1, shifts)[:, 0]) * (2 / d)
    return radius, _padded_normals(padded, shifts)[:, :dimensions]
