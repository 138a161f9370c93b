"""What the page says, as HTML. Every number carries its full value and its name, so that it can be read back."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ._readouts import Readouts, shown
from ._state import State

INTRODUCTION = (
    "<h1>How much is a prompt worth when its tokens are not independent?</h1>"
    "<p class='quiet'>Turn a knob and look. The address of this page holds the whole setting: "
    "copy it to share the view.</p>"
)


def readouts(state: State, found: Readouts) -> str:
    """Tables of the numbers of a state, and its warnings."""
    values = found.values()

    def cell(name: str, wait: bool = False) -> str:
        value = values[name]
        text = "…" if value is None and wait else shown(value)
        return f"<td><b data-name='{name}' data-value='{'' if value is None else repr(value)}'>{text}</b></td>"

    def row(label: str, *cells: str) -> str:
        return f"<tr><td>{label}</td>{''.join(cells)}</tr>"

    waiting, method = found.auto is None and not found.failures, ""
    if found.auto is not None:
        method = "mixture theory" if found.auto.method == "mixture" else f"{found.auto.method} limit"
    risks = "".join(
        row(label, cell(f"weak.{name}"), cell(f"auto.{name}", waiting))
        for label, name in (("ICL error", "icl"), ("IDG error", "idg"), ("query gain", "query_gain"))
    )
    head = f"<tr><th></th><th>weak limit</th><th data-name='method'>{method or 'finite size …'}</th></tr>"
    kernel = "".join(row(f"k<sub>{i}</sub>", cell(f"k{i}")) for i in range(3))
    worth = (
        row("linear, pretrained, independent query", cell("effective_length"))
        + row("linear, pretrained, this query", cell("weak.equivalent_length"))
        + row("linear, at its optimum", cell("linear.equivalent_length"))
        + row(
            "softmax, at its optimum", cell("softmax.equivalent_length", found.softmax is None and not found.failures)
        )
    )
    tables = (
        f"<div class='tables'><table>{head}{risks}</table><table><tr><th>kernel</th><th></th></tr>{kernel}</table>"
        f"<table><tr><th>worth, in independent tokens (of {state.length})</th><th></th></tr>{worth}</table></div>"
    )
    warnings = "".join(f"<p class='warn'>{escape(text)}</p>" for text in found.warnings)
    return f"{tables}<div data-name='warnings'>{warnings}</div>"


def problem(text: str) -> str:
    """One sentence about what cannot be shown."""
    return f"<p class='bad' data-name='problem'>{escape(text)}</p>" if text else ""


def progress(method: str | None, notes: Sequence[str] = ()) -> str:
    """Which line is being computed, or what is to be said once all are done."""
    text = f"<small>computing: {method} …</small>" if method else ""
    text += "".join(f"<small data-name='note'>{escape(note)}</small><br>" for note in notes)
    return f"<div data-name='progress' data-done='{int(method is None)}'>{text}</div>"


def heading(text: str, note: str = "") -> str:
    """A heading, with a quiet line below it."""
    return f"<h2>{escape(text)}</h2>" + (f"<p class='quiet'>{note}</p>" if note else "")
