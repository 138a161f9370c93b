"""Figures: each a spec and a plot, made again from the spec alone."""

from ._base import Figure as Figure
from ._base import Made as Made
from ._base import make as make
from ._base import read_spec as read_spec
from ._registry import FIGURES as FIGURES
from ._registry import find as find
