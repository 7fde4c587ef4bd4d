"""Attributes of items, their groups, and their crossings with labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.data import Dataset, Interactions, Items, Labels, LabelState
from ombud.data.tables import TableOptions, read_tables, write_tables
from ombud.errors import DataError, OmbudError

BOOKS = {
    "item": [1, 2, 3],
    "gender": ["f", "m", None],
    "gender_status": ["linked", "linked", "ambiguous"],
    "genre": ["sf", "sf", "crime"],
}


def test_values_and_status_are_read() -> None:
    items = Items.from_frame(BOOKS)
    assert items.attributes == ("gender", "genre")
    assert items.values["gender"].tolist() == ["f", "m", None]
    assert items.status["gender"].tolist() == ["linked", "linked", "ambiguous"]
    assert items.status["genre"].tolist() == ["known"] * 3
    again = Items.from_frame(items.to_frame())
    assert again.to_frame().equals(items.to_frame())


def test_groups_become_labels_with_three_states() -> None:
    labels = Items.from_frame(BOOKS).as_labels(["gender"])
    assert labels.names == ("gender=f", "gender=m")
    unknown = LabelState.UNKNOWN
    assert labels.states.tolist() == [[1, 0], [0, 1], [unknown, unknown]]


def test_groups_are_crossed_with_labels() -> None:
    content = Labels.from_states({"item": [1, 2, 3, 4], "label": ["w"] * 4, "state": [1, 0, 0, 1]})
    labels = Items.from_frame(BOOKS).as_labels(["gender", "label"], content)
    column = {name: labels.states[:, i].tolist() for i, name in enumerate(labels.names)}
    unknown = LabelState.UNKNOWN
    assert column["w"] == [1, 0, 0, 1]
    # Nobody knows who wrote 3: it is in no crossing's denominator, though it has not w.
    assert column["gender=f & w"] == [1, 0, unknown, unknown]
    assert column["gender=m & w"] == [0, 0, unknown, unknown]
    items = Items.from_frame(BOOKS)
    groups = items.crossed(items.grouping(["gender"]), labels)
    assert groups.names == ("gender=f", "gender=m", "gender=f & w", "gender=m & w")
    assert groups.attributes == ("gender", "gender", "gender & label", "gender & label")
    assert groups.members.astype(int).tolist() == [[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]


@given(st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from([1, 0])), min_size=4))
def test_a_crossing_is_never_more_than_either(rows: list[tuple[str | None, int]]) -> None:
    ids = list(range(len(rows)))
    if len({value for value, _ in rows} - {None}) == 0:
        return
    items = Items.from_frame({"item": ids, "kind": [value for value, _ in rows]})
    content = Labels.from_states(
        {"item": ids, "label": ["w"] * len(ids), "state": [state for _, state in rows]}
    )
    labels = items.as_labels(["kind", "label"], content)
    at = {name: labels.states[:, i] for i, name in enumerate(labels.names)}
    for name in labels.names:
        if " & " in name:
            one, other = name.split(" & ")
            yes = at[name] == 1
            assert (yes <= ((at[one] == 1) & (at[other] == 1))).all()
    # Crossings of a label add up to the label, among items whose group is known.
    known = np.array([value is not None for value, _ in rows])
    crossings = [at[name] == 1 for name in labels.names if " & " in name]
    assert (sum(crossings)[known] == (at["w"] == 1)[known]).all()  # type: ignore[index]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"item": [1, 1], "g": ["a", "b"]}, "the same item again"),
        ({"item": [1, 2]}, "no attribute"),
        ({"item": [1, 2], "g": [0.5, 1.5]}, "bands"),
    ],
)
def test_faults(table: dict[str, list[object]], said: str) -> None:
    with pytest.raises(DataError, match=said):
        Items.from_frame(table)


def test_items_that_match_nothing_are_refused() -> None:
    histories = Interactions.from_frame({"user": [1, 2], "item": [7, 8]})
    with pytest.raises(DataError, match="none of its ids"):
        _ = Dataset(histories, items=Items.from_frame(BOOKS)).exclusions
    partly = Interactions.from_frame({"user": [1, 2], "item": [1, 8]})
    said = [str(e) for e in Dataset(partly, items=Items.from_frame(BOOKS)).exclusions]
    assert any("occur in no history" in text for text in said)
    assert any("in no row of the table of items" in text for text in said)


def test_every_table_is_written_and_read_by_one_road(tmp_path: Path) -> None:
    from ombud.worlds import small_world

    world = small_world(seed=2)
    items = Items.from_frame(
        pl.DataFrame(
            {
                "item": world.interactions.items.ids,
                "kind": ["a", "b"] * (world.interactions.n_items // 2)
                + ["a"] * (world.interactions.n_items % 2),
            }
        )
    )
    data = Dataset(**(vars(world.dataset) | {"items": items}))
    paths = write_tables(data, tmp_path)
    assert set(paths) == {"interactions", "labels", "items", "users", "texts", "text_groups"}
    again = read_tables(paths)
    for name in paths:
        one, other = getattr(data, name), again[name]
        if name in {"users", "text_groups"}:
            assert (
                one.to_members()
                .sort("user", "group")
                .equals(other.to_members().sort("user", "group"))
            )
        else:
            keys = [c for c in ("user", "item", "label", "id") if c in one.to_frame().columns]
            assert one.to_frame().sort(keys).equals(other.to_frame().sort(keys), null_equal=True)


def test_labels_that_only_say_yes_need_a_word(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("item,label\n1,w\n2,w\n")
    with pytest.raises(OmbudError, match="what a missing row means"):
        read_tables({"labels": path})
    labels = read_tables({"labels": path}, TableOptions(unlabeled="no"))["labels"]
    assert labels.rule == "as applied; unlabeled counts as no"


def test_sets_of_interactions_are_groups_of_users(tmp_path: Path) -> None:
    path, users = tmp_path / "i.csv", tmp_path / "u.csv"
    path.write_text("user,item,set\n1,1,films\n1,2,films\n2,1,books\n3,4,books\n")
    alone = read_tables({"interactions": path})["users"]
    assert alone.names == ("set=films", "set=books")
    assert alone.aligned([1, 2, 3]).tolist() == [[True, False], [False, True], [False, True]]
    users.write_text("user,gender\n1,f\n2,m\n3,f\n")
    both = read_tables({"interactions": path, "users": users})["users"]
    assert set(both.attributes) == {"gender", "set"}
    assert read_tables({"interactions": path}, TableOptions(by=())).get("users") is None
