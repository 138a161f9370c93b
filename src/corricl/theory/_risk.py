"""One door to every theory."""

from __future__ import annotations

from ..errors import InputError
from ..prompt import Pretraining, Prompt, Risk
from ._weak import weak

PROMPT_METHODS: tuple[str, ...] = ()
"""Methods that need only a prompt: the risk of the best member of a class of predictors."""

METHODS = ("weak", *PROMPT_METHODS)
DEFAULT = "weak"


def risk(subject: Pretraining | Prompt, ridge: float = 0.0, test: Prompt | None = None, method: str = DEFAULT) -> Risk:
    """Predicted errors of a pretrained model.

    Args:
        subject: prompt law, sequences and tasks; a `Prompt` alone is enough for `PROMPT_METHODS`.
        ridge: strength >= 0; 0 is the minimum-norm solution.
        test: another prompt at test time, of the same d.
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
    if not isinstance(subject, Pretraining):
        raise InputError(f"method '{method}' needs a Pretraining, not a {type(subject).__name__}")
    return weak(subject, ridge, test)
