"""The gate: what it reads, what it refuses, what it finds."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.audits.condition import Condition
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
        ("value > -high", True),
        ('label in ("a", "b")', True),
        ('label not in ("a", "b")', False),
    ],
)
def test_conditions(text: str, found: bool) -> None:
    assert Condition(text).matches(make(label="a")) is found


@pytest.mark.parametrize(
    ("text", "judged"),
    [
        ("value > 0", None),
        ("value <= 0", None),
        ("low != 3", None),
        ("not value > 0", None),
        ("not (value > 0 and n >= 0)", None),
        ("value < -low", None),
        ("-value < 3", None),
        ("0 < value < 3", None),
        ("1 < 0 < value", False),
        ("value > 0 or n == 0", True),
        ("value > 0 or n == 9", None),
        ("value > 0 and n == 9", False),
        ("value > 0 and n == 0", None),
        ('metric == "other" and value > 0', False),
        ('metric == "gap" and not value > 0', None),
        ("value == value", None),
    ],
)
def test_what_hangs_on_an_undefined_number_is_undefined(text: str, judged: bool | None) -> None:
    assert Condition(text).judge(make(None)) is judged
    assert Condition(text).matches(make(None)) is (judged is True)


_LEAVES = st.sampled_from(["value > 0", "value <= 0", "low > 0.5", "n == 9", 'label == "a"'])
_TREES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        inner.map(lambda a: f"not ({a})"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda parts: f"({parts[0]}) {parts[1]} ({parts[2]})"
        ),
    ),
    max_leaves=6,
)


@given(_TREES, st.floats(-2, 2))
def test_a_definite_judgement_would_stand_whatever_the_missing_number_is(
    text: str, value: float
) -> None:
    judged = Condition(text).judge(make(None, label="a").replace(n=9))
    if judged is not None:
        assert Condition(text).judge(make(value, label="a")) is judged
    assert Condition(f"not ({text})").judge(make(value, label="a")) is not Condition(text).judge(
        make(value, label="a")
    )


def test_estimates_that_could_not_be_judged_are_returned() -> None:
    estimates = [make(0.3, label="a"), make(None, label="a"), make(None, label="b")]
    verdict = Condition('label == "a" and value > 0').check(estimates)
    assert verdict.met == (estimates[0],)
    assert verdict.undefined == (estimates[1],)
    assert verdict.judged == 1
    nothing = Condition('label == "b" and value > 0').check(estimates)
    assert (nothing.met, nothing.undefined, nothing.judged) == ((), (estimates[2],), 0)


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
        "-metric == 3",
        "-label",
        "not value",
        "value and n",
        "value",
        '"gap"',
        "True",
        "n == True",
        "3 in label",
        "label in 3",
        "n in (1, 2)",
        "label in (1, 2)",
        "label in ()",
        'label == ("a", "b")',
        "(value > 0) == (low > 0)",
        "not " * 60 + "value > 0",
        "not " * 5000 + "value > 0",
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
    assert len(Condition('label in ("a", "b") and low > 0').find(estimates)) == 2


@pytest.mark.parametrize(
    "text",
    [
        '"gpa" == metric',
        'low > 0 and "gpa" == metric',
        'n == 9 or "a" == label == "c"',
        'label in ("a", "c")',
        'label in ["c"]',
        '"c" in label',
        'label in "xyz"',
        'label == "a" and group == "women"',
    ],
)
def test_words_are_checked_wherever_they_stand(text: str) -> None:
    estimates = [make(label="a"), make(label="b", group="women")]
    with pytest.raises(PlanError, match="could never close"):
        Condition(text).find(estimates)


def test_things_that_cannot_be_compared() -> None:
    with pytest.raises(PlanError, match="cannot be compared"):
        Condition("label > 3").matches(make(label="a"))
