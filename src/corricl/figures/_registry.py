"""Every figure by its name."""

from __future__ import annotations

from ..errors import InputError
from ._architecture_map import ArchitectureMap
from ._architectures import Architectures
from ._base import Figure
from ._breakdown import Breakdown
from ._bulk_and_query import BulkAndQuery
from ._concentration import Concentration
from ._double_descent import DoubleDescent
from ._effective_length import EffectiveLength
from ._finite_size import FiniteSize
from ._mismatch import Mismatch
from ._query_gain import QueryGain
from ._softmax_length import SoftmaxLength
from ._spectrum import Spectrum
from ._task_diversity import TaskDiversity

_ALL = (
    EffectiveLength,
    QueryGain,
    Architectures,
    BulkAndQuery,
    Spectrum,
    Concentration,
    Breakdown,
    FiniteSize,
    DoubleDescent,
    TaskDiversity,
    Mismatch,
    ArchitectureMap,
    SoftmaxLength,
)

FIGURES: dict[str, Figure] = {figure.name: figure() for figure in _ALL}


def find(name: str) -> Figure:
    """The figure of that name.

    Raises:
        InputError: an unknown name; the message lists the known ones.
    """
    if name not in FIGURES:
        raise InputError(f"unknown figure '{name}'; known figures: {', '.join(FIGURES)}")
    return FIGURES[name]
