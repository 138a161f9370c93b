"""One-layer softmax attention at its population optimum. Derivation: docs/theory/softmax.md."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..numerics import ZERO, difference, eigen
from ..prompt import Caution, Prompt, Risk
from ._grid import golden_section, parabola
from ._lattice import POINTS, radius_and_normals

SHIFTS = 4
"""Copies of the lattice over which a moment is averaged."""
GRID = (0.0, 0.05, 0.1, 0.2, 0.35, 0.55, 0.8, 1.1, 1.5, 2.1, 3.0, 5.0, 9.0, 18.0, 40.0, 100.0)
"""Trial values of |beta| / sqrt(d); at the last one attention is all on one token."""
SUBSET = 4
"""The coarse search uses every fourth point of the first copy of the lattice (a stratified sample of the radius)."""


@dataclass(frozen=True)
class _Law:
    """The joint law of the scores of one prompt, as weighted points.

    With x_a = k_a x_t + (rest), the rest having covariance C/d per coordinate, C = K - k k':
    radius s = |x_t|^2 and scores z_a = x_t.x_a = k_a s + sqrt(s/d) r_a with r ~ N(0, C).
    """

    prompt: Prompt
    radius: np.ndarray  # (points,)
    scores: np.ndarray  # (points, length)
    residual: np.ndarray  # C, (length, length)
    variance: np.ndarray  # its diagonal, (length,)
    diagonal: bool  # C is diagonal, so that no matrix product is needed
    kinds: np.ndarray  # distinct pairs (k_a, C_aa), one kind for an independent query, (2, kinds)
    counts: np.ndarray  # tokens of each kind, (kinds,)

    @classmethod
    def of(cls, prompt: Prompt, shifts: int) -> _Law:
        k = prompt.query_vector
        kernel = prompt.kernel.matrix(prompt.length)
        residual = kernel - np.outer(k, k)
        variance = difference(np.diagonal(kernel), k * k)
        radius, normals = radius_and_normals(prompt.d, prompt.length, shifts)
        diagonal = not (residual - np.diag(np.diagonal(residual))).any()
        if diagonal:
            rest = normals * np.sqrt(variance)
        else:
            values, vectors = eigen(residual, size=float(k @ k))
            rest = normals @ (vectors * np.sqrt(values))[:, ::-1].T  # largest variance on the best coordinates
        rest *= np.sqrt(radius / prompt.d)[:, None]
        rest += k * radius[:, None]
        kinds, counts = np.unique(np.stack([k, variance]), axis=1, return_counts=True)
        return cls(prompt, radius, rest, residual, variance, diagonal, kinds, counts.astype(np.float64))

    def moments(self, beta: float, rows: slice) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """Integrands of the two moments at each point, shape (points, 2), and what `_controls` needs.

        They are sum_a p_a x_t.x_a and sum_ab p_a p_b (x_a.x_b + noise delta_ab) given the scores.
        `rows` selects points.
        """
        d = self.prompt.d
        z, s = self.scores[rows], self.radius[rows]
        top = (z if beta >= 0 else -z).max(1) * abs(beta)
        p = np.exp(beta * z - top[:, None])
        total = p.sum(1)
        p /= total[:, None]
        mean = np.einsum("ij,ij->i", p, z)
        product = p * self.variance if self.diagonal else p @ self.residual
        bulk = np.einsum("ij,ij->i", product, p) * ((d - 1) / d)
        power = np.einsum("ij,ij->i", p, p)
        values = np.stack([mean, mean * mean / s + bulk + self.prompt.noise * power], axis=1)
        return values, (s, top, total, mean)

    def estimate(self, beta: float) -> np.ndarray:
        """Integrands of the two moments with the controls taken out, shape (points, 2): their means are the moments."""
        copies = len(self.radius) // POINTS
        values, controls = [], []
        for copy in range(copies):
            part, sums = self.moments(beta, slice(copy * POINTS, (copy + 1) * POINTS))
            values.append(part)
            controls.append(self._controls(beta, *sums))
        value, control = np.concatenate(values), np.concatenate(controls)
        slope = np.linalg.lstsq(control - control.mean(0), value - value.mean(0), rcond=1e-10)[0]
        return value - control @ slope

    def rough(self, beta: float) -> np.ndarray:
        """The two moments from few points, shape (2,)."""
        return self.moments(beta, slice(0, POINTS, SUBSET))[0].mean(0)

    def _controls(self, beta: float, s: np.ndarray, top: np.ndarray, total: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """Variables of mean exactly 0 that move with the integrands, shape (points, 3 or 1).

        The radius, and the normaliser and the numerator of the softmax over their exact means given the radius.
        """
        d, (k, variance), counts = self.prompt.d, self.kinds, self.counts
        # A lognormal sum whose logarithm has a variance beyond a few lives on draws that no sample holds:
        # its sample mean is then far from the exact one and would mislead, so it is not used.
        if beta * beta * variance.max() / d * (1 + 2 * math.sqrt(2 / d)) > 4:
            return s[:, None] - 1
        centre = s[:, None] * k  # E[z_a | s]
        spread = s[:, None] * (variance / d)  # Var[z_a | s]
        weight = np.exp(beta * centre + (beta * beta / 2) * spread - top[:, None])
        expected = weight @ counts
        normaliser = total / expected - 1
        numerator = (mean * total - (weight * (centre + beta * spread)) @ counts) / expected
        return np.stack([s - 1, normaliser, numerator], axis=1)


def _pair_risk(moments: np.ndarray, value: float | None, noise: float) -> float:
    """Risk of moments (A, B) at V, or at the best V = A/B."""
    first, second = moments
    if value is not None:
        return 1 + noise - 2 * value * first + value * value * second
    return 1 + noise - (first * first / second if second > ZERO else 0.0)


def _best_beta(law: _Law, value: float | None) -> float:
    """Minimise the risk over beta: grid and golden section on few points, then a parabola on all of them."""
    noise, scale = law.prompt.noise, math.sqrt(law.prompt.d)
    # (beta, V) and (-beta, -V) are equally good for an independent query. A query that resembles
    # the negative of a token wants a negative beta, and V < 0 with it.
    symmetric = law.prompt.query.is_independent and value is None
    negative = [] if symmetric else [-b for b in GRID[:0:-2]]
    grid = [scale * b for b in (*negative, *GRID)]

    def rough(beta: float) -> float:
        return _pair_risk(law.rough(beta), value, noise)

    risks = np.array([rough(beta) for beta in grid])
    tied = risks <= risks.min() + ZERO * (1 + noise)
    i = min(np.flatnonzero(tied), key=lambda j: abs(grid[j]))
    if tied[max(i - 1, 0) : i + 2].sum() > 1:  # from here on beta does not matter: the least
        return grid[i]
    start = golden_section(rough, grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)], steps=5)

    def exact(beta: float) -> float:
        return _pair_risk(law.estimate(beta).mean(0), value, noise)

    return parabola(exact, start, max(0.2 * abs(start), 0.03 * scale))


def softmax(
    prompt: Prompt,
    test: Prompt | None = None,
    beta: float | None = None,
    value: float | None = None,
    *,
    shifts: int = SHIFTS,
) -> Risk:
    """Population risk of one-layer softmax attention, exact at finite d and length up to a stated quadrature error.

    The predictor is V sum_a p_a y_a with p = softmax_a(beta x_t.x_a). Its risk is
    1 + noise - 2 V E[sum p_a x_t.x_a] + V^2 E[sum p_a p_b (x_a.x_b + noise delta_ab)], and both
    expectations need only the radius of the query and a Gaussian vector of `length` scores.

    Args:
        prompt: the law on which (beta, V) is optimal.
        test: the law on which it is scored (another kernel, query, length or noise; the same d); None scores
            it on `prompt`.
        beta: inverse temperature, any real; None takes the best one.
        value: V; None takes the best one at that beta.
        shifts: copies >= 2 of the quadrature lattice; more are slower and more exact.

    Returns:
        Risk with method "softmax"; details hold beta, value, b = beta / sqrt(d) and numerical_error, a
        standard error of icl.

    Raises:
        InputError: the test prompt has another d, or a number is out of range.

    Validity: every d, length and kernel. Time and memory grow as length^2.

    See docs/theory/softmax.md.

    >>> round(softmax(Prompt(32, 128, "exp:20", "continues", 0.01)).icl, 2)
    0.14
    """
    test = prompt if test is None else test
    _require(prompt, test, beta, value, shifts)
    law = _Law.of(prompt, shifts)
    best = _best_beta(law, value) if beta is None else float(beta)
    moments = law.estimate(best)
    if value is None:
        first, second = moments.mean(0)
        value = float(first / second) if second > ZERO else 0.0  # tokens may cancel
    if test != prompt:
        moments = _Law.of(test, shifts).estimate(best)
    icl = max(0.0, float(_pair_risk(moments.mean(0), value, test.noise)))
    error = _error(moments @ [-2 * value, value * value])
    scale = math.sqrt(prompt.d)
    warnings = _cautions(icl, error, best / scale if beta is None else 0.0)
    k0, k1, k2 = test.statistics
    details = {"beta": float(best), "value": float(value), "b": best / scale, "numerical_error": error}
    return Risk(icl, None, "softmax", error < 0.1 * icl + 1e-9, warnings, k0, k1, k2, details=details)


def _error(losses: np.ndarray) -> float:
    """Standard error of the mean over the points: between copies, or as of independent points where that is more.

    The first is right and the second too large by about half; but few copies make the first an uncertain estimate.
    """
    copies = losses.reshape(-1, POINTS).mean(1)
    return float(max(copies.std(ddof=1) / math.sqrt(len(copies)), losses.std() / math.sqrt(len(losses))))


def _require(prompt: Prompt, test: Prompt, beta: float | None, value: float | None, shifts: int) -> None:
    if test.d != prompt.d:
        raise InputError(
            f"the test prompt must have the token dimension of the pretraining prompt, {prompt.d}; got {test.d}"
        )
    for name, x in (("beta", beta), ("value", value)):
        if x is not None and not math.isfinite(x):
            raise InputError(f"{name} must be finite; got {x}")
    if shifts < 2 or int(shifts) != shifts:
        raise InputError(f"shifts must be an integer >= 2; got {shifts}")


def _cautions(icl: float, error: float, b: float) -> tuple[Caution, ...]:
    out = []
    if error > 0.01 * icl + 1e-9:
        out.append(Caution("numerical_error", "the quadrature error passes 1 %: ask for more shifts", {"error": error}))
    if abs(b) >= 0.99 * GRID[-1]:
        message = "the best attention picks one token: beta is the largest that was tried and stands for infinity"
        out.append(Caution("beta_at_border", message, {"b": b}))
    return tuple(out)
