"""Does training reach the optimum that theory gives for its class? d = 16, length = 64, noise .01, fresh data.

Full linear attention against the population optimum of the reduced model, one layer of softmax (neither LayerNorm nor
MLP) against its own, linear attention with position weights against the best weights. Resumable; the table is
results/attention_optima.csv. Delete it to run again.
"""

from __future__ import annotations

import time

from _table import complete

from corricl import Prompt, attention, theory

METHODS = {"linear": "linear", "softmax": "softmax", "linear;positions=weighted": "positional"}
"""Model and the theory of its class."""
ALLOWED = {"linear": 1.03, "softmax": 1.05, "linear;positions=weighted": 1.03}
TRAINING = {
    "linear": "batch=256;steps=2000;rate=0.01",
    "softmax": "width=32;batch=256;steps=3000;rate=0.01",
    "linear;positions=weighted": "batch=256;steps=3000;rate=0.01",
}
PROMPTS = (
    ("0", "independent"),
    ("4", "independent"),
    ("4", "continues"),
)  # at xi = 0 a continuing query is independent
TEST = 2**17


def compute(key: dict[str, str]) -> dict[str, str]:
    prompt = Prompt(16, 64, f"exp:{key['xi']}", key["query"], 0.01)
    optimum = theory.risk(prompt, method=METHODS[key["model"]]).icl
    start = time.perf_counter()
    trained = attention.train(f"{key['model']};{key['training']};data=fresh", prompt, seed=0)
    icl = trained.risk(prompts=TEST)
    return {
        "icl": f"{icl.mean:.5f}",
        "stderr": f"{icl.stderr:.5f}",
        "optimum": f"{optimum:.5f}",
        "ratio": f"{icl.mean / optimum:.4f}",
        "selected_step": str(trained.selected_step),
        "minutes": f"{(time.perf_counter() - start) / 60:.1f}",
    }


def main() -> None:
    keys = [
        {"model": model, "xi": xi, "query": query, "training": TRAINING[model]}
        for xi, query in PROMPTS
        for model in METHODS
    ]
    rows = complete("attention_optima", keys, compute)
    missed = [row for row in rows if float(row["ratio"]) > ALLOWED[row["model"]]]
    print(f"{len(rows)} optima, {len(missed)} missed: {missed}")


if __name__ == "__main__":
    main()
