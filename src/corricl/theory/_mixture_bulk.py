"""The deterministic equivalent behind the mixture theory: resolvent, fixed point, mean and residual.

Section numbers refer to docs/theory/mixture.md. A leading axis `shifts` runs over the copies of
the quasi-random points; each is solved by itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..errors import ConvergenceError
from ..numerics import ZERO, difference
from ._mixture_points import Sequences, Spectrum

_STEPS = 200
_TOLERANCE = 1e-9
_LEAST = 0.05  # a sequence's leverage is positive; at d < 10 the leading orders in 1/d can fail to keep it so
CHANNELS = 5  # mu, nu, eta, theta, chi


class Mean(NamedTuple):
    """Normalised traces of the mean Gamma = [Gamma_1 | gamma_2], shape (shifts,) each (section 4).

    R is the task covariance and w the average task; ' transposes.
    """

    t: np.ndarray  # tr(Gamma_1)/d
    t_R: np.ndarray  # tr(Gamma_1 R)/d
    t_u: np.ndarray  # w.gamma_2/d
    square: np.ndarray  # tr(Gamma_1 Gamma_1')/d
    cross: np.ndarray  # tr(Gamma_1 Gamma_1)/d
    square_R: np.ndarray  # tr(Gamma_1 R Gamma_1')/d
    square_Ru: np.ndarray  # (Gamma_1 w).gamma_2/d
    square_u: np.ndarray  # |gamma_2|^2/d


class Bulk(NamedTuple):
    """The solved fixed point (section 3)."""

    x: np.ndarray  # (shifts, 5): a, c, e, b, k
    g: np.ndarray  # (shifts, points): the weight that a sequence's residual keeps
    C: np.ndarray  # (shifts, 5, 5): minus the derivative of the resolvent's traces
    J: np.ndarray  # (shifts, 5, 5): derivative of the fixed-point map
    ridge: float  # lambda, or 1 where everything is divided by lambda


def features(seq: Sequences, d: int) -> np.ndarray:
    """Scales mu, nu, eta, theta, chi of each sequence's feature covariance, (5, shifts, points) (section 2)."""
    f, w2, p, m, o, v, s, u = seq
    nu = s * v * d / (d - 2)
    rest = v + o * o / _across(seq, d) / d
    power = s * (m * m * w2 + (p * p * s + 2 * p * (m * f + o)) / d + rest)  # |x_t|^2 |h|^2/d
    eta = ((m * f + p * s + o) ** 2 - power) * d / ((d - 1) * (d + 2))
    mu = s * m * m * w2 - nu / d
    nu = np.maximum(difference(power, mu + eta * (1 + 2 / d)), nu / 2)
    return np.array([mu, nu, eta, s * u * u, s * u * m * np.sqrt(w2)])


def _across(seq: Sequences, d: int) -> np.ndarray:
    """The part of |x_t|^2 orthogonal to the task."""
    return np.maximum(seq.s - seq.f**2 / (seq.w2 * d), ZERO * seq.s)


def _pair_traces(x: np.ndarray, ridge: float, spectrum: Spectrum, d: int) -> tuple[np.ndarray, ...]:
    """Traces of the 2x2 resolvent blocks of Gamma_1 over pairs of eigenvalues, and of its diagonal (section 3).

    Returns:
        P (shifts, 3), C (shifts, 3, 3), and with the average task's weights Q (shifts,) and minus its
        gradient (shifts, 3), and the mean D over rows (shifts, r).
    """
    R, weight, share = spectrum
    a, c, e = (x[:, j, None] for j in range(3))
    B = ridge + c + a * R  # A - e, (shifts, r)
    own = 1 / (B + 2 * e)  # (shifts, r): an entry on the diagonal is its own transpose
    Bi, Bj, e, Ri, Rj = B[:, :, None], B[:, None, :], e[..., None], R[:, None], R[None, :]
    determinant = Bi * Bj + e * (Bi + Bj)  # A_i A_j - e^2
    D, F = (Bi + e) / determinant, -e / determinant  # the first row of P
    row, column = Bi / determinant, Bj / determinant  # sums of the rows of P, where D and F cancel
    pair, felt = weight[:, None] * weight - np.diag(weight) / d, weight[:, None] * share
    scale = np.stack([R, np.ones_like(R), np.full_like(R, 2.0)])  # of the three operators there

    def mean(over: np.ndarray, q: np.ndarray) -> np.ndarray:
        return np.einsum("ij,sij->s", over, q)

    P = np.stack([mean(pair, q) for q in (Rj * D, D, row)], axis=1) + own @ (scale * weight).T / d
    C = np.einsum("sr,kr,lr->skl", own**2, scale, scale * weight) / d
    slope = np.empty((len(x), 3))
    products = (  # (P X P)_11 and (P X P)_11 + (P X P)_12 for X = diag(R_j, R_i), I, 11'
        (D * D * Rj + F * F * Ri, D * Rj * row + F * Ri * column),
        (D * D + F * F, D * row + F * column),
        (row * row, row * (row + column)),
    )
    for k, (first, summed) in enumerate(products):
        C[:, k] += np.stack([mean(pair, q) for q in (Rj * first, first, summed)], axis=1)
        slope[:, k] = mean(felt, first)
    return P, C, mean(felt, D), slope, np.einsum("i,sij->sj", weight, D)


def resolvent(x: np.ndarray, ridge: float, spectrum: Spectrum, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Traces P, (shifts, 5), of the resolvent and minus their derivative by (a, c, e, b, k), (shifts, 5, 5).

    P is the gradient of (half) the mean log-determinant of the blocks of Gamma_1 plus (1/d) log S,
    with S = ridge + b - k^2 Q the part of the last column that Gamma_1 does not explain (section 3).
    """
    b, k = x[:, 3], x[:, 4]
    P_pair, C_pair, Q, slope, D = _pair_traces(x, ridge, spectrum, d)
    S = ridge + b - k * k * Q
    gradient = np.concatenate([(k * k)[:, None] * slope, np.ones((len(x), 1)), (-2 * k * Q)[:, None]], axis=1)
    curvature = np.zeros((len(x), CHANNELS, CHANNELS))
    powers = [D**3 @ (spectrum.share * spectrum.nodes**j) for j in range(3)]  # exact at e = 0
    for i in range(3):
        for j in range(3):
            curvature[:, i, j] = -2 * k * k * powers[(i == 0) + (j == 0)]
    curvature[:, :3, 4] = curvature[:, 4, :3] = 2 * k[:, None] * slope
    curvature[:, 4, 4] = -2 * Q
    P, C = np.zeros((len(x), CHANNELS)), np.zeros((len(x), CHANNELS, CHANNELS))
    P[:, :3], C[:, :3, :3] = P_pair, C_pair
    S = S[:, None]
    P += gradient / S / d
    C += (gradient[:, :, None] * gradient[:, None, :] / S[..., None] ** 2 - curvature / S[..., None]) / d
    return P, C


def _map(
    x: np.ndarray, phi: np.ndarray, spectrum: Spectrum, tau: float, ridge: float, unit: float, d: int
) -> tuple[np.ndarray, Bulk]:
    """The fixed-point map E[g phi] with g = 1/(unit + phi.P/tau), and its derivative."""
    P, C = resolvent(x, ridge, spectrum, d)
    leverage = np.einsum("ksn,sk->sn", phi, P) / tau
    least = _LEAST * phi[1] * P[:, 1, None] / tau
    g = 1 / (unit + np.maximum(leverage, least))
    image = np.mean(g * phi, axis=2).T
    free = np.where(leverage > least, g * g, 0.0)
    gram = np.einsum("ksn,lsn->skl", free * phi, phi) / (tau * phi.shape[2])
    return image, Bulk(x, g, C, gram @ C, ridge)


def bulk(phi: np.ndarray, spectrum: Spectrum, tau: float, ridge: float, d: int) -> Bulk:
    """Solve for a, c, e, b, k by Newton's method from above.

    The map is increasing and, for one unknown, concave, so that the steps descend to its largest
    fixed point. Below the threshold tau = 1+1/d everything is divided by the ridge, which leaves a
    finite limit at ridge 0. Where features are missing altogether (a query that copies its context
    sees symmetric Gamma only) ridge 0 is the limit of small ridges, and 1e-7 of the scale stands for it.

    Raises:
        ConvergenceError: when the relative change is above 1e-9 after 200 steps.
    """
    with np.errstate(all="ignore"):  # what overflows is not finite and is refused below
        found, error = _newton(phi, spectrum, tau, ridge, d)
        if found is None and ridge == 0:
            found, error = _newton(phi, spectrum, tau, 1e-7 * float(phi[:3].sum(axis=0).mean()), d)
    if found is None:
        raise ConvergenceError(
            f"the mixture theory's fixed point did not converge (relative change {error:.3g} after {_STEPS} steps); "
            "a larger ridge helps"
        )
    return found


def _newton(phi: np.ndarray, spectrum: Spectrum, tau: float, ridge: float, d: int) -> tuple[Bulk | None, float]:
    """The fixed point, or None, and the last relative change."""
    level, unit = (ridge, 1.0) if tau > 1 + 1 / d else (1.0, ridge)
    above = 1.0 if unit == 1 else min(1 / max(unit, 1e-300), 2 * tau / max(1 + 1 / d - tau, 1e-12))
    x = np.mean(phi, axis=2).T * above
    image, found = _map(x, phi, spectrum, tau, level, unit, d)
    error = _change(image, x, level)
    damping = np.ones(len(x))
    for _ in range(_STEPS):
        if error.max() <= _TOLERANCE:
            return found, float(error.max())
        jump = np.eye(CHANNELS) - found.J
        if not np.isfinite(jump).all():
            break
        step = np.linalg.solve(jump, (image - x)[..., None])[..., 0]
        trial = x + damping[:, None] * step
        inside = _inside(trial, level, spectrum)
        trial = np.where(inside[:, None], trial, image)  # the map never leaves the domain
        image_trial, found_trial = _map(trial, phi, spectrum, tau, level, unit, d)
        error_trial = _change(image_trial, trial, level)
        worse = inside & ~(error_trial < error) & (damping > 1e-3)
        damping = np.where(worse, damping / 2, 1.0)
        keep = worse[:, None]
        x, image = np.where(keep, x, trial), np.where(keep, image, image_trial)
        error = np.where(worse, error, error_trial)
        found = Bulk(
            x,
            _select(worse, found.g, found_trial.g),
            _select(worse, found.C, found_trial.C),
            _select(worse, found.J, found_trial.J),
            level,
        )
    return None, float(error.max())


def _select(first: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Copies of `a` where `first`, else of `b`."""
    return np.where(first.reshape(-1, *[1] * (a.ndim - 1)), a, b)


def _change(image: np.ndarray, x: np.ndarray, level: float) -> np.ndarray:
    """Relative change under the map, shape (shifts,); inf where it is not a number."""
    change = (np.abs(image - x) / (level + np.abs(x).max(axis=1, keepdims=True))).max(axis=1)
    return np.where(np.isfinite(change), change, np.inf)


def _inside(x: np.ndarray, ridge: float, spectrum: Spectrum) -> np.ndarray:
    """True where every block of the resolvent is certainly positive, shape (shifts,)."""
    a, c, e, b, k = x.T
    floor = ridge + c + 2 * np.minimum(e, 0) + np.minimum(a, 0) * spectrum.nodes[-1]
    positive = np.where(floor > 0, floor, np.inf)[:, None]
    inverse = 1 / (positive + np.maximum(a, 0)[:, None] * spectrum.nodes)
    left = ridge + b - k * k * (inverse @ spectrum.share)
    return (floor > 0) & (left > 0)


def mean_gamma(seq: Sequences, phi: np.ndarray, found: Bulk, spectrum: Spectrum, d: int) -> Mean:
    """Traces of the mean Gamma = [X_R R + X_I | X_u w](resolvent), a 3x3 linear system (section 4)."""
    R, weight, share = spectrum
    a, c, e, b, k = found.x.T
    inverse = 1 / ((found.ridge + c + 2 * e)[:, None] + a[:, None] * R)  # (shifts, r)
    S = found.ridge + b - k * k * (inverse @ share)
    # Gamma_1 = N(R) - k (G(R) w)(inverse w)' and gamma_2 = G(R) w, all linear in X = (X_R, X_I, X_u)
    N = np.stack([R * inverse, inverse, 0 * inverse])  # (3, shifts, r)
    G = (np.array([0.0, 0.0, 1.0])[:, None, None] - k[:, None] * N) / S[:, None]
    t = N @ weight - k * ((G * inverse) @ share) / d
    t_R = N @ (weight * R) - k * ((G * inverse) @ (share * R)) / d
    traces = np.stack([t, t_R, G @ share / d])  # (traces, X, shifts)
    source, feedback = _responses(seq, phi, found.g)
    system = np.eye(3) + np.einsum("xts,tys->sxy", feedback, traces)
    X = np.linalg.solve(system, source.T[..., None])[..., 0]  # (shifts, 3)
    t, t_R, t_u = np.einsum("txs,sx->ts", traces, X)
    N, G = np.einsum("xsr,sx->sr", N, X), np.einsum("xsr,sx->sr", G, X)
    u2 = (G * G) @ share
    lean = k * k / d * u2
    return Mean(
        t=t,
        t_R=t_R,
        t_u=t_u,
        square=(N * N) @ weight - 2 * k / d * ((G * N * inverse) @ share) + lean * ((inverse**2) @ share),
        cross=(N * N) @ weight - 2 * k / d * ((G * N * inverse) @ share) + (k * ((G * inverse) @ share)) ** 2 / d,
        square_R=(N * N) @ (weight * R)
        - 2 * k / d * ((G * N * inverse) @ (share * R))
        + lean * ((inverse**2) @ (share * R)),
        square_Ru=((N * G) @ share - k * (inverse @ share) * u2) / d,
        square_u=u2 / d,
    )


def _responses(seq: Sequences, phi: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coherent part of E[g x_t (h, u)(y_t - prediction)]: X = source - feedback (t, t_R, t_u) (section 4).

    Returns:
        Source (3, shifts) and feedback (3, 3, shifts), rows X_R, X_I, X_u.
    """
    f, w2, p, m, o, _, s, u = seq
    u = u / np.sqrt(w2)
    mu, nu, eta = phi[:3]

    def mean(q: np.ndarray) -> np.ndarray:
        return np.mean(g * q, axis=1)

    mf, ps, excess = m * f, p * s + o, f * f - s * w2
    own = mean(ps * ps - 2 * eta - nu - mu + s * m * m * w2)  # makes the equation for tr(Gamma) exact at R = I
    R_I, I_u, R_u = mean(mf * ps), mean(ps * u * f), mean(m * u * excess)
    feedback = [[R_I, mean(m * m * excess), R_u], [own, R_I, I_u], [I_u, R_u, mean(u * u * excess)]]
    return np.array([mean(mf * f), mean(ps * f), mean(u * f * f)]), np.array(feedback)


def residual(seq: Sequences, mean: Mean, d: int) -> np.ndarray:
    """Mean squared residual, noise aside, of a sequence under the mean Gamma, (shifts, points) (section 5).

    Averaged over the directions of x_t and of the rest of h around the task.
    """
    f, w2, p, m, o, v, s, u = seq
    t, t_R, t_u, square, _, square_R, square_Ru, square_u = (q[:, None] for q in mean)
    u = u / np.sqrt(w2)  # the average task is that of tasks scaled to |w|^2 = d
    across = _across(seq, d)
    along = s - across
    rest = (d * t - t_R) / (d - 1)  # of Gamma_1 across the task: trace, and trace of the square
    rest_square = (d * square - 2 * square_R + t_R**2) / (d - 1)
    bias = f * (1 - m * t_R - u * t_u) - p * along * t_R - (p * across + o) * rest
    turn = m + (2 * p + o / across) * f / (w2 * d)  # times |w| it multiplies the part of Gamma_1 w across the task
    lateral = turn**2 * (square_R - t_R**2) + 2 * turn * u * (square_Ru - t_R * t_u) + u * u * (square_u - t_u**2)
    spread = rest_square - rest**2
    along_part = v * d / (d - 1) * along * (square_R - t_R**2)
    across_part = v * d / (d - 2) * across * spread * (d - 1) / (d + 1)
    own_part = 2 * (p * across + o) ** 2 * spread / (d + 1)
    return bias**2 + across * w2 * d / (d - 1) * lateral + along_part + across_part + own_part
