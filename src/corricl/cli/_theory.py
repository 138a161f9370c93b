"""`corricl theory`: predicted errors, in milliseconds."""

from __future__ import annotations

import dataclasses

import click

from .. import theory as theories
from ..prompt import Risk
from ..setting import Setting
from ._options import as_json, takes_setting
from ._output import print_json, print_lines, print_warnings


@click.command()
@takes_setting
@click.option("--method", default=theories.DEFAULT, show_default=True, help=f"One of {', '.join(theories.METHODS)}.")
@as_json
def theory(setting: Setting, method: str, as_json: bool) -> None:
    """Predicted ICL and IDG error, effective length and query gain.

    With --alpha and --tau but no --d it is the limit of large d.
    """
    risk = theories.of_setting(setting, method)
    if as_json:
        print_json(risk)
        return
    print_warnings(risk.warnings)
    rows = [(f.name, getattr(risk, f.name)) for f in dataclasses.fields(Risk) if f.name not in ("warnings", "details")]
    print_lines([*rows, *risk.details.items()])
