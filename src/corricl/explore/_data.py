"""A file that a visitor drops: measured in a temporary folder, never executed, and gone afterwards."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from html import escape
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import panel as pn

from ..errors import CorriclError, InputError

if TYPE_CHECKING:
    from ..measure import Measurement

LARGEST = 50_000_000
"""Bytes of a file that the page takes; `corricl measure` streams larger ones."""

KINDS = (".npy", ".npz", ".csv", ".parquet")


class Dropper(pn.widgets.FileDropper):
    """A place to drop a file, whose size limit holds on the server too."""

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self._sizes: dict[str, int] = {}

    def _process_event(self, event: Any) -> None:
        """A piece of a file has arrived; of a file that is too large none is kept, and its value is None."""
        data, name = event.data, event.data["name"]
        if event.event_name == "upload_event":
            self._sizes[name] = len(data["data"]) + (self._sizes[name] if data["chunk"] > 1 else 0)
            if self._sizes[name] > LARGEST:
                self._file_buffer.pop(name, None)
                if data["chunk"] == data["total_chunks"]:
                    self.value = {name: None}
                return
        super()._process_event(event)


def measured(
    name: str, content: bytes | str | None, length: int, noise: float = 0.01
) -> Iterator[tuple[Measurement, str]]:
    """Measure the content of a file at a context length: what is found, and it in HTML, first in short, then in full.

    The full report is that of `corricl measure --out`, in a frame that runs no scripts.

    Raises:
        InputError: a file that is too large or cannot be measured; the message names it as the visitor does.
    """
    from .. import measure

    kind = PurePath(name).suffix.lower()
    if kind not in KINDS:
        raise InputError(f"'{name}' must end in {', '.join(KINDS)}")
    if content is None or len(content) > LARGEST:
        raise InputError(f"'{name}' is larger than {LARGEST // 10**6} MB: use the command `corricl measure`")
    with TemporaryDirectory(prefix="corricl-") as folder:
        path = Path(folder) / f"upload{kind}"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        try:
            found = measure.measure(path, length=length, noise=noise)
        except CorriclError as error:
            raise type(error)(str(error).replace(str(path), name)) from None
    short = report(name, found)
    yield found, short + "<p>predicting …</p>"
    page = measure.page(found, measure.predict(found))
    saved = b64encode(page.encode()).decode()
    yield (
        found,
        f"{short}<p><a download='measurement.html' href='data:text/html;base64,{saved}'>Save the whole report</a></p>"
        f"<iframe title='Report of the measurement' sandbox srcdoc='{escape(page)}'></iframe>",
    )


def report(name: str, found: Measurement) -> str:
    """What a measurement says, as HTML; every number carries its name and full value."""
    rows = {
        "k2": "k<sub>2</sub>",
        "k0": "k<sub>0</sub>, continuing query",
        "k1": "k<sub>1</sub>, continuing query",
        "effective_length": f"effective length (of {found.length} tokens)",
    }
    lines = ""
    for key, label in rows.items():
        value = getattr(found, key)
        shown = f"<b data-name='data.{key}' data-value='{value.estimate!r}'>{value.estimate:.4g}</b>"
        lines += f"<tr><td>{label}</td><td>{shown}</td><td>{value.low:.4g} … {value.high:.4g}</td></tr>"
    head = f"<tr><th></th><th>estimate</th><th>{found.level:.0%} interval</th></tr>"
    sizes = f"{found.sequences} sequence{'s' * (found.sequences != 1)}, {found.tokens} tokens, {found.d} channels"
    done = f"mean {found.preprocessing.mean} taken off, scale: {found.preprocessing.scale}"
    warnings = "".join(f"<p class='warn'>{escape(caution.message)}</p>" for caution in found.warnings)
    trust = "" if found.valid else "<p class='bad'>No effective length is worth quoting for these data.</p>"
    return (
        f"<p><b>{escape(name)}</b>: {sizes}; {escape(done)}.</p>{trust}<table>{head}{lines}</table>"
        f"<p>Fitted kernel: <code data-name='data.kernel'>{escape(found.kernel)}</code></p>{warnings}"
    )
