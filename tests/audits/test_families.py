"""Comparisons that answer one question are corrected together."""

from __future__ import annotations

import numpy as np
import pytest

from ombud.audits import Plan, Result
from ombud.audits.audit import in_families
from ombud.stats import Estimate
from ombud.stats.multiplicity import adjust


def _compared(key: str, *ps: float, **more: object) -> list[Estimate]:
    made = [
        Estimate(metric=key, key=key, value=0.1, interval=(0.05, 0.2), method="BCa", n=99, null=0.0)
        for _ in ps
    ]
    return [e.replace(p_value=p, **more) for e, p in zip(made, ps, strict=True)]


def _result(*estimates: Estimate, correction: str = "holm") -> Result:
    return Result(Plan.model_validate({"statistics": {"correction": correction}}), estimates)


@pytest.mark.parametrize("correction", ["holm", "benjamini-hochberg"])
def test_a_family_over_two_metrics_is_corrected_once(correction: str):
    one, two = _compared("gap", 0.001, 0.02), _compared("group gap", 0.004, 0.03, 0.5)
    outside = _compared("against others", 0.01, p_adjusted=0.02, correction="holm over 2")
    result = _result(*one, *outside, *two, correction=correction)
    found = in_families(result, {"exposure": [*one, *two]})
    members = [e for e in found.estimates if e.family == "exposure"]
    expected = adjust(np.array([0.001, 0.02, 0.004, 0.03, 0.5]), correction)
    assert [e.p_adjusted for e in members] == pytest.approx(expected)
    assert {e.correction for e in members} == {f"{correction} over 5"}
    assert found.estimates[2] is outside[0]
    assert [e.value for e in found.estimates] == [e.value for e in result.estimates]


def test_what_a_test_gave_is_corrected_not_what_replicates_can_tell():
    lone = _compared("gap", 1.0)[0].resampled_p(1e-9, 1999)
    rest = _compared("gap", *([0.5] * 287))
    (first, *_) = in_families(_result(lone, *rest), {"q": [lone, *rest]}).estimates
    assert first.p_adjusted == first.p_value == 0.0005
    stored = lone.replace(p_value=0.0005)  # as read from a file
    (late, *_) = in_families(_result(stored, *rest), {"q": [stored, *rest]}).estimates
    assert late.p_adjusted == pytest.approx(0.0005 * 288)


def test_groups_with_too_few_events_count():
    tested = _compared("ratio", 0.02)
    few = tested[0].replace(details={"few_events": True}).without_value("few", "too-few-events")
    found = in_families(_result(*tested, few), {"q": [*tested, few]}).estimates
    assert found[0].correction == "holm over 2"
    assert found[0].p_adjusted == pytest.approx(0.04)
    assert (found[1].family, found[1].p_adjusted) == ("q", None)


def test_of_two_families_the_first_has_an_estimate():
    one, two = _compared("gap", 0.01), _compared("other", 0.02)
    found = in_families(_result(*one, *two), {"a": one, "b": [*one, *two]}).estimates
    assert [(e.family, e.correction) for e in found] == [("a", "holm over 1"), ("b", "holm over 1")]


def test_without_a_correction_only_membership_is_told():
    one = _compared("gap", 0.01)
    (found,) = in_families(_result(*one, correction="none"), {"a": one}).estimates
    assert (found.family, found.p_adjusted, found.correction) == ("a", None, "")


def test_membership_is_stored():
    one = _compared("gap", 0.01, family="a")[0]
    assert Estimate.from_dict(one.to_dict()) == one
