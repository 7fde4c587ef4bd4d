"""Each layer imports only what stands to its left."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "ombud"

LAYERS: list[set[str]] = [
    {"errors", "rng"},
    {"files", "registry"},
    {"stats"},
    {"taxonomy"},
    {"http"},
    {"data"},
    {"link", "text", "metrics"},
    {"systems"},
    {"probes"},
    {"audits"},
    {"tuning", "report"},
    {"questions"},
    {"app"},
    {"cli"},
]
ASIDE = {"worlds", "testing", "_builtins"}
CLI = {"cli", "__main__"}
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module]
            if node.module == "ombud":
                names = [f"ombud.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            names = [f"relative import in {path.name}"]
        else:
            continue
        found |= {name for name in names if name.startswith(("ombud.", "relative"))}
    return found


def modules() -> list[Path]:
    return sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_module_imports_only_from_its_left(path: Path) -> None:
    layer = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    for name in imports_of(path):
        assert name.startswith("ombud."), name
        imported = name.split(".")[1]
        assert imported != "cli" or layer in CLI, f"{layer} imports cli"
        if layer in ASIDE | CLI:
            continue
        assert imported not in ASIDE, f"{layer} imports {imported}, which stands aside"
        if imported not in RANK:
            continue  # a name of the top-level package, not a layer
        same = imported == layer
        assert same or RANK[imported] < RANK[layer], f"{layer} imports {imported}: {name}"


def test_every_folder_has_a_layer() -> None:
    names = {p.name.removesuffix(".py") for p in SOURCE.iterdir() if not p.name.startswith("__")}
    assert names - {"py.typed"} <= set(RANK) | ASIDE
