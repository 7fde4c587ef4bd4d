"""Tweets in the form of TweetEval: one file of texts and one of labels for each split."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import polars as pl

from ombud.data.dataset import Dataset
from ombud.data.sources.labelled import HATE_HARMS, read_labels, text_dataset
from ombud.errors import DataError
from ombud.registry import source

_SPLITS = ("train", "val", "test")


@source("tweeteval")
def tweeteval(
    path: str | Path,
    *,
    subset: Literal["hate", "offensive"] = "hate",
    splits: tuple[Literal["train", "val", "test"], ...] = ("train", "val", "test"),
) -> Dataset:
    """Tweets of TweetEval with labels hate or offensive (Barbieri et al. 2020).

    Licence: that of the source of each task (HatEval, OffensEval); research use. Known harms: hate
    speech and slurs.

    Parameters
    ----------
    path
        The folder with ``<split>_text.txt``, ``<split>_labels.txt`` and ``mapping.txt``.
    subset
        Which task the folder holds.
    splits
        Which splits to read.
    """
    folder = Path(path)
    faults: list[str] = []
    parts: list[pl.DataFrame] = []
    files: list[Path] = []
    for split in [s for s in _SPLITS if s in splits]:
        pair = [folder / f"{split}_{part}.txt" for part in ("text", "labels")]
        missing = [f"there is no {file}" for file in pair if not file.is_file()]
        if missing:
            faults += missing
            continue
        texts, labels = (_lines(file) for file in pair)
        if len(texts) != len(labels):
            faults.append(f"{split}: {len(texts):,} texts but {len(labels):,} labels")
            continue
        files += pair
        ids = [f"{split}-{row}" for row in range(1, len(texts) + 1)]
        parts.append(pl.DataFrame({"id": ids, "text": texts, "written": labels}))
    if faults:
        raise DataError(str(folder), faults)
    if not parts:
        raise DataError(str(folder), [f"no split was asked for; some of {', '.join(_SPLITS)}"])
    table = pl.concat(parts)
    label = read_labels(table["written"], ["1"], ["0"], folder.name)
    return text_dataset(
        table.select("id", "text", label),
        family="traditional",
        files=files,
        # Published figures on HatEval are on its test split alone.
        name=f"tweeteval-{subset}" + " test" * (tuple(splits) == ("test",)),
        title=f"Tweets of TweetEval, {subset} or not",
        source="github.com/cardiffnlp/tweeteval",
        licence="research use; the terms of the task's own data set and of the platform",
        citation="Barbieri, Camacho-Collados, Espinosa-Anke and Neves (2020), TweetEval, Findings "
        "of EMNLP; Basile et al. (2019), SemEval-2019 Task 5.",
        known_harms=HATE_HARMS,
        unknowns="Every tweet has a label; whether its author deleted it since is unknown. Authors "
        "are not given, so tweets of one author count as independent.",
    )


def _lines(file: Path) -> list[str]:
    """Return the lines of a file; only a line feed ends a line, whatever else a tweet holds."""
    text = file.read_bytes().decode("utf-8", "replace")
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]
