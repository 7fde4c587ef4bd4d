"""Alternating least squares by Spark MLlib, for histories that one machine does not hold."""

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
        from pyspark.ml.recommendation import ALS

        matrix = interactions.matrix
        rows = np.repeat(np.arange(matrix.shape[0], dtype=np.int32), np.diff(matrix.indptr))
        table = {"user": rows, "item": matrix.indices.astype(np.int32), "rating": matrix.data}
        pl.DataFrame(table).write_parquet(folder / "ratings.parquet")
        implicit = not interactions.explicit if self.implicit is None else self.implicit
        model = ALS(
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
        ).fit(session.read.parquet(str(folder / "ratings.parquet")))
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
