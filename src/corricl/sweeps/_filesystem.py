"""What a store must know of the file system that it lies on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO

from ..errors import InputError

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

LOCAL = {
    "apfs",
    "bcachefs",
    "btrfs",
    "ext2",
    "ext3",
    "ext4",
    "f2fs",
    "hfs",
    "jfs",
    "overlay",
    "ramfs",
    "tmpfs",
    "xfs",
    "zfs",
}
"""File systems of one machine. Anything else (nfs, lustre, gpfs, fuse, ...) may be shared between machines."""


def filesystem(path: Path, mounts: Path = Path("/proc/mounts")) -> str:
    """Type of the file system that holds `path`, or `unknown`."""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return "unknown"
    kinds = {}
    for line in lines:
        _, mounted, kind, *_ = line.split(" ")
        kinds[Path(mounted.replace("\\040", " "))] = kind  # of two mounts at one place the later hides the earlier
    path = Path(os.path.realpath(path))
    return next((kinds[parent] for parent in (path, *path.parents) if parent in kinds), "unknown")


def is_local(path: Path) -> bool:
    """Whether the file system is known to belong to this machine alone."""
    return filesystem(path) in LOCAL


def lock(path: Path) -> TextIO:
    """Hold `PATH.lock` until the returned file is closed or the process ends, however it ends."""
    file = path.with_name(path.name + ".lock").open("w")
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise InputError(f"another process is writing the store '{path}'") from None
    return file
