"""What attention of each kind would make of a prompt like the measured data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import theory
from ..errors import InputError
from ..kernels import parse
from ..prompt import Pretraining, Prompt, Risk, number, whole
from ..theory._positional import linear_optimum
from ._measure import Measurement

QUERIES = ("independent", "continues")
LONGEST = 512
"""Contexts beyond this are left out of curves: diagonalising them takes seconds each."""


@dataclass(frozen=True)
class Prediction:
    """Population risk of every class of predictors against the context length, tokens of the fitted kernel.

    Attributes:
        d: token dimension, the effective dimension rounded.
        noise: label-noise variance.
        kernel: SPEC of the tokens.
        lengths: context lengths, shape (m,).
        risks: by query (independent, continues) and method, risks at these lengths, shape (m,) each.
        here: by query and method, the risk at the measured length.
        suits: by query, the class of attention with the least risk at the measured length.
        bounds: by query, the risk of plain linear attention at the measured length from k0, k1 and k2 themselves in
            place of the fitted kernel, and that at both ends of the interval of k2. An estimate below the least
            possible value (0 for k0 and k1, 1 for k2) counts as that value here.
        pretrained: by query, the error of reduced linear attention pretrained at the given sizes, or None.
    """

    d: int
    noise: float
    kernel: str
    lengths: np.ndarray
    risks: dict[str, dict[str, np.ndarray]]
    here: dict[str, dict[str, float]]
    suits: dict[str, str]
    bounds: dict[str, tuple[float, float, float]]
    pretrained: dict[str, Risk] | None = None


def predict(
    measurement: Measurement,
    *,
    noise: float | None = None,
    kernel: str | None = None,
    lengths: np.ndarray | list[int] | None = None,
    sequences: int | None = None,
    tasks: int | None = None,
    ridge: float = 0.0,
) -> Prediction:
    """Predicted ICL error of prompts like the measured data, for every kind of attention and for the Bayes floor.

    Args:
        measurement: of `measure`.
        noise: label-noise variance; default that of the measurement.
        kernel: SPEC; default the fitted kernel of the measurement.
        lengths: context lengths; default powers of 2 up to twice the measured length.
        sequences: number of pretraining sequences, which adds the error of the pretrained reduced model.
        tasks: number of pretraining tasks; default one a sequence.
        ridge: strength of that pretraining.

    Raises:
        InputError: sizes out of range, or tasks or a ridge without sequences.

    Validity: Gaussian tokens with the fitted kernel, labels linear in them, d the effective dimension. A measurement
    that is not valid predicts for its own length at best.

    >>> import numpy as np
    >>> from corricl.measure import measure
    >>> found = predict(measure(np.random.default_rng(0).standard_normal((40, 16, 4))), lengths=[])
    >>> found.suits["independent"]
    'positional'
    """
    noise = measurement.noise if noise is None else number(noise, "noise")
    if sequences is None and (tasks is not None or ridge != 0):
        raise InputError("tasks and a ridge belong to a pretraining: give its number of sequences")
    spec, d = kernel or measurement.kernel, max(1, round(measurement.preprocessing.dimension))
    chosen = _default_lengths(measurement.length) if lengths is None else [whole(x, "length") for x in lengths]
    law = parse(spec)

    def risks(length: int, query: str) -> dict[str, float]:
        prompt = Prompt(d, length, law, query, noise)
        return {method: theory.risk(prompt, method=method).icl for method in theory.PROMPT_METHODS}

    curves, here, bounds = {}, {}, {}
    for query in QUERIES:
        found = {length: risks(length, query) for length in dict.fromkeys([*chosen, *_own(measurement)])}
        curves[query] = {m: np.array([found[length][m] for length in chosen]) for m in theory.PROMPT_METHODS}
        here[query] = found.get(measurement.length, {})
        bounds[query] = _linear(measurement, d, noise, query)
    suits = {
        q: min((m for m in values if m != "bayes"), key=values.__getitem__) for q, values in here.items() if values
    }
    pretrained = None
    if sequences is not None:
        laws = {query: Prompt(d, measurement.length, law, query, noise) for query in QUERIES}
        pretrained = {q: theory.risk(Pretraining(prompt, sequences, tasks), ridge) for q, prompt in laws.items()}
    return Prediction(d, noise, spec, np.array(chosen), curves, here, suits, bounds, pretrained)


def _own(measurement: Measurement) -> list[int]:
    return [measurement.length] if measurement.length <= LONGEST else []


def _default_lengths(length: int) -> list[int]:
    """Powers of two from 4 to twice the length, and the length itself."""
    powers = [2**p for p in range(2, 30) if 2**p <= min(2 * length, LONGEST)]
    return sorted({*powers, *([length] if length <= LONGEST else [])})


def _linear(measurement: Measurement, d: int, noise: float, query: str) -> tuple[float, float, float]:
    """Risk of plain linear attention from k0, k1, k2 themselves: at the estimate and at both ends of k2."""
    length = measurement.length
    k0, k1 = (measurement.k0.estimate, measurement.k1.estimate) if query == "continues" else (0.0, 0.0)
    k0, k1 = max(k0, 0.0), max(k1, 0.0)

    def risk(k2: float) -> float:
        return float(linear_optimum(d, length, noise, k0, k1, max(k2, 1.0))[0])

    return risk(measurement.k2.estimate), risk(measurement.k2.low), risk(measurement.k2.high)
