"""Compare what the code finds with what it found before: every number of many small plans.

    python tests/golden/golden.py                  compare all parts but Spark's
    python tests/golden/golden.py warnings size    compare these parts
    python tests/golden/golden.py --spark          Spark too (Java 17)
    python tests/golden/golden.py --words          titles, reasons, notes and corrections too
    python tests/golden/golden.py --details        details of estimates and tables too
    python tests/golden/golden.py --store PART     make what is found now the reference of a part

Values, intervals, p-values and counts must be equal to the last bit. An estimate is known by its
plan, key, kind, system, label, group and what it is against, so that neither order nor titles
matter. Exit code 1: something differs.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import lzma
import math
import os
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

# Threads change the order of sums, and with it the last bits.
THREADS = ("OPENBLAS", "OMP", "MKL", "NUMEXPR", "NUMBA")
os.environ.update({f"{name}_NUM_THREADS": "1" for name in THREADS})
os.environ.update({"POLARS_MAX_THREADS": "1", "OMBUD_PLUGINS": "none"})
# So does the processor for which libraries choose their code: one that nearly all x86 processors
# can stand in for, so that the reference holds on all of them.
os.environ.update({"OPENBLAS_CORETYPE": "Haswell", "NUMBA_CPU_NAME": "haswell"})
os.environ["NPY_DISABLE_CPU_FEATURES"] = "X86_V4 AVX512_ICL AVX512_SPR"
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

REFERENCE = Path(__file__).with_name("reference.json.xz")
SHOWN = 20
NUMBERS = ("value", "low", "high", "p", "n", "undefined replicates")
ABOUT = ("key", "kind", "system", "label", "group", "against")
# Where several estimates are alike in all of these, details tell them apart; what is left, such as
# distances whose names are titles, is compared as a whole, in whatever order.
TELLING = ("strategy", "stage", "within", "what", "result", "noise", "movers", "edits")
WORDS = ("metric", "unit", "method", "reason", "note", "correction", "p_adjusted", "level", "null")
PACKAGES = ("numpy", "scipy", "polars", "numba", "scikit-learn", "statsmodels")


def plain(value: Any) -> Any:
    """Return a value as JSON gives it back."""
    return json.loads(json.dumps(value, default=str, sort_keys=True))


def numbers_of(estimate: dict[str, Any]) -> list[Any]:
    low, high = estimate.get("interval") or (None, None)
    rest = (estimate.get(name) for name in ("p_value", "n", "undefined_replicates"))
    return [estimate.get("value"), low, high, *rest]


def identity_of(estimate: dict[str, Any]) -> str:
    """Return what an estimate is known by; its key, or its title where it has none."""
    about = {name: estimate.get(name) or "" for name in ABOUT}
    about["key"] = about["key"] or estimate["metric"]
    details = estimate.get("details") or {}
    telling = {name: details[name] for name in TELLING if details.get(name) is not None}
    parts = [f"{name}={value}" for name, value in {**about, **telling}.items() if value]
    return " ".join(parts)


def digest(column: Any) -> str:
    """Return what identifies the values of a column in whatever order they stand."""
    values = sorted(map(repr, column.to_list()))
    return hashlib.sha256("\n".join(values).encode()).hexdigest()[:12]


def record_of(found: Any) -> dict[str, Any]:
    """Return what is stored of a result: parallel lists, ordered by identity and numbers."""
    rows = []
    for estimate in plain(found.estimates):
        words = [estimate.get(name) for name in WORDS]
        details = estimate.get("details") or {}
        rows.append((identity_of(estimate), numbers_of(estimate), words, details))
    rows.sort(key=lambda row: (row[0], json.dumps(row[1:], sort_keys=True)))
    names = ("about", "numbers", "words", "details")
    record = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    record["left out"] = plain(found.words)
    record["tables"] = {
        f"{name}.{column.name}": digest(column)
        for name, table in sorted(found.tables.items())
        for column in table.get_columns()
        if column.dtype.is_numeric() or column.dtype.is_nested()
    }
    return record


def collect(parts: list[str]) -> dict[str, dict[str, Any]]:
    """Run parts; return the records of each by the name of the plan."""
    import plans

    made: dict[str, dict[str, Any]] = {name: {} for name in parts}
    ran: set[str] = set()
    for name in parts:
        # Both come from the runs of preset authors; each is kept only where it was asked for.
        source = "authors" if name == "propagation" else name
        if source in ran:
            continue
        ran.add(source)
        begun = time.process_time()
        folder = Path(tempfile.mkdtemp(prefix=f"ombud-golden-{source}-"))
        try:
            for found in plans.PARTS[source](folder):
                both = {source: found}
                if source == "authors":
                    rest, fits = plans.split_propagation(found)
                    both = {"authors": rest, "propagation": fits}
                for part, one in both.items():
                    if part in made:
                        made[part][one.plan] = record_of(one)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        say(f"{source}: {time.process_time() - begun:.1f} s of CPU")
    return made


def differences(
    then: dict[str, Any], now: dict[str, Any], args: argparse.Namespace
) -> list[tuple[str, str]]:
    """Return what differs between two records of a plan: the kind of difference, and a line."""
    found: list[tuple[str, str]] = []
    old, new = by_identity(then), by_identity(now)
    for about in sorted(old.keys() | new.keys()):
        before, after = old.get(about, []), new.get(about, [])
        if len(before) != len(after):
            kind = "gone" if not after else "new" if not before else "another count"
            found.append((kind, f"{about}: {len(before)} -> {len(after)} estimates"))
            continue
        for a, b in paired(before, after):
            found += [
                ("numbers", f"{about}: {name} {x!r} -> {y!r}")
                for name, x, y in zip(NUMBERS, a[0], b[0], strict=True)
                if not same(x, y, args.close)
            ]
            if args.words:
                found += [
                    ("words", f"{about}: {name} {x!r} -> {y!r}")
                    for name, x, y in zip(WORDS, a[1], b[1], strict=True)
                    if x != y
                ]
            if args.details:
                found += [
                    ("details", f"{about}: {name} {a[2].get(name)!r} -> {b[2].get(name)!r}")
                    for name in sorted(a[2].keys() | b[2].keys())
                    if not same(a[2].get(name), b[2].get(name), args.close)
                ]
    if args.words:
        gone, added = (Counter(r["left out"]) for r in (then, now))
        found += [("words", f"no longer said: {line}") for line in (gone - added)]
        found += [("words", f"newly said: {line}") for line in (added - gone)]
    if args.details:
        tables = then["tables"], now["tables"]
        found += [
            ("tables", f"table column {name}: {tables[0].get(name)} -> {tables[1].get(name)}")
            for name in sorted(tables[0].keys() | tables[1].keys())
            if tables[0].get(name) != tables[1].get(name)
        ]
    return found


def paired(before: list[Any], after: list[Any]) -> list[tuple[Any, Any]]:
    """Return estimates that share an identity in pairs: equal ones first, the rest in order."""
    rest, pairs, open_ = list(after), [], []
    for one in before:
        alike = [other for other in rest if other[0] == one[0]]
        equal = next((other for other in alike if other == one), alike[0] if alike else None)
        if equal is None:
            open_.append(one)
        else:
            rest.remove(equal)
            pairs.append((one, equal))
    return [*pairs, *zip(open_, rest, strict=True)]


def by_identity(record: dict[str, Any]) -> dict[str, list[tuple[Any, Any, Any]]]:
    found = defaultdict(list)
    for about, *rest in zip(
        *(record[name] for name in ("about", "numbers", "words", "details")), strict=True
    ):
        found[about].append(tuple(rest))
    return found


def same(one: Any, other: Any, close: bool) -> bool:
    """Whether two values are equal; `close`, for another machine: to nine digits."""
    floats = isinstance(one, float) and isinstance(other, float)
    if close and floats:
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return bool(one == other) and (one is None) == (other is None)


def read() -> dict[str, Any]:
    if not REFERENCE.exists():
        return {"made with": {}, "parts": {}}
    return json.loads(lzma.decompress(REFERENCE.read_bytes()))


def write(reference: dict[str, Any]) -> None:
    text = json.dumps(reference, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    # Plans say much the same as others do: the window spans all of them.
    best = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 2**26}]
    REFERENCE.write_bytes(lzma.compress(text.encode(), filters=best))


def versions() -> dict[str, str]:
    found = {"python": sys.version.split()[0]}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "none"
    return found


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def compare(made: dict[str, dict[str, Any]], args: argparse.Namespace) -> int:
    """Print what differs from the reference; return the exit code."""
    reference = read()
    lines: list[str] = []
    counts: dict[str, Counter[str]] = {}
    estimates = 0
    for part, results in made.items():
        stored = reference["parts"].get(part, {})
        for plan in sorted(stored.keys() | results.keys()):
            if plan not in results or plan not in stored:
                found = [("plan", "is no longer run" if plan in stored else "has no reference")]
            else:
                found = differences(stored[plan], results[plan], args)
                estimates += len(stored[plan]["about"])
            if found:
                counts[plan] = Counter(kind for kind, _ in found)
                lines += [f"{plan} | {line}" for _, line in found]
    say(f"{sum(map(len, made.values()))} results, {estimates} estimates")
    if not lines:
        say("everything is as in the reference")
        return 0
    for line in lines[: args.show]:
        say(f"  {line}")
    if len(lines) > args.show:
        say(f"  ... and {len(lines) - args.show} more (--show {len(lines)} shows all)")
    say(f"{len(lines)} differences in {len(counts)} of {sum(map(len, made.values()))} results:")
    for plan, kinds in counts.items():
        say(f"  {plan}: " + ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items())))
    here = versions()
    other = {k: v for k, v in reference["made with"].items() if here.get(k) != v}
    for name, version in other.items():
        say(f"note: the reference was made with {name} {version}; here is {here.get(name)}")
    return 1


def main() -> int:
    """Run what was asked for."""
    import plans

    known = [*plans.PARTS, "propagation"]
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(known))
    parser.add_argument("--store", action="store_true", help="store instead of comparing")
    parser.add_argument("--spark", action="store_true", help="run what needs Spark")
    parser.add_argument("--words", action="store_true", help="compare words and corrections too")
    parser.add_argument("--details", action="store_true", help="compare details and tables too")
    parser.add_argument("--close", action="store_true", help="nine digits are enough")
    parser.add_argument("--backwards", action="store_true", help="run the parts in reverse order")
    parser.add_argument("--show", type=int, default=SHOWN, help="how many differences are listed")
    args = parser.parse_args()
    if unknown := set(args.parts) - set(known):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    parts = args.parts or [name for name in known if args.spark or name != "spark"]
    made = collect(parts[::-1] if args.backwards else parts)
    say(f"in all: {time.process_time():.0f} s of CPU")
    if not args.store:
        return compare(made, args)
    reference = read()
    reference["parts"] |= made
    reference["made with"] = versions()
    write(reference)
    say(f"stored {', '.join(made)} in {REFERENCE}: {REFERENCE.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
