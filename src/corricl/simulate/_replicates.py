"""Pretrain the reduced model many times and report its exact errors with standard errors."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from .. import theory
from ..errors import InputError
from ..prompt import Caution, Estimate, Pretraining, Prompt, Risk, number, whole
from ..theory import exact
from ._precision import in_float64, key_of, require_float64
from ._sampler import AXIS, Law, Sequences, normal, sample_sequences
from ._solver import Solution, solve

ILL_CONDITIONED = 1e6
"""Condition number of the system for Gamma beyond which a result carries a warning."""


@dataclass(frozen=True)
class Replicate:
    """One pretraining: its exact errors, the scale of Gamma*, and what certifies the solve.

    Attributes:
        icl, idg: exact errors on fresh tasks and on the pretraining tasks.
        trace, square: tr Gamma1 / d and |Gamma|_F^2 / d.
        residual, steps, condition, method: of the `Solution`.
        gamma: Gamma* itself, shape (d, d+1).
    """

    icl: float
    idg: float
    trace: float
    square: float
    residual: float
    steps: int
    condition: float | None
    method: str
    gamma: np.ndarray = field(repr=False, compare=False)


@dataclass(frozen=True)
class Simulation:
    """Errors of the reduced model over independent pretrainings.

    Attributes:
        icl, idg: mean and standard error over the replicates.
        replicates: each replicate's numbers.
        residual: the largest relative residual of their solves.
        theory: what theory says of the same setting.
        warnings: what makes the numbers doubtful.
    """

    icl: Estimate
    idg: Estimate
    replicates: tuple[Replicate, ...]
    residual: float
    theory: Risk
    warnings: tuple[Caution, ...] = ()
    method: str = "simulate"
    converged: bool = True  # a replicate that does not converge raises


def law_of(prompt: Prompt) -> Law:
    """The prompt as the sampler takes it, float64 on the default device."""
    basis = prompt.basis
    require_float64(eigenvalues=basis.eigenvalues, query=basis.query)
    return Law(jnp.asarray(basis.eigenvalues), jnp.asarray(basis.query), jnp.asarray(prompt.noise, jnp.float64))


def _determined(pretraining: Pretraining) -> bool:
    """False where the features are dependent whatever their number.

    One task without noise: then w.h = d y.y/length. Or K = k k': all tokens are copies, and only the
    symmetric part of Gamma is seen.
    """
    prompt = pretraining.prompt
    if pretraining.tasks == 1 and prompt.noise == 0:
        return False
    return float(prompt.basis.eigenvalues.sum() - np.square(prompt.basis.query).sum()) > 1e-6 * prompt.length


@in_float64
def pretrain(
    pretraining: Pretraining,
    ridge: float,
    *,
    seed: int,
    index: int = 0,
    devices: Sequence[Any] | None = None,
    **solver: Any,
) -> tuple[Solution, np.ndarray | None, Sequences]:
    """Draw replicate `index` of a pretraining set and solve for Gamma*.

    Args:
        pretraining: what to draw.
        ridge: strength >= 0; 0 is the minimum-norm solution.
        seed, index: the replicate depends on this pair alone.
        devices: JAX devices over which the sequences are spread; default the first one.
        **solver: tolerance, max_steps and method of the solver.

    Returns:
        (solution, tasks of shape (k, d) or None, the pretraining features).

    Raises:
        ConvergenceError: when the solve does not reach its tolerance.
    """
    ridge = number(ridge, "ridge")
    prompt, n = pretraining.prompt, pretraining.sequences
    _require_memory(n * (2 * prompt.d + 2) * 8)
    mesh = Mesh(np.array(jax.devices()[:1] if devices is None else list(devices)), (AXIS,))
    k_tasks, k_data = jax.random.split(key_of(seed, index))
    tasks = None if pretraining.tasks is None else normal(k_tasks, (pretraining.tasks, prompt.d))
    data = sample_sequences(k_data, tasks, law_of(prompt), sequences=n, d=prompt.d, mesh=mesh)
    penalty = n / prompt.d * ridge
    solution = solve(data, penalty, sequences=n, mesh=mesh, determined=_determined(pretraining), **solver)
    return solution, None if tasks is None else np.asarray(tasks), data


def _require_memory(needed: int) -> None:
    """Refuse features that cannot fit, before the allocation ends the process."""
    if not hasattr(os, "sysconf"):
        return
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > there:
        raise InputError(
            f"the pretraining features need {needed / 2**30:.3g} GiB; this machine has {there / 2**30:.3g} GiB: "
            "take fewer sequences or a smaller d"
        )


def replicate(
    pretraining: Pretraining, ridge: float, *, seed: int, index: int, test: Prompt | None = None, **options: Any
) -> Replicate:
    """Exact errors of one pretraining; depends on (seed, index) alone. Arguments as in `risk` and `pretrain`."""
    solution, tasks, _ = pretrain(pretraining, ridge, seed=seed, index=index, **options)
    gamma = np.asarray(solution.gamma)
    require_float64(gamma=gamma)
    prompt = pretraining.prompt
    return Replicate(
        icl=exact.risk_of(gamma, prompt if test is None else test),
        idg=exact.risk_of(gamma, prompt, tasks),
        trace=float(np.trace(gamma[:, :-1])) / prompt.d,
        square=float(np.square(gamma).sum()) / prompt.d,
        residual=solution.residual,
        steps=solution.steps,
        condition=solution.condition,
        method=solution.method,
        gamma=gamma,
    )


def risk(
    pretraining: Pretraining,
    ridge: float = 0.0,
    *,
    seed: int = 0,
    replicates: int | None = None,
    target_stderr: float | None = None,
    test: Prompt | None = None,
    on_replicate: Callable[[int, Estimate], None] | None = None,
    **options: Any,
) -> Simulation:
    """Errors of the reduced linear attention at finite size, with standard errors.

    Each replicate draws its tasks and sequences anew, solves for Gamma* and takes the exact risk of
    that Gamma*, so the only noise is that of pretraining.

    Args:
        pretraining: prompt law, sequences and tasks.
        ridge: strength >= 0 of the ridge problem; 0 is the minimum-norm solution.
        seed: in [0, 2^63). Replicate i depends on (seed, i) alone.
        replicates: how many, default 20.
        target_stderr: instead, go on until the standard error of icl is this fraction of it
            (at least 8 replicates).
        test: another prompt at test time, same d.
        on_replicate: called after each with (replicates done, icl so far).
        **options: devices, tolerance, max_steps, method: see `pretrain`.

    Returns:
        A `Simulation`; its fields icl and idg are `Estimate(mean, stderr)`. With one replicate the
        standard error is None.

    Raises:
        InputError: for settings out of range.
        ConvergenceError: when a solve does not reach its tolerance.
    """
    if replicates is not None and target_stderr is not None:
        raise InputError("give replicates or target_stderr, not both")
    if test is not None and test.d != pretraining.prompt.d:
        raise InputError(f"the test prompt has d = {test.d}; pretraining has d = {pretraining.prompt.d}")
    wanted = whole(20 if replicates is None else replicates, "replicates")
    target = None if target_stderr is None else number(target_stderr, "target_stderr", positive=True)
    done: list[Replicate] = []
    while True:
        done.append(replicate(pretraining, ridge, seed=seed, index=len(done), test=test, **options))
        icl = estimate([r.icl for r in done])
        if on_replicate is not None:
            on_replicate(len(done), icl)
        if (
            len(done) >= wanted
            if target is None
            else icl.stderr is not None and len(done) >= 8 and icl.stderr <= target * icl.mean
        ):
            break
    return Simulation(
        icl=icl,
        idg=estimate([r.idg for r in done]),
        replicates=tuple(done),
        residual=max(r.residual for r in done),
        theory=theory.risk(pretraining, ridge=ridge, test=test),
        warnings=_cautions(done),
    )


@in_float64
def data_error(gamma: np.ndarray, prompt: Prompt, *, sequences: int, seed: int, index: int = 0) -> float:
    """Mean squared error of Gamma on drawn sequences of fresh tasks: what `exact.risk_of` is the mean of.

    Args:
        gamma: shape (d, d+1), float64.
        prompt: the test prompt.
        sequences: how many are drawn.
        seed, index: the draw depends on this pair alone, and differs from that of `pretrain`.
    """
    require_float64(gamma=gamma)
    mesh = Mesh(np.array(jax.devices()[:1]), (AXIS,))
    key = jax.random.fold_in(key_of(seed, index), 2)  # `pretrain` splits this key into its children 0 and 1
    data = sample_sequences(key, None, law_of(prompt), sequences=sequences, d=prompt.d, mesh=mesh)
    errors = data.target - jnp.einsum("bmi,ij,bmj->bm", data.query, jnp.asarray(gamma), data.summary)
    return float(jnp.square(errors).sum()) / sequences


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and standard error of independent values; a single one has no standard error."""
    spread = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else None
    return Estimate(float(np.mean(values)), spread)


def _cautions(done: Sequence[Replicate]) -> tuple[Caution, ...]:
    worst = max((r.condition for r in done if r.condition is not None), default=0.0)
    if worst < ILL_CONDITIONED:
        return ()
    message = (
        f"the system for Gamma is ill-conditioned (condition number {worst:.1e}), as near n = d(d+1) with a small "
        "ridge: replicates spread widely, and the mean may need many of them"
    )
    return (Caution("ill_conditioned", message, {"condition": worst}),)
