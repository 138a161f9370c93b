"""A correlation matrix given by the user."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from ..errors import InputError
from ._base import Kernel


def read_array(path: str | Path, what: str) -> np.ndarray:
    """Read a numeric .npy or .csv file as float64; refuse anything unusable in one sentence."""
    path = Path(path)
    if path.suffix not in (".npy", ".csv"):
        raise InputError(f"{what} file '{path}' must end in .npy or .csv")
    try:
        raw = _read_npy(path) if path.suffix == ".npy" else _read_csv(path)
        array = np.asarray(raw)
        if array.dtype.kind not in "fiu" or array.dtype.itemsize < 4:
            raise ValueError(f"entries of type {array.dtype}")
    except FileNotFoundError:
        raise InputError(f"{what} file '{path}' does not exist") from None
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise InputError(f"{what} file '{path}' is not a table of numbers ({error})") from None
    array = array.astype(np.float64)
    if array.size == 0 or not np.isfinite(array).all():
        raise InputError(f"{what} file '{path}' is empty or holds NaN or infinite entries")
    return array


def _read_npy(path: Path) -> np.ndarray:
    with path.open("rb") as file:
        return np.load(file, allow_pickle=False)


def _read_csv(path: Path) -> np.ndarray:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an empty file is reported by the caller
        return np.loadtxt(path, delimiter=",", dtype=np.float64, ndmin=1)


@dataclass(frozen=True)
class Tabulated(Kernel):
    """A fixed correlation matrix, shape (m, m): symmetric, unit diagonal (both to 1e-6, as after float32).

    With a prompt of length m it is the context matrix K; with length m-1 it is the joint
    matrix of context and query, the query last. Positive semidefiniteness is checked there.
    """

    values: np.ndarray = field(repr=False, compare=False, hash=False)
    source: str = ""
    digest: str = field(default="", init=False)
    name = "file"

    def __post_init__(self) -> None:
        values = np.asarray(self.values)
        where = f"kernel matrix{f' of {self.source!r}' if self.source else ''}"
        if values.ndim != 2 or values.shape[0] != values.shape[1]:
            raise InputError(f"{where} must be square; its shape is {values.shape}")
        if values.dtype.kind not in "fiu" or not np.isfinite(values).all():
            raise InputError(f"{where} must hold finite real numbers")
        values = values.astype(np.float64)
        if (error := np.abs(values - values.T).max()) > 1e-6:
            raise InputError(f"{where} must be symmetric; it is off by {error:.3g}")
        if (error := np.abs(np.diagonal(values) - 1).max()) > 1e-6:
            raise InputError(f"{where} must have a unit diagonal; it is off by {error:.3g}")
        values = (values + values.T) / 2
        np.fill_diagonal(values, 1.0)
        values.flags.writeable = False
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "digest", hashlib.sha256(values.tobytes()).hexdigest())

    @classmethod
    def from_text(cls, text: str) -> Kernel:
        if not text:
            raise InputError("kernel 'file' is written file:PATH (.npy or .csv)")
        return cls(read_array(text, "kernel"), text)

    @property
    def spec(self) -> str:
        return f"file:{self.source}" if self.source else f"file:<array {self.digest[:12]}>"

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.values.shape[0]

    def correlation(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        a, b = np.broadcast_arrays(a, b)
        if max(a.max(initial=0), b.max(initial=0)) > self.size:
            raise InputError(
                f"kernel '{self.spec}' has {self.size} positions; position {max(a.max(), b.max())} is outside"
            )
        return self.values[a - 1, b - 1]
