"""`corricl measure`: what real sequences are worth as a prompt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ._options import as_json
from ._output import plain, print_json, print_lines, print_warnings

if TYPE_CHECKING:
    from ..measure import Measurement, Prediction


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--length", type=int, metavar="INT", help="Context tokens; default the length of the sequences.")
@click.option("--stride", type=int, metavar="INT", help="Cut one series into independent windows this far apart.")
@click.option("--axes", metavar="NAMES", help="time,channel or sequence,time: what the axes of a table are.")
@click.option("--scale", default="channel", show_default=True, help="channel or whiten (by a shrunk covariance).")
@click.option("--noise", type=float, default=0.01, show_default=True, help="Label-noise variance of the prediction.")
@click.option(
    "--sequences", type=int, metavar="INT", help="Pretraining sequences: adds the error of a pretrained model."
)
@click.option("--tasks", type=int, metavar="INT", help="Pretraining tasks; default one a sequence.")
@click.option("--ridge", type=float, default=0.0, help="Ridge strength of that pretraining; default 0.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence of the intervals.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the bootstrap: same seed, same interval.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Folder for the report and the kernel files."
)
@as_json
def measure(
    file: Path,
    length: int | None,
    stride: int | None,
    axes: str | None,
    scale: str,
    noise: float,
    sequences: int | None,
    tasks: int | None,
    ridge: float,
    level: float,
    seed: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """k0, k1, k2 and effective context length of the sequences in FILE (.npy, .npz, .csv, .parquet).

    Three axes are (sequences, length, channels), two (length, channels), one is a series. Estimates are corrected for
    noise and not cut; intervals are cut to what is possible.
    """
    from .. import measure as measures

    found = measures.measure(
        file, length=length, stride=stride, axes=axes, scale=scale, noise=noise, level=level, seed=seed
    )
    # curves are for the picture; the terminal shows this length alone
    predicted = measures.predict(found, lengths=None if out else [], sequences=sequences, tasks=tasks, ridge=ridge)
    files = [] if out is None else measures.report(found, out, predicted)
    if as_json:
        band = found.autocorrelation._asdict()
        named = [str(path) for path in files]
        print_json({**plain(found), "autocorrelation": band, "prediction": predicted, "files": named})
        return
    print_warnings(found.warnings)
    _print(found, predicted)
    for path in files:
        print(path)


def _print(found: Measurement, predicted: Prediction) -> None:
    names = ("k2", "unrestricted", "effective_length", "mean_length", "k0", "k1")
    print(f"{'':<18}{'estimate':>10}{'from':>10}{'to':>10}")
    for name in names:
        if (value := getattr(found, name)) is not None:
            print(f"{name:<18}" + "".join(f"{x:>10.4g}" for x in value))
    sizes = f"{found.sequences} x {found.tokens // found.sequences} tokens, d = {found.d}"
    dimension = f"{found.preprocessing.dimension:.4g}"
    print_lines(
        [("length", found.length), ("data", sizes), ("effective dimension", dimension), ("kernel", found.kernel)]
    )
    print(f"predicted error at d = {predicted.d}, noise {predicted.noise:g}:")
    for query, risks in predicted.here.items():
        shown = ", ".join(f"{method} {risk:.4g}" for method, risk in risks.items())
        if shown:
            print(f"  query {query}: {shown}")
    for query, risk in (predicted.pretrained or {}).items():
        print(f"  query {query}, pretrained linear attention ({risk.method}): {risk.icl:.4g}")
