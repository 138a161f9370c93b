"""`corricl cite`: the published work that a result rests on."""

from __future__ import annotations

import json
from typing import TextIO

import click

from ..errors import InputError
from ..references import METHODS, bibtex, entries, methods_of
from ._options import as_json
from ._output import print_json


@click.command()
@click.argument("result", required=False, type=click.File(encoding="utf-8"))
@click.option(
    "--method", "methods", multiple=True, metavar="NAME", help="May be repeated. Allowed: " + ", ".join(METHODS)
)
@as_json
def cite(result: TextIO | None, methods: tuple[str, ...], as_json: bool) -> None:
    """BibTeX of this software and of the papers behind the methods that a result used.

    RESULT is a file with what a command printed under --json, or - for standard input. Without it and without
    --method: what every result rests on.
    """
    used = [*methods, *(_methods(result) if result is not None else [])]
    text = bibtex(used)
    if as_json:
        keys = [key for key in entries() if f"{{{key},\n" in text]
        print_json({"methods": list(dict.fromkeys(used)), "references": keys, "bibtex": text})
    else:
        print(text, end="")


def _methods(result: TextIO) -> list[str]:
    """The methods of a stored result."""
    try:
        content = json.load(result)
    except ValueError as error:
        raise InputError(f"'{result.name}' is not a result written with --json ({error})") from None
    found = methods_of(content)
    if not found:
        raise InputError(f"'{result.name}' names no method; give --method")
    return found
