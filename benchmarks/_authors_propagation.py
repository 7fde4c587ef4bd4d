"""The propagation model: ombud's collapsed posterior against NUTS on the full model.

    python benchmarks/_authors_propagation.py            5,000 users x 4 algorithms, 4 NUTS chains
    python benchmarks/_authors_propagation.py --quick    500 users, two short NUTS chains
    python benchmarks/_authors_propagation.py --only regimes

Three parts. *regimes*: CPU seconds of a fit of 300 users x 2 systems for easy and for hard data;
each is fitted, or refused with its reason (``slowest_regime_cpu_s``). *hard*: quantiles of every
parameter against NUTS on ten hard sets (two with ``--quick``). *rate*: effective samples per CPU
second (``propagation_vs_nuts``).

For the rate both sample the same posterior in the same run. Counted: effective samples of the
slowest parameter per CPU second. For ombud the whole of `fit_propagation` counts (both fits, the
check of the integrals, the measured misfit); for NUTS sampling with its warm-up, without
compilation. NUTS is PyMC with nutpie, centred, which was the fastest of the forms that were tried;
it runs in an environment of its own (``.bench-nuts``). Agreement is only as good as NUTS's own
sample, so the short form also prints the Monte-Carlo error to expect.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from _env import NUTS, ensure_env
from _isolated import finish, main_of_case, measure

SEED = 20210204
FULL = {"users": 5_000, "draws": 1500, "tune": 1000, "chains": 4}
# Two chains, so that R-hat is defined.
QUICK = {"users": 500, "draws": 200, "tune": 250, "chains": 2}
PARTS = ("regimes", "hard", "rate")
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


def _share(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))


def simulated(
    users: int = 300,
    *,
    sigma: float = 1.2,
    b: tuple[float, ...] = (-0.2, 0.1),
    s: tuple[float, ...] = (0.5, 1.1),
    v: tuple[float, ...] = (0.5, 0.5),
    profiles: tuple[int, int] | None = None,
    length: int = 40,
    polar: str = "",
    pure: float = 0.0,
) -> dict[str, np.ndarray]:
    """Simulate profiles and lists.

    `profiles` are the smallest and largest size of a profile. `polar` makes the lists of the second
    system all of one identity for each user: by the user's taste ("taste"), by chance ("chance"),
    or by taste with 3% of the other identity ("nearly"). `pure` is the share of users whose profile
    and lists all hold one identity only.
    """
    rng = np.random.default_rng(SEED)
    t = rng.normal(-0.3, sigma, users)
    if profiles is None:
        known = 5 + np.floor(np.exp(rng.normal(np.log(12), 0.9, users))).astype(np.int64)
    else:
        known = rng.integers(profiles[0], profiles[1] + 1, users)
    x = np.array(b) + np.array(s) * t[:, None] + rng.standard_normal((users, len(b))) * np.array(v)
    size = rng.binomial(length, 0.8, x.shape)
    count, lists = rng.binomial(known, _share(t)), rng.binomial(size, _share(x))
    if polar:
        one = rng.random(users) < 0.5 if polar == "chance" else t + rng.normal(size=users) > -0.3
        share = np.where(one, 0.97, 0.03) if polar == "nearly" else one.astype(float)
        lists[:, 1] = rng.binomial(size[:, 1], share)
    whose = rng.random(users) < pure
    count = np.where(whose, np.where(t > 0, known, 0), count)
    lists = np.where(whose[:, None], np.where(t[:, None] > 0, size, 0), lists)
    return {"count": count, "known": known, "list_count": lists, "list_known": size}


REGIMES: dict[str, dict[str, Any]] = {
    "plain": {},
    "few users (40)": {"users": 40},
    "short profiles (1 to 5)": {"profiles": (1, 5)},
    "very short profiles (1 to 2)": {"profiles": (1, 2)},
    "short lists (4)": {"length": 4},
    "wide spread (sigma 5)": {"sigma": 5.0},
    "very wide spread (sigma 10)": {"sigma": 10.0},
    "wide residual (5)": {"v": (5.0, 0.5)},
    "near-zero residual": {"v": (0.01, 0.02)},
    "hardly any spread (sigma 0.15)": {"sigma": 0.15},
    "negative slopes": {"s": (-0.7, -1.5)},
    "steep slope (4)": {"s": (0.5, 4.0)},
    "polarized by taste": {"polar": "taste"},
    "polarized by chance": {"polar": "chance"},
    "nearly polarized": {"polar": "nearly"},
    "profiles and lists at 0 or 1 (bimodal01)": {"pure": 1.0},
    "97% of profiles and lists at 0 or 1": {"pure": 0.97},
    "85% of profiles and lists at 0 or 1": {"pure": 0.85},
}
HARD: dict[str, dict[str, Any]] = {
    "short lists": {"users": 100, "length": 4},
    "few users": {"users": 40},
    "short profiles": {"users": 120, "profiles": (1, 5)},
    "very short profiles": {"users": 200, "profiles": (1, 3), "sigma": 2.0},
    "wide spread": {"users": 80, "sigma": 5.0},
    "wide residual": {"users": 80, "v": (4.0, 0.5)},
    "near-zero residual": {"users": 80, "v": (0.02, 0.05)},
    "negative slopes": {"users": 80, "s": (-0.7, -1.5)},
    "small spread": {"users": 200, "sigma": 0.5},
    "nearly polarized": {"users": 80, "polar": "nearly"},
}


def propagation_regime(options: Mapping[str, Any]) -> dict[str, Any]:
    """Fit one regime; return CPU seconds, and slopes or reasons."""
    from ombud.questions.authors.model.fits import fit_propagation

    counts = simulated(**REGIMES[options["regime"]])
    started = time.process_time()
    fit = fit_propagation(**counts, systems=["one", "two"], rng=np.random.default_rng(1))
    cpu = time.process_time() - started
    slopes = [e for e in fit.estimates() if e.key == "propagation/slope"]
    said = [
        f"{e.value:.2f} [{e.interval[0]:.2f}, {e.interval[1]:.2f}]" if e.interval else e.reason
        for e in slopes
    ]
    return {"cpu": cpu, "said": said}


# The slowest, in the quick form.
SLOWEST = ("very wide spread (sigma 10)", "85% of profiles and lists at 0 or 1")


def regime_figures(script: str, quick: bool) -> dict[str, float]:
    """Time the regimes one after the other; the slowest of them in the quick form."""
    print("propagation: CPU s by regime, 300 users x 2 systems")
    slowest = 0.0
    for name in SLOWEST if quick else REGIMES:
        found = measure(script, "propagation_regime", {"regime": name})
        print(f"  {name}: {found['cpu']:.1f} CPU s; {'; '.join(found['said'])}", flush=True)
        slowest = max(slowest, found["cpu"])
    return {"slowest_regime_cpu_s": slowest}


def propagation_quantiles(options: Mapping[str, Any]) -> dict[str, Any]:
    """Compare quantiles with those of NUTS on one hard set."""
    from ombud.questions.authors.model.fits import fit_propagation

    counts = simulated(**HARD[options["set"]])
    fit = fit_propagation(**counts, systems=["one", "two"], rng=np.random.default_rng(1))
    if fit.spread_reason or fit.apart:
        return {"reason": fit.spread_reason or "fitted apart"}
    asked = {"draws": 2000, "tune": 1000, "chains": 4, "centred": False, "target_accept": 0.95}
    nuts = _nuts(counts, asked)
    parameters = {}
    for name, values in fit.posterior.columns().items():
        kind, _, system = name.partition("[")
        theirs = nuts["parameters"][
            NAMES[kind] + (f"[{int(system[:-1] == 'two')}]" if system else "")
        ]
        mine = fit.posterior.quantiles(values, np.array(theirs["shares"]))
        known = {key: theirs[key] for key in ("shares", "quantiles", "errors", "sd", "ess", "rhat")}
        parameters[NAMES[kind] + (f" {system[:-1]}" if system else "")] = known | {
            "ombud": mine.tolist()
        }
    return {"reason": "", "parameters": parameters, "divergences": nuts["divergences"]}


def hard_figures(script: str, quick: bool) -> dict[str, float]:
    """Compare every quantile on hard sets: both values, and distances in posterior sd."""
    print("propagation: quantiles, ombud and NUTS (n divergences, smallest effective sample)")
    slopes, others, largest, compared = [], [], 0.0, 0
    for name in list(HARD)[: 2 if quick else None]:
        found = measure(script, "propagation_quantiles", {"set": name})
        if found["reason"]:
            print(f"  {name}: {found['reason']}", flush=True)
            continue
        compared += 1
        rows = found["parameters"]
        ours, theirs, errors = (
            np.array([row[key] for row in rows.values()])
            for key in ("ombud", "quantiles", "errors")
        )
        sds = np.array([row["sd"] for row in rows.values()])[:, None]
        away = np.abs(ours - theirs) / sds
        largest = max(largest, away.max())
        least = min(row["ess"] for row in rows.values())
        print(f"  {name}: {found['divergences']} divergences, {least:.0f} effective", flush=True)
        for (parameter, row), own in zip(rows.items(), away, strict=True):
            cells = [
                f"{a:.2f} / {b:.2f}" for a, b in zip(row["ombud"], row["quantiles"], strict=True)
            ]
            print(
                f"    {parameter}: {', '.join(cells)}; apart {np.round(own, 3).tolist()}",
                flush=True,
            )
            if parameter.startswith("s "):
                slopes.append(f"| {name}, {parameter[2:]} | {' | '.join(cells)} |")
        cells = [
            f"{away[:, q].max():.2f} ({(errors / sds)[away[:, q].argmax(), q]:.2f})"
            for q in range(away.shape[1])
        ]
        others.append(f"| {name} | {' | '.join(cells)} |")
    head = " | 5% | 25% | 50% | 75% | 95% |\n|---" + "|---:" * 5 + "|"
    print("| slopes, ombud / NUTS" + head, *slopes, sep="\n")
    print("| largest distance in sd (error of NUTS there)" + head, *others, sep="\n")
    return {"propagation_quantile_difference_sd": largest, "propagation_hard_sets": compared}


def propagation_ombud(options: Mapping[str, Any]) -> dict[str, Any]:
    from ombud.questions.authors.model.fits import fit_propagation
    from ombud.questions.authors.model.priors import Priors

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


def _nuts(counts: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Run NUTS on the full model in its own environment."""
    prior = {"normal_sd": 10, "spread_rate": 0.1, "residual_rate": 0.1, "cores": 1, "seed": 1}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "counts.npz"
        np.savez(file, **counts)  # type: ignore[arg-type]
        peer = Path(__file__).with_name("_nuts_peer.py")
        command = [str(ensure_env("nuts", NUTS)), str(peer), str(file)]
        done = subprocess.run(
            [*command, json.dumps({**prior, **settings})], capture_output=True, text=True
        )
    if done.returncode:
        raise RuntimeError(done.stderr)
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def propagation_nuts(options: Mapping[str, Any]) -> dict[str, Any]:
    settings = {name: options[name] for name in ("draws", "tune", "chains")}
    result = _nuts(counts_of(options["users"]), {"centred": True, **settings})
    result["ess"] = min(one["ess"] for one in result["parameters"].values())
    result["rhat"] = max(one["rhat"] for one in result["parameters"].values())
    return result


CASES = {
    "propagation_ombud": propagation_ombud,
    "propagation_nuts": propagation_nuts,
    "propagation_regime": propagation_regime,
    "propagation_quantiles": propagation_quantiles,
}


def propagation_figures(script: str, quick: bool, parts: Sequence[str] = PARTS) -> dict[str, float]:
    """Run some of the parts.

    `script` must hand `CASES` to `main_of_case`.
    """
    figures: dict[str, float] = {}
    if "regimes" in parts:
        figures |= regime_figures(script, quick)
    if "hard" in parts:
        figures |= hard_figures(script, quick)
    if "rate" in parts:
        figures |= propagation_vs_nuts(script, quick)
    return figures


def propagation_vs_nuts(script: str, quick: bool) -> dict[str, float]:
    """Run both and return the named figures."""
    options = QUICK if quick else FULL
    fewer = f"; quick form: {options['users']} users instead of {FULL['users']}" if quick else ""
    print(f"propagation: {len(SYSTEMS)} algorithms; NUTS {options}{fewer}")
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
        "propagation_vs_nuts_users": options["users"],
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
    parser.add_argument("--only", choices=PARTS)
    asked = parser.parse_args()
    parts = (asked.only,) if asked.only else PARTS
    finish("authors_propagation", propagation_figures(__file__, asked.quick, parts))


if __name__ == "__main__":
    main()
