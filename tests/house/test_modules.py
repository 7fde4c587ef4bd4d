"""Rules that every module keeps: `__all__` (ruff keeps it sorted), size, words."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

import ombud
from ombud import registry

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "ombud"
BUDGET = 400


def public_modules() -> list[Path]:
    return sorted(
        p
        for p in SOURCE.rglob("*.py")
        if not any(part.startswith("_") and part != "__init__.py" for part in p.parts)
    )


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def defined_names(path: Path) -> set[str]:
    """Public functions, classes and upper-case constants that a module itself defines."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    return {name for name in names if not name.startswith("_")}


def load(path: Path) -> ModuleType:
    return importlib.import_module(name_of(path))


@pytest.mark.parametrize("path", public_modules(), ids=name_of)
def test_all_is_complete(path: Path) -> None:
    if not path.read_text().strip():
        return
    module = load(path)
    listed = module.__all__
    assert sorted(listed) == sorted(set(listed)), "a name is listed twice"
    missing = defined_names(path) - set(listed) - {"__getattr__", "__dir__"}
    assert not missing, f"{name_of(path)} defines {missing} but does not list it"
    for name in listed:
        assert hasattr(module, name), f"{name_of(path)} lists {name} but has no such thing"


@pytest.mark.parametrize(
    "path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE))
)
def test_a_file_holds_one_idea(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= BUDGET, f"{path.name} has {lines} lines; the budget is {BUDGET}"


def test_names_at_the_top_are_there() -> None:
    for name in ombud.__all__:
        assert getattr(ombud, name) is not None
    assert set(ombud.__all__) <= set(dir(ombud))
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = ombud.no_such_thing


PROMISES = re.compile(r"\b(debias\w*|unbiased|fair_\w+|safe_\w+)\b", re.IGNORECASE)


@pytest.mark.parametrize(
    "path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE))
)
def test_names_describe_and_do_not_promise(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        name = getattr(node, "name", None) or getattr(node, "id", None)
        if isinstance(name, str):
            assert not PROMISES.search(name), f"{path.name}: {name}"


@pytest.mark.parametrize("kind", registry.KINDS)
def test_everything_registered_is_documented(kind: str) -> None:
    for name in registry.names(kind):
        words = registry.describe(kind, name)
        assert words, f"{kind} {name} has no documentation"
        assert not words.startswith(f"{registry.get(kind, name).__name__}("), (
            f"{kind} {name} has only the docstring that dataclass made"
        )


def test_metrics_say_what_they_must() -> None:
    for name in registry.names("metric"):
        text = registry.get("metric", name).__doc__ or ""
        for word in ("**Unit of resampling**", "**Undefined**", "**Does not capture**"):
            assert word in text, f"metric {name} does not say {word}"
