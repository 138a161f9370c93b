"""The example scripts run as they are, each in a folder of its own, and leave the picture that they promise."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_example_runs(script, tmp_path, monkeypatch, own_registries, capsys):
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: pytest.fail("an example must not wait for a window"))
    with plt.rc_context({"figure.max_open_warning": 0}):
        plt.switch_backend("agg")
        runpy.run_path(str(script), run_name="__main__")
        plt.close("all")
    assert (tmp_path / f"{script.stem}.png").stat().st_size > 10_000
    assert capsys.readouterr().out.count("\n") >= 2


def test_every_example_is_a_script_of_cells_that_the_page_lists():
    page = (EXAMPLES.parent / "docs" / "examples.md").read_text()
    assert len(SCRIPTS) >= 5
    for script in SCRIPTS:
        text = script.read_text()
        assert text.startswith("# %% [markdown]\n# # ")
        title = text.splitlines()[1].removeprefix("# # ")
        assert f"`examples/{script.name}`" in page
        assert title in page
