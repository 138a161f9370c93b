"""`corricl sweep`: run the points that a store lacks."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..errors import CorriclError


class FailedPoints(CorriclError):
    """A sweep went through, but some of its points failed."""

    code = "failed_points"
    exit_code = 4


def sweep(
    spec: Annotated[Path, typer.Argument(help="The sweep, a TOML file.", metavar="SPEC.toml")],
    store: Annotated[
        Path | None, typer.Option(help="SQLite file of the results [default: SPEC.sqlite beside the spec].")
    ] = None,
    executor: Annotated[str, typer.Option(help="local, dask, dask:ADDRESS or slurm.")] = "local",
    workers: Annotated[int | None, typer.Option(help="Processes or jobs [default: one for each core].")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the points, time one, write nothing.")] = False,
    imports: Annotated[
        list[str] | None,
        typer.Option("--import", help="Module or .py file with estimators or kernels of yours.", metavar="MODULE"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")] = False,
) -> None:
    """Run a sweep; run it again to resume it, whatever stopped it.

    Finished points are in the store and never computed anew. Exit code 4: some points failed.
    """
    from .. import sweeps

    wanted = sweeps.Spec.load(spec)
    if imports:
        wanted = wanted.model_copy(update={"imports": [*wanted.imports, *imports]})
    path = store or spec.with_suffix(".sqlite")
    if dry_run:
        estimate = sweeps.dry_run(wanted, path, workers)
        print(json.dumps(asdict(estimate)) if as_json else estimate.sentence())
        return
    report = sweeps.run(wanted, path, executor=executor, workers=workers, progress=not quiet)
    if report.failed:
        more = f": {report.errors[0]}" if report.errors else ""
        raise FailedPoints(
            f"{report.failed} of {report.points} points failed{more} (corricl results {path} lists them)"
        )
    if as_json:
        print(json.dumps({**asdict(report), "errors": list(report.errors)}))
    elif not quiet:
        Console(highlight=False, soft_wrap=True).print(report.sentence(), markup=False)
