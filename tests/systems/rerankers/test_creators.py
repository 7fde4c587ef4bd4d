"""The reranker that plans name `balanced`: identities come from the table of items."""

from __future__ import annotations

import polars as pl
import pytest

from ombud import registry
from ombud.data.dataset import Dataset
from ombud.data.interactions import Interactions
from ombud.data.items import Items
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.systems.recorded import RecordedRecommendations
from ombud.systems.rerankers import CreatorReranker

TABLE = {"item": list("abcdef"), "gender": ["m", "m", "m", "f", "f", None]}


def data(table: dict[str, list[str | None]] | None = None) -> Dataset:
    frame = pl.DataFrame(table or TABLE, schema_overrides={"item": pl.String})
    return Dataset(Interactions.from_arrays(["1"], ["z"]), items=Items.from_frame(frame))


def recorded() -> RecordedRecommendations:
    frame = pl.DataFrame({"user": ["1"] * 6, "item": list("abcdef"), "rank": range(1, 7)})
    return RecordedRecommendations.from_frame(Recommendations.from_frame(frame), "lists")


def test_a_recorded_list_is_balanced_by_the_table_of_items() -> None:
    system = CreatorReranker(recorded()).bind(data())
    lists = system.recommend(["1"], 4)
    # Equal: m, then f, then m, then f, each the best that is left.
    assert lists.to_frame()["item"].to_list() == ["a", "d", "b", "e"]
    assert system.identities == ("f", "m")


def test_a_plan_can_name_it() -> None:
    system = registry.create(
        "recommender", "balanced", {"inner": {"type": "popular"}, "attribute": "gender"}
    )
    assert isinstance(system, CreatorReranker)


@pytest.mark.parametrize(
    ("options", "table", "said"),
    [
        ({"attribute": "sex"}, None, "name one attribute"),
        ({"target": {"f": 1.0, "x": 0.0}}, None, "target names f, x; identities are f, m"),
        ({}, {"item": ["a"], "gender": ["m"]}, "a mix needs two identities; items have 1"),
    ],
)
def test_what_does_not_fit_is_refused(
    options: dict[str, object], table: dict[str, list[str | None]] | None, said: str
) -> None:
    with pytest.raises(PlanError, match=said):
        CreatorReranker(recorded(), **options).bind(data(table))  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="needs a table of items"):
        CreatorReranker(recorded()).bind(Dataset())
