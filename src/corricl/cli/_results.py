"""`corricl results`: what a store holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ._options import as_json, quiet
from ._output import print_json, text

if TYPE_CHECKING:
    from ..sweeps import Merged, Results

SHOWN = ("icl", "idg")
"""Quantities in the printed table; a file has them all."""


@click.command()
@click.argument("store", type=Path, metavar="STORE")
@click.option("--to", type=Path, metavar="FILE", help="Write all to FILE: .csv, .parquet, or .nc with named axes.")
@click.option("--sweep", metavar="NAME", help="Which sweep, if the store holds several.")
@click.option("--merge", type=Path, metavar="OTHER", help="First take over the points of another store.")
@as_json
@quiet
def results(store: Path, to: Path | None, sweep: str | None, merge: Path | None, as_json: bool, quiet: bool) -> None:
    """Show how far a sweep is and its table; write it to a file."""
    from .. import sweeps

    merged = None if merge is None else sweeps.merge(store, merge)
    found = sweeps.Results(store)
    spec, progress, failures = found.spec(sweep), found.progress(sweep), found.failures(sweep)
    if to is not None:
        found.export(to, sweep)
    if as_json:
        rows = found.rows(sweep)
        print_json({"sweep": spec.name, **progress, "merged": merged, "failures": failures, "rows": rows})
    elif not quiet:
        _show(found, spec.name, merged)


def _show(found: Results, sweep: str, merged: Merged | None) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, soft_wrap=True, markup=False)
    if merged is not None:
        console.print(f"merged: {merged.added} points added, {merged.shared} shared, {merged.differing} of them differ")
    progress = found.progress(sweep)
    failed = f", {progress['failed']} failed" if progress["failed"] else ""
    console.print(f"{sweep}: {progress['finished']} of {progress['points']} points finished{failed}")
    rows = [row for row in found.rows(sweep) if row["quantity"] in SHOWN] or found.rows(sweep)
    if rows:
        table = Table(box=None, header_style="bold")
        for name in rows[0]:
            table.add_column(name, justify="left" if isinstance(rows[0][name], str) else "right")
        for row in rows:
            table.add_row(*("" if value is None else text(value) for value in row.values()))
        console.print(table)
    for failure in found.failures(sweep):
        at = ", ".join(f"{name} = {value}" for name, value in failure.items() if name != "error")
        console.print(f"failed: {failure['error']} (at {at})", style="red")
