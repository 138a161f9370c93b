"""`corricl choose`: the examples of a pool that make the best prompt for a query."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..plugins import import_module
from ..theory import PROMPT_METHODS
from ._options import as_json, imports, seed
from ._output import plain, print_json, print_lines, print_warnings, text

if TYPE_CHECKING:
    from ..measure import Choice

FILE = click.Path(path_type=Path)


@click.command()
@click.argument("pool", type=FILE)
@click.option("--query", type=FILE, required=True, metavar="FILE", help="Embedding of the query, one row.")
@click.option("--choose", "m", type=int, required=True, metavar="M", help="How many examples to choose.")
@click.option("--method", default="linear", show_default=True, help=f"Who reads them: {', '.join(PROMPT_METHODS)}.")
@click.option("--noise", type=float, default=0.01, show_default=True, help="Label-noise variance; the signal's is 1.")
@click.option("--kernel", default="iid", show_default=True, metavar="SPEC", help="Prompts the model is optimal on.")
@click.option("--law-query", default="independent", show_default=True, metavar="QUERY", help="Their query.")
@click.option("--prepare", default="whiten", show_default=True, help="Embeddings to tokens: whiten, centre, none.")
@click.option("--draws", type=int, default=200, show_default=True, metavar="N", help="Random prompts to compare with.")
@seed
@imports
@as_json
def choose(
    pool: Path,
    query: Path,
    m: int,
    method: str,
    noise: float,
    kernel: str,
    law_query: str,
    prepare: str,
    draws: int,
    seed: int,
    modules: tuple[str, ...],
    as_json: bool,
) -> None:
    """Choose M examples from POOL (.npy, .npz, .csv, .parquet; one embedding a row) so that the error is least.

    Rows are counted from 0 and listed in prompt order, the query following the last. floor is the least error that
    any model can have on the same examples. Beside it: the nearest candidates by cosine, random ones, and none.
    """
    from .. import measure

    for module in modules:
        import_module(module)
    found = measure.choose(
        measure.read(pool),
        measure.read(query),
        m,
        method=method,
        noise=noise,
        kernel=kernel,
        law_query=law_query,
        preparation=prepare,
        draws=draws,
        seed=seed,
    )
    if as_json:
        law = found.law
        described = {"d": law.d, "length": m, "kernel": law.kernel.spec, "query": law.query.spec, "noise": noise}
        print_json({**plain(found), "law": described})
        return
    print_warnings(found.warnings)
    _print_choice(found)


def _print_choice(found: Choice) -> None:
    space = found.space
    shrunk = "" if space.shrinkage is None else f", shrinkage {space.shrinkage:.2f}"
    print_lines(
        [
            ("model", f"{found.method}, optimal on {found.law.kernel.spec} prompts, noise {found.law.noise:g}"),
            ("pool", f"{found.candidates} candidates, {space.d} channels (effective {space.effective_dimension:.3g})"),
            ("preparation", f"{space.preparation}{shrunk}, constant channels dropped: {space.dropped}"),
        ]
    )
    print(f"\n{'prompt':<10}{'error':<18}floor")
    for name, icl, floor in (
        ("chosen", found.chosen.icl, found.chosen.floor),
        ("nearest", found.nearest.icl, found.nearest.floor),
        ("random", found.random, found.random_floor),
        ("empty", found.empty, found.empty),
    ):
        print(f"{name:<10}{text(icl):<18}{text(floor)}")
    print(f"\nchosen: {' '.join(map(str, found.chosen.examples))}")
