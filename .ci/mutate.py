"""Break random lines of logic one at a time, and report which breakages no test notices.

    .venv/bin/python .ci/mutate.py                      100 mutations across all packages
    .venv/bin/python .ci/mutate.py --count 20 --only stats metrics --seed 7

A mutation flips a comparison, exchanges plus and minus, times and divide, `and` and `or`, changes a
number by one, negates a condition, or returns None. It is made in a copy of ``src``; then the tests
of that module run: its doctests, the test file of its name, and the test files that import it, the
most specific first; then, if they pass, all tests of its folder. A breakage that they all pass has
survived. Not every survivor is a gap: some
mutations change nothing that can be seen (an equivalent mutant), such as the size of a block.

Not part of continuous integration: 100 mutations take about an hour of CPU time.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Test files that take minutes.
LONG = ("_cluster", "_browser", "_kills", "_realdata")
FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
EXCHANGED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True)
class Mutation:
    """A place in a file and what stands there instead."""

    path: Path
    line: int
    start: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        old, new = (" ".join(text.split())[:70] for text in (self.old, self.new))
        return f"{self.path.relative_to(ROOT)}:{self.line}: {old}  ->  {new}"


def changed(node: ast.AST) -> str | None:
    """Return another text for an expression or a statement; None where there is none to try."""
    match node:
        case ast.Compare(left, [operator], [right]) if type(operator) in FLIPPED:
            return ast.unparse(ast.Compare(left, [FLIPPED[type(operator)]()], [right]))
        case ast.BinOp(left, operator, right) if type(operator) in EXCHANGED:
            if any(isinstance(part, ast.Constant | ast.JoinedStr) and not isinstance(
                getattr(part, "value", ""), int | float
            ) for part in (left, right)):  # fmt: skip
                return None  # joined text
            return ast.unparse(ast.BinOp(left, EXCHANGED[type(operator)](), right))
        case ast.BoolOp(operator, values):
            other = ast.Or() if isinstance(operator, ast.And) else ast.And()
            return ast.unparse(ast.BoolOp(other, values))
        case ast.UnaryOp(ast.Not(), operand):
            return ast.unparse(operand)
        case ast.Constant(bool(value)):
            return str(not value)
        case ast.Constant(int(value)):
            return str(value + 1)
        case ast.Constant(float(value)):
            return repr(value * 2 if value else 1.0)
        case ast.Return(ast.expr() as value) if not isinstance(value, ast.Constant):
            return "return None"
        case ast.IfExp(test, body, orelse):
            return ast.unparse(ast.IfExp(test, orelse, body))
    return None


def logic(node: ast.AST, inside: bool = False) -> Iterator[ast.AST]:
    """Yield what is run inside functions: no annotations, decorators, defaults or messages."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        if node.name.startswith("__") and node.name not in {"__call__", "__post_init__"}:
            return
        for statement in node.body:
            yield from logic(statement, True)
        return
    if isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom | ast.JoinedStr):
        return
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and inside:
        yield from logic(
            node.value, True
        )  # an index out of range breaks everything: no test of ours
        return
    if inside:
        yield node
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from logic(child, inside)


def mutations(path: Path) -> list[Mutation]:
    """Return everything that can be tried in a file."""
    text = path.read_text()
    # Positions of nodes count bytes.
    lines = [0]
    for line in text.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    found = []
    for node in logic(ast.parse(text)):
        new = changed(node)
        if new is None or not isinstance(node, ast.expr | ast.stmt):
            continue
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = lines[node.lineno - 1] + node.col_offset
        end = lines[node.end_lineno - 1] + node.end_col_offset
        old = text.encode()[start:end].decode()
        if isinstance(node, ast.expr):
            new = f"({new})"
        found.append(Mutation(path, node.lineno, start, end, old, new))
    return found


def tests_of(path: Path, most: int, importers: bool = True) -> list[str]:
    """Return the test files of a module, the most specific first; else those of its importers."""
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    module = ".".join(parts)
    words = set(path.stem.strip("_").split("_"))
    defined = re.findall(r"^(?:def|class) ([A-Za-z]\w*)", path.read_text(), flags=re.M)
    names = re.compile(rf"\b({'|'.join(defined) or 'nothing defined'})\b")
    ranked = []
    for test in sorted((ROOT / "tests").rglob("test_*.py")):
        if test.stem.endswith(LONG):
            continue
        text = test.read_text()
        folder = test.relative_to(ROOT / "tests").parts[:-1]
        shared = sum(a == b for a, b in zip(folder, parts[1:], strict=False))
        score = 8.0 * (test.stem == f"test_{path.stem.strip('_')}" and shared > 0)
        score += 6 * bool(re.search(rf"\b{re.escape(module)}\b", text))
        score += 2 * len(words & set(test.stem.split("_")[1:]))
        used = len(set(names.findall(text)))
        score += min(used, 4)
        if not score:
            continue
        ranked.append((score + shared, test))
    ranked.sort(key=lambda pair: -pair[0])
    chosen = [str(test.relative_to(ROOT)) for score, test in ranked[:most] if score >= 3]
    if not chosen and importers:
        for other in sorted((ROOT / "src").rglob("*.py")):
            if re.search(rf"\b{re.escape(module)}\b", other.read_text()):
                chosen += tests_of(other, 2, importers=False)
    return list(dict.fromkeys(chosen))[:most]


def beside(path: Path, tests: list[str]) -> list[str]:
    """Return the other test files of the folder that mirrors a module's, or its parent's."""
    folder = ROOT / "tests" / path.relative_to(ROOT / "src" / "ombud").parent
    while not list(folder.glob("test_*.py")):
        folder = folder.parent
    every = [file for file in sorted(folder.glob("test_*.py")) if not file.stem.endswith(LONG)]
    return [name for file in every if (name := str(file.relative_to(ROOT))) not in tests]


def passes(tests: list[str], doctests: Path, source: Path, seconds: int) -> bool | None:
    """Return whether tests pass with a copy of the source; None when they take too long."""
    environment = os.environ | {"PYTHONPATH": str(source), "OMBUD_PLUGINS": "none"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, str(doctests), *tests],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # CPU time: a busy machine must not decide what counts as too long.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds)),
    )
    if done.returncode in {-signal.SIGXCPU, -signal.SIGKILL}:
        return None
    return done.returncode in {0, 5}  # 5: nothing to run


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    """Try the mutations that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--only", nargs="*", default=[], help="folders of src/ombud")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip", type=int, default=0, help="so many of those chosen")
    parser.add_argument("--files", type=int, default=4, help="most test files for one mutation")
    parser.add_argument("--seconds", type=int, default=300, help="most CPU seconds of the tests")
    parser.add_argument("--cpu-hours", type=float, default=2.0)
    asked = parser.parse_args()
    every = [
        mutation
        for folder in asked.only or [""]
        for path in sorted((ROOT / "src" / "ombud" / folder).rglob("*.py"))
        for mutation in mutations(path)
    ]
    chosen = random.Random(asked.seed).sample(every, min(len(every), asked.count))[asked.skip :]
    say(f"{len(every):,} possible mutations, {len(chosen)} chosen")
    counts = dict.fromkeys(
        ("killed", "survived", "too long", "tests fail without it", "no test"), 0
    )
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        sound: dict[tuple[str, ...], bool] = {}
        for mutation in chosen:
            if sum(os.times()[2:4]) > 3600 * asked.cpu_hours:
                say("the CPU time is used up")
                break
            copy = source / mutation.path.relative_to(ROOT / "src")
            whole = copy.read_bytes()
            broken = whole[: mutation.start] + mutation.new.encode() + whole[mutation.end :]
            tests = tests_of(mutation.path, asked.files)
            copy.write_bytes(broken)
            found = passes(tests, copy, source, asked.seconds)
            if found and (others := beside(mutation.path, tests)):
                tests = others
                found = passes(tests, copy, source, asked.seconds)
            copy.write_bytes(whole)
            if not tests and found:
                kind = "no test"
            elif found is None:
                kind = "too long"
            elif found:
                kind = "survived"
            else:
                # Only what breaks a sound test was noticed.
                key = (str(copy), *tests)
                if key not in sound:
                    sound[key] = bool(passes(tests, copy, source, asked.seconds))
                kind = "killed" if sound[key] else "tests fail without it"
            counts[kind] += 1
            say(f"{kind}: {mutation}  [{' '.join(Path(test).name for test in tests)}]")
    judged = counts["killed"] + counts["survived"] + counts["no test"]
    score = counts["killed"] / judged if judged else float("nan")
    say(json.dumps({"mutations": sum(counts.values()), **counts, "noticed": round(score, 3)}))


if __name__ == "__main__":
    main()
