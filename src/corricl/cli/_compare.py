"""`corricl compare`: every method on one setting."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import theory
from ..errors import InputError
from ..prompt import Estimate, Pretraining, Prompt
from ..setting import Setting
from ._options import as_json, quiet, seed, takes_setting
from ._output import print_json, text
from ._progress import progress

if TYPE_CHECKING:
    from ..theory import Comparison

LAWS = ("given", "independent", "iid", "query_alone")
EFFECTS = ("bulk_cost", "query_gain", "both", "query_alone_gain")
CHUNK = 2**23
"""Numbers in a batch of simulated prompts."""


@click.command()
@takes_setting
@click.option("--simulate", "wants_simulation", is_flag=True, help="Simulate this prompt beside every method.")
@click.option("--prompts", type=int, default=8192, show_default=True, metavar="N", help="Test prompts of a simulation.")
@click.option(
    "--replicates", type=int, default=20, show_default=True, metavar="R", help="Pretrainings of the reduced model."
)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Folder for the picture, PNG and PDF.")
@seed
@as_json
@quiet
def compare(
    setting: Setting,
    wants_simulation: bool,
    prompts: int,
    replicates: int,
    out: Path | None,
    seed: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Every method on one prompt, and what its correlations take and give.

    given is the prompt as it is, independent has a query independent of the same context, iid has iid tokens,
    query_alone has iid context tokens and this query (none where no such prompt exists).
    bulk_cost = independent - iid, query_gain = independent - given, both = given - iid.
    Sizes of a pretraining (--sequences or --tau) add the methods weak and mixture.
    """
    subject = _subject(setting)
    found = theory.compare(subject, setting.ridge)
    simulated: dict[str, Estimate] = {}
    if wants_simulation:
        simulated = _simulated(found, subject, setting.ridge, prompts, replicates, seed, quiet)
    files: list[Path] = []
    if out is not None:
        from ..figures._comparison import save_comparison

        files = save_comparison(found, simulated, _title(setting.prompt), out)
    if as_json:
        entries = [_entry(c, simulated.get(c.method)) for c in found]
        print_json({"methods": entries, "files": [str(file) for file in files]})
        return
    _print_warnings(found)
    _print_table(found, simulated)
    for file in files:
        print(file)


def _subject(setting: Setting) -> Pretraining | Prompt:
    """The pretraining where its sizes are given, else the prompt alone."""
    if setting.test is not None:
        raise InputError("compare takes one prompt: give no test prompt of its own")
    sizes = (setting.sequences, setting.tau, setting.tasks, setting.kappa)
    if any(size is not None for size in sizes):
        return setting.pretraining
    if setting.ridge != 0:
        raise InputError("the ridge belongs to a pretraining: give sequences or tau")
    return setting.prompt


def _simulated(
    found: list[Comparison],
    subject: Pretraining | Prompt,
    ridge: float,
    prompts: int,
    replicates: int,
    seed: int,
    quiet: bool,
) -> dict[str, Estimate]:
    """Direct simulation of the prompt as given, by method: of the optimum, or of the pretrained reduced model."""
    from .. import simulate

    prompt = subject.prompt if isinstance(subject, Pretraining) else subject
    batch = min(1024, prompts, max(1, CHUNK // ((prompt.length + 1) * prompt.d)))
    out: dict[str, Estimate] = {}
    with progress("simulations", len(found), quiet) as advance:
        for method in (c.method for c in found):
            if method in theory.PROMPT_METHODS:
                best = simulate.optimal(method, prompt)
                out[method] = simulate.score(best, prompt, seed=seed, prompts=prompts, batch=batch)
            elif isinstance(subject, Pretraining):  # weak and mixture predict the same model
                known = next(iter(out.values()), None)
                out[method] = known or simulate.risk(subject, ridge, seed=seed, replicates=replicates).icl
            advance(f"{method} {text(out[method])}")
    return out


def _entry(found: Comparison, simulated: Estimate | None) -> dict[str, Any]:
    """One method as JSON: risks, effects, simulation, and what makes its theory doubtful."""
    risks = {law: getattr(found, law) for law in LAWS}
    return {
        "method": found.method,
        **{law: None if risk is None else risk.icl for law, risk in risks.items()},
        **{effect: getattr(found, effect) for effect in EFFECTS},
        "simulated": simulated,
        "valid": found.given.valid,
        "warnings": [
            {"law": law, **caution._asdict()} for law, risk in risks.items() if risk for caution in risk.warnings
        ],
    }


def _print_warnings(found: list[Comparison]) -> None:
    """Warnings on stderr, each kind once for a method, with the laws that it concerns."""
    for entry in (_entry(c, None) for c in found):
        for code in dict.fromkeys(w["code"] for w in entry["warnings"]):
            same = [w for w in entry["warnings"] if w["code"] == code]
            laws = ", ".join(w["law"] for w in same)
            print(f"warning ({code}) {entry['method']}, {laws}: {same[0]['message']}", file=sys.stderr)


def _print_table(found: list[Comparison], simulated: dict[str, Estimate]) -> None:
    """One line a method; a column without a single value is left out."""
    columns = ["method", LAWS[0], "simulated", *LAWS[1:], *EFFECTS, "valid"]
    entries = [_entry(c, simulated.get(c.method)) for c in found]
    kept = [name for name in columns if any(entry[name] is not None for entry in entries)]
    cells = [[_cell(entry[name]) for name in kept] for entry in entries]
    widths = [max(len(cell) for cell in column) for column in zip(kept, *cells, strict=True)]
    for row in (kept, *cells):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Estimate):
        return f"{value.mean:.4f}" + ("" if value.stderr is None else f" ± {value.stderr:.4f}")
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _title(prompt: Prompt) -> str:
    sizes = f"d = {prompt.d}, length = {prompt.length}, noise = {prompt.noise:g}"
    return f"{prompt.kernel.spec}, query {prompt.query.spec}, {sizes}"
