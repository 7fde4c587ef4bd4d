"""Make `propagation/*.json`: NUTS on the full model for small simulated data sets.

    python tests/reference/make_propagation.py [CASE...]

Needs the environment ``.bench-nuts`` that `benchmarks/_authors_propagation.py` creates (PyMC and
nutpie want another numba than ombud). Each file holds the counts and what NUTS found, so that
the tests need neither.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
BENCHMARKS = HERE.parents[1] / "benchmarks"
SETTINGS = {
    "normal_sd": 10,
    "spread_rate": 0.1,
    "residual_rate": 0.1,
    "centred": True,
    "draws": 5000,
    "tune": 1500,
    "chains": 4,
    "cores": 1,
    "seed": 1,
}
CASES = {
    "plain": {"users": 400, "b": [-0.3, 0.1], "s": [0.4, 1.1], "v": [0.5, 0.7]},
    "small_residual": {
        "users": 300,
        "b": [0.1, -0.2],
        "s": [0.9, 0.6],
        "v": [0.05, 0.3],
        "centred": False,
        "target_accept": 0.95,
    },
    "long_profiles": {
        "users": 250,
        "b": [0.0],
        "s": [0.8],
        "v": [0.4],
        "sigma": 0.4,
        "middle": 400,
    },
    "few_users": {"users": 40, "b": [0.2], "s": [0.7], "v": [0.6]},
    "profiles": {"users": 500, "b": [], "s": [], "v": []},
}


def simulate(
    users: int,
    b: list[float],
    s: list[float],
    v: list[float],
    *,
    mu: float = -0.3,
    sigma: float = 1.2,
    middle: float = 12,
    seed: int = 20210204,
) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    known = 5 + np.floor(np.exp(rng.normal(np.log(middle), 0.9, users))).astype(np.int64)
    t = rng.normal(mu, sigma, users)
    x = np.array(b) + np.array(s) * t[:, None] + rng.normal(size=(users, len(b))) * np.array(v)
    list_known = rng.binomial(50, 0.7, x.shape)
    return {
        "count": rng.binomial(known, 1 / (1 + np.exp(-t))),
        "known": known,
        "list_count": rng.binomial(list_known, 1 / (1 + np.exp(-x))),
        "list_known": list_known,
    }


def main() -> None:
    sys.path.insert(0, str(BENCHMARKS))
    from _env import NUTS, ensure_env  # type: ignore[import-not-found]

    python = str(ensure_env("nuts", NUTS))
    for name in sys.argv[1:] or CASES:
        case = dict(CASES[name])
        settings = SETTINGS | {k: case.pop(k) for k in ("centred", "target_accept") if k in case}
        counts = simulate(**case)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "counts.npz"
            np.savez(file, **counts)
            command = [python, str(BENCHMARKS / "_nuts_peer.py"), str(file)]
            done = subprocess.run(
                [*command, json.dumps(settings)], capture_output=True, text=True, check=True
            )
        result = json.loads(done.stdout.strip().splitlines()[-1])
        result = {k: result[k] for k in ("parameters", "divergences")} | {"settings": settings}
        result["counts"] = {key: value.tolist() for key, value in counts.items()}
        text = json.dumps(result, separators=(",", ":"))
        (HERE / "propagation" / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
