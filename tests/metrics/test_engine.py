"""One engine: levels, groups, gaps, corrections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ombud.data import Dataset, Grouping
from ombud.metrics.base import Metric, Outputs, Rows, spec_of
from ombud.metrics.engine.comparisons import Needs
from ombud.metrics.engine.estimate import REST, estimate_metric
from ombud.metrics.engine.estimator import Settings
from ombud.stats import Mean


@dataclass(frozen=True)
class Plain(Metric):
    """A metric whose rows are given."""

    k: int = 10
    registered_name: ClassVar[str] = "plain"
    title: ClassVar[str] = "plain"
    of: ClassVar[Literal["recommender"]] = "recommender"
    null: ClassVar[float | None] = 0.0
    contrast: ClassVar[Literal["difference", "ratio"]] = "difference"
    statistic: ClassVar[Mean] = Mean()
    depth: ClassVar[int] = 10

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        raise AssertionError("the engine does not measure")


def rows(values: Any, ids: Any = None, labels: tuple[str, ...] = ("",)) -> Rows:
    array = np.asarray(values, dtype=np.float64).reshape(-1, len(labels))
    return Rows(
        "user", np.arange(len(array)) if ids is None else np.asarray(ids), {"value": array}, labels
    )


def test_levels_against_the_t_test(rng: np.random.Generator) -> None:
    values = rng.normal(0.1, 1, 400)
    (e,) = estimate_metric(Plain(), {"a": rows(values)})
    test = stats.ttest_1samp(values, 0)
    assert e.value == pytest.approx(values.mean())
    assert e.interval is not None and e.p_value is not None
    wanted = test.confidence_interval()
    assert e.interval == pytest.approx((wanted.low, wanted.high), abs=0.01)
    assert e.p_value == pytest.approx(test.pvalue, rel=0.15)
    assert (e.n, e.unit, e.system) == (400, "user", "a")


def test_systems_are_compared_on_the_same_people(rng: np.random.Generator) -> None:
    person = rng.normal(0, 3, 300)
    one, two = person + 0.2 + rng.normal(0, 0.5, 300), person + rng.normal(0, 0.5, 300)
    found = estimate_metric(Plain(), {"one": rows(one), "two": rows(two)})
    (gap,) = [e for e in found if e.against == "two"]
    paired = stats.ttest_rel(one, two).confidence_interval()
    assert gap.interval == pytest.approx((paired.low, paired.high), abs=0.02)
    assert gap.excludes_null


def test_units_are_matched_by_id_not_by_place(rng: np.random.Generator) -> None:
    values = rng.normal(0, 1, 50)
    order = rng.permutation(50)
    found = estimate_metric(Plain(), {"a": rows(values), "b": rows(values[order], order)})
    (gap,) = [e for e in found if e.kind == "gap"]
    assert gap.value == pytest.approx(0, abs=1e-12)


def test_systems_that_measured_different_people_are_compared_on_those_they_share(
    rng: np.random.Generator,
) -> None:
    values = rng.normal(0, 1, 1000)
    half = np.flatnonzero(values > np.median(values))
    found = estimate_metric(Plain(), {"all": rows(values), "some": rows(values[half], half)})
    (gap,) = [e for e in found if e.kind == "gap"]
    assert gap.value == pytest.approx(0, abs=1e-12) and gap.n == len(half)
    assert "without 500 users that only one of the two measured" in gap.note
    holes = np.where(rng.random(1000) < 0.3, np.nan, values + 0.5)
    found = estimate_metric(Plain(), {"a": rows(holes), "b": rows(values)})
    (gap,) = [e for e in found if e.kind == "gap"]
    assert gap.value == pytest.approx(0.5)
    apart = estimate_metric(
        Plain(), {"a": rows(values[:20]), "b": rows(values[:20], range(50, 70))}
    )
    (gap,) = [e for e in apart if e.kind == "gap"]
    assert gap.value is None and "no user in common" in gap.reason


def test_groups_and_their_gaps(rng: np.random.Generator) -> None:
    kind = np.array(["x", "y", "z", None], dtype=object)[rng.integers(0, 4, 600)]
    values = rng.normal(0, 1, 600) + (kind == "x")
    groups = Grouping.from_values(np.arange(600), {"kind": kind})
    found = estimate_metric(Plain(), {"a": rows(values)}, groups)
    level = {e.group: e for e in found if e.kind == "level"}
    assert set(level) == {"", "kind=x", "kind=y", "kind=z"}
    assert level["kind=x"].value == pytest.approx(values[kind == "x"].mean())
    assert level["kind=x"].n == np.count_nonzero(kind == "x")
    gap = {e.group: e for e in found if e.kind == "gap"}
    others = np.isin(kind.astype(str), ["y", "z"])
    assert gap["kind=x"].value == pytest.approx(values[kind == "x"].mean() - values[others].mean())
    assert gap["kind=x"].against == REST
    welch = stats.ttest_ind(values[kind == "x"], values[others], equal_var=False)
    wanted = welch.confidence_interval()
    assert gap["kind=x"].interval == pytest.approx((wanted.low, wanted.high), abs=0.03)


def test_two_groups_make_one_comparison() -> None:
    groups = Grouping.from_values(np.arange(40), {"sex": ["f", "m"] * 20})
    found = estimate_metric(Plain(), {"a": rows(np.arange(40.0) % 7)}, groups)
    (gap,) = [e for e in found if e.kind == "gap"]
    assert (gap.group, gap.against) == ("sex=f", "sex=m")


def test_small_groups_get_words_not_numbers() -> None:
    groups = Grouping.from_values(np.arange(40), {"age": ["old"] * 3 + ["new"] * 37})
    found = estimate_metric(Plain(), {"a": rows(np.arange(40.0))}, groups)
    old = [e for e in found if e.group == "age=old"]
    assert old and all(not e.is_defined for e in old)
    assert all(e.reason.startswith("not enough data: 3 users") for e in old)


def test_few_units_overall_get_words_too() -> None:
    (e,) = estimate_metric(Plain(), {"a": rows([1.0, 2.0, 3.0])})
    assert e.value is None and e.reason.startswith("not enough data: 3 users")


@pytest.mark.simulation
def test_intervals_of_few_units_cover(rng: np.random.Generator) -> None:
    covered, runs = 0, 400
    for number in range(runs):
        settings = Settings(replicates=400, seed=number)
        (e,) = estimate_metric(Plain(), {"a": rows(rng.normal(0, 1, 12))}, None, settings)
        assert e.interval is not None and "expanded" in e.method
        covered += e.interval[0] <= 0 <= e.interval[1]
    low, high = stats.binom.interval(0.999, runs, 0.94)
    assert low <= covered <= high


def test_undefined_is_said() -> None:
    (e,) = estimate_metric(Plain(), {"a": rows([np.nan] * 20)})
    assert e.value is None and e.reason and e.n == 0
    (e,) = estimate_metric(Plain(), {"a": rows([])})
    assert e.reason == "no user could be measured"


def test_corrections_cover_each_family(rng: np.random.Generator) -> None:
    labels = tuple(f"w{i}" for i in range(20))
    measured = {"a": rows(rng.normal(0, 1, (200, 20)), labels=labels)}
    found = estimate_metric(Plain(), measured, None, Settings(correction="holm"))
    assert {e.correction for e in found} == {"holm over 20"}
    raw = np.array([e.p_value for e in found])
    adjusted = np.array([e.p_adjusted for e in found])
    assert np.all(adjusted >= raw) and adjusted.min() == pytest.approx(min(1, 20 * raw.min()))


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**31),
    st.floats(0, 60),
    st.sampled_from([50, 99, 400]),
    st.sampled_from(["holm", "benjamini-hochberg"]),
)
def test_no_p_is_below_what_the_replicates_can_tell(
    seed: int, shift: float, replicates: int, correction: Literal["holm", "benjamini-hochberg"]
) -> None:
    values = np.random.default_rng(seed).normal(0, 1, (30, 3)) + np.array([0.0, shift / 10, shift])
    measured = {"a": rows(values, labels=("x", "y", "z")), "b": rows(-values, labels=tuple("xyz"))}
    chosen = Settings(replicates=replicates, correction=correction)
    for e in estimate_metric(Plain(), measured, None, chosen):
        assert e.p_value is not None and e.p_adjusted is not None
        assert 1 / (replicates + 1) <= e.p_value <= e.p_adjusted <= 1
        assert e.p_tail is not None and e.p_value == max(e.p_tail, 1 / (replicates + 1))
        assert "p_tail" not in e.to_dict()


def test_a_lone_finding_is_not_lost_to_the_number_of_replicates(rng: np.random.Generator) -> None:
    values = rng.normal(0, 1, (200, 400))
    values[:, 7] += 1
    labels = tuple(f"w{i}" for i in range(400))
    chosen = Settings(replicates=200, correction="holm")
    found = estimate_metric(Plain(), {"a": rows(values, labels=labels)}, None, chosen)
    assert [e.label for e in found if (e.p_adjusted or 0) < 0.05] == ["w7"]
    assert found[7].p_value == found[7].p_adjusted == 1 / 201


def test_the_same_value_without_an_interval_is_significant_nowhere() -> None:
    same = {name: rows([1.0] * 40) for name in ("a", "b")}
    found = estimate_metric(Plain(), same)
    assert [e.value for e in found] == [1.0, 1.0, 0.0]
    assert all(e.interval is None and e.p_value is None for e in found)


def test_the_same_seed_gives_the_same_numbers(rng: np.random.Generator) -> None:
    measured = {"a": rows(rng.normal(0, 1, 100))}
    first = estimate_metric(Plain(), measured, None, Settings(seed=3))
    assert first == estimate_metric(Plain(), measured, None, Settings(seed=3))
    assert first != estimate_metric(Plain(), measured, None, Settings(seed=4))


def test_clusters_widen_the_interval(rng: np.random.Generator) -> None:
    shared = np.repeat(rng.normal(0, 1, 30), 20)
    values = (shared + rng.normal(0, 0.3, 600))[:, None]
    cluster = np.repeat(np.arange(30, dtype=np.int32), 20)
    alone = Rows("text", np.arange(600), {"value": values})
    together = Rows("text", np.arange(600), {"value": values}, clusters=cluster)
    (a,) = estimate_metric(Plain(), {"s": alone})
    (b,) = estimate_metric(Plain(), {"s": together})
    assert a.interval is not None and b.interval is not None
    assert b.interval[1] - b.interval[0] > 3 * (a.interval[1] - a.interval[0])
    assert b.n == 30


def test_rows_round_trip_and_check_their_shape() -> None:
    measured = rows(np.arange(6.0).reshape(3, 2), labels=("a|b", ""))
    again = Rows.from_frame(measured.to_frame(), "user")
    assert again.labels == ("a|b", "")
    assert np.array_equal(again.columns["value"], measured.columns["value"])
    with pytest.raises(ValueError, match="was expected"):
        Rows("user", np.arange(2), {"value": np.zeros((3, 1))})
    assert spec_of(Plain(k=3)) == {"name": "plain", "k": 3}


@pytest.mark.simulation
def test_a_ratio_of_means_is_tested_alike_in_both_directions(rng: np.random.Generator) -> None:
    from ombud.questions.warnings.amplification.metric import RatioOfMeans

    @dataclass(frozen=True)
    class Ratio(Plain):
        title: ClassVar[str] = "ratio"
        statistic: ClassVar[Any] = RatioOfMeans()
        needs: ClassVar[Any] = Needs("history", 5, "with the label in their history")

    def share(rate: float) -> Any:
        return (rng.random((300, 1)) < rate).astype(np.float64)

    found = {"more": 0, "less": 0}
    alarms, runs = 0, 120
    for number in range(runs):
        few = Settings(replicates=300, seed=number)
        for name, (listed, past) in {"more": (0.16, 0.07), "less": (0.07, 0.16)}.items():
            columns = {"list": share(listed), "history": share(past)}
            (e,) = estimate_metric(Ratio(), {"a": Rows("user", np.arange(300), columns)}, None, few)
            found[name] += e.p_value is not None and e.p_value < 0.05
        columns = {"list": share(0.1), "history": share(0.1)}
        (e,) = estimate_metric(Ratio(), {"a": Rows("user", np.arange(300), columns)}, None, few)
        alarms += e.p_value is not None and e.p_value < 0.05
    assert min(found.values()) > 0.8 * runs
    assert alarms <= stats.binom.ppf(0.999, runs, 0.05)
    rare = {"list": share(0.1), "history": np.zeros((300, 1))}
    rare["history"][:3] = 1
    (e,) = estimate_metric(Ratio(), {"a": Rows("user", np.arange(300), rare)})
    assert e.reason.startswith("not enough data: 3 users with the label in their history")
