"""Gamma* = argmin sum_m (y_m - <Gamma, H_m>)^2 + penalty |Gamma|^2 over features H_m = x_m u_m' never formed.

At or above d(d+1) sequences: conjugate gradients on the normal equations. Below: the minimiser lies in
the span of the features, and its n coefficients solve a system with the Khatri-Rao Gram matrix
(XX') o (UU'), densely while that fits and by conjugate gradients from zero beyond. A preconditioner would
take the iterates out of that span, where a small residual certifies nothing; it is used only where the
features determine Gamma. Derivation: docs/theory/solver.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh, PartitionSpec

from ..errors import ConvergenceError, InputError
from ._sampler import AXIS, Sequences

DENSE_LIMIT = 12_000
"""Order of the largest system that is factored (1.2 GB for the matrix)."""

SINGULAR = 1e-13
"""Eigenvalues below this fraction of the largest are not resolved in float64."""


class Solution(NamedTuple):
    """Gamma*, shape (d, d+1), and what certifies it.

    `residual` is the relative residual of the system that was solved, recomputed from the final Gamma.
    `condition` is a lower estimate of a factored system's condition number.
    """

    gamma: Array
    residual: float
    steps: int
    condition: float | None
    method: str


def solve(
    data: Sequences,
    penalty: float,
    *,
    sequences: int,
    mesh: Mesh,
    determined: bool,
    tolerance: float = 1e-8,
    max_steps: int = 20_000,
    method: str = "auto",
) -> Solution:
    """Minimise the ridge objective; penalty 0 is the minimum-norm solution.

    Args:
        data: features, from `sample_sequences`.
        penalty: (n/d) ridge >= 0.
        sequences: n.
        mesh: devices that hold the data.
        determined: False where the features of the law itself are linearly dependent (every context
            token and the query a copy of one another, or one task without noise), so that no number of
            sequences determines Gamma.
        tolerance: largest relative residual.
        max_steps: conjugate-gradient steps allowed.
        method: "auto", "cg" or "dense".

    Raises:
        ConvergenceError: when the residual stays above the tolerance; the message gives it.
    """
    d = data.query.shape[-1]
    features = d * (d + 1)
    if method == "auto":
        near = sequences < 1.1 * features  # there conjugate gradients take thousands of steps
        method = "dense" if near and min(sequences, features) <= DENSE_LIMIT else "cg"
    if method == "dense":
        if min(sequences, features) > 2 * DENSE_LIMIT:
            raise InputError(f"a dense solve of order {min(sequences, features)} does not fit: use method 'cg'")
        solution = _solve_dense(data, penalty, sequences, determined)
    elif method == "cg":
        precondition = determined and sequences >= features
        gamma, residual, steps = conjugate_gradients(
            data, jnp.float64(penalty), jnp.float64(tolerance), max_steps, precondition=precondition, mesh=mesh
        )
        solution = Solution(gamma, float(residual), int(steps), None, "cg")
    else:
        raise InputError(f"unknown solver '{method}'; allowed: auto, cg, dense")
    if not solution.residual <= tolerance:  # NaN counts as not converged
        raise ConvergenceError(
            f"the solve for Gamma did not converge: residual {solution.residual:.3g} after {solution.steps} steps, "
            f"tolerance {tolerance:.3g} (n = {sequences} sequences, d(d+1) = {features} features; "
            "near n = d(d+1) with a small ridge the system is ill-conditioned)"
        )
    return solution


def _predictions(gamma: Array, query: Array, summary: Array) -> Array:
    return ((query @ gamma) * summary).sum(-1)


def _adjoint(weights: Array, query: Array, summary: Array) -> Array:
    return query.T @ (weights[:, None] * summary)


class _State(NamedTuple):
    gamma: Array
    residual: Array
    direction: Array
    product: Array
    step: Array


@partial(jax.jit, static_argnames=("precondition", "mesh"))
def conjugate_gradients(
    data: Sequences, penalty: Array, tolerance: Array, max_steps: Array, *, precondition: bool, mesh: Mesh
) -> tuple[Array, Array, Array]:
    """Solve the normal equations from Gamma = 0; returns (Gamma, true relative residual, steps).

    The optional preconditioner is the inverse second moment of the summaries, which removes the
    spectrum of the tasks. Each device sums over its own blocks.
    """
    run = partial(_conjugate_gradients, precondition=precondition)
    own, shared = PartitionSpec(AXIS), PartitionSpec()
    spread = jax.shard_map(run, mesh=mesh, in_specs=(own, shared, shared, shared), out_specs=shared, check_vma=False)
    return spread(data, penalty, tolerance, jnp.asarray(max_steps))


def _conjugate_gradients(
    data: Sequences, penalty: Array, tolerance: Array, max_steps: Array, precondition: bool
) -> tuple[Array, Array, Array]:
    d = data.query.shape[-1]

    def total(term: object, shape: tuple[int, int]) -> Array:
        def add(sum_: Array, block: Sequences) -> tuple[Array, None]:
            return sum_ + term(block), None  # type: ignore[operator]

        return jax.lax.psum(jax.lax.scan(add, jnp.zeros(shape), data)[0], AXIS)

    def normal_matrix(gamma: Array) -> Array:
        def term(b: Sequences) -> Array:
            return _adjoint(_predictions(gamma, b.query, b.summary), b.query, b.summary)

        return total(term, (d, d + 1)) + penalty * gamma

    right = total(lambda b: _adjoint(b.target, b.query, b.summary), (d, d + 1))
    inverse = None
    if precondition:
        second_moment = total(lambda b: b.summary.T @ b.summary, (d + 1, d + 1)) / d
        inverse = jnp.linalg.inv(second_moment + penalty * jnp.eye(d + 1))

    def preconditioned(gamma: Array) -> Array:
        return gamma if inverse is None else gamma @ inverse

    scale = jnp.linalg.norm(right)

    def going(s: _State) -> Array:
        return (jnp.linalg.norm(s.residual) > tolerance * scale / 2) & (s.step < max_steps)

    def advance(s: _State) -> _State:
        image = normal_matrix(s.direction)
        stride = s.product / jnp.vdot(s.direction, image)
        residual = s.residual - stride * image
        z = preconditioned(residual)
        product = jnp.vdot(residual, z)
        direction = z + product / s.product * s.direction
        return _State(s.gamma + stride * s.direction, residual, direction, product, s.step + 1)

    z = preconditioned(right)
    start = _State(jnp.zeros_like(right), right, z, jnp.vdot(right, z), jnp.zeros_like(max_steps))
    end = jax.lax.while_loop(going, advance, start)
    residual = jnp.linalg.norm(right - normal_matrix(end.gamma)) / jnp.where(scale > 0, scale, 1.0)
    return end.gamma, residual, end.step


def _solve_dense(data: Sequences, penalty: float, sequences: int, determined: bool) -> Solution:
    x, u, y = (array.reshape(-1, *array.shape[2:])[:sequences] for array in data)
    d = x.shape[1]
    dual = sequences < d * (d + 1)
    matrix = _gram_matrix(x, u, penalty) if dual else _normal_matrix(x, u, penalty)
    right = y if dual else _adjoint(y, x, u).ravel()
    solution, residual, condition = _cholesky_solve(matrix, right)
    if not condition < 1 / SINGULAR:  # NaN where the factorisation failed
        solution, residual, unexplained, condition = _minimum_norm_solve(matrix, right)
        if not determined:  # there may be more sequences than independent features, and targets that no Gamma meets
            residual = unexplained
    gamma = _adjoint(solution, x, u) if dual else solution.reshape(d, d + 1)
    return Solution(gamma, float(residual), 0, float(condition), "dual" if dual else "normal")


@jax.jit
def _gram_matrix(x: Array, u: Array, penalty: Array) -> Array:
    return (x @ x.T) * (u @ u.T) + penalty * jnp.eye(len(x))


@jax.jit
def _normal_matrix(x: Array, u: Array, penalty: Array) -> Array:
    """sum_m (x u')(x u')' over flattened features plus the penalty, a slice of rows at a time."""
    features = x.shape[1] * u.shape[1]
    rows = max(1, 2**26 // features)
    slices = -(-len(x) // rows)
    x, u = (jnp.pad(a, ((0, slices * rows - len(x)), (0, 0))).reshape(slices, rows, -1) for a in (x, u))

    def add(total: Array, part: tuple[Array, Array]) -> tuple[Array, None]:
        product = (part[0][:, :, None] * part[1][:, None, :]).reshape(rows, features)
        return total + product.T @ product, None

    return jax.lax.scan(add, penalty * jnp.eye(features), (x, u))[0]


@jax.jit
def _cholesky_solve(matrix: Array, right: Array) -> tuple[Array, Array, Array]:
    """(solution with one step of refinement, relative residual, condition number)."""
    factor = jnp.linalg.cholesky(matrix)

    def inverse(v: Array) -> Array:
        return jax.scipy.linalg.cho_solve((factor, True), v)

    solution = inverse(right)
    solution = solution + inverse(right - matrix @ solution)
    residual = jnp.linalg.norm(matrix @ solution - right) / jnp.linalg.norm(right)
    condition = _largest_eigenvalue(lambda v: matrix @ v, right) * _largest_eigenvalue(inverse, right)
    return solution, residual, condition


def _largest_eigenvalue(apply: Callable[[Array], Array], start: Array) -> Array:
    """Four power iterations: a lower bound, close enough to warn by."""
    v = start / jnp.linalg.norm(start)
    for _ in range(4):
        v = apply(v / jnp.linalg.norm(v))
    return jnp.linalg.norm(v)


@jax.jit
def _minimum_norm_solve(matrix: Array, right: Array) -> tuple[Array, Array, Array, Array]:
    """(solution, relative residual, that of its least-squares equation, condition number) of a singular matrix.

    Eigenvalues below rounding are left out. What of the right side lies outside the span of the others is
    in the first residual and not in the second.
    """
    values, vectors = jnp.linalg.eigh(matrix)
    kept = values > SINGULAR * values[-1]
    inverse = jnp.where(kept, 1 / jnp.where(kept, values, 1.0), 0.0)
    solution = vectors @ (inverse * (vectors.T @ right))
    rest = matrix @ solution - right
    residual = jnp.linalg.norm(rest) / jnp.linalg.norm(right)
    unexplained = jnp.linalg.norm(matrix @ rest) / jnp.linalg.norm(matrix @ right)
    return solution, residual, unexplained, values[-1] / jnp.where(kept, values, jnp.inf).min()
