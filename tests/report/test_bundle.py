"""The script that draws figures is made once, kept, and checked whenever it is read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import vl_convert

from ombud.report import bundle


@pytest.fixture(autouse=True)
def nothing_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "__file__", str(tmp_path / "bundle.py"))
    monkeypatch.setattr(sys, "pycache_prefix", None)
    bundle.drawing_script.cache_clear()
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda *_, **__: "made();\r\n")


def kept(folder: Path) -> list[str]:
    return [path.read_text() for path in (folder / "__pycache__").glob("*.js")]


def test_it_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "__pycache__").mkdir()
    first = bundle.drawing_script()
    assert first == "(function(){made();\n})();" and kept(tmp_path) == ["made();\n"]
    bundle.drawing_script.cache_clear()
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda *_, **__: "again();")
    assert bundle.drawing_script() == first


def test_where_no_bytecode_is_written_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert bundle.drawing_script()
    assert kept(tmp_path) == []


def test_a_script_that_would_end_the_page_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda *_, **__: "'</SCRIPT>'")
    with pytest.raises(RuntimeError, match="cannot be embedded"):
        bundle.drawing_script()


@pytest.fixture(autouse=True, scope="module")
def the_real_one_afterwards() -> object:
    yield
    bundle.drawing_script.cache_clear()
