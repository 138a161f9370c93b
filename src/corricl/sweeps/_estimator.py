"""Estimators: the one small class that a sweep runs at every point."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ..errors import InputError
from ._setting import sizes

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from ..setting import Setting

Value = float | str | None
"""What an estimator returns under a name: a number, a word, or None where there is nothing."""


class Estimator:
    """What turns a setting into numbers. A subclass names itself and defines `run`.

    Defining the class is enough to make `NAME` or `NAME:ARGUMENT` valid in a spec wherever the module is
    imported: by an entry point of the group `corricl.estimators`, or by `import` in the spec.

    Attributes:
        name: what a spec calls it.
        numerics: version of the numbers, bumped by hand when the same point would get another value;
            points of an older version are then computed anew.
        random: whether the value depends on (seed, replicate); otherwise there is one replicate.
        argument: what followed `NAME:` in the spec.
    """

    name: ClassVar[str] = ""
    numerics: int = 1
    random: ClassVar[bool] = True
    registry: ClassVar[dict[str, type[Estimator]]] = {}

    def __init__(self, argument: str = "") -> None:
        self.argument = argument

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in cls.__dict__ and cls.name:
            known = Estimator.registry.get(cls.name)
            if known is not None and known.__qualname__ != cls.__qualname__:
                raise InputError(f"estimator name '{cls.name}' is taken by {known.__qualname__}")
            Estimator.registry[cls.name] = cls

    def run(self, setting: Setting, *, seed: int, replicate: int, folder: Path) -> Mapping[str, Value]:
        """The values at one point: a function of (setting, seed, replicate) alone.

        Numbers are averaged over replicates; a word (such as the method that was chosen) is kept with its point.

        Args:
            setting: its `pretraining`, `test` and `ridge` are what most estimators need.
            seed: the sweep's seed.
            replicate: 0, 1, 2, ...
            folder: where a long run may keep checkpoints. It does not exist at first, is the same after an
                interruption, and is removed once the point is stored.

        Raises:
            Exception: any; the point is recorded as failed with its message.
        """
        raise NotImplementedError

    def check(self, setting: Setting) -> None:
        """Refuse a setting, before anything runs, that lacks what `run` needs; by default all sizes."""
        if setting.is_limit:
            raise InputError(f"the estimator '{self.name}' needs sizes: give d")
        if sizes(setting)["sequences"] is None:
            raise InputError("give sequences or tau")

    def compile_key(self, setting: Setting) -> Hashable:
        """Points of equal keys share compiled code; they run one after another in the same worker."""
        return tuple(sizes(setting).values())


@lru_cache(maxsize=1)
def _load_entry_points() -> None:
    for point in entry_points(group="corricl.estimators"):
        point.load()  # defining the class registers it


def estimator(spec: str) -> Estimator:
    """The estimator of a string such as `theory:weak` or `simulate`."""
    from . import _built_in  # noqa: F401 - defining its classes registers them

    name, _, argument = spec.partition(":")
    if name not in Estimator.registry:
        _load_entry_points()
    if name not in Estimator.registry:
        known = ", ".join(sorted(Estimator.registry))
        raise InputError(f"unknown estimator '{spec}'; known estimators: {known} (import brings your own)")
    return Estimator.registry[name](argument)
