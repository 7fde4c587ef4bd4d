"""The audit itself, audited: it finds a planted effect, and is silent without one."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from ombud.audits import Audit
from ombud.audits.plan import StatisticsPlan
from ombud.metrics import ShareGap
from ombud.stats import Estimate
from ombud.worlds import NeutralRecommender, PlantedRecommender, small_world

pytestmark = pytest.mark.simulation

WORLDS = 120 if os.environ.get("OMBUD_SLOW", "") not in {"", "0"} else 24
ALPHA = 0.05
LABEL, FACTOR = "violence", 1.25


@dataclass
class Tally:
    covered: list[bool]
    alarms: list[bool]
    family_alarms: list[bool]
    gap_alarms: list[bool]
    found: list[bool]


@pytest.fixture(scope="module")
def tally() -> Tally:
    """Audit many samples of one population, with a neutral and with a planted recommender."""
    population = small_world(seed=1)
    truths = {
        "neutral": NeutralRecommender(population).truth(k=10).mean_gap(),
        "planted": PlantedRecommender(population, LABEL, FACTOR).truth(k=10).mean_gap(),
    }
    names = population.dataset.labels.names  # type: ignore[union-attr]
    seen = Tally([], [], [], [], [])
    for number in range(WORLDS):
        world = population.redraw("simulation", str(number), users=300)
        systems = {
            "neutral": NeutralRecommender(world),
            "planted": PlantedRecommender(world, LABEL, FACTOR),
        }
        few = StatisticsPlan(replicates=400)
        result = Audit(world.dataset, systems, [ShareGap(k=10)], seed=number, statistics=few).run()
        overall = [e for e in result.estimates if e.kind == "level" and not e.group]
        for e in overall:
            assert e.interval is not None
            truth = truths[e.system][names.index(e.label)]
            seen.covered.append(e.interval[0] <= truth <= e.interval[1])
        neutral = [e for e in overall if e.system == "neutral"]
        seen.alarms += [_below(e.p_value) for e in neutral]
        # The family also holds the planted system's labels; only the neutral ones are alarms.
        seen.family_alarms.append(any(_below(e.p_adjusted) for e in neutral))
        gaps = [e for e in result.estimates if e.kind == "gap" and e.group]
        seen.gap_alarms.append(any(_below(e.p_adjusted) for e in _of(gaps, "neutral")))
        seen.found += [_below(e.p_adjusted) for e in _of(overall, "planted") if e.label == LABEL]
    return seen


def _of(estimates: list[Estimate], system: str) -> list[Estimate]:
    return [e for e in estimates if e.system == system]


def _below(p: float | None) -> bool:
    return p is not None and p < ALPHA


def _bounds(rate: float, trials: int) -> tuple[float, float]:
    """Where a share of `trials` lies with probability 0.999 when the true rate is `rate`."""
    low, high = stats.binom.interval(0.999, trials, rate)
    return low / trials, high / trials


def test_intervals_cover_the_truth(tally: Tally) -> None:
    # Labels of one world share users, so the effective number of trials is nearer to WORLDS.
    low, high = _bounds(0.95, WORLDS)
    assert low <= np.mean(tally.covered) <= high


def test_single_tests_are_silent_at_the_nominal_rate(tally: Tally) -> None:
    assert np.mean(tally.alarms) <= _bounds(ALPHA, WORLDS)[1]


def test_corrected_tests_are_silent_over_groups(tally: Tally) -> None:
    assert np.mean(tally.gap_alarms) <= _bounds(ALPHA, WORLDS)[1]


def test_one_true_finding_does_not_open_the_gate_for_false_ones(tally: Tally) -> None:
    # Benjamini-Hochberg bounds the share of false findings, not the chance of any: with one true
    # finding among ten, the chance of a false one is a little above alpha.
    assert np.mean(tally.family_alarms) <= _bounds(2 * ALPHA, WORLDS)[1]


def test_the_planted_effect_is_found(tally: Tally) -> None:
    assert np.mean(tally.found) >= 0.8
