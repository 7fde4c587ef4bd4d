"""The propagation model: ombud's collapsed posterior against NUTS on the full model.

    python benchmarks/_authors_propagation.py            5,000 users x 4 algorithms, 4 NUTS chains
    python benchmarks/_authors_propagation.py --quick    the same data, one short NUTS chain

Both sample the same posterior in the same run. Counted: effective samples of the slowest parameter
per CPU second. For ombud the whole of `fit_propagation` counts (both fits, the check of the
integrals, the measured misfit); for NUTS sampling with its warm-up, without compilation. NUTS
is PyMC with nutpie, centred, which was the fastest of the forms that were tried; it runs in an
environment of its own (``.bench-nuts``). Agreement is only as good as NUTS's own sample, so the
short form also prints the Monte-Carlo error to expect.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from _env import NUTS, ensure_env
from _isolated import finish, main_of_case, measure

SEED = 20210204
FULL = {"draws": 1500, "tune": 1000, "chains": 4}
QUICK = {"draws": 400, "tune": 400, "chains": 1}
SYSTEMS = ("A", "B", "C", "D")
NAMES = {"mean": "mu", "spread": "sigma", "intercept": "b", "slope": "s", "residual": "v"}


def counts_of(users: int) -> dict[str, np.ndarray]:
    """Simulate from the model: profiles of 5 to about a thousand items, lists of about 43."""
    rng = np.random.default_rng(SEED)
    known = 5 + np.floor(np.exp(rng.normal(np.log(15), 1.2, users))).astype(np.int64)
    t = rng.normal(-0.25, 1.4, users)
    slope, intercept = np.array([0.3, 0.55, 0.8, 1.0]), np.array([-0.3, -0.1, 0.0, 0.15])
    x = intercept + slope * t[:, None] + 0.5 * rng.standard_normal((users, 4))
    list_known = rng.binomial(50, 0.85, x.shape)
    return {
        "count": rng.binomial(known, 1 / (1 + np.exp(-t))),
        "known": known,
        "list_count": rng.binomial(list_known, 1 / (1 + np.exp(-x))),
        "list_known": list_known,
    }


def propagation_ombud(options: Mapping[str, Any]) -> dict[str, Any]:
    from ombud.questions.authors.model import Priors, fit_propagation

    counts = counts_of(options["users"])
    started = time.process_time()
    fit = fit_propagation(**counts, systems=SYSTEMS, priors=Priors(), rng=np.random.default_rng(1))
    cpu = time.process_time() - started
    assert fit.diagnostics is not None
    posterior = fit.posterior
    parameters = {
        _key(name): {"mean": posterior.average(values), "sd": posterior.sd(values)}
        for name, values in posterior.columns().items()
    }
    return {
        "cpu": cpu,
        "parameters": parameters,
        "ess": fit.diagnostics.slowest[1],
        "error": fit.diagnostics.error,
    }


def _key(name: str) -> str:
    kind, _, system = name.partition("[")
    return NAMES[kind] + (f"[{SYSTEMS.index(system[:-1])}]" if system else "")


def propagation_nuts(options: Mapping[str, Any]) -> dict[str, Any]:
    settings = {
        "normal_sd": 10,
        "spread_rate": 0.1,
        "residual_rate": 0.1,
        "centred": True,
        "cores": 1,
        "seed": 1,
        **{name: options[name] for name in ("draws", "tune", "chains")},
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "counts.npz"
        np.savez(file, **counts_of(options["users"]))
        peer = Path(__file__).with_name("_nuts_peer.py")
        done = subprocess.run(
            [str(ensure_env("nuts", NUTS)), str(peer), str(file), json.dumps(settings)],
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise RuntimeError(done.stderr)
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    result["ess"] = min(one["ess"] for one in result["parameters"].values())
    result["rhat"] = max(one["rhat"] for one in result["parameters"].values())
    return result


CASES = {"propagation_ombud": propagation_ombud, "propagation_nuts": propagation_nuts}


def propagation_vs_nuts(script: str, quick: bool, users: int = 5_000) -> dict[str, float]:
    """Run both and return the named figures.

    `script` must hand `CASES` to `main_of_case`.
    """
    options = {"users": users, **(QUICK if quick else FULL)}
    print(f"propagation: {users:,} users x {len(SYSTEMS)} algorithms; NUTS {options}")
    ours = measure(script, "propagation_ombud", options)
    nuts = measure(script, "propagation_nuts", options)
    apart, widths = [], []
    for name, theirs in nuts["parameters"].items():
        mine = ours["parameters"][name]
        apart.append(abs(mine["mean"] - theirs["mean"]) / theirs["sd"])
        widths.append(abs(mine["sd"] / theirs["sd"] - 1))
    rates = ours["ess"] / ours["cpu"], nuts["ess"] / nuts["cpu"]
    noise = (1 / nuts["ess"]) ** 0.5
    print(f"  effective samples per CPU second: {rates[0]:.1f} and {rates[1]:.3f}")
    print(f"  NUTS: R-hat {nuts['rhat']:.4f}, {nuts['divergences']} divergences")
    print(
        f"  means within {max(apart):.3f} sd, sds within {max(widths):.1%} "
        f"(Monte-Carlo error of NUTS itself: {noise:.3f} sd, {noise / 2**0.5:.1%})"
    )
    return {
        "propagation_vs_nuts": rates[0] / rates[1],
        "propagation_ess_per_cpu_s": rates[0],
        "nuts_ess_per_cpu_s": rates[1],
        "propagation_mean_difference_sd": max(apart),
        "propagation_sd_difference": max(widths),
        "nuts_monte_carlo_error_sd": noise,
        "propagation_cpu_s": ours["cpu"],
        "propagation_mib": ours["mib"],
        "propagation_error_nats": ours["error"],
    }


def main() -> None:
    if sys.argv[1:2] == ["--case"]:
        main_of_case(CASES)
        return
    parser = argparse.ArgumentParser(description="Propagation model against NUTS.")
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    finish("authors_propagation", propagation_vs_nuts(__file__, quick))


if __name__ == "__main__":
    main()
