"""`corricl train`: train an attention model on the prompts that theory and simulation take."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from ..setting import Setting
from ._options import as_json, quiet, seed, takes_setting
from ._output import print_json, print_lines, text
from ._progress import progress

if TYPE_CHECKING:
    from ..attention import Row, Trained

OPTIONS: dict[str, tuple[str, str]] = {
    "layers": ("L", "How often the list of layers is stacked; default 1."),
    "width": ("INT", "Of the residual stream; default 64, and d+1 where all layers are linear."),
    "heads": ("INT", "Of every attention; default 1."),
    "positions": ("NAME", "none (default), learned, rotary, alibi or weighted."),
    "mask": ("NAME", "full (default) or causal."),
    "data": ("NAME", "fixed (default), the --sequences of a pretraining set, or fresh ones in every step."),
    "steps": ("T", "Updates; default 4000."),
    "batch": ("INT|full", "Sequences in a step; default 256."),
    "rate": ("FLOAT|find", "Learning rate, or a range test; default 0.003."),
}
"""Options that become fields of `Architecture` and `Training`; `--set` reaches the others."""


@click.command()
@takes_setting
@click.option("--model", default="linear", show_default=True, metavar="NAME", help="List of layers: softmax+mlp, ...")
@click.option("--set", "extra", multiple=True, metavar="KEY=VALUE", help="Any other option, such as patience=5.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Checkpoint and curve; resumes a run there."
)
@click.option("--track", metavar="NAME", help="Send losses to tensorboard or wandb (needs --out).")
@seed
@as_json
@quiet
def train(
    setting: Setting,
    model: str,
    extra: tuple[str, ...],
    out: Path | None,
    track: str | None,
    seed: int,
    as_json: bool,
    quiet: bool,
    **options: str | None,
) -> None:
    """Train an attention model, select it on validation prompts, and score it on fresh test prompts.

    With --out, a run that was stopped goes on where it stopped. --test-length, --test-kernel, --test-query and
    --test-noise score it on other prompts than those that it was trained on.
    """
    from .. import attention

    given = {name: value for name, value in options.items() if value is not None}
    architecture, config = attention.configure(model, {**given, **_pairs(extra)})
    subject = attention.subject_of(setting, config)
    watch = _tracker(track, out, setting, model)
    with progress("steps", config.steps, quiet) as advance:
        shown = _Shown(advance)

        def report(row: Row) -> None:
            shown(row)
            if watch is not None:
                watch(row)

        trained = attention.train(architecture, subject, config, seed=seed, folder=out, on_evaluation=report)
    if out is not None:
        attention.write_curve(trained.curve, out / "curve.csv")
    result = _result(trained, setting)
    if as_json:
        print_json({**result, "architecture": trained.architecture, "training": trained.config, "curve": trained.curve})
    else:
        print_lines(list(result.items()))


for _name, (_metavar, _text) in reversed(OPTIONS.items()):
    train = click.option(f"--{_name}", metavar=_metavar, help=_text)(train)


class _Shown:
    """Rows as progress, with steps a second."""

    def __init__(self, advance: Any) -> None:
        self.advance, self.step, self.time = advance, 0, time.monotonic()

    def __call__(self, row: Row) -> None:
        now = time.monotonic()
        speed = (row.step - self.step) / max(now - self.time, 1e-9)
        self.advance(f"{speed:.3g} steps/s, validation {text(row.validation)}", row.step - self.step)
        self.step, self.time = row.step, now


def _pairs(words: tuple[str, ...]) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    if wrong := [word for word, (_, equals, _) in zip(words, pairs, strict=True) if not equals]:
        raise InputError(f"--set takes KEY=VALUE; got '{wrong[0]}'")
    return {key: value for key, _, value in pairs}


def _tracker(name: str | None, out: Path | None, setting: Setting, model: str) -> Any:
    from dataclasses import asdict

    from .. import attention

    if name is None:
        return None
    if out is None:
        raise InputError("--track needs --out: it keeps its files there")
    return attention.tracker(name, out / name, {**asdict(setting), "model": model})


def _result(trained: Trained, setting: Setting) -> dict[str, Any]:
    finite = trained.config.data == "fixed" or trained.pretraining.tasks is not None
    return {
        "icl": trained.risk(setting.test),
        "idg": trained.idg() if finite else None,
        "validation": trained.validation,
        "train": trained.train,
        "steps": trained.steps,
        "selected_step": trained.selected_step,
        "rate": trained.rate,
        "model": trained.architecture.layers,
    }
