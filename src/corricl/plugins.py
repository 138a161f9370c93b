"""Code of the user's own: a module or a file whose classes register themselves when it is imported."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from .errors import InputError


def import_module(name: str) -> ModuleType:
    """Import a module by its dotted name or from the path of a .py file, once.

    Raises:
        InputError: when there is none, or it fails while it is imported.
    """
    path = Path(name).resolve()
    try:
        with contextlib.redirect_stdout(sys.stderr):  # stdout belongs to the command's one object
            return _import(name, path)
    except (Exception, SystemExit) as error:  # it is the user's code: anything may come
        kind = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
        raise InputError(f"cannot import '{name}': {kind}{error}") from None


def _import(name: str, path: Path) -> ModuleType:
    if path.suffix != ".py":
        return importlib.import_module(name)
    loaded = sys.modules.get(path.stem)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path):
        return loaded
    if not path.is_file():
        raise ImportError("there is no such file")
    found = importlib.util.spec_from_file_location(path.stem, path)
    assert found is not None  # it ends in .py
    assert found.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(found)  # dataclasses look their module up
    found.loader.exec_module(module)
    return module
