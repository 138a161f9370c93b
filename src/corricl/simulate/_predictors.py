"""The predictors whose optima the theory gives, as callables for `score`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ..errors import InputError
from ..numerics import ZERO
from ..prompt import Prompt
from ..theory import risk

Predictor: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""From (x, y, query) of shapes (m, length, d), (m, length) and (m, d) to m predictions."""


def weighted_linear(weights: np.ndarray | float) -> Predictor:
    """sum_a c_a y_a (x_a.x_t): linear attention with position weights of shape (length,), or one for all."""

    def predict(x: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
        return (_scores(x, query) * y * weights).sum(1)

    return predict


def softmax(beta: float, value: float) -> Predictor:
    """value * sum_a p_a y_a with p = softmax_a(beta x_t.x_a)."""

    def predict(x: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
        z = beta * _scores(x, query)
        p = np.exp(z - z.max(1, keepdims=True))
        return value * (p * y).sum(1) / p.sum(1)

    return predict


def context_ridge(penalty: float) -> Predictor:
    """x_t.w of ridge regression on the context; with the label noise as penalty it is the Bayes predictor."""

    def predict(x: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
        matrix = np.einsum("mai,maj->mij", x, x) + penalty * np.eye(x.shape[2])
        right = np.einsum("mai,ma->mi", x, y)
        if penalty > 0:
            return (np.linalg.solve(matrix, right[..., None])[..., 0] * query).sum(1)
        return np.einsum("mij,mj,mi->m", np.linalg.pinv(matrix, rcond=ZERO, hermitian=True), right, query)

    return predict


def _scores(x: np.ndarray, query: np.ndarray) -> np.ndarray:
    return np.einsum("mai,mi->ma", x, query)


def optimal(method: str, prompt: Prompt) -> Predictor:
    """The predictor that a theory's method calls optimal on a prompt.

    Args:
        method: linear, positional, softmax or bayes.
        prompt: the law.
    """
    details = risk(prompt, method=method).details
    match method:
        case "linear":
            return weighted_linear(details["scale"] * prompt.d / prompt.length)
        case "positional":
            return weighted_linear(details["weights"])
        case "softmax":
            return softmax(details["beta"], details["value"])
        case "bayes":
            return context_ridge(prompt.noise)
    raise InputError(f"method '{method}' has no optimal predictor; allowed: linear, positional, softmax, bayes")
