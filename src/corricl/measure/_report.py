"""A measurement as a picture (PNG, PDF) and as one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import html
import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..kernels import parse
from ._kernel import estimated_kernel
from ._measure import Measurement
from ._predict import Prediction, predict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

COLORS = {"linear": "#0072B2", "positional": "#009E73", "softmax": "#E69F00", "bayes": "#000000"}
LABELS = {"linear": "linear", "positional": "position-weighted", "softmax": "softmax", "bayes": "Bayes floor"}
LOOK = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "pdf.fonttype": 42,
}
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>corricl: a measurement</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:66rem;margin:2rem auto;padding:0 1rem;color:#222}}
table{{border-collapse:collapse}}td,th{{padding:.2rem .9rem .2rem 0;text-align:left;border-bottom:1px solid #ddd}}
img{{width:100%;height:auto}}
.warning{{background:#fff3cd;padding:.5rem .8rem;border-left:4px solid #E69F00}}</style></head>
<body><h1>{title}</h1>
{warnings}<table><tr><th></th><th>estimate</th><th>from</th><th>to</th></tr>
{rows}</table>
<p>{meaning}</p>
<img alt="Correlation matrix, autocorrelation with fitted kernels, and predicted error against context length"
src="data:image/png;base64,{png}">
<h2>Fitted kernels</h2><table><tr><th>SPEC</th><th>error</th><th>k2</th></tr>{fits}</table>
<h2>Predicted error at this length</h2><table><tr><th>query</th>{methods}</tr>{risks}</table>
<p>d = {d}, label noise {noise:g}, tokens of {kernel}.</p></body></html>
"""


def report(measurement: Measurement, folder: str | Path, prediction: Prediction | None = None) -> list[Path]:
    """Write measurement.png, .pdf and .html, and the estimated correlations context.npy and joint.npy for `file:PATH`.

    context.npy is K at the measured length, joint.npy that with the continuing query last.

    Args:
        measurement: of `measure`.
        folder: made if needed.
        prediction: of `predict`; default with its defaults (some seconds).

    Raises:
        InputError: when the folder cannot be written.
    """
    folder = Path(folder)
    prediction = predict(measurement) if prediction is None else prediction
    joint = estimated_kernel(measurement).matrix
    paths = [
        folder / name for name in ("measurement.png", "measurement.pdf", "measurement.html", "context.npy", "joint.npy")
    ]
    canvas = draw(measurement, prediction)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        canvas.savefig(paths[0], dpi=200)
        canvas.savefig(paths[1], metadata={"CreationDate": None})
        paths[2].write_text(page(measurement, prediction, canvas), encoding="utf-8")
        np.save(paths[3], joint[:-1, :-1])
        np.save(paths[4], joint)
    except OSError as error:
        raise InputError(f"cannot write to '{folder}': {error.strerror}") from None
    return paths


def draw(measurement: Measurement, prediction: Prediction) -> Canvas:
    """Estimated K, autocorrelation with band and fits, and predicted error against length for both queries."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with matplotlib.rc_context(LOOK):  # type: ignore[arg-type]
        canvas = Canvas(figsize=(11, 8), layout="constrained")
        FigureCanvasAgg(canvas)
        top, bottom = canvas.subplots(2, 2)
        _heat_map(top[0], measurement)
        _autocorrelation(top[1], measurement)
        for axes, query in zip(bottom, prediction.risks, strict=True):
            _risks(axes, measurement, prediction, query)
    return canvas


def page(measurement: Measurement, prediction: Prediction, canvas: Canvas | None = None) -> str:
    """One HTML page with the picture inside; no other file and no network is needed."""
    buffer = io.BytesIO()
    (draw(measurement, prediction) if canvas is None else canvas).savefig(buffer, format="png", dpi=130)
    named = {
        "k2": measurement.k2,
        "effective length": measurement.effective_length,
        "effective length for a mean": measurement.mean_length,
        "k0 (continuing query)": measurement.k0,
        "k1 (continuing query)": measurement.k1,
    }
    cells = [(name, *(f"{x:.4g}" for x in value)) for name, value in named.items() if value is not None]
    return PAGE.format(
        title=html.escape(f"{measurement.sequences} sequences, prompts of {measurement.length} tokens"),
        warnings="".join(f'<p class="warning">{html.escape(w.message)}</p>\n' for w in measurement.warnings),
        rows=_rows(cells),
        meaning=html.escape(meaning(measurement)),
        png=base64.b64encode(buffer.getvalue()).decode(),
        fits=_rows([(fit.kernel, f"{fit.error:.3g}", f"{fit.k2:.4g}") for fit in measurement.fits]),
        methods="".join(f"<th>{LABELS[method]}</th>" for method in LABELS),
        risks=_rows([(q, *(f"{r[m]:.4g}" for m in LABELS)) for q, r in prediction.here.items() if r]),
        d=prediction.d,
        noise=prediction.noise,
        kernel=html.escape(prediction.kernel),
    )


def meaning(measurement: Measurement) -> str:
    """The measurement in two sentences."""
    worth, length = measurement.effective_length, measurement.length
    if not measurement.valid:
        return (
            f"These data have no effective length worth quoting; what k2 says holds for {length} tokens cut here only."
        )
    text = (
        f"A prompt of {length} tokens cut from these data, with a query that is independent of it, is worth "
        f"{worth.estimate:.3g} ({worth.low:.3g} to {worth.high:.3g}) independent examples to linear attention."
    )
    if measurement.mean_length is None:
        return text
    return (
        f"{text} For an average over the prompt it is worth {measurement.mean_length.estimate:.3g}: another question."
    )


def _rows(rows: list[tuple[str, ...]]) -> str:
    return "\n".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)


def _heat_map(axes: Axes, measurement: Measurement) -> None:
    found = estimated_kernel(measurement)
    shown = axes.imshow(found.matrix[:-1, :-1], vmin=-1, vmax=1, cmap="RdBu_r", interpolation="nearest")
    axes.figure.colorbar(shown, ax=axes)
    axes.set(title=f"estimated K, k2 = {measurement.k2.estimate:.3g}", xlabel="token", ylabel="token")


def _autocorrelation(axes: Axes, measurement: Measurement) -> None:
    band = measurement.autocorrelation
    lag = np.arange(len(band.estimate))
    axes.fill_between(
        lag[1:], band.low[1:], band.high[1:], color="#56B4E9", alpha=0.4, lw=0, label="pointwise interval"
    )
    axes.plot(lag[1:], band.estimate[1:], ".", color="black", ms=4, label="estimate")
    for fit in measurement.fits:
        chosen = fit.kernel == measurement.kernel
        values = parse(fit.kernel).correlation(np.array(0), lag[1:])
        axes.plot(lag[1:], values, lw=2 if chosen else 0.8, label=f"{fit.kernel} (error {fit.error:.2g})")
    axes.set(title="autocorrelation", xlabel="lag t", ylabel="r(t)")
    axes.legend(fontsize=7)


def _risks(axes: Axes, measurement: Measurement, prediction: Prediction, query: str) -> None:
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    for method, risks in prediction.risks[query].items():
        axes.plot(prediction.lengths, risks, ".-", color=COLORS[method], label=LABELS[method])
    axes.axvline(measurement.length, color="#777777", ls=":")
    axes.text(measurement.length, 0.98, " your prompt", transform=axes.get_xaxis_transform(), va="top", fontsize=8)
    axes.set(xscale="log", yscale="log", xlabel="context length", ylabel="predicted ICL error")
    axes.set_title("independent query" if query == "independent" else "query continues the sequence")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.legend(fontsize=8)
