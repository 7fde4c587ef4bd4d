"""Estimates as a plain table."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.audits import Plan, Result, tidy_frame
from ombud.audits.result import TIDY_COLUMNS
from ombud.errors import PlanError
from ombud.stats import Estimate, smallest_effect

DETAILS: dict[str, object] = {"events": 3, "share": 0.5, "few": True, "word": "a", "list": [1, 2]}


def some() -> tuple[Estimate, ...]:
    level = Estimate(
        metric="gap", value=0.2, interval=(0.1, 0.3), method="x", n=9, null=0.0, key="share-gap",
        system="ours", label="war", details=DETAILS,
    )  # fmt: skip
    ratio = Estimate(
        metric="r", value=2.0, interval=(0.5, float("inf")), method="x", n=9, kind="ratio", null=1.0
    )
    gone = Estimate.undefined(metric="gap", reason="none", n=0, details={"events": 4})
    return level, ratio, gone


def test_a_row_an_estimate_with_details_in_columns_of_their_own(tmp_path: Path) -> None:
    result = Result(Plan(), some())
    frame = pl.read_parquet(result.to_parquet(tmp_path / "all.parquet"))
    assert frame.height == 3
    fixed = [(name, dtype) for name, (dtype, _) in TIDY_COLUMNS.items()]
    assert list(frame.schema.items())[: len(fixed)] == fixed
    assert frame["low"].to_list() == [0.1, 0.5, None]
    assert frame["high"].to_list() == [0.3, float("inf"), None]
    assert frame["value"].to_list() == [0.2, 2.0, None]
    assert frame["smallest_effect"].to_list() == [smallest_effect(e) for e in some()]
    assert frame["details.events"].to_list() == [3, None, 4]
    assert frame["details.few"].to_list() == [True, None, None]
    assert frame["details.list"].to_list() == ["[1, 2]", None, None]
    assert frame.schema["details.share"] == pl.Float64


def test_other_endings_hold_the_same(tmp_path: Path) -> None:
    result = Result(Plan(), some())
    csv = pl.read_csv(result.to_table(tmp_path / "all.csv"))
    lines = pl.read_ndjson(result.to_table(tmp_path / "all.jsonl"))
    assert csv.columns == lines.columns == result.to_tidy().columns
    assert csv["value"].to_list() == lines["value"].to_list() == [0.2, 2.0, None]
    with pytest.raises(PlanError, match=r"expected one of \.parquet"):
        result.to_table(tmp_path / "all.xlsx")


def test_no_estimates_still_have_columns() -> None:
    assert tidy_frame([]).columns == list(TIDY_COLUMNS)


_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=40)
@given(st.lists(st.dictionaries(st.text(max_size=3), _PLAIN, max_size=3), max_size=4))
def test_whatever_details_hold_there_is_a_table(details: list[dict[str, object]]) -> None:
    estimates = [Estimate.undefined(metric="m", reason="r", n=0, details=d) for d in details]
    frame = tidy_frame(estimates)
    assert frame.height == len(details)
    assert set(frame.columns) - set(TIDY_COLUMNS) == {f"details.{k}" for d in details for k in d}


def test_the_page_describes_every_column() -> None:
    page = (Path(__file__).parents[2] / "docs" / "pipelines.md").read_text()
    told = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|$", page, re.MULTILINE))
    assert told == {name: text for name, (_, text) in TIDY_COLUMNS.items()}
