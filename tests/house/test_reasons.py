"""Every undefined estimate says by a code why there is no number, and nothing reads its words."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import ombud
from ombud.stats.estimate import REASONS

SOURCE = Path(ombud.__file__).parent


def _nodes(*words: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield the places and nodes of all files that hold one of some words."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if any(w in text for w in words) else ():
            yield f"{path.relative_to(SOURCE)}:{getattr(node, 'lineno', 0)}", node


def _codes(value: ast.expr) -> set[str]:
    found = {n.value for n in ast.walk(value) if isinstance(n, ast.Constant)}
    return {one for one in found if isinstance(one, str)}


def test_every_undefined_estimate_has_a_code():
    faults, calls = [], 0
    for where, call in _nodes("undefined", "without_value"):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr == "undefined":
            given = [k.value for k in call.keywords if k.arg == "reason_code"]
        elif call.func.attr == "without_value":
            given = call.args[1:2] + [k.value for k in call.keywords if k.arg == "code"]
        else:
            continue
        calls += 1
        unknown = [code for value in given for code in _codes(value) if code not in REASONS]
        if len(given) != 1 or unknown:
            faults.append(f"{where}: {unknown or 'no code'}")
    assert calls > 50
    assert not faults, faults


def test_every_code_is_used_and_told():
    assert all(REASONS.values())
    words = "\n".join(
        path.read_text(encoding="utf-8")
        for path in SOURCE.rglob("*.py")
        if path.name != "estimate.py" or path.parent.name != "stats"
    )
    assert [code for code in REASONS if f'"{code}"' not in words] == []


def test_no_code_reads_the_words_of_a_reason():
    reads = ("startswith", "removeprefix", "partition", "split", "find", "index")
    faults = []
    for where, node in _nodes("not enough data"):
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in reads:
            parts = node.args
        else:
            continue
        if any("not enough data" in code for part in parts for code in _codes(part)):
            faults.append(where)
    assert not faults, faults
