"""The page on which every number of the theory can be turned and looked at (extra `explore`)."""

from ._serve import serve as serve
from ._state import State as State
