"""Imports stand at the top; which ones may wait until they are needed, and why."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "ombud"

LAZY = {
    "aiohttp": "heavy: most audits ask no service",
    "deltalake": "optional",
    "detoxify": "optional",
    "fastwarc": "optional",
    "fcntl": "optional: not on Windows",
    "fsspec": "optional",
    "glin_profanity": "optional",
    "hatesonar": "optional",
    "jinja2": "heavy: few commands write a report",
    "lenskit": "optional",
    "markupsafe": "heavy: comes with jinja2",
    "numba": "optional, and heavy",
    "ombud.link._kernels": "heavy: numba",
    "ombud.probes._kernels": "heavy: numba",
    "ombud.systems.detectors._ngram_kernels": "heavy: numba",
    "ombud.systems.recommenders.kernels": "heavy: numba",
    "ombud.systems.recommenders.ridge": "heavy: numba",
    "ombud.systems.rerankers._kernels": "heavy: numba",
    "onnx": "optional",
    "onnxruntime": "optional",
    "optuna": "optional",
    "pandas": "optional",
    "profanity_check": "optional",
    "py3langid": "optional",
    "pyarrow.dataset": "heavy: imports pandas where that is installed",
    "pyiceberg": "optional",
    "pyspark": "optional",
    "pytest": "optional: what is in ombud.testing runs in the tests of others",
    "resource": "optional: not on Windows",
    "safetensors": "optional",
    "scipy.cluster": "heavy",
    "scipy.optimize": "heavy",
    "scipy.stats": "heavy: takes as long as all else together",
    "sklearn": "optional",
    "skops": "optional",
    "splink": "optional",
    "statsmodels": "optional",
    "threadpoolctl": "optional: statistics run without it, on all threads",
    "tokenizers": "optional",
    "torch": "optional",
    "transformers": "optional",
    "uvloop": "optional",
    "yarl": "heavy: comes with aiohttp",
    "zstandard": "optional",
}
"""What a function may import, and why not at the top: it is heavy, or optional."""

STARTING = ("ombud", "pydantic", "rich")
"""What functions of ``ombud.cli`` may import besides: help and completion must start quickly."""


def imports_in_functions() -> Iterator[tuple[str, str]]:
    """Yield the file and line of each import in a function, and the module that it imports."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        inside = {n for f in ast.walk(tree) if isinstance(f, kinds) for n in ast.walk(f)}
        for node in inside:
            place = f"{path.relative_to(SOURCE).as_posix()}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import):
                yield from ((place, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                # A module may be named as a part of its package.
                yield from ((place, f"{node.module}.{alias.name}") for alias in node.names)


def within(module: str, packages: tuple[str, ...]) -> set[str]:
    return {one for one in packages if module == one or module.startswith(f"{one}.")}


def test_an_import_in_a_function_is_of_what_is_heavy_or_optional() -> None:
    needed, wrong = set(), []
    for place, module in imports_in_functions():
        allowed = within(module, tuple(LAZY))
        needed |= allowed
        if allowed:
            continue
        if not (place.startswith("cli/") and within(module, STARTING)):
            wrong.append(f"{place} imports {module}")
    assert not wrong, f"import it at the top, or say in LAZY why not: {sorted(wrong)}"
    assert needed == set(LAZY), f"nothing imports this in a function: {set(LAZY) - needed}"
