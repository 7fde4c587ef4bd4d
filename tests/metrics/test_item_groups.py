"""Metrics by groups of items, against the same metric on cut data."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from ombud.audits import Audit, Plan
from ombud.data import Dataset, Interactions, Items, Recommendations
from ombud.data.tables import TableOptions, read_tables
from ombud.errors import PlanError
from ombud.metrics import RMSE, Coverage, LabelShare, Recall
from ombud.metrics.engine.item_groups import measure_by_item

TRAIN = Interactions.from_frame({"user": [1, 1, 2, 2], "item": [5, 6, 5, 6], "rating": [3.0] * 4})
TEST = Interactions.from_frame(
    {"user": [1, 1, 2, 2], "item": [1, 2, 2, 3], "rating": [5.0, 4.0, 3.0, 2.0]}
)
ITEMS = Items.from_frame({"item": [1, 2, 3, 4, 5, 6], "by": ["f", "m", "f", "m", None, "f"]})
LISTS = Recommendations.from_frame(
    {"user": [1, 1, 2, 2], "item": [1, 4, 3, 2], "rank": [1, 2, 1, 2]}
)


def data() -> Dataset:
    users, items = TRAIN.users, TEST.items
    every = type(items)(np.array([1, 2, 3, 4, 5, 6]))
    return Dataset(TRAIN.over(users, every), test=TEST.over(users, every), items=ITEMS)


def test_recall_by_hand() -> None:
    rows = measure_by_item(Recall(k=2), LISTS, data(), ITEMS.grouping())
    assert rows.labels == ("", "by=f", "by=m")
    # User 1 held out 1 (f) and 2 (m), and was shown 1; user 2 held out 2 (m) and 3 (f): both shown.
    assert rows.columns["value"].tolist() == [[0.5, 1.0, 0.0], [1.0, 1.0, 1.0]]


def test_coverage_counts_the_catalogue_of_the_group() -> None:
    rows = measure_by_item(Coverage(k=2), LISTS, data(), ITEMS.grouping())
    point = [
        Coverage(k=2).statistic.point(
            np.stack([c[:, label] for c in rows.columns.values()], axis=1)
        )
        for label in range(3)
    ]
    # All: items 1 to 4 of 6; by women: 1 and 3 of 1, 3, 6; by men: 2 and 4 of 2, 4.
    assert point == pytest.approx([4 / 6, 2 / 3, 2 / 2])


def test_a_metric_of_labels_has_the_groups_among_its_labels() -> None:
    plan = Plan.from_dict(
        {
            "by_item": ["by"],
            "data": {"source": "small"},
            "systems": {"p": {"type": "popular"}},
            "metrics": [{"name": "label-share"}],
        }
    )
    labelled = Dataset(**(vars(data()) | {"labels": ITEMS.as_labels(plan.by_item)}))
    rows = measure_by_item(LabelShare(k=2), LISTS, labelled, ITEMS.grouping())
    assert rows.labels == ("by=f", "by=m")
    assert rows.columns["value"].tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_a_plan_measures_by_items(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from ombud.worlds import small_world

    world = small_world(seed=4, ratings=True)
    n = world.interactions.n_items
    Items.from_frame(
        {"item": world.interactions.items.ids, "kind": ["a", "b", "c"] * (n // 3) + ["a"] * (n % 3)}
    ).to_frame().write_parquet(tmp_path / "items.parquet")
    world.interactions.to_frame().write_parquet(tmp_path / "interactions.parquet")
    plan = Plan.from_dict(
        {
            "by_item": ["kind"],
            "data": {"interactions": "interactions.parquet", "items": "items.parquet"},
            "split": {"method": "per-user"},
            "systems": {"p": {"type": "popular"}},
            "metrics": [{"name": "recall", "k": 20}, {"name": "label-share"}, {"name": "coverage"}],
        }
    ).relative_to(tmp_path)
    result = Audit.from_plan(plan).run()
    for key in ("recall(k=20)", "coverage"):
        labels = {e.label for e in result.estimates if e.key == key and e.kind == "level"}
        assert labels == {"", "kind=a", "kind=b", "kind=c"}
    shares = [e for e in result.estimates if e.key == "label-share" and e.kind == "level"]
    assert sum(e.value or 0 for e in shares) == pytest.approx(1.0)
    assert RMSE().by_item == "held-out"
    # With labels, accuracy and coverage are measured for the crossings too.
    ids = world.interactions.items.ids
    marked = {"item": ids, "label": ["w"] * n, "state": [int(i % 2) for i in range(n)]}
    pl.DataFrame(marked).write_parquet(tmp_path / "labels.parquet")
    tables = plan.data.model_copy(update={"labels": str(tmp_path / "labels.parquet")})
    plan = plan.model_copy(update={"by_item": ("kind", "label"), "data": tables})
    result = Audit.from_plan(plan).run()
    for key in ("recall(k=20)", "coverage"):
        found = {e.label: e for e in result.estimates if e.key == key and e.kind == "level"}
        assert set(found) == {"", *(f"kind={k}{c}" for k in "abc" for c in ("", " & w"))}
    recalled = {e.label: e for e in result.estimates if e.key == "recall(k=20)" and not e.against}
    assert recalled["kind=a & w"].n < recalled["kind=a"].n < recalled[""].n


def test_a_system_may_use_columns_that_are_not_compared(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from datetime import date

    table = pl.DataFrame(
        {"item": [1, 2], "kind": ["a", "b"], "creator": ["x", "y"], "year": [1901, 1902],
         "price": [1.5, 2.5], "day": [date(2000, 1, 1)] * 2}
    )  # fmt: skip
    table.write_parquet(tmp_path / "items.parquet")
    read = read_tables({"items": tmp_path / "items.parquet"}, TableOptions(by_item=("kind",)))
    # What cannot be an attribute was not asked for, and is left alone.
    assert read["items"].attributes == ("kind", "creator", "year")
    with pytest.raises(PlanError, match="cut numbers into bands"):
        read_tables({"items": tmp_path / "items.parquet"}, TableOptions())


def test_a_plan_crosses_items_with_warnings(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from ombud.worlds import small_world

    world = small_world(seed=4, ratings=True)
    ids = world.interactions.items.ids
    genders = pl.DataFrame({"item": ids, "gender": (["f", "m"] * len(ids))[: len(ids)]})
    genders.write_parquet(tmp_path / "items.parquet")
    world.interactions.to_frame().write_parquet(tmp_path / "interactions.parquet")
    assert world.dataset.labels is not None
    world.dataset.labels.to_frame().write_parquet(tmp_path / "labels.parquet")
    plan = {
        "by_item": ["gender", "warning"],
        "data": {name: f"{name}.parquet" for name in ("interactions", "items", "labels")},
        "systems": {"p": {"type": "popular"}},
        "metrics": [{"name": "label-share"}],
        "statistics": {"replicates": 100},
    }
    result = Audit.from_plan(Plan.from_dict(plan).relative_to(tmp_path)).run()
    labels = {e.label for e in result.estimates if e.key == "label-share"}
    name = world.dataset.labels.names[0]
    assert {name, "gender=f", f"gender=f & {name}", f"gender=m & {name}"} <= labels
    genders.rename({"gender": "warning"}).write_parquet(tmp_path / "items.parquet")
    with pytest.raises(PlanError, match="the items have a column 'warning'; rename it"):
        Audit.from_plan(Plan.from_dict(plan | {"by_item": ["warning"]}).relative_to(tmp_path))
