"""The page without a browser: its state, its numbers, its background work, and how it is served."""

import csv
import io
import json
import math
import re
import shlex
import socket
import subprocess
import sys
import threading
import time
import types
from base64 import b64decode
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from corricl import InputError, figures, measure, simulate, theory
from corricl.explore import State, _code, _curves, _data, _export, _presets, _quantities, _readouts, _simulation
from corricl.explore._background import Background
from corricl.kernels import parse

SMALL = State(d=6, length=12, sequences=60, tasks=9, noise=0.1, ridge=1e-3, kernel="exp:2", query="continues")


# The state and its address


@pytest.mark.parametrize(
    "state",
    [
        State(),
        SMALL,
        State(tasks=math.inf, ridge=0.0, kernel="0.7*exp:5+0.3*iid", query="gap:3", axis="length", scale="log"),
        State(kernel="matern:1.5,3", query="strength:0.25", axis="tau"),
        State(kernel="exp:20*cosine:0.3,inf", axis="kappa"),
    ],
)
def test_an_address_restores_the_state(state):
    assert State.from_address(state.address) == state
    assert State.from_address("?" + state.address) == state


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("kernel=file:secret.npy", "reads no file"),
        ("kernel=0.5*iid%2B0.5*file:secret.npy", "reads no file"),
        ("query=vector:secret.npy", "reads no file"),
        ("d=2.5", "d must be an integer"),
        ("length=5000", "length may be at most 1024"),
        ("tasks=-inf", "tasks must be an integer"),
        ("noise=nan", "noise must be finite"),
        ("ridge=-1", "ridge must be finite and >= 0"),
        ("ridge=much", "ridge must be a number"),
        ("size=3", "unknown name 'size'"),
        ("axis=d", "unknown axis 'd'"),
        ("scale=root", "scale must be linear or log"),
        ("kernel=iid&axis=kernel", "no single parameter"),
        ("kernel=equi:-0.9&axis=length", "not positive semidefinite"),
    ],
)
def test_an_address_that_means_nothing_is_refused(address, message):
    with pytest.raises(InputError, match=message):
        State.from_address(address)


def test_a_kernel_of_files_alone_is_refused_not_one_whose_name_ends_so():
    with pytest.raises(InputError, match="unknown kernel 'profile'"):
        State(kernel="profile:3")


@pytest.mark.parametrize("family", _quantities.families())
def test_controls_and_spec_strings_are_inverse(family):
    values = tuple(quantity.default for quantity in _quantities.parameters(family))
    kernel = parse(_quantities.spec_of(family, values))
    assert _quantities.values_of(kernel) == values
    if family == "matern":
        assert (kernel.nu, kernel.l) == (1.5, 3)


def test_mixtures_and_infinite_parameters_are_beyond_the_sliders():
    for spec in ("0.7*exp:5+0.3*iid", "exp:20*cosine:0.3,5", "exp:inf"):
        assert _quantities.values_of(parse(spec)) is None


def test_a_control_and_its_value_are_inverse_on_the_grid():
    quantities = [*_quantities.SIZES.values(), *(q for family in _quantities.FAMILIES.values() for q in family)]
    for quantity in quantities:
        grid = quantity.grid(25)
        assert grid == sorted(set(grid))
        assert grid[0] == quantity.low
        assert grid[-1] == quantity.high
        for value in (*grid[1:], quantity.default if not quantity.zero else grid[5]):
            assert quantity.at(quantity.share_of(value)) == pytest.approx(value, rel=6e-3, abs=1e-9)
    assert _quantities.SIZES["ridge"].at(0) == 0
    assert _quantities.SIZES["ridge"].share_of(0) == 0


@pytest.mark.parametrize("axis", ["kernel", "length", "tau", "kappa", "noise", "ridge"])
def test_a_state_moves_along_its_axis_alone(axis):
    state = State(query="continues", axis=axis)
    there = state.at(0.5 * state.position if axis != "length" else 64)
    assert there != state
    assert there.position == pytest.approx(0.5 * state.position)
    assert there.line == state.line
    assert there.at(state.position) == state
    moved = {"kernel": "kernel", "tau": "sequences", "kappa": "tasks"}.get(axis, axis)
    assert {f: getattr(there, f) for f in state._fields if f != moved} == {
        f: getattr(state, f) for f in state._fields if f != moved
    }


@pytest.mark.parametrize("name", list(_presets.PRESETS))
def test_a_preset_is_the_setting_of_its_figure_at_full_size_or_quick(name):
    state = _presets.PRESETS[name]
    subject = state.setting.pretraining
    ours = {"alpha": subject.prompt.alpha, "tau": subject.tau, "kappa": subject.kappa, **state._fields}

    def misses(base):
        names = set(base) & {"length", "alpha", "kappa", "noise", "ridge", "sequences", "tasks", "d"}
        if state.axis != "kernel":
            names -= {"d"}  # their theory is drawn at another d
        return {key for key in names if not isinstance(base[key], str) and ours[key] != base[key]}

    bases = [figures.find(name).sweeps(quick=quick)[0].base for quick in (False, True)]
    if name == "breakdown":  # its sweeps are one d each
        bases = [spec.base for spec in figures.find(name).sweeps(quick=True)]
    assert set() in map(misses, bases)


# Numbers


def test_readouts_are_the_numbers_of_the_library():
    first = _readouts.closed(SMALL)
    subject = SMALL.setting.pretraining
    assert first.weak == theory.weak(subject, SMALL.ridge)
    assert first.values()["auto.icl"] is None
    *_, last = _readouts.gathered(first, SMALL)
    values = last.values()
    full = theory.risk(subject, SMALL.ridge)
    assert (values["auto.icl"], values["auto.query_gain"], values["k2"]) == (full.icl, full.query_gain, full.k2)
    assert values["effective_length"] == full.effective_length
    assert values["softmax.equivalent_length"] == theory.equivalent_length(subject.prompt, "softmax").equivalent_length
    assert any("mixture theory's own error" in text for text in last.warnings)  # at d = 6


def test_a_method_that_refuses_says_so_and_the_others_stay():
    state = State(d=2, length=6, sequences=4, tasks=5, kernel="iid", ridge=0.0, axis="length")  # tau = 1
    *_, last = _readouts.gathered(_readouts.closed(state), state)
    assert last.values()["weak.icl"] == math.inf
    assert _readouts.shown(math.inf) == "∞"
    assert any("diverges" in text for text in last.warnings)
    refused = _curves.point(state, "mixture")
    assert refused.icl is None
    assert "d >= 3" in refused.note


def test_the_command_and_the_python_print_the_numbers_of_the_page(run, capsys):
    *_, last = _readouts.gathered(_readouts.closed(SMALL), SMALL)
    values = last.values()
    lines = _code.command(SMALL).splitlines()
    for line, part in zip(lines, ("auto", "weak"), strict=False):
        code, out, _ = run(*shlex.split(line)[1:], "--json")
        assert code == 0
        printed = json.loads(out)
        for name in ("icl", "idg", "query_gain"):
            assert printed[name] == values[f"{part}.{name}"]
        for name in ("k0", "k1", "k2", "effective_length"):
            assert printed[name] == values[name]
    exec(compile(_code.python(SMALL), "python", "exec"), {})
    words = capsys.readouterr().out.split()
    assert [float(word) for word in words[1:4]] == [values[f"auto.{n}"] for n in ("icl", "idg", "query_gain")]
    assert float(words[-1]) == values["softmax.equivalent_length"]


def test_curves_are_the_numbers_of_the_library_and_come_coarse_first(monkeypatch):
    monkeypatch.setattr(_curves, "POINTS", 5)
    points = list(_curves.points(SMALL))
    assert {p.method for p in points} == set(_curves.METHODS)
    weak = [p.x for p in points if p.method == "weak"]
    assert weak[:3] == [SMALL.position, 0.0, 50.0]
    assert len(weak) == len(set(weak)) == _curves.POINTS + 1
    found = {(p.method, p.x): p.icl for p in points}
    there = SMALL.at(25.0)
    for method in _curves.METHODS:
        assert found[method, 25.0] == theory.of_setting(there.setting, method).icl
    assert len({icl for (method, _), icl in found.items() if method == "weak"}) == 6


def test_lines_fill_in_evenly():
    assert _curves._coarse_first(list(range(9))) == [0, 8, 4, 2, 6, 1, 3, 5, 7]
    assert sorted(_curves._coarse_first(list(range(25)))) == list(range(25))


def test_optima_of_a_class_are_computed_once_whatever_the_pretraining():
    state = State(**{**SMALL._fields, "axis": "tau"})
    before = _curves._risk.cache_info().misses
    assert len({_curves.point(there, "positional").icl for there in _curves.grid(state)}) == 1
    assert _curves._risk.cache_info().misses <= before + 1


def test_a_length_that_a_kernel_does_not_allow_is_left_out():
    state = State(d=6, length=4, sequences=60, tasks=9, kernel="equi:-0.2", axis="length")
    assert sorted(there.length for there in _curves.grid(state))[-1] <= 6


def test_the_table_holds_every_plotted_number():
    points = [_curves.point(SMALL, "weak"), _curves.Point(3.0, "mixture", None, False, "refused")]
    text = _export.table(SMALL, points, {2.0: simulate.estimate([1.0, 2.0])})
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["method"] for row in rows] == ["weak", "mixture", "simulate"]
    assert float(rows[0]["icl"]) == points[0].icl
    assert rows[1]["icl"] == ""
    assert float(rows[2]["stderr"]) == 0.5
    assert _export.picture(SMALL, points, {}).startswith(b"\x89PNG")


def test_a_simulation_is_that_of_the_library_replicate_by_replicate(monkeypatch):
    asked = []

    def replicate(pretraining, ridge, *, seed, index):
        asked.append((pretraining, ridge, seed, index))
        return simulate.Replicate(1.0 + index, 0, 0, 0, 0, 0, None, "", np.zeros(0))

    monkeypatch.setattr(simulate, "replicate", replicate)
    assert list(_simulation.running_means(SMALL, 2, seed=5)) == [(1, (1.0, None)), (2, (1.5, 0.5))]
    assert asked == [(SMALL.setting.pretraining, SMALL.ridge, 5, index) for index in range(2)]
    with pytest.raises(InputError, match="corricl simulate"):
        _simulation.check(State(d=500, sequences=10**6))


# Background work


class Desk:
    """Stands for a page's thread: keeps what is posted until it is asked to run it."""

    def __init__(self):
        self.posted, self.lock = [], threading.Lock()

    def post(self, function):
        with self.lock:
            self.posted.append(function)

    def work(self):
        while self.posted:
            self.posted.pop(0)()


def until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_slow_page_gets_one_batch_of_a_fast_job():
    desk, shown, ended = Desk(), [], []
    work = Background(desk.post)
    work.start(range(1000), shown.append, ended.append)
    until(lambda: len(desk.posted) == 2)
    desk.work()
    assert shown == [list(range(1000))]
    assert ended == [None]
    assert not work.running
    work.close()


def test_a_new_job_ends_the_one_before_and_nothing_of_it_is_shown():
    desk, shown, ended, gate, read = Desk(), [], [], threading.Event(), []

    def slow():
        for i in range(10):
            read.append(i)
            yield i
            gate.wait(30)

    work = Background(desk.post)
    work.start(slow(), shown.append, ended.append)
    until(lambda: read)
    work.start(["new"], shown.append, ended.append)
    gate.set()
    until(lambda: len(desk.posted) == 3)
    desk.work()
    assert shown == [["new"]]
    assert ended == [None]
    assert len(read) <= 2
    work.close()


def test_what_goes_wrong_is_told_with_what_was_found_before():
    def failing():
        yield 1
        raise ZeroDivisionError("no")

    desk, shown, ended = Desk(), [], []
    work = Background(desk.post)
    work.start(failing(), shown.append, ended.append)
    until(lambda: len(desk.posted) == 2)
    desk.work()
    assert shown == [[1]]
    assert isinstance(ended[0], ZeroDivisionError)
    work.close()


def test_closing_stops_the_work():
    read, desk = [], Desk()

    def endless():
        while True:
            read.append(0)
            time.sleep(0.002)
            yield 0

    work = Background(desk.post)
    work.start(endless(), lambda batch: None, lambda failure: None)
    until(lambda: read)
    work.close()
    time.sleep(0.05)
    count = len(read)
    time.sleep(0.05)
    assert len(read) == count


# A visitor's file


def series(rows=120):
    rng = np.random.default_rng(0)
    x = np.zeros((rows, 2))
    for t in range(1, rows):
        x[t] = 0.6 * x[t - 1] + rng.standard_normal(2)
    return x


def test_a_dropped_file_is_measured_as_the_library_does_and_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    text = "\n".join(",".join(map(repr, row)) for row in series().tolist())
    expected = measure.measure(series(), length=12)
    for content in (text, text.encode()):  # the browser decides what is text
        (found, short), (same, full) = _data.measured("mine.csv", content, 12, 0.5)
        assert found is same
        assert found.k2 == expected.k2
        assert found.kernel == expected.kernel
        assert full.startswith(short.removesuffix("<p>predicting …</p>"))
    assert list(tmp_path.iterdir()) == []
    written = measure.page(found, measure.predict(found, noise=0.5))
    assert unescape(full.partition("srcdoc='")[2].partition("'></iframe>")[0]) == written
    assert b64decode(full.partition("base64,")[2].partition("'")[0]).decode() == written
    told = _data.report("<b>mine</b>.csv", found)
    assert f"data-value='{expected.k2.estimate!r}'" in told
    assert "&lt;b&gt;mine" in told


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("notes.txt", b"1,2", "'notes.txt' must end in .npy"),
        ("mine.csv", b"a,b\n1,x\n", "line 2 of 'mine.csv' has text"),
        ("../../etc/mine.npy", b"no", "'../../etc/mine.npy'"),
        ("mine.npy", None, "larger than 50 MB"),
        ("mine.csv", b"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "length 12 is more than the 9 tokens"),
    ],
)
def test_a_bad_file_is_refused_under_its_own_name(name, content, message):
    with pytest.raises(InputError, match=re.escape(message)):
        list(_data.measured(name, content, 12))


def test_no_file_is_unpickled():
    class Evil:
        def __reduce__(self):
            return pytest.fail, ("unpickled",)

    buffer = io.BytesIO()
    np.save(buffer, np.array([Evil()], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"mine\.npy"):
        list(_data.measured("mine.npy", buffer.getvalue(), 12))


def test_the_size_limit_holds_on_the_server(monkeypatch):
    monkeypatch.setattr(_data, "LARGEST", 10)
    seen = []
    dropper = _data.Dropper()
    dropper.param.watch(lambda event: seen.append(dict(dropper.value)), "value")

    def send(name, *chunks):
        for i, data in enumerate(chunks, 1):
            piece = {"name": name, "chunk": i, "total_chunks": len(chunks), "data": data, "type": "x/y"}
            dropper._process_event(types.SimpleNamespace(event_name="upload_event", data=piece))

    send("small.npy", b"12345", b"67890")
    assert seen[-1]["small.npy"] == b"1234567890"
    send("large.npy", b"1234567", b"1234567", b"1")
    assert seen[-1] == {"large.npy": None}
    assert not dropper._file_buffer


# The page and its server


def test_a_page_shows_what_its_widgets_say():
    from corricl.explore._page import Page

    desk = Desk()
    page = Page(SMALL.address, desk.post)
    assert page.state == SMALL
    page.controls.sizes["noise"]._box.value = 0.5
    assert page.state.noise == 0.5
    assert f"data-value='{theory.weak(page.state.setting.pretraining, SMALL.ridge).icl!r}'" in page._numbers.object
    page.controls.sizes["length"]._slider.value = 1.0
    assert page.state.length == 512
    page.controls.sizes["length"]._box.value = 0
    assert "length must be an integer" in page._problem.object
    assert page.state.length == 512
    page.controls.sizes["length"]._box.value = 20
    assert page._problem.object == ""
    page.controls._family.value = "cosine"
    assert page.state.kernel == "cosine:0.3,10"
    page.controls._family.value = "iid"
    assert (page.state.kernel, page.state.axis) == ("iid", "length")
    page.controls._query.value = "gap"
    page.controls._unbounded.value = True
    assert (page.state.query, page.state.tasks) == ("gap:2", math.inf)
    assert "κ = ∞" in page.controls.sizes["tasks"]._slider.label
    page.controls._family.value = "any SPEC …"
    page.controls._spec.value = "0.7*exp:5+0.3*iid"
    assert page.state.kernel == "0.7*exp:5+0.3*iid"
    for axis in ("length", "kernel"):
        page.controls.axis.value = axis
        page.controls._spec.value = "iid"
        page.controls._spec.value = "file:secret.npy"
        assert "reads no file" in page._problem.object
    page._measured = types.SimpleNamespace(kernel="0.8*exp:5+0.2*iid")
    page._take_kernel(None)
    assert (page.state.kernel, page.state.axis) == ("0.8*exp:5+0.2*iid", "length")
    page._measured = types.SimpleNamespace(kernel="exp:5")
    page._take_kernel(None)
    assert (page.state.kernel, page.state.axis) == ("exp:5", "kernel")
    page.controls._preset.value = "mismatch"
    assert page.state == _presets.PRESETS["mismatch"]
    assert page._address.value == page.state.address
    page.close()


def test_leaving_infinite_tasks_gives_a_number_of_them():
    from corricl.explore._page import Page

    page = Page("tasks=inf", Desk().post)
    page.controls._unbounded.value = False
    assert page.state.tasks == _quantities.SIZES["tasks"].default
    page.close()


def test_simulated_points_stand_on_their_own_curve_alone():
    from corricl.explore._page import Page

    page = Page(SMALL.address, Desk().post)
    page._simulated = {SMALL: simulate.estimate([1.0, 2.0]), SMALL.at(5.0): simulate.estimate([2.0, 3.0])}
    assert sorted(page._here()) == [2.0, 5.0]
    page.controls.axis.value = "noise"
    assert list(page._here()) == [0.1]
    page.controls.sizes["noise"]._box.value = 0.2
    assert list(page._here()) == [0.1]
    page.controls.sizes["d"]._box.value = 7
    assert page._here() == {}
    page.close()


def test_a_bad_address_gives_the_first_page_and_says_why():
    from corricl.explore._page import Page

    page = Page("d=many", Desk().post)
    assert page.state == State()
    assert "address is not understood" in page._problem.object
    page.close()


def test_the_heat_map_holds_the_joint_matrix():
    from corricl.explore._chart import KernelView

    view = KernelView()
    view.show(SMALL)
    np.testing.assert_allclose(view._image.data["image"][0], SMALL.setting.prompt.joint, atol=1e-7)
    np.testing.assert_allclose(view._lags.data["r"], np.exp(-np.arange(12) / 2))


def test_a_taken_port_and_a_strange_address_are_said_plainly(run):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        code, _, err = run("explore", "--no-browser", "--port", port)
    assert (code, err) == (
        2,
        f"corricl: port {port} is taken: choose another with --port, or --port 0 for any free one\n",
    )
    code, _, err = run("explore", "--no-browser", "--port", 70000)
    assert (code, "between 0 and 65535" in err) == (2, True)
    code, _, err = run("explore", "--no-browser", "--address", "203.0.113.1", "--port", 0)
    assert (code, "cannot listen on 203.0.113.1" in err) == (2, True)


def test_only_the_loopback_address_is_bound():
    words = ["explore", "--no-browser", "--port", "0", "--json"]
    process = subprocess.Popen([sys.executable, "-m", "corricl.cli", *words], stdout=subprocess.PIPE, text=True)
    try:
        told = json.loads(process.stdout.readline())
        assert told["url"] == f"http://127.0.0.1:{told['port']}/"
        port = f"{told['port']:04X}"
        tables = [Path(f"/proc/{process.pid}/net/{name}").read_text() for name in ("tcp", "tcp6")]
        listening = [line.split()[1] for table in tables for line in table.splitlines() if line.split()[3] == "0A"]
        assert [place for place in listening if place.endswith(f":{port}")] == [f"0100007F:{port}"]
        process.send_signal(2)
        assert process.wait(30) == 130
    finally:
        process.kill()
        process.stdout.close()


def test_without_panel_the_page_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "panel", None)
    code, _, err = run("explore", "--no-browser")
    assert (code, err) == (2, "corricl: the page needs Panel: pip install 'corricl[explore]'\n")
