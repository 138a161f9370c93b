"""The house rules that would rot unseen: import direction, what is imported when, and what files may name."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import corricl

PACKAGE = Path(corricl.__file__).parent
ROOT = PACKAGE.parent.parent

RANK = {
    "errors": 0,
    "numerics": 0,
    "kernels": 1,
    "plugins": 1,
    "references": 1,
    "prompt": 2,
    "setting": 3,  # the nouns under the names of the command line
    "theory": 3,
    "simulate": 4,
    "attention": 4,
    "measure": 4,
    "sweeps": 5,
    "figures": 6,
    "explore": 7,
    "cli": 7,
}
"""A part may import parts of lower rank; of two with one rank only one may import the other."""


def part_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_modules(path):
    """Absolute names of everything a file imports, wherever in the file it does."""
    package = ("corricl", *path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *([node.module] if node.module else [])))
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def sources():
    return [p for p in sorted(PACKAGE.rglob("*.py")) if p.parent != PACKAGE or p.stem not in ("__init__", "__main__")]


def links():
    """(importing part, imported part, file) over the package, an import of the root resolved to the part it names."""
    for path in sources():
        for module in imported_modules(path):
            words = module.split(".")
            if words[0] == "corricl" and len(words) > 1 and words[1] in RANK and words[1] != part_of(path):
                yield part_of(path), words[1], path.relative_to(PACKAGE)


def test_every_part_has_a_place():
    assert {part_of(path) for path in sources()} <= set(RANK)
    assert ("theory", "prompt") in {link[:2] for link in links()}  # the parser sees relative imports


def test_imports_run_one_way():
    assert [link for link in links() if RANK[link[1]] > RANK[link[0]]] == []


def test_parts_of_one_rank_do_not_import_each_other():
    pairs = {link[:2] for link in links()}
    assert [pair for pair in pairs if pair[::-1] in pairs] == []


def test_kernels_prompt_and_theory_name_neither_jax_nor_the_slow_part_of_scipy():
    for path in sources():
        if RANK[part_of(path)] <= RANK["theory"]:
            bad = [
                m
                for m in imported_modules(path)
                if m.split(".")[0] in ("jax", "equinox") or m.startswith("scipy.optimize")
            ]
            assert bad == [], path


def modules_after(statement):
    code = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_theory_starts_without_jax_and_without_scipy_optimize():
    use = "from corricl import Prompt, Pretraining, theory; theory.weak(Pretraining(Prompt(8, 9, 'exp:2'), 90, 7))"
    loaded = modules_after(use)
    assert {"corricl.theory", "corricl.kernels", "numpy"} <= loaded
    for slow in ("jax", "scipy.optimize", "scipy.stats", "matplotlib", "pydantic"):
        assert slow not in loaded


def test_the_package_itself_is_lazy():
    loaded = modules_after("import corricl")
    assert not {"numpy", "scipy", "jax"} & loaded
    assert {m for m in loaded if m.startswith("corricl")} == {"corricl", "corricl.errors"}
    assert "corricl.simulate" in modules_after("import corricl; corricl.simulate")
    assert {"theory", "simulate", "kernels", "Prompt", "Pretraining", "Risk"} <= set(dir(corricl))
    assert re.fullmatch(r"\d+\.\d+.*", corricl.__version__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        corricl.nothing  # noqa: B018


def tracked_texts():
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a checkout")
    for name in listed.split("\0"):
        path = ROOT / name
        if not name or not path.is_file() or path.suffix in (".png", ".pdf", ".npy", ".npz", ".woff2", ".woff"):
            continue
        yield name, path.read_text(encoding="utf-8", errors="replace")


HOSTS = re.compile(
    r"https?://[\w.-]*(pypi|pythonhosted|anaconda|conda-forge|npmjs|jsdelivr|unpkg|cdnjs)[\w.-]*\." + r"\w+"
)
ABSOLUTE = re.compile(r"(?<![\w./~$}<-])/(home|Users|root|work|mnt|scratch)/" + r"[\w.]")


def test_no_tracked_file_names_a_package_host_or_a_place_of_one_machine():
    """The tests may invent a home directory; this checkout and this environment are named nowhere."""
    here = [place for place in (str(ROOT), sys.prefix) if len(place) > 5]
    found = []
    for name, text in tracked_texts():
        patterns = (HOSTS,) if name.startswith("tests/") else (HOSTS, ABSOLUTE)
        found += [(name, match.group()) for pattern in patterns for match in pattern.finditer(text)]
        found += [(name, place) for place in here if place in text]
    assert found == []


def test_the_patterns_see_what_they_are_for():
    assert HOSTS.search("https" + "://files.pythonhosted.org/packages")
    assert HOSTS.search("https" + "://pypi.org/simple")
    assert ABSOLUTE.search("see " + "/home" + "/me/file")
    assert not ABSOLUTE.search("docs/work/file")


def test_files_stay_short():
    long = {str(p.relative_to(PACKAGE)): n for p in sources() if (n := len(p.read_text().splitlines())) > 500}
    assert long == {}
