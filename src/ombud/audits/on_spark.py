"""Audits on a Spark cluster: blocks of units are measured on the executors, sums come back.

``[engine] type = "spark"``. Rows are sorted by user (or text, or what texts share) in Spark, every
partition is a block, and the code that measures it is that of `ombud.audits.streamed`. Nothing of
the size of rows or units comes to the driver: distinct items, names of groups, and one set of sums.
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

from ombud.audits.block_audit import BlockTotals
from ombud.audits.block_tables import (
    MOST_GROUPS,
    Found,
    Tables,
    checked_members,
    checked_values,
    plain_batch,
    tagger_members,
)
from ombud.audits.block_texts import tagged_members, with_clusters
from ombud.audits.plan import Plan
from ombud.audits.presets import Tagger, tagger_of
from ombud.audits.run_folder import RunFolder
from ombud.audits.spark_watch import ExecutorWatch
from ombud.audits.streamed import AnyBlockAudit, StreamedAudit
from ombud.errors import AuditedSystemError, DataError, MissingExtraError, PlanError, require
from ombud.systems.base import Progress

__all__ = ["SparkAudit", "java_fault", "spark_fault"]

_VERSIONS = ((3, 5), (5, 0))
_JAVA = 17
_BLOCKS = 200
_NUMBERS = ("rating", "rank", "score")
_COUNTS = ("yes", "no", "repeat")
_IDS = ("user", "item", "id", "cluster")
_KINDS = {
    **dict.fromkeys(("bigint", "int", "smallint", "tinyint"), pa.int64()),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
}


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
    """An audit of recorded lists or decisions on a Spark cluster.

    Parameters
    ----------
    plan
        What to audit.
    frames
        PySpark frames to read in place of the plan's files, by table: ``interactions``, ``test``,
        ``users``, and ``lists/<system>``, or ``texts``, ``text_groups`` and
        ``decisions/<system>``, with ombud's names of columns. The plan then names them by any word.
    session
        The session; default, the active one, or a new one that is stopped at the end.
    """

    frames: Mapping[str, Any] = field(default_factory=dict)
    session: Any = None
    query: str = field(default="", init=False)
    """What Spark did to measure, in its own words; empty before a run."""

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
        given = {
            name: {column: _KINDS.get(kind, pa.null()) for column, kind in frame.dtypes}
            for name, frame in self.frames.items()
        }
        return Tables.of(self.plan, given, tagger_of(self.plan))

    def _measured(
        self, tables: Tables, store: RunFolder, progress: Progress
    ) -> tuple[AnyBlockAudit, BlockTotals]:
        del store  # nothing is stored before the end
        from pyspark.sql import SparkSession

        active = self.session or SparkSession.getActiveSession()
        session = active or self._new_session()
        watch = ExecutorWatch(session, progress)
        try:
            with watch:
                return self._on(session, tables, progress)
        except (DataError, PlanError):
            raise
        except Exception as error:
            raise AuditedSystemError(watch.sentence) if watch.given_up else _told(error) from None
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
    ) -> tuple[AnyBlockAudit, BlockTotals]:
        frames = {name: self._frame(session, name, tables) for name in tables.tables}
        progress(0, 3, "Spark looks at the tables")
        audit = self.block_audit(tables, self._found(frames, tables))
        progress(1, 3, f"Spark measures blocks of {tables.what}")
        count = self.plan.engine.blocks or _BLOCKS
        if tables.main == "texts":
            frames = _without_texts(frames, tables)
        whole = _joined(frames).repartition(count, "_unit")
        columns = {name: _named(frame) for name, frame in frames.items()}
        if tables.is_clustered:
            whole = _by_cluster(whole, columns, count)
        from pyspark import cloudpickle

        # By value, so that a metric of a notebook, which executors cannot import, goes along.
        pack: Any = cloudpickle.dumps
        shared = session.sparkContext.broadcast(pack(audit))
        states = whole.mapInArrow(_measurer(shared, columns), "part int, state binary")
        self.query = states._jdf.queryExecution().simpleString()

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
            files = table.version_files()
            reader = session.read
            if files is not None and not table.is_iceberg:  # of Delta, partitions are in the paths
                reader = reader.option("basePath", table.path)
            frame = reader.parquet(*([table.path] if files is None else files))
        chosen: list[Any] = []
        for column in tables.columns[name]:
            theirs = table.columns.get(column, column)
            value, kind = f.col(f"`{theirs}`"), dict(frame.dtypes)[theirs]
            if not chosen or (column in _IDS and name != tables.groups):
                value = value.cast("string" if kind == "string" else "bigint")
            elif name == tables.groups:
                value = value.cast("string")
            elif column in _NUMBERS:
                value = value.cast("double")
            elif column in _COUNTS or (kind != "boolean" and column in ("label", "flagged")):
                value = value.cast("bigint")
            chosen.append(value.alias(column))
        if name.startswith("lists/") and not {"rank", "score"} & set(tables.columns[name]):
            raise DataError(table.told, ["rows have no order in Spark: a column 'rank' or 'score' "
                                         "must say which item comes first"])  # fmt: skip
        return frame.select(*chosen)

    def _found(self, frames: Mapping[str, Any], tables: Tables) -> Found:
        count = self.plan.engine.blocks or _BLOCKS
        if tables.tagger is not None:
            return Found(count, members=tagger_members(tables.tagger))
        given = frames.get(tables.groups)
        members: tuple[tuple[str, str], ...] = ()
        values: dict[str, tuple[str, ...]] = {}
        if given is not None and tables.has_members:
            members = checked_members(_pairs(given), tables.by)
        elif given is not None:
            kinds = {}
            for attribute in given.columns[1:]:
                some = given.select(attribute).distinct().limit(MOST_GROUPS + 2).collect()
                kinds[attribute] = [row[0] for row in some if row[0] is not None]
            values = checked_values(kinds)
        if tables.main == "texts":
            return Found(count, None, values, members)
        items = frames["interactions"].select("item")
        if "test" in frames:
            items = items.union(frames["test"].select("item"))
        known = [row[0] for row in items.distinct().collect()]
        if not known:
            raise PlanError("interactions: the table has no rows")
        if None in known:
            raise DataError("interactions", ["column 'item' is missing in some rows"])
        return Found(count, pa.array(known), values, members)


def _pairs(members: Any) -> list[tuple[str, str]]:
    """Return attribute and name of the groups of a table of memberships."""
    from pyspark.sql import functions as f

    attribute = f.col("attribute") if "attribute" in members.columns else f.lit("group")
    some = members.select(attribute, "group").distinct().limit(MOST_GROUPS + 2).collect()
    if any(row[1] is None for row in some):
        raise DataError("groups", ["column 'group' is missing in some rows"])
    return [(row[0], row[1]) for row in some]


Batches = Iterator[pa.RecordBatch]
Columns = dict[str, tuple[tuple[str, str], ...]]
"""By table: the names of its columns, and those that they have among the rows of all tables."""


def _without_texts(frames: Mapping[str, Any], tables: Tables) -> dict[str, Any]:
    """Return the tables with the groups that texts name, found on the executors, but no texts."""
    texts, result = frames["texts"], dict(frames)
    kinds = dict(texts.dtypes) | {"text": "boolean", "cluster": "bigint"}
    schema = ", ".join(f"`{column}` {kinds[column]}" for column in texts.columns)
    result["texts"] = texts.mapInArrow(_plain("texts", tables.tables["texts"].told), schema)
    if tables.tagger is not None:
        some = texts.select("id", "text")
        schema = f"id {kinds['id']}, `group` string"
        result["text_groups"] = some.mapInArrow(_tagging(tables.tagger), schema)
    return result


def _plain(name: str, told: str) -> Callable[[Batches], Batches]:
    def plain(batches: Batches) -> Batches:
        for batch in batches:
            yield _as_spark(plain_batch(batch, name, told))

    return plain


def _tagging(tagger: Tagger) -> Callable[[Batches], Batches]:
    def tag(batches: Batches) -> Batches:
        for batch in batches:
            yield _as_spark(tagged_members(tagger, batch))

    return tag


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> AnyBlockAudit:
    """Return what the driver has packed; once for each Python worker."""
    from pyspark import cloudpickle

    audit: AnyBlockAudit = cloudpickle.loads(packed)
    return audit


def _named(frame: Any) -> tuple[tuple[str, str], ...]:
    """Return a table's columns, and names by which only columns of one type are the same."""
    first, *more = frame.dtypes
    return ((first[0], "_unit"), *((name, f"{name}:{kind}") for name, kind in more))


def _joined(frames: Mapping[str, Any]) -> Any:
    """Return all tables as one, with the number of the table beside each row."""
    from pyspark.sql import functions as f

    numbered = [
        frame.select(
            *(f.col(f"`{ours}`").alias(theirs) for ours, theirs in _named(frame)),
            f.lit(number).alias("_table"),
        )
        for number, frame in enumerate(frames.values())
    ]
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), numbered)


def _by_cluster(whole: Any, columns: Columns, count: int) -> Any:
    """Sort once more, by what texts share: only a text's own row says what that is."""
    kinds = {name: kind for name, kind in whole.dtypes if name != "cluster:bigint"}
    schema = ", ".join(f"`{name}` {kind}" for name, kind in kinds.items())
    order = [*kinds, "cluster:bigint"]

    def attach(batches: Batches) -> Batches:
        frame = _whole(batches)
        if frame is None:
            return
        frames = with_clusters(_parts(frame, columns))
        for number, name in enumerate(columns):
            some = frames[name]
            back = {ours: theirs for ours, theirs in columns[name] if ours != "cluster"}
            there = some.rename({**back, "cluster": "cluster:bigint"})
            there = there.with_columns(pl.lit(number, dtype=pl.Int32).alias("_table"))
            lacking = [pl.lit(None, dtype=frame.schema[c]).alias(c) for c in order
                       if c not in there.columns]  # fmt: skip
            table = there.with_columns(lacking).select(order)
            for batch in table.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches():
                yield _as_spark(batch)

    again = whole.mapInArrow(attach, f"{schema}, `cluster:bigint` bigint")
    return again.repartition(count, again["`cluster:bigint`"])


def _as_spark(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows whose strings have the one type that Spark takes."""
    columns = [
        column.cast(pa.string()) if pa.types.is_large_string(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _whole(batches: Batches) -> pl.DataFrame | None:
    """Return the rows of a partition; None for none."""
    parts = list(batches)
    if not parts or not sum(part.num_rows for part in parts):
        return None
    whole = pl.from_arrow(pa.Table.from_batches(parts))
    assert isinstance(whole, pl.DataFrame)  # a table never becomes a series
    return whole


def _measurer(shared: Any, columns: Columns) -> Callable[[Batches], Batches]:
    """Return what an executor does with a partition: measure it, and give back sums."""

    def measure(batches: Batches) -> Batches:
        whole = _whole(batches)
        if whole is None:
            return
        audit = _unpacked(shared.value)
        totals = audit.totals()
        audit.measure(_parts(whole, columns), totals)
        states = totals.to_bytes()
        yield pa.RecordBatch.from_arrays(
            [pa.array(range(len(states)), type=pa.int32()), pa.array(states, type=pa.binary())],
            names=["part", "state"],
        )

    return measure


def _parts(whole: pl.DataFrame, columns: Columns) -> dict[str, pl.DataFrame]:
    """Return the rows of each table, with the columns that it has."""
    result = {}
    for number, (name, some) in enumerate(columns.items()):
        here = whole.filter(pl.col("_table") == number)
        rows = here.select(pl.col(theirs).alias(ours) for ours, theirs in some)
        if missing := rows.to_series(0).null_count():
            fault = f"column {rows.columns[0]!r} is missing in {missing:,} rows or more"
            raise DataError(name, [fault])
        if "rank" in rows.columns and name.startswith("lists/"):
            rows = rows.with_columns(pl.col("rank").cast(pl.Int64))
        result[name] = rows
    return result


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
    return AuditedSystemError(
        f"Spark stopped before the audit was done: {first[:300]}. Nothing was stored; once the "
        "cluster is there again, run the plan again"
    )
