"""`corricl concentration`: does the minimiser concentrate as d grows, and with which powers?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import click

from ..errors import InputError
from ..prompt import Pretraining, number
from ..setting import RATIOS, Setting
from ._options import as_json, quiet, seed, takes_setting
from ._output import print_json, text
from ._progress import progress

QUANTITIES = {"trace": "tr Γ/d", "square": "|Γ|²/d", "icl": "exact risk"}


@click.command()
@takes_setting
@click.option("--sizes", default="16,32,64", show_default=True, metavar="D,D,D", help="Three or more values of d.")
@click.option("--xi-power", type=float, metavar="P", help="Kernel exp:length^P at each size, instead of --kernel.")
@click.option("--replicates", type=int, default=40, show_default=True, metavar="R", help="Pretrainings at each size.")
@seed
@as_json
@quiet
def concentration(
    setting: Setting,
    sizes: str,
    xi_power: float | None,
    replicates: int,
    seed: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Pretrain at growing d with fixed ratios; fit powers of d to the scale of Γ* and to its exact risk."""
    from .. import simulate as simulations

    family, chosen = family_of(setting, xi_power), sizes_of(sizes)
    with progress("pretrainings", len(chosen) * max(replicates, 0), quiet) as advance:
        found = simulations.concentration(
            family,
            chosen,
            ridge=setting.ridge,
            replicates=replicates,
            seed=seed,
            on_replicate=lambda d, done: advance(f"d = {d}"),
        )
    if as_json:
        print_json(found)
        return
    print(f"{'':<12}{'':<20}" + "".join(f"{f'd = {d}':<20}" for d in found.sizes) + f"{'power of d':<18}verdict")
    for name, label in QUANTITIES.items():
        trend = getattr(found, name)
        variances = [f"{v:.3g}" for v in trend.variances]
        _line(label, "mean", [text(m) for m in trend.means], trend.mean_power, trend.scale)
        _line("", "variance", variances, trend.variance_power, "")
        _line("", "variance/mean²", [""] * len(variances), trend.relative_power, trend.verdict)
    print(found.summary)


def _line(label: str, kind: str, cells: list[str], power: tuple[float, float, float, int], verdict: str) -> None:
    fitted = f"{power[0]:+.2f} ± {power[1]:.2f}"
    print(f"{label:<12}{kind:<20}" + "".join(f"{cell:<20}" for cell in cells) + f"{fitted:<18}{verdict}".rstrip())


def sizes_of(text: str) -> list[int]:
    """The values of d in `16,32,64`."""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise InputError(f"sizes must be integers separated by commas, such as 16,32,64; got '{text}'") from None


def family_of(setting: Setting, xi_power: float | None) -> Callable[[int], Pretraining]:
    """The pretraining at each d of a setting that is given by its ratios.

    Raises:
        InputError: a size in place of its ratio, a missing ratio, a test prompt, or two kernels.
    """
    if any(getattr(setting, name) is not None for name in ("d", *RATIOS)):
        raise InputError("concentration takes --sizes and the ratios --alpha --tau --kappa, not sizes of their own")
    if setting.alpha is None or setting.tau is None:
        raise InputError("concentration needs --alpha and --tau: lengths and sequences grow with d at these ratios")
    if any(getattr(setting, f"test_{name}") is not None for name in ("length", "kernel", "query", "noise")):
        raise InputError("concentration is tested on the prompts that are pretrained on: give no test prompt")
    if xi_power is None:
        return lambda d: replace(setting, d=d).pretraining
    if setting.kernel != "iid":
        raise InputError("give --kernel or --xi-power, not both")
    power = number(xi_power, "xi-power")

    def growing(d: int) -> Pretraining:
        length = replace(setting, d=d).prompt.length
        if power * math.log(length) > 200:
            raise InputError(f"length^{power:g} is beyond any correlation length at length {length}")
        return replace(setting, d=d, kernel=f"exp:{length**power:.12g}").pretraining

    return growing
