"""A series of audits: how rarely it alarms while nothing changes, and how soon when something does.

A look measures 2,000 units with a standard deviation of 0.3 (a rate of 10%), and the rate of false
alarms is 0.05 for the whole series. Unchanged series have 365 looks, of new units or of the same
ones (a unit's own level, and noise at each look), with one number or 200. In changed series the
mean moves by 0.5, 1 or 2 points after look 20; delays count looks from the change. Beside it stands
the chart that compares each look with the first one, with limits so wide that unchanged series
alarm as rarely in a year.

Run: ``python benchmarks/watch.py`` (15 CPU minutes), ``--quick`` (under two).
The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
from numpy.typing import NDArray

from ombud.stats.sequential import (
    PRIOR_SIZE,
    e_process,
    evidence,
    log_evidence,
    mean_residuals,
    paired_residuals,
    start_weights,
    summary_residuals,
)

Floats = NDArray[np.float64]
ALPHA, LOOKS, UNITS, SD = 0.05, 365, 2000, 0.3
ERROR = SD / np.sqrt(UNITS)
CHANGED_AT, WITHIN = 20, 60
PANEL = 100  # units of the series that are simulated unit by unit
ROWS = 1000  # series at once


def many(means: Floats) -> Floats:
    """Return the evidence of many series of Gaussian means, series x looks."""
    looks = means.shape[1]
    t = np.arange(1, looks)
    error = np.concatenate([[np.nan], ERROR * np.sqrt(1 + 1 / t)])
    z = np.full(means.shape, np.nan)
    z[:, 1:] = (means[:, 1:] - (np.cumsum(means, 1)[:, :-1] / t)) / error[1:]
    weights = start_weights(looks)
    total = np.full(means.shape, 1 - weights.sum())
    for start in range(1, looks):
        total[:, :start] += weights[start]
        shift = start / np.arange(start, looks) / error[start:]
        part = z[:, start:]
        total[:, start:] += weights[start] * np.exp(
            log_evidence(part, part, shift, PRIOR_SIZE * ERROR)
        )
    return total


def check_many() -> float:
    """Return how far `many` is from what the watch itself computes."""
    x = np.random.default_rng(0).normal(0, ERROR, (1, 40))
    one = summary_residuals(x[0], np.full(40, ERROR), np.full(40, 1e9))
    return float(np.abs(np.log(many(x)[0]) - np.log(e_process(evidence(one)))).max())


def any_alarm(series: int, numbers: int, rng: np.random.Generator) -> float:
    """Return the share of unchanged series of new units in which any number alarms."""
    alarms, done = 0, 0
    at_once = max(1, ROWS // numbers)
    while done < series:
        some = min(at_once, series - done)
        e = many(rng.normal(0, ERROR, (some * numbers, LOOKS)))
        together = e.reshape(some, numbers, LOOKS).mean(axis=1)
        alarms += int((together >= 1 / ALPHA).any(axis=1).sum())
        done += some
    return alarms / series


def any_alarm_units(
    series: int, rng: np.random.Generator, numbers: int = 1, *, same: bool = True
) -> float:
    """Return the same of series that are simulated unit by unit, with skewed noise."""
    alarms = 0
    for _ in range(series):
        e = np.zeros(LOOKS)
        shared = rng.normal(0, 1, (PANEL, 1))
        for _ in range(numbers):
            noise = rng.exponential(1, (PANEL, LOOKS))
            if same:
                e += e_process(evidence(paired_residuals(shared + noise)))
            else:
                e += e_process(evidence(mean_residuals(list(noise.T))))
        alarms += bool((e / numbers >= 1 / ALPHA).any())
    return alarms / series


def delays(size: float, series: int, limit: float, rng: np.random.Generator) -> dict[str, float]:
    """Return how many series alarm soon after a change, and the median delay; of both charts."""
    looks = CHANGED_AT + WITHIN
    x = rng.normal(0, ERROR, (series, looks)) + size * (np.arange(looks) >= CHANGED_AT)
    found = {}
    charts = {
        "": many(x) >= 1 / ALPHA,
        "_per_look": np.abs(x - x[:, :1]) > limit * ERROR * np.sqrt(2),
    }
    for name, alarms in charts.items():
        after = alarms[:, CHANGED_AT:]
        late = np.where(after.any(axis=1), after.argmax(axis=1) + 1.0, np.inf)
        found[f"found{name}"] = float(np.isfinite(late).mean())
        middle = float(np.median(late))
        found[f"delay{name}"] = middle if np.isfinite(middle) else -1.0
    return found


def per_look_limit(series: int, rng: np.random.Generator) -> float:
    """Return the limit, in standard errors, that unchanged series cross in 5% of years."""
    x = rng.normal(0, ERROR, (series, LOOKS))
    highest = np.abs(x - x[:, :1]).max(axis=1) / (ERROR * np.sqrt(2))
    return float(np.quantile(highest, 1 - ALPHA))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    rng = np.random.default_rng(20261120)
    begun = time.process_time()
    assert check_many() < 1e-6
    series = 1000
    figures: dict[str, float] = {"series": series}
    figures["any_alarm_365"] = any_alarm(series, 1, rng)
    print(f"any alarm, {series} series, 1 number: {figures['any_alarm_365']}", flush=True)
    some = 20 if quick else series
    figures["series_200_numbers"] = some
    figures["any_alarm_365_200_numbers"] = any_alarm(some, 200, rng)
    print(f"200 numbers ({some}): {figures['any_alarm_365_200_numbers']}", flush=True)
    some = 50 if quick else series
    figures["series_of_units"] = some
    figures["any_alarm_365_same_units"] = any_alarm_units(some, rng)
    figures["any_alarm_365_new_units"] = any_alarm_units(some, rng, same=False)
    print(f"same units ({some}): {figures['any_alarm_365_same_units']}", flush=True)
    if not quick:
        figures["any_alarm_365_same_units_200_numbers"] = any_alarm_units(20, rng, 200)
    limit = per_look_limit(20_000, rng)
    for name, size in (("half_point", 0.005), ("1_point", 0.01), ("2_points", 0.02)):
        for key, value in delays(size, series, limit, rng).items():
            kind, _, rest = key.partition("_")
            figures[f"{kind}_{name}{'_' + rest if rest else ''}"] = value
        print(name, {k: v for k, v in figures.items() if name in k}, flush=True)
    figures["cpu_seconds"] = round(time.process_time() - begun, 1)
    print(json.dumps({"benchmark": "watch", "quick": quick, "figures": figures}))


if __name__ == "__main__":
    main()
