"""Each layer imports only what stands to its left."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

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


@cache
def imports(path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what a file imports, in functions too: everything, and all but for the type checker.

    Names that are imported from a module follow it, with a dot between.
    """
    every: list[str] = []
    runtime: list[str] = []

    def visit(node: ast.AST, checked: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                names = [alias.name for alias in child.names]
            elif isinstance(child, ast.ImportFrom) and child.level:
                names = [f"relative import in {path.name}"]
            elif isinstance(child, ast.ImportFrom):
                names = [str(child.module), *(f"{child.module}.{a.name}" for a in child.names)]
            else:
                # Only statements hold imports.
                if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                    typing = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
                    visit(child, checked or typing)
                continue
            every.extend(names)
            runtime.extend([] if checked else names)

    visit(ast.parse(path.read_text()), False)
    return tuple(every), tuple(runtime)


def imports_of(path: Path) -> set[str]:
    return {name for name in imports(path)[0] if name.startswith(("ombud.", "relative"))}


def modules() -> list[Path]:
    return sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")


def faults_of(path: Path) -> list[str]:
    """Return the imports of a module that its layer does not permit."""
    layer = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    faults = []
    for name in sorted(imports_of(path)):
        if not name.startswith("ombud."):
            faults.append(name)
            continue
        imported = name.split(".")[1]
        if imported == "cli" and layer not in CLI:
            faults.append(f"{layer} imports cli: {name}")
        elif layer in ASIDE | CLI:
            continue
        elif imported in ASIDE:
            faults.append(f"{layer} imports {imported}, which stands aside: {name}")
        elif imported in RANK and imported != layer and RANK[imported] >= RANK[layer]:
            faults.append(f"{layer} imports {imported}: {name}")
    return [f"{path.relative_to(SOURCE)}: {fault}" for fault in faults]


def test_modules_import_only_from_their_left() -> None:
    assert [fault for path in modules() for fault in faults_of(path)] == []


def test_every_folder_has_a_layer() -> None:
    names = {p.name.removesuffix(".py") for p in SOURCE.iterdir() if not p.name.startswith("__")}
    assert names - {"py.typed"} <= set(RANK) | ASIDE


def module_graph() -> dict[str, set[str]]:
    names = {}
    for path in modules():
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    graph = {}
    for name, path in names.items():
        # An __init__ collects its package: what it imports back is no cycle of its parts.
        needs = set() if path.name == "__init__.py" else set(imports(path)[1])
        graph[name] = {n for n in needs & set(names) if names[n].name != "__init__.py"}
    return graph


def test_no_module_needs_itself() -> None:
    graph, done, path = module_graph(), set(), []

    def walk(name: str) -> None:
        if name in path:
            cycle = [*path[path.index(name) :], name]
            raise AssertionError(f"an import cycle: {' -> '.join(cycle)}")
        if name in done:
            return
        path.append(name)
        for other in sorted(graph[name]):
            walk(other)
        path.pop()
        done.add(name)

    for name in sorted(graph):
        walk(name)
