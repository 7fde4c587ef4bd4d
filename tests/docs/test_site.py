"""The site builds without a warning, and what it is made of agrees with the code."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))


@cache
def docstrings() -> list[tuple[str, str]]:
    found = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                text = ast.get_docstring(node)
                if text:
                    found.append((f"{path.stem}.{getattr(node, 'name', '')}", text))
    return found


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("furo", reason="furo is not installed (requirements-docs.txt)")
    pytest.importorskip("myst_parser", reason="myst-parser is not installed")
    done = subprocess.run(
        [sys.executable, DOCS / "site.py", tmp_path], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    pages = {path.stem for path in DOCS.glob("*.md")}
    assert pages <= {path.stem for path in (tmp_path / "html").glob("*.html")}


def test_pages_that_fetch_something_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    site = load("site")
    page.write_text('<a href="https://doi.org/1">1</a><script src="_static/a.js"></script>')
    assert site.loaded(page) == []
    page.write_text('<link rel="x" href="//cdn.example/a.css"><script src="https://a.example/b">')
    assert len(site.loaded(page)) == 2


def test_every_package_that_may_be_imported_has_a_page() -> None:
    packages = {path.parent.name for path in (ROOT / "src" / "ombud").glob("*/__init__.py")}
    # The command line has its own page; questions register, and export nothing.
    rest = {"cli", "http", "questions"}
    assert packages - rest <= set(load("site").PACKAGES)


def test_every_formula_is_mathml() -> None:
    math = pytest.importorskip("docutils.utils.math.latex2mathml", reason="no docutils")
    markdown = load("docstrings").as_markdown
    formulas = 0
    for name, text in docstrings():
        if ":math:" not in text and ".. math::" not in text:
            continue
        written = markdown(text)
        assert ":math:" not in written and ".. math::" not in written, name
        code = re.sub(r"```.*?```|`[^`]*`", "", written, flags=re.DOTALL)
        for block, inline in re.findall(r"\$\$(.*?)\$\$|\$([^$]+)\$", code, re.DOTALL):
            assert "<math" in math.tex2mathml((block or inline).strip(), as_block=bool(block)), name
            formulas += 1
    assert formulas > 100


def test_what_docstrings_cite_is_in_the_references() -> None:
    bibliography = load("bibliography")
    known = bibliography.load_references()
    missing = {
        (name, key)
        for name, text in docstrings()
        for key in bibliography.cited(text)
        if key not in known
    }
    assert not missing
    for key, one in known.items():
        assert one.get("doi", "").startswith("10.") or one.get("url", "").startswith("https"), key
        assert re.fullmatch(r"\d{4}[a-z]?", one["year"]), key


def test_bibtex_has_every_reference_once() -> None:
    bibliography = load("bibliography")
    keys = re.findall(r"^@\w+\{([^,]+),$", bibliography.bibtex(), re.MULTILINE)
    assert keys == sorted(bibliography.load_references())
    assert bibliography.bibtex().count("{") == bibliography.bibtex().count("}")


def test_a_reference_without_a_year_is_refused() -> None:
    cited = load("bibliography").cited
    assert cited("X.\n\nReferences\n----------\nCohen (1960), A; Fisher et al. (1935), B.\n") == [
        "cohen-1960",
        "fisher-1935",
    ]
    with pytest.raises(ValueError, match="no work is cited"):
        cited("X.\n\nReferences\n----------\nCohen, a paper.\n")


def test_a_docstring_becomes_markdown() -> None:
    text = """Share of ``x``.

    .. math:: \\frac{a}{b}

    with :math:`a` known.

    Parameters
    ----------
    k
        How many; see `Other`.

    References
    ----------
    Wilson (1927), JASA.

    Examples
    --------
    >>> 1 + 1
    2
    """
    assert load("docstrings").as_markdown(text) == (
        "Share of `x`.\n\n$$\n\\frac{a}{b}\n$$\n\nwith $a$ known.\n\n**Parameters**\n\n"
        "- `k`: How many; see `Other`.\n\n**References**\n\n"
        "Wilson ([1927](references.md#wilson-1927)), JASA.\n\n**Examples**\n\n"
        "```pycon\n>>> 1 + 1\n2\n```"
    )


def test_words_of_the_glossary_are_told_once_and_lead_somewhere() -> None:
    terms = tomllib.loads((DOCS / "glossary.toml").read_text())["term"]
    names = [one["name"].lower() for one in terms]
    assert len(names) == len(set(names)) > 40
    for one in terms:
        assert one["means"].endswith("."), one["name"]
        assert "see" not in one or (DOCS / one["see"]).is_file(), one["name"]
