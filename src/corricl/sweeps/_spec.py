"""The sweep as an object: a TOML file or the same thing built in Python."""

from __future__ import annotations

import difflib
import itertools
import json
import math
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from ..errors import CorriclError, InputError
from ..kernels._base import shortest
from ..plugins import import_module
from ..setting import RATIOS, Setting
from ._setting import dumps, identity, setting_of

_FIELDS = list(Setting.__dataclass_fields__)
_PLACE = re.compile(r"\{(\w+)\}")
Coordinate = int | float | str
FIRST_REPLICATES = 8
"""Replicates before the first look at the standard error, when a target for it is given."""


class Range(BaseModel):
    """`num` values from `start` to `stop`, both included; evenly spaced, or in the logarithm if `log`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    start: float
    stop: float
    num: int = Field(ge=1)
    log: bool = False

    @model_validator(mode="after")
    def _check(self) -> Range:
        if self.log and not (self.start > 0 and self.stop > 0):
            raise InputError(f"a log range needs start and stop > 0; got {self.start} and {self.stop}")
        return self

    def values(self) -> list[float]:
        """The values to 12 digits, so that 0.3 is 0.3 and not 0.30000000000000004."""
        space = np.geomspace if self.log else np.linspace
        return [float(f"{value:.12g}") for value in space(self.start, self.stop, self.num)]


def _axis(value: Any) -> Any:
    value = Range.model_validate(value) if isinstance(value, dict) else value
    if isinstance(value, Range):
        return value.values()
    if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str):
        raise InputError("an axis is a list of values or a table {start, stop, num, log}")
    values = value.tolist() if isinstance(value, np.ndarray) else value
    if not len(values):
        raise InputError("an axis needs at least one value")
    return [_plain(entry) for entry in values]


def _plain(value: Any) -> Any:
    """Kernels and queries as their SPEC strings, and infinity as a number."""
    return math.inf if isinstance(value, str) and value == "inf" else getattr(value, "spec", value)


def _percent(value: Any) -> Any:
    if isinstance(value, str) and value.strip().endswith("%"):
        return float(value.strip()[:-1]) / 100
    return value


class Cell(NamedTuple):
    """One entry of the table: where it lies on the axes, and what is estimated there."""

    coordinates: dict[str, Coordinate]
    label: str
    setting: Setting
    estimator: str


class Spec(BaseModel):
    """A sweep: base settings, the axes of a grid, named cases, and the estimators run at each point.

    An axis is a setting (`ridge`, `kernel`, ...) or a name that stands in braces in a setting or an
    estimator, as `xi` in `kernel = "exp:{xi}"`. A case overrides the base; every case meets the whole grid.

    Args:
        base: settings named as on the command line (`Setting`), shared by all points.
        axes: name to a list of values or a `Range`.
        cases: tables of settings, each with a `name`.
        estimators: such as `theory:weak` and `simulate`.
        replicates: of each random estimator, 20 by default; with `target_stderr` the most that are made, 1024.
        target_stderr: relative standard error of `icl`, such as 0.01 or `"1%"`: replicates are doubled from 8
            until it is reached.
        seed: replicate i depends on (seed, i) alone.
        imports: modules or .py files that bring estimators and kernels (`import` in TOML).

    >>> Spec(base=dict(d=8, alpha=1, tau=2, kernel="exp:{xi}"), axes=dict(xi=[0, 1, 2])).count()
    3
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    name: str = Field(default="sweep", pattern=r"^[\w.-]+$")
    base: dict[str, Any] = {}
    axes: dict[str, Annotated[list[Coordinate], BeforeValidator(_axis)]] = {}
    cases: list[dict[str, Any]] = []
    estimators: list[str] = Field(default=["theory:weak"], min_length=1)
    replicates: int | None = Field(default=None, ge=1)
    target_stderr: Annotated[Annotated[float, Field(gt=0, lt=1)] | None, BeforeValidator(_percent)] = None
    seed: int = Field(default=0, ge=0)
    imports: list[str] = Field(default=[], alias="import")

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise InputError(_one_line(error, [*Spec.model_fields, "import"])) from None

    @classmethod
    def load(cls, path: str | Path) -> Spec:
        """Read a TOML file. The sweep is named after the file unless it says otherwise.

        A .py file to import is looked for in the folder of the TOML file.
        """
        path = Path(path)
        try:
            with path.open("rb") as file:
                fields = tomllib.load(file)
        except OSError as error:
            raise InputError(f"cannot read the spec '{path}': {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"'{path}' is not TOML: {error}") from None
        spec = cls(**{"name": re.sub(r"[^\w.-]", "-", path.stem), **fields})
        folder = path.parent.resolve()
        found = [str(folder / module) if module.endswith(".py") else module for module in spec.imports]
        return spec.model_copy(update={"imports": found})

    @field_validator("base", "cases", mode="before")
    @classmethod
    def _plain_values(cls, given: Any) -> Any:
        if isinstance(given, list):
            return [cls._plain_values(case) for case in given]
        return {name: _plain(value) for name, value in given.items()} if isinstance(given, dict) else given

    @model_validator(mode="after")
    def _check(self) -> Spec:
        names = [case.get("name") for case in self.cases]
        if any(not isinstance(name, str) or not name for name in names) or len(set(names)) < len(names):
            raise InputError("each of [[cases]] needs a name of its own")
        for case in self.cases or [{}]:
            self._check_case(case)
        return self

    def _check_case(self, case: dict[str, Any]) -> None:
        """Every name is a setting or stands in braces somewhere, and every brace is filled."""
        where = f"case '{case['name']}'" if case else "[base]"
        merged = {**self.base, **{name: value for name, value in case.items() if name != "name"}}
        texts = [v for v in merged.values() if isinstance(v, str)] + self.estimators
        texts += [v for values in self.axes.values() for v in values if isinstance(v, str)]
        places = {place for text in texts for place in _PLACE.findall(text)}
        for name in [*merged, *self.axes]:
            if name not in _FIELDS and name not in places:
                table = "[axes]" if name in self.axes else where
                raise InputError(_unknown(name, table, [*_FIELDS, *places]))
            if name in self.axes and name in merged:
                raise InputError(f"'{name}' is given both in {where if name in case else '[base]'} and as an axis")
        if missing := sorted(places - merged.keys() - self.axes.keys()):
            raise InputError(f"{{{missing[0]}}} stands in {where} or an estimator, but [axes] has no '{missing[0]}'")

    def cells(self) -> Iterator[Cell]:
        """The cells of the table, cases first and the last axis fastest; settings are checked on the way."""
        for module in self.imports:
            import_module(module)
        for case in self.cases or [{}]:
            for point in itertools.product(*self.axes.values()):
                axes = dict(zip(self.axes, point, strict=True))
                coordinates: dict[str, Coordinate] = {**({"case": case["name"]} if case else {}), **axes}
                values = _override(_override(self.base, case), axes)
                setting = _setting(values, coordinates)
                for label in self.estimators:
                    yield Cell(coordinates, label, setting, _fill(label, values))

    def count(self) -> int:
        """Number of cells of the table."""
        return max(len(self.cases), 1) * math.prod(map(len, self.axes.values())) * len(self.estimators)

    @property
    def most_replicates(self) -> int:
        """Most replicates that a random estimator gets."""
        return self.replicates or (20 if self.target_stderr is None else 1024)

    def replicates_after(self, values: list[float]) -> int:
        """Replicates that a cell needs, given its values of the replicates made so far, in order.

        With a target standard error it looks after 8, 16, 32, ... replicates, never in between: what is
        averaged does not depend on the order in which points were computed.
        """
        most = self.most_replicates
        if self.target_stderr is None:
            return most
        looked = min(FIRST_REPLICATES, most)
        while looked < most and len(values) >= looked:
            made = np.array(values[:looked])
            if not np.isfinite(made).all() or made.std(ddof=1) <= self.target_stderr * abs(made.mean()) * looked**0.5:
                break
            looked = min(2 * looked, most)
        return looked

    def to_json(self) -> str:
        """The spec as text that `from_json` reads back; ranges are written out."""
        return dumps(self.model_dump(by_alias=True), sort=False)  # the order of the axes is that of the table

    @classmethod
    def from_json(cls, text: str) -> Spec:
        """Read what `to_json` wrote."""
        return cls(**json.loads(text))


_PARTNER = {**RATIOS, **{ratio: size for size, ratio in RATIOS.items()}}


def _override(values: dict[str, Any], by: dict[str, Any]) -> dict[str, Any]:
    """`values` overridden; a size that is given anew replaces its ratio, and the other way round."""
    replaced = {_PARTNER.get(name) for name in by}
    return {**{name: value for name, value in values.items() if name not in replaced}, **by}


def _fill(value: Any, values: dict[str, Any]) -> Any:
    """Put the axis values in place of their names in braces."""
    if not isinstance(value, str):
        return value
    return _PLACE.sub(lambda m: shortest(v) if isinstance(v := values[m[1]], float) else str(v), value)


def _setting(values: dict[str, Any], coordinates: dict[str, Coordinate]) -> Setting:
    filled = {name: _fill(value, values) for name, value in values.items() if name in _FIELDS}
    try:
        made = setting_of(filled)
        identity(made)  # parses kernels and queries and checks every size
        return made
    except ValidationError as error:
        line = _one_line(error, _FIELDS)
    except CorriclError as error:
        line = str(error)
    at = ", ".join(f"{name} = {value}" for name, value in coordinates.items())
    raise InputError(f"{line} (at {at})" if at else line)


def _unknown(name: str, where: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"unknown key '{name}' in {where}" + (f"; did you mean '{near[0]}'?" if near else f"; allowed: {known}")


def _one_line(error: ValidationError, known: list[str]) -> str:
    """The first complaint of pydantic as one plain sentence."""
    first, *rest = error.errors(include_url=False)
    first = next((e for e in (first, *rest) if e["type"] == "extra_forbidden"), first)  # a typo explains what lacks
    *table, last = first["loc"] or ("",)
    where = ".".join(map(str, table))
    if first["type"] == "extra_forbidden":
        allowed = known if not table else list(Range.model_fields)
        return _unknown(str(last), f"[{where}]" if where else "the spec", allowed)
    got = "" if first["type"] == "missing" else f"; got {first['input']!r}"
    message = first["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    return f"{'.'.join(map(str, first['loc']))}: {message}{got}" if first["loc"] else message
