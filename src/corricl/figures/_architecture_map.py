"""Which attention wins, over correlation length and context length."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ._base import Figure, Row
from ._effective_length import QUERIES
from ._mismatch import LOOKS
from ._select import grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from ..sweeps import Spec

D = 32
RIVALS = (("linear", "softmax"), ("positional", "softmax"))
"""Plain and position-weighted linear attention, each against softmax."""


class ArchitectureMap(Figure):
    """Risk of softmax relative to linear attention over xi/length and alpha, for both queries."""

    name = "architecture-map"
    title = "which architecture wins over xi/length and alpha, and by how much"

    def sweeps(self, quick: bool) -> list[Spec]:
        from ..sweeps import Spec

        points = 10 if quick else 40
        lengths = np.geomspace(16, 128 if quick else 256, points).round().astype(int)
        shares = np.geomspace(0.01, 3, points)
        specs = []
        for length in map(int, dict.fromkeys(lengths.tolist())):
            kernels = [f"exp:{share * length:.6g}" for share in shares]
            base = {"d": D, "length": length, "noise": 0.01}
            estimators = ["theory:linear", "theory:positional", "theory:softmax"]
            specs.append(
                Spec(name=f"length-{length}", base=base, cases=QUERIES, axes={"kernel": kernels}, estimators=estimators)
            )
        return specs

    def plot(self, rows: list[Row], canvas: Canvas) -> None:
        canvas.set_size_inches(10, 8)
        placed = _placed(rows)
        panels = canvas.subplots(2, 2, sharex=True, sharey=True)
        image = None
        for row, query in zip(panels, QUERIES, strict=True):
            for axes, rivals in zip(row, RIVALS, strict=True):
                (x, y, first), (_, _, second) = (
                    grid(placed, "share", "alpha", case=query["name"], estimator=f"theory:{method}")
                    for method in rivals
                )
                margin = np.log2(second / first)
                image = axes.pcolormesh(x, y, margin, cmap="RdBu", vmin=-2, vmax=2, rasterized=True)
                if margin.min() < 0 < margin.max():
                    axes.contour(x, y, margin, levels=[0.0], colors="k", linewidths=1)
                axes.set(xscale="log", yscale="log", title=f"{query['name']}\nsoftmax / {LOOKS[rivals[0]][0]}")
                axes.grid(visible=False)
        for axes in panels[1]:
            axes.set_xlabel("ξ / length")
        for axes in panels[:, 0]:
            axes.set_ylabel("α = length/d")
        assert image is not None
        canvas.colorbar(image, ax=panels, label="log₂ of the ratio of errors (red: softmax wins)", shrink=0.6)

    def table(self, rows: list[Row]) -> str:
        placed = _placed(rows)
        text = []
        for query in QUERIES:
            risks = [
                grid(placed, "share", "alpha", case=query["name"], estimator=f"theory:{m}")[2]
                for m in LOOKS
                if m != "bayes"
            ]
            winner = np.argmin(risks, axis=0)
            shares = ", ".join(
                f"{name} {np.mean(winner == i):.0%}" for i, name in enumerate(("linear", "positional", "softmax"))
            )
            plain = np.mean(risks[2] < risks[0])
            text.append(f"{query['name']}: wins {shares}; softmax beats plain linear attention in {plain:.0%}")
        return "\n".join(text)


def _placed(rows: list[Row]) -> list[Row]:
    """Rows with alpha and xi/length, read off the sweep's name and the kernel.

    Kernels are rounded, so the same share differs in its last digits from length to length: the first length's serves.
    """
    shares: dict[str, list[float]] = {}
    for row in rows:
        length = int(row["sweep"].partition("-")[2])
        share = float(row["kernel"].partition(":")[2]) / length
        mine = shares.setdefault(row["sweep"], [])
        if share not in mine:
            mine.append(share)
    common = next(iter(shares.values()))
    placed = []
    for row in rows:
        length = int(row["sweep"].partition("-")[2])
        share = float(row["kernel"].partition(":")[2]) / length
        placed.append({**row, "alpha": length / D, "share": common[shares[row["sweep"]].index(share)]})
    return placed
