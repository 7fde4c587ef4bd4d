"""Sentences from a white-supremacist forum, labelled as hate or not."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import polars as pl

from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.sources.labelled import HATE_HARMS, file_in, read_csv, read_labels, text_dataset
from ombud.errors import DataError
from ombud.registry import source


@source("stormfront")
def stormfront(
    path: str | Path,
    *,
    others: Literal["unknown", "acceptable"] = "unknown",
    cluster: Literal["user", "post", "none"] = "user",
) -> Dataset:
    """Sentences of Stormfront with labels hate and noHate (de Gibert et al. 2018).

    Licence: CC BY-SA 3.0 ES. Known harms: hate speech and slurs.

    Parameters
    ----------
    path
        The folder with ``annotations_metadata.csv`` and the texts: ``all_files/<file_id>.txt``,
        as published, or one file ``stormfront_sentences.csv`` with `file_id` and `text`.
    others
        What the labels *relation* (hate only together with other sentences) and *idk/skip*
        mean: ``unknown``, or ``acceptable``, as the speech-suppression paper has it.
    cluster
        What sentences share: the user who wrote them, the post, or nothing.
    """
    meta = file_in(path, "annotations_metadata.csv")
    table = read_csv(meta, ("file_id", "user_id", "label"))
    files, dropped = [meta], []
    sentences = meta.parent / "stormfront_sentences.csv"
    if sentences.is_file():
        texts = read_csv(sentences, ("file_id", "text")).select("file_id", "text")
        files.append(sentences)
    else:
        texts = _text_files(meta.parent / "all_files", table["file_id"].to_list())
    table = table.join(texts, on="file_id", how="left", maintain_order="left")
    absent = table["text"].is_null()
    if absent.any():
        count = int(absent.sum())
        dropped.append(Exclusion("texts", "sentences", count, "no text was found", table.height))
        table = table.filter(~absent)
    acceptable = ["noHate", *(["relation", "idk/skip"] if others == "acceptable" else [])]
    columns = [pl.col("file_id").alias("id"), pl.col("text")]
    if cluster == "user":
        columns.append(pl.col("user_id").alias("cluster"))
    elif cluster == "post":
        columns.append(pl.col("file_id").str.replace(r"_\d+$", "").alias("cluster"))
    meaning = "unknown" if others == "unknown" else "acceptable"
    return text_dataset(
        table.select(*columns, read_labels(table["label"], ["hate"], acceptable, meta.name)),
        family="traditional",
        files=files,
        exclusions=dropped,
        name="stormfront",
        title="Sentences of Stormfront, a white-supremacist forum, hate or not",
        source="github.com/Vicomtech/hate-speech-dataset",
        licence="CC BY-SA 3.0 ES",
        citation="de Gibert, Perez, Garcia-Pablos and Cuadros (2018), Hate Speech Dataset from a "
        "White Supremacy Forum, Workshop on Abusive Language Online.",
        known_harms=HATE_HARMS,
        unknowns=f"The labels relation and idk/skip are {meaning}.",
    )


def _text_files(folder: Path, names: list[str]) -> pl.DataFrame:
    if not folder.is_dir():
        fault = "neither stormfront_sentences.csv nor the folder all_files is there"
        raise DataError(str(folder.parent), [fault])
    result: dict[str, list[str]] = {"file_id": [], "text": []}
    for name in names:
        file = folder / f"{Path(name).name}.txt"
        if file.is_file():
            result["file_id"].append(name)
            result["text"].append(file.read_bytes().decode("utf-8", "replace").strip())
    return pl.DataFrame(result, schema={"file_id": pl.String, "text": pl.String})
