"""Data that came from memory is stored with the result, so that it can be measured again."""

from __future__ import annotations

from pathlib import Path

from ombud.audits.plan import DataPlan
from ombud.data.dataset import Dataset
from ombud.data.tables import TABLES, write_table

HELD_OUT = "held_out.parquet"
"""What a plan's split held out, in a result folder; all the rest was trained on."""


def data_plan(data: Dataset) -> DataPlan:
    """Return the part of a plan that names the stored tables."""
    told = {name: f"inputs/{name}.parquet" for name in TABLES if getattr(data, name) is not None}
    if data.labels is not None and data.labels.unlabeled == "no":
        told["unlabeled"] = "no"
    return DataPlan().model_copy(update=told)


def store_data(data: Dataset, folder: Path) -> None:
    """Store the tables of a data set in a result folder, unless they are there."""
    for name in TABLES:
        path = folder / "inputs" / f"{name}.parquet"
        if not path.exists():
            write_table(name, data, path)


def store_held_out(data: Dataset, folder: Path) -> None:
    """Store what was held out, so that others can measure on the same part."""
    if data.test is not None and not (folder / HELD_OUT).exists():
        write_table("test", data, folder / HELD_OUT)
