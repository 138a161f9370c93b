"""The estimators that come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ._estimator import Estimator, Value

if TYPE_CHECKING:
    from ..setting import Setting


class Theory(Estimator):
    """`theory:METHOD`, a predicted risk (`corricl.theory.risk`); of ratios alone, without d, its limit."""

    name = "theory"
    numerics = 2  # in version 1 eigenvectors had the signs of the linear-algebra library; so below
    random = False

    def __init__(self, argument: str = "") -> None:
        from ..theory import DEFAULT, METHODS

        super().__init__(argument or DEFAULT)
        if self.argument not in METHODS:
            raise InputError(f"unknown estimator 'theory:{argument}'; the methods of theory are {', '.join(METHODS)}")

    def check(self, setting: Setting) -> None:
        from ..theory import PROMPT_METHODS

        if setting.is_limit and self.argument not in ("weak", "auto"):
            raise InputError(f"the estimator 'theory:{self.argument}' needs sizes: give d")
        if setting.is_limit and setting.test is not None:
            raise InputError("a test prompt of its own needs sizes: give d")
        if self.argument not in PROMPT_METHODS and not setting.is_limit:
            super().check(setting)

    def run(self, setting: Setting, **_: Any) -> dict[str, Value]:
        from .. import theory

        risk = theory.of_setting(setting, self.argument)
        names = ("icl", "idg", "k0", "k1", "k2", "effective_length", "equivalent_length", "query_gain")
        labels = {"method": risk.method, "warnings": ",".join(caution.code for caution in risk.warnings)}
        return {**{name: getattr(risk, name) for name in names}, "valid": float(risk.valid), **labels}


class Simulate(Estimator):
    """`simulate`, one replicate of the finite-size reduced model (`corricl.simulate.replicate`).

    `simulate:checked` adds the error on as many drawn test sequences (`icl_data`) and the two published
    approximations of the exact risk (`icl_weak_approximation`, `icl_strong_approximation`).
    """

    name = "simulate"
    numerics = 3

    def __init__(self, argument: str = "") -> None:
        super().__init__(argument)
        if argument not in ("", "checked"):
            raise InputError(f"'simulate' and 'simulate:checked' are estimators; got 'simulate:{argument}'")

    def run(self, setting: Setting, *, seed: int, replicate: int, folder: Path) -> dict[str, Value]:
        from .. import simulate

        subject, at = setting.pretraining, {"seed": seed, "index": replicate}
        made = simulate.replicate(subject, setting.ridge, test=setting.test, **at)
        names = ("icl", "idg", "trace", "square", "residual", "condition", "method")
        values: dict[str, Value] = {**{name: getattr(made, name) for name in names}, "gap": made.icl - made.idg}
        if not self.argument:
            return values
        from ..theory import exact

        gamma, prompt = made.gamma, setting.test or setting.prompt
        traces = exact.moments(gamma)
        return {
            **values,
            "icl_data": simulate.data_error(gamma, prompt, sequences=subject.sequences, **at),
            "icl_weak_approximation": float(exact.weak_approximation(traces, prompt)),
            "icl_strong_approximation": float(exact.strong_approximation(traces, prompt)),
        }


class _OfPrompt(Estimator):
    """An estimator that needs a prompt alone and takes a method of theory as argument."""

    def __init__(self, argument: str = "") -> None:
        from ..theory import PROMPT_METHODS

        super().__init__(argument)
        if argument not in PROMPT_METHODS:
            raise InputError(
                f"estimator '{self.name}:METHOD' takes one of {', '.join(PROMPT_METHODS)}; got '{argument}'"
            )

    def check(self, setting: Setting) -> None:
        if setting.is_limit:
            raise InputError(f"the estimator '{self.name}' needs sizes: give d")


class Score(_OfPrompt):
    """`score:METHOD`, the optimal predictor of a class on 4096 drawn prompts (`corricl.simulate.score`)."""

    name = "score"
    numerics = 2

    def run(self, setting: Setting, *, seed: int, replicate: int, folder: Path) -> dict[str, Value]:
        from .. import simulate

        predictor = simulate.optimal(self.argument, setting.prompt)
        drawn = simulate.score(predictor, setting.test or setting.prompt, seed=seed, index=replicate, prompts=4096)
        return {"icl": drawn.mean}


class EquivalentLength(_OfPrompt):
    """`equivalent-length:METHOD`, the iid length at which the method's optimum has the same risk (linear, softmax)."""

    name = "equivalent-length"
    numerics = 2
    random = False

    def run(self, setting: Setting, **_: Any) -> dict[str, Value]:
        from .. import theory

        risk = theory.equivalent_length(setting.prompt, self.argument)
        return {"icl": risk.icl, "equivalent_length": risk.equivalent_length}


class Attention(Estimator):
    """`attention:MODEL`, one training run of an attention model (`corricl.attention.train`), resumed where it stopped.

    The argument is a model's string with its options, such as `attention:softmax+mlp;layers=4;width=64;steps=4000`,
    see `corricl.attention.configure`. It gives `icl`, with fixed data `idg`, and what the run was like.
    """

    name = "attention"
    numerics = 2

    def __init__(self, argument: str = "") -> None:
        super().__init__(argument)
        if not argument:
            raise InputError("the estimator 'attention:MODEL' needs a model, such as attention:linear;steps=2000")

    def check(self, setting: Setting) -> None:
        from ..attention import configure

        if configure(self.argument)[1].data == "fixed":
            super().check(setting)
        elif setting.is_limit:
            raise InputError("the estimator 'attention' needs sizes: give d")

    def run(self, setting: Setting, *, seed: int, replicate: int, folder: Path) -> dict[str, Value]:
        from .. import attention

        architecture, config = attention.configure(self.argument)
        subject = attention.subject_of(setting, config)
        trained = attention.train(architecture, subject, config, seed=seed, index=replicate, folder=folder)
        icl = trained.risk(setting.test).mean
        seen = {} if config.data == "fresh" and subject.tasks is None else {"idg": trained.idg().mean}
        names = ("validation", "train", "steps", "selected_step", "rate")
        return {"icl": icl, **seen, **{name: getattr(trained, name) for name in names}}
