"""The current state as a command and as Python."""

from __future__ import annotations

import math
import shlex

from ._state import State


def command(state: State) -> str:
    """Commands that print the numbers of the page.

    >>> print(command(State()).splitlines()[0])
    corricl theory --d 32 --length 128 --sequences 4096 --tasks 320 --noise 0.01 --ridge 1e-08 --kernel exp:2 \
--query independent
    """
    setting = shlex.join(state.words())
    return "\n".join(
        (
            f"corricl theory {setting}",
            f"corricl theory {setting} --method weak",
            f"corricl compare {setting}",
            f"corricl simulate {setting}",
        )
    )


def python(state: State) -> str:
    """The same from Python."""
    tasks = "None" if state.tasks == math.inf else repr(state.tasks)
    law = f"kernel={state.kernel!r}, query={state.query!r}, noise={state.noise!r}"
    return f"""from corricl import Pretraining, Prompt, theory

prompt = Prompt(d={state.d}, length={state.length}, {law})
pretraining = Pretraining(prompt, sequences={state.sequences}, tasks={tasks})
risk = theory.risk(pretraining, ridge={state.ridge!r})
print(risk.method, risk.icl, risk.idg, risk.query_gain)
print(risk.k0, risk.k1, risk.k2, risk.effective_length)
print(theory.equivalent_length(prompt, "linear").equivalent_length)
print(theory.equivalent_length(prompt, "softmax").equivalent_length)
"""
