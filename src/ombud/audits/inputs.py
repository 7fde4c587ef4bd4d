"""Data that came from memory is stored with the result, so that it can be measured again."""

from __future__ import annotations

from pathlib import Path

from ombud.audits.plan import DataPlan
from ombud.data.dataset import Dataset
from ombud.data.tables import TABLES, write_table

__all__ = ["data_plan", "store_data"]


def data_plan(data: Dataset) -> DataPlan:
    """Return the part of a plan that names the stored tables."""
    paths = {name: f"inputs/{name}.parquet" for name in TABLES if getattr(data, name) is not None}
    return DataPlan().model_copy(update=paths)


def store_data(data: Dataset, folder: Path) -> None:
    """Store the tables of a data set in a result folder, unless they are there."""
    for name in TABLES:
        path = folder / "inputs" / f"{name}.parquet"
        if not path.exists():
            write_table(name, data, path)
