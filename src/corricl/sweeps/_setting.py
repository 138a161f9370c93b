"""What of a setting determines a value, in one spelling."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ..kernels import Query, parse
from ..prompt import number, whole
from ..setting import Setting

_SETTING = TypeAdapter(Setting)


def setting_of(values: dict[str, Any]) -> Setting:
    """A setting from its fields, their types checked; a pydantic ValidationError says what is wrong."""
    return _SETTING.validate_python(values)


def fields_of(setting: Setting) -> dict[str, Any]:
    """The fields that were given; `Setting(**fields)` is the setting."""
    return {name: value for name in Setting.__dataclass_fields__ if (value := getattr(setting, name)) is not None}


def sizes(setting: Setting) -> dict[str, float | None]:
    """d, length, sequences and tasks, ratios rounded half up; the ratios alone in the limit.

    Tasks None are unbounded. Sequences are None where neither they nor tau are given.
    """
    if setting.is_limit:
        return {name: getattr(setting, name) for name in ("alpha", "tau", "kappa")}
    prompt_only = setting.sequences is None and setting.tau is None
    # Kernels are left to the place where a point is computed: checking one may take an eigendecomposition.
    plain = replace(setting, kernel="iid", query=None, noise=0.0, **({"sequences": 1} if prompt_only else {}))
    made = plain.pretraining
    sequences = None if prompt_only else made.sequences
    return {"d": made.prompt.d, "length": made.prompt.length, "sequences": sequences, "tasks": made.tasks}


def identity(setting: Setting) -> dict[str, Any]:
    """Everything of the setting that determines a value.

    Sizes rather than ratios, kernels as their canonical SPEC strings, files by the hash of their contents.
    """
    named = {
        **sizes(setting),
        "noise": number(setting.noise, "noise"),
        "ridge": number(setting.ridge, "ridge"),
        "kernel": _canonical_kernel(setting.kernel),
        "query": _canonical_query(setting.query),
        "test_length": None if setting.test_length is None else whole(setting.test_length, "test_length"),
        "test_noise": None if setting.test_noise is None else number(setting.test_noise, "test_noise"),
        "test_kernel": None if setting.test_kernel is None else _canonical_kernel(setting.test_kernel),
        "test_query": _canonical_query(setting.test_query),
    }
    texts = (setting.kernel, setting.query, setting.test_kernel, setting.test_query)
    files = {str(path): _digest(path, path.stat().st_mtime_ns) for path in _files(t for t in texts if t)}
    return {**named, **({"files": files} if files else {})}


def dumps(value: Any, sort: bool = True) -> str:
    """JSON in one spelling: keys sorted, no spaces, infinity as "inf" (JSON has none), NaN refused."""
    return json.dumps(_finite(value), sort_keys=sort, separators=(",", ":"), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _finite(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return str(value) if isinstance(value, float) and math.isinf(value) else value


@lru_cache(maxsize=4096)
def _canonical_kernel(text: str) -> str:
    return parse(text).spec


@lru_cache(maxsize=4096)
def _canonical_query(text: str | None) -> str | None:
    return None if text is None else Query.parse(text).spec


def _files(texts: Iterable[str]) -> list[Path]:
    """Paths after `file:` and `vector:` in SPEC strings."""
    words = [word.strip() for text in texts for word in text.replace("+", "*").split("*")]
    return [Path(word.partition(":")[2]) for word in words if word.startswith(("file:", "vector:"))]


@lru_cache(maxsize=256)
def _digest(path: Path, modified: int) -> str:
    del modified  # in the cache's key, so that a changed file is read again
    return hashlib.sha256(path.read_bytes()).hexdigest()
