"""Blocks of units merge to what all units at once give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary, hash_ids
from ombud.data.interactions import Interactions
from ombud.data.recommendations import Recommendations
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.metrics import Gini, LabelShare, MedianScore, ShareGap
from ombud.metrics.accuracy.ranking import F1, NDCG
from ombud.metrics.base import Metric
from ombud.metrics.calibration import Miscalibration
from ombud.metrics.engine.blocks import BlockSums, block_fault
from ombud.metrics.engine.estimate import estimate_metric
from ombud.metrics.engine.estimator import Settings
from ombud.metrics.rates import FalsePositiveRate, UndecidedShare
from ombud.questions.authors.metrics import ListBalance
from ombud.questions.suppression.metrics import Suppression, WorstSuppression
from ombud.questions.warnings.amplification.metric import Amplification, UserAmplification
from ombud.stats.estimate import Estimate
from ombud.worlds import small_world

SETTINGS = Settings(replicates=200)
RECOMMENDED: list[Metric] = [
    LabelShare(k=5),
    ShareGap(k=10),
    Amplification(k=10),
    Amplification(k=10, form="ratio-of-means", unknown="exclude"),
    UserAmplification(k=10, form="log-ratio"),
    NDCG(k=10),
    F1(k=10, average="means"),
    Miscalibration(k=10),
]


@pytest.fixture(scope="module")
def lists() -> tuple[Dataset, dict[str, Recommendations]]:
    """A world with held-out items, and two systems of which one has no list for some users."""
    world = small_world(seed=3)
    data, rng = world.dataset, np.random.default_rng(1)
    table = data.interactions
    assert table is not None
    held = rng.random(len(table)) < 0.2
    data = replace(data, interactions=table.select(~held), test=table.select(held))
    systems = {}
    for name, share in (("one", 1.0), ("other", 0.9)):
        codes = rng.permuted(np.tile(np.arange(len(table.items)), (table.n_users, 1)), axis=1)
        codes = codes[:, :12].astype(np.int32)
        codes[rng.random(table.n_users) > share] = -1
        systems[name] = Recommendations(table.users.ids, codes, table.items)
    return data, systems


def in_blocks(
    metric: Metric, data: Dataset, systems: dict[str, Recommendations], blocks: list[np.ndarray]
) -> BlockSums:
    """Each block knows of its own users alone, and goes through bytes, as between machines."""
    assert data.interactions is not None and data.users is not None
    whole = BlockSums(metric, list(systems), data.users, seed=0)
    for users in blocks:
        part = _of_users(data, users)
        sums = BlockSums(metric, list(systems), data.users, seed=0)
        rows = {name: metric.measure(s.for_users(users), part) for name, s in systems.items()}
        sums.add(rows, part.users, asked=len(users))
        again = BlockSums(metric, list(systems), data.users, seed=0)
        again.restore(sums.to_bytes())
        whole.merge(again)
    return whole


def _of_users(data: Dataset, users: np.ndarray) -> Dataset:
    def cut(table: Interactions | None) -> Interactions | None:
        if table is None:
            return None
        rows = table.users.codes(users)
        return replace(table, users=Vocabulary(users), matrix=table.matrix[rows])

    groups = data.users
    assert groups is not None
    there = Grouping(Vocabulary(users), groups.names, groups.aligned(users), groups.attributes)
    return replace(data, interactions=cut(data.interactions), test=cut(data.test), users=there)


def same_but_for_chance(one: list[Estimate], other: list[Estimate]) -> None:
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        about = ("metric", "key", "system", "label", "group", "against", "kind", "n", "reason")
        assert [getattr(a, f) for f in about] == [getattr(b, f) for f in about]
        if a.value is None or "attribute-gap" in a.key:
            continue
        assert b.value == pytest.approx(a.value, abs=1e-12)
        assert (a.interval is None) == (b.interval is None)
        assert a.note == b.note
        # Why there is no tipping point stands beside clear differences, which chance decides.
        assert a.details.keys() ^ b.details.keys() <= {"no_tipping"}


@pytest.mark.parametrize("metric", RECOMMENDED, ids=lambda m: m.title)
def test_blocks_give_the_numbers_of_the_whole(lists, metric: Metric):
    data, systems = lists
    assert block_fault(metric, ["interactions", "test"]) == ""
    users = np.random.default_rng(2).permutation(data.interactions.users.ids)
    rows = {name: metric.measure(s, data) for name, s in systems.items()}
    merged = in_blocks(metric, data, systems, np.array_split(users, 4))
    same_but_for_chance(
        estimate_metric(metric, rows, data.users, SETTINGS), merged.estimates(SETTINGS)
    )
    told = {(e.system, e.what, e.reason): (e.count, e.of) for e in merged.exclusions()}
    for name, measured in rows.items():
        for e in measured.exclusions:
            assert told[name, e.what, e.reason] == (e.count, e.of)


@settings(max_examples=4)
@given(st.integers(0, 2**32), st.integers(2, 6))
def test_any_split_in_any_order_is_the_same(lists, seed: int, blocks: int):
    data, systems = lists
    rng = np.random.default_rng(seed)
    users = data.interactions.users.ids
    cuts = np.sort(rng.integers(len(users), size=blocks - 1))
    metric = Amplification(k=10, form="ratio-of-means")
    whole = in_blocks(metric, data, systems, [users]).estimates(SETTINGS)
    merged = in_blocks(metric, data, systems, np.split(rng.permutation(users), cuts))
    parts = merged.estimates(SETTINGS)
    for a, b in zip(whole, parts, strict=True):
        assert (a.value is None) == (b.value is None)
        if a.interval is not None:
            ends = (a.value, *a.interval, a.p_value or 0, a.n)
            assert (b.value, *b.interval, b.p_value or 0, b.n) == pytest.approx(ends, abs=1e-9)


def _texts(clustered: bool) -> tuple[Dataset, dict[str, Decisions]]:
    rng = np.random.default_rng(4)
    n = 900
    ids = np.array([f"t{i}" for i in range(n)])
    truth = (rng.random(n) < 0.2).astype(int)
    frame = {"id": ids, "text": ids, "label": truth}
    if clustered:
        frame["cluster"] = rng.integers(60, size=n)
    texts = Texts.from_frame(frame)
    groups = Grouping.from_values(ids, {"named": rng.choice(["a", "b", "c", None], n)})
    outcomes = rng.choice(["flagged", "allowed", "refused", "error"], n, p=[0.05, 0.85, 0.06, 0.04])
    outcomes[(groups.members[:, 0])[groups.units.codes(ids)] & (rng.random(n) < 0.1)] = "flagged"
    systems = {"mine": Decisions.from_frame({"id": ids, "outcome": outcomes})}
    return Dataset(texts=texts, text_groups=groups), systems


@pytest.mark.parametrize("clustered", [False, True], ids=["alone", "clusters"])
@pytest.mark.parametrize(
    "metric",
    [
        FalsePositiveRate(),
        UndecidedShare(),
        Suppression(),
        Suppression(against="outside"),
        WorstSuppression(),
    ],
    ids=lambda m: m.title,
)
def test_texts_in_blocks_give_the_numbers_of_the_whole(metric: Metric, clustered: bool):
    data, systems = _texts(clustered)
    texts, groups, decisions = data.texts, data.text_groups, systems["mine"]
    rows = {"mine": metric.measure(decisions, data)}
    whole = estimate_metric(metric, rows, groups, SETTINGS)
    sums = BlockSums(metric, ["mine"], groups, seed=0)
    code = texts.clusters if clustered else np.arange(len(texts))
    for part in range(3):
        kept = np.flatnonzero(code % 3 == part)
        some = replace(data, texts=_rows(texts, kept))
        at = np.flatnonzero(np.isin(decisions.ids, texts.ids[kept]))
        said = replace(decisions, ids=decisions.ids[at], outcomes=decisions.outcomes[at],
                       scores=decisions.scores[at])  # fmt: skip
        keys = (Vocabulary(texts.ids[kept]), hash_ids(code[kept])) if clustered else None
        sums.add({"mine": metric.measure(said, some)}, groups, asked=len(kept), keys=keys)
    found = sums.estimates(SETTINGS)
    same_but_for_chance(whole, found)
    for a, b in zip(whole, found, strict=True):
        if a.value is not None and (
            "exact" in a.method or "wilson" in a.method or "score" in a.method
        ):
            assert b.interval == pytest.approx(a.interval, abs=1e-9)
            assert b.p_value == pytest.approx(a.p_value, abs=1e-9)
    told = {(e.what, e.reason, e.count, e.of) for e in sums.exclusions()}
    assert told == {(e.what, e.reason, e.count, e.of) for e in rows["mine"].exclusions}


def _rows(texts: Texts, kept: np.ndarray) -> Texts:
    clusters = None if texts.clusters is None else texts.clusters[kept]
    return replace(texts, ids=texts.ids[kept], texts=texts.texts[kept], truth=texts.truth[kept],
                   clusters=clusters)  # fmt: skip


@pytest.mark.parametrize(
    ("metric", "why"),
    [
        (Amplification(form="median"), "no function of sums"),
        (MedianScore(), "no function of sums"),
        (Amplification(votes="probability"), "keeps draws of all users"),
        (Gini(), "no function of sums"),
        (FalsePositiveRate(families=True), "what all texts together have"),
        (ListBalance(), "held out"),
    ],
    ids=lambda part: part if isinstance(part, str) else part.title,
)
def test_what_does_not_merge_says_why(metric: Metric, why: str):
    assert why in block_fault(metric, ["interactions", "test", "items"])


def test_a_median_in_blocks_is_refused():
    with pytest.raises(PlanError, match="needs all units at once"):
        BlockSums(Amplification(form="median"), ["one"], None, seed=0)


def test_both_levels_make_the_value_and_events_are_the_same_in_blocks(lists):
    data, systems = lists
    users = data.interactions.users.ids
    for metric in (ShareGap(k=10), Amplification(k=10, form="ratio-of-means"), NDCG(k=10)):
        rows = {name: metric.measure(s, data) for name, s in systems.items()}
        whole = estimate_metric(metric, rows, data.users, SETTINGS)
        parts = in_blocks(metric, data, systems, np.array_split(users, 3)).estimates(SETTINGS)
        for a, b in zip(whole, parts, strict=True):
            assert a.events == b.events
            assert a.events is not None
            told = [a.details.get(name) for name in ("level", "other_level")]
            if a.value is None or (a.kind == "level" and metric.sides is None):
                continue
            ratio = isinstance(metric, Amplification) and a.kind == "level"
            made = told[0] / told[1] - 1 if ratio else told[0] - told[1]
            assert made == pytest.approx(a.value, abs=1e-12)
            for name, value in a.details.items():
                if isinstance(value, float) and "attribute-gap" not in a.key:
                    assert b.details[name] == pytest.approx(value, abs=1e-12)


def test_a_group_has_its_own_history_beside_its_gap(lists):
    data, systems = lists
    metric = ShareGap(k=10)
    rows = {name: metric.measure(s, data) for name, s in systems.items()}
    found = estimate_metric(metric, rows, data.users, SETTINGS)
    member = data.users.aligned(rows["one"].ids)
    for e in found:
        if e.system != "one" or not e.group or e.kind != "level" or e.value is None:
            continue
        inside = member[:, data.users.names.index(e.group)]
        label = rows["one"].labels.index(e.label)
        known = inside & ~np.isnan(rows["one"].columns["value"][:, label])
        own = rows["one"].context["history"][known, label].mean()
        assert e.details["history"] == e.details["other_level"] == pytest.approx(own)
        assert e.details["lists"] == e.details["level"]
    gaps = [e for e in found if e.group and e.kind == "gap" and e.value is not None]
    assert gaps
    assert all({"other_history", "other_lists"} <= e.details.keys() for e in gaps
               if "attribute-gap" not in e.key)  # fmt: skip


@pytest.mark.parametrize("against", ["all", "outside"])
def test_suppression_tells_the_rates_of_the_group_of_all_and_of_others(against: str):
    data, systems = _texts(clustered=False)
    metric = Suppression(against=against)
    rows = {"mine": metric.measure(systems["mine"], data)}
    found = [e for e in estimate_metric(metric, rows, data.text_groups, SETTINGS) if e.value]
    assert found
    for e in found:
        told = e.details
        assert told["level"] / told["other_level"] == pytest.approx(e.value)
        assert told["level"] == pytest.approx(told["events"] / told["texts"])
        assert told["other_level"] == pytest.approx(told["other_events"] / told["other_texts"])
        assert e.events == told["events"]
        assert ("outside_level" in told) == (against == "all")
        if against == "all":
            others = told["other_events"] - told["events"]
            assert told["outside_level"] == pytest.approx(
                others / (told["other_texts"] - told["texts"])
            )
