"""Columns of CSV files: values, codes, and every fault in one error."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ombud.data.csv_columns import open_columns
from ombud.errors import DataError

WANTED = {"user": ("user_id", None), "item": ("work_id", pl.Int64)}


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(text)
    return path


def test_values_and_codes(tmp_path: Path) -> None:
    path = write(tmp_path, ",user_id,work_id\n0,7,30\n1,5,20\n2,7,20\n")
    with open_columns(path, WANTED, scratch=tmp_path) as columns:
        assert columns.height == 3
        assert columns.column("item").to_list() == [30, 20, 20]
        ids, codes = columns.encode("user")
        assert ids.ids.tolist() == [5, 7] and codes.tolist() == [1, 0, 1]
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"], "the temporary copy is gone"


def test_names_and_very_large_numbers(tmp_path: Path) -> None:
    path = write(tmp_path, f"user_id,work_id\nben,{2**40}\nann,3\n")
    with open_columns(path, WANTED) as columns:
        assert columns.encode("user")[0].ids.tolist() == ["ann", "ben"]
        assert columns.encode("item")[0].ids.tolist() == [3, 2**40]


@pytest.mark.parametrize("block", [1, 3, 1 << 22])
def test_texts_are_encoded_in_blocks(
    tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ombud.data.csv_columns._BLOCK", block)
    names = ["zoë", "ann", "Ben", "ann", "zoë", "_x", "ann"]
    rows = "".join(f"{name},{n}\n" for n, name in enumerate(names))
    with open_columns(write(tmp_path, "user_id,work_id\n" + rows), WANTED) as columns:
        ids, codes = columns.encode("user")
    assert ids.ids.tolist() == sorted(set(names))
    assert [ids.ids[code] for code in codes] == names


def test_columns_by_place(tmp_path: Path) -> None:
    path = write(tmp_path, "1::1193::5::978300760\n2::661::3::978302109\n")
    wanted = {"user": (0, pl.Int64), "rating": (4, pl.Float32)}
    with open_columns(path, wanted, header=False, separator=":") as columns:
        assert columns.column("user").to_list() == [1, 2]
        assert columns.column("rating").to_list() == [5.0, 3.0]


def test_all_faults_in_one_error(tmp_path: Path) -> None:
    rows = "".join(f"{n},{n}\n" for n in range(200))
    path = write(tmp_path, f"user_id,work_id\n{rows},9\nx1,y\n7,\n")
    wanted = {"user": ("user_id", pl.Int64), "item": ("work_id", pl.Int64)}
    with pytest.raises(DataError) as error, open_columns(path, wanted):
        pass
    text = str(error.value)
    assert "column 'user_id' is missing in row 201 (1 in all)" in text
    assert "column 'user_id' is not a whole number in row 202 (1 in all)" in text
    assert "column 'work_id' is not a whole number in row 202 (1 in all)" in text
    assert "column 'work_id' is missing in row 203 (1 in all)" in text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("user_id,work_id\n", "no rows"),
        ("a,b\n1,2\n", "column 'user_id' is missing (found: a, b)"),
    ],
)
def test_what_cannot_be_a_table(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DataError) as error, open_columns(write(tmp_path, text), WANTED):
        pass
    assert words in str(error.value)
