"""Does choosing the examples of a prompt help? Pools with known truth, and real ones with real labels.

A model reads the chosen examples, the nearest by cosine, and random ones, with their labels, and predicts the labels of
queries that are not in the pool. Errors are shares of the labels' variance. Resumable; the table is
results/choice.csv (half an hour on two cores). Delete it to start anew.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from _table import Row, complete

from corricl import simulate
from corricl.measure import Selector, selector

SIZES = ("8", "32")
LAWS = {"linear": "iid", "softmax": "iid", "bayes": "iid", "positional": "exp:10"}
D, CANDIDATES, QUERIES, TASKS, NOISE = 16, 500, 50, 256, 0.1
SYNTHETIC = ("gaussian", "clusters", "stretched", "leading", "sign")
REAL = ("diabetes", "cancer", "digits", "text")
REAL_QUERIES = 150
RANDOM = 4
"""Random prompts for each query."""


class Data(NamedTuple):
    """A pool and queries, with labels in columns (tasks, or one for each class)."""

    pool: np.ndarray  # (n, channels)
    labels: np.ndarray  # (n, outputs)
    queries: np.ndarray  # (q, channels)
    targets: np.ndarray  # (q, outputs)


def synthetic(name: str) -> Data:
    """Tokens z in 16 dimensions, TASKS tasks: y = w.z + noise, or what departs from it.

    gaussian: z ~ N(0, I/d). clusters: 25 tight groups. stretched: the embeddings are A z with variances that fall as
    1/i^2. leading: tasks that use some directions far more than others. sign: labels are signs.
    """
    rng = np.random.default_rng(11)
    z = rng.normal(size=(CANDIDATES + QUERIES, D))
    if name == "clusters":
        z = rng.normal(size=(25, D))[rng.integers(25, size=len(z))] * np.sqrt(0.9) + np.sqrt(0.1) * z
    w, decay = rng.normal(size=(D, TASKS)), 1 / np.arange(1, D + 1)
    if name == "leading":
        w *= (decay * np.sqrt(D / (decay**2).sum()))[:, None]
    y = z @ w / D**0.5
    y = np.sign(y) if name == "sign" else y + NOISE**0.5 * rng.normal(size=y.shape)
    raw = z * decay @ np.linalg.qr(rng.normal(size=(D, D)))[0] if name == "stretched" else z
    return Data(raw[:CANDIDATES], y[:CANDIDATES], raw[CANDIDATES:], y[CANDIDATES:])


def real(name: str) -> Data:
    """Data that ships inside packages; labels are centred on the pool, classes are columns of 0 and 1."""
    embeddings, labels = paragraphs() if name == "text" else tables(name)
    if name != "diabetes":
        labels = (labels[:, None] == np.unique(labels)).astype(float)[:, slice(1 if name == "cancer" else 0, None)]
    labels = labels.reshape(len(embeddings), -1)
    order = np.random.default_rng(5).permutation(len(embeddings))
    test, pool = order[:REAL_QUERIES], order[REAL_QUERIES:]
    mean = labels[pool].mean(0)
    return Data(embeddings[pool], labels[pool] - mean, embeddings[test], labels[test] - mean)


def tables(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows of scikit-learn's own data, columns in their usual units of standard deviation."""
    from sklearn import datasets

    load = {"diabetes": datasets.load_diabetes, "cancer": datasets.load_breast_cancer, "digits": datasets.load_digits}
    found = load[name]()
    x, spread = found.data, found.data.std(0)  # type: ignore[attr-defined]
    return (x if name == "digits" else x / spread), found.target  # type: ignore[attr-defined]


def paragraphs() -> tuple[np.ndarray, np.ndarray]:
    """Paragraphs of Python's own help, TF-IDF and 32 singular directions, labelled by the topic they stand in."""
    from pydoc_data.topics import topics

    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    names = ("specialnames", "compound", "types", "string-methods", "debugger", "typesseq", "typesmapping")
    found: dict[str, int] = {}  # a paragraph that stands in two topics counts for the first
    for label, name in enumerate(names):
        for part in topics[name].split("\n\n"):
            if len(words := " ".join(part.split())) > 80:
                found.setdefault(words, label)
    counts = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(list(found))
    embeddings = TruncatedSVD(32, random_state=0).fit_transform(counts)
    return np.asarray(embeddings), np.array(list(found.values()))


def noise_of(ready: Selector, labels: np.ndarray) -> float:
    """Label noise over signal: the ridge penalty with the least leave-one-out error on the pool."""
    values, vectors = np.linalg.eigh(ready.points @ ready.points.T)
    rotated = vectors.T @ labels

    def left_out(penalty: float) -> float:
        shrink = penalty / (np.maximum(values, 0) + penalty)
        leverage = np.square(vectors) @ shrink
        return float(np.square(vectors @ (shrink[:, None] * rotated) / leverage[:, None]).sum())

    grid = np.geomspace(1e-3, 1e2, 51)
    return float(grid[np.argmin([left_out(penalty) for penalty in grid])])


def compute(key: Row) -> Row:
    m, method, is_real = int(key["m"]), key["model"], key["data"] in REAL
    data = real(key["data"]) if is_real else synthetic(key["data"])
    law = {"kernel": LAWS[method], "law_query": "continues" if method == "positional" else "independent"}
    make = {"method": method, "preparation": key["preparation"], **law}
    noise = noise_of(selector(data.pool, 2, preparation=key["preparation"]), data.labels) if is_real else NOISE
    ready = selector(data.pool, m, noise=noise, **make)
    predict = simulate.optimal(method, ready.law)
    rng = np.random.default_rng(7)
    variance = float(np.square(data.labels).mean())
    errors, hits, predicted = [], [], []
    for query, target in zip(data.queries, data.targets, strict=True):
        found, token = ready.choose(query, draws=2), ready.space.tokens(query)
        near = found.nearest.examples
        drawn = [rng.choice(len(data.pool), m, replace=False) for _ in range(RANDOM)]
        guesses = [
            read(predict, ready.points[rows], data.labels[rows].T, token)
            for rows in (found.chosen.examples, near, *drawn)
        ]
        guesses.insert(2, guesses[1] * best_scale(predict, ready.points[near], token, noise))
        errors.append([np.square(target - guess) / variance for guess in guesses])
        hits.append([guess.argmax() == target.argmax() for guess in guesses])
        predicted.append([found.chosen.icl / (1 + noise), found.nearest.icl / (1 + noise)])
    return {"noise": f"{noise:.3g}", **summary(np.array(errors), np.array(predicted), np.array(hits), is_real)}


def read(predict: simulate.Predictor, x: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
    """What a predictor says of one query after the same tokens with several sets of labels, y of shape (sets, m)."""
    return predict(np.tile(x, (len(y), 1, 1)), y, np.tile(query, (len(y), 1)))


def best_scale(predict: simulate.Predictor, x: np.ndarray, query: np.ndarray, noise: float) -> float:
    """The factor on the predictions that would suit these tokens best; the model as it is has the factor 1."""
    g = read(predict, x, np.eye(len(x)), query)
    reached = g @ x
    return float(query @ reached / (reached @ reached + noise * (g @ g)))


def summary(errors: np.ndarray, predicted: np.ndarray, hits: np.ndarray, is_real: bool) -> Row:
    """Means with standard errors, over queries for real labels and over tasks for synthetic ones.

    Args:
        errors: shape (queries, prompts, outputs); prompts: chosen, nearest, nearest with the best scale, random ones.
        predicted: of the chosen and the nearest prompts, shape (queries, 2).
        hits: whether the largest guess is the right class, shape (queries, prompts).
        is_real: whose labels.
    """
    units = errors.mean(2) if is_real else errors.mean(0).T  # one independent value a row, (units, prompts)
    chosen, near, scaled, random = units[:, 0], units[:, 1], units[:, 2], units[:, 3:].mean(1)
    row = {"predicted": f"{predicted[:, 0].mean():.4f}", "predicted_nearest": f"{predicted[:, 1].mean():.4f}"}
    for name, value in {
        "chosen": chosen,
        "nearest": near,
        "random": random,
        "nearest_scaled": scaled,
        "nearest_minus_chosen": near - chosen,
        "nearest_scaled_minus_chosen": scaled - chosen,
        "random_minus_chosen": random - chosen,
    }.items():
        row[name] = f"{value.mean():.4f}"
        row[f"{name}_stderr"] = f"{value.std(ddof=1) / len(value) ** 0.5:.4f}"
    many = is_real and errors.shape[2] > 1
    shares = (hits[:, 0].mean(), hits[:, 1].mean(), hits[:, 3:].mean())
    for name, share in zip(("chosen", "nearest", "random"), shares, strict=True):
        row[f"accuracy_{name}"] = f"{share:.3f}" if many else ""
    return row


def keys() -> list[Row]:
    """Every pool with every model; real pools with both preparations."""
    made = itertools.product(SYNTHETIC, ("whiten",), SIZES, LAWS)
    made = (*made, *itertools.product(REAL, ("whiten", "centre"), SIZES, ("linear", "softmax", "bayes")))
    return [dict(zip(("data", "preparation", "m", "model"), map(str, key), strict=True)) for key in made]


def main() -> None:
    rows = complete("choice", keys(), compute)
    for row in rows:
        where = f"{row['data']:<10}{row['preparation']:<8}m={row['m']:<4}{row['model']:<11}"
        errors = "  ".join(
            f"{name} {float(row[name]):.3f}" for name in ("chosen", "nearest", "nearest_scaled", "random")
        )
        print(f"{where}{errors}  {verdict(row, 'nearest')}, {verdict(row, 'nearest_scaled')}, {verdict(row, 'random')}")


def verdict(row: Row, other: str) -> str:
    """Whether the chosen prompts do better than others by more than two standard errors."""
    gain, error = float(row[f"{other}_minus_chosen"]), float(row[f"{other}_minus_chosen_stderr"])
    return "better" if gain > 2 * error else "worse" if gain < -2 * error else "alike"


if __name__ == "__main__":
    main()
