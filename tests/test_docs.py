"""The pages say what the code does: examples run, and names, derivations and docstrings are where they should be."""

import dataclasses
import importlib
import inspect
import re
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
SLOW = {"docs/quickstart.md", "docs/theory/sampler.md"}  # compiling takes most of it
PARTS = ("attention", "figures", "kernels", "measure", "prompt", "simulate", "sweeps", "theory")
PUBLIC = ("corricl", *(f"corricl.{part}" for part in PARTS))


def pages():
    texts = {path: path.read_text() for path in (ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))}
    names = {str(path.relative_to(ROOT)): text for path, text in texts.items() if BLOCK.search(text)}
    return [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else [], id=n) for n in names]


@pytest.mark.parametrize("page", pages())
def test_examples_of_a_page_run_in_order(page, tmp_path, monkeypatch, own_registries):
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("corricl_example")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look their module up
    text = (ROOT / page).read_text()
    for block in BLOCK.finditer(text):
        above = text[: block.start(1)].count("\n")  # so that a traceback shows the page's line
        exec(compile("\n" * above + block[1], str(ROOT / page), "exec"), module.__dict__)


def test_the_pages_for_users_have_examples():
    found = {param.values[0] for param in pages()}
    assert {"CONTRIBUTING.md", "docs/quickstart.md", "docs/kernels.md"} <= found


def public_objects():
    from corricl.theory import exact, linear

    for module in (*map(importlib.import_module, PUBLIC), exact, linear):
        for name in dir(module):
            thing = getattr(module, name)
            if name.startswith("_") or not (inspect.isclass(thing) or inspect.isroutine(thing)):
                continue
            if (getattr(thing, "__module__", None) or "").startswith("corricl"):
                yield f"{module.__name__}.{name}", thing


def test_public_names_have_docstrings():
    missing = set()
    for name, thing in public_objects():
        generated = f"{thing.__name__}("  # what dataclasses and named tuples write of themselves
        if not thing.__doc__ or thing.__doc__.startswith(generated):
            missing.add(name)
        if not inspect.isclass(thing):
            continue
        inherited = {attribute for base in thing.__mro__[1:] for attribute in vars(base)}  # described there
        for attribute, value in vars(thing).items():
            described = isinstance(value, (property, classmethod, staticmethod)) or inspect.isfunction(value)
            if described and attribute[0] != "_" and attribute not in inherited and not value.__doc__:
                missing.add(f"{name}.{attribute}")
    assert not missing, sorted(missing)


def fields_of(kind):
    return kind._fields if hasattr(kind, "_fields") else tuple(field.name for field in dataclasses.fields(kind))


def test_notation_page_names_every_symbol():
    from corricl import Pretraining, Prompt, Risk, prompt, simulate
    from corricl.kernels import AR1, Exponential, Statistics
    from corricl.theory import exact, linear
    from corricl.theory._scalars import Scalars

    kinds = (Prompt, Pretraining, Risk, prompt.Basis, prompt.Caution, prompt.Estimate, AR1, Exponential, Statistics)
    kinds += (exact.Moments, linear.Couplings, linear.State, Scalars)
    kinds += (simulate.Contexts, simulate.Replicate, simulate.Simulation, simulate.Solution)
    used = {name for kind in kinds for name in fields_of(kind)}
    used |= set(inspect.signature(linear.icl).parameters) | set(inspect.signature(linear.effective_ridge).parameters)
    used |= {"joint", "query_vector", "basis", "task_resolvent"}
    written = set(re.findall(r"`(\w+)`", (ROOT / "docs/notation.md").read_text()))
    assert not used - written, sorted(used - written)


def test_kernels_page_lists_every_kernel():
    from corricl.kernels import Kernel

    own = {name: kind for name, kind in Kernel.registry.items() if kind.__module__.startswith("corricl.kernels")}
    text = (ROOT / "docs/kernels.md").read_text()
    for name, kind in own.items():
        parameters = ",".join(field.upper() for field in fields_of(kind)) if name != "file" else "PATH"
        assert f"| `{name}{':' if parameters else ''}{parameters}` |" in text
        assert f"`{kind.__name__}` |" in text


def test_derivations_that_docstrings_point_to_exist():
    sources = list((ROOT / "src").rglob("*.py"))
    pointers = {(path, page) for path in sources for page in re.findall(r"docs/[\w/-]+\.md", path.read_text())}
    assert pointers
    missing = sorted(f"{path.relative_to(ROOT)}: {page}" for path, page in pointers if not (ROOT / page).exists())
    assert not missing, missing


def test_equation_numbers_are_unique_and_in_order():
    for path in (ROOT / "docs/theory").glob("*.md"):
        labels = re.findall(r"^\$\$ \(([A-Z])(\d+)\)$", path.read_text(), re.MULTILINE)
        if labels:
            assert len({letter for letter, _ in labels}) == 1, path.name
            assert [int(number) for _, number in labels] == list(range(1, len(labels) + 1)), path.name
