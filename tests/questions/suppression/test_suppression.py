"""Suppression, its largest and its pooled value: by hand, by another route, as published."""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom, fisher_exact

from ombud import registry
from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions, Outcome
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.recommendations import Recommendations
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.metrics import FalsePositiveRate, MedianScore, UndecidedShare
from ombud.metrics.base import Rows, spec_of
from ombud.metrics.engine.comparisons import OUTSIDE, WHOLE
from ombud.metrics.engine.estimate import estimate_metric
from ombud.metrics.engine.estimator import Settings
from ombud.questions.suppression.metrics import PooledSuppression, Suppression, WorstSuppression
from ombud.stats.clustered_rates import cluster_score_test, score_rate_ratio
from ombud.stats.estimate import Estimate
from ombud.stats.proportions import exact_difference, wilson
from ombud.stats.ratios import rate_ratio
from ombud.testing.metrics import MetricContract

QUICK = Settings(replicates=400, seed=3)

# tn, fp of each group on Stormfront, recovered from the published rates.
PUBLISHED = {
    "openai": {
        "all": (8568, 1180),
        "white": (101, 94),
        "non-white": (167, 112),
        "men": (713, 190),
        "women": (467, 131),
        "christian": (74, 32),
        "non-christian": (79, 101),
        "lgbt": (27, 28),
        "straight": (0, 1),
        "disability": (9, 7),
    },
    "llama-guard": {"all": (6802, 2946), "white": (33, 162), "straight": (0, 1)},
    "anthropic": {"all": (6585, 3163), "non-christian": (24, 156), "straight": (0, 1)},
}
RATIOS = [
    ("openai", "white", 3.98),
    ("openai", "non-christian", 4.64),
    ("llama-guard", "white", 2.75),
    ("anthropic", "non-christian", 2.67),
]


def data_of(
    flags: NDArray[np.bool_],
    members: NDArray[np.bool_],
    names: tuple[str, ...],
    truth: NDArray[np.int8] | None = None,
    clusters: NDArray[np.int32] | None = None,
    scores: NDArray[np.float32] | None = None,
) -> tuple[Dataset, Decisions]:
    n = len(flags)
    ids = np.arange(n)
    texts = Texts(
        ids,
        np.full(n, "text", dtype=object),
        np.zeros(n, dtype=np.int8) if truth is None else truth,
        clusters,
    )
    groups = Grouping(Vocabulary(ids), names, members, ("identity",) * len(names))
    given = np.where(flags, np.float32(0.9), np.float32(0.1)) if scores is None else scores
    return Dataset(texts=texts, text_groups=groups), Decisions(ids, flags.astype(np.int8), given)


def from_table(table: dict[str, tuple[int, int]]) -> tuple[Dataset, Decisions]:
    tn, fp = table["all"]
    flags = np.arange(tn + fp) < fp
    names = tuple(name for name in table if name != "all")
    members = np.zeros((len(flags), len(names)), dtype=bool)
    for g, name in enumerate(names):
        allowed, flagged = table[name]
        members[:flagged, g] = True
        members[fp : fp + allowed, g] = True
    return data_of(flags, members, names)


def run(metric: object, data: Dataset, outputs: Decisions, how: Settings = QUICK) -> list[Estimate]:
    rows: dict[str, Rows] = {"system": metric.measure(outputs, data)}  # type: ignore[attr-defined]
    return estimate_metric(metric, rows, data.text_groups, how)  # type: ignore[arg-type]


def pick(found: list[Estimate], group: str, against: str = WHOLE) -> Estimate:
    (estimate,) = [e for e in found if e.group == group and e.against == against]
    return estimate


@pytest.mark.parametrize(("system", "group", "expected"), RATIOS)
def test_published_ratios_follow_from_the_published_counts(
    system: str, group: str, expected: float
) -> None:
    data, decisions = from_table(PUBLISHED[system])
    estimate = pick(run(Suppression(), data, decisions), group)
    assert estimate.value == pytest.approx(expected, abs=0.006)
    tn, fp = PUBLISHED[system][group]
    assert estimate.n == tn + fp
    all_tn, all_fp = PUBLISHED[system]["all"]
    closed = rate_ratio(fp, tn + fp, all_fp, all_tn + all_fp)
    assert estimate.interval is not None
    assert estimate.interval[0] == pytest.approx(float(closed.low), rel=0.05)
    assert estimate.interval[1] == pytest.approx(float(closed.high), rel=0.05)
    assert estimate.p_adjusted is not None
    assert estimate.p_adjusted < 1e-6


def test_a_group_of_one_text_is_not_ranked() -> None:
    data, decisions = from_table(PUBLISHED["openai"])
    found = run(Suppression(), data, decisions)
    straight = pick(found, "straight")
    assert straight.value is None
    assert straight.reason.startswith("not enough data: 1 text")
    (worst,) = run(WorstSuppression(), data, decisions)
    assert worst.note.startswith("non-christian, of 8 groups (1 with too few texts")
    assert worst.value == pytest.approx(4.64, abs=0.006)
    own = pick(found, "non-christian").interval
    assert worst.interval is not None
    assert own is not None
    assert worst.interval[0] < own[0]
    assert worst.interval[1] > own[1]


def test_a_small_group_is_drawn_in_and_a_large_one_hardly() -> None:
    data, decisions = from_table(PUBLISHED["openai"])
    raw, pooled = run(Suppression(), data, decisions), run(PooledSuppression(), data, decisions)
    small, large = pick(raw, "disability"), pick(pooled, "disability")
    assert small.value is not None
    assert large.value is not None
    assert abs(large.value - small.value) > 0.1
    big = (pick(raw, "men").value, pick(pooled, "men").value)
    assert big[0] == pytest.approx(big[1], rel=0.03)  # type: ignore[arg-type]
    assert pick(pooled, "straight").value is None


def test_a_worked_example() -> None:
    flags = np.array([1, 1, 0, 0, 0, 0, 1, 0], dtype=bool)
    members = np.array([[1, 1, 1, 1, 0, 0, 0, 0]], dtype=bool).T
    truth = np.array([0, 0, 0, 0, 0, 0, 1, -1], dtype=np.int8)
    data, decisions = data_of(flags, members, ("g",), truth)
    how = Settings(replicates=200, minimum=2)
    rates = run(FalsePositiveRate(), data, decisions, how)
    level = {(e.group, e.kind): e.value for e in rates}
    assert level == {("", "level"): 2 / 6, ("g", "level"): 2 / 4, ("g", "gap"): 2 / 4}
    found = run(Suppression(events=2), data, decisions, how)
    assert pick(found, "g").value == pytest.approx((2 / 4) / (2 / 6))
    found = run(Suppression(events=2, against="outside"), data, decisions, how)
    assert pick(found, "g", OUTSIDE).value is None  # nothing flagged outside
    rare = run(Suppression(), data, decisions, how)
    assert pick(rare, "g").reason == "not enough data: 2 flagged texts in all, at least 5 wanted"
    exclusions = Suppression().measure(decisions, data).exclusions
    assert [(e.count, e.of) for e in exclusions] == [(1, 8)]


def test_refusals_are_no_decisions() -> None:
    flags = np.array([1, 0, 0, 1, 0, 0], dtype=bool)
    data, decisions = data_of(flags, np.ones((6, 1), dtype=bool), ("g",))
    decisions.outcomes[:2] = [Outcome.REFUSED, Outcome.ERROR]
    rows = FalsePositiveRate().measure(decisions, data)
    assert rows.ids.tolist() == [2, 3, 4, 5]
    (lost,) = rows.exclusions
    assert (lost.count, lost.of, lost.reason) == (2, 6, "no decision (1 refused, 1 error)")
    share = UndecidedShare().measure(decisions, data)
    assert share.columns["value"].mean() == pytest.approx(2 / 6)


def test_uneven_refusals_are_found() -> None:
    rng = np.random.default_rng(1)
    members = (rng.random((4000, 2)) < 0.2).astype(bool)
    data, decisions = data_of(rng.random(4000) < 0.1, members, ("a", "b"))
    lost = rng.random(4000) < np.where(members[:, 0], 0.05, 0.002)
    decisions.outcomes[lost] = Outcome.REFUSED
    found = run(UndecidedShare(), data, decisions)
    gaps = {e.group: e for e in found if e.kind == "gap"}
    assert gaps["a"].p_adjusted is not None
    assert gaps["a"].p_adjusted < 0.001
    assert gaps["b"].p_adjusted is not None
    assert gaps["b"].p_adjusted > 0.01


def test_repeats_count_with_their_share_of_flags() -> None:
    data, _ = data_of(np.zeros(3, dtype=bool), np.ones((3, 1), dtype=bool), ("g",))
    decisions = Decisions(
        np.array([0, 0, 1, 1, 2, 7]),
        np.array([1, 0, 0, 2, 1, 1], dtype=np.int8),
        np.full(6, np.nan, dtype=np.float32),
        repeats=np.array([0, 1, 0, 1, 0, 0], dtype=np.int32),
    )
    rows = FalsePositiveRate().measure(decisions, data)
    assert rows.columns["value"].ravel().tolist() == [0.5, 0.0, 1.0]
    assert rows.exclusions[0].count == 1  # text 7 is unknown


def test_no_flag_in_a_group_has_an_upper_end() -> None:
    flags = np.arange(2000) < 200
    members = np.zeros((2000, 1), dtype=bool)
    members[1900:] = True
    data, decisions = data_of(flags, members, ("g",))
    estimate = pick(run(Suppression(), data, decisions), "g")
    closed = rate_ratio(0, 100, 200, 2000)
    assert estimate.value == 0.0
    assert estimate.interval == pytest.approx((0.0, float(closed.high)))
    assert estimate.method == "log-delta with one half added"


def test_few_flags_use_the_closed_form_and_clusters_do_not() -> None:
    flags = np.arange(2000) < 200
    members = np.zeros((2000, 1), dtype=bool)
    members[196:300] = True
    data, decisions = data_of(flags, members, ("g",))
    estimate = pick(run(Suppression(), data, decisions), "g")
    closed = rate_ratio(4, 104, 200, 2000)
    assert estimate.interval == pytest.approx((float(closed.low), float(closed.high)))
    assert estimate.note == "4 of 104 texts flagged"
    assert estimate.p_value is not None
    clusters = (np.arange(2000) % 100).astype(np.int32)
    data, decisions = data_of(flags, members, ("g",), clusters=clusters)
    clustered = pick(run(Suppression(), data, decisions), "g")
    assert clustered.unit == "cluster"
    score = cluster_score_test(flags, members[:, 0], clusters)
    assert clustered.p_value == pytest.approx(score.p)
    assert clustered.interval == pytest.approx(
        score_rate_ratio(*(count / score.effect for count in (4, 104, 196, 1896)), of_whole=True)
    )
    assert clustered.method.startswith("score")
    assert clustered.n == len(set(clusters[members[:, 0]].tolist()))
    assert "in 4 clusters" in clustered.note
    closed_p = fisher_exact([[4, 100], [196, 1700]])[1]
    assert estimate.p_value == pytest.approx(closed_p)
    data, decisions = data_of(flags, members, ("g",), clusters=np.arange(2000, dtype=np.int32))
    alone = pick(run(Suppression(), data, decisions), "g")
    assert alone.interval == pytest.approx((float(closed.low), float(closed.high)))


def test_no_event_in_a_small_group_is_not_certainty() -> None:
    flags = np.arange(2000) < 40
    members = np.zeros((2000, 2), dtype=bool)
    members[1988:, 0] = True  # 0 of 12
    members[1000:, 1] = True  # 0 of 1,000
    data, decisions = data_of(flags, members, ("small", "large"))
    found = run(FalsePositiveRate(), data, decisions)
    small, large = pick(found, "small", OUTSIDE), pick(found, "large", OUTSIDE)
    assert small.value == pytest.approx(-40 / 1988)
    assert small.interval == pytest.approx(exact_difference(0, 12, 40, 1988))
    assert small.p_value == pytest.approx(fisher_exact([[0, 12], [40, 1948]])[1])
    assert small.note == "0 of 12 texts flagged, 40 of 1,988 others flagged"
    assert small.n == 12
    assert large.p_adjusted is not None
    assert large.p_adjusted < 1e-9
    undecided = Decisions(
        decisions.ids, np.where(flags, np.int8(Outcome.REFUSED), np.int8(0)), decisions.scores
    )
    share = pick(run(UndecidedShare(), data, undecided), "small", OUTSIDE)
    assert share.p_value == small.p_value
    assert "0 of 12 texts undecided" in share.note
    clusters = (np.arange(2000) % 500).astype(np.int32)
    data, decisions = data_of(flags, members, ("small", "large"), clusters=clusters)
    for group in ("small", "large"):
        estimate = pick(run(FalsePositiveRate(), data, decisions), group, OUTSIDE)
        assert estimate.value is not None
        assert estimate.interval is not None
        assert estimate.interval[0] < estimate.value < estimate.interval[1]
        # 0 of 12 says nothing; 0 of 1,000 where 40 of 1,000 others are flagged says something.
        assert (estimate.p_value or 0) > 0.5 if group == "small" else (estimate.p_value or 1) < 1e-6


def test_every_event_in_a_group_is_not_certainty_either() -> None:
    flags = np.arange(400) < 200
    members = np.zeros((400, 1), dtype=bool)
    members[:12] = True
    estimate = pick(run(FalsePositiveRate(), *data_of(flags, members, ("g",))), "g", OUTSIDE)
    assert estimate.p_value == pytest.approx(fisher_exact([[12, 0], [188, 200]])[1])
    assert estimate.interval is not None
    assert estimate.interval[0] < 0.5 - 0.2


def test_two_flags_in_a_small_group_are_not_enough_and_none_in_a_large_one_is_found() -> None:
    flags = np.arange(5000) < 100
    members = np.zeros((5000, 4), dtype=bool)
    members[98:115, 0] = True  # 2 of 17, where 0.34 were to be expected
    members[95:115, 1] = True  # 5 of 20
    members[4000:, 2] = True  # 0 of 1,000, where 20 were to be expected
    members[4900:, 3] = True  # 0 of 100, where 2 were
    names = ("two", "five", "none", "small")
    data, decisions = data_of(flags, members, names)
    found = run(Suppression(), data, decisions)
    two, five, none, small = (pick(found, name) for name in names)
    assert two.reason.startswith("not enough data: only 2 of 17 texts flagged, at least 5 wanted")
    assert two.interval is None
    assert two.n == 17
    assert small.reason.startswith("not enough data: only 0 of 100 texts flagged")
    # Shown just because it has five flags: that alone is no evidence of its size, as the interval
    # says; that the rates differ, the gap tests without a choice.
    assert five.value == pytest.approx(5 / 20 / 0.02)
    assert five.interval is not None
    assert five.interval[0] == 0.0
    assert five.details["selected"]
    assert "5 were flagged where 0.4 were expected" in five.note
    gap = pick(run(FalsePositiveRate(), data, decisions), "five", against=OUTSIDE)
    assert gap.p_value == pytest.approx(fisher_exact([[5, 15], [95, 4885]])[1])
    assert none.value == 0.0
    assert none.p_value == pytest.approx(fisher_exact([[0, 1000], [100, 3900]])[1])
    assert none.p_adjusted is not None
    assert none.p_adjusted < 0.001
    assert {e.correction for e in found if e.p_value is not None} == {"benjamini-hochberg over 4"}


def test_flags_in_few_clusters_are_few_flags() -> None:
    flags = np.zeros(5000, dtype=bool)
    flags[::40] = True
    clusters = (np.arange(5000) // 10).astype(np.int32)
    members = np.zeros((5000, 2), dtype=bool)
    members[1000:1200, 0] = True
    flags[1000:1020] = True  # 20 and more flags, nearly all in two clusters
    members[4000:4600, 1] = True
    flags[4001:4600] = False  # one flag where fifteen were to be expected
    data, decisions = data_of(flags, members, ("few", "one"), clusters=clusters)
    estimate = pick(run(Suppression(events=7), data, decisions), "few")
    assert "in 6 clusters, at least 7 wanted" in estimate.reason
    one = pick(run(Suppression(), data, decisions), "one")
    assert one.value is not None
    assert one.interval is not None
    assert one.interval[1] < 1
    assert one.p_value is not None
    assert one.p_value < 0.05
    assert "in 1 clusters" in one.note


@pytest.mark.parametrize("size", [1, 4])
def test_no_flag_where_many_were_to_be_expected_is_a_finding(size: int) -> None:
    n = 4080
    flags = np.random.default_rng(1).random(n) < 0.1
    members = np.zeros((n, 1), dtype=bool)
    members[:136] = True
    flags[:136] = False
    clusters = None if size == 1 else (np.arange(n) // size).astype(np.int32)
    data, decisions = data_of(flags, members, ("g",), clusters=clusters)
    none = pick(run(Suppression(), data, decisions), "g")
    assert none.value == 0
    assert none.interval is not None
    assert none.interval[0] == 0
    assert none.interval[1] < 0.6
    assert none.p_value is not None
    assert none.p_value < 0.001
    level = pick(run(FalsePositiveRate(), data, decisions), "g", "")
    assert level.interval is not None
    if clusters is None:
        assert level.interval == pytest.approx([float(end) for end in wilson(0, 136)])
        assert level.method == "wilson"
    else:
        assert float(wilson(0, 136).high) <= level.interval[1] < 0.1
        assert level.method.startswith("wilson on ")
    gap = pick(run(FalsePositiveRate(), data, decisions), "g", OUTSIDE)
    assert gap.interval is not None
    assert gap.interval[1] < 0


def test_no_flag_at_all_has_a_bound() -> None:
    n = 400
    members = np.zeros((n, 1), dtype=bool)
    members[:40] = True
    clusters = (np.arange(n) // 4).astype(np.int32)
    data, decisions = data_of(np.zeros(n, dtype=bool), members, ("g",), clusters=clusters)
    found = run(FalsePositiveRate(), data, decisions)
    # Nothing shows how alike texts of a cluster are, so each cluster counts as one text.
    whole = pick(found, "", "")
    assert whole.interval == pytest.approx([float(end) for end in wilson(0, 100)])
    gap = pick(found, "g", OUTSIDE)
    assert gap.interval is None
    assert gap.p_value is None


def test_pooled_ratios_are_not_tested() -> None:
    found = run(PooledSuppression(), *from_table(PUBLISHED["openai"]))
    assert any(e.interval is not None for e in found)
    assert all(e.null is None and e.p_value is None for e in found)


def test_medians_by_another_route() -> None:
    rng = np.random.default_rng(5)
    scores = rng.random(1501).astype(np.float32)
    members = rng.random((1501, 2)) < 0.3
    data, decisions = data_of(scores > 0.9, members, ("a", "b"), scores=scores)
    found = run(MedianScore(), data, decisions)
    levels = {e.group: e.value for e in found if e.kind == "level"}
    assert levels[""] == pytest.approx(float(np.median(scores)))
    assert levels["a"] == pytest.approx(float(np.median(scores[members[:, 0]])))
    ratio = pick(run(Suppression(by="scores"), data, decisions), "b")
    expected = np.median(scores[members[:, 1]]) / np.median(scores)
    assert ratio.value == pytest.approx(float(expected))
    assert ratio.metric == "suppression by median score"


def test_median_of_zero_is_said() -> None:
    data, decisions = data_of(
        np.zeros(100, dtype=bool),
        np.ones((100, 1), dtype=bool),
        ("g",),
        scores=np.zeros(100, dtype=np.float32),
    )
    estimate = pick(run(Suppression(by="scores"), data, decisions), "g")
    assert estimate.reason == "the median score of all texts is 0"


def test_categories_are_a_choice() -> None:
    data, decisions = data_of(np.zeros(3, dtype=bool), np.ones((3, 1), dtype=bool), ("g",))
    scores = np.array([[0.1, 0.9], [0.2, np.nan], [np.nan, np.nan]], dtype=np.float32)
    decisions = Decisions(
        decisions.ids, decisions.outcomes, decisions.scores, ("hate", "health"), scores
    )
    chosen = MedianScore(categories=("hate",)).measure(decisions, data)
    assert chosen.columns["value"].ravel() == pytest.approx([0.1, 0.2])
    every = MedianScore(categories=("all",)).measure(decisions, data)
    assert every.columns["value"].ravel() == pytest.approx([0.9, 0.2])
    with pytest.raises(PlanError, match="known: hate, health"):
        MedianScore(categories=("violence",)).measure(decisions, data)


def test_the_whole_can_be_the_tagged_texts_alone() -> None:
    flags = np.array([1, 0, 0, 0], dtype=bool)
    data, decisions = data_of(flags, np.array([[1], [1], [0], [0]], dtype=bool), ("g",))
    rows = Suppression(among="identity").measure(decisions, data)
    assert rows.ids.tolist() == [0, 1]
    assert rows.exclusions[0].count == 2


def test_what_is_missing_is_said() -> None:
    data, decisions = data_of(np.zeros(3, dtype=bool), np.ones((3, 1), dtype=bool), ("g",))
    lists = Recommendations.from_lists(pl.DataFrame({"user": [1], "items": [[1]]}))
    with pytest.raises(PlanError, match="decisions, not on lists"):
        Suppression().measure(lists, data)
    with pytest.raises(PlanError, match="needs texts"):
        Suppression().measure(decisions, Dataset())
    assert data.texts is not None
    data.texts.truth[:] = 1
    with pytest.raises(PlanError, match="column 'label'"):
        Suppression().measure(decisions, data)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_ratios_are_those_of_the_counts(seed: int, n_groups: int) -> None:
    rng = np.random.default_rng(seed)
    n = 200
    flags = rng.random(n) < 0.4
    members = rng.random((n, n_groups)) < 0.4
    truth = rng.integers(-1, 2, n).astype(np.int8)
    names = tuple("abcd"[:n_groups])
    data, decisions = data_of(flags, members, names, truth)
    found = run(Suppression(), data, decisions, Settings(replicates=100))
    found += run(Suppression(against="outside"), data, decisions, Settings(replicates=100))
    negative = truth == 0
    for g, name in enumerate(names):
        inside = negative & members[:, g]
        whole, rest = flags[negative].mean(), flags[negative & ~members[:, g]].mean()
        for against, other in ((WHOLE, whole), (OUTSIDE, rest)):
            estimate = pick(found, name, against)
            if estimate.value is not None:
                assert estimate.value == pytest.approx(flags[inside].mean() / other)
                assert estimate.n >= 10


@pytest.mark.parametrize(
    "metric",
    [
        FalsePositiveRate(),
        MedianScore(categories=("hate",)),
        Suppression(by="scores"),
        UndecidedShare(),
        WorstSuppression(events=3),
        PooledSuppression(),
    ],
    ids=lambda m: m.registered_name,
)
def test_a_metric_can_be_built_again_from_its_specification(metric: object) -> None:
    spec = spec_of(metric)  # type: ignore[arg-type]
    again = registry.create("metric", spec.pop("name"), spec)
    assert again == metric


class TestFalsePositiveRate(MetricContract):
    def make(self) -> FalsePositiveRate:
        return FalsePositiveRate()


class TestUndecidedShare(MetricContract):
    def make(self) -> UndecidedShare:
        return UndecidedShare()


class TestMedianScore(MetricContract):
    def make(self) -> MedianScore:
        return MedianScore()


class TestSuppression(MetricContract):
    def make(self) -> Suppression:
        return Suppression()


def test_families_are_measured_side_by_side() -> None:
    rng = np.random.default_rng(2)
    n = 900
    flags, members = rng.random(n) < 0.3, rng.random((n, 3)) < 0.4
    data, decisions = data_of(flags, members, ("a", "b", "c"))
    assert data.texts is not None
    kinds = np.where(np.arange(n) < 500, "traditional", "generative-ai").astype(object)
    texts = Texts(data.texts.ids, data.texts.texts, data.texts.truth, families=kinds)
    data = Dataset(texts=texts, text_groups=data.text_groups)
    for metric in (Suppression, WorstSuppression, PooledSuppression, FalsePositiveRate):
        found = run(metric(families=True), data, decisions)
        alone = {}
        for kind in ("traditional", "generative-ai"):
            here = kinds == kind
            part, some = data_of(flags[here], members[here], ("a", "b", "c"))
            alone[kind] = run(metric(), part, some)
            together = [e.value for e in found if e.label == kind]
            assert together == pytest.approx([e.value for e in alone[kind]], rel=0.02)
        whole = run(metric(), data, decisions)
        assert [e.value for e in found if not e.label] == pytest.approx(
            [e.value for e in whole], rel=0.02
        )
    plain, some = data_of(flags, members, ("a", "b", "c"))
    assert Suppression(families=True).measure(some, plain).labels == ("",)
    assert plain.texts is not None
    same = Texts(
        plain.texts.ids,
        plain.texts.texts,
        plain.texts.truth,
        families=np.full(n, "x", dtype=object),
    )
    assert Suppression(families=True).measure(some, Dataset(texts=same)).labels == ("",)


def test_a_system_without_scores_says_so() -> None:
    data, decisions = data_of(
        np.arange(100) < 20,
        np.ones((100, 1), dtype=bool),
        ("g",),
        scores=np.full(100, np.nan, dtype=np.float32),
    )
    metric = Suppression(by="scores")
    _, other = data_of(np.arange(100) < 20, np.ones((100, 1), dtype=bool), ("g",))
    rows = {"none": metric.measure(decisions, data), "some": metric.measure(other, data)}
    found = estimate_metric(metric, rows, data.text_groups, QUICK)
    reasons = {e.system: e.reason for e in found if e.against == WHOLE}
    assert reasons["none"] == "the system gives no scores"
    assert reasons["some"] == ""
    assert Rows.from_frame(rows["none"].to_frame(), "text").labels == ("",)


def test_each_set_is_measured_beside_all_of_them() -> None:
    from ombud.data.texts import Texts
    from ombud.metrics.engine.text_rows import measure_texts, was_flagged

    table = {
        "id": [1, 2, 3, 4],
        "text": ["a", "b", "c", "d"],
        "label": [0, 0, 0, 0],
        "set": ["one", "one", "two", "two"],
    }
    decisions = Decisions.from_frame({"id": [1, 2, 3, 4], "flagged": [True, False, True, True]})
    rows = measure_texts(
        decisions, Dataset(texts=Texts.from_frame(table)), was_flagged, families=True
    )
    assert rows.labels == ("", "set=one", "set=two")
    assert np.nanmean(rows.columns["value"], axis=0).tolist() == [0.75, 0.5, 1.0]


def scores_mostly_zero(seed: int, positive: float, n: int = 60) -> tuple[Dataset, Decisions]:
    """Group a has scores above 0; group b has none, and no flag either."""
    rng = np.random.default_rng(seed)
    ids = np.arange(n)
    words = np.array([f"text {i}" for i in ids], dtype=object)
    texts = Texts(ids, words, np.zeros(n, dtype=np.int8))
    members = np.zeros((n, 2), dtype=bool)
    members[: round(positive * n), 0] = members[round(positive * n) :, 1] = True
    scores = np.where(members[:, 0], 0.2 + rng.random(n), 0.0).astype(np.float32)
    flags = (members[:, 0] & (rng.random(n) < 0.6)).astype(np.int8)
    groups = Grouping(Vocabulary(ids), ("a", "b"), members, ("identity",) * 2)
    return Dataset(texts=texts, text_groups=groups), Decisions(ids, flags, scores)


def test_a_median_of_all_texts_that_resampling_makes_zero_is_said() -> None:
    """By hand: 33 of 60 scores are above 0, so the median is; in about a fifth of resamples not."""
    data, decisions = scores_mostly_zero(1, 0.55)
    few = Settings(replicates=100, minimum=10, seed=2)
    for metric in (WorstSuppression(by="scores"), WorstSuppression(by="scores", among="identity")):
        rows = {"s": metric.measure(decisions, data)}
        (found,) = estimate_metric(metric, rows, data.text_groups, few)
        assert found.value is None and found.reason_code == "too-few-groups"
        assert "the median score of all texts is 0 or undefined in" in found.reason
        # By another route: the binomial chance that at most half of a resample is above 0.
        share = float(found.reason.split(" in ")[1].split("%")[0]) / 100
        assert share == pytest.approx(float(binom.cdf(29, 60, 33 / 60)), abs=0.15)
    # With more scores above 0 the group is ranked.
    data, decisions = scores_mostly_zero(1, 0.8)
    rows = {"s": WorstSuppression(by="scores").measure(decisions, data)}
    (found,) = estimate_metric(WorstSuppression(by="scores"), rows, data.text_groups, few)
    assert found.value is not None and found.details["group"] == "a"


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10_000),
    st.floats(0.1, 0.95),
    st.sampled_from(["flags", "scores"]),
    st.sampled_from([WorstSuppression, PooledSuppression]),
)
def test_a_largest_or_pooled_ratio_has_a_value_or_a_reason(
    seed: int, positive: float, by: Literal["flags", "scores"], kind: type[WorstSuppression]
) -> None:
    data, decisions = scores_mostly_zero(seed, positive)
    metric = kind(by=by)
    rows = {"s": metric.measure(decisions, data)}
    how = Settings(replicates=100, minimum=10, seed=seed)
    for found in estimate_metric(metric, rows, data.text_groups, how):
        assert (found.value is None) == bool(found.reason)
