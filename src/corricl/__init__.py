"""corricl: in-context learning when the prompt's tokens are correlated."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from .errors import ConvergenceError as ConvergenceError
from .errors import CorriclError as CorriclError
from .errors import InputError as InputError

if TYPE_CHECKING:
    __version__: str
    from . import attention as attention
    from . import explore as explore
    from . import figures as figures
    from . import kernels as kernels
    from . import measure as measure
    from . import simulate as simulate
    from . import sweeps as sweeps
    from . import theory as theory
    from .prompt import Pretraining as Pretraining
    from .prompt import Prompt as Prompt
    from .prompt import Risk as Risk

__all__ = [
    "ConvergenceError",
    "CorriclError",
    "InputError",
    "Pretraining",
    "Prompt",
    "Risk",
    "attention",
    "explore",
    "figures",
    "kernels",
    "measure",
    "simulate",
    "sweeps",
    "theory",
]

_MODULES = ("attention", "explore", "figures", "kernels", "measure", "simulate", "sweeps", "theory")
_NOUNS = ("Pretraining", "Prompt", "Risk")


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return _import_module(f"{__name__}.{name}")
    if name in _NOUNS:
        return getattr(_import_module(f"{__name__}.prompt"), name)
    if name == "__version__":
        return _import_module("importlib.metadata").version("corricl")  # slow to load, rarely asked for
    raise AttributeError(f"module 'corricl' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES, *_NOUNS])
