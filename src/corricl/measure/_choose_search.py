"""The search for a good prompt: greedy filling, then exchanges. Why: docs/theory/choose.md."""

from __future__ import annotations

import numpy as np

from ._choose_models import Candidates, Model, Weighted, prompt_risk

PASSES = 50
"""Most passes of the local search; it ends by itself after a few."""
BETTER = 1e-12
"""A change counts if it lowers the error by more than this share of the error without examples."""


def error_of(model: Model, pool: Candidates, prompt: np.ndarray) -> float:
    """Error of a model on a full prompt of pool rows."""
    x = pool.points[prompt]
    return prompt_risk(model.coefficients(x, pool.query), x, pool.query, model.noise)


def nearest(pool: Candidates, m: int) -> np.ndarray:
    """The m candidates of largest cosine with the query, the nearest last."""
    length = np.sqrt(pool.norms)
    cosine = pool.scores / np.where(length > 0, length, 1.0)
    return np.argsort(cosine, kind="stable")[-m:]


def random_prompts(candidates: int, m: int, draws: int, seed: int) -> list[np.ndarray]:
    """Prompts of m distinct candidates in random order."""
    generator = np.random.default_rng(seed)
    return [generator.choice(candidates, m, replace=False) for _ in range(draws)]


def fill(model: Model, pool: Candidates) -> np.ndarray:
    """Greedy: the slots in order of their weights, each with the candidate that then gives the least error."""
    prompt = np.full(len(model.weights), -1)
    for slot in np.argsort(-np.abs(model.weights), kind="stable"):
        prompt[slot] = _best_for(model, pool, prompt, slot)[0]
    return prompt


def search(model: Model, pool: Candidates, start: np.ndarray) -> np.ndarray:
    """Exchange examples with candidates outside, and with each other where slots differ, until nothing helps."""
    prompt, error, least = start.copy(), error_of(model, pool, start), _least_gain(model, pool)
    for _ in range(PASSES):
        before = error
        for slot in range(len(prompt)):
            candidate, lower = _best_for(model, pool, prompt, slot)
            if lower < error - least:
                prompt[slot], error = candidate, lower
        if isinstance(model, Weighted) and np.ptp(model.weights) > 0:
            prompt = _reorder(model, pool, prompt)
            error = error_of(model, pool, prompt)
        if not error < before - least:
            break
    return prompt


def _best_for(model: Model, pool: Candidates, prompt: np.ndarray, slot: int) -> tuple[int, float]:
    """The candidate, outside the rest of the prompt, with which the slot gives the least error; and that error."""
    errors = model.trial(pool, prompt, slot)
    errors[prompt[(prompt >= 0) & (np.arange(len(prompt)) != slot)]] = np.inf
    candidate = int(np.argmin(errors))
    return candidate, float(errors[candidate])


def _reorder(model: Weighted, pool: Candidates, prompt: np.ndarray) -> np.ndarray:
    """Let two examples of the prompt change places as long as that lowers the error."""
    prompt = prompt.copy()
    while True:
        change = model.exchange(pool, prompt)
        i, j = np.unravel_index(np.argmin(change), change.shape)
        if not change[i, j] < -_least_gain(model, pool):
            return prompt
        prompt[[i, j]] = prompt[[j, i]]


def _least_gain(model: Model, pool: Candidates) -> float:
    return BETTER * (model.noise + float(pool.query @ pool.query))
