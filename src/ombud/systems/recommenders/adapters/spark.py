"""Alternating least squares by Spark MLlib; lists are made here, or in Spark and stored there."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ombud.errors import require
from ombud.registry import recommender
from ombud.systems.recommenders.factors import FactorModel, Factors
from ombud.systems.recommenders.model import Scores, faults_of

if TYPE_CHECKING:
    from ombud.data.interactions import Interactions
    from ombud.systems.base import Progress

__all__ = ["SparkALS"]


@recommender("spark-als")
@dataclass
class SparkALS(FactorModel):
    """Train ``pyspark.ml.recommendation.ALS``; lists are made here, from its factors.

    In an audit, histories come from this machine's memory and factors go back there. For histories
    that one machine does not hold, `write_lists` trains and recommends in Spark alone and stores
    the lists as Parquet, which ``[engine] type = "spark"`` audits as recorded ones.

    The session is the active one, or a new one with the cluster that Spark's own configuration
    names (on this machine by default), which is stopped after training. Interactions go to Spark
    as a Parquet file in `folder`, and factors come back the same way, so on a cluster the folder
    must be one that all machines see. Two runs with the same seed agree only as far as Spark's
    partitions do. A new history cannot be folded in.

    Parameters
    ----------
    factors, iterations, regularization, alpha, seed
        As in MLlib: ``rank``, ``maxIter``, ``regParam``, ``alpha``, ``seed``.
    implicit
        Whether to take interactions as implicit feedback; default, when there are no ratings.
    blocks
        ``numUserBlocks`` and ``numItemBlocks``.
    folder
        Where the Parquet files go; default, this machine's folder for temporary files.
    threads
        Threads that make lists; None for all.
    """

    factors: int = 64
    iterations: int = 10
    regularization: float = 0.1
    alpha: float = 1.0
    implicit: bool | None = None
    blocks: int = 10
    seed: int = 0
    folder: Path | None = None
    threads: int | None = None

    def _check_arguments(self) -> None:
        faults_of(
            factors=(self.factors >= 1, f"is {self.factors}; it must be at least 1"),
            iterations=(self.iterations >= 1, f"is {self.iterations}; it must be at least 1"),
            regularization=(
                self.regularization >= 0,
                f"is {self.regularization}; it must be zero or more",
            ),
            blocks=(self.blocks >= 1, f"is {self.blocks}; it must be at least 1"),
        )

    def write_lists(
        self, ratings: Any, to: str, n: int, *, session: Any = None, exclude_seen: bool = True
    ) -> None:
        """Train, recommend and store lists in Spark; nothing comes to this machine.

        Parameters
        ----------
        ratings
            A PySpark frame, or the path of Parquet that the cluster sees, with `user` and `item`
            (whole numbers of 32 bits) and, unless feedback is implicit, `rating`.
        to
            Where the lists go, as Parquet with `user`, `item`, `rank` and `score`; what is there is
            an error of Spark's.
        n
            Places of a list.
        session
            The session; default, the active one, or a new one that is stopped at the end.
        exclude_seen
            Whether items of a user's history are left out. Spark then ranks n and as many more as
            the longest history has, so a user with most of the catalogue is dear.
        """
        require("pyspark", "spark")
        from pyspark.sql import SparkSession
        from pyspark.sql import functions as f
        from pyspark.sql.window import Window

        active = session or SparkSession.getActiveSession()
        chosen = active or SparkSession.builder.appName("ombud").getOrCreate()
        try:
            frame = (
                chosen.read.parquet(str(ratings)) if isinstance(ratings, str | Path) else ratings
            )
            implicit = "rating" not in frame.columns if self.implicit is None else self.implicit
            if "rating" not in frame.columns:
                frame = frame.withColumn("rating", f.lit(1.0))
            frame = frame.select(
                f.col("user").cast("int"), f.col("item").cast("int"), f.col("rating").cast("float")
            )
            model = self._als(implicit).fit(frame)
            more = 0
            if exclude_seen:
                longest = frame.groupBy("user").count().agg(f.max("count")).collect()
                more = int(longest[0][0] or 0)
            ranked = model.recommendForAllUsers(n + more)
            lists = ranked.select("user", f.explode("recommendations").alias("r"))
            lists = lists.select(
                "user", f.col("r.item").alias("item"), f.col("r.rating").alias("score")
            )
            if exclude_seen:
                lists = lists.join(frame.select("user", "item"), ["user", "item"], "left_anti")
            order = Window.partitionBy("user").orderBy(f.desc("score"), "item")
            lists = lists.withColumn("rank", f.row_number().over(order)).where(f.col("rank") <= n)
            lists.write.parquet(to)
        finally:
            if active is None:
                chosen.stop()

    def _als(self, implicit: bool) -> Any:
        from pyspark.ml.recommendation import ALS

        return ALS(
            rank=self.factors,
            maxIter=self.iterations,
            regParam=self.regularization,
            alpha=self.alpha,
            implicitPrefs=implicit,
            numUserBlocks=self.blocks,
            numItemBlocks=self.blocks,
            seed=self.seed,
            userCol="user",
            itemCol="item",
            ratingCol="rating",
        )

    def _train(self, interactions: Interactions, progress: Progress) -> Factors:
        require("pyspark", "spark")
        from pyspark.sql import SparkSession

        active = SparkSession.getActiveSession()
        session = active or SparkSession.builder.appName("ombud").getOrCreate()
        progress(0, 1, "Spark trains")
        try:
            with tempfile.TemporaryDirectory(dir=self.folder, prefix="ombud-als-") as folder:
                users, items = self._factors(session, interactions, Path(folder))
        finally:
            if active is None:
                session.stop()
        progress(1, 1, "Spark trained")
        return Factors(users, items).check(self.name)

    def _factors(
        self, session: Any, interactions: Interactions, folder: Path
    ) -> tuple[Scores, Scores]:
        matrix = interactions.matrix
        rows = np.repeat(np.arange(matrix.shape[0], dtype=np.int32), np.diff(matrix.indptr))
        table = {"user": rows, "item": matrix.indices.astype(np.int32), "rating": matrix.data}
        pl.DataFrame(table).write_parquet(folder / "ratings.parquet")
        implicit = not interactions.explicit if self.implicit is None else self.implicit
        model = self._als(implicit).fit(session.read.parquet(str(folder / "ratings.parquet")))
        sides = []
        for name, frame, count in (
            ("users", model.userFactors, interactions.n_users),
            ("items", model.itemFactors, interactions.n_items),
        ):
            frame.write.parquet(str(folder / name))
            result = pl.read_parquet(folder / name / "*.parquet")
            side = np.zeros((count, self.factors), dtype=np.float32)
            values = result["features"].explode().to_numpy().reshape(-1, self.factors)
            side[result["id"].to_numpy()] = values
            sides.append(side)
        return sides[0], sides[1]
