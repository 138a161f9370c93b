"""Closed forms: what the errors must be. NumPy only; nothing here imports JAX."""

from . import _exact as exact
from . import _linear as linear
from ._risk import DEFAULT as DEFAULT
from ._risk import METHODS as METHODS
from ._risk import PROMPT_METHODS as PROMPT_METHODS
from ._risk import risk as risk
from ._weak import length_for as length_for
from ._weak import limit as limit
from ._weak import sequences_for as sequences_for
from ._weak import weak as weak
