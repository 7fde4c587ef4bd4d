"""Run benchmarks: all of them in quick form, or one at full size.

python benchmarks/run.py            every benchmark, --quick
python benchmarks/run.py core       one benchmark, full size
python benchmarks/run.py core --quick
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
# Studies of hours, which have no quick form and print no figures.
STUDIES = ("propagation_calibration",)


def names() -> list[str]:
    others = {"run", *STUDIES}
    return sorted(
        p.stem for p in HERE.glob("*.py") if not p.stem.startswith("_") and p.stem not in others
    )


def run(name: str, options: list[str]) -> bool:
    """Run one benchmark and check that its last line is what readers of figures expect."""
    print(f"== {name} {' '.join(options)}", flush=True)
    command = [sys.executable, str(HERE / f"{name}.py"), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    last = ""
    for line in process.stdout:
        print(line, end="", flush=True)
        last = line.strip() or last
    if process.wait() != 0:
        return False
    figures = json.loads(last)
    return figures["benchmark"] == name and bool(figures["figures"])


def main() -> None:
    asked = [word for word in sys.argv[1:] if not word.startswith("-")]
    options = [word for word in sys.argv[1:] if word.startswith("-")]
    unknown = sorted(set(asked) - set(names()))
    if unknown:
        sys.exit(f"no benchmark is called {', '.join(unknown)}; known: {', '.join(names())}")
    failed = [
        name
        for name in asked or names()
        if not run(name, options if asked else ["--quick", *options])
    ]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
