"""The architectural mismatch at d = 32, length 128, noise .01, 4096 pretraining sequences of 320 tasks, two seeds.

Three laws of the prompt: correlated tokens with an independent query, with a continuing query, and iid tokens of the
nearest effective length. Full linear attention and one layer of softmax are trained; `reduced` is the ridge minimiser
of `corricl.simulate`. Runs of one seed share their pretraining tasks, so that gaps between laws are taken seed by seed.
Resumable; the table is results/attention_mismatch.csv. Delete it to run again.
"""

from __future__ import annotations

import time

from _table import Row, complete

from corricl import Pretraining, Prompt, attention, simulate
from corricl.theory import linear

SEEDS = (0, 1)
TRAINING = {
    "linear": "batch=256;steps=2000;rate=0.01",
    "softmax": "width=64;batch=256;steps=2000;rate=0.005",
    "reduced": "ridge=1e-8",
}
TEST = 2**15
XI = (0, 10, 4, 1)


def keys() -> list[Row]:
    """At each correlation length the gap of full linear attention, then both models with a continuing query."""
    gap = [(m, law) for m in ("reduced", "linear") for law in ("independent", "effective")]
    cells = [(m, xi, law) for xi in XI for m, law in [*gap, ("linear", "continues"), ("softmax", "continues")]]
    apart = [
        (m, xi, law) for m, xi, law in cells if xi or law == "independent" or m == "softmax"
    ]  # at xi = 0 all are one
    return [{"model": m, "xi": str(xi), "law": law, "training": TRAINING[m]} for m, xi, law in apart]


def pretraining_of(xi: str, law: str) -> Pretraining:
    """4096 sequences of 320 tasks under one of the three laws."""
    correlated = Prompt(32, 128, f"exp:{xi}", "continues" if law == "continues" else "independent", 0.01)
    if law != "effective":
        return Pretraining(correlated, 4096, 320)
    worth = round(float(linear.effective_length(128, 0.01, correlated.statistics.k2)))
    return Pretraining(Prompt(32, worth, noise=0.01), 4096, 320)


def compute(key: Row) -> Row:
    subject, start = pretraining_of(key["xi"], key["law"]), time.perf_counter()
    if key["model"] == "reduced":
        icl = [simulate.replicate(subject, 1e-8, seed=0, index=i).icl for i in range(8)]
        steps: list[int] = []
    else:
        model = f"{key['model']};{key['training']}"
        made = attention.train_many(model, subject, seeds=SEEDS)
        icl, steps = [t.risk(prompts=TEST).mean for t in made], [t.selected_step for t in made]
    return {
        "length": str(subject.prompt.length),
        "icl": " ".join(f"{value:.4f}" for value in icl),
        "mean": f"{simulate.estimate(icl).mean:.4f}",
        "stderr": f"{simulate.estimate(icl).stderr:.4f}",
        "selected_step": " ".join(map(str, steps)),
        "minutes": f"{(time.perf_counter() - start) / 60:.1f}",
    }


def main() -> None:
    rows = complete("attention_mismatch", keys(), compute)
    found = {(row["model"], row["xi"], row["law"]): [float(v) for v in row["icl"].split()] for row in rows}
    for (model, xi, law), icl in found.items():
        if law == "effective":
            gaps = [a - b for a, b in zip(found[model, xi, "independent"], icl, strict=True)]
            print(f"gap of {model} at xi = {xi}: {simulate.estimate(gaps)}")


if __name__ == "__main__":
    main()
