"""How Sphinx builds the site (`make docs`); nothing is fetched, to build it or to read it."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

project = "ombud"
author = "The ombud developers"
copyright = author
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "ombud"
html_static_path: list[str] = []
html_show_sourcelink = False
smartquotes = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3


# Braces that TeX leaves small would grow with what stands beside them.
_BRACE = re.compile(r"<mo>([{}])</mo>")


def _mathml(node: nodes.Element, *, as_block: bool) -> str:
    written = tex2mathml(node.astext(), as_block=as_block)
    return _BRACE.sub(r'<mo stretchy="false">\1</mo>', written)


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(_mathml(node, as_block=True))
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Write formulas as MathML, which browsers draw without a script."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(_inline, None), block_renderers=(_block, None)
    )
    return {"parallel_read_safe": True}


html_math_renderer = "mathml"
