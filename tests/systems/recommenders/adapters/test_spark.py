"""Spark's ALS as a recommender, without Spark; `tests/audits/test_spark_cluster.py` trains it."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ombud.data.interactions import Interactions
from ombud.errors import AuditedSystemError, DataError, MissingExtraError
from ombud.registry import create
from ombud.systems.recommenders.adapters import SparkALS


def test_without_pyspark_the_install_line_is_given(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    table = Interactions.from_arrays(np.arange(4), np.arange(4))
    with pytest.raises(MissingExtraError, match=r"ombud\[spark\]"):
        SparkALS(factors=4).fit(table)


def test_a_plan_can_name_it():
    made = create("recommender", "spark-als", {"factors": 8, "regularization": 0.2})
    assert isinstance(made, SparkALS) and made.factors == 8
    with pytest.raises(ValueError, match="factors is 0"):
        SparkALS(factors=0)


class Frame:
    """As much of a PySpark frame as is looked at before Spark is asked."""

    def __init__(self, **kinds: str) -> None:
        self.dtypes = list(kinds.items())
        self.columns = list(kinds)
        self.sparkSession = SimpleNamespace(stop=self._stop)

    def _stop(self) -> None:
        raise AssertionError("the session is the frame's")


def test_columns_that_als_does_not_take_are_all_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ombud.systems.recommenders.adapters.spark.require", lambda *_: None)
    frame = Frame(user="string", rating="string")
    with pytest.raises(DataError) as caught:
        SparkALS(factors=4).write_lists(frame, "lists", 5)
    item, user, rating = caught.value.faults
    assert item == "column 'item' is missing"
    assert user.startswith("column 'user' is string; Spark's ALS takes whole numbers of 32 bits")
    assert rating == "column 'rating' is string; it must be a number"


def test_what_spark_says_is_a_sentence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ombud.systems.recommenders.adapters.spark.require", lambda *_: None)

    def gone(path: str) -> Any:
        raise ValueError("[PATH_NOT_FOUND] Path does not exist: there.\nmore")

    session = SimpleNamespace(read=SimpleNamespace(parquet=gone))
    with pytest.raises(AuditedSystemError) as caught:
        SparkALS(factors=4).write_lists("there", "lists", 5, session=session)
    head = "Spark stopped before the lists were stored: "
    assert str(caught.value) == f"{head}[PATH_NOT_FOUND] Path does not exist: there."
