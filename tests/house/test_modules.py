"""Rules that every module keeps: what packages list, words, documentation."""

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


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def load(path: Path) -> ModuleType:
    return importlib.import_module(name_of(path))


def test_only_packages_list_their_names() -> None:
    listed = re.compile(r"^__all__\b", re.MULTILINE)
    modules = (path for path in SOURCE.rglob("*.py") if path.name != "__init__.py")
    wrong = [name_of(path) for path in modules if listed.search(path.read_text())]
    assert not wrong, f"`__all__` belongs in packages: {wrong}"


def test_what_packages_list_is_there() -> None:
    for path in sorted(SOURCE.rglob("__init__.py")):
        module = load(path)
        listed = getattr(module, "__all__", [])
        assert len(listed) == len(set(listed)), f"{name_of(path)} lists a name twice"
        missing = [name for name in listed if not hasattr(module, name)]
        assert not missing, f"{name_of(path)} lists {missing} and has no such names"


IMPORTS = re.compile(r"^ *from (ombud[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)
FEWEST_LINES = 60
# One registered thing, one command or one page each; or what several modules share.
REGISTERS = re.compile(r"^@(?:registry\.)?\w+\(\"|^@app\.|^app = ", re.MULTILINE)


def test_no_module_is_a_fragment_of_another() -> None:
    """A module with fewer lines than the floor belongs into the one that imports it."""
    modules = {name_of(path): path for path in SOURCE.rglob("*.py") if path.name != "__init__.py"}
    importers: dict[str, set[str]] = {name: set() for name in modules}
    for path in SOURCE.rglob("*.py"):
        if path.name == "__init__.py":
            continue
        for module, names in IMPORTS.findall(path.read_text()):
            parts = [module, *(f"{module}.{name}" for name in re.findall(r"\w+", names))]
            for name in importers.keys() & set(parts):
                importers[name].add(name_of(path))
    fragments = [
        name
        for name, path in modules.items()
        if len(path.read_text().splitlines()) < FEWEST_LINES
        and len(importers[name]) == 1
        and not REGISTERS.search(path.read_text())
    ]
    assert not fragments, f"merge them into what imports them: {fragments}"


MOST_FILES = 10


def test_a_question_has_few_files() -> None:
    """Models and data files stand in subfolders and do not count."""
    folders = [path for path in (SOURCE / "questions").iterdir() if path.is_dir()]
    sizes = {path.name: len(list(path.glob("*.py"))) for path in folders}
    assert {"authors", "delicate", "suppression"} <= sizes.keys()
    many = {name: n for name, n in sizes.items() if n > MOST_FILES}
    assert not many, f"merge files by idea, at most {MOST_FILES} in a folder: {many}"


def test_names_at_the_top_are_there() -> None:
    for name in ombud.__all__:
        assert getattr(ombud, name) is not None
    assert set(ombud.__all__) <= set(dir(ombud))
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = ombud.no_such_thing


PROMISES = re.compile(r"\b(debias\w*|unbiased|fair_\w+|safe_\w+)\b", re.IGNORECASE)


def test_names_describe_and_do_not_promise() -> None:
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if PROMISES.search(text) else ():
            name = getattr(node, "name", None) or getattr(node, "id", None)
            if isinstance(name, str) and PROMISES.search(name):
                wrong.append(f"{name_of(path)}: {name}")
    assert not wrong


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
