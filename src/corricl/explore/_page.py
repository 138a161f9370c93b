"""The page: controls on the left; numbers, curves, simulation, kernel, data and code on the right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO, StringIO
from typing import TYPE_CHECKING, Any

import panel as pn

from ..errors import CorriclError, InputError
from ..prompt import Estimate
from . import _code, _curves, _data, _export, _readouts, _simulation, _words
from ._background import Background, Post
from ._chart import Chart, KernelView
from ._controls import Controls
from ._data import Dropper
from ._readouts import Readouts
from ._state import State
from ._style import BASE, LEFT, RIGHT

if TYPE_CHECKING:
    from ..measure import Measurement

ADDRESS = "window.history.replaceState(null, '', '?' + cb_obj.value)"
COPY = "navigator.clipboard.writeText(source.value)"
HTML: dict[str, Any] = {"stylesheets": [BASE], "margin": 0, "sizing_mode": "stretch_width"}


class Page:
    """One visitor's page. Its background work ends with `close`.

    Args:
        address: query part of the address it was opened with.
        post: how background work reaches the page's thread.
    """

    def __init__(self, address: str, post: Post) -> None:
        self._theory, self._simulation, self._measuring = (Background(post) for _ in range(3))
        self._simulated: dict[State, Estimate] = {}
        self._chart, self._kernel = Chart(), KernelView()
        self.controls = Controls(self._turned)
        self.controls.on_state = self.show
        self.state = State()
        self._readouts: Readouts | None = None
        self._measured: Measurement | None = None
        self._complete = False
        self._drawn: tuple[Any, ...] = ()
        self._make_widgets()
        try:
            first, trouble = State.from_address(address), ""
        except CorriclError as error:
            first, trouble = self.state, f"The address is not understood: {error}."
        self.show(first)
        self._say(trouble)

    def _make_widgets(self) -> None:
        self._problem = pn.pane.HTML("", **HTML)
        self._numbers = pn.pane.HTML("", **HTML)
        self._progress = pn.pane.HTML("", **HTML)
        self._canvas = pn.pane.Bokeh(sizing_mode="stretch_width", margin=0)
        self._log = pn.widgets.Checkbox(label="logarithmic error", margin=(22, 0, 0, 12), css_classes=["log"])
        self._log.param.watch(lambda event: self._turned(), "value")
        csv = pn.widgets.FileDownload(callback=self._csv, filename="corricl.csv", label="Numbers (CSV)")
        png = pn.widgets.FileDownload(callback=self._png, filename="corricl.png", label="Picture (PNG)")
        self._downloads = pn.FlexBox(csv, png, margin=0)
        self._run = pn.widgets.Button(label="Simulate here", color="primary")
        self._stop = pn.widgets.Button(label="Cancel", disabled=True)
        self._replicates = pn.widgets.IntInput(label="replicates", value=10, start=2, end=1000, width=90)
        self._bar = pn.indicators.Progress(value=0, max=1, sizing_mode="stretch_width", min_width=80, visible=False)
        self._outcome = pn.pane.HTML("", **HTML)
        self._run.on_click(self._simulate)
        self._stop.on_click(self._cancel)
        self._drop = Dropper(max_file_size="50MB", chunk_size=5_000_000, sizing_mode="stretch_width", height=90)
        self._drop.param.watch(self._dropped, "value")
        self._report = pn.pane.HTML("", **HTML)
        self._use = pn.widgets.Button(label="Use its kernel in all views", visible=False)
        self._use.on_click(self._take_kernel)
        self._address = pn.widgets.TextInput(visible=False)
        self._address.jscallback(value=ADDRESS)
        area = {"rows": 9, "sizing_mode": "stretch_width", "max_length": 10_000}
        self._command = pn.widgets.TextAreaInput(label="Command", css_classes=["command"], **area)
        self._python = pn.widgets.TextAreaInput(label="Python", css_classes=["python"], **area)

    @property
    def view(self) -> pn.viewable.Viewable:
        """What is seen first, in a layout that folds in a narrow window; `complete` adds the rest."""
        left = pn.Column(self.controls.view, styles=LEFT, margin=0)
        self._right = pn.Column(self._problem, self._numbers, styles=RIGHT, margin=0)
        top = pn.pane.HTML(_words.INTRODUCTION, **{**HTML, "styles": {"padding": "0 1rem"}})
        return pn.Column(top, pn.FlexBox(left, self._right, margin=0), sizing_mode="stretch_width", margin=0)

    def complete(self) -> None:
        """Add the plots and what is below them, and start the curves, once the upper part is on the screen."""
        self._complete = True
        self._draw(self.state)
        upper = (*self._curves(), *self._simulate_here(), *self._kernel_below())
        self._right.extend([*upper, *self._your_data(), *self._in_code(), self._address])
        self._start(self.state)

    def _curves(self) -> list[pn.viewable.Viewable]:
        choices = pn.FlexBox(self.controls.axis, self._log, margin=0)
        return [_heading("ICL error"), choices, self._canvas, self._progress, self._downloads]

    def _simulate_here(self) -> list[pn.viewable.Viewable]:
        return [
            _heading("Simulate here", "Pretrains the reduced model at this size and adds its exact error to the plot."),
            pn.FlexBox(self._replicates, self._run, self._stop, align_items="end", margin=0),
            self._bar,
            self._outcome,
        ]

    def _kernel_below(self) -> list[pn.viewable.Viewable]:
        heat = pn.pane.Bokeh(self._kernel.heat, margin=0)
        flex = {"flex": "1 1 260px", "min-width": "0", "max-width": "560px"}
        lags = pn.Column(pn.pane.Bokeh(self._kernel.lags, margin=0), styles=flex, margin=0)
        return [_heading("Kernel"), pn.FlexBox(heat, lags, margin=0)]

    def _your_data(self) -> list[pn.viewable.Viewable]:
        note = (
            "Drop a .npy, .npz, .csv or .parquet file of sequences: (sequences, tokens, channels), (tokens, channels) "
            "or (tokens). It is measured at the context length ℓ and noise ρ above, on this machine, and not kept."
        )
        return [_heading("Your data", note), self._drop, self._use, self._report]

    def _in_code(self) -> list[pn.viewable.Viewable]:
        def copier(name: str, source: pn.widgets.TextAreaInput) -> pn.widgets.Button:
            button = pn.widgets.Button(label=name, width=160)
            button.js_on_click(args={"source": source}, code=COPY)
            return button

        return [
            _heading("This setting in your own hands", "The commands print the numbers of this page."),
            self._command,
            copier("Copy as command", self._command),
            self._python,
            copier("Copy as Python", self._python),
        ]

    def close(self) -> None:
        """End the background work."""
        for work in (self._theory, self._simulation, self._measuring):
            work.close()

    def show(self, state: State) -> None:
        """Show a state everywhere: closed forms now, the rest as it comes."""
        self.state = state
        self._say("")
        self._readouts = _readouts.closed(state)
        self._numbers.object = _words.readouts(state, self._readouts)
        self.controls.show(state)
        self._log.value = state.scale == "log"
        self._address.value = state.address
        self._command.value, self._python.value = _code.command(state), _code.python(state)
        if self._complete:
            self._draw(state)
            self._start(state)

    def _start(self, state: State) -> None:
        self._progress.object = _words.progress("")
        self._theory.start(self._work(state), self._arrived, self._ended)

    def _draw(self, state: State) -> None:
        """The plots; what has not changed stays."""
        before, self._drawn = self._drawn, (state.line, state.quantity, state.scale, state.setting.prompt)
        if before[:1] != self._drawn[:1]:
            self._chart.clear()
        if before[1:3] != self._drawn[1:3]:
            self._canvas.object = self._chart.figure(state)
        if before[3:] != self._drawn[3:]:
            self._kernel.show(state)
        self._chart.place(state.position)
        self._show_simulated()

    def _turned(self) -> None:
        try:
            self.show(self.controls.read("log" if self._log.value else "linear"))
        except CorriclError as error:
            self._theory.cancel()
            self._say(f"{error}. The numbers below are those of the last good setting.")

    def _say(self, text: str) -> None:
        self._problem.object = _words.problem(text)

    def _work(self, state: State) -> Iterator[Readouts | _curves.Point]:
        assert self._readouts is not None
        yield from _readouts.gathered(self._readouts, state)
        yield from _curves.points(state)

    def _arrived(self, items: list[Readouts | _curves.Point]) -> None:
        found = [item for item in items if isinstance(item, Readouts)]
        if found:
            self._readouts = found[-1]
            self._numbers.object = _words.readouts(self.state, found[-1])
        points = [item for item in items if not isinstance(item, Readouts)]
        if points:
            self._chart.add(points)
            self._progress.object = _words.progress(_curves.METHODS[points[-1].method])

    def _ended(self, failure: Exception | None) -> None:
        refused = {p.method: p.note for p in self._chart.points if p.note}
        notes = [f"{_curves.METHODS[method]}: {note}" for method, note in refused.items()]
        if failure is not None:
            notes.append(f"the curves stopped: {type(failure).__name__}: {failure}")
        self._progress.object = _words.progress(None, notes)

    def _here(self) -> dict[float, Estimate]:
        """Simulated points that lie on the curve shown."""
        line, axis = self.state.line, self.state.axis
        same = {s: e for s, e in self._simulated.items() if replace(s, axis=axis, scale=self.state.scale).line == line}
        return {replace(s, axis=axis).position: e for s, e in same.items()}

    def _show_simulated(self) -> None:
        self._chart.simulate(self._here())

    def _csv(self) -> StringIO:
        return StringIO(_export.table(self.state, self._chart.points, self._here()))

    def _png(self) -> BytesIO:
        return BytesIO(_export.picture(self.state, self._chart.points, self._here()))

    def _simulate(self, event: Any) -> None:
        state, wanted = self.state, self._replicates.value or 10
        try:
            _simulation.check(state)
        except InputError as error:
            self._outcome.object = _words.problem(str(error))
            return

        def progressed(found: list[tuple[int, Estimate]]) -> None:
            done, icl = found[-1]
            self._bar.value = done
            self._simulated[state] = icl
            error = "" if icl.stderr is None else f" ± {icl.stderr:.2g}"
            self._outcome.object = (
                f"<p data-name='simulated' data-value='{icl.mean!r}' data-done='{done}'>"
                f"ICL error {icl.mean:.4g}{error} after {done} of {wanted}</p>"
            )
            self._show_simulated()

        self._simulating(True)
        self._bar.max, self._bar.value = wanted, 0
        self._outcome.object = "<p>compiling and drawing the first replicate …</p>"
        self._simulation.start(_simulation.running_means(state, wanted), progressed, self._simulated_all)

    def _simulated_all(self, failure: Exception | None) -> None:
        self._simulating(False)
        if failure is not None:
            self._outcome.object = _words.problem(f"the simulation stopped: {failure}")

    def _cancel(self, event: Any) -> None:
        self._simulation.cancel()
        self._simulating(False)
        self._outcome.object += "<p data-name='cancelled'>cancelled; finished replicates are kept</p>"

    def _dropped(self, event: Any) -> None:
        self._report.object, self._use.visible = "", False
        if not self._drop.value:
            return
        name, content = list(self._drop.value.items())[-1]

        def show(found: list[tuple[Measurement, str]]) -> None:
            self._measured, self._report.object = found[-1]
            self._use.visible = True
            self._kernel.measured(self._measured.autocorrelation)

        def end(failure: Exception | None) -> None:
            if failure is not None:
                self._report.object = _words.problem(str(failure))

        self._report.object = "<p>measuring …</p>"
        self._measuring.start(_data.measured(name, content, self.state.length, self.state.noise), show, end)

    def _take_kernel(self, event: Any) -> None:
        assert self._measured is not None
        try:
            state = replace(self.state, kernel=self._measured.kernel, axis="length")
            self.show(replace(state, axis="kernel") if state.parameters else state)
        except CorriclError as error:
            self._say(str(error))

    def _simulating(self, on: bool) -> None:
        self._run.disabled, self._stop.disabled, self._bar.visible = on, not on, on


def _heading(text: str, note: str = "") -> pn.pane.HTML:
    return pn.pane.HTML(_words.heading(text, note), **HTML)
