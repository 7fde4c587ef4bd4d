"""Texts to be moderated, with what is known about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.data.exclusions import Exclusion
from ombud.data.faults import rows_where
from ombud.data.frames import Column, Frame, read_table, without_copies
from ombud.errors import DataError

TYPED = "label:"
"""What the name of a column begins with that holds a further type of label."""

# The sum of both sides must fit 32 bits.
_MOST_VOTES = 2**30


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts with their ids and, where known, whether each should be flagged.

    Parameters
    ----------
    ids
        One id a text, no id twice.
    texts
        The texts.
    truth
        1 should be flagged, 0 should not, -1 unknown.
    clusters
        What texts share (a template, a show, an author), as codes; texts of one cluster are not
        independent. None when every text stands alone.
    families
        The kind of source of each text, such as ``"traditional"``, or None.
    exclusions
        What was left out while reading.
    sets
        The data set that each text comes from, when several run in one audit, or None.
    languages
        The language of each text (None where it is unknown), or None.
    yes, no
        How many raters would flag each text, and how many would not, or None.
    functions
        What each text tests, as in a suite of functional tests such as HateCheck, or None.
    is_part
        Whether these are some texts of more, as in an audit in blocks: others may have what these
        lack.
    types
        Further labels by type (*PG ok*, *PG-13 ok*; each kind of harm), coded as `truth`, which is
        one of them or their summary. Each type is measured with each text once.
    """

    ids: NDArray[Any]
    texts: NDArray[np.object_]
    truth: NDArray[np.int8]
    clusters: NDArray[np.int32] | None = None
    families: NDArray[np.object_] | None = None
    exclusions: tuple[Exclusion, ...] = field(default=())
    sets: NDArray[np.object_] | None = None
    languages: NDArray[np.object_] | None = None
    yes: NDArray[np.int32] | None = None
    no: NDArray[np.int32] | None = None
    is_part: bool = False
    types: Mapping[str, NDArray[np.int8]] = field(default_factory=dict)
    functions: NDArray[np.object_] | None = None

    @classmethod
    def from_frame(cls, frame: Frame, *, source: str = "") -> Self:
        """Read texts from a frame or file; rows without a text are left out and counted.

        An empty string is a text: how a moderator treats it is a finding.

        Parameters
        ----------
        frame
            Has `text`; optionally `id` (default: the row number), `label` (true = should be
            flagged, missing = unknown), `cluster`, `family`, `set`, `language` and `function` (what
            the text tests); and `yes` and `no`, how many raters would flag it and would not. With
            votes and without `label`, the majority says whether it should be flagged; a tie is
            unknown. Columns ``label:TYPE`` are labels of further types; without `label`, the first
            of them is the label.
        source
            The table's name in messages.
        """
        columns = [
            Column("text", "text", nullable=True),
            Column("id", "id", required=False),
            Column("label", "flag", required=False, nullable=True),
            Column("cluster", "id", required=False),
            Column("family", "text", required=False),
            Column("set", "text", required=False),
            Column("language", "text", required=False, nullable=True),
            Column("function", "text", required=False, nullable=True),
            Column("yes", "count", required=False, low=0, high=_MOST_VOTES),
            Column("no", "count", required=False, low=0, high=_MOST_VOTES),
        ]
        table = read_table(frame, columns, source, Column(TYPED, "flag", nullable=True))
        types = [c for c in table.columns if c.startswith(TYPED)]
        if types and "label" not in table.columns:
            table = table.with_columns(pl.col(types[0]).alias("label"))
        name = source or (str(frame) if isinstance(frame, str | Path) else "texts")
        copies: list[Exclusion] = []
        if "id" in table.columns:
            table, copies = without_copies(table, "texts")
            if rows := rows_where(table, ~pl.col("id").is_first_distinct()):
                fault = f"column 'id' repeats an id with other values in {rows}"
                fix = "--read texts.votes=true takes the majority, --read texts.duplicates=last the"
                fault += f". {fix} last row ([data.reading.texts] of a plan)"
                raise DataError(name, [fault])
        else:
            # Numbered before rows are left out: groups and decisions count the rows of the file.
            table = table.with_row_index("id", offset=1).with_columns(pl.col("id").cast(pl.Int64))
        for column in ("family", "set"):
            kinds = table[column].n_unique() if column in table.columns else 0
            if kinds > max(10, table.height // 2):
                fault = (
                    f"column {column!r} has {kinds:,} values for {table.height:,} texts: nearly "
                    f"every text would be a {column} of its own"
                )
                raise DataError(name, [fault])
        table, exclusions = _with_texts(table, name)
        exclusions = (*copies, *exclusions)
        ids = table["id"].to_numpy()
        truth = np.full(table.height, -1, dtype=np.int8)
        if "label" in table.columns:
            truth = table["label"].cast(pl.Int8).fill_null(-1).to_numpy()
        yes, no = _votes(table, name)
        if yes is not None and no is not None and "label" not in table.columns:
            truth = np.where(yes == no, -1, yes > no).astype(np.int8)
        exclusions = (*exclusions, *_contrary(table["text"], truth))
        clusters = None
        if "cluster" in table.columns:
            clusters = (table["cluster"].rank("dense") - 1).cast(pl.Int32).to_numpy()
        families = None
        if "family" in table.columns:
            families = table["family"].to_numpy().astype(object)
        texts = table["text"].to_numpy().astype(object)
        sets = table["set"].to_numpy().astype(object) if "set" in table.columns else None
        languages = None
        if "language" in table.columns:
            languages = table["language"].to_numpy().astype(object)
        typed = {
            column.removeprefix(TYPED): table[column].cast(pl.Int8).fill_null(-1).to_numpy()
            for column in types
        }
        functions = None
        if "function" in table.columns:
            functions = table["function"].to_numpy().astype(object)
        return cls(
            ids, texts, truth, clusters, families, exclusions, sets, languages, yes, no,
            types=typed, functions=functions,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[str]:
        """Go through the texts, as strings."""
        return iter(self.texts.tolist())

    def to_frame(self) -> pl.DataFrame:
        """Return the columns that `from_frame` reads."""
        columns: dict[str, Any] = {
            "id": self.ids,
            "text": self.texts,
            "label": pl.Series(self.truth).replace(-1, None).cast(pl.Boolean),
        }
        if self.clusters is not None:
            columns["cluster"] = self.clusters
        if self.families is not None:
            columns["family"] = self.families
        if self.sets is not None:
            columns["set"] = self.sets
        if self.languages is not None:
            columns["language"] = pl.Series(self.languages.tolist(), dtype=pl.String)
        if self.functions is not None:
            columns["function"] = pl.Series(self.functions.tolist(), dtype=pl.String)
        if self.yes is not None and self.no is not None:
            columns |= {"yes": self.yes, "no": self.no}
        for name, truth in self.types.items():
            columns[TYPED + name] = pl.Series(truth).replace(-1, None).cast(pl.Boolean)
        return pl.DataFrame(columns)

    def __repr__(self) -> str:
        known = int(np.count_nonzero(self.truth >= 0))
        return f"Texts({len(self):,} texts, {known:,} with a true label)"


def _votes(
    table: pl.DataFrame, name: str
) -> tuple[NDArray[np.int32] | None, NDArray[np.int32] | None]:
    given = [column for column in ("yes", "no") if column in table.columns]
    if len(given) == 1:
        lacking = "no" if given == ["yes"] else "yes"
        raise DataError(
            name, [f"it has a column {given[0]!r} of votes, but none called {lacking!r}"]
        )
    if not given:
        return None, None
    return tuple(table[column].to_numpy().astype(np.int32) for column in given)  # type: ignore[return-value]


def _contrary(texts: pl.Series, truth: NDArray[np.int8]) -> list[Exclusion]:
    """Return a notice of texts that occur with both labels."""
    known = pl.DataFrame({"text": texts, "truth": truth}).filter(pl.col("truth") >= 0)
    count = known.filter(pl.col("truth").n_unique().over("text") > 1).height
    reason = "the same text occurs with both labels; every row counts, with its own label"
    key = "warning/contrary-labels"
    return [Exclusion("texts", "texts", count, reason, known.height, key)] if count else []


def _with_texts(table: pl.DataFrame, name: str) -> tuple[pl.DataFrame, tuple[Exclusion, ...]]:
    """Return the rows that have a text, and how many have none."""
    kept = table.filter(pl.col("text").is_not_null())
    if not kept.height:
        raise DataError(name, ["column 'text' is missing in every row"])
    gone = table.height - kept.height
    if not gone:
        return table, ()
    return kept, (Exclusion("texts", "rows", gone, "they have no text", table.height),)
