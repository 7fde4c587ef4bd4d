"""Any frame in; all faults in one message, with rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ombud.data.faults import first_rows
from ombud.data.frames import Column, read_table
from ombud.errors import DataError

COLUMNS = [
    Column("user", "id"),
    Column("item", "id"),
    Column("rating", "number", required=False, low=0.5, high=5),
]


def test_every_fault_comes_in_one_message_with_rows() -> None:
    table = pl.DataFrame(
        {
            "user": [1.5, 2.5, 3.5, 4.5],
            "itm": ["a", "b", "c", "d"],
            "rating": [9.0, float("nan"), None, 0.1],
        }
    )
    with pytest.raises(DataError) as caught:
        read_table(table, COLUMNS, "ratings")
    text = str(caught.value)
    assert text.startswith("ratings: 6 faults") or len(caught.value.faults) == 6
    assert "'item' is missing (found: user, itm, rating); is 'itm' meant" in text
    assert "'user': holds Float64; whole numbers or strings" in text
    assert "'rating' is missing in row 3" in text
    assert "'rating' is not a number (NaN) in row 2" in text
    assert "'rating' is below 0.5 in row 4" in text
    assert "'rating' is above 5 in row 1 (1 in all)" in text


def test_many_rows_are_counted_and_the_first_shown() -> None:
    table = pl.DataFrame({"user": [1] * 9, "item": [None] * 7 + [3, 4]})
    with pytest.raises(DataError, match=r"rows 1, 2, 3, 4, 5, ... \(7 in all\)"):
        read_table(table, COLUMNS)
    assert first_rows([4], 1) == "row 4 (1 in all)"


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda p: p.write_bytes(b""), "0 bytes"),
        (lambda p: p.write_bytes(b"user,item\n"), "no rows"),
        (lambda p: p.write_bytes(b"\xff\xfe\x00binary"), "missing|cannot be read"),
    ],
)
def test_bad_files_say_what_is_wrong(tmp_path: Path, make: object, fault: str) -> None:
    path = tmp_path / "table.csv"
    make(path)  # type: ignore[operator]
    with pytest.raises(DataError, match=fault):
        read_table(path, COLUMNS)


def test_a_parquet_file_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    path.write_bytes(b"not parquet at all, sorry")
    with pytest.raises(DataError, match="cannot be read as a table"):
        read_table(path, COLUMNS)


def test_files_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no file"):
        read_table(tmp_path / "absent.csv", COLUMNS)
    with pytest.raises(DataError, match=r"files of type '.pkl' are not read"):
        read_table(tmp_path / "model.pkl", COLUMNS)
    with pytest.raises(DataError, match="int is not a table"):
        read_table(3, COLUMNS)


def test_infinite_numbers_are_a_fault() -> None:
    with pytest.raises(DataError, match=r"'rating' is infinite in row 2"):
        read_table(
            {"user": [1, 2], "item": [1, 2], "rating": [1.0, float("-inf")]},
            COLUMNS[:2] + [Column("rating", "number")],
        )


def test_an_odd_id_far_down_a_csv_makes_all_ids_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [f"{n},{n}" for n in range(500)]
    path.write_text("\n".join(["user,item", *rows, "x9,1"]))
    assert read_table(path, COLUMNS)["user"].to_list()[-1] == "x9"


def test_ids_of_mixed_type_are_refused() -> None:
    with pytest.raises(DataError, match="do not make a table"):
        read_table({"user": [1, "x"], "item": [1, 2]}, COLUMNS)
    with pytest.raises(DataError, match="'user': holds values of several types"):
        read_table(pd.DataFrame({"user": [1, "x"], "item": [1, 2]}), COLUMNS)


def _duckdb(table: pl.DataFrame) -> object:
    import duckdb

    # A relation does not keep its own connection open before DuckDB 1.5; the default one stays.
    return duckdb.from_arrow(table.to_arrow())


# Frames of Spark: tests/audits/test_spark_cluster.py, where there is a cluster.
BACKENDS = {
    "polars": lambda t: t,
    "polars lazy": lambda t: t.lazy(),
    "pandas": lambda t: pd.DataFrame(t.to_dict(as_series=False)),
    "arrow": lambda t: t.to_arrow(),
    "duckdb": _duckdb,
}


@pytest.fixture(params=list(BACKENDS))
def backend(request: pytest.FixtureRequest) -> object:
    return BACKENDS[request.param]


def test_the_same_table_from_every_engine(backend: object) -> None:
    table = pl.DataFrame({"user": [3, 1, 2], "item": ["b", "a", "a"], "rating": [1.0, 2.5, 5.0]})
    found = read_table(backend(table), COLUMNS)  # type: ignore[operator]
    assert found.sort("user").equals(table.sort("user"))


def test_the_same_faults_from_every_engine(backend: object) -> None:
    table = pl.DataFrame({"user": [3, 1, 2], "item": ["b", None, "a"], "rating": [7.0, 2.5, 0.0]})
    with pytest.raises(DataError) as caught:
        read_table(backend(table), COLUMNS)  # type: ignore[operator]
    kinds = sorted(fault.split(" in row")[0] for fault in caught.value.faults)
    assert kinds == [
        "column 'item' is missing",
        "column 'rating' is above 5",
        "column 'rating' is below 0.5",
    ]


def test_what_an_engine_says_is_told_as_a_fault() -> None:
    import duckdb

    connection = duckdb.connect()
    relation = connection.sql("SELECT 1 AS user, 2 AS item")
    connection.close()
    with pytest.raises(DataError, match=r"^events: 1 fault\n.*cannot be read as a table: .*closed"):
        read_table(relation, COLUMNS, "events")


def test_nan_is_not_above_the_range() -> None:
    table = pa.table({"user": [1], "item": [1], "rating": [np.nan]})
    with pytest.raises(DataError) as caught:
        read_table(table, COLUMNS)
    assert len(caught.value.faults) == 1
