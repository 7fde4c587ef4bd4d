"""Audits on a Spark cluster: blocks of units are measured on the executors, sums come back.

``[engine] type = "spark"``. Rows are sorted by user (or text, or what texts share) in Spark, every
partition is a block, and the code that measures it is that of blocks on disk. Nothing of the size
of rows or units comes to the driver: distinct items, names of groups, and one set of sums.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from importlib.metadata import version
from math import isqrt
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import polars as pl
import pyarrow as pa

from ombud.audits.backends.base import Measured, Run
from ombud.audits.backends.blocks import BlockAudit, BlockTotals, tagged_members, with_clusters
from ombud.audits.backends.stream import BlockBackend
from ombud.audits.backends.tables import (
    MOST_GROUPS,
    Found,
    Tables,
    checked_members,
    checked_values,
    plain_batch,
    tagger_members,
)
from ombud.audits.presets import Tagger
from ombud.data.exclusions import Exclusion
from ombud.errors import (
    AuditedSystemError,
    DataError,
    MissingExtraError,
    OmbudError,
    PlanError,
    require,
)
from ombud.systems.base import Progress
from ombud.systems.recommenders.adapters.spark import is_connect, spark_error, spark_session

_VERSIONS = ((3, 5), (5, 0))
_JAVA = 17
_BLOCKS = 200
_AGAIN = "Nothing was stored; once the cluster is there again, run the plan again"
_CONNECT = (
    "{} Spark Connect, which lets ombud neither send its sums between executors nor watch them; "
    "give a session of the cluster itself, or name its address (spark://, yarn, k8s://, local[2])"
)
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
class SparkBackend(BlockBackend):
    """Recorded lists or decisions on a Spark cluster.

    Parameters
    ----------
    plan, metrics
        What to audit, and what is measured.
    frames
        PySpark frames to read in place of the plan's files, by table: ``interactions``, ``test``,
        ``users``, and ``lists/<system>``, or ``texts``, ``text_groups`` and
        ``decisions/<system>``, with ombud's names of columns. The plan then names them by any word.
    session
        The session; default, that of `frames`, the one that this process has, or a new one that is
        stopped at the end. One that was there before keeps its own master and options; where the
        plan names others, the result says that they were left out.
    """

    frames: Mapping[str, Any] = field(default_factory=dict)
    session: Any = None
    query: str = field(default="", init=False)
    """What Spark did to measure, in its own words; empty before a run."""
    _unheeded: Exclusion | None = field(default=None, init=False, repr=False)

    @staticmethod
    def check() -> None:
        """Refuse before a session is started where there is no Spark or Java."""
        if fault := spark_fault():
            raise MissingExtraError(fault)

    def _given(self) -> dict[str, dict[str, Any]]:
        return {
            name: {column: _KINDS.get(kind, pa.null()) for column, kind in frame.dtypes}
            for name, frame in self.frames.items()
        }

    def measured(self, run: Run) -> tuple[BlockAudit, BlockTotals]:
        """Measure every block on the executors; nothing is stored before the end."""
        watch: ExecutorWatch | None = None
        try:
            with spark_session(self.session, self.frames.values(), self._new_session) as (
                session,
                is_new,
            ):
                if is_connect(session):
                    raise PlanError(_CONNECT.format("the session is one of"))
                self._unheeded = None if is_new else self._not_heeded(session)
                watch = ExecutorWatch(session, run.progress)
                with watch:
                    return self._on(session, run.progress)
        except OmbudError:
            raise
        except Exception as error:
            if watch is not None and watch.has_cancelled(error):
                raise AuditedSystemError(watch.sentence) from None
            raise spark_error(error, "Spark stopped before the audit was done", _AGAIN) from None

    def measure(self, run: Run) -> Measured:
        """Measure and estimate, and say which settings the session did not heed."""
        result = super().measure(run)
        if self._unheeded is None:
            return result
        return replace(result, exclusions={**result.exclusions, self._unheeded: None})

    def _new_session(self) -> Any:
        from pyspark.sql import SparkSession

        engine = self.plan.engine
        modes = (engine.options.get("spark.api.mode"), os.environ.get("SPARK_API_MODE"))
        for where, named in (
            ("engine.master is", str(engine.master).startswith("sc://")),
            ("engine.options name", "spark.remote" in engine.options),
            ("the environment (SPARK_REMOTE) names", "SPARK_REMOTE" in os.environ),
            (
                "the environment (SPARK_CONNECT_MODE_ENABLED) names",
                "SPARK_CONNECT_MODE_ENABLED" in os.environ,
            ),
            ("spark.api.mode is that of", "connect" in modes),
        ):
            if named:
                raise PlanError(_CONNECT.format(where))
        # Executors must run the Python that the driver runs, unless the environment names one.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.appName("ombud")
        if engine.master is not None:
            builder = builder.master(engine.master)
        for name, value in engine.options.items():
            builder = builder.config(name, value)
        try:
            return builder.getOrCreate()
        except Exception as error:
            of = "" if engine.master is None else f" with master = {engine.master!r}"
            then = (
                "See [engine] of the plan, what Java wrote on standard error, and whether the "
                "cluster is there; nothing was stored"
            )
            raise spark_error(error, f"Spark did not start{of}", then) from None

    def _not_heeded(self, session: Any) -> Exclusion | None:
        """Return which settings of the plan a session has not, which was there before."""
        engine, context = self.plan.engine, session.sparkContext
        master = str(context.master)
        unlike = [] if engine.master in (None, master) else [f"master = {engine.master!r}"]
        unlike += [
            f"{name} = {value!r}"
            for name, value in engine.options.items()
            if value not in (session.conf.get(name, None), context.getConf().get(name))
        ]
        if not unlike:
            return None
        return Exclusion(
            "engine",
            "settings of the plan",
            len(unlike),
            f"the audit ran in a Spark session that was there before, whose master is {master!r}, "
            f"and which has other settings than {', '.join(unlike)}",
            of=len(engine.options) + (engine.master is not None),
            key="warning/session",
        )

    def _on(self, session: Any, progress: Progress) -> tuple[BlockAudit, BlockTotals]:
        tables = self.tables
        frames = {name: self._frame(session, name) for name in tables.tables}
        progress(0, 3, "Spark looks at the tables")
        audit = self.block_audit(self._found(frames))
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

        totals = audit.totals()
        parts = _merged(states.rdd, count, len(totals.sums) + 1, merged)
        progress(3, 3, "Spark measured")
        if parts:
            totals.restore([parts[part] for part in sorted(parts)])
        return audit, totals

    def _frame(self, session: Any, name: str) -> Any:
        """Return a table with ombud's names and types, whatever it is stored as."""
        from pyspark.sql import functions as f

        tables = self.tables
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

    def _found(self, frames: Mapping[str, Any]) -> Found:
        tables = self.tables
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
def _unpacked(packed: bytes) -> BlockAudit:
    """Return what the driver has packed; once for each Python worker."""
    from pyspark import cloudpickle

    audit: BlockAudit = cloudpickle.loads(packed)
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


def _merged(
    states: Any, count: int, parts: int, merge: Callable[[int, bytes, bytes], bytes]
) -> dict[int, bytes]:
    """Return each part of the sums, of all partitions together.

    There are few parts, and by part alone one executor would merge what all partitions found. So
    partitions are first merged in about as many sets as a set has partitions, then the sets.

    `states` are rows of part and state, in `count` partitions; `merge` merges two states of a part.
    """
    sets = max(1, isqrt(count))

    def keyed(partition: int, rows: Iterator[Any]) -> Iterator[tuple[int, tuple[int, bytes]]]:
        for part, state in rows:
            # The value carries the part too, so that the executors know what they merge.
            yield part * sets + partition % sets, (part, bytes(state))

    def both(one: tuple[int, bytes], other: tuple[int, bytes]) -> tuple[int, bytes]:
        return one[0], merge(one[0], one[1], other[1])

    some = states.mapPartitionsWithIndex(keyed).reduceByKey(both, min(count, parts * sets))
    whole = some.map(lambda pair: (pair[1][0], pair[1])).reduceByKey(both, parts)
    return {part: state for part, (_, state) in whole.collect()}


def _parts(whole: pl.DataFrame, columns: Columns) -> dict[str, pl.DataFrame]:
    """Return the rows of each table, with the columns that it has."""
    result = {}
    for number, (name, some) in enumerate(columns.items()):
        here = whole.filter(pl.col("_table") == number)
        rows = here.select(pl.col(theirs).alias(ours) for ours, theirs in some)
        if missing := rows.to_series(0).null_count():
            fault = f"column {rows.columns[0]!r} is missing in {missing:,} rows or more"
            raise DataError(name, [fault])
        result[name] = rows
    return result


# Whether a Spark cluster still has executors while its jobs wait for them.


_EVERY = 2.0  # seconds between two looks
_SAY_AFTER = 30.0
_SAY_AGAIN = 60.0
_GIVE_UP_AFTER = 300.0
_FAULTS = 5  # looks in a row that fail, after which there is nothing to look at
_LAST_LOOK = 10.0  # seconds; one call of a JVM that hangs must not hold the audit
_OF_JOBS = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


class ExecutorWatch:
    """While it is entered, cancel the jobs of this thread when their executors stay away.

    Only time in which a job waits is counted: a cluster may take idle executors away. Before the
    first executor has come, a queue may take its time: that is said and waited for.
    Only this thread's jobs are cancelled, not others of a session that was given.

    A session that runs in the driver alone is not watched. `progress` reports that the audit waits.
    """

    def __init__(self, session: Any, progress: Progress) -> None:
        self._context = session.sparkContext
        self._progress = progress
        self._done = threading.Event()
        self._group = f"ombud-{uuid.uuid4().hex[:12]}"
        self._before: dict[str, str | None] = {}
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._seen = False
        self._since = self._said = 0.0
        self.given_up = False

    def __enter__(self) -> Self:
        """Begin to look."""
        master = str(self._context.master)
        if master != "local" and not master.startswith("local["):
            self._before = {name: self._context.getLocalProperty(name) for name in _OF_JOBS}
            self._context.setJobGroup(self._group, "ombud measures", interruptOnCancel=False)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop looking, and give this thread's jobs the names that they had."""
        self._done.set()
        if self._thread.ident is not None:  # it was started
            self._thread.join(_LAST_LOOK)
            with suppress(Exception):  # of a context that is gone
                for name, value in self._before.items():
                    self._context.setLocalProperty(name, value)

    def has_cancelled(self, error: Exception) -> bool:
        """Return whether an error is that of a job which was cancelled here."""
        told = f"{error} {getattr(error, '_stackTrace', '')}"  # causes stand in the trace alone
        return self.given_up and self._group in told

    def _look(self) -> None:
        self._since = time.monotonic()
        faults = 0
        while not self._done.wait(_EVERY):
            try:
                self._look_once()
                faults = 0
            except Exception:  # a call that failed, or the context is gone: the job finds that out
                faults += 1
            if faults == _FAULTS:
                self._say("Spark no longer answers whether it has executors; not asking again")
                return

    def _look_once(self) -> None:
        # The driver is one of them.
        here = int(self._context._jsc.sc().getExecutorMemoryStatus().size()) - 1
        self._seen = self._seen or here > 0
        now = time.monotonic()
        if here > 0 or not self._is_waiting():
            self._since, self._said = now, 0.0
            return
        if now - self._since > _SAY_AFTER and (not self._said or now - self._said > _SAY_AGAIN):
            self._said = now
            self._say("the Spark cluster has no executor; waiting for one")
        if self._seen and now - self._since > _GIVE_UP_AFTER and not self._done.is_set():
            self.given_up = True
            self._context.cancelJobGroup(self._group)
            self._since = now  # another job may follow

    def _is_waiting(self) -> bool:
        """Return whether a job of the audit runs, which without executors is to wait."""
        tracker = self._context.statusTracker()
        active = set(tracker.getActiveJobsIds())
        return bool(active) and not active.isdisjoint(tracker.getJobIdsForGroup(self._group))

    def _say(self, what: str) -> None:
        with suppress(Exception):  # whoever is told must not end the watch
            self._progress(1, 3, what)

    @property
    def sentence(self) -> str:
        """Why jobs were cancelled."""
        return (
            f"the Spark cluster had no executor for {_GIVE_UP_AFTER / 60:.0f} minutes while the "
            "audit waited, and it was stopped. Nothing was stored; once the cluster is there "
            "again, run the plan again"
        )
