"""Real sequences measured: sums of products, bias, intervals, cautions, input."""

import numpy as np
import pytest
from scipy.signal import lfilter

from corricl import InputError, Prompt, measure, theory
from corricl.measure._estimate import Estimator, effective_dimension
from corricl.measure._kernel import nearest_correlation
from corricl.measure._products import moments, products


def ar1(phi, sequences, size, d, seed):
    noise = np.random.default_rng(seed).standard_normal((sequences, size, d))
    noise[:, 1:] *= np.sqrt(1 - phi**2)
    return lfilter([1.0], [1.0, -phi], noise, axis=1)


def estimator_of(values, length):
    gathered = products(values, length, None, moments(values)[0])
    return Estimator(gathered, effective_dimension(gathered))


@pytest.mark.parametrize(("shape", "length"), [((40, 9, 2), 9), ((40, 9, 2), 4), ((1, 150, 3), 12), ((3, 70, 1), 20)])
def test_sums_of_products_are_those_of_a_plain_loop(shape, length):
    values = np.random.default_rng(0).standard_normal(shape) + 3
    mean, variance = moments(values)
    np.testing.assert_allclose(variance, values.reshape(-1, shape[2]).var(0))
    found = products(values, length, None, mean)
    centred = values - mean
    for g in (0, len(found.blocks) // 2, len(found.blocks) - 1):
        first, last, start, stop = found.blocks[g]
        for t in (0, 1, length - 1, length):
            ends = range(start, min(stop, shape[1] - t))
            direct = sum((centred[first:last, u] * centred[first:last, u + t]).sum(0) for u in ends)
            np.testing.assert_allclose(found.lagged[g, t], direct, atol=1e-10)
            assert found.pairs[g, t] == (last - first) * len(ends)
    np.testing.assert_allclose(found.lagged.sum(0)[0], (centred**2).sum((0, 1)))


def test_chunks_change_nothing(monkeypatch):
    values = ar1(0.5, 1, 3000, 2, 1)
    whole = products(values, 8, None, moments(values)[0])
    monkeypatch.setattr("corricl.measure._products.CHUNK", 90)
    pieces = products(values, 8, None, moments(values)[0])
    np.testing.assert_allclose(pieces.lagged, whole.lagged, atol=1e-9)
    np.testing.assert_array_equal(pieces.tokens.shape, whole.tokens.shape)


def test_squares_are_averages_over_products_without_a_common_token():
    """r(t)^2 of one series against a literal double loop over pairs of products that are far apart."""
    length, size, gap = 6, 48, 3
    values = ar1(0.5, 1, size, 1, 2)
    estimator = estimator_of(values, length)
    assert estimator.products.gap == gap
    assert len(estimator.products.blocks) == size  # one token a group
    x = (values - values.mean())[0, :, 0]
    far = [(u, v) for u in range(size) for v in range(size) if abs(u - v) >= gap]
    square = np.mean([x[u] * x[v] for u, v in far])
    variance = (x**2).mean() - square
    for t in (1, 3, 6):
        product = (x[: size - t] * x[t:] - square) / variance
        pairs = [(u, v) for u, v in far if max(u, v) < size - t and abs(abs(u - v) - t) >= gap]
        expected = np.mean([product[u] * product[v] for u, v in pairs]) - 2 * (square / variance) ** 2
        assert estimator.full().squares[t] == pytest.approx(expected, abs=1e-12)
        assert estimator.full().correlation[t] == pytest.approx(product.mean(), abs=1e-12)


def test_squares_of_many_sequences_are_averages_over_two_different_ones():
    values = ar1(0.5, 40, 7, 2, 2)
    estimator = estimator_of(values, 6)
    x = values - values.mean((0, 1))
    level = x.sum(1)  # (sequences, d)
    pairs = [(s, r) for s in range(40) for r in range(40) if s != r]
    square = np.mean([level[s] * level[r] for s, r in pairs], axis=0) / 49
    variance = (x**2).mean((0, 1)) - square
    for t in (1, 5):
        product = ((x[:, : 7 - t] * x[:, t:] - square) / variance).mean((1, 2))
        expected = np.mean([product[s] * product[r] for s, r in pairs])
        expected -= 2 * (square / variance).mean() ** 2 / estimator.dimension
        assert estimator.full().squares[t] == pytest.approx(expected, abs=1e-12)


def test_triples_of_correlations_are_averages_over_different_parts():
    values = ar1(0.6, 48, 7, 2, 3)
    estimator = estimator_of(values, 6)
    members = np.repeat(np.eye(16), 3, axis=1)
    scaled, _ = estimator.scaled(np.ones((1, 48)))
    parts = members @ scaled[0] / estimator.products.pairs.sum(0)
    direct = 0.0
    for a in range(16):
        for b in range(16):
            for c in range(16):
                if len({a, b, c}) == 3:
                    for s in range(1, 7):
                        for u in range(1, 7 - s):
                            direct += parts[a, s] * parts[b, u] * parts[c, s + u]
    direct /= 1 - 3 / 16 + 2 / 16**2
    full = estimator.full()
    assert full.k1 - full.k0 == pytest.approx(2 * direct, abs=1e-12)


def mean_k2(draw, length, draws):
    found = np.array([estimator_of(draw(i), length).full().k2 for i in range(draws)])
    return found.mean(), found.std(ddof=1) / np.sqrt(draws)


@pytest.mark.parametrize(("d", "size", "naive"), [(1, 128, 2.5), (8, 128, 1.2), (64, 128, 1.02), (1, 512, 1.2)])
def test_white_noise_has_k2_of_one_on_average(d, size, naive):
    draws = 60 if d < 64 else 25
    mean, error = mean_k2(lambda i: np.random.default_rng([5, d, size, i]).standard_normal((1, size, d)), 128, draws)
    assert abs(mean - 1) < 4 * error
    assert naive - 1 > 4 * error  # the bias of squares of noisy correlations would be seen


@pytest.mark.parametrize(("phi", "sequences"), [(-0.8, 1), (0.9, 64)])
def test_correlated_tokens_are_measured_without_bias(phi, sequences):
    size, d = (2560, 8) if sequences == 1 else (128, 8)
    truth = Prompt(1, 128, f"ar1:{phi}").statistics.k2
    mean, error = mean_k2(lambda i: ar1(phi, sequences, size, d, [6, i]), 128, 12)
    assert abs(mean / truth - 1) < 0.03 + 2 * error / truth
    assert error < 0.02 * truth


def test_intervals_hold_the_truth_as_often_as_they_say():
    truth, draws = Prompt(1, 16, "exp:3", "continues").statistics, 100
    found = [measure_quickly(ar1(np.exp(-1 / 3), 64, 17, 2, [7, i]), 16, i) for i in range(draws)]
    for name in ("k2", "k0", "k1"):
        held = sum(f[name].low <= getattr(truth, name) <= f[name].high for f in found)
        assert 0.87 * draws <= held  # 95 % less four standard errors
    widths = np.array([f["k2"].high - f["k2"].low for f in found])
    spread = np.std([f["k2"].estimate for f in found])
    assert 0.8 < np.median(widths) / (2 * 1.96 * spread) < 1.4  # nor are they needlessly wide


def measure_quickly(values, length, seed):
    from corricl.measure._measure import intervals

    estimator = estimator_of(values, length)
    return intervals(estimator, estimator.full(), estimator(1 - estimator.sets), 0.01, 0.95, seed)


@pytest.fixture(scope="module")
def found():
    return measure.measure(ar1(0.8, 60, 33, 4, 0), length=32)


def test_round_trip_to_the_risk_of_the_true_prompt(found):
    truth = Prompt(4, 32, "ar1:0.8", noise=0.01)
    estimate, low, high = measure.predict(found, lengths=[]).bounds["independent"]
    assert found.preprocessing.dimension == pytest.approx(4, abs=0.2)
    assert low < theory.risk(truth, method="linear").icl < high
    assert low < estimate < high
    assert found.effective_length.low < 32 * 1.01 / (truth.statistics.k2 + 0.01) < found.effective_length.high


def test_fitted_kernel_and_matrix_are_usable_prompts(found):
    prompt = Prompt(4, 32, found.kernel, "continues", 0.01)
    assert prompt.kernel.correlation(np.array(1), np.array([2]))[0] == pytest.approx(0.8, abs=0.03)
    assert {fit.family for fit in found.fits} == {"exp", "ar1", "power", "cosine", "matern"}
    assert found.valid
    assert found.mean_length.estimate == pytest.approx(32**2 / prompt.kernel.matrix(32).sum(), rel=0.2)
    made = measure.estimated_kernel(found)
    from corricl.kernels import Tabulated

    k2 = Prompt(4, 32, Tabulated(made.matrix)).statistics.k2
    assert k2 == pytest.approx(found.k2.estimate, rel=0.15)


def test_alternating_signs_and_nuggets_are_fitted():
    mixed = np.sqrt(0.7) * ar1(-0.8, 200, 20, 2, 1) + np.sqrt(0.3) * np.random.default_rng(2).standard_normal(
        (200, 20, 2)
    )
    found = measure.measure(mixed)
    weight, phi = found.kernel.split("+")[0].split("*ar1:")
    assert float(weight) == pytest.approx(0.7, abs=0.07)
    assert float(phi) == pytest.approx(-0.8, abs=0.05)


def test_same_seed_same_interval_and_units_do_not_matter(found):
    values = ar1(0.8, 60, 33, 4, 0)
    assert measure.measure(values, length=32).k2 == found.k2
    assert measure.measure(values, length=32, seed=1).k2 != found.k2
    moved = measure.measure(values * [1e-3, 1, 20, 1e6] + [1, -100, 0, 1e7], length=32)
    assert moved.k2 == pytest.approx(found.k2, rel=1e-6)


def test_float32_is_summed_in_float64():
    values = (ar1(0.5, 1, 2000, 2, 4) + 1000).astype(np.float32)
    single, double = (measure.measure(v, length=16) for v in (values[0], values[0].astype(np.float64)))
    assert single.k2 == double.k2


def test_whitening_makes_channels_independent():
    mixing = np.linalg.cholesky(np.full((4, 4), 0.9) + 0.1 * np.eye(4))
    values = ar1(0.5, 1, 4000, 4, 5) @ mixing.T
    plain, white = (measure.measure(values[0], length=16, scale=scale) for scale in ("channel", "whiten"))
    assert plain.preprocessing.dimension == pytest.approx(16 / (mixing @ mixing.T).__pow__(2).sum(), rel=0.1)
    assert white.preprocessing.dimension == pytest.approx(4, abs=0.1)
    assert white.preprocessing.shrinkage < 0.1
    truth = Prompt(1, 16, "ar1:0.5").statistics.k2
    assert plain.k2.low < truth < plain.k2.high
    assert white.k2.low < truth < white.k2.high


def test_unrestricted_k2_agrees_where_tokens_are_stationary_and_says_where_not():
    values = ar1(0.7, 100, 24, 4, 9)
    found = measure.measure(values)
    truth = Prompt(1, 24, "ar1:0.7").statistics.k2
    assert found.unrestricted.low < truth < found.unrestricted.high
    assert "not_stationary" not in codes(found)
    repeated = np.repeat(np.random.default_rng(1).standard_normal((100, 8, 4)), 3, axis=1)
    blocks = measure.measure(repeated * np.linspace(0.2, 2, 24)[:, None] + np.arange(24.0)[:, None])
    assert blocks.unrestricted.low < 3.0 < blocks.unrestricted.high  # each token three times
    assert "not_stationary" in codes(blocks)
    means = [measure.measure(np.random.default_rng(i).standard_normal((64, 16, 2))).unrestricted for i in range(30)]
    estimates = np.array([m.estimate for m in means])
    assert abs(estimates.mean() - 1) < 4 * estimates.std(ddof=1) / np.sqrt(30)
    assert sum(m.low <= 1 for m in means) >= 25


def codes(found):
    return {caution.code for caution in found.warnings}


def test_series_that_do_not_forget_are_not_given_a_length_to_quote():
    walk = np.cumsum(np.random.default_rng(1).standard_normal(3000))
    assert not measure.measure(walk, length=64).valid
    trend = np.random.default_rng(2).standard_normal(3000) + np.linspace(0, 3, 3000)
    assert codes(measure.measure(trend, length=64)) & {"drifts", "never_forgets"}
    levels = np.random.default_rng(3).standard_normal((50, 1, 2)) + np.random.default_rng(4).standard_normal(
        (50, 20, 2)
    )
    own_levels = measure.measure(levels)
    assert "slow" in codes(own_levels)
    assert own_levels.valid  # independent sequences: K at this length is what it is


def test_cautions_say_what_is_doubtful():
    short = measure.measure(ar1(0.3, 1, 60, 1, 1)[0], length=30)
    assert {"few_windows"} <= codes(short)
    growing = ar1(0.3, 1, 4000, 1, 2)[0] * np.linspace(0.5, 1.5, 4000)[:, None]
    assert "unsteady" in codes(measure.measure(growing, length=16))
    quiet = [measure.measure(np.random.default_rng(i).standard_normal((40, 16, 4))) for i in range(6)]
    below = [f for f in quiet if f.k2.estimate < 1]
    assert below  # about half of them, reported as they are
    assert all("below_one" in codes(f) and f.k2.low == 1.0 and f.effective_length.high == 16 for f in below)
    assert "last_lag" in codes(quiet[0])


def test_nearest_correlation_is_one():
    lag = np.abs(np.arange(30)[:, None] - np.arange(30))
    rough = np.where(lag == 0, 1.0, np.where(lag < 4, 0.7, 0.0))
    found = nearest_correlation(rough)
    assert np.linalg.eigvalsh(rough)[0] < -0.1
    assert np.linalg.eigvalsh(found)[0] > -1e-9
    np.testing.assert_allclose(np.diagonal(found), 1.0)
    assert np.abs(found - rough).max() < 0.5
    fine = 0.8**lag
    np.testing.assert_allclose(nearest_correlation(fine), fine, atol=1e-12)


def test_prediction_covers_queries_methods_and_pretraining(found):
    predicted = measure.predict(found, lengths=[8, 16], sequences=100, tasks=20, ridge=1e-3)
    assert predicted.d == 4
    assert predicted.risks["continues"]["softmax"].shape == (2,)
    assert predicted.here["independent"]["linear"] == pytest.approx(predicted.bounds["independent"][0], rel=0.05)
    assert predicted.suits["continues"] == "positional"
    assert predicted.pretrained["independent"].icl > predicted.here["independent"]["linear"]
    with pytest.raises(InputError, match="number of sequences"):
        measure.predict(found, tasks=3)


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (np.zeros((0, 3)), {}, "hold something"),
        (np.ones((3, 50)), {}, "ambiguous"),
        (np.ones((2, 2, 2, 2)), {}, "must have shape"),
        (np.array(["a", "b"]), {}, "real numbers"),
        (np.arange(9.0), {}, "length of a window"),
        (np.arange(3.0), {"length": 2}, "too short"),
        (np.ones((40, 1, 2)), {}, "at least 2"),
        (np.ones((40, 8, 2)), {}, "channel 1 is constant"),
        (np.arange(40.0), {"length": 50}, "more than the 40 tokens"),
        (np.arange(40.0), {"length": 8, "stride": 4}, "at least length = 8"),
        (np.arange(40.0), {"length": 8, "scale": "max"}, "channel or whiten"),
        (np.arange(40.0), {"length": 8, "level": 1.0}, "between 0 and 1"),
        (np.arange(40.0), {"length": 8, "axes": "channel"}, "axes must be one of"),
        (np.r_[np.arange(40.0), np.nan], {"length": 8}, "1 missing values"),
        (np.r_[np.arange(40.0), np.inf], {"length": 8}, "infinite"),
    ],
)
def test_what_cannot_be_measured_is_refused(values, options, message):
    with pytest.raises(InputError, match=message):
        measure.measure(values, **options)


def test_stride_cuts_a_series_into_sequences_of_their_own():
    values = ar1(0.4, 1, 1000, 2, 8)[0]
    cut = measure.measure(values, length=10, stride=20)
    assert (cut.sequences, cut.tokens) == (50, 500)
    stacked = np.stack([values[20 * i : 20 * i + 10] for i in range(50)])
    assert measure.measure(stacked).k2 == cut.k2
