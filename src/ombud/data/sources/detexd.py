"""The released benchmark of delicate texts, with its three annotators."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.sources.labelled import HATE_HARMS, file_in, read_csv, read_labels, text_dataset
from ombud.errors import DataError
from ombud.registry import source

_ANNOTATORS = ("annotator_1", "annotator_2", "annotator_3")
_RELEASED = (1023, 336)


@source("detexd")
def detexd(path: str | Path) -> Dataset:
    """Paragraphs that are delicate or not, with the ratings of three annotators (DeTexD).

    A paragraph is delicate when most annotators give a risk of 3 or more; how many do are the votes
    of the text. For risk classes and agreement, give the same file as ``ratings`` of the preset
    *delicate*. Rows whose label is not that of the majority are kept and counted. Licence:
    Apache-2.0. Known harms: delicate and hateful texts, some of them painful to read.

    Parameters
    ----------
    path
        The file with `text`, `annotator_1`, `annotator_2`, `annotator_3` (risk 0 to 5) and `label`
        (1 or 0), or its folder. It has 1,023 rows as released.
    """
    names = ("detexd-benchmark.csv", "detexd_benchmark.csv", "test.csv",
             "detexd_benchmark_excerpts.csv")  # fmt: skip
    file = file_in(path, *names)
    table = read_csv(file, ("text", "label", *_ANNOTATORS))
    label = read_labels(table["label"], ["1", "1.0", "True"], ["0", "0.0", "False"], file.name)
    ratings = table.select(pl.col(_ANNOTATORS).cast(pl.Float64, strict=False))
    given = pl.col(_ANNOTATORS).is_not_null().and_(pl.col(_ANNOTATORS).is_between(0, 5))
    broken = [
        name
        for name in _ANNOTATORS
        if (table[name].is_not_null() & (table[name].str.strip_chars() != "")).sum()
        != ratings.select(given).get_column(name).sum()
    ]
    if broken:
        raise DataError(file.name, [f"column {n!r} has other values than 0 to 5" for n in broken])
    votes = ratings.select(
        yes=pl.sum_horizontal((pl.col(_ANNOTATORS) >= 3).fill_null(False)),
        no=pl.sum_horizontal((pl.col(_ANNOTATORS) < 3).fill_null(False)),
    )
    majority = votes.select(
        pl.when(pl.col("yes") != pl.col("no")).then(pl.col("yes") > pl.col("no"))
    ).to_series()
    other = int((majority != label).sum())
    exclusions = []
    if other:
        reason = f"the label of {other:,} texts is not that of most annotators; the label counts"
        exclusions.append(Exclusion(file.name, "", 0, reason, None, "warning/label-majority"))
    sizes = (table.height, int(label.sum()))
    if sizes != _RELEASED:
        reason = (
            f"{sizes[1]:,} of its {sizes[0]:,} texts are delicate; in the released benchmark, 336 "
            "of 1,023 are. Do not compare with published figures"
        )
        exclusions.append(Exclusion(file.name, "", 0, reason, None, "warning/not-as-released"))
    return text_dataset(
        pl.DataFrame({"text": table["text"], "label": label, **votes.to_dict()}),
        family="traditional",
        files=[file],
        exclusions=exclusions,
        name="DeTexD",
        title="The DeTexD benchmark, delicate or not",
        source="huggingface.co/datasets/grammarly/detexd-benchmark",
        licence="Apache-2.0",
        citation="Yavnyi et al. (2023), DeTexD: A Benchmark Dataset for Delicate Text Detection, "
        "WOAH.",
        known_harms=HATE_HARMS,
        unknowns="Paragraphs of one page are not marked, so they count as independent; every one "
        "contains a keyword, so texts without keywords are not represented.",
    )
