"""Recipes that need a library or a model: run where it is installed, compiled everywhere."""

from __future__ import annotations

import importlib.util
import re
import warnings
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "recipes.md"
BLOCKS = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


# What the recipes begin from: the class and its data, and the texts of the pipeline.
PLAIN = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
START = [PLAIN[0], next(block for block in PLAIN if "sklearn" in block)]


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
    for library in needed(text).split(", "):
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    names: dict[str, object] = {"__name__": "page"}
    for block in START:
        exec(block, names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what those libraries warn of is theirs
        exec(code, names)
