"""Data that came from memory is stored with the result, so that it can be measured again."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ombud.audits.plan import FILES, DataPlan
from ombud.data.dataset import Dataset
from ombud.files import write_parquet

__all__ = ["data_plan", "store_data"]


def _tables(data: Dataset) -> dict[str, pl.DataFrame]:
    tables = {}
    if data.interactions is not None:
        tables["interactions"] = data.interactions.to_frame()
    if data.test is not None:
        tables["test"] = data.test.to_frame()
    if data.labels is not None:
        tables["labels"] = data.labels.to_frame()
    if data.texts is not None:
        tables["texts"] = data.texts.to_frame()
    if data.users is not None:
        tables["users"] = data.users.to_members("user")
    if data.text_groups is not None:
        tables["text_groups"] = data.text_groups.to_members("id")
    return tables


def data_plan(data: Dataset) -> DataPlan:
    """Return the part of a plan that names the stored tables."""
    paths = {name: f"inputs/{name}.parquet" for name in FILES if getattr(data, name) is not None}
    return DataPlan().model_copy(update=paths)


def store_data(data: Dataset, folder: Path) -> None:
    """Store the tables of a data set in a result folder, unless they are there."""
    for name, table in _tables(data).items():
        path = folder / "inputs" / f"{name}.parquet"
        if not path.exists():
            write_parquet(path, table)
