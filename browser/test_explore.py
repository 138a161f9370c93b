"""The page in a browser, against the numbers of the library."""

import csv
import json
import math
import re
import shlex
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from playwright.sync_api import expect

from corricl import measure, simulate, theory
from corricl.explore import State

from .conftest import STATIC, WAIT

SIZES = {"d": 6, "length": 12, "sequences": 60, "tasks": 9, "noise": 0.1, "ridge": 1e-3}
SMALL = State(**SIZES, kernel="exp:2", query="continues", axis="tau")
SLOW = State(d=32, length=64, sequences=20_000, tasks=320, noise=0.1, ridge=1e-3, kernel="exp:2", axis="tau")
"""A simulation of many replicates takes far longer than a test waits."""


def cell(page, name):
    return page.locator(f"b[data-name='{name}']")


def value(page, name):
    """A number of the page in full, once it is there."""
    expect(cell(page, name)).not_to_have_attribute("data-value", "")
    return float(cell(page, name).get_attribute("data-value"))


def shows(page, state):
    """The page has settled on a state: its numbers are the library's."""
    expected = theory.weak(state.setting.pretraining, state.ridge)
    expect(cell(page, "weak.icl")).to_have_attribute("data-value", repr(expected.icl))
    for name in ("k0", "k1", "k2", "effective_length"):
        assert value(page, name) == getattr(expected, name)
    full = theory.risk(state.setting.pretraining, state.ridge)
    assert value(page, "auto.icl") == full.icl
    assert value(page, "auto.query_gain") == full.query_gain
    length = theory.equivalent_length(state.setting.prompt, "softmax").equivalent_length
    assert value(page, "softmax.equivalent_length") == pytest.approx(length, rel=1e-12)


def finished(page):
    """Every curve of the page is drawn."""
    expect(page.locator("[data-name='progress'][data-done='1']")).to_be_attached()


def press(page, knob, key, times=1):
    page.locator(f".knob-{knob} .noUi-handle").focus()
    for _ in range(times):
        page.keyboard.press(key)


def test_the_page_opens_with_the_numbers_of_the_library(visit):
    page = visit()
    shows(page, State())
    expect(page.locator("canvas").first).to_be_visible()
    assert page.title() == "corricl explore"


def test_a_slider_changes_the_numbers_and_the_address(visit):
    page = visit("?" + SMALL.address)
    shows(page, SMALL)
    press(page, "kernel-0", "ArrowRight", 3)
    expect(page.locator(".knob-kernel-0 input").last).to_have_value("2.3")
    moved = replace(SMALL, kernel="exp:2.3")
    shows(page, moved)
    page.wait_for_url(lambda url: url.endswith("?" + moved.address))


def test_a_number_typed_and_a_number_that_is_not_allowed(visit):
    page = visit("?" + SMALL.address)
    box = page.locator(".knob-noise input").last
    box.fill("0.5")
    box.press("Enter")
    shows(page, replace(SMALL, noise=0.5))
    box.fill("-1")
    box.press("Enter")
    expect(page.locator("[data-name='problem']")).to_contain_text("noise must be finite and >= 0")


def test_the_query_is_switched(visit):
    page = visit("?" + SMALL.address)
    page.get_by_label("Query").select_option("independent")
    shows(page, replace(SMALL, query="independent"))
    assert value(page, "auto.query_gain") == 0
    page.get_by_label("Query").select_option("after a gap")
    shows(page, replace(SMALL, query="gap:2"))


def test_a_link_restores_the_view_and_a_bad_one_says_why(visit):
    state = replace(SMALL, kernel="0.7*exp:5+0.3*iid", tasks=math.inf, axis="noise", scale="log")
    page = visit("?" + state.address)
    shows(page, state)
    assert page.get_by_label("Curves over").input_value() == "label noise ρ"
    expect(page.locator(".log input")).to_be_checked()
    expect(page.locator(".unbounded input")).to_be_checked()
    page = visit("?kernel=file:secret.npy")
    expect(page.locator("[data-name='problem']")).to_contain_text("reads no file by its path")


def test_the_plotted_numbers_and_the_picture_are_downloaded(visit, tmp_path):
    page = visit("?" + SMALL.address)
    finished(page)
    for label, name in (("Numbers (CSV)", "points.csv"), ("Picture (PNG)", "picture.png")):
        with page.expect_download() as download:
            page.get_by_text(label).click()
        download.value.save_as(tmp_path / name)
    rows = list(csv.DictReader((tmp_path / "points.csv").read_text().splitlines()))
    assert {row["method"] for row in rows} == {"weak", "mixture", "linear", "positional", "softmax", "bayes"}
    here = {row["method"]: float(row["icl"]) for row in rows if float(row["x"]) == SMALL.position}
    assert len(here) == 6
    for method, icl in here.items():
        assert icl == pytest.approx(theory.of_setting(SMALL.setting, method).icl, rel=1e-12)
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_the_copied_command_prints_the_numbers_of_the_page(visit):
    page = visit("?" + SMALL.address)
    gain = value(page, "auto.query_gain")
    page.get_by_text("Copy as command").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    words = [sys.executable, "-m", "corricl.cli", *shlex.split(copied.splitlines()[0])[1:], "--json"]
    printed = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    assert (printed["icl"], printed["query_gain"]) == (value(page, "auto.icl"), gain)
    page.get_by_text("Copy as Python").click()
    assert "theory.risk(pretraining" in page.evaluate("navigator.clipboard.readText()")


def test_a_simulation_runs_to_its_end_while_the_page_answers(visit):
    page = visit("?" + SMALL.address)
    page.get_by_text("Simulate here").last.click()
    press(page, "noise", "ArrowRight", 5)  # another setting meanwhile
    expect(cell(page, "weak.icl")).not_to_have_attribute(
        "data-value", repr(theory.weak(SMALL.setting.pretraining, SMALL.ridge).icl)
    )
    told = page.locator("[data-name='simulated']")
    expect(told).to_have_attribute("data-done", "10")
    expected = simulate.risk(SMALL.setting.pretraining, SMALL.ridge, seed=0, replicates=10).icl
    assert float(told.get_attribute("data-value")) == pytest.approx(expected.mean, rel=1e-10)


def test_a_simulation_is_cancelled_and_another_page_is_not_disturbed(visit, served):
    one, other = visit("?" + SLOW.address), visit("?" + SMALL.address)
    one.locator("input[type=text]").first.wait_for(state="attached")
    replicates = one.get_by_label("replicates")
    replicates.fill("1000")
    replicates.press("Enter")
    one.get_by_text("Simulate here").last.click()
    told = one.locator("[data-name='simulated']")
    expect(told).to_be_visible()
    press(other, "noise", "ArrowRight")
    expect(cell(other, "weak.icl")).not_to_have_attribute(
        "data-value", repr(theory.weak(SMALL.setting.pretraining, SMALL.ridge).icl)
    )
    shows(one, SLOW)
    one.get_by_text("Cancel").click()
    expect(one.locator("[data-name='cancelled']")).to_be_visible()
    done = told.get_attribute("data-done")
    assert int(done) < 1000
    idle(served[1])
    assert told.get_attribute("data-done") == done


def test_closing_the_page_stops_its_simulation(visit, served):
    page = visit("?" + SLOW.address)
    page.get_by_label("replicates").fill("1000")
    page.get_by_label("replicates").press("Enter")
    page.get_by_text("Simulate here").last.click()
    expect(page.locator("[data-name='simulated']")).to_be_visible()
    page.close()
    idle(served[1])


def idle(process):
    """Wait until the server uses next to no processor time, which it does only when no work is left."""
    deadline = time.monotonic() + WAIT / 1000
    while True:
        before = seconds(process)
        time.sleep(1)
        if seconds(process) - before < 0.1:
            return
        assert time.monotonic() < deadline, "the server is still at work"


def seconds(process):
    """Processor time of a process so far."""
    words = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / 100


def test_a_narrow_window_needs_no_sideways_scrolling(visit):
    page = visit("?" + SMALL.address, width=390, height=844)
    shows(page, SMALL)
    page.wait_for_function("document.documentElement.scrollWidth <= window.innerWidth")
    page.locator("canvas").first.scroll_into_view_if_needed()
    page.screenshot(path=STATIC / "explore-narrow.png")


def test_a_page_that_is_slow_to_load_still_fetches_nothing_from_outside(visit, chromium, served):
    """Its session is forgotten before the browser connects, and made again."""
    visit("?" + SMALL.address)  # the fixture watches the console of this one
    context = chromium.new_context()
    page, outside = context.new_page(), []
    page.on("request", lambda sent: None if sent.url.startswith(("blob:", served[0])) else outside.append(sent.url))
    page.route("**/panel.min.js*", lambda route: (time.sleep(3), route.continue_()))
    page.goto(served[0] + "?" + SMALL.address)
    page.wait_for_selector("text=Simulate here", timeout=WAIT)
    context.close()
    assert outside == []


def test_pictures_for_the_documentation(visit):
    page = visit("?" + State(length=64, query="continues", kernel="exp:4").address, width=1180, height=860)
    page.get_by_label("replicates").fill("3")
    page.get_by_label("replicates").press("Enter")
    finished(page)
    page.screenshot(path=STATIC / "explore.png")
    assert np.all([(STATIC / f"{name}.png").stat().st_size > 20_000 for name in ("explore", "explore-narrow")])


def drop(page, tmp_path, name, write):
    write(tmp_path / name)
    page.locator("input[type=file]").set_input_files(tmp_path / name)


def test_a_good_file_is_measured_and_its_kernel_used_and_a_bad_one_is_refused(visit, tmp_path):
    rng = np.random.default_rng(0)
    tokens = np.zeros((40, 24, 3))
    for t in range(24):
        tokens[:, t] = 0.7 * tokens[:, max(t - 1, 0)] + rng.standard_normal((40, 3))
    page = visit("?" + SMALL.address)
    drop(page, tmp_path, "mine.npy", lambda path: np.save(path, tokens))
    found = measure.measure(tokens, length=SMALL.length)
    assert value(page, "data.k2") == pytest.approx(found.k2.estimate, rel=1e-9)
    kernel = page.locator("[data-name='data.kernel']").inner_text()
    assert kernel == found.kernel
    inside = page.frame_locator("iframe[title='Report of the measurement']")
    assert f"{found.k2.estimate:.4g}" in inside.locator("tr", has_text="k2").first.inner_text()
    assert inside.locator("img").evaluate("image => image.complete && image.naturalWidth") > 1000
    page.get_by_text("Save the whole report").scroll_into_view_if_needed()
    page.screenshot(path=STATIC / "explore-data.png")
    with page.expect_download() as saved:
        page.get_by_text("Save the whole report").click()
    assert "<h1>40 sequences" in saved.value.path().read_text()
    page.get_by_text("Use its kernel in all views").click()
    page.wait_for_url(lambda url: replace(SMALL, kernel=kernel).kernel in unquote(url))
    expect(page.locator("textarea").first).to_have_value(re.compile(re.escape(f"--kernel '{kernel}'") + "|" + kernel))
    for name, write, message in (
        ("evil.npy", lambda path: np.save(path, np.array([{}], dtype=object)), "'evil.npy'"),
        ("words.csv", lambda path: path.write_text("a,b\n1,x\n"), "'x' is no number"),
        ("notes.txt", lambda path: path.write_text("hello"), "'notes.txt' must end in"),
    ):
        drop(page, tmp_path, name, write)
        expect(page.locator("[data-name='problem']", has_text=message)).to_be_visible()
