"""`corricl theory`: predicted errors, in milliseconds."""

from __future__ import annotations

import dataclasses

import click

from .. import theory as theories
from ..errors import InputError
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
    risk = predicted(setting, method)
    if as_json:
        print_json(risk)
        return
    print_warnings(risk.warnings)
    rows = [(f.name, getattr(risk, f.name)) for f in dataclasses.fields(Risk) if f.name not in ("warnings", "details")]
    print_lines([*rows, *risk.details.items()])


def predicted(setting: Setting, method: str) -> Risk:
    """The risk of a setting by a method; by the limit where only ratios are given."""
    if method in theories.PROMPT_METHODS:
        return theories.risk(setting.prompt, test=setting.test, method=method)
    if not setting.is_limit:
        return theories.risk(setting.pretraining, ridge=setting.ridge, test=setting.test, method=method)
    if method not in ("weak", "auto"):
        raise InputError(f"method '{method}' needs sizes: give --d")
    if setting.test is not None:
        raise InputError("a test prompt of its own needs sizes: give --d")
    return theories.limit(
        setting.alpha,  # type: ignore[arg-type]
        setting.tau,  # type: ignore[arg-type]
        float("inf") if setting.kappa is None else setting.kappa,
        kernel=setting.kernel,
        query=setting.query or "independent",
        noise=setting.noise,
        ridge=setting.ridge,
    )
