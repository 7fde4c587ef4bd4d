"""Scores of whole files of texts, written as they come."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from ombud.data.exclusions import Exclusion
from ombud.errors import DataError
from ombud.files import remove_leftovers, write_atomically
from ombud.systems.base import Progress
from ombud.systems.detectors.base import Detector
from ombud.text.documents import Columns, Damage, read_documents


@dataclass(frozen=True)
class ScoredFiles:
    """What became of files of texts."""

    # How many texts there were, how many are delicate, and how many were read in windows.
    texts: int
    flagged: int
    long: int
    # Of the long ones, how many are decided otherwise when only their beginning is read.
    cut_differs: int
    exclusions: tuple[Exclusion, ...]  # what was excluded
    # Files that could not be read to their end, or not all between, with the reason.
    damaged: dict[str, str]
    # What was read with replacement characters where bytes are not text, and how often.
    mended: dict[str, int]


def score_files(
    detector: Detector,
    paths: Iterable[Path],
    to: Path,
    *,
    columns: Columns | None = None,
    progress: Progress | None = None,
) -> ScoredFiles:
    """Score every text of some files and write the scores as one Parquet file.

    Each row has `file`, `row` (from 1, in the file, what was left out counted; for the exceptions
    see `ombud.text.documents.Documents`), `id` (of the file's column, where it has one), `score`,
    `delicate`, `risk` (the most probable class, where the head has classes), `windows`, and for
    texts in several windows what each way of reading gives: `score_cut`, `score_max`,
    `score_mean`. Rows come in the order of the files.
    Memory does not grow with them. The file appears when it is complete.

    Parameters
    ----------
    detector
        The detector.
    paths
        Files of any form that `ombud.text.documents.read_documents` knows.
    to
        The Parquet file to write.
    columns
        The columns of tables.
    progress
        Called with bytes done, bytes in all, and the file.
    """
    files = [Path(path) for path in paths]
    if not files:
        raise DataError("scoring", ["no files were given"])
    total = sum(file.stat().st_size for file in files if file.is_file())
    damage, counts = Damage(), np.zeros(4, dtype=np.int64)

    def write(part: Path) -> None:
        writer: pq.ParquetWriter | None = None
        done = 0
        try:
            for file in files:
                for batch in read_documents(file, columns=columns, damage=damage):
                    frame, some = _scored(detector, batch.frame, file.name)
                    counts[:] += some
                    table: pa.Table = frame.to_arrow()
                    if writer is None:
                        writer = pq.ParquetWriter(part, table.schema, compression="zstd")
                    writer.write_table(table)
                    if progress is not None:
                        progress(done + batch.bytes_read, total, file.name)
                done += file.stat().st_size
        finally:
            if writer is not None:
                writer.close()
        if writer is None:
            raise DataError("scoring", ["no text was found", *damage.files.values()])

    remove_leftovers(to)
    write_atomically(to, write)
    exclusions = tuple(
        Exclusion("scoring", what, count, "they cannot be read as they should")
        for what, count in damage.counts.items()
    )
    texts, flagged, long, differs = counts.tolist()
    return ScoredFiles(texts, flagged, long, differs, exclusions, damage.files, damage.mended)


def _scored(
    detector: Detector, batch: pl.DataFrame, file: str
) -> tuple[pl.DataFrame, np.ndarray[Any, Any]]:
    texts = batch["text"].to_list()
    score, scores = detector.score(texts)
    flags = detector.flags(scores)
    long = scores.windows > 1
    cut = detector.of_windows(scores, "cut") > detector.threshold
    risk = detector.head.predicted(scores.outputs)
    none = np.full(len(texts), np.nan)
    frame = pl.DataFrame(
        {
            "file": pl.Series([file] * len(texts), dtype=pl.String),
            "row": batch["row"],
            "id": batch["id"],
            "score": score,
            "delicate": flags,
            "risk": pl.Series(risk if risk is not None else [None] * len(texts), dtype=pl.Int64),
            "windows": scores.windows,
            "score_cut": np.where(long, detector.of_windows(scores, "cut"), none),
            "score_max": np.where(long, detector.of_windows(scores, "max"), none),
            "score_mean": np.where(long, detector.of_windows(scores, "mean"), none),
        }
    ).with_columns(pl.col("score_cut", "score_max", "score_mean").fill_nan(None))
    counts = [len(texts), flags.sum(), long.sum(), (long & (cut != flags)).sum()]
    return frame, np.array(counts, dtype=np.int64)
