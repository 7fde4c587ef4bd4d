"""Alternating least squares by Spark MLlib; lists are made here, or in Spark and stored there."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ombud.data.interactions import Interactions
from ombud.errors import AuditedSystemError, DataError, OmbudError, require
from ombud.registry import recommender
from ombud.systems.base import Progress
from ombud.systems.recommenders.factors import FactorModel, Factors
from ombud.systems.recommenders.model import Scores, check_rules


def is_connect(session: Any) -> bool:
    """Return whether a session is one of Spark Connect, which has no context and no RDDs."""
    return type(session).__module__.startswith("pyspark.sql.connect")


@contextmanager
def spark_session(
    given: Any = None, frames: Iterable[Any] = (), make: Callable[[], Any] | None = None
) -> Iterator[tuple[Any, bool]]:
    """Give a session, and whether it is new; only a new one is stopped at the end.

    Parameters
    ----------
    given
        The session to take; default, that of `frames`, or the one that this process has.
    frames
        PySpark frames that will be read.
    make
        Makes a session where there is none; default, by Spark's own configuration.
    """
    own = [frame.sparkSession for frame in frames]
    session = given if given is not None else next(iter(own), None)
    session = _session_there() if session is None else session
    is_new = session is None
    if session is None:
        session = _made(make or _plain_session)
    try:
        yield session, is_new
    finally:
        # Of Spark Connect nobody says whether another thread had the session before.
        if is_new and not is_connect(session):
            with suppress(Exception):  # of a JVM that is gone; what went wrong before is told
                session.stop()


def _made(make: Callable[[], Any]) -> Any:
    """Return a new session; of one that fails no context stays, which the next would be given."""
    from pyspark import SparkContext

    try:
        return make()
    except Exception:
        begun: Any = SparkContext._active_spark_context
        if begun is not None:
            with suppress(Exception):
                begun.stop()
        raise


def _plain_session() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.builder.appName("ombud").getOrCreate()


def _session_there() -> Any:
    """Return the session that this process has; another thread may have made it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()  # of this thread
    if active is not None:
        return active
    context: Any = SparkContext._active_spark_context
    if context is None or context._jsc is None:  # none, or a stopped one
        return None
    return SparkSession.builder.getOrCreate()  # without options, which would change it


@recommender("spark-als")
@dataclass
class SparkALS(FactorModel):
    """Train ``pyspark.ml.recommendation.ALS``; lists are made here, from its factors.

    In an audit, histories come from this machine's memory and factors go back there. For histories
    that one machine does not hold, `write_lists` trains and recommends in Spark alone and stores
    the lists as Parquet, which ``[engine] type = "spark"`` audits as recorded ones.

    The session is the one that this process has, or a new one with the cluster that Spark's own
    configuration names (on this machine by default), which is stopped after training. Interactions
    go to Spark as a Parquet file in `folder`, and factors come back the same way, so on a cluster
    the folder must be one that all machines see. Two runs with the same seed agree only as far as
    Spark's partitions do. A new history cannot be folded in.

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
        check_rules(
            self,
            factors=(self.factors >= 1, "at least 1"),
            iterations=(self.iterations >= 1, "at least 1"),
            regularization=(self.regularization >= 0, "zero or more"),
            blocks=(self.blocks >= 1, "at least 1"),
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
            The session; default, that of `ratings`, the one that this process has, or a new one
            that is stopped at the end.
        exclude_seen
            Whether items of a user's history are left out. Spark then ranks n and as many more as
            the longest history has, so a user with most of the catalogue is dear.
        """
        require("pyspark", "spark")
        frames = [] if isinstance(ratings, str | Path) else [ratings]
        try:
            with spark_session(session, frames) as (chosen, _):
                frame = ratings if frames else chosen.read.parquet(str(ratings))
                self._write(_checked(frame), to, n, exclude_seen)
        except OmbudError:
            raise
        except Exception as error:
            raise spark_error(error, "Spark stopped before the lists were stored") from None

    def _write(self, frame: Any, to: str, n: int, exclude_seen: bool) -> None:
        from pyspark.sql import functions as f
        from pyspark.sql.window import Window

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
        progress(0, 1, "Spark trains")
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="ombud-als-") as folder:
            try:
                with spark_session() as (session, _):
                    users, items = self._factors(session, interactions, Path(folder))
            except Exception as error:
                raise spark_error(error, "Spark stopped before the model was trained") from None
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


_WHOLE = ("tinyint", "smallint", "int", "bigint")
_NUMBERS = (*_WHOLE, "float", "double", "decimal")
_LARGEST = 2**31 - 1


def _checked(frame: Any) -> Any:
    """Return the ratings, whose ids MLlib takes as they are: casts would change others unsaid."""
    kinds = dict(frame.dtypes)
    faults = [f"column {name!r} is missing" for name in ("user", "item") if name not in kinds]
    faults += [
        f"column {name!r} is {kinds[name]}; Spark's ALS takes whole numbers of 32 bits, so number "
        f"the {name}s first"
        for name in ("user", "item")
        if kinds.get(name, "int") not in _WHOLE
    ]
    if kinds.get("rating", "float").split("(")[0] not in _NUMBERS:
        faults.append(f"column 'rating' is {kinds['rating']}; it must be a number")
    if faults:
        raise DataError("ratings", faults)
    from pyspark.sql import functions as f

    columns = [name for name in ("user", "item", "rating") if name in kinds]
    asked = [f.count(f.lit(1))]
    for name in columns:
        asked += [f.count(name), f.min(name), f.max(name)]
    rows, *found = frame.agg(*asked).collect()[0]
    if not rows:
        raise DataError("ratings", ["the table has no rows"])
    for place, name in enumerate(columns):
        there, low, high = found[3 * place : 3 * place + 3]
        if there < rows:
            faults.append(f"column {name!r} is missing in {rows - there:,} rows")
        if name == "rating" or not there:
            continue
        if low < -_LARGEST - 1 or high > _LARGEST:
            faults.append(
                f"column {name!r} goes from {low} to {high}; Spark's ALS takes whole numbers of 32 "
                f"bits, so number the {name}s first"
            )
    if faults:
        raise DataError("ratings", faults)
    return frame


def spark_error(error: Exception, head: str, then: str = "") -> AuditedSystemError | DataError:
    """Return what went wrong in Spark as a sentence.

    `head` begins the sentence where the fault is none that has a sentence of its own; `then` says
    what to do about it.
    """
    text = str(error)
    if lacking := re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", text):
        package = lacking.group(1)
        return AuditedSystemError(
            f"an executor of the Spark cluster has no package {package!r}; install ombud, with the "
            "version of the driver, on every worker, or ship it (spark.archives)"
        )
    if fault := re.search(r"ombud\.errors\.\w+: (.+?)(?:\n\n|\n\tat |$)", text, re.S):
        return DataError("Spark", [" ".join(fault.group(1).split())[:300]])
    if other := re.search(r"Python in worker has different version: (\S+) than that in driver: "
                          r"(\d+\.\d+)", text):  # fmt: skip
        return AuditedSystemError(
            f"the executors of the Spark cluster run Python {other.group(1)}, the driver "
            f"{other.group(2)}; set PYSPARK_PYTHON to a Python {other.group(2)} that has ombud on "
            "every worker"
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = next(iter(lines), type(error).__name__)
    if thrown := re.search(r"^: [\w.$]+(?:Exception|Error): (.+)$", text, re.M):
        first = thrown.group(1).strip()  # what stands before it is how Python called Java
    elif "An exception was thrown from the Python worker" in text:
        raised = re.findall(r"^[\w.]*(?:Error|Exception|Interrupt|Exit): .+$", text, re.M)
        first = raised[-1].strip() if raised else first
    return AuditedSystemError(f"{head}: {first[:300].rstrip('.')}. {then}".rstrip())
