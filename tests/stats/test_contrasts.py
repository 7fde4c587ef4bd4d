from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from ombud.stats import Mean, RatioOfSums, Sample, resample


def test_paired_difference_is_the_bootstrap_of_differences(rng) -> None:
    a, b = rng.normal(size=(2, 60))
    drawn = resample([Sample(a), Sample(b), Sample(a - b)], rng=rng)
    contrast, direct = drawn.contrast((0, 0), (1, 0)), drawn.at(2)
    np.testing.assert_allclose(contrast.draws, direct.draws, atol=1e-12)
    assert contrast.acceleration == pytest.approx(direct.acceleration)
    assert contrast.interval().ends == pytest.approx(direct.interval().ends)
    assert contrast.p_value(0) == pytest.approx(direct.p_value(0))
    assert contrast.n == 60 and contrast.parts == pytest.approx((a.mean(), b.mean()))
    paired = scipy_stats.ttest_rel(a, b).pvalue
    assert contrast.p_value(0) == pytest.approx(paired, rel=0.15)


def test_p_values_fall_far_below_one_over_replicates(rng) -> None:
    a = rng.normal(size=400)
    drawn = resample([Sample(a + 0.5)], replicates=2000, rng=rng)
    ours = np.log10(drawn.at(0).p_value(0))
    theirs = np.log10(scipy_stats.ttest_1samp(a + 0.5, 0).pvalue)
    assert theirs < -15 and ours == pytest.approx(theirs, rel=0.1)


def test_group_in_whole_ratio_has_the_error_of_the_log_delta_method(rng) -> None:
    n = 4000
    group = rng.random(n) < 0.3
    event = (rng.random(n) < np.where(group, 0.2, 0.1)).astype(float)
    groups = np.column_stack([np.ones(n, bool), group, ~group])
    drawn = resample([Sample(event)], groups=groups, rng=rng)
    whole = drawn.contrast((0, 1), (0, 0), "ratio")
    rest = drawn.contrast((0, 1), (0, 2), "ratio")
    e, m = event[group].sum(), group.sum()
    f, k = event[~group].sum(), (~group).sum()
    katz = np.sqrt(1 / e - 1 / m + 1 / f - 1 / k)
    assert np.log(rest.draws).std() == pytest.approx(katz, rel=0.08)
    influence = group * (event - e / m) / e - (event - event.mean()) / event.sum()
    assert np.log(whole.draws).std() == pytest.approx(np.sqrt(np.sum(influence**2)), rel=0.08)
    # The group is part of the whole: treating them as independent would overstate the error.
    apart = np.sqrt(1 / e - 1 / m + 1 / event.sum() - 1 / n)
    assert np.log(whole.draws).std() < 0.85 * apart
    assert whole.n == n and whole.smallest_n == m


def test_ratio_without_events_is_said(rng) -> None:
    group = np.arange(100) < 30
    event = np.where(group, 0.0, np.arange(100) % 2)
    groups = np.column_stack([group, ~group, np.zeros(100, bool)])
    drawn = resample([Sample(event)], groups=groups, rng=rng)
    zero = drawn.contrast((0, 0), (0, 1), "ratio").estimate(metric="r")
    assert zero.value == 0 and zero.interval is None and zero.p_value is None
    assert "no p-value: there is no interval" in zero.note and "not certainty" in zero.method
    infinite = drawn.contrast((0, 1), (0, 0), "ratio").estimate(metric="r")
    assert infinite.value is None and infinite.reason.startswith("the statistic is undefined")
    empty = drawn.contrast((0, 2), (0, 0)).estimate(metric="d")
    assert empty.value is None and empty.kind == "gap" and empty.null == 0


def test_rare_events_take_the_jackknife_error(rng) -> None:
    event = np.r_[np.ones(3), np.zeros(47), np.ones(40), np.zeros(110)]
    group = np.arange(200) < 50
    groups = np.column_stack([group, np.ones(200, bool)])
    drawn = resample([Sample(event)], groups=groups, rng=rng)
    test = drawn.contrast((0, 0), (0, 1), "ratio").test(1.0)
    influence = group * (event - 3 / 50) / 3 - (event - 43 / 200) / 43
    assert test.error == "jackknife" and test.df == 49
    expected = np.log((3 / 50) / (43 / 200)) / np.sqrt(np.sum(influence**2))
    assert test.statistic == pytest.approx(expected, rel=0.2)
    single = resample([Sample(np.eye(50)[0])], rng=rng).contrast((0, 0), (0, 0), "ratio")
    assert single.test(1.0).reason.startswith("no standard error")


def test_estimates_carry_kind_null_and_p(rng) -> None:
    a, b = rng.uniform(1, 2, size=(2, 50))
    drawn = resample([Sample(a), Sample(b)], rng=rng)
    ratio = drawn.contrast((0, 0), (1, 0), "ratio").estimate(metric="r", against="b")
    assert (ratio.kind, ratio.null, ratio.against) == ("ratio", 1.0, "b")
    assert ratio.p_value is not None and ratio.value == pytest.approx(a.mean() / b.mean())
    with pytest.raises(ValueError, match="positive"):
        drawn.contrast((0, 0), (1, 0), "ratio").test(0.0)
    with pytest.raises(ValueError, match="expected 'difference'"):
        drawn.contrast((0, 0), (1, 0), "quotient")  # type: ignore[arg-type]


def test_many_contrasts_at_once(rng) -> None:
    drawn = resample(Sample.many(rng.normal(size=(30, 4)), Mean()), rng=rng)
    found = drawn.contrasts([((s, 0), (0, 0)) for s in range(1, 4)])
    assert [c.point for c in found] == pytest.approx(list(drawn.point[1:, 0] - drawn.point[0, 0]))


def test_ratio_contrast_is_scale_equivariant(rng) -> None:
    values = rng.uniform(1, 2, size=(40, 2))
    state = np.random.default_rng(1)
    one = resample([Sample(values, RatioOfSums()), Sample(values[:, 0])], rng=state)
    state = np.random.default_rng(1)
    scaled = values * [10.0, 1.0]
    ten = resample([Sample(scaled, RatioOfSums()), Sample(values[:, 0])], rng=state)
    first = one.contrast((0, 0), (1, 0), "ratio").interval()
    second = ten.contrast((0, 0), (1, 0), "ratio").interval()
    assert second.ends == pytest.approx((10 * first.low, 10 * first.high))
