"""Every figure by its name."""

from __future__ import annotations

from ..errors import InputError
from ._base import Figure
from ._effective_length import EffectiveLength

FIGURES: dict[str, Figure] = {figure.name: figure for figure in (EffectiveLength(),)}


def find(name: str) -> Figure:
    """The figure of that name.

    Raises:
        InputError: an unknown name; the message lists the known ones.
    """
    if name not in FIGURES:
        raise InputError(f"unknown figure '{name}'; known figures: {', '.join(FIGURES)}")
    return FIGURES[name]
