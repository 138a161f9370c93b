"""`corricl figure`: a picture, its numbers and its spec."""

from __future__ import annotations

from pathlib import Path

import click

from ..errors import InputError
from ._options import as_json, quiet
from ._output import print_json


@click.command()
@click.argument("name", required=False)
@click.option("--quick", is_flag=True, help="Fewer points and replicates: two minutes, ten where models are trained.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("out"), show_default=True, help="Folder.")
@click.option("--spec", type=click.Path(path_type=Path), metavar="FILE", help="A stored spec to make again.")
@click.option("--workers", type=int, help="Processes; default one for each core.")
@click.option("--list", "show_list", is_flag=True, help="List the figures.")
@as_json
@quiet
def figure(
    name: str | None,
    quick: bool,
    out: Path,
    spec: Path | None,
    workers: int | None,
    show_list: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Make a figure: PNG, PDF, the plotted numbers as CSV, and the spec that makes it again."""
    from .. import figures

    if show_list:
        known = {figure.name: figure.title for figure in figures.FIGURES.values()}
        if as_json:
            print_json(known)
        else:
            for key, title in known.items():
                print(f"{key:<18} {title}")
        return
    if name is None:
        raise InputError(f"give the figure's name: {', '.join(figures.FIGURES)}")
    chosen = figures.find(name)
    wanted = figures.read_spec(spec, name) if spec is not None else chosen.sweeps(quick)
    made = figures.make(chosen, wanted, out, workers=workers, progress=not quiet)
    if as_json:
        print_json({"files": [str(f) for f in made.files], "rows": len(made.rows)})
        return
    if not quiet:
        print(chosen.table(made.rows))
    for file in made.files:
        print(file)
