"""How near does the search for a prompt come to the best one? Small pools, every prompt tried.

The table is results/choice_search.csv (two minutes). Delete it to start anew.
"""

from __future__ import annotations

import itertools

import numpy as np
from _table import Row, complete

from corricl import Prompt, theory
from corricl.measure._choose_models import Candidates, model_of
from corricl.measure._choose_search import error_of, fill, nearest, search

D, M, NOISE = 5, 4, 0.1
POOLS = {"linear": 50, "softmax": 50, "bayes": 50, "positional": 25}
CANDIDATES = {"linear": 16, "softmax": 16, "bayes": 16, "positional": 9}


def compute(key: Row) -> Row:
    method, candidates = key["model"], int(key["candidates"])
    ordered = method == "positional"
    law = Prompt(D, M, *(("exp:3", "continues") if ordered else ()), noise=NOISE)
    model = model_of(theory.risk(law, method=method), law)
    ratios = []
    for seed in range(int(key["pools"])):
        rng = np.random.default_rng(seed)
        pool = Candidates.of(rng.normal(size=(candidates, D)) / D**0.5, rng.normal(size=D) / D**0.5)
        every = (itertools.permutations if ordered else itertools.combinations)(range(candidates), M)
        best = min(error_of(model, pool, np.array(prompt)) for prompt in every)
        greedy = fill(model, pool)
        found = [greedy, search(model, pool, greedy), search(model, pool, nearest(pool, M))]
        errors = [error_of(model, pool, prompt) / best for prompt in found]
        ratios.append([errors[0], errors[1], min(errors)])
    excess = np.array(ratios) - 1
    row = {}
    for i, name in enumerate(("greedy", "exchanges", "both_starts")):
        row[f"{name}_found"] = f"{(excess[:, i] < 1e-9).mean():.2f}"
        row[f"{name}_mean"] = f"{excess[:, i].mean():.4f}"
        row[f"{name}_worst"] = f"{excess[:, i].max():.3f}"
    return row


if __name__ == "__main__":
    complete(
        "choice_search",
        [{"model": k, "candidates": str(CANDIDATES[k]), "pools": str(n)} for k, n in POOLS.items()],
        compute,
    )
