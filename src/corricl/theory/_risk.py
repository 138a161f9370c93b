"""One door to every theory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from ..errors import ConvergenceError, InputError
from ..kernels import Query, Tabulated
from ..prompt import Caution, Pretraining, Prompt, Risk
from ..setting import Setting
from ._bayes import bayes
from ._mixture import SMALLEST, choose, mixture
from ._positional import linear_population, positional
from ._softmax import softmax
from ._weak import limit, weak
from .linear import effective_length

_OF_A_PROMPT: dict[str, Callable[[Prompt], Risk]] = {
    "linear": linear_population,
    "positional": positional,
    "softmax": softmax,
    "bayes": bayes,
}

PROMPT_METHODS = tuple(_OF_A_PROMPT)
"""Methods that need only a prompt: the risk of the best member of a class of predictors."""

METHODS = ("auto", "weak", "mixture", *PROMPT_METHODS)
DEFAULT = "auto"

COMPARED = 2048
"""Longest context at which `auto` compares: the mixture theory diagonalises the kernel."""


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
    theory = {"auto": auto, "weak": weak, "mixture": full_mixture}[method]
    return theory(subject, ridge, test)


def of_setting(setting: Setting, method: str = DEFAULT) -> Risk:
    """`risk` of a setting; where it holds ratios alone, without d, the weak `limit`.

    Raises:
        InputError: ratios alone with another method or with a test prompt of their own.
    """
    if not setting.is_limit:
        subject = setting.prompt if method in PROMPT_METHODS else setting.pretraining
        return risk(subject, setting.ridge, setting.test, method)
    if method not in ("weak", "auto"):
        raise InputError(f"method '{method}' needs sizes: give d")
    if setting.test is not None:
        raise InputError("a test prompt of its own needs sizes: give d")
    ratios = setting.alpha or 0.0, setting.tau or 0.0, math.inf if setting.kappa is None else setting.kappa
    law = {"kernel": setting.kernel, "query": setting.query or "independent", "noise": setting.noise}
    return limit(*ratios, **law, ridge=setting.ridge)


def full_mixture(pretraining: Pretraining, ridge: float = 0.0, test: Prompt | None = None) -> Risk:
    """`mixture` with the quantities that follow from it: effective length and query gain.

    The gain is the error with an independent query, in pretraining and test, minus the error.
    """
    found = mixture(pretraining, ridge, test)
    prompt = pretraining.prompt
    tested = prompt if test is None else test
    length = float(effective_length(tested.length, tested.noise, tested.statistics.k2))
    gain = 0.0 if math.isfinite(found.icl) else math.nan
    if not (prompt.query.is_independent and tested.query.is_independent):
        plain = Pretraining(_without_query(prompt), pretraining.sequences, pretraining.tasks)
        gain = mixture(plain, ridge, None if test is None else _without_query(test)).icl - found.icl
    return replace(found, effective_length=length, query_gain=gain if math.isfinite(gain) else None)


def _uncompared(limit: Risk, reason: str) -> Risk:
    caution = Caution("not_compared", f"the weak limit could not be compared with the mixture theory: {reason}", {})
    return replace(limit, warnings=(*limit.warnings, caution), details={"reason": reason})


def _without_query(prompt: Prompt) -> Prompt:
    context = prompt.kernel
    if context.size == prompt.length + 1:  # a joint matrix: keep its context
        context = Tabulated(context.matrix(prompt.length))
    return Prompt(prompt.d, prompt.length, context, Query(0.0), prompt.noise)


def auto(pretraining: Pretraining, ridge: float = 0.0, test: Prompt | None = None) -> Risk:
    """The weak limit where the mixture theory confirms it, else the mixture theory; `details["reason"]` says why.

    The comparison takes the place of the rough finite-size warnings of `weak`. Where it cannot be made
    (d < 3, contexts beyond `COMPARED` tokens, an unconverged fixed point) the weak limit keeps them.
    """
    limit = weak(pretraining, ridge, test)
    if math.isinf(limit.icl):
        return replace(limit, details={"reason": "the weak limit diverges here; method mixture has its finite-d value"})
    longest = max(p.length for p in (pretraining.prompt, test or pretraining.prompt))
    if pretraining.prompt.d < SMALLEST or longest > COMPARED:
        reason = f"not compared: the mixture theory needs d >= {SMALLEST} and is slow beyond {COMPARED} tokens"
        return _uncompared(limit, reason)
    try:
        found = full_mixture(pretraining, ridge, test)
    except ConvergenceError as error:
        return _uncompared(limit, f"not compared: {error}")
    method, reason = choose(limit, found)
    if method == "weak":
        found = replace(limit, valid=True, warnings=())
    return replace(found, details={**found.details, "reason": reason})
