"""One door to every theory."""

from __future__ import annotations

from ..errors import InputError
from ..prompt import Pretraining, Prompt, Risk
from ._weak import weak

METHODS = ("weak",)


def risk(pretraining: Pretraining, ridge: float = 0.0, test: Prompt | None = None, method: str = "weak") -> Risk:
    """Predicted errors of a pretrained model.

    Args:
        pretraining: prompt law, sequences and tasks.
        ridge: strength >= 0; 0 is the minimum-norm solution.
        test: another prompt at test time, of the same d.
        method: one of `METHODS`.

    Raises:
        InputError: an unknown method, or settings out of its range.

    >>> from corricl import Pretraining, Prompt
    >>> prompt = Prompt(d=32, length=128, kernel="exp:2", query="continues", noise=0.01)
    >>> round(risk(Pretraining(prompt, sequences=4096, tasks=320)).icl, 6)
    0.440231
    """
    if method == "weak":
        return weak(pretraining, ridge, test)
    raise InputError(f"unknown method '{method}'; allowed: {', '.join(METHODS)}")
