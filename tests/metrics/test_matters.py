"""The smallest difference that matters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.audits import Audit, Plan
from ombud.audits.plan import StatisticsPlan
from ombud.errors import PlanError
from ombud.metrics import ShareGap
from ombud.metrics.engine.comparisons import declare, is_beyond
from ombud.metrics.engine.signs import by_sign, reading
from ombud.report import Report
from ombud.stats.estimate import Estimate
from ombud.worlds import small_world


def gap(low: float, high: float, null: float = 0.0, key: str = "recall(k=5)") -> Estimate:
    value = (low + high) / 2
    about = {"p_value": 0.001, "p_adjusted": 0.002, "null": null, "key": key}
    return Estimate(metric="m", value=value, interval=(low, high), method="x", n=99, **about)


@pytest.mark.parametrize(
    ("e", "size", "said"),
    [
        (gap(0.03, 0.05), None, "above"),
        (gap(0.03, 0.05), 0.02, "above"),
        (gap(0.01, 0.05), 0.02, "small"),
        (gap(-0.05, -0.03), 0.02, "below"),
        (gap(-0.05, -0.01), 0.02, "small"),
        (gap(1.05, 1.2, null=1.0), 0.1, "small"),
        (gap(1.15, 1.2, null=1.0), 0.1, "above"),
        (gap(0.8, 0.9, null=1.0), 0.1, "below"),
        (gap(0.8, 0.92, null=1.0), 0.1, "small"),
        (gap(0.01, 0.05), {"recall": 0.02}, "small"),
        (gap(0.01, 0.05), {"ndcg": 0.02}, "above"),
        (gap(0.01, 0.05, key="recall/attribute-gap"), {"recall": 0.02}, "small"),
    ],
)
def test_the_whole_interval_must_lie_beyond(e: Estimate, size, said: str) -> None:
    (declared,) = declare([e], size)
    assert reading(declared) == said


@given(st.floats(-1, 1), st.floats(0, 1), st.floats(0.001, 1), st.floats(0.001, 1))
def test_a_larger_size_leaves_fewer(low: float, width: float, small: float, more: float) -> None:
    e = gap(low, low + width)
    (one,), (other,) = declare([e], small), declare([e], small + more)
    assert is_beyond(one) or not is_beyond(other)
    assert is_beyond(e)


def audited(matters):
    world = small_world(seed=1)
    statistics = StatisticsPlan(replicates=100, matters=matters)
    return Audit(world.dataset, world.recommenders(), [ShareGap(k=10)], statistics=statistics)


def test_report_and_terminal_show_what_matters_and_count_the_others() -> None:
    plain, large = audited(None).run(), audited(0.3).run()
    stands = {s: len(some) for s, some in by_sign(plain.estimates).items()}
    left = {s: len(some) for s, some in by_sign(large.estimates).items()}
    assert left["small"] > 0
    ways = ("above", "below", "small")
    assert sum(left.get(s, 0) for s in ways) == sum(stands.get(s, 0) for s in ways)
    assert [e.value for e in plain.estimates] == [e.value for e in large.estimates]
    family = Report(large).verdicts[0].family
    assert family.number("too small") > 0
    assert "not by more than the smallest effect that matters" in family.sentence
    assert family.sentence in Report(large).markdown()
    assert not Report(plain).verdicts[0].family.number("too small")


def test_it_is_a_typed_setting_of_a_plan() -> None:
    plan = {"metrics": [{"name": "share-gap"}], "statistics": {"matters": 0.02}}
    assert Plan.from_dict(plan).statistics.matters == 0.02
    plan["statistics"] = {"matters": {"share-gap": 0.03}}
    assert Plan.from_dict(plan).statistics.matters == {"share-gap": 0.03}
    for wrong in (0, -1, "much", {"share-gap": 0}, float("inf")):
        with pytest.raises(PlanError, match="matters"):
            Plan.from_dict(plan | {"statistics": {"matters": wrong}})
    with pytest.raises(PlanError, match="matters names 'sharegap'; did you mean 'share-gap'"):
        audited({"sharegap": 0.02})
