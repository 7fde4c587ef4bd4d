"""Spark's ALS as a recommender, without Spark; `tests/audits/test_spark_cluster.py` trains it."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from ombud.data.interactions import Interactions
from ombud.errors import MissingExtraError
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
