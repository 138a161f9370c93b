"""Which examples of a pool make the best prompt for a query? Derivation: docs/theory/choose.md."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..errors import InputError
from ..prompt import Caution, Estimate, Prompt, Risk, whole
from ..theory import PROMPT_METHODS
from ..theory import risk as predicted
from ._choose_models import Candidates, Model, Ridge, model_of
from ._choose_search import error_of, fill, nearest, random_prompts, search
from ._choose_space import Space, prepare, table

FEW = 3
"""Candidates a channel below which a covariance is called poorly known."""


@dataclass(frozen=True)
class ChosenPrompt:
    """One prompt and its errors.

    Attributes:
        examples: rows of the pool in prompt order, the query following the last, shape (m,).
        icl: error of the model on it, averaged over tasks and label noise.
        floor: least error of any model on it.
    """

    examples: np.ndarray
    icl: float
    floor: float


@dataclass(frozen=True)
class Choice:
    """The chosen prompt beside the usual ones.

    Attributes:
        method: the model that reads the prompt.
        law: what the model was pretrained on; m = law.length examples are chosen.
        candidates: size of the pool.
        chosen: the best prompt found.
        nearest: the m candidates of largest cosine with the query, the nearest last.
        random: error of the model on m random candidates, mean and standard error over draws.
        random_floor: least error of any model on them.
        greedy: error after the greedy start, before any exchange.
        empty: error without examples, noise + |x_t|^2.
        expected: error of the model over prompts of its own law.
        space: how embeddings became tokens.
        warnings: what makes the numbers doubtful.
    """

    method: str
    law: Prompt
    candidates: int
    chosen: ChosenPrompt
    nearest: ChosenPrompt
    random: Estimate
    random_floor: Estimate
    greedy: float
    empty: float
    expected: float
    space: Space
    warnings: tuple[Caution, ...] = ()


@dataclass(frozen=True)
class Selector:
    """A pool and a model, ready to choose a prompt for any query; made by `selector`.

    Attributes:
        method: the model that reads the prompts.
        law: the law of prompts on which it is optimal; m = law.length.
        space: how embeddings become tokens.
        points: the pool as tokens, shape (n, d).
    """

    method: str
    law: Prompt
    space: Space
    points: np.ndarray = field(repr=False)
    _model: Model = field(repr=False)
    _optimum: Risk = field(repr=False)

    def examples(self, query: np.ndarray) -> np.ndarray:
        """Rows of the pool that make the best prompt found for a query of shape (channels,), in prompt order."""
        tokens = self._tokens(query)
        near, greedy = nearest(tokens, self.law.length), fill(self._model, tokens)
        return self._better(tokens, greedy, near)

    def _better(self, tokens: Candidates, *starts: np.ndarray) -> np.ndarray:
        found = [search(self._model, tokens, start) for start in starts]
        return min(found, key=lambda prompt: error_of(self._model, tokens, prompt))

    def _tokens(self, query: np.ndarray) -> Candidates:
        query, channels = table(query, "the query"), len(self.space.mean)
        if query.shape not in ((channels,), (1, channels)):
            raise InputError(f"the query must be one embedding of {channels} channels; its shape is {query.shape}")
        return Candidates.of(self.points, self.space.tokens(query.reshape(-1)))

    def choose(self, query: np.ndarray, *, draws: int = 200, seed: int = 0) -> Choice:
        """The best prompt found for a query, beside the nearest candidates and random ones.

        Args:
            query: its embedding, shape (channels,).
            draws: random prompts, at least 2.
            seed: of the random prompts.
        """
        tokens, m, model = self._tokens(query), self.law.length, self._model
        best = Ridge(np.ones(m), self.law.noise)
        if whole(draws, "draws") < 2:
            raise InputError("draws must be at least 2, or there is no standard error")

        def described(prompt: np.ndarray) -> ChosenPrompt:
            return ChosenPrompt(prompt, error_of(model, tokens, prompt), error_of(best, tokens, prompt))

        near, greedy = nearest(tokens, m), fill(model, tokens)
        drawn = random_prompts(len(self.points), m, draws, seed)
        return Choice(
            method=self.method,
            law=self.law,
            candidates=len(self.points),
            chosen=described(self._better(tokens, greedy, near)),
            nearest=described(near),
            random=_mean([error_of(model, tokens, prompt) for prompt in drawn]),
            random_floor=_mean([error_of(best, tokens, prompt) for prompt in drawn]),
            greedy=error_of(model, tokens, greedy),
            empty=self.law.noise + float(tokens.query @ tokens.query),
            expected=self._optimum.icl,
            space=self.space,
            warnings=(*_cautions(tokens, self.space), *self._optimum.warnings),
        )


def selector(
    pool: np.ndarray,
    m: int,
    *,
    method: str = "linear",
    noise: float = 0.01,
    kernel: str = "iid",
    law_query: str = "independent",
    preparation: str = "whiten",
) -> Selector:
    """A `Selector` for many queries on one pool; arguments as in `choose`."""
    pool, m = table(pool, "the pool"), whole(m, "m")
    if method not in PROMPT_METHODS:
        raise InputError(f"unknown method '{method}'; allowed: {', '.join(PROMPT_METHODS)}")
    if pool.ndim != 2:
        raise InputError(f"the pool must have shape (candidates, channels); its shape is {pool.shape}")
    if not 2 <= len(pool) >= m:
        raise InputError(f"cannot choose {m} examples from a pool of {len(pool)}; it needs at least {max(2, m)}")
    space = prepare(pool, preparation)
    law = Prompt(space.d, m, kernel, law_query, noise)
    optimum = predicted(law, method=method)
    return Selector(method, law, space, space.tokens(pool), model_of(optimum, law), optimum)


def choose(
    pool: np.ndarray,
    query: np.ndarray,
    m: int,
    *,
    method: str = "linear",
    noise: float = 0.01,
    kernel: str = "iid",
    law_query: str = "independent",
    preparation: str = "whiten",
    draws: int = 200,
    seed: int = 0,
) -> Choice:
    """Pick m examples of a pool so that a model's error on the query is least, and put them in order.

    The tokens are known, so the error averaged over tasks w ~ N(0, I) and label noise is exact:

        risk = noise + |x_t - sum_a g_a x_a|^2 + noise sum_a g_a^2

    with the coefficients g that the model gives to the labels. Slots are filled one by one with the best candidate,
    then examples change places, one at a time, with candidates outside and (where positions have weights) with each
    other, until nothing helps; the same from the nearest neighbours; the better of both is returned, so that it is
    never worse than the nearest neighbours.

    Args:
        pool: embeddings of the candidates, shape (n, channels).
        query: embedding of the query, shape (channels,).
        m: how many to choose, 1 <= m <= n.
        method: linear, positional, softmax, or bayes, the best that any model can do.
        noise: label-noise variance, in units in which a label's signal has variance 1.
        kernel, law_query: the law of the prompts on which the model is optimal, with m tokens; position
            weights differ only where it is correlated, as with "exp:10" and "continues".
        preparation: whiten, centre or none, fitted on the pool.
        draws: random prompts of the baseline, at least 2.
        seed: of the random prompts.

    Raises:
        InputError: shapes that do not fit, too few candidates, values that are not finite.

    Validity: exact for tasks w ~ N(0, I) in the tokens' space; labels of real data are not such. The search is a
    local one.

    See docs/theory/choose.md and docs/choose.md.

    >>> rng = np.random.default_rng(0)
    >>> found = choose(rng.normal(size=(300, 16)), rng.normal(size=16), 8, noise=0.1, preparation="centre")
    >>> found.chosen.icl < 0.3 < found.nearest.icl, found.random.mean > 0.7
    (True, True)
    """
    ready = selector(pool, m, method=method, noise=noise, kernel=kernel, law_query=law_query, preparation=preparation)
    return ready.choose(query, draws=draws, seed=seed)


def _mean(errors: list[float]) -> Estimate:
    return Estimate(float(np.mean(errors)), float(np.std(errors, ddof=1) / np.sqrt(len(errors))))


def _cautions(pool: Candidates, space: Space) -> tuple[Caution, ...]:
    out = []
    typical, own = float(pool.norms.mean()), float(pool.query @ pool.query)
    if not 0.5 <= typical <= 2:
        message = f"the theory's unit is a mean squared norm of 1; that of the pool is {typical:.3g}"
        out.append(Caution("scale", message, {"mean_square": typical}))
    if own > pool.norms.max():
        message = (
            f"the query lies farther out than every candidate (squared norm {own:.3g}): no prompt tells much of it"
        )
        out.append(Caution("outlying_query", message, {"square": own, "largest": float(pool.norms.max())}))
    if space.shrinkage is not None and len(pool.points) < FEW * space.d:
        message = (
            f"{len(pool.points)} candidates are few to estimate a covariance of {space.d} channels "
            f"(shrinkage {space.shrinkage:.2f}): embeddings of fewer channels, or preparation 'centre', are safer"
        )
        out.append(Caution("few_candidates", message, {"candidates": len(pool.points), "d": space.d}))
    return tuple(out)
