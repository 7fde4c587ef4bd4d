"""Spark's ALS as a recommender; needs the extra ``spark`` and Java."""

from __future__ import annotations

import shutil
from importlib.util import find_spec

import numpy as np
import polars as pl
import pytest

from ombud.data.interactions import Interactions
from ombud.data.recommendations import Recommendations
from ombud.data.splits import per_user
from ombud.errors import MissingExtraError
from ombud.registry import create
from ombud.systems.recommenders.adapters import SparkALS

HERE = find_spec("pyspark") is not None


def make():
    """Two tastes: users like the items of their own half."""
    rng = np.random.default_rng(2)
    liking = np.where((np.arange(60)[:, None] % 2) == (np.arange(40)[None, :] % 2), 4.5, 1.5)
    users, items = np.nonzero(rng.random((60, 40)) < 0.5)
    ratings = np.clip(liking[users, items] + rng.normal(0, 0.3, len(users)), 1, 5)
    return Interactions.from_arrays(users, items, ratings, rating_scale=(1, 5))


@pytest.mark.skipif(HERE, reason="pyspark is installed")
def test_without_pyspark_the_install_line_is_given():
    with pytest.raises(MissingExtraError, match=r"ombud\[spark\]"):
        SparkALS(factors=4).fit(make())


@pytest.mark.skipif(not HERE, reason="pyspark is not installed (extra spark)")
@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java")
@pytest.mark.filterwarnings("ignore")
def test_learns_the_two_tastes(tmp_path):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    try:
        parts = per_user(make(), share=0.2, seed=1)
        model = SparkALS(factors=4, iterations=5, blocks=2, regularization=0.05)
        model.fit(parts.train)
        held = parts.test.to_frame()
        predicted = model.predict(held["user"].to_numpy(), held["item"].to_numpy())
        error = np.sqrt(np.mean((predicted - held["rating"].to_numpy()) ** 2))
        assert error < 0.6  # the means alone leave 1.5
        lists = model.recommend(np.arange(60), 5)
        same = lists.catalogue.take(lists.items.ravel()).reshape(60, 5) % 2
        assert (same == np.arange(60)[:, None] % 2).mean() > 0.95
        implicit = SparkALS(factors=4, iterations=2, blocks=2, implicit=True).fit(parts.train)
        assert implicit.recommend([0], 3).lengths.tolist() == [3]
        # The same in Spark alone: lists without seen items, stored as an audit reads them.
        train = parts.train.to_frame()
        train.write_parquet(tmp_path / "train.parquet")
        model.write_lists(tmp_path / "train.parquet", str(tmp_path / "lists"), 5)
        stored = pl.read_parquet(tmp_path / "lists" / "*.parquet")
        in_spark = Recommendations.from_frame(stored.cast({"user": pl.Int64, "item": pl.Int64}))
        assert in_spark.lengths.tolist() == [5] * 60
        assert not in_spark.seen_in(parts.train).any()
        assert ((stored["item"] % 2) == (stored["user"] % 2)).mean() > 0.95
    finally:
        session.stop()


def test_a_plan_can_name_it():
    made = create("recommender", "spark-als", {"factors": 8, "regularization": 0.2})
    assert isinstance(made, SparkALS) and made.factors == 8
    with pytest.raises(ValueError, match="factors is 0"):
        SparkALS(factors=0)
