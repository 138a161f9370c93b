"""`corricl sweep`: run the points that a store lacks."""

from __future__ import annotations

from pathlib import Path

import click

from ..errors import CorriclError
from ..plugins import import_module
from ._options import as_json, imports, quiet
from ._output import print_json


class FailedPoints(CorriclError):
    """A sweep went through, but some of its points failed."""

    code = "failed_points"
    exit_code = 4


@click.command()
@click.argument("spec", type=Path, metavar="SPEC.toml")
@click.option("--store", type=Path, metavar="FILE", help="Store of the results; default SPEC.sqlite beside the spec.")
@click.option("--executor", default="local", show_default=True, help="local, dask, dask:ADDRESS or slurm.")
@click.option("--workers", type=int, metavar="N", help="Processes or jobs; default one for each core.")
@click.option("--dry-run", is_flag=True, help="Count the points, time one of each estimator, write nothing.")
@imports
@as_json
@quiet
def sweep(
    spec: Path,
    store: Path | None,
    executor: str,
    workers: int | None,
    dry_run: bool,
    modules: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> None:
    """Run a sweep; run it again to resume it, whatever stopped it.

    Finished points are in the store and never computed anew. Exit code 4: some points failed.
    """
    from .. import sweeps

    for module in modules:
        import_module(module)  # here first, where a failure is one line
    wanted = sweeps.Spec.load(spec)
    wanted = wanted.model_copy(update={"imports": [*wanted.imports, *modules]})
    path = store or spec.with_suffix(".sqlite")
    if dry_run:
        report = sweeps.dry_run(wanted, path, workers)
    else:
        report = sweeps.run(wanted, path, executor=executor, workers=workers, progress=not quiet)
        if report.failed:
            raise FailedPoints(
                f"{report.failed} of {report.points} points failed: {report.errors[0]} "
                f"(corricl results {path} lists them)"
            )
    if as_json:
        print_json(report)
    else:
        print(report.sentence())
