"""The statistics need numpy and scipy alone."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys

ALLOWED = {"numpy", "scipy", "ombud"}

class Refuse:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in ALLOWED or top in sys.stdlib_module_names or top.startswith("_"):
            return None
        if path is not None:
            return None
        raise ModuleNotFoundError(f"{name} is blocked in this test")

sys.meta_path.insert(0, Refuse())
import numpy as np
import ombud.stats as stats
print(stats.estimate(np.arange(30.0), metric="m", rng=np.random.default_rng(0)).method)
try:
    import pydantic
except ModuleNotFoundError as error:
    print(error)
print(sorted(m for m in sys.modules if m.startswith("ombud.") and not m.startswith("ombud.stats")))
"""


def test_statistics_run_with_numpy_and_scipy_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["BCa bootstrap", "pydantic is blocked in this test", "[]"]
