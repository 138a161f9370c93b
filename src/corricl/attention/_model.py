"""One model for every composition of layers, on one example; `vmap` it over a batch.

Two streams pass through the layers: the context tokens z_a = (sqrt(d) x_a, y_a) and query rows (sqrt(d) x_t, 0), their
entries of order one. Rows and tokens attend to tokens, never to a row: the label of a query has no way into
its prediction, because the model never gets it.

What is skipped, exactly:

- A prediction needs one row. From the last attention on, tokens are no longer updated: no attention, no MLP.
- That attention reads with one row, so its key and value matrices never meet every token (`Attention`).
  Rotary positions are the exception, because a key there turns with its position.
- If it is the first block as well, without LayerNorm and learned positions, its key and value matrices take the
  embedding in and tokens are not embedded. A one-layer model costs O(length d + width^2) operations.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..errors import InputError
from ..prompt import whole
from ._architecture import Architecture
from ._blocks import Layer
from ._positions import Sizes, View, require_length


class Model(eqx.Module):
    """A trained or untrained model; made by `build`, called on one example.

    Attributes:
        embedding: shape (width, d+1); None where tokens are their own embedding.
        places: vectors that learned positions add, shape (length+1, width), or None.
        layers: from first to last.
        readout: shape (width,); None reads the last channel.
        architecture: what it was built from.
    """

    embedding: Array | None
    places: Array | None
    layers: tuple[Layer, ...]
    readout: Array | None
    architecture: Architecture = eqx.field(static=True)

    def __call__(self, x: Array, y: Array) -> Array:
        """Prediction of the query's label, a scalar.

        Args:
            x: tokens, the query last, shape (length+1, d).
            y: labels of the context, shape (length,).
        """
        length = len(y)
        if x.shape[0] != length + 1:
            raise InputError(f"a prompt with {length} labels has {length + 1} tokens, the query last; got {len(x)}")
        return self._predict(_tokens(x[:length], y), _queries(x[length:]), np.array([length]))[0]

    def at_every_position(self, x: Array, y: Array) -> Array:
        """Predictions of every label from the tokens and labels before it, shape (length+1,).

        The prediction at position t is that of a prompt which ends there, `model(x[:t+1], y[:t])`.

        Args:
            x: tokens, shape (length+1, d).
            y: labels of all of them, shape (length+1,).

        Raises:
            InputError: under a full mask, where tokens would tell of those behind them.
        """
        if self.architecture.mask != "causal":
            raise InputError("predictions at every position need mask causal; under a full mask tokens see later ones")
        if x.shape[0] != len(y):
            raise InputError(f"every token needs its label here: got {len(x)} tokens and {len(y)} labels")
        return self._predict(_tokens(x[:-1], y[:-1]), _queries(x), np.arange(len(y)))

    def _predict(self, tokens: Array, rows: Array, at: np.ndarray) -> Array:
        """Predictions of rows (m, d+1) at positions `at`, each from the tokens (n, d+1) before it."""
        of = np.arange(len(tokens))
        seen = np.ones((len(of), len(of)), bool)
        context = View(of, of, np.tril(seen) if self.architecture.mask == "causal" else seen)
        query = View(at, of, of[None] < at[:, None])
        both = View(np.concatenate([of, at]), of, np.concatenate([context.seen, query.seen]))
        last = self._last_attention()
        layers = list(self.layers)
        rows = self._embed(rows, at)
        if last == 0 and self.embedding is not None and self.places is None and layers[0].folds:
            layers[0] = layers[0].through(self.embedding)
        elif last >= 0:
            tokens = self._embed(tokens, of)
        for index, layer in enumerate(layers):
            if index < last:
                tokens, rows = jnp.split(layer(jnp.concatenate([tokens, rows]), tokens, both), [len(of)])
            else:
                rows = layer(rows, tokens, query)
        return rows[:, -1] if self.readout is None else rows @ self.readout

    def _last_attention(self) -> int:
        """Index of the last layer that reads tokens; -1 where none does."""
        return max((i for i, layer in enumerate(self.layers) if layer.attention is not None), default=-1)

    def _embed(self, raw: Array, at: np.ndarray) -> Array:
        embedded = raw if self.embedding is None else raw @ self.embedding.T
        if self.places is None:
            return embedded
        require_length(View(at, at, at), len(self.places) - 1)
        return embedded + self.places[at]


def build(
    architecture: Architecture, d: int, length: int, *, key: Array, dtype: str | np.dtype | type = "float32"
) -> Model:
    """A model with random parameters.

    Matrices are N(0, 1/fan-in), which suits tokens with entries of order one; the last of each block is divided by
    sqrt(number of blocks). Biases and learned positions start at 0, position weights at 1.

    Args:
        architecture: its layers and sizes.
        d: token dimension.
        length: longest prompt for learned and weighted positions; other models take any.
        key: a JAX random key; NumPy draws the parameters from it, so that it cannot be traced.
        dtype: float32, or float64 where JAX has 64-bit types on.

    Raises:
        InputError: sizes that do not fit together.

    >>> model = build(Architecture("softmax+mlp", width=16), 4, 10, key=jax.random.key(0))
    >>> model(jnp.ones((11, 4)), jnp.ones(10)).shape
    ()
    """
    d, length = whole(d, "d"), whole(length, "length")
    width = d + 1 if architecture.width is None else architecture.width
    blocks = sum((layer.attention is not None) + layer.mlp for layer in architecture.plan)
    sizes = Sizes(width, architecture.heads, length, architecture.tied, architecture.positions, np.dtype(dtype), blocks)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))  # JAX would compile a program for each shape
    embeds = architecture.width is not None
    return Model(
        embedding=sizes.gaussian(rng, width, d + 1, fan_in=d + 1) if embeds else None,
        places=sizes.array(np.zeros((length + 1, width))) if architecture.positions == "learned" else None,
        layers=tuple(Layer(plan, sizes, architecture.mlp_ratio, rng) for plan in architecture.plan),
        readout=sizes.gaussian(rng, width, fan_in=width) if embeds else None,
        architecture=architecture,
    )


def _tokens(x: Array, y: Array) -> Array:
    """(sqrt(d) x_a, y_a), shape (n, d+1)."""
    return jnp.concatenate([x * x.shape[1] ** 0.5, y[:, None]], axis=1)


def _queries(x: Array) -> Array:
    """(sqrt(d) x_t, 0), shape (m, d+1)."""
    return _tokens(x, jnp.zeros_like(x[:, 0]))
