"""The same prompts before three architectures: the reduced model, full linear attention, and softmax with an MLP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._base import Figure, Row, with_error
from ._effective_length import LOOKS, PAPER, QUERIES, equivalents, with_equivalents
from ._select import select

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from ..sweeps import Spec

SMALL = {**PAPER, "d": 16, "length": 64, "sequences": 1024, "tasks": 160}
"""The ratios of the paper at half its token dimension."""

MODELS = {
    "full linear": ("linear;rate=0.01;batch=256", 1000, 4000),
    "softmax": ("softmax;rate=0.01;batch=256", 300, 4000),
    "softmax+MLP": ("softmax+mlp;rate=0.003;batch=256", 300, 4000),
    "softmax+MLP, 4 layers": ("softmax+mlp;layers=4;rate=0.001;batch=128", 200, 8000),
}
"""Each trained model, how it is trained, and its steps: quick and at full size."""

FEW = "interval=20;validation=1024;test=4096"
"""Prompts of a quick run, which trains for so short that validating would take most of its time."""

PANELS = ("reduced", "full linear", "softmax+MLP")


def trained(name: str, quick: bool) -> str:
    """The estimator of a model of `MODELS`."""
    text, few, many = MODELS[name]
    if not quick:
        return f"attention:{text};steps={many}"
    return f"attention:{text}{'' if text.startswith('linear') else ';width=32'};steps={few};{FEW}"


class Architectures(Figure):
    """ICL error against the correlation length for two queries and for iid prompts of the effective length."""

    name = "architectures"
    title = "reduced model, full linear attention and softmax+MLP, trained on the same correlated prompts"

    def sweeps(self, quick: bool) -> list[Spec]:
        from ..sweeps import Spec

        sizes, xi = (SMALL, [0, 2, 6, 10]) if quick else (PAPER, list(range(11)))
        base, iid = {**sizes, "kernel": "exp:{xi}"}, {**sizes, "kernel": "iid"}
        axes, cases = {"xi": xi}, equivalents(xi, sizes)
        reduced: dict[str, Any] = {"estimators": ["simulate"], "replicates": 5 if quick else 20}
        models = {"estimators": [trained(name, quick) for name in PANELS[1:]], "replicates": 2}
        return [
            Spec(name="simulation", base=base, cases=QUERIES, axes=axes, **reduced),
            Spec(name="equivalent", base=iid, cases=cases, **reduced),
            Spec(name="models", base=base, cases=QUERIES, axes=axes, **models),
            Spec(name="equivalent-models", base=iid, cases=cases, **models),
        ]

    def plot(self, rows: list[Row], canvas: Canvas) -> None:
        canvas.set_size_inches(11, 4)
        panels = canvas.subplots(1, 3, sharey=True)
        rows = by_model(with_equivalents(rows))
        for axes, panel in zip(panels, PANELS, strict=True):
            for case, (color, marker) in LOOKS.items():
                found = select(rows, "xi", case=case, estimator=panel)
                axes.errorbar(found.x, found.y, found.stderr, fmt=f"{marker}-", color=color, label=case)
            axes.set(title=panel, xlabel="correlation length ξ (tokens)")
        panels[0].set(ylabel="ICL error", ylim=(0, None))
        panels[0].legend()

    def table(self, rows: list[Row]) -> str:
        rows = [row for row in by_model(with_equivalents(rows)) if row["quantity"] == "icl"]
        cells = {(row["xi"], row["case"], row["estimator"]): with_error(row) for row in rows}
        text = [f"{'xi':>4}  {'curve':<36}" + "".join(f"{panel:<18}" for panel in PANELS)]
        for xi in sorted({row["xi"] for row in rows}):
            for case in LOOKS:
                text.append(f"{xi:>4g}  {case:<36}" + "".join(f"{cells.get((xi, case, p), ''):<18}" for p in PANELS))
        return "\n".join(text)


def by_model(rows: list[Row]) -> list[Row]:
    """Rows with the name of the model for its estimator, however that was trained."""
    names = {_kind(text): name for name, (text, *_) in MODELS.items()}
    names[("simulate",)] = PANELS[0]
    return [{**row, "estimator": names.get(_kind(row["estimator"]), row["estimator"])} for row in rows]


def _kind(text: str) -> tuple[str, ...]:
    words = text.removeprefix("attention:").split(";")
    return tuple(word for word in words if "=" not in word or word.startswith("layers="))
