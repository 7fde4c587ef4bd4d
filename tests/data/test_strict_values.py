"""Values are taken as they stand, or refused; never bent into something else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ombud.data import Decisions, Interactions, Labels, Recommendations, Texts
from ombud.data.reading import Reading
from ombud.errors import DataError, PlanError

REFUSED: list[tuple[str, str, Callable[[Path], Any], str]] = [
    ("flags.csv", "text,label\na,1\nb,2\nc,-1\n", Texts.from_frame, "neither 0 nor 1 in rows 2, 3"),
    ("decisions.csv", "id,flagged\na,2\nb,-1\n", Decisions.from_frame, "neither 0 nor 1"),
    ("applied.csv", "item,label,present\n1,w,2\n", Labels.from_applied, "neither 0 nor 1"),
    ("votes.csv", "item,label,yes,no\n1,w,4294967297,0\n", Labels.from_votes, "above 1073741824"),
    ("ratings.csv", "user,item,rating\n1,1,1e39\n", Interactions.from_frame, "above 3.4e"),
    ("times.csv", "user,item,time\n1,1,soon\n", Interactions.from_frame, "no date"),
]


@pytest.mark.parametrize(("name", "content", "read", "said"), REFUSED, ids=[r[0] for r in REFUSED])
def test_what_does_not_fit_is_refused(
    tmp_path: Path, name: str, content: str, read: Callable[[Path], Any], said: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DataError, match=said):
        read(path)


@pytest.mark.parametrize("form", ["#{}", "No. {}", "{}.", "{}º", "Top {}"])
def test_a_place_in_words_is_a_rank(tmp_path: Path, form: str) -> None:
    rows = [("u", item, form.format(rank)) for item, rank in (("b", 2), ("a", 1), ("d", 3))]
    (tmp_path / "r.csv").write_text("user,item,rank\n" + "".join(",".join(r) + "\n" for r in rows))
    lists = Recommendations.from_frame(tmp_path / "r.csv")
    assert lists.catalogue.take(lists.items[0]).tolist() == ["a", "b", "d"]
    (tmp_path / "r.csv").write_text("user,item,rank\nu,b,2nd\nu,a,1st\nu,c,3rd\n")
    lists = Recommendations.from_frame(tmp_path / "r.csv")
    assert lists.catalogue.take(lists.items[0]).tolist() == ["a", "b", "c"]
    (tmp_path / "r.csv").write_text("user,item,rank\nu,b,2/3\nu,a,1/3\nu,c,3/3\n")
    with pytest.raises(DataError, match="which are not numbers"):
        Recommendations.from_frame(tmp_path / "r.csv")


def test_scores_may_be_missing_beside_ranks_alone(tmp_path: Path) -> None:
    table = pl.DataFrame({"user": [1, 1], "item": [5, 6], "score": [None, 0.2]})
    with pytest.raises(DataError, match="'score' is missing in row 1"):
        Recommendations.from_frame(table)
    lists = Recommendations.from_frame(table.with_columns(rank=pl.Series([2, 1])))
    assert lists.catalogue.take(lists.items[0]).tolist() == [6, 5]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "0.5", True])
def test_a_limit_of_yes_is_a_finite_number(value: Any) -> None:
    with pytest.raises(PlanError, match="yes_from is .*; expected a number"):
        Reading.from_dict({"yes_from": value}, "[data.reading.labels]")


def test_ids_are_read_as_they_are_spelled(tmp_path: Path) -> None:
    path = tmp_path / "i.csv"
    path.write_text("user,item\n001,1\n01,2\n1,3\n")
    assert Interactions.from_frame(path).users.ids.tolist() == ["001", "01", "1"]
    path.write_text("user,item\n10,1\n2,2\n")
    assert Interactions.from_frame(path).users.ids.tolist() == [2, 10]


def test_ids_of_64_unsigned_bits_keep_their_digits() -> None:
    users = pl.Series([2**64 - 1, 3], dtype=pl.UInt64)
    read = Interactions.from_frame(pl.DataFrame({"user": users, "item": [1, 2]}))
    assert set(read.users.ids.tolist()) == {str(2**64 - 1), "3"}


def test_a_column_that_begins_late_is_there(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    late = [{} if i < 150 else {"label": 1} for i in range(1000)]
    rows = [json.dumps({"id": i, "text": "x"} | more) for i, more in enumerate(late)]
    path.write_text("\n".join(rows))
    assert np.count_nonzero(Texts.from_frame(path).truth == 1) == 850


def test_a_broken_file_is_not_printed_whole(tmp_path: Path) -> None:
    path = tmp_path / "i.csv"
    path.write_text('user,item\n"1,' + "x" * 1_000_000 + "\n")
    with pytest.raises(DataError) as caught:
        Interactions.from_frame(path)
    assert len(str(caught.value)) < 1_000


def test_dates_are_read(tmp_path: Path) -> None:
    path = tmp_path / "i.csv"
    days = (
        "2024-01-02",
        "2024-01-02T03:04:05Z",
        "2024-01-02 03:04:05",
        "2024-01-02T04:04:05+01:00",
    )
    path.write_text("user,item,time\n" + "".join(f"{i},1,{day}\n" for i, day in enumerate(days)))
    times = Interactions.from_frame(path).times
    assert times is not None
    assert (times - times[0]).tolist() == [0.0, 11045.0, 11045.0, 11045.0]


def test_half_a_character_is_named() -> None:
    words = pd.Series(["\ud800"], dtype=object)
    for read, columns in (
        (Texts.from_frame, {"id": [1], "text": ["\ud800"]}),
        (Texts.from_frame, pd.DataFrame({"id": [1], "text": words})),
        (Interactions.from_frame, {"user": ["\udfff"], "item": [1]}),
        (Labels.from_applied, {"item": [1], "label": ["a\ud83d"]}),
    ):
        with pytest.raises(DataError, match="half a character"):
            read(columns)  # type: ignore[operator]


@pytest.mark.parametrize("ranks", [[10, 20, 30], [2, 3], [1, 2, 4], [0, 2]])
def test_ranks_that_leave_places_out_are_refused(ranks: list[int]) -> None:
    """The first of ranks 10, 20, ..., 100 is no place 1, and ten of them are no top 10."""
    frame = {"user": [7] * len(ranks), "item": list(range(len(ranks))), "rank": ranks}
    with pytest.raises(DataError, match=r"larger than the length of its list|below 1"):
        Recommendations.from_frame(frame)
    whole = Recommendations.from_frame(frame | {"rank": list(range(len(ranks), 0, -1))})
    assert whole.to_lists()["items"][0].to_list() == list(range(len(ranks)))[::-1]
