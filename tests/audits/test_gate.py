"""The gate: what it reads, what it refuses, what it finds."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.audits.gate import Condition
from ombud.errors import OmbudError, PlanError
from ombud.stats import Estimate


def make(value: float | None = 0.3, **about: object) -> Estimate:
    if value is None:
        return Estimate.undefined(metric="gap", reason="none", n=0, **about)
    interval = (value - 0.1, value + 0.1)
    return Estimate(metric="gap", value=value, interval=interval, method="x", n=9, **about)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('metric == "gap" and low > 0.1', True),
        ("low > 0.25", False),
        ("value >= 0.3 and not n < 9", True),
        ("high < 0.1 or n == 9", True),
        ('"a" in label', True),
        ('label not in "xyz"', True),
        ("0.1 < low < 0.3", True),
        ("value > -1", True),
        ("p_value < 1", False),
    ],
)
def test_conditions(text: str, found: bool) -> None:
    assert Condition(text).matches(make(label="a")) is found


def test_an_undefined_number_meets_no_comparison() -> None:
    for text in ("value > 0", "value <= 0", "low != 3"):
        assert not Condition(text).matches(make(None))


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "value.__class__",
        "(lambda: 1)()",
        "[1][0]",
        "colour == 3",
        "value is None",
        "value +",
        "",
        "value ** 9999999",
        "f'{value}'",
        "value > b'x'",
    ],
)
def test_nothing_else_is_read(text: str) -> None:
    with pytest.raises(PlanError):
        Condition(text)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(OmbudError):
        Condition(text).find([make(label="a")])


def test_a_gate_that_could_never_close_is_an_error() -> None:
    estimates = [make(label="a"), make(label="b")]
    with pytest.raises(PlanError, match="no estimate has label == 'c'.*found: a, b"):
        Condition('label == "c" and low > 0').find(estimates)
    assert len(Condition('label == "a" and low > 0').find(estimates)) == 1


def test_things_that_cannot_be_compared() -> None:
    with pytest.raises(PlanError, match="cannot be compared"):
        Condition("label > 3").matches(make(label="a"))
