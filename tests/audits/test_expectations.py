"""What was declared beforehand: met, not met, undecided; and who audits whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.audits import AboutPlan, Audit, Condition, ExpectPlan, Gate, Plan, Result
from ombud.audits.audit import rescore
from ombud.audits.plan import StatisticsPlan
from ombud.errors import PlanError
from ombud.metrics import ShareGap
from ombud.stats import Estimate
from ombud.worlds import small_world


def number(low: float, high: float, **about: Any) -> Estimate:
    fields = {"metric": "gap"} | about
    ends = (low, high)
    return Estimate(value=(low + high) / 2, interval=ends, method="x", n=50, **fields)


def state(limit: str, *estimates: Estimate, where: str = "") -> str:
    gate = Gate({"it": ExpectPlan(limit=limit, where=where, reason="agreed")})
    (judged,) = gate.judge(estimates)
    return judged.state


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("value <= 0.5", "met"),
        ("value < 0.4", "undecided"),  # the end of the interval is the limit itself
        ("value <= 0.4", "met"),
        ("value <= 0.3", "undecided"),
        ("value <= 0.1", "not met"),
        ("value > 0.4", "not met"),
        ("value >= 0.4", "undecided"),
        ("0 <= value <= 1", "met"),
        ("-0.5 <= value <= 0.3", "undecided"),
        ("not value > 0.5", "met"),
        ("value < 0.1 or value > 0.5", "not met"),
        ("value == 0.3", "undecided"),
        ("value == 3", "not met"),
        ("value != 3", "met"),
        ("-value >= -0.4", "met"),
        ("high <= 0.4", "met"),
        ("low > 0.3", "not met"),
    ],
)
def test_a_limit_is_judged_by_the_whole_interval(limit: str, expected: str) -> None:
    assert state(limit, number(0.2, 0.4)) == expected


@given(st.floats(-1, 1), st.floats(0, 1), st.floats(-1, 1), st.sampled_from(["<", "<=", ">", ">="]))
def test_what_is_decided_holds_at_every_point_of_the_interval(
    low: float, width: float, limit: float, op: str
) -> None:
    e = number(low, low + width)
    assert e.interval is not None
    judged = Condition(f"value {op} {limit!r}").judge_over(e)
    points = (e.interval[0], low + width / 3, e.interval[1])
    truths = {Condition(f"value {op} {limit!r}").judge(e.replace(value=p)) for p in points}
    if judged is not None:
        assert truths == {judged}
    elif width == 0:
        pytest.fail("a number without width is on one side")


def test_one_number_beyond_the_limit_breaks_it_and_one_across_leaves_it_open() -> None:
    within, across, beyond = number(0, 0.1), number(0.1, 0.3), number(0.3, 0.4)
    assert state("value <= 0.2", within, within) == "met"
    assert state("value <= 0.2", within, across) == "undecided"
    assert state("value <= 0.2", within, across, beyond) == "not met"


def test_without_an_interval_or_a_value_nothing_is_decided() -> None:
    bare = Estimate(metric="gap", value=0.1, interval=None, method="none: no spread", n=9)
    gone = Estimate.undefined(metric="gap", reason="nothing there", n=0)
    assert state("value <= 0.2", bare) == "undecided"
    assert state("value <= 0.2", gone) == "undecided"
    assert state("value <= 0.2", number(0, 0.1, label="a"), gone, where='label == "a"') == "met"


def test_a_limit_that_names_no_kind_is_about_levels_only() -> None:
    level = number(0, 0.1, system="ours")
    rival = number(0.5, 0.6, system="ours", against="theirs", kind="gap")
    assert state("value <= 0.2", level, rival, where='system == "ours"') == "met"
    assert state("value <= 0.2", level, rival) == "met"
    assert state("value <= 0.2", level, rival, where='kind == "gap"') == "not met"
    assert state('value <= 0.2 and kind == "gap"', level, rival) == "not met"
    assert state("value <= 0.2", level, rival, where='against == "theirs"') == "not met"


def test_a_gate_does_not_close_because_a_rival_improved() -> None:
    level = number(0.01, 0.02, metric="share gap@10", system="ours")
    rival = number(0.1, 0.2, metric="share gap@10", system="ours", against="rival", kind="gap")
    condition = Condition('metric == "share gap@10" and low > 0.05')
    assert condition.check([level, rival]).met == ()
    assert not condition.matches(rival)
    both = Condition('metric == "share gap@10" and kind == "gap" and low > 0.05')
    assert both.check([level, rival]).met == (rival,)
    with pytest.raises(PlanError, match='adding: and kind == "gap"'):
        condition.check([rival])


def test_a_limit_about_nothing_is_undecided_and_says_so() -> None:
    gate = Gate({"a": ExpectPlan(limit="value < 1", where='label == "lable"', reason="r")})
    (judged,) = gate.judge([number(0, 0.1, label="label")])
    assert judged.state == "undecided"
    assert "no estimate has label == 'lable'" in judged.fault and judged.why == judged.fault


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('[expect.a]\nlimit = "value <"\nreason = "r"', "cannot read the condition"),
        ('[expect.a]\nlimit = "colour < 3"\nreason = "r"', "unknown name 'colour'"),
        ('[expect.a]\nlimit = "value < 3"', "expect.a.reason"),
        ('[expect.a]\nlimit = "value < 3"\nreazon = "r"', "did you mean 'reason'?"),
        ('[expect]\nlimit = "value < 3"\nreason = "r"', "give each limit a name"),
        (f'[expect.{"a" * 81}]\nlimit = "value < 3"\nreason = "r"', "first screen"),
        ('[about]\nauditer = "me"', "did you mean 'auditor'?"),
    ],
)
def test_faults_are_told_before_anything_runs(text: str, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(PlanError) as error:
        Plan.load(path)
    assert fault in str(error.value)


def test_a_gate_file_has_the_form_of_a_plan(tmp_path: Path) -> None:
    path = tmp_path / "gate.toml"
    path.write_text('[expect."small gap"]\nlimit = "value <= 0.1"\nreason = "agreed"\n')
    (judged,) = Gate.load(path).judge([number(0, 0.05)])
    assert (judged.state, judged.said, judged.source) == ("met", "small gap", "gate.toml")
    for text, fault in (("", "expect"), ("title = 'x'", "title")):
        path.write_text(text)
        with pytest.raises(PlanError, match=fault):
            Gate.load(path)
    with pytest.raises(PlanError, match="there is no gate"):
        Gate.load(tmp_path / "absent.toml")


def test_what_is_declared_is_stored_and_stays_when_measured_again(tmp_path: Path) -> None:
    world = small_world(seed=1, users=60)
    where = 'system == "amplifying" and label == "violence" and group == ""'
    expect = {"little": {"limit": "value <= 0.01", "where": where, "reason": "agreed"}}
    audit = Audit(
        world.dataset,
        world.recommenders(),
        [ShareGap(k=10)],
        about={"auditor": "Ada", "audited": "Films Ltd"},
        expect=expect,
        statistics=StatisticsPlan(replicates=200),
    )
    audit.run(tmp_path / "result")
    stored = Result.load(tmp_path / "result")
    assert stored.plan.about == AboutPlan(auditor="Ada", audited="Films Ltd")
    assert [one.state for one in Gate.of(stored.plan).judge(stored.estimates)] == ["not met"]
    other = Plan(metrics=({"name": "share-gap", "k": 5},), statistics=stored.plan.statistics)
    again = rescore(tmp_path / "result", plan=other)
    assert (again.plan.about, again.plan.expect) == (stored.plan.about, stored.plan.expect)
    later = other.model_copy(update={"expect": {"x": ExpectPlan(limit="value < 9", reason="r")}})
    with pytest.raises(PlanError, match="declared before"):
        rescore(tmp_path / "result", plan=later)
    with pytest.raises(PlanError, match="the audit: 1 fault"):
        Audit(world.dataset, world.recommenders(), [ShareGap()], about={"auditer": "Ada"})


def test_by_nothing_compares_nothing(tmp_path: Path) -> None:
    files = small_world(seed=1, users=60).write(tmp_path, 10)
    plan = {
        "by": [],
        "data": {name: str(files[name]) for name in ("interactions", "labels")},
        "systems": {"a": {"type": "recorded", "path": str(files["recommendations/neutral"])}},
        "metrics": [{"name": "share-gap", "k": 10}],
        "statistics": {"replicates": 100},
    }
    assert {e.group for e in Audit.from_plan(Plan.from_dict(plan)).run().estimates} == {""}
    small = plan | {"data": {"source": "small"}, "systems": {"p": {"type": "popular"}}}
    assert {e.group for e in Audit.from_plan(Plan.from_dict(small)).run().estimates} == {""}
    grouped = plan | {"data": {**plan["data"], "users": str(files["users"])}}  # type: ignore[dict-item]
    with pytest.raises(PlanError, match="compares no groups"):
        Audit.from_plan(Plan.from_dict(grouped))
