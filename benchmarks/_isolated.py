"""Run one case in a process of its own and report what it cost."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Case", "finish", "main_of_case", "measure"]

Case = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def measure(
    script: str, case: str, options: Mapping[str, Any], *, aloud: bool = False
) -> dict[str, Any]:
    """Return what a case returned, with its CPU seconds and peak memory in MiB.

    Parameters
    ----------
    script
        The benchmark's file; it must call `main_of_case` when its first argument is ``--case``.
    case
        The name of the case.
    options
        Plain values handed to the case.
    aloud
        Whether what it says on stderr is passed on as it comes, for cases of hours.
    """
    command = [sys.executable, script, "--case", case, json.dumps(options)]
    # From the caller's folder: options may name files relative to it.
    errors = None if aloud else subprocess.PIPE
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    if done.returncode:
        raise RuntimeError(f"{case} failed (exit {done.returncode}):\n{done.stderr or ''}")
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    print(f"  {case}: {result['cpu']:.2f} CPU s, peak {result['mib']:.0f} MiB", flush=True)
    return result


def main_of_case(cases: Mapping[str, Case]) -> None:
    """Run the case named on the command line; a case may return its own CPU seconds."""
    case, options = cases[sys.argv[2]], json.loads(sys.argv[3])
    started = time.process_time()
    result = dict(case(options))
    result.setdefault("cpu", time.process_time() - started)
    result["mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(result))


def finish(name: str, figures: Mapping[str, float]) -> None:
    """Print the last line of a benchmark."""
    rounded = {key: round(float(value), 4) for key, value in figures.items()}
    print(json.dumps({"benchmark": name, "figures": rounded}))
