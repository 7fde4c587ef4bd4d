"""Recipes that need a library or a model: run where it is installed, compiled everywhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "recipes.md"
BLOCKS = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def needed(text: str) -> str:
    found = re.match(r"# needs: (.+)", text)
    assert found, "a recipe that is not run with the page says what it needs"
    return found.group(1)


@pytest.mark.filterwarnings("ignore")  # those of other libraries
@pytest.mark.parametrize("text", BLOCKS, ids=needed)
def test_recipe_runs_where_its_library_is(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = compile(text, PAGE.name, "exec")
    library, _, more = needed(text).partition(",")
    if more:
        pytest.skip(f"it needs{more}")
    pytest.importorskip(library, reason=f"{library} is not installed")
    names: dict[str, object] = {}
    start = re.search(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert start
    exec(start.group(1), names)
    exec(code, names)
