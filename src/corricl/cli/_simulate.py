"""`corricl simulate`: the reduced model at finite size, with standard errors."""

from __future__ import annotations

import click

from ..prompt import Estimate
from ..setting import Setting
from ._options import as_json, fraction, quiet, seed, takes_setting
from ._output import print_json, print_lines, print_warnings, text
from ._progress import progress


@click.command()
@takes_setting
@click.option("--replicates", type=int, metavar="R", help="Independent pretrainings; default 20.")
@click.option("--target-stderr", metavar="1%", help="Go on until the standard error of icl is this fraction of it.")
@seed
@as_json
@quiet
def simulate(
    setting: Setting, replicates: int | None, target_stderr: str | None, seed: int, as_json: bool, quiet: bool
) -> None:
    """Pretrain the reduced model anew in each replicate and take its exact errors."""
    from .. import simulate as simulations

    pretraining = setting.pretraining
    target = None if target_stderr is None else fraction(target_stderr, "target-stderr")
    total = None if target is not None else (20 if replicates is None else replicates)
    with progress("replicates", total, quiet) as advance:

        def report(done: int, icl: Estimate) -> None:
            advance(f"icl {text(icl)}")

        result = simulations.risk(
            pretraining,
            setting.ridge,
            seed=seed,
            replicates=replicates,
            target_stderr=target,
            test=setting.test,
            on_replicate=report,
        )
    if as_json:
        print_json(result)
        return
    print_warnings(result.warnings)
    print_lines(
        [
            ("icl", result.icl),
            ("idg", result.idg),
            ("replicates", len(result.replicates)),
            ("residual", result.residual),
            (f"icl by theory ({result.theory.method})", result.theory.icl),
            (f"idg by theory ({result.theory.method})", result.theory.idg),
        ]
    )
