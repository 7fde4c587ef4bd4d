"""What all sources of labelled texts share: reading, dropping what is blank, the card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ombud.data.card import Card
from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.faults import need_columns, readable, rows_where
from ombud.data.groups import Grouping
from ombud.data.texts import Texts
from ombud.errors import DataError
from ombud.files import hash_file

HATE_HARMS = (
    "Holds hate speech and slurs. Reading it is distressing, most of all for the people it is "
    "about; do not show texts where they are not needed."
)


def file_in(path: str | Path, *names: str) -> Path:
    """Return a file, or the first of some names in a folder."""
    given = Path(path)
    if given.is_file():
        return given
    for name in names:
        if (given / name).is_file():
            return given / name
    where = f"{given} has none of {', '.join(names)}" if given.is_dir() else f"there is no {given}"
    raise DataError(str(given), [where])


def read_csv(path: Path, columns: Sequence[str], separator: str = ",") -> pl.DataFrame:
    """Return all columns of a CSV file as text; bytes that are no UTF-8 are replaced.

    All of `columns` must be there.
    """
    if path.stat().st_size == 0:
        raise DataError(path.name, ["the file is empty (0 bytes); a table with rows was expected"])
    with readable(path.name):
        table = pl.read_csv(path, infer_schema=False, encoding="utf8-lossy", separator=separator)
    need_columns(path.name, dict.fromkeys(columns, ""), table.columns)
    return table


def read_labels(
    values: pl.Series, flagged: Sequence[str], acceptable: Sequence[str], source: str
) -> pl.Series:
    """Return whether each text should be flagged; None where the label is another or missing.

    `flagged` and `acceptable` are the labels which mean that a text should, and should not, be
    flagged. `source` is the table's name in messages.
    """
    text = values.cast(pl.String).str.strip_chars()
    known = dict.fromkeys(flagged, True) | dict.fromkeys(acceptable, False)
    result = text.replace_strict(known, default=None, return_dtype=pl.Boolean)
    if result.null_count() == len(result) and len(result):
        seen = ", ".join(sorted({str(word) for word in text.drop_nulls().head(1000)})[:8])
        fault = f"no label is one of {', '.join(known)}; found: {seen or 'none'}"
        raise DataError(source, [fault])
    return result.alias("label")


def text_dataset(
    table: pl.DataFrame,
    *,
    family: str,
    files: Sequence[Path],
    exclusions: Sequence[Exclusion] = (),
    groups: Grouping | None = None,
    **card: Any,
) -> Dataset:
    """Return texts with their card; texts that are blank are left out and counted.

    The table has ``text`` and ``label`` (None is unknown), and optionally ``id``, ``cluster``,
    ``family``; `family` is that of all texts when the table does not say. `files` are hashed for
    the card, `exclusions` are what was excluded before, `groups` are those that the data set itself
    states, and `card` has further fields of the card.
    """
    dropped = list(exclusions)
    if "id" not in table.columns:
        table = table.with_row_index("id", offset=1).with_columns(pl.col("id").cast(pl.Int64))
    if rows := rows_where(table, ~pl.col("id").is_first_distinct()):
        raise DataError(str(card["name"]), [f"an id stands twice: {rows}"])
    blank = table["text"].is_null() | (table["text"].str.strip_chars() == "")
    if blank.any():
        count = int(blank.sum())
        dropped.append(Exclusion("texts", "texts", count, "they are empty", table.height))
        table = table.filter(~blank)
    if "family" not in table.columns:
        table = table.with_columns(family=pl.lit(family))
    if not table.height:
        raise DataError(str(card["name"]), ["no text is left"])
    read = Texts.from_frame(table, source=str(card["name"]))
    texts = replace(read, exclusions=tuple(dropped))
    facts: dict[str, int | float | str] = {
        "texts": len(texts),
        "should_be_flagged": int(np.count_nonzero(texts.truth == 1)),
        "should_not_be_flagged": int(np.count_nonzero(texts.truth == 0)),
        "label_unknown": int(np.count_nonzero(texts.truth < 0)),
        "texts_with_replaced_bytes": int(table["text"].str.contains("\ufffd").sum()),
    }
    if texts.clusters is not None:
        facts["clusters"] = len(np.unique(texts.clusters))
    made = Card(
        hashes={path.name: hash_file(path) for path in files},
        facts=facts,
        dropped=tuple(str(e) for e in dropped),
        **card,
    )
    return Dataset(texts=texts, text_groups=groups, card=made)
