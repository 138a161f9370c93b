"""The controls: widgets on one side, a `State` on the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import panel as pn

from ..errors import InputError
from ..kernels import parse
from ._presets import PRESETS
from ._quantities import SIZES, Quantity, families, parameters, spec_of, values_of
from ._state import AXES, State

SPEC = "any SPEC …"
QUERIES = {
    "independent": "independent",
    "continues the sequence": "continues",
    "after a gap": "gap",
    "weakened": "strength",
}
EXTRAS = {"gap": Quantity("gap G (tokens)", 1, 50, 2, whole=True), "strength": Quantity("strength S", 0, 1, 0.5)}
STEP = 0.002


class Knob:
    """A number with a slider beside it; what stands in the box is exact."""

    def __init__(self, name: str, quantity: Quantity, changed: Callable[[], None]) -> None:
        self.quantity = quantity
        self._changed, self._quiet = changed, False
        self._slider = pn.widgets.FloatSlider(
            label=quantity.label, start=0, end=1, step=STEP, show_value=False, margin=(6, 8, 0, 2), min_width=60,
            sizing_mode="stretch_width",
        )  # fmt: skip
        self._box = pn.widgets.FloatInput(width=92, margin=(10, 0, 0, 6))
        self._slider.param.watch(self._slid, "value")
        self._box.param.watch(self._typed, "value")
        look = {"sizing_mode": "stretch_width", "margin": 0, "css_classes": [f"knob-{name}"]}
        self.view = pn.Row(self._slider, self._box, **look)
        self.show(quantity.default)

    @property
    def value(self) -> float:
        """The number in the box."""
        if self._box.value is None:
            raise InputError(f"{self.quantity.label} must be a number")
        return float(self._box.value)

    def show(self, value: float, note: str = "") -> None:
        """Set both sides without telling anybody."""
        self._quiet = True
        self._box.value, self._slider.value = value, self._nearest(value)
        self._quiet = False
        self.note(note)

    def note(self, text: str) -> None:
        """What stands beside the label, such as a ratio."""
        label = self.quantity.label + (f", {text}" if text else "")
        if self._slider.label != label:
            self._slider.label = label

    def _nearest(self, value: float) -> float:
        return round(self.quantity.share_of(value) / STEP) * STEP

    def _slid(self, event: Any) -> None:
        if not self._quiet:
            self._quiet = True
            self._box.value = self.quantity.at(event.new)
            self._quiet = False
            self._changed()

    def _typed(self, event: Any) -> None:
        if not self._quiet:
            self._quiet = True
            self._slider.value = self._nearest(self._box.value or 0.0)
            self._quiet = False
            self._changed()


class Controls:
    """Everything on the left of the page.

    Args:
        changed: called after the user has changed anything.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed, self._quiet = changed, False
        self.sizes = {name: Knob(name, quantity, self._tell) for name, quantity in SIZES.items()}
        self._unbounded = pn.widgets.Checkbox(
            label="∞: each sequence its own task", margin=(0, 0, 0, 2), css_classes=["unbounded"]
        )
        self._preset = self._select("Setting of the figure", ["–", *PRESETS])
        self._family = self._select("Kernel of the tokens", [*families(), SPEC])
        self._spec = pn.widgets.TextInput(label="SPEC, such as 0.7*exp:5+0.3*iid", sizing_mode="stretch_width")
        self._query = self._select("Query", QUERIES)
        over = {text: name for name, text in AXES.items()}
        self.axis = pn.widgets.Select(label="Curves over", options=over, width=260, margin=(6, 0, 0, 2))
        self._parameters: list[Knob] = []
        self._extra: Knob | None = None
        self._of_kernel = pn.Column(margin=0, sizing_mode="stretch_width")
        self._of_query = pn.Column(margin=0, sizing_mode="stretch_width")
        self._built: tuple[str, str] | None = None
        for widget in (self._unbounded, self._spec, self.axis):
            widget.param.watch(self._tell, "value")
        self._preset.param.watch(self._take_preset, "value")
        self._family.param.watch(self._take_family, "value")
        self._query.param.watch(self._take_query, "value")
        self.on_state: Callable[[State], None] = lambda state: None
        """Takes a state that is not a small change, as of a preset."""
        self._last = State()
        self.view = pn.Column(
            self._preset,
            self._family,
            self._of_kernel,
            self._query,
            self._of_query,
            *(self.sizes[name].view for name in ("length", "d", "sequences", "tasks")),
            self._unbounded,
            *(self.sizes[name].view for name in ("noise", "ridge")),
            margin=0,
            sizing_mode="stretch_width",
        )

    def _select(self, name: str, options: Any) -> pn.widgets.Select:
        return pn.widgets.Select(label=name, options=options, sizing_mode="stretch_width", margin=(6, 0, 0, 2))

    def read(self, scale: str) -> State:
        """What the widgets say.

        Raises:
            InputError: what they say is not allowed.
        """
        family = self._family.value
        kernel = self._spec.value if family == SPEC else spec_of(family, tuple(k.value for k in self._parameters))
        query = self._query.value
        if self._extra is not None:
            value = self._extra.value
            query = f"{query}:{int(value) if query == 'gap' else repr(value)}"
        numbers: dict[str, Any] = {name: knob.value for name, knob in self.sizes.items()}
        if self._unbounded.value:
            numbers["tasks"] = math.inf
        state = State(**numbers, kernel=kernel, query=query, axis="length", scale=scale)
        axis = self.axis.value
        return state if axis == "kernel" and not state.parameters else replace(state, axis=axis)

    def show(self, state: State) -> None:
        """Set every widget that says something else, without telling anybody."""
        self._quiet, self._last = True, state
        d = state.d
        notes = {
            "length": f"α = {state.length / d:.3g}",
            "sequences": f"τ = {state.sequences / d**2:.3g}",
            "tasks": f"κ = {state.tasks / d:.3g}".replace("inf", "∞"),
        }
        for name, knob in self.sizes.items():
            value = getattr(state, name)
            knob.show(self.sizes["tasks"].value if value == math.inf else value, notes.get(name, ""))
        self._unbounded.value = state.tasks == math.inf
        self._show_kernel(state)
        self._show_query(state)
        self.axis.value = state.axis
        self._preset.value = next((name for name, known in PRESETS.items() if known == state), "–")
        self._quiet = False

    def _show_kernel(self, state: State) -> None:
        kernel = parse(state.kernel)
        values = values_of(kernel)
        typed = self._family.value == SPEC and self._spec.value
        family = SPEC if values is None or typed else kernel.name
        self._build(family, self._built[1] if self._built else "")
        self._family.value = family
        if family == SPEC:
            self._spec.value = state.kernel
        for knob, value in zip(self._parameters, values or (), strict=False):
            knob.show(value)

    def _show_query(self, state: State) -> None:
        form, _, value = state.query.partition(":")
        self._build(self._built[0] if self._built else "", form)
        self._query.value = form
        if self._extra is not None:
            self._extra.show(float(value))

    def _build(self, family: str, form: str) -> None:
        """The widgets of a family and of a form of the query; those that stand already stay."""
        before = self._built or ("", "")
        if family != before[0]:
            known = () if family in (SPEC, "") else parameters(family)
            self._parameters = [Knob(f"kernel-{i}", quantity, self._tell) for i, quantity in enumerate(known)]
            self._of_kernel[:] = [self._spec] if family == SPEC else [knob.view for knob in self._parameters]
        if form != before[1]:
            self._extra = Knob("query", EXTRAS[form], self._tell) if form in EXTRAS else None
            self._of_query[:] = [] if self._extra is None else [self._extra.view]
        self._built = (family, form)

    def _take_family(self, event: Any) -> None:
        if self._quiet:
            return
        self._quiet = True
        self._build(event.new, (self._built or ("", ""))[1])
        self._spec.value = self._last.kernel
        for knob in self._parameters:
            knob.show(knob.quantity.default)
        self._quiet = False
        self._tell()

    def _take_query(self, event: Any) -> None:
        if self._quiet:
            return
        self._quiet = True
        self._build((self._built or ("", ""))[0], event.new)
        if self._extra is not None:
            self._extra.show(self._extra.quantity.default)
        self._quiet = False
        self._tell()

    def _take_preset(self, event: Any) -> None:
        if not self._quiet and event.new in PRESETS:
            self.on_state(PRESETS[event.new])

    def _tell(self, event: Any = None) -> None:
        if not self._quiet:
            self._changed()
