"""How the site is built: `sphinx-build -W -b html docs OUT`. Nothing is fetched while building or reading."""

import importlib.metadata
import re

from docutils import nodes

project = "corricl"
author = "The corricl developers"
copyright = "2026, The corricl developers"
release = importlib.metadata.version("corricl")
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
exclude_patterns = ["_build"]
suppress_warnings = ["toc.empty_glob"]  # a page is listed once it exists

myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3
myst_dmath_allow_labels = True
myst_dmath_double_inline = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # attributes of a dataclass are listed once
napoleon_custom_sections = [("Validity", "notes_style"), ("Source", "notes_style")]

html_theme = "pydata_sphinx_theme"
html_title = "corricl"
html_show_sourcelink = False
html_copy_source = False
smartquotes = False
html_sidebars = {"*": []}  # pages without pages below them
html_theme_options = {
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
}

# One self-contained script typesets the mathematics, glyphs included, so that pages need no network.
_MATHJAX = "sphinx-mathjax-offline"
_SCRIPT = [str(file.locate()) for file in importlib.metadata.files(_MATHJAX) or () if file.match("mathjax/tex-svg.js")]
html_static_path = ["_static", *_SCRIPT]
html_css_files = ["site.css"]
mathjax_path = "tex-svg.js"
mathjax3_config = {"options": {"enableMenu": False}}

_MARKUP = re.compile(r"`+([^`]+)`+(?=(\w|\()?)|\||(?<=\w)_(?!\w)|\*")


def _plain(match: re.Match[str]) -> str:
    if match[1] is None:
        return "\\" + match[0]
    return f"``{match[1]}``" + ("\\ " if match[2] else "")


def _escape_docstring(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Docstrings hold formulas in plain text: keep |w|, * and x_ from being read as markup, and `code` as code."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...", "[")) and not re.match(r"\s*\*{1,2}\w+:", line):
            lines[i] = _MARKUP.sub(_plain, line)


def _number_by_label(app: object, doctree: nodes.document) -> None:
    """Show an equation's own label, (L7), which the text refers to, instead of a running number."""
    for equation in doctree.findall(nodes.math_block):
        if equation.get("label"):
            equation["number"] = equation["label"]


def _skip_tuple_field(app: object, what: str, name: str, obj: object, skip: bool, options: object) -> bool | None:
    """Fields of a named tuple stand in its signature; their generated docstrings say nothing."""
    return True if (getattr(obj, "__doc__", None) or "").startswith("Alias for field number") else None


def setup(app: object) -> None:
    """Connect what is above; docstrings are escaped before their sections are parsed."""
    app.connect("autodoc-process-docstring", _escape_docstring, priority=100)  # type: ignore[attr-defined]
    app.connect("doctree-read", _number_by_label)  # type: ignore[attr-defined]
    app.connect("autodoc-skip-member", _skip_tuple_field)  # type: ignore[attr-defined]
