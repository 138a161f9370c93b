"""Checkpoints: one line of JSON that says what follows, then the arrays as raw little-endian bytes."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from ..errors import InputError

FORMAT = "corricl checkpoint 2"  # 1 drew other prompts from the same seed, and let position weights decay


class Checkpoint(NamedTuple):
    """A header of plain values, and the arrays in the order in which they were saved."""

    header: dict[str, Any]
    arrays: list[np.ndarray]


def save(path: Path, header: dict[str, Any], tree: Any) -> None:
    """Write a checkpoint, the whole of it or nothing: a reader finds the old file or the new one.

    Args:
        path: the file; its folder is made if needed.
        header: plain values, without NaN.
        tree: a pytree of arrays.
    """
    arrays = [np.ascontiguousarray(leaf) for leaf in jax.tree.leaves(tree)]
    data = b"".join(a.astype(a.dtype.newbyteorder("<"), copy=False).tobytes() for a in arrays)
    shapes = [[a.dtype.name, list(a.shape)] for a in arrays]
    described = {"format": FORMAT, **header, "arrays": shapes, "sha256": hashlib.sha256(data).hexdigest()}
    text = json.dumps(described, allow_nan=False).encode() + b"\n"
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as file:
            file.write(text + data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise InputError(f"cannot write the checkpoint '{path}': {error.strerror}") from None


def load(path: Path) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        InputError: there is none, it is another kind of file, or it is damaged.
    """
    try:
        line, _, data = path.read_bytes().partition(b"\n")
    except OSError as error:
        raise InputError(f"cannot read the checkpoint '{path}': {error.strerror}") from None
    try:
        header = json.loads(line)
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError(f"'{path}' is not a checkpoint of this version of corricl ('{FORMAT}')")
    kinds = [(np.dtype(name).newbyteorder("<"), tuple(shape)) for name, shape in header["arrays"]]
    sizes = [kind.itemsize * int(np.prod(shape)) for kind, shape in kinds]
    if len(data) != sum(sizes):
        raise InputError(f"the checkpoint '{path}' is truncated: it has {len(data)} of {sum(sizes)} bytes of arrays")
    if hashlib.sha256(data).hexdigest() != header["sha256"]:
        raise InputError(f"the checkpoint '{path}' is damaged: its arrays do not have the hash that its header gives")
    parts = np.split(np.frombuffer(data, np.uint8), np.cumsum(sizes)[:-1])
    arrays = [
        part.view(kind).reshape(shape).astype(kind.newbyteorder("="))
        for part, (kind, shape) in zip(parts, kinds, strict=True)
    ]
    return Checkpoint(header, arrays)


def restore(path: Path, found: Checkpoint, like: Any, identity: dict[str, Any]) -> Any:
    """The arrays of a checkpoint in the shape of a pytree.

    Args:
        path: of the checkpoint, for messages.
        found: what `load` gave.
        like: a pytree of arrays with the shapes and types that are expected.
        identity: what the header must say under `run`.

    Raises:
        InputError: it belongs to another run; the message names the first thing that differs.
    """
    theirs = found.header.get("run", {})
    for name in {**identity, **theirs}:
        if theirs.get(name) != identity.get(name):
            raise InputError(
                f"'{path}' is the checkpoint of another run: its {name} is {theirs.get(name)}, here it is "
                f"{identity.get(name)}; use another folder"
            )
    leaves, structure = jax.tree.flatten(like)
    expected, shapes = ([(a.dtype.name, tuple(a.shape)) for a in list_] for list_ in (leaves, found.arrays))
    if expected != shapes:
        raise InputError(f"'{path}' is the checkpoint of another model: its arrays have other shapes or types")
    return jax.tree.unflatten(structure, found.arrays)
