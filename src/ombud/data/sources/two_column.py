"""Any table of texts and labels."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ombud.data.dataset import Dataset
from ombud.data.faults import need_columns, readable
from ombud.data.frames import open_frame
from ombud.data.sources.labelled import read_labels, text_dataset
from ombud.registry import source

_FLAGGED = ("1", "true", "True", "1.0")
_ACCEPTABLE = ("0", "false", "False", "0.0")


@source("two-column")
def two_column(
    path: str | Path,
    *,
    text: str = "text",
    label: str = "label",
    flagged: tuple[str, ...] = _FLAGGED,
    acceptable: tuple[str, ...] = _ACCEPTABLE,
    id: str = "",
    cluster: str = "",
    family: str = "",
    licence: str = "",
) -> Dataset:
    """Any CSV, TSV, Parquet or JSONL file with a column of texts and a column of labels.

    Licence and known harms are those of your file.

    Parameters
    ----------
    path
        The file.
    text, label
        The two columns.
    flagged, acceptable
        Which labels mean that a text should, and should not, be flagged; any other is unknown.
    id, cluster
        Further columns: an id, and what texts share; none by default.
    family
        The family of the texts (``traditional``, ``generative-ai``), or the column that says it.
    licence
        The terms of the file, for the card.
    """
    file = Path(path)
    lazy, name = open_frame(file)
    with readable(name):
        table: pl.DataFrame = lazy.collect(backend="polars").to_native()
    wanted = {"text": text, "label": label, "id": id, "cluster": cluster}
    need_columns(name, dict.fromkeys(filter(None, wanted.values()), ""), table.columns)
    columns = [pl.col(text).cast(pl.String).alias("text")]
    columns += [pl.col(wanted[c]).alias(c) for c in ("id", "cluster") if wanted[c]]
    if family and family in table.columns:  # an unnamed index column is no family
        columns.append(pl.col(family).cast(pl.String).alias("family"))
    found_labels = read_labels(table[label], flagged, acceptable, name)
    return text_dataset(
        table.select(*columns, found_labels),
        family=family or "traditional",
        files=[file],
        name=file.stem or "two-column",
        title=f"Texts of {file.name}",
        licence=licence,
        unknowns=f"Labels other than {', '.join((*flagged, *acceptable))[:200]} are unknown.",
    )
