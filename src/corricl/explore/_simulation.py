"""The reduced model at finite size, replicate by replicate."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import InputError
from ..prompt import Estimate
from ._state import State

LARGEST = 10**9
"""Most multiply-adds n d^2 in a replicate that a page takes on, so that it can be cancelled within seconds."""


def check(state: State) -> None:
    """Refuse what is too large for a page; the command line has no such bound."""
    work = state.sequences * state.d**2
    if work > LARGEST:
        raise InputError(
            f"sequences times d² is {work:.2g}, beyond the {LARGEST:.0e} that this page simulates: "
            "use the command `corricl simulate` below"
        )


def running_means(state: State, replicates: int, seed: int = 0) -> Iterator[tuple[int, Estimate]]:
    """(replicates done, ICL error so far) after each replicate; the same numbers as `simulate.risk`."""
    from .. import simulate

    found: list[float] = []
    for index in range(replicates):
        found.append(simulate.replicate(state.setting.pretraining, state.ridge, seed=seed, index=index).icl)
        yield index + 1, simulate.estimate(found)
