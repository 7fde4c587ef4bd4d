"""How Sphinx builds the site: `make docs`. Nothing is fetched, neither to build it nor to read it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))

from bibliography import cited_years, load_references

project = "ombud"
author = "The ombud developers"
copyright = author  # noqa: A001  # Sphinx's name for it
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "ombud"
html_static_path: list[str] = []
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
exclude_patterns = ["_build"]
nitpicky = False
default_role = "code"

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
# Blocks of the tests' own language: run where a library is installed.
myst_number_code_blocks: list[str] = []

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": False}
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_use_param = False
napoleon_custom_sections = ["Options"]


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(tex2mathml(node.astext(), as_block=True))
    raise nodes.SkipNode


def _link_references(
    app: Sphinx, what: str, name: str, subject: object, options: object, lines: list[str]
) -> None:
    """Let the years in a section of references lead to the list of references."""
    del app, what, name, subject, options
    lines[:] = cited_years("\n".join(lines), lambda key, year: f":ref:`{year} <{key}>`").split("\n")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write formulas as MathML, which browsers draw without a script."""
    load_references()
    app.add_html_math_renderer(
        "mathml", inline_renderers=(_inline, None), block_renderers=(_block, None)
    )
    # Before napoleon turns sections into directives.
    app.connect("autodoc-process-docstring", _link_references, priority=100)
    return {"parallel_read_safe": True}


html_math_renderer = "mathml"
