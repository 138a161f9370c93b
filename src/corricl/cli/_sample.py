"""`corricl sample`: whole prompts as arrays."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click
import numpy as np

from ..errors import InputError
from ..setting import Setting
from ._options import as_json, seed, takes_setting
from ._output import plain, print_json


@click.command()
@takes_setting
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="FILE.npz", help="The file to write.")
@seed
@as_json
def sample(setting: Setting, out: Path, seed: int, as_json: bool) -> None:
    """Write --sequences prompts: x (n, length, d), y (n, length), query (n, d), target (n,), task (n, d)."""
    from .. import simulate

    if out.suffix != ".npz":
        raise InputError(f"--out must end in .npz; got '{out}'")
    drawn = simulate.sample(setting.pretraining, seed=seed)
    described = json.dumps(plain({**asdict(setting), "seed": seed}))
    try:
        np.savez(out, **drawn._asdict(), setting=described)
    except OSError as error:
        raise InputError(f"cannot write '{out}': {error.strerror}") from None
    shapes = {name: list(array.shape) for name, array in drawn._asdict().items()}
    if as_json:
        print_json({"file": str(out), "shapes": shapes})
    else:
        print(f"{out}: " + ", ".join(f"{name} {tuple(shape)}" for name, shape in shapes.items()))
