"""Every undefined estimate says by a code why there is no number, and nothing reads its words."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import ombud
from ombud.stats.estimate import REASONS

SOURCE = Path(ombud.__file__).parent


def _calls() -> Iterator[tuple[str, ast.Call]]:
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", node


def _codes(value: ast.expr) -> set[str]:
    found = {n.value for n in ast.walk(value) if isinstance(n, ast.Constant)}
    return {one for one in found if isinstance(one, str)}


def test_every_undefined_estimate_has_a_code():
    faults, calls = [], 0
    for where, call in _calls():
        assert isinstance(call.func, ast.Attribute)
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
    faults = [
        where
        for where, call in _calls()
        if isinstance(call.func, ast.Attribute)
        and call.func.attr in reads
        and any("not enough data" in code for arg in call.args for code in _codes(arg))
    ]
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare) and any(
                "not enough data" in code for part in (node.left, *node.comparators)
                for code in _codes(part)
            ):  # fmt: skip
                faults.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert not faults, faults
