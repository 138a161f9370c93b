"""The shared zoo of prompts, and the statistics by which random numbers are judged."""

import csv
from pathlib import Path

import numpy as np
from scipy.stats import norm

import corricl
from corricl.kernels import Tabulated
from corricl.prompt import Prompt

ALPHA = 1e-4
"""Chance that a whole family of random checks fails where nothing is wrong."""

KERNELS = (
    "iid",
    "exp:0",
    "exp:2",
    "exp:30",
    "exp:inf",
    "ar1:-0.7",
    "ar1:-1",
    "ar1:1",
    "power:0",
    "power:0.4",
    "power:2",
    "matern:0.5,3",
    "matern:2.5,4",
    "sqexp:3",
    "cosine:0.3,inf",
    "cosine:0.9,4",
    "equi:0.3",
    "equi:-0.05",
    "equi:1",
    "ma:0",
    "ma:3",
    "blocks:1",
    "blocks:3",
    "0.7*exp:5+0.3*iid",
    "0.5*power:0.6+0.25*equi:0.5+0.25*blocks:2",
    "exp:20*cosine:0.3,inf",
    "0.6*ar1:-0.5*exp:4+0.4*matern:1.5,2",
)
"""Every family, weak and strong, singular ones, mixtures and products."""

QUERIES = ("independent", "continues", "gap:3", "strength:0.6")

SINGULAR = ("exp:inf", "ar1:-1", "cosine:0.3,inf", "equi:1", "blocks:3")


def random_joint(size, rank=None, seed=0):
    """A random correlation matrix, signs mixed, singular where rank < size."""
    factor = np.random.default_rng(seed).standard_normal((size, rank or size))
    factor /= np.linalg.norm(factor, axis=1, keepdims=True)
    values = factor @ factor.T
    np.fill_diagonal(values, 1.0)
    return values


def symmetric_root(matrix, zero=1e-12):
    """The one root of a covariance that does not depend on how a machine signs or rotates eigenvectors."""
    values, vectors = np.linalg.eigh(matrix)
    return vectors * np.sqrt(np.where(values > zero * values[-1], values, 0)) @ vectors.T


def vector_query(kernel, length, seed=0):
    """Query correlations that no kernel of the list has, with the joint matrix positive semidefinite."""
    root = symmetric_root(kernel.matrix(length), zero=1e-10)
    direction = root @ np.random.default_rng(seed).standard_normal(length)
    weights = np.linalg.pinv(kernel.matrix(length), rcond=1e-10) @ direction
    return 0.9 * direction / np.sqrt(direction @ weights)


def zoo(d, length, noise=0.1, kernels=KERNELS, queries=("independent", "continues")):
    """Prompts of one size over kernels and queries, and two random matrices that bring their own query."""
    prompts = [Prompt(d, length, kernel, query, noise) for kernel in kernels for query in queries]
    return [
        *prompts,
        Prompt(d, length, Tabulated(random_joint(length + 1, seed=1)), noise=noise),
        Prompt(d, length, Tabulated(random_joint(length + 1, rank=3, seed=2)), noise=noise),
    ]


def name(prompt):
    """Short label of a prompt, for messages."""
    return f"{prompt.kernel.spec} {prompt.query.spec} noise={prompt.noise} d={prompt.d} l={prompt.length}"


def z_limit(checks, alpha=ALPHA):
    """Largest |z| allowed in each of several two-sided checks (Bonferroni)."""
    return norm.isf(alpha / (2 * checks))


def z_scores(first, second):
    """Differences of column means of two independent samples in units of their standard error; 0/0 is 0."""
    gap = first.mean(0) - second.mean(0)
    error = np.sqrt(first.var(0, ddof=1) / len(first) + second.var(0, ddof=1) / len(second))
    scale = np.maximum(np.abs(first.mean(0)), 1e-12)
    return np.where(
        error > 1e-9 * scale, gap / np.where(error > 0, error, 1), np.where(np.abs(gap) < 1e-9 * scale, 0, 1e9)
    )


def draw_contexts(prompt, n, seed, task=None):
    """Whole prompts drawn by NumPy from the joint matrix alone: (x, y, query, target, task)."""
    rng = np.random.default_rng(seed)
    k = np.asarray(prompt.query_vector)
    joint = np.block([[prompt.kernel.matrix(prompt.length), k[:, None]], [k[None, :], np.ones((1, 1))]])
    white = rng.standard_normal((n, prompt.length + 1, prompt.d))
    tokens = np.einsum("ab,nbi->nai", symmetric_root(joint), white, optimize=True) / np.sqrt(prompt.d)
    w = rng.standard_normal((n, prompt.d)) if task is None else np.broadcast_to(task, (n, prompt.d))
    labels = np.einsum("nai,ni->na", tokens, w)
    labels = labels + np.sqrt(prompt.noise) * rng.standard_normal((n, prompt.length + 1))
    return tokens[:, :-1], labels[:, :-1], tokens[:, -1], labels[:, -1], w


def summary(x, y):
    """[h, y.y/length] of each context, h = (d/length) sum y_a x_a, shape (n, d+1)."""
    length, d = x.shape[1:]
    return np.concatenate([np.einsum("na,nai->ni", y, x) * d / length, (y * y).sum(1)[:, None] / length], axis=1)


def published(file):
    """Rows of a table of published numbers, as strings."""
    path = Path(corricl.__file__).parent / "figures" / "published" / file
    with open(path, newline="") as text:
        return list(csv.DictReader(line for line in text if not line.startswith("#")))
