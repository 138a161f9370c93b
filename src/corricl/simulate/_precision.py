"""Float64 and one stream of random numbers, whatever the caller has configured."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import InputError

P = ParamSpec("P")
T = TypeVar("T")


def in_float64(function: Callable[P, T]) -> Callable[P, T]:
    """Run a function with JAX's 64-bit types on, leaving the caller's own settings untouched.

    The random stream is fixed too, because JAX lets a program choose how its keys become numbers.
    """

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        with jax.enable_x64(True), jax.threefry_partitionable(True), jax.transfer_guard("allow"):
            return function(*args, **kwargs)

    return wrapped


def require_float64(**arrays: Any) -> None:
    """Refuse arrays of another type at the border of the simulation."""
    for name, array in arrays.items():
        if array.dtype != "float64":
            raise InputError(f"{name} must be float64, not {array.dtype}: the simulation refuses lower precision")


def key_of(seed: int, index: int) -> jax.Array:
    """The key of replicate `index`: a function of (seed, index) alone."""
    seed = check_seed(seed)
    data = np.array([seed >> 32, seed & 0xFFFFFFFF], dtype=np.uint32)  # as jax.random.key, without its global offset
    return jax.random.fold_in(jax.random.wrap_key_data(jnp.asarray(data), impl="threefry2x32"), index)


def check_seed(seed: int) -> int:
    """The seed, refused outside [0, 2^63)."""
    if not 0 <= seed < 2**63:
        raise InputError(f"seed must lie in [0, 2^63); got {seed}")
    return int(seed)
