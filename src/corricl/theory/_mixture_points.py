"""What the mixture theory averages over, without random seeds: sequences and tasks.

Sequences are fixed quasi-random points pushed through the exact law of the scalars; tasks enter
by the mean spectrum of their sample covariance. See docs/theory/mixture.md, sections 1 and 6.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..numerics import difference
from ..prompt import Basis, Prompt
from ._scalars import scalars

SHIFTS = 8
"""Copies of the lattice, each moved by a fixed vector; the spread of an answer over them is its numerical error."""

_POINTS = 2039  # points of a copy, a prime
_LEADING = 16  # eigenvalues of K that keep a coordinate of their own
_GROUPS = 12  # groups that the other eigenvalues form
# Steps of a rank-1 lattice, found component by component for products of smooth functions whose
# j-th coordinate has weight 1/(10 j). The order of coordinates is by importance.
_STEPS = (
    893, 24, 608, 58, 529, 25, 778, 795, 105, 866, 913, 899, 286, 722, 686, 717, 886, 523, 973, 495, 338, 526, 284, 204,
    405, 353, 416, 919, 194, 66, 569, 556, 63, 496, 679, 435, 122, 953, 484, 588, 296, 123, 442, 702, 86, 383, 657,
)  # fmt: skip
_SEED = 1  # of the shifts
_NODES = 24  # of the spectrum's Gauss rule; traces of resolvents converge geometrically
_MATCHED = 8  # from this many nonzero eigenvalues on, fluctuations of the spectrum between task sets are ignored
_SAMPLED = 200  # above this many nonzero eigenvalues the spectrum's own fluctuations are below 1e-3


class Sequences(NamedTuple):
    """Scalars of sequences, shape (shifts, points) each; all points weigh the same.

    The features of a sequence are x_t h' and x_t u, with h = m w + p x_t + r and r Gaussian,
    orthogonal to the task w. Of r, one component lies along the part of x_t that is orthogonal to w.
    """

    f: np.ndarray  # x_t.w
    w2: np.ndarray  # |w|^2/d
    p: np.ndarray  # weight of x_t in h
    m: np.ndarray  # weight of w in h
    o: np.ndarray  # r.x_t
    v: np.ndarray  # |r|^2/d without the component along x_t
    s: np.ndarray  # |x_t|^2
    u: np.ndarray  # y.y/length, the last feature


class Spectrum(NamedTuple):
    """Eigenvalue law of the task covariance R, shape (r,) each; its mean is 1.

    `share` is the mean squared component of the average task along the eigenvectors at each node.
    """

    nodes: np.ndarray
    weights: np.ndarray
    share: np.ndarray


@lru_cache(maxsize=1)
def base_normals() -> np.ndarray:
    """Standard normals, shape (coordinates, shifts*points): a rank-1 lattice, shifted and folded."""
    from scipy.special import ndtri  # loaded on first use, it takes a third of a second

    steps = np.array(_STEPS)[:, None, None]
    lattice = steps * np.arange(_POINTS) % _POINTS / _POINTS  # (coordinates, 1, points)
    shifts = np.random.default_rng(_SEED).random((len(_STEPS), SHIFTS, 1))
    folded = 1 - np.abs(2 * ((lattice + shifts) % 1.0) - 1)  # the baker's transform: second-order convergence
    normals = ndtri(np.clip(folded, 1e-12, 1 - 1e-12)).reshape(len(_STEPS), -1)
    normals.flags.writeable = False
    return normals


def chi_square(normal: np.ndarray, freedom: np.ndarray | float) -> np.ndarray:
    """Approximate chi-square variable of `freedom` degrees, the cube of a normal one (Wilson and Hilferty)."""
    c = 2 / (9 * np.maximum(freedom, 1e-9))
    return freedom * np.clip(1 - c + normal * np.sqrt(c), 0.0, None) ** 3


def exact_chi_square(normal: np.ndarray, freedom: float) -> np.ndarray:
    """Chi-square variable by inversion of its distribution function, tabulated: relative error 1e-5."""
    from scipy.special import chdtri, ndtr

    grid = np.linspace(-7.2, 7.2, 1025)
    return np.interp(normal, grid, np.sqrt(chdtri(freedom, ndtr(-grid)))) ** 2


def grouped(basis: Basis) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A short equivalent of a prompt's basis: eigenvalues, query correlations, degrees of freedom (0: a normal).

    The leading eigenvalues stay. Of the others neighbours form groups: the direction of a group that
    the query feels keeps a coordinate, the rest become one chi-square variable with the group's sum
    and sum of squares. What this loses of the number of labels returns at eigenvalue 0. The means of
    y.y, y.Ky and t.y, and the law of y.k up to the spread within groups, are kept.
    """
    values, query = basis.eigenvalues[::-1], basis.query[::-1]
    columns = [(value, k, 0.0) for value, k in zip(values[:_LEADING], query[:_LEADING], strict=True)]
    groups = min(_GROUPS, (len(values) - _LEADING) // 2)
    edges = np.round(np.geomspace(_LEADING, len(values), groups + 1)).astype(int) if groups > 0 else np.arange(0)
    if len(values) > _LEADING and groups < 1:  # one eigenvalue is left over
        edges = np.array([_LEADING, len(values)])
    labels = 0.0
    for start, stop in pairwise(edges):
        size, group, k = stop - start, values[start:stop], query[start:stop]
        total, square, power = group.sum(), group @ group, float(k @ k)
        if power > 0:
            felt = float(group @ (k * k)) / power
            columns.append((felt, math.sqrt(power), 0.0))
            size, total, square = size - 1, difference(total, felt), difference(square, felt * felt)
        if size > 0 and total > 0 and square > 0:
            freedom = min(total * total / square, float(size))
            columns.append((total / freedom, 0.0, freedom))
            size -= freedom
        labels += size
    if labels > 1e-6:
        columns.append((0.0, 0.0, labels))
    eigenvalues, correlations, freedom = np.array(columns).T
    return eigenvalues, correlations, freedom


def sequences(prompt: Prompt) -> Sequences:
    """The scalars of a prompt's sequences on fixed quasi-random points, with tasks |w|^2 ~ chi2_d.

    Args:
        prompt: d >= 3 (the decomposition needs a direction orthogonal to the task and the query).
    """
    try:
        return _cached_sequences(prompt)
    except TypeError:  # a kernel that cannot be hashed
        return _sequences(prompt)


def _sequences(prompt: Prompt) -> Sequences:
    d, length = prompt.d, prompt.length
    normals = base_normals()
    for_norm, for_query, for_across, for_aligned, for_overlap, for_rest = normals[2:8]
    eigenvalues, query, freedom = grouped(prompt.basis)
    z = np.concatenate([normals[:2], normals[8:]])[: len(freedom)].T
    many = freedom > 0
    z = np.ascontiguousarray(z)
    z[:, many] = np.sqrt(chi_square(z[:, many], freedom[many]))
    power = exact_chi_square(for_norm, d)
    norm = np.sqrt(power)
    drawn = scalars(z, np.stack([for_aligned, for_query], 1), norm, eigenvalues, query, prompt.noise, d)
    f = norm * drawn.query
    across = exact_chi_square(for_across, d - 1) / d  # the part of |x_t|^2 orthogonal to the task
    variance = d / length**2 * drawn.residual
    p = d / length * drawn.coupling
    rest = exact_chi_square(for_rest, d - 2) / d
    found = Sequences(
        f=f,
        w2=power / d,
        p=p,
        m=d / length * drawn.aligned / norm - p * f / power,
        o=np.sqrt(variance * across) * for_overlap,
        v=variance * rest,
        s=drawn.query**2 + across,
        u=drawn.label_power / length,
    )
    return Sequences(*(part.reshape(SHIFTS, -1) for part in found))


_cached_sequences = lru_cache(maxsize=16)(_sequences)


@lru_cache(maxsize=64)
def spectrum(d: int, tasks: int | None) -> Spectrum:
    """Mean eigenvalue law of R = sum w w'/tasks over task sets of size `tasks`, scaled to mean 1.

    Its second moment is the exact 1 + (d+1)/tasks from eight nonzero eigenvalues on.

    Up to 200 nonzero eigenvalues it is the average, in order, of the eigenvalues of fixed task sets
    (in their bidiagonal form, whose entries are independent chi variables); beyond, chi variables
    are replaced by their means. Compressed to a Gauss rule.

    Args:
        d: token dimension.
        tasks: number of tasks; None for a fresh task in every sequence, where R = I.
    """
    if tasks is None:
        return Spectrum(np.ones(1), np.ones(1), np.zeros(1))
    few, many = min(d, tasks), max(d, tasks)
    diagonal, below = many - np.arange(few), few - 1 - np.arange(few - 1)  # degrees of freedom
    if few > _SAMPLED:
        n = _NODES
        nodes, weights = _gauss_of_bidiagonal(np.sqrt(diagonal[:n]), np.sqrt(below[: n - 1]))
    else:
        nodes, weights = _gauss_rule(_mean_eigenvalues(diagonal, below))
    nodes = nodes / (weights @ nodes)
    if few >= _MATCHED:  # the second moment of the mean law is known too
        spread = (1 + (d + 1) / tasks) * few / d - 1
        nodes = np.maximum(1 + (nodes - 1) * math.sqrt(spread / (weights @ (nodes - 1) ** 2)), 0.0)
    weights, nodes = weights * few / d, nodes * d / few
    if few < d:
        nodes, weights = np.append(nodes, 0.0), np.append(weights, 1 - few / d)
    order = np.argsort(nodes)
    nodes, weights = nodes[order], weights[order]
    return Spectrum(nodes, weights, nodes * weights * d / tasks)


def _mean_eigenvalues(diagonal: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Eigenvalues of B B' in ascending order, averaged over fixed draws of the chi variables in B."""
    few = len(diagonal)
    generator = np.random.default_rng(_SEED)
    sets = int(np.clip(1024 // few, 4, 128))
    total = np.zeros(few)
    for _ in range(sets):
        B = np.diag(np.sqrt(generator.chisquare(diagonal)))
        if few > 1:
            B += np.diag(np.sqrt(generator.chisquare(below)), -1)
        total += np.linalg.eigvalsh(B @ B.T)
    return np.clip(total / sets, 0.0, None)


def _gauss_of_bidiagonal(diagonal: np.ndarray, below: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the spectral measure of B B' at the first unit vector."""
    B = np.diag(diagonal) + np.diag(below, -1)
    values, vectors = np.linalg.eigh(B @ B.T)
    return values, vectors[0] ** 2


def _gauss_rule(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The Gauss rule of at most 24 nodes for equally weighted points (Lanczos, fully orthogonalised)."""
    if len(values) <= _NODES:
        return values, np.full(len(values), 1 / len(values))
    basis = np.zeros((_NODES, len(values)))
    matrix = np.zeros((_NODES, _NODES))
    vector = np.full(len(values), 1 / math.sqrt(len(values)))
    for j in range(_NODES):
        basis[j] = vector
        image = values * vector
        for _ in range(2):
            image = image - basis[: j + 1].T @ (basis[: j + 1] @ image)
        matrix[j, j] = vector @ (values * vector)
        size = float(np.linalg.norm(image))
        if j + 1 < _NODES:
            matrix[j, j + 1] = matrix[j + 1, j] = size
            vector = image / size
    nodes, vectors = np.linalg.eigh(matrix)
    return nodes, vectors[0] ** 2
