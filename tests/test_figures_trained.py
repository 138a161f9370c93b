"""Figures of trained models: each number of the sweeps is drawn once, under the right model, query and length."""

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas

from corricl import figures
from corricl.attention import configure
from corricl.figures._architectures import MODELS, PANELS, by_model
from corricl.figures._effective_length import LOOKS, QUERIES


def rows_of(specs):
    """A row for each entry of the sweeps, all their values different."""
    rows = []
    for spec in specs:
        for case in spec.cases:
            for xi in spec.axes.get("xi", [None]):
                for estimator in spec.estimators:
                    place = {"sweep": spec.name, "case": case["name"], "estimator": estimator, "quantity": "icl"}
                    place |= {} if xi is None else {"xi": xi}
                    rows.append({**place, "mean": 1 + len(rows) / 64, "stderr": 0.5})
    return rows


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("name", ["architectures", "query-gain"])
def test_models_are_those_that_the_specs_train(name, quick):
    specs = figures.find(name).sweeps(quick)
    trained = [text for spec in specs for text in spec.estimators if text.startswith("attention:")]
    settings = [configure(text.removeprefix("attention:")) for text in trained]
    labels = [row["estimator"] for row in by_model([{"estimator": text} for text in trained])]
    named = {label: architecture for label, (architecture, _) in zip(labels, settings, strict=True)}
    assert set(named) == set(PANELS[1:] if name == "architectures" else MODELS)
    for label, architecture in named.items():
        assert architecture.layers == ("linear" if "linear" in label else label.split(",")[0].lower())
        assert architecture.repeats == (4 if "4 layers" in label else 1)
        assert architecture.width == (None if label == "full linear" else 32 if quick else 64)
    assert {config.data for _, config in settings} == {"fixed"}
    assert all(config.steps <= 1000 or not quick for _, config in settings)


def test_equivalent_prompts_have_the_effective_length():
    specs = {spec.name: spec for spec in figures.find("architectures").sweeps(quick=False)}
    lengths = {cell.coordinates["case"]: cell.setting.prompt.length for cell in specs["equivalent-models"].cells()}
    assert lengths["0"] == 128
    assert lengths["2"] == 60  # 128 * 1.01/(2.1464... + .01)
    assert all(cell.setting.prompt.kernel.spec == "iid" for cell in specs["equivalent"].cells())


def test_three_panels_show_three_curves_each():
    figure = figures.find("architectures")
    rows = rows_of(figure.sweeps(quick=True))
    canvas = Canvas()
    figure.plot(rows, canvas)
    drawn = [container.lines[0] for axes in canvas.axes for container in axes.containers]
    assert [axes.get_title() for axes in canvas.axes] == list(PANELS)
    assert len(drawn) == 9
    values = np.concatenate([line.get_ydata() for line in drawn])
    assert sorted(values.tolist()) == sorted(row["mean"] for row in rows)
    linear = dict(zip([c.get_label() for c in canvas.axes[1].containers], drawn[3:6], strict=True))
    for case, line in linear.items():
        sweep, at = ("equivalent-models", "6") if case not in {q["name"] for q in QUERIES} else ("models", case)
        same = [
            r for r in rows if (r["sweep"], r["case"]) == (sweep, at) and r["estimator"].startswith("attention:linear")
        ]
        value = next(r["mean"] for r in same if r.get("xi", 6) == 6)
        assert line.get_ydata()[line.get_xdata().tolist().index(6)] == value
    lines = figure.table(rows).splitlines()
    assert len(lines) == 1 + 4 * len(LOOKS)
    assert all(line.count("±") == 3 for line in lines[1:])


def test_query_gain_has_a_curve_for_each_model():
    figure = figures.find("query-gain")
    rows = rows_of(figure.sweeps(quick=True))
    canvas = Canvas()
    figure.plot(rows + figure.extra([], rows), canvas)
    curves = {c.get_label(): c.lines[0] for c in canvas.axes[0].containers}
    assert list(curves) == ["simulation", *MODELS]
    ours = [r for r in by_model(rows) if r["estimator"] == "softmax+MLP, 4 layers" and r["xi"] == 10]
    plain, informed = (next(r["mean"] for r in ours if r["case"] == query["name"]) for query in QUERIES)
    assert curves["softmax+MLP, 4 layers"].get_ydata()[-1] == plain - informed
    assert figure.table(rows).splitlines()[1].count("±") == 1 + len(MODELS)
    simulated = [r for r in rows if "attention" not in r["estimator"]]
    figure.plot(simulated + figure.extra([], simulated), Canvas())  # the figures of before are still drawn
