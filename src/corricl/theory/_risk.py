"""One door to every theory."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import InputError
from ..prompt import Pretraining, Prompt, Risk
from ._bayes import bayes
from ._positional import linear_population, positional
from ._softmax import softmax
from ._weak import weak

_OF_A_PROMPT: dict[str, Callable[[Prompt], Risk]] = {
    "linear": linear_population,
    "positional": positional,
    "softmax": softmax,
    "bayes": bayes,
}

PROMPT_METHODS = tuple(_OF_A_PROMPT)
"""Methods that need only a prompt: the risk of the best member of a class of predictors."""

METHODS = ("weak", *PROMPT_METHODS)
DEFAULT = "weak"


def risk(subject: Pretraining | Prompt, ridge: float = 0.0, test: Prompt | None = None, method: str = DEFAULT) -> Risk:
    """Predicted errors by any method.

    Args:
        subject: prompt law, sequences and tasks; a `Prompt` alone is enough for `PROMPT_METHODS`, which
            ignore the rest: they are optima over all predictors of their class, with nothing to pretrain.
        ridge: strength >= 0; 0 is the minimum-norm solution. `PROMPT_METHODS` ignore it.
        test: another prompt at test time, of the same d; of `PROMPT_METHODS` only softmax takes one.
        method: one of `METHODS`.

    Raises:
        InputError: an unknown method, or settings out of its range.

    >>> from corricl import Pretraining, Prompt
    >>> prompt = Prompt(d=32, length=128, kernel="exp:2", query="continues", noise=0.01)
    >>> round(risk(Pretraining(prompt, sequences=4096, tasks=320), method="weak").icl, 6)
    0.440231
    """
    if method not in METHODS:
        raise InputError(f"unknown method '{method}'; allowed: {', '.join(METHODS)}")
    if method in _OF_A_PROMPT:
        prompt = subject.prompt if isinstance(subject, Pretraining) else subject
        if test is not None and method != "softmax":
            raise InputError(f"method '{method}' is the optimum on one prompt: it takes no other test prompt")
        return softmax(prompt, test) if method == "softmax" else _OF_A_PROMPT[method](prompt)
    if not isinstance(subject, Pretraining):
        raise InputError(f"method '{method}' needs a Pretraining, not a {type(subject).__name__}")
    return weak(subject, ridge, test)
