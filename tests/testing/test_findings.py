"""Assertions on results."""

from __future__ import annotations

from typing import Any

import pytest

from ombud.audits import ExpectPlan, Gate, Plan, Result
from ombud.stats import Estimate
from ombud.testing import assert_expected, assert_no_finding


def number(value: float | None, **about: Any) -> Estimate:
    fields = {"metric": "gap", "null": 0.0} | about
    if value is None:
        return Estimate.undefined(reason="few", n=2, **fields)
    return Estimate(value=value, interval=(value - 0.1, value + 0.1), method="x", n=50, **fields)


def result(*estimates: Estimate, **plan: Any) -> Result:
    return Result(Plan.from_dict(plan), estimates)


def test_findings_are_named_and_nothing_else() -> None:
    found = result(number(0.3, label="war"), number(0.05, label="love"), number(-0.3, label="sea"))
    with pytest.raises(AssertionError, match="2 findings in 3 tested estimates of 3") as error:
        assert_no_finding(found)
    assert "above: gap [war]" in str(error.value) and "love" not in str(error.value)
    assert_no_finding(found, label="love")
    assert_no_finding(found, 'label in ("love", "sea")', direction="above")
    with pytest.raises(AssertionError, match="below: gap"):
        assert_no_finding(found, 'label in ("love", "sea")')


def test_the_corrected_p_value_decides() -> None:
    assert_no_finding(result(number(0.3, p_value=0.01, p_adjusted=0.2)))


def test_a_condition_without_a_kind_is_about_levels() -> None:
    found = result(number(0.0), number(0.4, kind="gap", against="rival"))
    assert_no_finding(found, 'metric == "gap"')
    with pytest.raises(AssertionError, match="1 finding in 2 tested"):
        assert_no_finding(found)


def test_an_audit_that_tested_nothing_does_not_pass() -> None:
    with pytest.raises(AssertionError, match="could be tested"):
        assert_no_finding(result(number(None)))
    with pytest.raises(AssertionError, match="no estimate has label == 'lvoe'"):
        assert_no_finding(result(number(0.0, label="love")), 'label == "lvoe"')
    with pytest.raises(AssertionError, match="no estimate is such"):
        assert_no_finding(result(number(0.0)), system="other")


def test_limits_are_kept_or_named() -> None:
    limit = {"limit": "value <= 0.2", "reason": "agreed"}
    assert_expected(result(number(0.05), expect={"small": limit}))
    undecided = result(number(0.15), expect={"small": limit})
    with pytest.raises(AssertionError, match="undecided: small"):
        assert_expected(undecided)
    assert_expected(undecided, undecided=True)
    with pytest.raises(AssertionError, match="expects nothing"):
        assert_expected(result(number(0.05)))
    gate = Gate({"x": ExpectPlan(limit="value > 1", where='label == "q"', reason="r")})
    with pytest.raises(AssertionError, match="no estimate has label"):
        assert_expected(undecided, gate, undecided=True)
