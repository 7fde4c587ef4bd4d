"""Second lists: new creators of identities a user rarely reads; by hand, by a plain loop."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from ombud import registry
from ombud.data.dataset import Dataset
from ombud.data.interactions import Interactions
from ombud.data.items import Items
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.systems.recorded import RecordedRecommendations
from ombud.systems.rerankers import NewCreators
from ombud.systems.rerankers.second import second_list

TABLE = {
    "item": list("abcdefgh"),
    "author": ["A", "B", "C", "C", "D", None, "E", "B"],
    "gender": ["m", "f", "f", "f", "m", "f", "f", "f"],
}


def data() -> Dataset:
    histories = [("1", "a"), ("1", "h"), ("1", "e"), ("2", "z"), ("3", "b"), ("3", "g")]
    users, items = zip(*histories, strict=True)
    return Dataset(
        Interactions.from_arrays(list(users), list(items)),
        items=Items.from_frame(pl.DataFrame(TABLE)),
    )


def recorded() -> RecordedRecommendations:
    rows = [(u, i, r + 1) for u in "123" for r, i in enumerate("abcdefg")]
    frame = pl.DataFrame(rows, schema=["user", "item", "rank"], orient="row")
    return RecordedRecommendations.from_frame(Recommendations.from_frame(frame), "lists")


def test_second_lists_by_hand() -> None:
    system = NewCreators(recorded(), "author", shown=1).bind(data())
    lists = system.recommend(["1", "2", "3"], 3)
    by_user = {u: f["item"].to_list() for (u,), f in lists.to_frame().group_by("user")}
    # 1 has m, m, f: f is below one half. B was read; C once; f has no author; so c and g.
    assert by_user["1"] == ["c", "g"]
    # 3 read f alone: m is below; a is in the main list, so D alone.
    assert by_user["3"] == ["e"]
    assert "2" not in by_user
    assert [(e.count, e.reason[:10]) for e in lists.exclusions] == [(1, "no item of")]
    assert system.attribute == "gender"


def test_equal_to_a_plain_loop() -> None:
    rng = np.random.default_rng(2)
    n_items, n_users = 60, 25
    author, gender = rng.integers(-1, 15, n_items), rng.integers(-1, 3, n_items)
    pairs = [(u, i) for u in range(n_users) for i in rng.choice(n_items, 6, replace=False)]
    interactions = Interactions.from_arrays(*map(list, zip(*pairs, strict=True)))
    ranks = np.stack([rng.permutation(n_items)[:40] for _ in range(n_users)])
    items = Items.from_frame(pl.DataFrame({"item": np.arange(n_items), "x": ["-"] * n_items})).items
    rows = [(u, int(i), r + 1) for u in range(n_users) for r, i in enumerate(ranks[u])]
    frame = pl.DataFrame(rows, schema=["user", "item", "rank"], orient="row")
    lists = Recommendations.from_frame(frame)
    target = np.array([0.5, 0.3, 0.2])
    found = second_list(lists, 10, items, author, gender, interactions, target, 5).to_frame()
    for user in range(n_users):
        own = [i for u, i in pairs if u == user]
        known = [gender[i] for i in own if gender[i] >= 0]
        read = {author[i] for i in own}
        expected: list[int] = []
        for i in ranks[user][10:].tolist():
            low = (
                known and gender[i] >= 0 and known.count(gender[i]) / len(known) < target[gender[i]]
            )
            if low and author[i] >= 0 and author[i] not in read and len(expected) < 5:
                expected.append(i)
                read.add(author[i])
        assert found.filter(pl.col("user") == user)["item"].to_list() == expected


def test_what_does_not_fit_is_refused() -> None:
    made = registry.create(
        "recommender", "new-creators", {"inner": {"type": "popular"}, "creator": "author"}
    )
    assert isinstance(made, NewCreators)
    with pytest.raises(PlanError, match="needs interactions"):
        made.recommend(["1"], 2)
    with pytest.raises(PlanError, match="items have no 'writer'; they have author, gender"):
        NewCreators(recorded(), "writer").bind(data())
    with pytest.raises(PlanError, match="the profile itself"):
        NewCreators(recorded(), "author", target="profile")
    with pytest.raises(PlanError, match="shown is 0"):
        NewCreators(recorded(), "author", shown=0)
