"""Shares by hand, by brute force and by table code on other engines."""

from __future__ import annotations

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.data import Dataset, Interactions, Labels, LabelState, Recommendations
from ombud.errors import PlanError
from ombud.metrics import HistoryShare, LabelShare, ShareGap
from ombud.metrics.shares import Unknown


def small() -> tuple[Dataset, Recommendations]:
    """Three users; item 1 has the label, 2 does not, 3 is unknown, 4 has it and nobody met it."""
    interactions = Interactions.from_arrays([1, 1, 1, 2, 2, 3], [1, 2, 3, 2, 3, 3])
    labels = Labels.from_applied(
        {"item": [1, 2, 4], "label": ["w"] * 3, "present": [True, False, True]}
    )
    lists = Recommendations.from_frame(
        {"user": [1, 1, 2, 2, 3, 9], "item": [4, 2, 1, 3, 5, 1], "rank": [1, 2, 1, 2, 1, 1]}
    )
    return Dataset(interactions, labels), lists


@pytest.mark.parametrize(
    ("unknown", "listed", "history"),
    [
        ("exclude", [1 / 2, 1.0, None], [1 / 2, 0.0, None]),
        ("no", [1 / 2, 1 / 2, 0.0], [1 / 3, 0.0, 0.0]),
        ("yes", [1 / 2, 1.0, 1.0], [2 / 3, 1 / 2, 1.0]),
    ],
)
def test_by_hand(unknown: Unknown, listed: list[float], history: list[float]) -> None:
    data, lists = small()

    def values(metric: LabelShare | HistoryShare | ShareGap) -> list[float | None]:
        rows = metric.measure(lists, data)
        assert rows.ids.tolist() == [1, 2, 3] and rows.labels == ("w",)
        return [None if np.isnan(v) else float(v) for v in rows.columns["value"][:, 0]]

    assert values(LabelShare(k=2, unknown=unknown)) == pytest.approx(listed)
    assert values(HistoryShare(k=2, unknown=unknown)) == pytest.approx(history)
    gaps = [None if a is None or b is None else a - b for a, b in zip(listed, history, strict=True)]
    assert values(ShareGap(k=2, unknown=unknown)) == pytest.approx(gaps)


def test_what_is_left_out_is_counted() -> None:
    data, lists = small()
    rows = ShareGap(k=2).measure(lists.for_users([1, 2, 3, 9, 7]), data)
    reasons = {e.reason: e.count for e in rows.exclusions}
    assert reasons["no list was recommended"] == 1
    assert reasons["a list, but no history to compare it with"] == 1
    assert [c for r, c in reasons.items() if r.startswith("in no history and without labels")] == [
        1
    ]


def test_whole_numbers_and_their_words_are_the_same_ids() -> None:
    data, lists = small()
    words = lists.to_frame().with_columns(pl.col("item").cast(pl.String))
    meeting = ShareGap(k=2).measure(Recommendations.from_frame(words), data)
    plain = ShareGap(k=2).measure(lists, data)
    assert np.array_equal(meeting.columns["value"], plain.columns["value"], equal_nan=True)


def test_bad_options() -> None:
    data, lists = small()
    with pytest.raises(PlanError, match="k is 0"):
        ShareGap(k=0)
    with pytest.raises(PlanError, match="the data has no labels"):
        ShareGap().measure(lists, Dataset(data.interactions))


def random_world(seed: int) -> tuple[Dataset, Recommendations, np.random.Generator]:
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random((12, 15)) < 0.4)
    states = rng.choice([-2, -1, 0, 1], size=(15, 3)).astype(np.int8)
    interactions = Interactions.from_arrays(users, items)
    labels = Labels(Interactions.from_arrays([0] * 15, range(15)).items, ("a", "b", "c"), states)
    order = np.argsort(rng.random((12, 15)), axis=1)[:, :6]
    lists = Recommendations(np.arange(12), order.astype(np.int32), labels.items, None)
    return Dataset(interactions, labels), lists, rng


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["exclude", "no", "yes"]), st.integers(1, 6))
def test_against_a_plain_loop(seed: int, unknown: Unknown, k: int) -> None:
    data, lists, _ = random_world(seed)
    assert data.interactions is not None and data.labels is not None
    rows = ShareGap(k=k, unknown=unknown).measure(lists, data)

    def share(items: list[int], label: int) -> float:
        states = [data.labels.states[i, label] for i in items]  # type: ignore[union-attr]
        yes = sum(s == LabelState.YES for s in states)
        known = sum(s >= 0 for s in states)
        if unknown == "exclude":
            return yes / known if known else float("nan")
        extra = len(states) - known if unknown == "yes" else 0
        return (yes + extra) / len(states)

    history = data.interactions.to_frame()
    for place, user in enumerate(rows.ids.tolist()):
        met = history.filter(pl.col("user") == user)["item"].to_list()
        listed = lists.items[user, :k].tolist()
        for label in range(3):
            expected = share(listed, label) - share(met, label)
            assert rows.columns["value"][place, label] == pytest.approx(expected, nan_ok=True)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_properties(seed: int) -> None:
    data, lists, _ = random_world(seed)
    low = LabelShare(k=6, unknown="no").measure(lists, data).columns["value"]
    high = LabelShare(k=6, unknown="yes").measure(lists, data).columns["value"]
    among = LabelShare(k=6, unknown="exclude").measure(lists, data).columns["value"]
    assert np.all((low >= 0) & (high <= 1) & (low <= high))
    known = ~np.isnan(among)
    assert np.all((among[known] >= low[known] - 1e-12) & (among[known] <= high[known] + 1e-12))


def list_share_by_table(lists: object, labels: object) -> pl.DataFrame:
    """The same share as table code: join, group, mean."""
    return (
        nw.from_native(lists)  # type: ignore[call-overload]
        .lazy()
        .join(nw.from_native(labels).lazy(), on="item", how="inner")  # type: ignore[call-overload]
        .group_by("user", "label")
        .agg(nw.col("state").mean().alias("share"))
        .sort("user", "label")
        .collect(backend="polars")
        .to_native()
    )


@pytest.mark.parametrize("engine", ["polars", "pandas", "duckdb"])
def test_the_same_share_from_every_engine(engine: str) -> None:
    data, lists, _ = random_world(5)
    assert data.labels is not None
    tables = [
        lists.to_frame().select("user", "item"),
        data.labels.to_frame().filter(pl.col("state") >= 0),
    ]
    if engine == "pandas":
        tables = [pd.DataFrame(t.to_dict(as_series=False)) for t in tables]  # type: ignore[misc]
    if engine == "duckdb":
        connection = duckdb.connect()
        tables = [connection.from_arrow(t.to_arrow()) for t in tables]
    table = list_share_by_table(*tables)
    rows = LabelShare(k=6).measure(lists, data)
    for user, label, share in table.iter_rows():
        place = rows.ids.tolist().index(user)
        measured = rows.columns["value"][place, rows.labels.index(label)]
        assert measured == pytest.approx(share)
