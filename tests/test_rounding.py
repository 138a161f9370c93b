"""No number rests on how a machine rounds.

What linear algebra is given and what it returns is moved by a unit in the last place, at random and many times over,
as another processor would. Eigenvectors may also come with the other sign. Nothing that follows from them may move.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import name, random_joint, symmetric_root
from test_sampler import draw

from corricl import theory
from corricl.attention import Architecture, Training
from corricl.attention._trained import identity_of
from corricl.kernels import Kernel, Query, Tabulated
from corricl.measure._choose_models import Candidates, Ridge
from corricl.numerics import difference, eigen
from corricl.prompt import Pretraining, Prompt
from corricl.simulate import batches, replicate
from corricl.simulate._contexts import token_factor
from corricl.theory import _mixture_points

MACHINES = 24
LARGEST = 1e-12  # movement allowed, relative to the scale of what moves

SIGNS = np.random.default_rng(0).choice([-1.0, 1.0], 14)
DEGENERATE = [
    Prompt(5, 13, "exp:inf", "continues", 0.0),  # all tokens and the query are one
    Prompt(5, 13, "exp:inf", "independent", 0.0),
    Prompt(5, 13, "ar1:-1", "continues", 0.0),
    Prompt(5, 13, Tabulated(np.outer(SIGNS, SIGNS)), noise=0.0),  # a joint matrix of rank one
    Prompt(5, 13, "blocks:3", "continues", 0.0),  # the query copies the last token
    Prompt(5, 13, "blocks:2", "independent", 0.0),
    Prompt(5, 13, Tabulated(random_joint(14, rank=3, seed=2)), noise=0.0),
    Prompt(5, 13, "cosine:0.3,inf", "continues", 0.1),
]
OTHERS = [
    Prompt(5, 13, "equi:0.3", "continues", 0.1),
    Prompt(5, 13, "iid", np.linspace(-0.4, 0.3, 13), 0.0),
    Prompt(5, 13, "exp:30", "gap:2", 0.0),
    Prompt(8, 40, "exp:3", "continues", 0.1),
    Prompt(8, 40, "0.5*power:0.6+0.25*equi:0.5+0.25*blocks:2", "continues", 0.0),
]


class Machine:
    """A machine that rounds in its own way; number 0 is the one at hand as it is."""

    def __init__(self, patch, number):
        self.rng = np.random.default_rng(number)
        patch.setattr(_mixture_points, "_cached_sequences", _mixture_points._sequences)  # nothing from the last machine
        if not number:
            return
        eigh, matrix, correlations = np.linalg.eigh, Kernel.matrix, Query.correlations

        def moved_eigh(given):
            values, vectors = eigh(self.moved(given))
            signs = self.rng.choice([-1.0, 1.0], vectors.shape[1])
            return self.moved(values), self.moved(vectors, symmetric=False) * signs

        patch.setattr(np.linalg, "eigh", moved_eigh)
        patch.setattr(Kernel, "matrix", lambda *given: self.moved(matrix(*given)))
        patch.setattr(Query, "correlations", lambda *given: self.moved(correlations(*given)))

    def moved(self, array, symmetric=True):
        """Each entry a unit in the last place up or down, or where it was."""
        step = self.rng.integers(-1, 2, array.shape)
        if symmetric and array.ndim == 2:
            step = np.triu(step) + np.triu(step, 1).T
        return np.where(array == 0, 0.0, array + step * np.spacing(np.abs(array)))


def fresh(prompt):
    """The same prompt without what it has cached."""
    return Prompt(prompt.d, prompt.length, prompt.kernel, None if prompt.kernel.size else prompt.query, prompt.noise)


def sampled(prompt):
    """What is drawn at random, by names."""
    x, u, y = draw(fresh(prompt), 2048, seed=3)
    whole = next(batches(fresh(prompt), seed=1, batch=64))
    points = _mixture_points.sequences(fresh(prompt))
    statistics = {"x_t": x, "h": u[:, :-1], "label power": u[:, -1], "target": y}
    return {**statistics, **whole._asdict(), **{f"point {key}": value for key, value in points._asdict().items()}}


def risks(prompt):
    """Every risk of the prompt, by methods."""
    pretraining = Pretraining(fresh(prompt), 3 * prompt.d**2, 2 * prompt.d)
    out = {m: theory.risk(fresh(prompt), method=m).icl for m in ("linear", "positional", "softmax", "bayes")}
    for method in ("weak", "mixture"):
        found = theory.risk(pretraining, ridge=1e-6, method=method)
        out |= {f"{method} icl": found.icl, f"{method} idg": found.idg}
    drawn = replicate(pretraining, 0.1, seed=5, index=0, tolerance=1e-13)
    return out | {"simulated icl": drawn.icl, "simulated idg": drawn.idg}


def movements(numbers, prompt, machines=MACHINES):
    """Largest movement of each number over the machines, relative to its scale (at least 1, that of a label)."""
    found = []
    for number in range(machines + 1):
        with pytest.MonkeyPatch.context() as patch:
            Machine(patch, number)
            found.append({key: np.asarray(value) for key, value in numbers(prompt).items()})
    here = found[0]
    assert all(np.isfinite(value).all() for value in here.values())
    return {
        key: max(np.abs(other[key] - value).max() for other in found[1:]) / max(1.0, np.abs(value).max())
        for key, value in here.items()
    }


@pytest.mark.parametrize("prompt", DEGENERATE + OTHERS, ids=name)
def test_nothing_drawn_moves(prompt):
    moved = movements(sampled, prompt)
    assert moved == {key: pytest.approx(0, abs=LARGEST) for key in moved}


@pytest.mark.parametrize("prompt", DEGENERATE + OTHERS, ids=name)
def test_no_risk_moves(prompt):
    moved = movements(risks, prompt)
    assert moved == {key: pytest.approx(0, abs=LARGEST) for key in moved}


# Tokens that cancel, with a query along their one direction: an even average of the labels is 0.
ALTERNATING = (-1.0) ** np.arange(8) / 8**0.5
ROUNDED = symmetric_root(Prompt(2, 8, "ar1:-1").kernel.matrix(8), zero=0.0)[:, 0]


@pytest.mark.parametrize("query", [ALTERNATING, ROUNDED], ids=["alternating", "rounded"])
def test_a_softmax_that_reads_nothing_but_rounding_answers_zero(query):
    prompt = Prompt(2, 8, "ar1:-1", query, 0.0)
    moved = movements(lambda p: {"icl": theory.softmax(p, beta=0.0).icl}, prompt)
    assert moved["icl"] < LARGEST
    assert theory.softmax(prompt, beta=0.0).icl == pytest.approx(1, abs=1e-12)
    assert abs(theory.softmax(prompt).details["b"]) == pytest.approx(1.2, abs=0.1)


@pytest.mark.parametrize("noise", [0.0, 1e-40, 1e-30, 1e-3])
def test_copies_in_a_pool_gain_nothing_that_is_rounding(noise):
    rng = np.random.default_rng(0)
    for _ in range(50):
        points = np.tile(rng.standard_normal((30, 8)) / 8**0.5, (2, 1))
        query, held = rng.standard_normal(8) / 8**0.5, np.array([0, 1, 2, -1])
        trial = Ridge(np.ones(4), noise).trial(Candidates.of(points, query), held, 3)
        best = []
        for candidate in (*points[:3], *points[30:33]):
            x = np.stack([*points[:3], candidate])
            gram = x @ x.T + noise * np.eye(4)
            best.append(noise + query @ query - (x @ query) @ np.linalg.pinv(gram, rcond=1e-12) @ (x @ query))
        np.testing.assert_allclose(trial[[0, 1, 2, 30, 31, 32]], best, rtol=1e-10)


def test_a_joint_matrix_indefinite_by_rounding_gives_the_law_of_a_true_one():
    """500 pairs of near copies, and a query that tells the two of a pair apart by more than they differ."""
    kernel = np.eye(1000) + np.kron(np.eye(500), (1 - 3e-12) * np.array([[0.0, 1.0], [1.0, 0.0]]))
    query = np.r_[0.5 + 5e-6, 0.5, np.zeros(998)]
    x, _, y = draw(Prompt(8, 1000, Tabulated(kernel), query, 0.1), 4096, seed=1, tasks=np.eye(8)[:1])
    assert 8 * np.mean(x[:, 0] ** 2) == pytest.approx(1, abs=5 * (2 / 4096) ** 0.5)
    assert np.mean(y**2) == pytest.approx(1 / 8 + 0.1, abs=5 * (1 / 8 + 0.1) * (2 / 4096) ** 0.5)


def test_a_training_run_is_known_again_on_another_machine():
    found = []
    for number in range(MACHINES + 1):
        with pytest.MonkeyPatch.context() as patch:
            Machine(patch, number)
            subject = Pretraining(Prompt(8, 40, "exp:3", "continues", 0.1), 64, 4)
            found.append(identity_of(Architecture("linear"), subject, Training()))
    assert all(other == found[0] for other in found)


def test_where_eigenvalues_run_down_to_rounding_a_drawn_number_moves_by_the_root_of_it():
    """No gap says which eigenvalues are 0: variances are known to 1e-12, deviations to 1e-6."""
    prompt = Prompt(8, 40, "sqexp:3", "continues", 0.0)
    assert max(movements(sampled, prompt).values()) < LARGEST**0.5
    assert max(movements(risks, prompt).values()) < 1e-8


def test_where_eigenvalues_nearly_coincide_eigenvectors_are_known_to_rounding_over_their_distance():
    """A query of any shape feels each of them: exp:0.1 at distances of 1e-5 lets drawn numbers move by 1e-16/1e-5."""
    law = Prompt(8, 13, "exp:0.1")
    shape = np.cos(1.3 * np.arange(13) + 0.2)
    query = symmetric_root(law.kernel.matrix(13)) @ (0.7 * shape / np.linalg.norm(shape))
    distance = np.diff(np.linalg.eigvalsh(law.kernel.matrix(13))).min()
    assert max(movements(sampled, Prompt(8, 13, "exp:0.1", query, 0.1)).values()) < 1e-14 / distance


@pytest.mark.parametrize("library", [np, jnp])
def test_a_difference_is_zero_where_only_rounding_is_left_and_hides_no_nan(library):
    with jax.enable_x64(True):
        whole = library.asarray([2.0, 2.0, 2.0, 2.0, 0.0, np.nan])
        left = difference(whole, library.asarray([2 * (1 - 1e-11), 2 * (1 - 1e-14), 2.0, 2 * (1 + 1e-14), 0.0, 1.0]))
        np.testing.assert_allclose(np.asarray(left), [2e-11, 0.0, 0.0, 0.0, 0.0, np.nan], rtol=1e-4, atol=0)


@pytest.mark.parametrize("prompt", DEGENERATE + OTHERS, ids=name)
def test_eigenvectors_are_those_of_the_matrix(prompt):
    values, vectors = eigen(prompt.joint)
    np.testing.assert_allclose(vectors * values @ vectors.T, prompt.joint, atol=1e-13)
    np.testing.assert_allclose(vectors.T @ vectors, np.diag((values > 0) * 1.0), atol=1e-13)
    root = token_factor(prompt)
    np.testing.assert_allclose(root, root.T, atol=1e-13)
    np.testing.assert_allclose(root @ root, prompt.joint, atol=1e-13)


def test_rounding_is_relative_to_what_was_subtracted():
    small = 1e-14 * np.array([[1.0, 0.3], [0.3, 1.0]])
    assert eigen(small).values.all()
    assert not eigen(small, size=1.0).values.any()
    assert not eigen(small, size=1.0).vectors.any()
