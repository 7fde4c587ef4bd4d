from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.audits.audit import Audit
from ombud.data.avoid_lists import Avoided
from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.ids import Vocabulary
from ombud.data.interactions import Interactions
from ombud.data.labels import Labels
from ombud.data.recommendations import Recommendations
from ombud.data.splits import per_user
from ombud.errors import DataError, PlanError
from ombud.metrics.accuracy.ranking import HitRate, Recall
from ombud.questions.warnings.avoidance import AvoidLeak
from ombud.registry import create
from ombud.systems.base import Recommender
from ombud.systems.recommenders import Popular
from ombud.systems.rerankers import AvoidList
from ombud.systems.rerankers.avoid import avoid
from ombud.worlds import small_world

UNKNOWN = ("allow", "demote", "remove")


@pytest.fixture
def labels() -> Labels:
    return Labels.from_states(
        {
            "item": ["a", "b", "c", "d", "a", "b"],
            "label": ["blood"] * 4 + ["spiders"] * 2,
            "state": [1, 0, -1, 0, 0, 1],
        }
    )


@pytest.fixture
def lists() -> Recommendations:
    rows = {"user": ["u"] * 5 + ["v"] * 5, "item": list("abcde") * 2, "score": [5, 4, 3, 2, 1] * 2}
    return Recommendations.from_frame(rows)


def shown(lists: Recommendations, user: str) -> list[str]:
    return lists.for_users([user]).to_frame()["item"].to_list()


def test_what_is_avoided_goes_and_unknowns_as_chosen(
    lists: Recommendations, labels: Labels
) -> None:
    avoided = Avoided.of({"u": ["blood"], "v": ["blood", "spiders"]})
    # blood: a yes, b no, c disputed, d no, e unlabelled. spiders: a no, b yes, others unknown.
    expected: dict[str, tuple[list[str], list[str]]] = {
        "allow": (list("bcde"), list("cde")),
        "demote": (list("bdce"), list("cde")),
        "remove": (list("bd"), []),
    }
    for unknown, (u, v) in expected.items():
        kept = avoid(lists, labels, avoided, unknown=unknown)  # type: ignore[arg-type]
        assert (shown(kept, "u"), shown(kept, "v")) == (u, v)
        assert kept.scores is not None and np.isnan(kept.scores[kept.items < 0]).all()
    cut = avoid(lists, labels, avoided, n=2)
    assert cut.items.shape == (2, 2) and shown(cut, "u") == ["b", "c"]


def test_users_who_avoid_nothing_keep_their_lists(lists: Recommendations, labels: Labels) -> None:
    kept = avoid(lists, labels, Avoided.of({"u": ["blood"]}), unknown="remove")
    assert shown(kept, "v") == list("abcde")


def test_faults(lists: Recommendations, labels: Labels) -> None:
    with pytest.raises(DataError, match="'blod' is avoided"):
        avoid(lists, labels, Avoided.of(everyone=["blod"]))
    with pytest.raises(PlanError, match="unknown is 'keep'"):
        avoid(lists, labels, Avoided.of(everyone=["blood"]), unknown="keep")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="names nothing"):
        AvoidList(Popular())
    with pytest.raises(PlanError, match="before bind"):
        AvoidList(Popular(), labels=["blood"]).recommend(["u"], 3)
    with pytest.raises(PlanError, match="inner has no type"):
        AvoidList({}, labels=["blood"])


class Ordered(Recommender):
    """Recommends all items in the order of their ids, and remembers how much it was asked."""

    name = "ordered"

    def __init__(self, items: int) -> None:
        self.items = items
        self.asked: list[tuple[int, int]] = []

    def recommend(self, users: Any, n: int, exclude_seen: bool = True) -> Recommendations:
        self.asked.append((len(users), n))
        n = min(n, self.items)
        codes = np.tile(np.arange(n, dtype=np.int32), (len(users), 1))
        return Recommendations(np.asarray(users), codes, Vocabulary(np.arange(self.items)))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(UNKNOWN), st.integers(1, 8))
def test_nothing_known_slips_through_and_lists_stay_full(seed: int, unknown: Any, n: int) -> None:
    rng = np.random.default_rng(seed)
    items, users = 40, 6
    pairs = [(i, w) for i in range(items) for w in ("a", "b", "c")]
    item, label = zip(*pairs, strict=True)
    labels = Labels.from_states(
        {"item": item, "label": label, "state": rng.choice([-2, -1, 0, 1], len(pairs))}
    )
    named = {
        u: list(rng.choice(["a", "b", "c"], rng.integers(0, 3), replace=False))
        for u in range(users)
    }
    inner = Ordered(items)
    system = AvoidList(inner, labels=["a"], by_user=named, unknown=unknown, most=1000)
    data = Dataset(Interactions.from_arrays([0], [0]), labels)
    found = system.bind(data).recommend(np.arange(users), n)
    states = {(i, w): s for (i, w), s in zip(pairs, labels.states.ravel(), strict=True)}
    for row, user in zip(found.items, range(users), strict=True):
        wanted = {"a", *named[user]}
        chosen = found.catalogue.take(row[row >= 0]).tolist()
        assert len(set(chosen)) == len(chosen)
        assert not any(states[i, w] == 1 for i in chosen for w in wanted)
        free = [i for i in range(items) if not any(states[i, w] == 1 for w in wanted)]
        known = [i for i in free if not any(states[i, w] < 0 for w in wanted)]
        expected = {
            "allow": free,
            "remove": known,
            "demote": known + [i for i in free if i not in known],
        }[unknown]
        assert chosen == expected[:n]


def test_only_users_with_short_lists_are_asked_again(labels: Labels) -> None:
    inner = Ordered(30)
    states = Labels.from_states({"item": range(10), "label": ["w"] * 10, "state": [1] * 10})
    system = AvoidList(inner, by_user={1: ["w"]}, most=20)
    data = Dataset(Interactions.from_arrays([0], [0]), states)
    found = system.bind(data).recommend([0, 1, 2], 4)
    assert found.catalogue.take(found.items[1]).tolist() == [10, 11, 12, 13]
    assert all(found.catalogue.take(found.items[u]).tolist() == [0, 1, 2, 3] for u in (0, 2))
    assert inner.asked == [(3, 4), (1, 8), (1, 16)]


def test_a_cap_leaves_the_list_short() -> None:
    states = Labels.from_states({"item": range(10), "label": ["w"] * 10, "state": [1] * 10})
    system = AvoidList(Ordered(30), labels=["w"], most=2)
    data = Dataset(Interactions.from_arrays([0], [0]), states)
    assert system.bind(data).recommend([0], 6).lengths.tolist() == [2]


def test_lists_that_were_shortened_or_emptied_are_counted_with_the_cause() -> None:
    states = Labels.from_states({"item": range(10), "label": ["w"] * 10, "state": [1] * 10})
    data = Dataset(Interactions.from_arrays([0], [0]), states)

    def lost(items: int, most: int, n: int) -> list[str]:
        system = AvoidList(Ordered(items), by_user={1: ["w"], 2: ["w"]}, most=most)
        found = system.bind(data).recommend([0, 1, 2], n)
        assert found.lengths[0] == min(n, items)  # who avoids nothing loses nothing
        assert all(e.where == "avoid list" and e.of == 3 for e in found.exclusions)
        return [f"{e.count} {e.reason}" for e in found.exclusions]

    nothing_more = "because the recommender had nothing more that the user does not avoid"
    cap = "because it is asked for at most 2 times the length of the list"
    assert lost(30, 20, 6) == []
    assert lost(30, 2, 6) == [f"2 shortened {cap}"]
    assert lost(30, 2, 4) == [f"2 emptied {cap}"]
    assert lost(12, 20, 6) == [f"2 shortened {nothing_more}"]
    assert lost(10, 20, 6) == [f"2 emptied {nothing_more}"]
    # A list that was short to begin with was not shortened by the avoid list.
    short = AvoidList(Ordered(3), by_user={1: ["x"]})
    none = Labels.from_states({"item": [20], "label": ["x"], "state": [1]})
    bound = short.bind(Dataset(Interactions.from_arrays([0], [0]), none))
    assert bound.recommend([0, 1], 6).exclusions == ()


def test_what_the_inner_recommender_left_out_stays_counted_once() -> None:
    states = Labels.from_states({"item": range(10), "label": ["w"] * 10, "state": [1] * 10})
    gone = Exclusion("inner", "users", 1, "unknown", 3)

    class Leaving(Ordered):
        def recommend(self, users: Any, n: int, exclude_seen: bool = True) -> Recommendations:
            return replace(super().recommend(users, n, exclude_seen), exclusions=(gone,))

    system = AvoidList(Leaving(30), by_user={1: ["w"]})
    data = Dataset(Interactions.from_arrays([0], [0]), states)
    assert system.bind(data).recommend([0, 1, 2], 4).exclusions == (gone,)


def test_in_an_audit_nothing_leaks_and_the_price_is_paired() -> None:
    """The whole story: train both, verify the avoid list, and give the accuracy lost."""
    world = small_world(8)
    parts = per_user(world.interactions, share=0.3, seed=1)
    data = Dataset(parts.train, world.dataset.labels, test=parts.test)
    inner = {"type": "popular"}
    systems: dict[str, Any] = {
        "as it is": create("recommender", "popular"),
        "avoiding": create("recommender", "avoid-list", {"inner": inner, "labels": ["violence"]}),
    }
    assert isinstance(systems["avoiding"], Recommender) and systems["avoiding"].trainable
    metrics = [AvoidLeak(k=20, labels=("violence",)), Recall(k=20)]
    result = Audit(data, systems, metrics).run()
    leak = {e.system: e for e in result.select(metric="avoid leak@20", kind="level", group="")}
    assert leak["as it is"].value is not None and leak["as it is"].value > 0
    assert leak["avoiding"].value == 0.0
    assert leak["avoiding"].note.startswith(f"0 of {300 * 20:,} places of 300 users")
    (lost,) = [e for e in result.select(metric="recall@20", kind="gap") if not e.group]
    assert (lost.system, lost.against) == ("as it is", "avoiding")
    assert lost.value is not None and lost.interval is not None
    assert lost.interval[0] < lost.value < lost.interval[1]
    # Paired: both systems share most of their lists, so the gap is known better than its parts.
    levels = [e for e in result.select(metric="recall@20", kind="level") if not e.group]
    widths = [e.interval[1] - e.interval[0] for e in levels if e.interval is not None]
    assert lost.interval[1] - lost.interval[0] < np.hypot(*widths)
    assert HitRate(k=20).depth == 20


def test_leak_counts_by_hand(lists: Recommendations, labels: Labels, tmp_path: Any) -> None:
    path = tmp_path / "avoided.csv"
    path.write_text("user,label\nu,blood\nu,spiders\n")
    data = Dataset(Interactions.from_arrays(["u"], ["a"]), labels)
    rows = AvoidLeak(k=3, path=path).measure(lists, data)
    # u sees a (blood), b (spiders), c (disputed); v avoids nothing.
    assert rows.ids.tolist() == ["u"]
    assert (rows.columns["numerator"][0, 0], rows.columns["denominator"][0, 0]) == (2, 3)
    assert "2 of 3 places of 1 users carry" in rows.notes[""] and "of 1 it is not" in rows.notes[""]
    assert [(e.count, e.reason) for e in rows.exclusions] == [(1, "they avoid nothing")]
    with pytest.raises(PlanError, match="needs labels, or a path"):
        AvoidLeak()
