"""Every method on one prompt, and what its correlations take and give."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..prompt import Pretraining, Prompt, Risk
from ._mixture import SMALLEST
from ._risk import PROMPT_METHODS, _without_query, risk


@dataclass(frozen=True)
class Comparison:
    """One method's risk of a prompt and of the prompts that lack part of its correlations.

    With R(context, query) the risk, the two costs below add up:
    both = R(K, k) - R(I, 0) = bulk_cost - query_gain. A difference of two infinite risks, or with
    one of them, is None.

    Attributes:
        method: which theory.
        given: R(K, k), the prompt as it is.
        independent: R(K, 0), the same context with an independent query.
        iid: R(I, 0), iid tokens.
        query_alone: R(I, k), iid context tokens with the query's correlations. None where no such prompt
            exists: a query can have correlations k with iid tokens only if |k|^2 <= 1. The continuing query
            of exp:XI passes that from XI = 2/log 2 = 2.9 on.
    """

    method: str
    given: Risk
    independent: Risk
    iid: Risk
    query_alone: Risk | None

    @property
    def bulk_cost(self) -> float | None:
        """Bulk correlations: R(K, 0) - R(I, 0), positive where correlated tokens are worth less."""
        return _difference(self.independent, self.iid)

    @property
    def query_gain(self) -> float | None:
        """The query's correlation with that context: R(K, 0) - R(K, k), positive where it helps."""
        return _difference(self.independent, self.given)

    @property
    def both(self) -> float | None:
        """All correlations: R(K, k) - R(I, 0), negative where the correlated prompt is worth more than iid tokens."""
        return _difference(self.given, self.iid)

    @property
    def query_alone_gain(self) -> float | None:
        """The query's correlation without the bulk's: R(I, 0) - R(I, k), positive where it helps."""
        return None if self.query_alone is None else _difference(self.iid, self.query_alone)


def compare(subject: Pretraining | Prompt, ridge: float = 0.0) -> list[Comparison]:
    """The risk of a prompt by every method, decomposed into what bulk and query correlations do.

    Args:
        subject: a prompt; a `Pretraining` adds the methods weak and mixture, the reduced model pretrained
            on sequences of each law in turn (mixture from d = 3 on).
        ridge: strength >= 0 of that pretraining; 0 is the minimum-norm solution. The others ignore it.

    Returns:
        One `Comparison` a method: weak, mixture, then `PROMPT_METHODS`.

    Raises:
        InputError: settings out of range.
        ConvergenceError: the fixed point of method mixture was not reached.

    Validity: that of each method; each `Risk` carries its own `valid` and `warnings`. About a second at
    length 128, nearly all of it softmax.

    See docs/softmax-story.md.

    >>> from corricl import Prompt
    >>> found = {c.method: c for c in compare(Prompt(32, 128, "exp:10", "continues", 0.01))}
    >>> round(found["linear"].both, 2), round(found["softmax"].both, 2)  # linear attention loses, softmax wins
    (0.27, -0.21)
    """
    pretrained = isinstance(subject, Pretraining)
    prompt = subject.prompt if pretrained else subject
    iid = Prompt(prompt.d, prompt.length, noise=prompt.noise)
    laws = [prompt, _without_query(prompt), iid, _query_alone(prompt)]
    methods = [*_pretrained_methods(prompt.d), *PROMPT_METHODS] if pretrained else PROMPT_METHODS

    def asked(method: str) -> Comparison:
        def of(law: Prompt) -> Risk:
            return risk(_on(subject, law), ridge, method=method)

        return Comparison(method, *_each_once(of, laws))  # type: ignore[arg-type]

    return [asked(method) for method in methods]


def _pretrained_methods(d: int) -> tuple[str, ...]:
    return ("weak", "mixture") if d >= SMALLEST else ("weak",)


def _on(subject: Pretraining | Prompt, law: Prompt) -> Pretraining | Prompt:
    return Pretraining(law, subject.sequences, subject.tasks) if isinstance(subject, Pretraining) else law


def _query_alone(prompt: Prompt) -> Prompt | None:
    """Iid tokens with the query vector of a prompt, or None where these correlations are impossible."""
    k = prompt.query_vector
    if k @ k > 1 + 1e-12:  # a query that copies a token has exactly 1
        return None
    return Prompt(prompt.d, prompt.length, query=k if np.any(k) else None, noise=prompt.noise)


def _each_once(of: Callable[[Prompt], Risk], laws: list[Prompt | None]) -> list[Risk | None]:
    """Risks of the laws, equal ones computed once."""
    known: list[tuple[Prompt, Risk]] = []
    out: list[Risk | None] = []
    for law in laws:
        found = next((value for other, value in known if other == law), None)
        if found is None and law is not None:
            found = of(law)
            known.append((law, found))
        out.append(found)
    return out


def _difference(first: Risk, second: Risk) -> float | None:
    finite = math.isfinite(first.icl) and math.isfinite(second.icl)
    return first.icl - second.icl if finite else None
