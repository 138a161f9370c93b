"""The published work behind each method, as BibTeX."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from .errors import InputError

ALWAYS: tuple[str, ...] = ("corricl", "lu2025", "hild2026", "zhang2024")
"""The software, the theory of linear attention that it starts from, its first extension to correlated prompts, and the
form of linear attention."""

METHODS: dict[str, tuple[str, ...]] = {
    "auto": (),
    "weak": (),
    "mixture": (),
    "linear": (),
    "positional": ("press2022",),
    "softmax": ("vaswani2017",),
    "bayes": ("bai2004",),
    "simulate": ("jax2018",),
    "train": ("vaswani2017", "loshchilov2019", "jax2018", "kidger2021"),
    "rotary": ("su2024",),
    "alibi": ("press2022",),
    "measure": ("ledoit2004", "kunsch1989"),
    "choose": ("ledoit2004", "liu2022"),
}
"""What each method rests on beside `ALWAYS`."""

SIGNS = {"replicates": "simulate", "selected_step": "train", "autocorrelation": "measure", "chosen": "choose"}
"""Keys of a result by which the command that wrote it is known."""


def bibtex(methods: Iterable[str] = ()) -> str:
    """BibTeX entries of this software and of the works that the methods rest on, in the order of the file.

    Args:
        methods: names from `METHODS`; without any, what every result rests on.

    Raises:
        InputError: an unknown method.

    >>> "10.1214/aop/1078415845" in bibtex(["bayes"])
    True
    """
    wanted = set(ALWAYS)
    for method in methods:
        if method not in METHODS:
            raise InputError(f"unknown method '{method}'; allowed: {', '.join(METHODS)}")
        wanted.update(METHODS[method])
    return "\n".join(entry for key, entry in entries().items() if key in wanted)


def entries() -> dict[str, str]:
    """Every entry by its key."""
    text = files("corricl").joinpath("references.bib").read_text(encoding="utf-8")
    found = {part.partition(",")[0].partition("{")[2]: f"@{part.strip()}\n" for part in text.split("\n@") if part}
    first = next(iter(found))
    return {**found, first: found[first].removeprefix("@").replace("VERSION", version("corricl"))}


def methods_of(result: Any) -> list[str]:
    """The methods that a result of the command line names, or gives away by its keys."""
    found: list[str] = []
    if isinstance(result, dict):
        named = result.get("method")
        found += [named] if isinstance(named, str) and named in METHODS else []
        found += [method for sign, method in SIGNS.items() if sign in result]
    inner = result.values() if isinstance(result, dict) else result if isinstance(result, list) else ()
    for part in inner:
        found += methods_of(part)
    return list(dict.fromkeys(found))
