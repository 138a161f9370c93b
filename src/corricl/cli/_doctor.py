"""`corricl doctor`: is this installation able to give the right numbers?"""

from __future__ import annotations

import os
import platform
from importlib.metadata import version

import click

from .. import __version__
from ._options import as_json
from ._output import print_json, print_lines


@click.command()
@as_json
def doctor(as_json: bool) -> None:
    """Check float64, threads, devices and versions, and list the known kernels."""
    import jax

    from ..kernels import known_kernels
    from ..prompt import Pretraining, Prompt
    from ..simulate import pretrain

    solution, _, _ = pretrain(Pretraining(Prompt(4, 8, noise=0.1), 60), 1e-3, seed=0)
    report = {
        "corricl": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "jax", "jaxlib")},
        "simulation_dtype": str(solution.gamma.dtype),
        "devices": [str(device) for device in jax.devices()],
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": {k: os.environ[k] for k in ("OMP_NUM_THREADS", "XLA_FLAGS") if k in os.environ},
        "kernels": list(known_kernels()),
        "ok": str(solution.gamma.dtype) == "float64",
    }
    if as_json:
        print_json(report)
    else:
        print_lines([(name, ", ".join(v) if isinstance(v, list) else v or None) for name, v in report.items()])
