"""Attentions: how a row reads tokens. A new one is one small class; see CONTRIBUTING.md."""

from __future__ import annotations

import math
from functools import lru_cache
from importlib.metadata import entry_points
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..errors import InputError
from ._positions import CHOICES, Positions, Sizes, View


class Attention(eqx.Module):
    """Rows add O_h V_h sum_a p_a z_a over heads h, with weights p that `weights` makes of scores (Q_h z)'(K_h z_a).

    A subclass names itself by the class attribute `name` and defines `weights`. Defining the class is enough
    to make the name valid in a list of layers wherever the module has been imported.

    Products are associated by their cost (`einsum` does it): with one row and n tokens of width c, Q and K meet the row
    before the tokens do and V meets one weighted sum, so n c + c^2 operations, and no token ever has a key or value.

    Attributes:
        name: what a list of layers calls it.
        split: True where the heads share the width among them and an output matrix joins them; otherwise
            every head has square Q, K and V and no output matrix follows.
        folds: True where tokens enter only through `key` and `value`, so that `through` is exact.
    """

    query: Array  # (heads, inner, width)
    key: Array | None  # (heads, inner, width); None is tied to the query
    value: Array  # (heads, inner, width)
    output: Array | None  # (width, heads, inner)
    positions: Positions

    name: ClassVar[str] = ""
    split: ClassVar[bool] = True
    folds: ClassVar[bool] = True
    registry: ClassVar[dict[str, type[Attention]]] = {}

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in cls.__dict__ and cls.name:
            known = Attention.registry.get(cls.name)
            if known is not None and known.__qualname__ != cls.__qualname__:
                raise InputError(f"attention name '{cls.name}' is taken by {known.__qualname__}")
            Attention.registry[cls.name] = cls

    def __init__(self, sizes: Sizes, rng: np.random.Generator) -> None:
        width, heads = sizes.width, sizes.heads
        if self.split and width % heads:
            raise InputError(f"attention '{self.name}' needs a width that {heads} heads can share; got {width}")
        inner = width // heads if self.split else width
        last = width * sizes.blocks  # so that the sum of all blocks is of order one
        self.query = sizes.gaussian(rng, heads, inner, width, fan_in=width)
        self.value = sizes.gaussian(rng, heads, inner, width, fan_in=width if self.split else last)
        self.key = None if sizes.tied else sizes.gaussian(rng, heads, inner, width, fan_in=width)
        self.output = sizes.gaussian(rng, width, heads, inner, fan_in=last) if self.split else None
        self.positions = CHOICES[sizes.positions](sizes)

    def weights(self, scores: Array, view: View) -> Array:
        """Weights of each head, row and token from their scores, both (heads, m, n); 0 where a token is not seen."""
        raise NotImplementedError

    def __call__(self, rows: Array, tokens: Array, view: View) -> Array:
        """What m rows (m, width) read from n tokens (n, width), shape (m, width)."""
        scores = self.positions.on_scores(self._scores(rows, tokens, view), view)
        weights = self.positions.on_weights(self.weights(scores, view), view)
        if self.output is None:
            return jnp.einsum("hmn,nk,hok->mo", weights, tokens, self.value)
        return jnp.einsum("hmn,nk,hjk,ohj->mo", weights, tokens, self.value, self.output)

    def through(self, embedding: Array) -> Attention:
        """The same attention on tokens that are not embedded yet: K and V take the embedding (width, c) in."""
        key = self.query if self.key is None else self.key
        folded = (key @ embedding, self.value @ embedding)
        return eqx.tree_at(lambda a: (a.key, a.value), self, folded, is_leaf=lambda x: x is None)

    def _scores(self, rows: Array, tokens: Array, view: View) -> Array:
        key = self.query if self.key is None else self.key
        if not self.positions.turns:
            return jnp.einsum("mi,hji,hjk,nk->hmn", rows, self.query, key, tokens)
        turned = self.positions.turn(jnp.einsum("mi,hji->hmj", rows, self.query), view.at)
        return jnp.einsum("hmj,hnj->hmn", turned, self.positions.turn(jnp.einsum("nk,hjk->hnj", tokens, key), view.of))


class Linear(Attention):
    """Linear attention: weights are scores over the number of tokens seen; Q, K and V are square."""

    name = "linear"
    split = False

    def weights(self, scores: Array, view: View) -> Array:
        return scores * jnp.asarray(view.seen / view.visible, scores.dtype)[None]


class Softmax(Attention):
    """Softmax attention: scores over sqrt(inner), normalised among the tokens seen."""

    name = "softmax"

    def weights(self, scores: Array, view: View) -> Array:
        scores = scores / math.sqrt(self.query.shape[1])
        seen = jnp.asarray(view.seen)[None]
        top = jnp.max(jnp.where(seen, scores, jnp.finfo(scores.dtype).min), axis=-1, keepdims=True)
        raised = jnp.where(seen, jnp.exp(jnp.where(seen, scores - jax.lax.stop_gradient(top), 0)), 0)
        total = raised.sum(-1, keepdims=True)
        return raised / jnp.where(total > 0, total, 1)  # a row that sees nothing reads 0


@lru_cache(maxsize=1)
def _load_entry_points() -> None:
    for point in entry_points(group="corricl.attention"):
        point.load()  # defining the class registers it


def known_attentions() -> dict[str, type[Attention]]:
    """Every attention that a list of layers can name, those of installed plug-ins included."""
    _load_entry_points()
    return dict(sorted(Attention.registry.items()))
