"""The options that commands share, defined once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any

import click

from ..errors import InputError
from ..plugins import import_module
from ..setting import Setting

SETTING: dict[str, tuple[type, str, str]] = {
    "d": (int, "INT", "Token dimension."),
    "length": (int, "INT", "Context tokens, the query not counted."),
    "alpha": (float, "FLOAT", "length/d, instead of --length."),
    "sequences": (int, "INT", "Pretraining sequences n."),
    "tau": (float, "FLOAT", "sequences/d^2, instead of --sequences."),
    "tasks": (float, "INT|inf", "Distinct pretraining tasks k; default inf, a task for each sequence."),
    "kappa": (float, "FLOAT|inf", "tasks/d, instead of --tasks."),
    "noise": (float, "FLOAT", "Label-noise variance; default 0."),
    "ridge": (float, "FLOAT", "Ridge strength; default 0, the minimum-norm solution."),
    "kernel": (str, "SPEC", "Token kernel such as iid, exp:XI or 0.7*exp:5+0.3*iid; default iid."),
    "query": (str, "QUERY", "independent (default), continues, gap:G, strength:S or vector:FILE."),
    "test_length": (int, "INT", "Context tokens at test time, where they differ."),
    "test_kernel": (str, "SPEC", "Kernel at test time."),
    "test_query": (str, "QUERY", "Query at test time."),
    "test_noise": (float, "FLOAT", "Label-noise variance at test time."),
}

Command = Callable[..., None]

as_json = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
quiet = click.option("--quiet", is_flag=True, help="No progress on stderr.")
seed = click.option("--seed", type=int, default=0, show_default=True, help="Replicate i depends on (seed, i) alone.")
imports = click.option(
    "--import", "modules", multiple=True, metavar="MODULE", help="Module or .py file that defines kernels of yours."
)


def takes_setting(command: Command) -> Command:
    """Give a command the options of a `Setting`, which becomes its first argument, and `--import MODULE`."""

    @wraps(command)
    def wrapped(modules: tuple[str, ...], **values: Any) -> None:
        for module in modules:
            import_module(module)
        command(Setting(**{name: values.pop(name) for name in SETTING}), **values)

    defaults = {field.name: field.default for field in fields(Setting)}
    wrapped = imports(wrapped)
    for name, (kind, metavar, text) in reversed(SETTING.items()):
        flag = f"--{name.replace('_', '-')}"
        wrapped = click.option(flag, name, type=kind, default=defaults[name], metavar=metavar, help=text)(wrapped)
    return wrapped


def fraction(text: str, name: str) -> float:
    """A number such as 0.01 or 1%."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise InputError(f"{name} must be a number such as 1% or 0.01; got '{text}'") from None
    if not 0 < value < 1:
        raise InputError(f"{name} must lie between 0 and 1 (100 %); got '{text}'")
    return value
