"""SPEC strings to kernels, and the registry of kernel names."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.metadata import entry_points

from ..errors import InputError
from ._base import Kernel
from ._combine import Mixture

_PLUS = re.compile(r"(?<![0-9.][eE])\+")  # a plus sign, but not that of 1e+3
_NUMBER = re.compile(r"[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?|[0-9]+\.")


@lru_cache(maxsize=1)
def _load_entry_points() -> None:
    for point in entry_points(group="corricl.kernels"):
        point.load()  # defining the class registers it


def known_kernels() -> dict[str, type[Kernel]]:
    """Every kernel class that a SPEC string can name, those of installed plug-ins included."""
    _load_entry_points()
    return dict(sorted(Kernel.registry.items()))


def parse(spec: str) -> Kernel:
    """Kernel of a SPEC string such as `exp:5`, `0.7*exp:5+0.3*iid` or `exp:20*cosine:0.3,inf`.

    `*` multiplies (kernels elementwise, or a kernel by its weight) and `+` mixes; the weights
    of a mixture add up to 1. A path after `file:` may therefore contain neither.

    Raises:
        InputError: for an unknown name (the message lists the known ones), parameters out of
            range, or weights that do not add up to 1.

    >>> parse("0.7*exp:5+0.3*iid").matrix(2).round(4).tolist()
    [[1.0, 0.5731], [0.5731, 1.0]]
    """
    terms = [_term(term, spec) for term in _PLUS.split(spec)]
    kernel = terms[0]
    for term in terms[1:]:
        kernel = kernel + term
    if isinstance(kernel, Mixture):
        kernel.check()
    return kernel


def _term(text: str, spec: str) -> Kernel:
    weight, kernel = None, None
    for word in (w.strip() for w in text.split("*")):
        if _NUMBER.fullmatch(word):
            weight = float(word) * (1.0 if weight is None else weight)
        else:
            kernel = _single(word, spec) if kernel is None else kernel * _single(word, spec)
    if kernel is None:
        raise InputError(f"kernel '{spec}' has a term without a kernel: '{text.strip()}'")
    return kernel if weight is None else weight * kernel


def _single(word: str, spec: str) -> Kernel:
    name, _, rest = word.partition(":")
    known = Kernel.registry
    if name not in known:
        known = known_kernels()
    if name not in known:
        raise InputError(f"unknown kernel '{name}' in '{spec}'; known kernels: {', '.join(sorted(known))}")
    return known[name].from_text(rest)
