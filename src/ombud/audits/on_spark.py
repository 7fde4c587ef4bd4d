"""Audits on a Spark cluster: blocks of users are measured on the executors, sums come back.

``[engine] type = "spark"``. Rows are sorted by user in Spark, every partition is a block, and the
code that measures it is that of `ombud.audits.streamed`. Nothing of the size of rows or users comes
to the driver: distinct items, values of attributes, and one set of sums.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import polars as pl
import pyarrow as pa

from ombud.audits.block_audit import BlockAudit, BlockTotals
from ombud.audits.plan import Plan
from ombud.audits.run_folder import RunFolder
from ombud.audits.streamed import Found, StreamedAudit, Tables
from ombud.errors import AuditedSystemError, DataError, MissingExtraError, PlanError, require
from ombud.systems.base import Progress

__all__ = ["SparkAudit", "java_fault", "spark_fault"]

_VERSIONS = ((3, 5), (5, 0))
_JAVA = 17
_BLOCKS = 200
_NUMBERS = ("rating", "rank", "score")


def java_fault() -> str:
    """Return why Spark would not find a Java that it can use; empty when it would."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or shutil.which(java) is None:
        where = f"JAVA_HOME is {home}, and there is none" if home else "there is none on the path"
        return f"Spark needs Java {_JAVA} or newer, and {where}; install a JDK, or set JAVA_HOME"
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"Spark needs Java, and {java} does not start: {error}"
    told = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    if told is None:
        return f"Spark needs Java, and {java} does not say its version"
    found = int(told.group(1))
    if found < _JAVA:
        return f"Spark needs Java {_JAVA} or newer; {java} is Java {found}"
    return ""


def spark_fault() -> str:
    """Return why an audit cannot run on Spark here; empty when it can."""
    try:
        require("pyspark", "spark")
    except MissingExtraError as error:
        return str(error)
    found = version("pyspark")
    numbers = tuple(int(part) for part in re.findall(r"\d+", found)[:2])
    if not _VERSIONS[0] <= numbers < _VERSIONS[1]:
        low, high = (".".join(map(str, one)) for one in _VERSIONS)
        return f"pyspark is {found}; ombud works with {low} up to, but not with, {high}"
    return java_fault()


@dataclass
class SparkAudit(StreamedAudit):
    """An audit of recorded lists on a Spark cluster.

    Parameters
    ----------
    plan
        What to audit.
    frames
        PySpark frames to read in place of the plan's files, by table: ``interactions``, ``test``,
        ``users``, and ``lists/<system>``, with ombud's names of columns. The plan then names them
        by any word.
    session
        The session; default, the active one, or a new one that is stopped at the end.
    """

    frames: Mapping[str, Any] = field(default_factory=dict)
    session: Any = None

    @classmethod
    def from_plan(
        cls, plan: Plan, frames: Mapping[str, Any] | None = None, session: Any = None
    ) -> Self:
        """Check what can be checked before a session is started."""
        fault = spark_fault()
        if fault:
            raise MissingExtraError(fault)
        made = super().from_plan(plan)
        made.frames, made.session = frames or {}, session
        return made

    def _tables(self) -> Tables:
        kinds = {"bigint": pa.int64(), "int": pa.int64(), "smallint": pa.int64()}
        kinds |= {"float": pa.float32(), "double": pa.float64(), "string": pa.string()}
        given = {
            name: {column: kinds.get(kind, pa.null()) for column, kind in frame.dtypes}
            for name, frame in self.frames.items()
        }
        return Tables.of(self.plan, given)

    def _measured(
        self, tables: Tables, store: RunFolder, progress: Progress
    ) -> tuple[BlockAudit, BlockTotals]:
        del store  # nothing is stored before the end
        from pyspark.sql import SparkSession

        active = self.session or SparkSession.getActiveSession()
        session = active or self._new_session()
        try:
            return self._on(session, tables, progress)
        except (DataError, PlanError):
            raise
        except Exception as error:
            raise _told(error) from None
        finally:
            if active is None:
                session.stop()

    def _new_session(self) -> Any:
        from pyspark.sql import SparkSession

        # Executors must run the Python that the driver runs; a plan may name another.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.appName("ombud")
        if self.plan.engine.master is not None:
            builder = builder.master(self.plan.engine.master)
        for name, value in self.plan.engine.options.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()

    def _on(
        self, session: Any, tables: Tables, progress: Progress
    ) -> tuple[BlockAudit, BlockTotals]:
        frames = {name: self._frame(session, name, tables) for name in tables.tables}
        progress(0, 3, "Spark looks at the tables")
        audit = self.block_audit(tables, self._found(frames))
        progress(1, 3, "Spark measures blocks of users")
        count = self.plan.engine.blocks or _BLOCKS
        whole = _joined(frames).repartition(count, "user")
        from pyspark import cloudpickle

        # By value, so that a metric of a notebook, which executors cannot import, goes along.
        pack: Any = cloudpickle.dumps
        shared = session.sparkContext.broadcast(pack(audit))
        columns = {name: tuple(tables.columns[name]) for name in frames}
        states = whole.mapInArrow(_measurer(shared, columns), "part int, state binary")

        def merged(part: int, one: bytes, other: bytes) -> bytes:
            return _unpacked(shared.value).totals().merged_part(part, one, other)

        pairs = states.rdd.map(lambda row: (row[0], bytes(row[1])))
        # Both sides carry the part, so that the executors know what they merge.
        tagged = pairs.map(lambda pair: (pair[0], (pair[0], pair[1])))
        sums = tagged.reduceByKey(lambda a, b: (a[0], merged(a[0], a[1], b[1]))).collect()
        progress(3, 3, "Spark measured")
        totals = audit.totals()
        parts = {part: state for part, (_, state) in sums}
        if parts:
            totals.restore([parts[part] for part in sorted(parts)])
        return audit, totals

    def _frame(self, session: Any, name: str, tables: Tables) -> Any:
        """Return a table with ombud's names and types, whatever it is stored as."""
        from pyspark.sql import functions as f

        table = tables.tables[name]
        frame = self.frames.get(name)
        if frame is None:
            frame = session.read.parquet(table.path)
        chosen = []
        for column in tables.columns[name]:
            value = f.col(table.columns.get(column, column))
            if column in ("user", "item"):
                kind = dict(frame.dtypes)[table.columns.get(column, column)]
                value = value.cast("string" if kind == "string" else "bigint")
            elif column in _NUMBERS:
                value = value.cast("double")
            elif column != "time":
                value = value.cast("string")
            chosen.append(value.alias(column))
        if name.startswith("lists/") and not {"rank", "score"} & set(tables.columns[name]):
            raise DataError(table.told, ["rows have no order in Spark: a column 'rank' or 'score' "
                                         "must say which item comes first"])  # fmt: skip
        return frame.select(*chosen)

    def _found(self, frames: Mapping[str, Any]) -> Found:
        items = frames["interactions"].select("item")
        if "test" in frames:
            items = items.union(frames["test"].select("item"))
        known = [row[0] for row in items.distinct().collect()]
        if not known:
            raise PlanError("interactions: the table has no rows")
        if None in known:
            raise DataError("interactions", ["column 'item' is missing in some rows"])
        values = {}
        if "users" in frames:
            for attribute in frames["users"].columns[1:]:
                some = frames["users"].select(attribute).distinct().collect()
                values[attribute] = tuple(sorted(row[0] for row in some if row[0] is not None))
        return Found(self.plan.engine.blocks or _BLOCKS, pa.array(known), values)


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> BlockAudit:
    """Return what the driver has packed; once for each Python worker."""
    from pyspark import cloudpickle

    audit: BlockAudit = cloudpickle.loads(packed)
    return audit


def _joined(frames: Mapping[str, Any]) -> Any:
    """Return all tables as one, with the number of the table beside each row."""
    from pyspark.sql import functions as f

    numbered = [
        frame.withColumn("_table", f.lit(number)) for number, frame in enumerate(frames.values())
    ]
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), numbered)


def _measurer(
    shared: Any, columns: Mapping[str, tuple[str, ...]]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what an executor does with a partition: measure it, and give back sums."""

    def measure(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = list(batches)
        if not parts or not sum(part.num_rows for part in parts):
            return
        whole = pl.from_arrow(pa.Table.from_batches(parts))
        assert isinstance(whole, pl.DataFrame)  # a table never becomes a series
        audit = _unpacked(shared.value)
        totals = audit.totals()
        frames = {
            name: _part(whole, number, some) for number, (name, some) in enumerate(columns.items())
        }
        audit.measure(frames, totals)
        states = totals.to_bytes()
        yield pa.RecordBatch.from_arrays(
            [pa.array(range(len(states)), type=pa.int32()), pa.array(states, type=pa.binary())],
            names=["part", "state"],
        )

    return measure


def _part(whole: pl.DataFrame, number: int, columns: tuple[str, ...]) -> pl.DataFrame:
    """Return the rows of one table, with the columns that it has."""
    rows = whole.filter(pl.col("_table") == number).select(columns)
    return rows.with_columns(pl.col("rank").cast(pl.Int64)) if "rank" in columns else rows


def _told(error: Exception) -> AuditedSystemError | DataError:
    """Return what went wrong in Spark as a sentence."""
    text = str(error)
    if lacking := re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", text):
        package = lacking.group(1)
        return AuditedSystemError(
            f"an executor of the Spark cluster has no package {package!r}; install ombud, with the "
            "version of the driver, on every worker, or ship it (spark.archives)"
        )
    if fault := re.search(r"ombud\.errors\.\w+: (.+?)(?:\n\n|\n\tat |$)", text, re.S):
        return DataError("Spark", [" ".join(fault.group(1).split())[:300]])
    first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    return AuditedSystemError(
        f"Spark stopped before the audit was done: {first[:300]}. Nothing was stored; once the "
        "cluster is there again, run the plan again"
    )
