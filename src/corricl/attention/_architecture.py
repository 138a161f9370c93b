"""What a model is made of, in plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..errors import InputError
from ..prompt import whole
from ._attentions import known_attentions
from ._positions import CHOICES

MASKS = ("full", "causal")
FORM = "a layer is written [ln+]ATTENTION[+mlp] or [ln+]mlp"
WIDTH = 64
"""Width of models that embed their tokens, unless given."""


class Plan(NamedTuple):
    """One layer."""

    norm: bool
    attention: str | None
    mlp: bool


@dataclass(frozen=True)
class Architecture:
    """A list of layers and their sizes.

    Layers are separated by commas. Each is `[ln+]ATTENTION[+mlp]` or `[ln+]mlp`, `ln` a LayerNorm before
    each of its blocks: `linear`, `softmax+mlp`, `ln+softmax+mlp`, `linear,softmax`.

    Args:
        layers: the list.
        repeats: how often the whole list is stacked, >= 1.
        width: of the residual stream. None leaves tokens as they are, d+1 channels of which the last is
            the prediction, if all layers are `linear`; otherwise it is 64.
        heads: of every attention, >= 1.
        positions: none, learned (vectors added to the embedding), rotary, alibi, or weighted (a learned
            factor of the weights for each distance).
        mask: full or causal, what context tokens see of each other. The query always sees the whole context.
        tied: K = Q in every attention.
        mlp_ratio: hidden over residual width in an MLP, >= 1.

    Raises:
        InputError: an unknown name (the message lists the known ones) or a size out of range.

    >>> Architecture("ln+softmax+mlp", repeats=2).plan[1].attention
    'softmax'
    """

    layers: str = "linear"
    repeats: int = 1
    width: int | None = None
    heads: int = 1
    positions: str = "none"
    mask: str = "full"
    tied: bool = False
    mlp_ratio: int = 4

    def __post_init__(self) -> None:
        plan = [_layer(text, self.layers) for text in self.layers.split(",")]
        for name in ("repeats", "heads", "mlp_ratio"):
            object.__setattr__(self, name, whole(getattr(self, name), name))
        raw = all(layer == Plan(False, "linear", False) for layer in plan)
        width = self.width if self.width is not None or raw else WIDTH
        object.__setattr__(self, "width", None if width is None else whole(width, "width"))
        for name, known in (("positions", tuple(CHOICES)), ("mask", MASKS)):
            if getattr(self, name) not in known:
                raise InputError(f"{name} must be one of {', '.join(known)}; got '{getattr(self, name)}'")

    @property
    def plan(self) -> tuple[Plan, ...]:
        """Every layer from first to last."""
        return tuple(_layer(text, self.layers) for text in self.layers.split(",")) * self.repeats


def _layer(text: str, layers: str) -> Plan:
    words = [word.strip() for word in text.split("+")]
    norm = words[0] == "ln"
    rest = words[norm:]
    mlp = rest[-1:] == ["mlp"]
    names = rest[: len(rest) - mlp]
    if len(names) > 1 or not (names or mlp) or {"ln", "mlp", ""} & set(names):
        raise InputError(f"layers '{layers}' are not understood: {FORM}")
    for name in names:
        if name not in (known := known_attentions()):
            raise InputError(f"unknown attention '{name}' in '{layers}'; known attentions: {', '.join(known)}; {FORM}")
    return Plan(norm, names[0] if names else None, mlp)
