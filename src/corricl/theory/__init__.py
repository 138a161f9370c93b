"""Closed forms: what the errors must be. NumPy only; nothing here imports JAX."""

from . import exact as exact
from . import linear as linear
from ._bayes import bayes as bayes
from ._bayes import context_ridge as context_ridge
from ._compare import Comparison as Comparison
from ._compare import compare as compare
from ._mixture import mixture as mixture
from ._positional import linear_population as linear_population
from ._positional import positional as positional
from ._risk import DEFAULT as DEFAULT
from ._risk import METHODS as METHODS
from ._risk import PROMPT_METHODS as PROMPT_METHODS
from ._risk import of_setting as of_setting
from ._risk import risk as risk
from ._softmax import softmax as softmax
from ._softmax_limit import equivalent_length as equivalent_length
from ._softmax_limit import softmax_limit as softmax_limit
from ._weak import length_for as length_for
from ._weak import limit as limit
from ._weak import sequences_for as sequences_for
from ._weak import weak as weak
