"""Evidence of a change: against plain routes, and the promise about false alarms."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import integrate
from scipy.stats import hypergeom, norm

from ombud.stats.sequential import (
    Residuals,
    closed_testing,
    count_residuals,
    e_process,
    evidence,
    mean_residuals,
    most_likely_change,
    paired_residuals,
    start_weights,
    summary_residuals,
)
from ombud.stats.statistics import Floats


def plain_mixture(x: Floats, sd: float, tau: float = 2.0) -> Floats:
    """Return the e-process of Gaussian means with known errors: slow, straight from its definition.

    For every look and start, the likelihood ratio of the residuals is integrated over the size of
    the change by quadrature.
    """
    looks = len(x)
    result = np.ones(looks)
    weights = [1 / np.log(j + np.e - 1) - 1 / np.log(j + np.e) for j in range(1, looks)]
    for last in range(1, looks):
        total = 1 - sum(weights[:last])
        for start in range(1, last + 1):
            u, c = [], []
            for t in range(1, last + 1):
                error = sd * np.sqrt(1 + 1 / t)
                u.append((x[t] - x[:t].mean()) / error)
                c.append(min(start, t) / t / error if t >= start else 0.0)

            def ratio(size: float, u: list[float] = u, c: list[float] = c) -> float:
                logs = [
                    norm.logpdf(a, b * size) - norm.logpdf(a) for a, b in zip(u, c, strict=True)
                ]
                return float(np.exp(sum(logs)) * norm.pdf(size, 0, tau * sd))

            total += weights[start - 1] * integrate.quad(ratio, -12 * sd, 12 * sd)[0]
        result[last] = total
    return result


def test_gaussian_means_agree_with_an_independent_implementation() -> None:
    rng = np.random.default_rng(1)
    sd = 0.1
    x = rng.normal(0.3, sd, 7) + 0.25 * (np.arange(7) >= 3)
    n = 1e9  # so that the t distribution is the normal one
    found = summary_residuals(x, np.full(7, sd), np.full(7, n))
    np.testing.assert_allclose(e_process(evidence(found)), plain_mixture(x, sd), rtol=1e-6)


def test_one_look_by_hand() -> None:
    """Two Gaussian means, 0 and 2 standard errors: z = 2 / sqrt 2, c = 1 / sqrt 2, tau = 2."""
    found = summary_residuals(np.array([0.0, 2.0]), np.ones(2), np.full(2, 1e12))
    assert found.z[1] == pytest.approx(np.sqrt(2))
    ratio = np.exp(4 * 1.0**2 / (2 * (1 + 4 * 0.5))) / np.sqrt(1 + 4 * 0.5)
    weight = 1 - 1 / np.log(1 + np.e)
    assert e_process(evidence(found))[1] == pytest.approx(weight * ratio + 1 - weight)
    change = most_likely_change(found, evidence(found), 1, 0.95)
    assert change is not None and change.start == 1 and change.size == pytest.approx(2.0)
    assert change.interval[0] < 0 < change.interval[1]


def test_weights_of_starts_sum_to_one() -> None:
    weights = start_weights(100_000)
    assert weights[0] == 0 and (np.diff(weights[1:]) < 0).all()
    assert weights.sum() + 1 / np.log(99_999 + np.e) == pytest.approx(1)


def test_residuals_of_rates_are_those_of_the_hypergeometric_distribution() -> None:
    events, n = np.array([3.0, 7.0, 0.0, 0.0]), np.array([40.0, 60.0, 10.0, 0.0])
    found = count_residuals(events, n)
    chance = (
        sum(hypergeom.pmf(k, 100, 10, 60) for k in range(7)) + hypergeom.pmf(7, 100, 10, 60) / 2
    )
    assert found.z[1] == pytest.approx(norm.ppf(chance))
    assert np.isnan(found.z[[0, 3]]).all()
    assert e_process(evidence(found))[1] == pytest.approx(  # one direction at a time is the same
        e_process(evidence(replace(found, down=found.z.copy())))[1]
    )
    flags = [np.repeat([1.0, 0.0], [int(k), int(m - k)]) for k, m in zip(events, n, strict=True)]
    np.testing.assert_allclose(mean_residuals(flags).z, found.z)


def test_residuals_of_many_events_are_about_those_of_means() -> None:
    rng = np.random.default_rng(3)
    flags = [(rng.random(3000) < 0.3).astype(float) for _ in range(6)]
    exact = mean_residuals(flags).z[1:]
    nearly = mean_residuals([v + 1e-9 * rng.normal(size=len(v)) for v in flags]).z[1:]
    np.testing.assert_allclose(exact, nearly, atol=0.03)


def test_paired_residuals_by_hand() -> None:
    """Three units; the third look is compared with the mean of each unit's first two."""
    values = np.array([[1.0, 2.0, 3.5], [0.0, 0.0, 1.0], [5.0, 4.0, 4.5]])
    found = paired_residuals(values)
    first = np.array([1.0, 0.0, -1.0])
    assert found.z[1] == pytest.approx(first.sum() / np.sqrt((first**2).sum()))
    second = np.array([2.0, 1.0, 0.0])
    spread = np.sqrt((first**2).sum() / (3 * 2))  # of one look, from differences of two
    assert found.z[2] == pytest.approx(second.mean() / (spread * np.sqrt(1.5 / 3)))
    own = np.sqrt((second**2).sum()) / 3
    assert found.up[2] == pytest.approx(second.mean() / max(own, spread * np.sqrt(1.5 / 3)))
    assert found.down[2] == pytest.approx(found.z[2])


def test_what_units_have_in_common_cancels_out() -> None:
    rng = np.random.default_rng(5)
    noise = rng.normal(size=(50, 8))
    apart = paired_residuals(noise + rng.normal(0, 100, (50, 1)))
    np.testing.assert_allclose(apart.z, paired_residuals(noise).z, atol=1e-9)


def test_a_unit_that_is_one_cluster_is_a_unit() -> None:
    values = np.random.default_rng(6).normal(size=(20, 5))
    alone = paired_residuals(values, np.arange(20))
    np.testing.assert_allclose(alone.z, paired_residuals(values).z)
    # Every unit twice, as one cluster, is worth no more than once.
    twice = paired_residuals(np.repeat(values, 2, axis=0), np.repeat(np.arange(20), 2))
    np.testing.assert_allclose(twice.z, alone.z)


def test_a_system_that_answers_the_same_gives_no_evidence() -> None:
    values = np.repeat(np.random.default_rng(7).normal(size=(20, 1)), 30, axis=1)
    assert (e_process(evidence(paired_residuals(values))) == 1).all()


def test_persistent_answers_are_counted_once() -> None:
    """Changed once at random, then the same at each look: more looks are no more evidence."""
    rng = np.random.default_rng(8)
    before, after = rng.normal(size=(400, 1)), rng.normal(0.1, 1, size=(400, 1))
    logs = [
        evidence(paired_residuals(np.where(np.arange(looks) < 3, before, after)))[3, -1]
        for looks in (4, 40)
    ]
    assert logs[1] < logs[0] + 1


@given(arrays(np.float64, st.integers(1, 7), elements=st.floats(0, 200)), st.floats(0.01, 0.5))
@settings(max_examples=60, deadline=None)
def test_closed_testing_is_that_over_all_sets(e: Floats, alpha: float) -> None:
    named = closed_testing(e, alpha)
    for number in range(len(e)):
        others = [i for i in range(len(e)) if i != number]
        sets = [(number, *s) for size in range(len(e)) for s in combinations(others, size)]
        least = min(np.mean(e[list(one)]) for one in sets)
        if abs(least - 1 / alpha) > 1e-9 * least:
            assert named[number] == (least >= 1 / alpha)


def first_alarm(residuals: Residuals, alpha: float) -> int | None:
    over = np.flatnonzero(e_process(evidence(residuals)) >= 1 / alpha)
    return int(over[0]) if len(over) else None


def draws(kind: str, rng: np.random.Generator, looks: int) -> Residuals:
    """Return the residuals of an unchanged series: of rare, skewed, few or shared units."""
    if kind == "rare flags":
        return mean_residuals([(rng.random(200) < 0.005).astype(float) for _ in range(looks)])
    if kind == "skewed":
        return mean_residuals([rng.lognormal(0, 1.5, 40) for _ in range(looks)])
    if kind == "skewed down":
        return mean_residuals([-rng.lognormal(0, 1.5, 40) for _ in range(looks)])
    if kind == "changing sizes":
        return mean_residuals([rng.exponential(1, rng.integers(0, 100)) for _ in range(looks)])
    if kind == "rare flags, same units":
        return paired_residuals((rng.random((200, looks)) < 0.01).astype(float))
    if kind == "skewed, same units":
        return paired_residuals(rng.normal(0, 3, (40, 1)) + rng.exponential(1, (40, looks)))
    if kind == "gaps":
        values = rng.normal(0, 3, (60, 1)) + rng.exponential(1, (60, looks))
        return paired_residuals(np.where(rng.random((60, looks)) < 0.4, np.nan, values))
    assert kind == "drifting users"
    return paired_residuals(np.cumsum(rng.normal(size=(100, looks)), axis=1))


KINDS = ("rare flags", "skewed", "skewed down", "changing sizes", "rare flags, same units",
         "skewed, same units", "gaps", "drifting users")  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_unchanged_series_rarely_alarm(kind: str) -> None:
    """At 0.2, of 40 series of 40 looks: three standard errors above are 0.39."""
    rng = np.random.default_rng(10)
    alarms = [first_alarm(draws(kind, rng, 40), 0.2) is not None for _ in range(40)]
    assert np.mean(alarms) <= 0.39


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_unchanged_series_rarely_alarm_in_a_year(kind: str) -> None:
    rng = np.random.default_rng(11)
    alarms = [first_alarm(draws(kind, rng, 200), 0.1) is not None for _ in range(100)]
    assert np.mean(alarms) <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 100)


def test_a_change_is_found_where_it_is() -> None:
    rng = np.random.default_rng(12)
    flags = [(rng.random(2000) < (0.1 if t < 12 else 0.14)).astype(float) for t in range(25)]
    residuals = mean_residuals(flags)
    at = first_alarm(residuals, 0.05)
    assert at is not None and 12 <= at <= 16
    change = most_likely_change(residuals, evidence(residuals), 24, 0.95)
    assert change is not None and abs(change.start - 12) <= 1
    assert change.interval[0] < 0.04 < change.interval[1]
    assert change.interval[0] > 0
    panel = rng.normal(0, 1, (500, 1)) + rng.normal(0.0, 0.5, (500, 25))
    panel[:, 1:] -= 0.2  # already at the first look after the reference
    same = paired_residuals(panel)
    change = most_likely_change(same, evidence(same), 24, 0.95)
    assert change is not None and change.start == 1 and change.interval[1] < 0
