"""Every benchmark has a quick form, and what it imports is installed by ``make bench``."""

from __future__ import annotations

import ast
import importlib
import re
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
# What a package is called on the index, where that is not what it is imported as.
CALLED = {"sklearn": "scikit-learn", "surprise": "scikit-surprise"}
# Of peers, which have environments of their own (benchmarks/_env.py), or come with a package.
ELSEWHERE = {"arviz", "lenskit", "nutpie", "psutil", "pymc", "threadpoolctl"}


def test_what_benchmarks_import_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    models = project["optional-dependencies"]["models"]
    wanted = [*project["dependencies"], *models]
    wanted += (ROOT / "requirements-test.txt").read_text().splitlines()
    installed = {re.split(r"[\[<>=;# ]", line)[0].lower().replace("_", "-") for line in wanted}
    own = {path.stem for path in BENCHMARKS.glob("*.py")} | {"ombud"}
    missing = []
    for path in sorted(BENCHMARKS.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            for name in {one.partition(".")[0] for one in names} - own - sys.stdlib_module_names:
                if name not in ELSEWHERE and CALLED.get(name, name) not in installed:
                    missing.append(f"{path.name}: {name}")
    assert not missing


def test_what_benchmarks_import_of_ombud_exists() -> None:
    missing = []
    for path in sorted(BENCHMARKS.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("ombud"):
                module = importlib.import_module(str(node.module))
                for name in (alias.name for alias in node.names):
                    if not hasattr(module, name) and find_spec(f"{node.module}.{name}") is None:
                        missing.append(f"{path.name}:{node.lineno}: {node.module}.{name}")
    assert not missing


def test_every_benchmark_has_a_quick_form() -> None:
    text = (BENCHMARKS / "run.py").read_text()
    (studies,) = re.findall(r"^STUDIES = \((.*)\)$", text, re.MULTILINE)
    named = (
        {p.stem for p in BENCHMARKS.glob("[a-z]*.py")}
        - {"run"}
        - {one.strip('" ') for one in studies.split(",")}
    )
    assert len(named) > 9
    assert not [name for name in named if "--quick" not in (BENCHMARKS / f"{name}.py").read_text()]
