"""Minimum of a smooth function of one variable.

scipy.optimize would do, but loading it takes longer than the searches here.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np


def minimise_on_grid(
    function: Callable[[np.ndarray], np.ndarray], grid: np.ndarray, rounds: int = 4
) -> tuple[float, float]:
    """Least value of a vectorised function on [grid[0], grid[-1]], by grids within the best cell.

    Args:
        function: values of an array of arguments, elementwise.
        grid: increasing trial arguments, close enough to separate local minima.
        rounds: refinements; each divides the uncertainty by 10.

    Returns:
        The argument and the value.
    """
    values = function(grid)
    for _ in range(rounds):
        i = int(np.argmin(values))
        best, least = float(grid[i]), float(values[i])
        grid = np.linspace(grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)], 21)
        values = function(grid)
        if least < values.min():  # keep the old centre against rounding
            grid, values = np.append(grid, best), np.append(values, least)
            order = np.argsort(grid)
            grid, values = grid[order], values[order]
    i = int(np.argmin(values))
    return float(grid[i]), float(values[i])


def golden_section(function: Callable[[float], float], low: float, high: float, steps: int) -> float:
    """Argument of the least value seen by a golden-section search."""
    ratio = (math.sqrt(5) - 1) / 2
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    fa, fb = function(a), function(b)
    for _ in range(steps):
        if fa <= fb:
            high, b, fb = b, a, fa
            a = high - ratio * (high - low)
            fa = function(a)
        else:
            low, a, fa = a, b, fb
            b = low + ratio * (high - low)
            fb = function(b)
    return a if fa <= fb else b


def parabola(function: Callable[[float], float], start: float, step: float) -> float:
    """Vertex of the parabola through three points, after walking until the middle one is the least."""
    low, middle, high = (function(start + i * step) for i in (-1, 0, 1))
    for _ in range(5):
        if low < middle:
            start, low, middle, high = start - step, function(start - 2 * step), low, middle
        elif high < middle:
            start, low, middle, high = start + step, middle, high, function(start + 2 * step)
        else:
            break
    curvature = low - 2 * middle + high
    if curvature <= 0:
        return start
    return start + step * float(np.clip(0.5 * (low - high) / curvature, -1.0, 1.0))
