"""Rows without a text are left out and counted; an empty text is a text."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.texts import Texts
from ombud.errors import DataError


def test_a_missing_text_is_left_out_and_an_empty_one_stays(tmp_path: Path) -> None:
    file = tmp_path / "texts.csv"
    file.write_text('text,label,cluster,family\nfirst,1,a,f\n,0,b,g\n"",0,c,f\nlast,,a,f\n')
    texts = Texts.from_frame(str(file))
    assert texts.ids.tolist() == [1, 3, 4]  # row numbers of the file
    assert texts.texts.tolist() == ["first", "", "last"]
    assert texts.truth.tolist() == [1, 0, -1]
    assert texts.clusters is not None and texts.clusters.tolist() == [0, 1, 0]
    assert texts.exclusions == (Exclusion("texts", "rows", 1, "they have no text", 4),)
    assert texts.exclusions[0] in Dataset(texts=texts).exclusions


def test_texts_that_are_all_missing_are_refused() -> None:
    for column in ([None, None], pl.Series([None, None], dtype=pl.String)):
        with pytest.raises(DataError, match="'text' is missing in every row"):
            Texts.from_frame(pl.DataFrame({"text": column}))


def test_an_id_that_repeats_is_refused_though_one_row_has_no_text() -> None:
    with pytest.raises(DataError, match="repeats an id"):
        Texts.from_frame(pl.DataFrame({"id": [1, 1], "text": ["a", None]}))


@given(st.lists(st.none() | st.text(max_size=3), min_size=1).filter(any))
def test_rows_kept_and_rows_left_out_are_all_rows(rows: list[str | None]) -> None:
    texts = Texts.from_frame(pl.DataFrame({"text": pl.Series(rows, dtype=pl.String)}))
    assert texts.texts.tolist() == [row for row in rows if row is not None]
    assert texts.ids.tolist() == [n for n, row in enumerate(rows, 1) if row is not None]
    assert len(texts) + sum(e.count for e in texts.exclusions) == len(rows)
