"""The curves as Bokeh figures: error over an axis, the kernel as a heat map, and its autocorrelation."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from bokeh.models import ColumnDataSource, HoverTool, Legend, LinearColorMapper, Range1d, Span, Whisker
from bokeh.palettes import interp_palette
from bokeh.plotting import figure

from ..prompt import Estimate
from ._curves import METHODS, Point
from ._state import State
from ._style import CORRELATIONS, LINES, POSITION, SIMULATED

if TYPE_CHECKING:
    from ..measure import Band

PIXELS = 96
"""Most rows of the heat map; longer contexts are thinned out evenly."""


class Chart:
    """ICL error over the axis of a state: a line for each method, simulated points, and where the state stands."""

    def __init__(self) -> None:
        self._known: dict[str, dict[float, Point]] = {method: {} for method in METHODS}
        self._lines = {method: ColumnDataSource({"x": [], "y": []}) for method in METHODS}
        self._doubtful = ColumnDataSource({"x": [], "y": []})
        self._simulated = ColumnDataSource({"x": [], "y": [], "low": [], "high": []})
        self._position = Span(dimension="height", line_color=POSITION, line_dash="dotted", line_width=1.5)

    @property
    def points(self) -> list[Point]:
        """Every point that is shown or refused, line by line."""
        return [known[x] for known in self._known.values() for x in sorted(known)]

    def clear(self) -> None:
        """Take all lines off, as before another curve."""
        for method, known in self._known.items():
            if known:
                known.clear()
                self._lines[method].data = {"x": [], "y": []}
        self._show_doubtful()

    def add(self, points: Iterable[Point]) -> None:
        """Show more points."""
        touched = set()
        for found in points:
            self._known[found.method][found.x] = found
            touched.add(found.method)
        for method in touched:
            line = [self._known[method][x] for x in sorted(self._known[method])]
            y = [_finite(p.icl) for p in line]
            self._lines[method].data = {"x": np.array([p.x for p in line]), "y": np.array(y)}
        self._show_doubtful()

    def _show_doubtful(self) -> None:
        doubtful = [p for p in self.points if not p.valid and p.icl is not None and math.isfinite(p.icl)]
        data: dict[str, Any] = {"x": [p.x for p in doubtful], "y": [p.icl for p in doubtful]}
        if data != self._doubtful.data:
            self._doubtful.data = data

    def place(self, x: float) -> None:
        """Mark where the state stands."""
        self._position.location = x if math.isfinite(x) else None

    def simulate(self, found: dict[float, Estimate]) -> None:
        """Show simulated points with two standard errors to each side."""
        rows = sorted(found.items())
        errors = [2 * (e.stderr or 0.0) for _, e in rows]
        means = [e.mean for _, e in rows]
        data: dict[str, Any] = {
            "x": [x for x, _ in rows],
            "y": means,
            "low": [m - e for m, e in zip(means, errors, strict=True)],
            "high": [m + e for m, e in zip(means, errors, strict=True)],
        }
        if data != self._simulated.data:
            self._simulated.data = data

    def figure(self, state: State) -> figure:
        """A new canvas with the axes of a state."""
        quantity = state.quantity
        canvas = figure(
            height=400,
            sizing_mode="stretch_width",
            tools="pan,box_zoom,wheel_zoom,reset",
            x_range=_ends(state),
            x_axis_type="log" if quantity.log else "linear",
            y_axis_type=state.scale,  # type: ignore[arg-type]
            x_axis_label=quantity.label,
            y_axis_label="ICL error (mean squared)",
        )
        if state.scale == "linear":
            canvas.y_range.start = 0  # type: ignore[attr-defined]
        items = []
        for method, label in METHODS.items():
            color, dash = LINES[method]
            look = {"color": color, "line_dash": dash, "line_width": 2.2}
            items.append((label, [canvas.line("x", "y", source=self._lines[method], name=label, **look)]))
        lines = [line for _, (line,) in items]
        tooltips = [("", "$name"), (quantity.label, "@x"), ("ICL error", "@y{0.0000}")]
        canvas.add_tools(HoverTool(renderers=lines, tooltips=tooltips))
        doubt = canvas.scatter("x", "y", source=self._doubtful, marker="x", color=POSITION, size=7)
        dots = canvas.scatter("x", "y", source=self._simulated, color=SIMULATED, size=8)
        bars = Whisker(base="x", upper="high", lower="low", source=self._simulated, line_color=SIMULATED, line_width=2)
        bars.upper_head.size = bars.lower_head.size = 8  # type: ignore[union-attr]
        canvas.add_layout(bars)
        canvas.add_layout(self._position)
        items += [("simulation, ± 2 s.e.", [dots]), ("not valid here", [doubt])]
        look = {
            "border_line_color": None,
            "location": "left",
            "margin": 0,
            "padding": 2,
            "glyph_width": 16,
            "ncols": 2,
            "label_text_font_size": "10px",
            "spacing": 0,
        }
        canvas.add_layout(Legend(items=items, click_policy="hide", **look), "below")
        return _calm(canvas)


class KernelView:
    """The kernel of a state: its matrix with the query last, and its correlations over the lag."""

    def __init__(self) -> None:
        self._image = ColumnDataSource({"image": [np.zeros((1, 1), np.float32)], "size": [1]})
        self._lags = ColumnDataSource({"lag": [], "r": []})
        self._query = ColumnDataSource({"lag": [], "r": []})
        self._measured = ColumnDataSource({"lag": [], "r": [], "low": [], "high": []})
        self.heat = figure(height=280, width=290, tools="", x_axis_label="token", y_axis_label="token (query last)")
        mapper = LinearColorMapper(palette=list(interp_palette(CORRELATIONS, 255)), low=-1, high=1)
        look: dict[str, Any] = {"x": 0, "y": 0, "dw": "size", "dh": "size", "level": "image", "color_mapper": mapper}
        drawn = self.heat.image("image", source=self._image, **look)
        self.heat.x_range.range_padding = self.heat.y_range.range_padding = 0  # type: ignore[attr-defined]
        self.heat.y_range.flipped = True  # type: ignore[attr-defined]
        self.heat.add_layout(drawn.construct_color_bar(width=8), "right")
        self.lags = figure(
            height=280,
            sizing_mode="stretch_width",
            tools="pan,box_zoom,reset",
            x_axis_label="lag (tokens)",
            y_axis_label="correlation",
        )
        color = LINES["positional"][0]
        self.lags.varea("lag", "low", "high", source=self._measured, color=color, alpha=0.25)
        self.lags.line("lag", "r", source=self._measured, color=color, legend_label="your data, with band")
        self.lags.line("lag", "r", source=self._lags, color=LINES["linear"][0], line_width=2, legend_label="tokens")
        self.lags.scatter(
            "lag", "r", source=self._query, color=LINES["softmax"][0], size=4, legend_label="query with each token"
        )
        self.lags.legend.border_line_color = None
        _calm(self.heat)
        _calm(self.lags)

    def show(self, state: State) -> None:
        """Draw the kernel of a state."""
        prompt = state.setting.prompt
        joint, size = prompt.joint, prompt.length + 1
        kept = np.unique(np.linspace(0, size - 1, min(size, PIXELS)).round().astype(int))
        self._image.data = {"image": [joint[np.ix_(kept, kept)].astype(np.float32)], "size": [size]}
        means = [float(np.diagonal(joint[:-1, :-1], lag).mean()) for lag in range(prompt.length)]
        self._lags.data = {"lag": np.arange(prompt.length), "r": np.array(means)}
        self._query.data = {"lag": np.arange(prompt.length, 0, -1), "r": prompt.query_vector}

    def measured(self, band: Band) -> None:
        """Draw the autocorrelation of data beside that of the kernel."""
        lag = np.arange(len(band.estimate))
        self._measured.data = {"lag": lag, "r": band.estimate, "low": band.low, "high": band.high}


def _ends(state: State) -> Range1d:
    """The control's range, wider where the state stands outside of it (0 and inf are on no axis)."""
    quantity, x = state.quantity, state.position
    here = [x] if math.isfinite(x) and (x > 0 or not quantity.log) else []
    return Range1d(start=min(quantity.low, *here, quantity.high), end=max(quantity.high, *here, quantity.low))


def _finite(value: float | None) -> float:
    """A gap in the line where there is no finite number."""
    return value if value is not None and math.isfinite(value) else math.nan


def _calm(canvas: figure) -> figure:
    canvas.outline_line_color = None
    canvas.grid.grid_line_alpha = 0.35
    canvas.axis.axis_label_text_font_style = "normal"
    canvas.axis.axis_line_color = canvas.axis.major_tick_line_color = "#888"
    canvas.axis.minor_tick_line_color = None
    canvas.toolbar.logo = None
    canvas.toolbar.autohide = True
    return canvas
