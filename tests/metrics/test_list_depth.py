"""Lists that end before a metric stops looking."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud import registry
from ombud.audits import Audit
from ombud.audits.plan import StatisticsPlan
from ombud.data.dataset import Dataset
from ombud.data.interactions import Interactions
from ombud.data.labels import Labels
from ombud.data.recommendations import Recommendations
from ombud.errors import OmbudError
from ombud.metrics import HistoryShare, LabelShare, Recall
from ombud.metrics.engine.list_depth import list_depth
from ombud.systems import RecordedRecommendations
from ombud.systems.recommenders import Popular
from ombud.systems.rerankers import AvoidList

USERS, ITEMS = 30, 40


def _data() -> Dataset:
    rng = np.random.default_rng(5)
    rows = [(u, int(i)) for u in range(USERS) for i in rng.choice(ITEMS, 8, replace=False)]
    users, items = map(list, zip(*rows, strict=True))
    held = [k % 8 == 0 for k in range(len(rows))]

    def part(wanted: bool) -> Interactions:
        some = [k for k, h in enumerate(held) if h is wanted]
        frame = {"user": [users[k] for k in some], "item": [items[k] for k in some]}
        return Interactions.from_frame(pl.DataFrame(frame))

    labels = {"item": list(range(ITEMS)), "label": ["blood"] * ITEMS}
    present = [bool(i % 3) for i in range(ITEMS)]
    train, test = part(False), part(True)
    return Dataset(train, Labels.from_applied(labels | {"present": present}), test=test)


def _recorded(places: int) -> RecordedRecommendations:
    rows = [(u, (u + r) % ITEMS, r + 1) for u in range(USERS) for r in range(places)]
    frame = pl.DataFrame(rows, schema=["user", "item", "rank"], orient="row")
    return RecordedRecommendations(frame, name="shop")


def _run(systems, metrics):
    statistics = StatisticsPlan(replicates=100)
    return Audit(_data(), systems, metrics, statistics=statistics).run()


def test_recall_deeper_than_recorded_lists_is_undefined_with_the_reason():
    result = _run([_recorded(10)], [Recall(k=20), Recall(k=10)])
    deep, there = (e for e in result.estimates if not e.group)
    assert deep.value is None
    assert "looks at 20 places" in deep.reason and "longest list has 10" in deep.reason
    assert deep.details["longest_list"] == 10 and deep.details["shorter_lists"] == USERS
    assert there.value is not None and "shorter_lists" not in there.details


def test_a_system_with_short_lists_is_not_compared_with_one_with_long_lists():
    result = _run({"long": _recorded(20), "short": _recorded(10)}, [Recall(k=20)])
    gap = next(e for e in result.estimates if e.kind == "gap")
    assert gap.value is None and gap.reason.startswith("short: it looks at 20 places")
    level = next(e for e in result.estimates if e.system == "long" and e.kind == "level")
    assert level.value is not None


def test_a_share_of_short_lists_says_so_beside_the_number():
    result = _run([_recorded(10)], [LabelShare(k=25), HistoryShare(k=25)])
    share, history = (e for e in result.estimates if e.kind == "level" and not e.group)
    assert share.value is not None and "longest list has 10 of 25 places" in share.note
    assert share.details["places_looked_at"] == 25
    assert "longest" not in history.note  # histories have no depth


def test_lists_that_end_with_the_catalogue_are_another_case():
    popular = Popular(by="count")
    result = _run([popular], [Recall(k=ITEMS)])
    (level,) = result.estimates
    assert level.value == pytest.approx(1.0)  # everything unseen is in the list
    assert level.details["ended_lists"] == USERS and level.details["shorter_lists"] == 0
    assert "nothing unseen is left" in level.note


def test_a_reranker_that_shortens_lists_is_measured_as_it_is():
    rerank = AvoidList(_recorded(12), labels=["blood"], name="kept")
    result = _run([rerank], [Recall(k=12)])
    (level,) = result.estimates
    assert level.value is not None and level.details["shorter_lists"] == USERS


@given(st.lists(st.integers(0, 6), min_size=1, max_size=8), st.integers(1, 6))
def test_every_list_is_whole_shorter_or_ended(lengths, places):
    n = len(lengths)
    history = Interactions.from_arrays(
        [*range(n), *range(n)], [*[0] * n, *[1 + i % 5 for i in range(n)]]
    )
    items = np.full((n, 6), -1, dtype=np.int32)
    for row, length in enumerate(lengths):
        items[row, :length] = np.arange(length)
    lists = Recommendations(np.arange(n), items, history.items)
    found = list_depth(lists, Dataset(history), places)
    unseen = len(history.items) - 2
    whole = sum(length >= places for length in lengths)
    ended = sum(unseen <= length < places for length in lengths if length)
    assert found.ended == ended
    assert found.lists == sum(length > 0 for length in lengths)
    assert found.shorter == found.lists - whole - ended


class _Named:
    """A system of one's own in ombud's own form, which shows what people know."""

    name = "own"

    def recommend(self, users, n, exclude_seen=True):
        history = _data().interactions
        rows = history.users.codes(users)
        items = np.full((len(rows), n), -1, dtype=np.int32)
        for line, row in enumerate(rows):
            known = history.matrix[[row]].indices[:2]
            new = np.setdiff1d(np.arange(len(history.items)), history.matrix[[row]].indices)
            items[line] = np.concatenate([known, new])[:n]
        return Recommendations(np.asarray(users), items, history.items)


def test_seen_items_of_any_system_are_counted_beside_the_number():
    result = _run([_Named()], [LabelShare(k=5), LabelShare(k=1)])
    five, one = (e for e in result.estimates if e.kind == "level" and not e.group)
    assert (five.details["seen_places"], five.details["places"]) == (2 * USERS, 5 * USERS)
    assert (one.details["seen_places"], one.details["places"]) == (USERS, USERS)
    assert "60 of 150 places hold an item of the user's own history" in five.note


def test_every_metric_of_lists_refuses_a_depth_below_one() -> None:
    needed = {"avoid-leak": {"labels": ["violence"]}, "request-leak": {"path": "requests.csv"}}
    found = []
    for name in registry.names("metric"):
        if any(one.name == "k" for one in registry.arguments("metric", name)):
            found.append(name)
            with pytest.raises(OmbudError, match=r"k is 0; a list has at least 1 place"):
                registry.create("metric", name, needed.get(name, {}) | {"k": 0})
    assert len(found) > 15
