"""Published sets of toxic tweets as files: OLID, and those of Davidson and of Founta et al."""

from __future__ import annotations

from html import unescape
from pathlib import Path
from typing import Literal

import polars as pl

from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.faults import need_columns, readable
from ombud.data.sources.labelled import HATE_HARMS, file_in, read_csv, read_labels, text_dataset
from ombud.errors import DataError
from ombud.registry import source


def _undone(texts: pl.Series) -> list[str | None]:
    """Return the texts with HTML entities undone (&amp; is &)."""
    return [None if text is None else unescape(text) for text in texts.to_list()]


@source("olid")
def olid(path: str | Path) -> Dataset:
    """Tweets that are offensive or not (OLID, subtask A, its training file).

    HTML entities are undone. Licence: see the task's page; research use. Known harms: offensive
    language and slurs. Published figures on this file are set beside results under the name of
    this data set, ``OLID A``; they were made on 13,240 training tweets by a model that was not
    trained on them.

    Parameters
    ----------
    path
        The file with `tweet` and `subtask_a` (OFF or NOT), or its folder.
    """
    file = file_in(path, "olid_data.csv", "olid-training-v1.0.tsv")
    table = read_csv(file, ["tweet", "subtask_a"], "\t" if file.suffix == ".tsv" else ",")
    label = read_labels(table["subtask_a"], ["OFF"], ["NOT"], file.name)
    columns = {"text": pl.Series(_undone(table["tweet"]), dtype=pl.String), "label": label}
    return text_dataset(
        pl.DataFrame(columns),
        family="traditional",
        files=[file],
        name="OLID A",
        title="Tweets of OLID, offensive or not",
        source="sites.google.com/site/offensevalsharedtask/olid",
        licence="research use; the terms of the platform",
        citation="Zampieri et al. (2019), Predicting the Type and Target of Offensive Posts in "
        "Social Media, NAACL.",
        known_harms=HATE_HARMS,
        unknowns="Authors are not given, so tweets of one author count as independent.",
    )


@source("davidson")
def davidson(
    path: str | Path, *, against: Literal["hate+offensive", "hate only"] = "hate+offensive"
) -> Dataset:
    """Tweets labelled hate, offensive or neither (Davidson et al. 2017), in either of two cuts.

    HTML entities are undone. Licence: MIT. Known harms: hate speech and slurs.

    Parameters
    ----------
    path
        The file with `tweet` and `class` (0 hate, 1 offensive, 2 neither), or its folder.
    against
        ``hate+offensive``: both should be flagged. ``hate only``: offensive tweets are left out.
    """
    file = file_in(path, "labeled_data.csv")
    table = read_csv(file, ["tweet", "class"])
    dropped: list[Exclusion] = []
    if against == "hate only":
        kept = table.filter(pl.col("class").str.strip_chars() != "1")
        gone = table.height - kept.height
        reason = "they are offensive and not hateful"
        dropped.append(Exclusion("texts", "texts", gone, reason, table.height))
        table = kept
    label = read_labels(table["class"], ["0", "1"], ["2"], file.name)
    columns = {"text": pl.Series(_undone(table["tweet"]), dtype=pl.String), "label": label}
    return text_dataset(
        pl.DataFrame(columns),
        family="traditional",
        files=[file],
        exclusions=dropped,
        name=f"Davidson {against}",
        title=f"Tweets of Davidson et al., {against} against neither",
        source="github.com/t-davidson/hate-speech-and-offensive-language",
        licence="MIT",
        citation="Davidson, Warmsley, Macy and Weber (2017), Automated Hate Speech Detection and "
        "the Problem of Offensive Language, ICWSM.",
        known_harms=HATE_HARMS,
        unknowns="Authors are not given, so tweets of one author count as independent.",
    )


@source("founta")
def founta(path: str | Path, *, texts: str | Path = "") -> Dataset:
    """Tweets labeled abusive, hateful, normal or spam (Founta et al. 2018), spam excluded.

    Abusive and hateful tweets should be flagged, normal ones should not. HTML entities are undone.
    Licence: research use; the terms of the platform. Known harms: abusive and hateful tweets.

    Parameters
    ----------
    path
        The file with `text` and `label`, or its folder; the release of 100,000 tweets has no header
        (text, label, votes). Or the release of ids, with `tweet_id` and `maj_label` or `label`.
    texts
        For the release of ids: a file with `tweet_id` and `text`, as you collected them. Tweets
        without a text are excluded and counted.
    """
    names = (
        "hatespeech_text_label_vote_RESTRICTED_100K.csv",
        "founta.csv",
        "hatespeech_labels.csv",
    )
    file = file_in(path, *names)
    with file.open(encoding="utf-8", errors="replace") as opened:
        first = opened.readline()
    tabs = "\t" if "\t" in first else ","
    headed = {"label", "maj_label"} & {
        cell.strip().strip('"').lower() for cell in first.split(tabs)
    }
    if headed:
        table = read_csv(file, [], tabs).rename({"maj_label": "label"}, strict=False)
    else:
        with readable(file.name):
            table = pl.read_csv(file, infer_schema=False, encoding="utf8-lossy", separator=tabs,
                                has_header=False, quote_char=None)  # fmt: skip
        if table.width < 2:
            raise DataError(file.name, ["expected a text and a label in each row"])
        table = table.rename({table.columns[0]: "text", table.columns[1]: "label"})
    files, dropped = [file], []
    if "text" not in table.columns:
        need_columns(file.name, {"tweet_id": "", "label": ""}, table.columns)
        if not texts:
            raise DataError(file.name, ["it has ids alone; give their texts as option 'texts'"])
        found = read_csv(Path(texts), ["tweet_id", "text"]).select("tweet_id", "text")
        table = table.join(found.unique("tweet_id"), on="tweet_id", how="left",
                           maintain_order="left")  # fmt: skip
        files.append(Path(texts))
        if lost := table["text"].null_count():
            reason = "their text is not in the file of texts"
            dropped.append(Exclusion("texts", "tweets", lost, reason, table.height))
            table = table.filter(pl.col("text").is_not_null())
    spam = table["label"].str.strip_chars() == "spam"
    if spam.any():
        reason = "they are spam"
        dropped.append(Exclusion("texts", "texts", int(spam.sum()), reason, table.height))
        table = table.filter(~spam)
    label = read_labels(table["label"], ["abusive", "hateful"], ["normal"], file.name)
    columns = {"text": pl.Series(_undone(table["text"]), dtype=pl.String), "label": label}
    return text_dataset(
        pl.DataFrame(columns),
        family="traditional",
        files=files,
        exclusions=dropped,
        name="Founta",
        title="Tweets of Founta et al., abusive or hateful against normal",
        source="zenodo.org/records/2657374",
        licence="research use; the terms of the platform",
        citation="Founta et al. (2018), Large Scale Crowdsourcing and Characterization of Twitter "
        "Abusive Behavior, ICWSM.",
        known_harms=HATE_HARMS,
        unknowns="Authors are not given, so tweets of one author count as independent.",
    )
