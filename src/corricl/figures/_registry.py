"""Every figure by its name."""

from __future__ import annotations

from ..errors import InputError
from ._base import Figure
from ._bulk_and_query import BulkAndQuery
from ._concentration import Concentration
from ._double_descent import DoubleDescent
from ._effective_length import EffectiveLength
from ._query_gain import QueryGain
from ._spectrum import Spectrum
from ._task_diversity import TaskDiversity

_ALL = (EffectiveLength, QueryGain, BulkAndQuery, Spectrum, Concentration, DoubleDescent, TaskDiversity)

FIGURES: dict[str, Figure] = {figure.name: figure() for figure in _ALL}


def find(name: str) -> Figure:
    """The figure of that name.

    Raises:
        InputError: an unknown name; the message lists the known ones.
    """
    if name not in FIGURES:
        raise InputError(f"unknown figure '{name}'; known figures: {', '.join(FIGURES)}")
    return FIGURES[name]
