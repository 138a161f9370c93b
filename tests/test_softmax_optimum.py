"""The optimum of softmax attention, found blindly on simulated prompts, and the rate at which sizes reach the limit."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from corricl import Prompt, simulate, theory


def loss_of(prompt, x, query):
    """Loss at (beta, V) of each prompt, task and label noise averaged by hand."""
    scores = np.einsum("nad,nd->na", x, query)

    def loss(at):
        z = at[0] * scores
        p = np.exp(z - z.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        mixed = np.matmul(p[:, None, :], x)[:, 0]
        power = (mixed**2).sum(1) + prompt.noise * (p**2).sum(1)
        return 1 + prompt.noise - 2 * at[1] * (mixed * query).sum(1) + at[1] ** 2 * power

    return loss


def controlled_mean(values, prompt, x, query):
    """Mean and standard error with what variables of known mean explain taken out (query and last tokens)."""
    last, k, d = x[:, -4:], prompt.query_vector[-4:], prompt.d
    scores = np.einsum("nad,nd->na", last, query)
    second = 1 / d + k**2 * (1 + 1 / d)
    radius = (query**2).sum(1, keepdims=True) - 1
    controls = np.hstack([radius, scores - k, scores**2 - second, (last**2).sum(2) - 1])
    centred = controls - controls.mean(0)
    left = values - controls @ np.linalg.lstsq(centred, values - values.mean(), rcond=None)[0]
    return left.mean(), left.std(ddof=1) / math.sqrt(len(left))


@pytest.mark.parametrize(
    ("kernel", "query", "noise"),
    [
        ("exp:4", "continues", 0.05),
        ("ar1:-0.8", "continues", 0.05),
        ("power:0.5", "independent", 0.05),
        ("blocks:5", "continues", 0.5),
    ],
)
def test_minimisation_on_simulated_prompts_lands_on_the_predicted_optimum(kernel, query, noise):
    """Nelder-Mead over (beta, V) that knows nothing of the theory, from a start of either sign."""
    prompt, start = Prompt(12, 36, kernel, query, noise), np.array([3.0, 0.7])
    drawn = next(simulate.batches(prompt, seed=3, batch=16000))
    x, queries = drawn.x, drawn.query
    loss = loss_of(prompt, x, queries)
    coarse = loss_of(prompt, x[:2000], queries[:2000])  # which of the two signs
    sign = min((1, -1), key=lambda s: coarse(s * start).mean())
    options = {"xatol": 0.02, "fatol": 1e-4, "maxfev": 60}
    best = minimize(lambda at: loss(at).mean(), sign * start, method="Nelder-Mead", options=options)
    mean, stderr = controlled_mean(loss(best.x), prompt, x, queries)
    predicted = theory.softmax(prompt)
    assert 3.5 * stderr < 0.015 * mean
    assert mean == pytest.approx(predicted.icl, rel=0.015)
    assert loss(sign * start).mean() > 1.03 * best.fun  # the start was not the answer
    if not prompt.query.is_independent:  # both signs do equally well there
        assert best.x[0] == pytest.approx(predicted.details["beta"], rel=0.25)
        assert best.x[1] == pytest.approx(predicted.details["value"], rel=0.1)


def test_closed_form_at_its_own_b():
    """At fixed alpha and the b of the limit the two differ by O(1/d), here below 0.25/d."""
    for kernel, alpha, noise in (("exp:2", 4, 0.1), ("ar1:-0.6", 2, 0.2), ("ma:3", 3, 0.1)):
        for d in (16, 32, 64, 128):
            prompt = Prompt(d, alpha * d, kernel, noise=noise)
            limit = theory.softmax_limit(prompt)
            there = theory.softmax(prompt, beta=limit.details["b"] * math.sqrt(d))
            error = there.details["numerical_error"]
            assert error < 0.003 * limit.icl
            assert abs(there.icl - limit.icl) < 0.25 / d + 2 * error, (kernel, d)


def test_closed_form_is_reached_as_one_over_d():
    for kernel, alpha, own, sign in (("iid", 2, True, 1), ("exp:2", 4, False, -1), ("ma:3", 3, False, -1)):
        gaps, sizes = [], (16, 32, 64)
        for d in sizes:
            prompt = Prompt(d, alpha * d, kernel, noise=0.1)
            limit = theory.softmax_limit(prompt)
            beta = limit.details["b"] * math.sqrt(d) if own else None
            gaps.append(sign * (theory.softmax(prompt, beta=beta).icl - limit.icl))
        assert min(gaps) > 0
        slope = np.polyfit(np.log(sizes), np.log(gaps), 1)[0]
        assert slope == pytest.approx(-1, abs=0.25), kernel


def test_iid_tokens_cost_a_factor_e():
    """S = alpha (1/G - 1) with the gain G = 1 + noise - risk falls to e (1 + noise) at the optimum."""
    alpha, noise = 2, 0.1
    spreads = []
    for d in (16, 48, 160):
        gain = 1 + noise - theory.softmax(Prompt(d, alpha * d, noise=noise), shifts=8).icl
        spreads.append(alpha * (1 / gain - 1))
    limit = math.e * (1 + noise)
    assert spreads[0] > spreads[1] > spreads[2] > 0.997 * limit
    assert spreads[2] == pytest.approx(limit, rel=0.008)
