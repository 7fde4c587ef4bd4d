"""What an audit on Spark says before there is a cluster, and when one fails."""

from __future__ import annotations

import shutil
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Self

import polars as pl
import pytest

from ombud.audits import Audit, Plan
from ombud.audits.backends.base import Run
from ombud.audits.backends.spark import (
    _AGAIN,
    ExecutorWatch,
    SparkBackend,
    _merged,
    _parts,
    java_fault,
    spark_fault,
)
from ombud.errors import AuditedSystemError, DataError, MissingExtraError, PlanError
from ombud.systems.recommenders.adapters.spark import spark_error


def plan_of(**engine: Any) -> Plan:
    return Plan.from_dict(
        {
            "data": {"interactions": "interactions.parquet", "test": "test.parquet"},
            "systems": {"s0": {"type": "recorded", "path": "s0.parquet"}},
            "metrics": [{"name": "ndcg", "k": 10}],
            "engine": engine,
        }
    )


def test_what_is_lacking_is_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "needs Java 17 or newer" in java_fault()
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    old.chmod(0o755)
    assert java_fault().endswith("is Java 8")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "there is none on the path" in java_fault()


def test_a_version_outside_the_range_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ombud.audits.backends.spark.require", lambda module, extra: None)
    monkeypatch.setattr("ombud.audits.backends.spark.version", lambda name: "2.4.8")
    assert spark_fault() == "pyspark is 2.4.8; ombud works with 3.5 up to, but not with, 5.0"
    with pytest.raises(MissingExtraError, match=r"pyspark is 2\.4\.8"):
        Audit.from_plan(plan_of(type="spark"))


def _told(error: Exception) -> Exception:
    return spark_error(error, "Spark stopped before the audit was done", _AGAIN)


def test_faults_of_a_cluster_are_sentences():
    lacking = _told(Exception("job aborted\n ModuleNotFoundError: No module named 'ombud'\n\tat"))
    assert "has no package 'ombud'; install ombud" in str(lacking)
    data = _told(Exception("x\nombud.errors.DataError: interactions: 1 fault\n  - twice\n\n\tat y"))
    assert "interactions: 1 fault - twice" in str(data)
    worker = "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
    python = _told(Exception(
        f"{worker}x.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different "
        "version: 3.12 than that in driver: 3.11, PySpark cannot run with different minor versions."
    ))  # fmt: skip
    assert "run Python 3.12, the driver 3.11; set PYSPARK_PYTHON" in str(python)
    raised = _told(Exception(f'{worker}  File "a.py"\nMemoryError: 3 GiB\n\n SQLSTATE: 38000'))
    assert "was done: MemoryError: 3 GiB. Nothing was stored" in str(raised)
    deep = _told(
        Exception(
            "An error occurred while calling z:x.\n: org.apache.spark.SparkException: Job "
            "aborted: results are bigger than maxResultSize\n\tat y"
        )  # fmt: skip
    )
    assert "was done: Job aborted: results are bigger than maxResultSize. Nothing" in str(deep)
    gone = _told(Exception("\nCannot call methods on a stopped SparkContext\nmore"))
    assert "Cannot call methods on a stopped SparkContext. Nothing was stored" in str(gone)


def test_rows_without_an_id_are_refused_by_the_executor():
    whole = pl.DataFrame({"_table": [0, 1], "_unit": [7, None], "item:bigint": [1, 2]})
    columns = {"interactions": (("user", "_unit"), ("item", "item:bigint"))}
    assert _parts(whole, columns)["interactions"].to_dicts() == [{"user": 7, "item": 1}]
    with pytest.raises(DataError, match="column 'id' is missing in 1 rows"):
        _parts(whole, columns | {"decisions/one": (("id", "_unit"),)})


def test_keys_of_another_engine_are_refused():
    with pytest.raises(PlanError, match="engine.rows is read by"):
        Audit.from_plan(plan_of(type="spark", rows=False))


class Cluster:
    """As much of a session as the watch looks at; `sizes` are its executors, with the driver."""

    def __init__(self, master: str, sizes: list[int | Exception]) -> None:
        self.sparkContext = self._jsc = self
        self.master, self._sizes = master, sizes
        self.cancelled = threading.Event()
        self.properties: dict[str, str | None] = {}
        self.jobs, self.active = {"other": [1]}, [1, 2]
        self.stopped = 0

    def sc(self) -> Self:
        return self

    def getExecutorMemoryStatus(self) -> Self:
        return self

    def size(self) -> int:
        size = self._sizes.pop(0) if len(self._sizes) > 1 else self._sizes[0]
        if isinstance(size, Exception):
            raise size
        return size

    def statusTracker(self) -> Self:
        return self

    def getActiveJobsIds(self) -> list[int]:
        return self.active

    def getJobIdsForGroup(self, group: str) -> list[int]:
        return self.jobs.get(group, [])

    def setJobGroup(self, group: str, told: str, interruptOnCancel: bool) -> None:
        values = (group, told, str(interruptOnCancel).lower())
        self.properties |= dict(zip(PROPERTIES, values, strict=True))
        self.jobs[group] = [2]

    def getLocalProperty(self, name: str) -> str | None:
        return self.properties.get(name)

    def setLocalProperty(self, name: str, value: str | None) -> None:
        self.properties[name] = value

    def cancelJobGroup(self, group: str) -> None:
        assert group == self.properties[PROPERTIES[0]]
        self.cancelled.set()

    def stop(self) -> None:
        self.stopped += 1


PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
WAITING = "the Spark cluster has no executor; waiting for one"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {
        "_EVERY": 0.01,
        "_SAY_AFTER": 0.05,
        "_SAY_AGAIN": 60,
        "_GIVE_UP_AFTER": 0.2,
    }.items():
        monkeypatch.setattr(f"ombud.audits.backends.spark.{name}", seconds)


@pytest.mark.usefixtures("impatient")
def test_executors_that_stay_away_end_the_audit():
    cluster, told = Cluster("spark://one:7077", [3, 3, 2, 1]), []
    with ExecutorWatch(cluster, lambda done, total, what: told.append(what)) as watch:
        assert cluster.cancelled.wait(600)
        group = cluster.properties[PROPERTIES[0]]
    assert watch.given_up and "had no executor for" in watch.sentence
    assert told[0] == WAITING
    # Only the error of the job that was cancelled is told so.
    assert watch.has_cancelled(Exception(f"Job 2 cancelled part of cancelled job group {group}"))
    assert not watch.has_cancelled(Exception("the disk is full"))


@pytest.mark.usefixtures("impatient")
def test_another_job_that_waits_is_cancelled_too():
    cluster = Cluster("spark://one:7077", [2, 1])
    with ExecutorWatch(cluster, lambda done, total, what: None):
        for _ in range(2):
            assert cluster.cancelled.wait(600)
            cluster.cancelled.clear()


@pytest.mark.usefixtures("impatient")
def test_that_it_waits_is_said_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ombud.audits.backends.spark._SAY_AGAIN", 0)
    often, told = threading.Event(), Counter()

    def progress(done: int, total: int | None, what: str) -> None:
        told[what] += 1
        if told[what] == 8:  # more than looks may fail
            often.set()
        raise RuntimeError("whoever is told fails")

    with ExecutorWatch(Cluster("spark://one:7077", [1]), progress):
        assert often.wait(600)
    assert list(told) == [WAITING]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("master", "sizes", "active"),
    [
        ("spark://one:7077", [1], [2]),
        ("spark://one:7077", [2], [2]),
        ("spark://one:7077", [2, 1], [1]),
        ("local[2]", [2, 1], [2]),
    ],
    ids=["a queue", "an executor", "no job of the audit", "the driver alone"],
)
def test_a_queue_is_waited_for(master: str, sizes: list[int | Exception], active: list[int]):
    cluster = Cluster(master, sizes)
    cluster.active = active
    with ExecutorWatch(cluster, lambda done, total, what: None) as watch:
        assert not cluster.cancelled.wait(0.6)
    assert not watch.given_up


@pytest.mark.usefixtures("impatient")
def test_a_look_that_fails_does_not_end_the_watch():
    fault = ConnectionError("reset")
    cluster = Cluster("spark://one:7077", [2, fault, fault, fault, fault, 1, fault, 1])
    with ExecutorWatch(cluster, lambda done, total, what: None):
        assert cluster.cancelled.wait(600)
    said = threading.Event()
    cluster = Cluster("spark://one:7077", [2, fault])
    with ExecutorWatch(cluster, lambda done, total, what: said.set()):
        assert said.wait(600)
    assert not cluster.cancelled.is_set()


@pytest.mark.usefixtures("impatient")
def test_the_names_of_the_users_jobs_come_back():
    cluster = Cluster("spark://one:7077", [2])
    theirs = dict(zip(PROPERTIES, ("mine", "my jobs", "true"), strict=True))
    for before in (dict(theirs), dict.fromkeys(PROPERTIES)):
        cluster.properties = dict(before)
        with ExecutorWatch(cluster, lambda done, total, what: None):
            assert cluster.properties != before
        assert cluster.properties == before


class Session(Cluster):
    """A session with settings; `ombud` may be given it, find it, or make it."""

    def __init__(self, **settings: str) -> None:
        super().__init__("local[1]", [1])
        self.conf = SimpleNamespace(get=lambda name, default: settings.get(name, default))

    def getConf(self) -> Any:
        return SimpleNamespace(get=lambda name: None)


class Spark:
    """As much of PySpark as finds and makes sessions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: Any = Session()
        self.asked: dict[str, str] = {}
        self.context = SimpleNamespace(_active_spark_context=None)
        self.builder = self
        self.active: Any = None
        sql, top = ModuleType("pyspark.sql"), ModuleType("pyspark")
        sql.SparkSession, top.SparkContext = self, self.context  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "pyspark", top)
        monkeypatch.setitem(sys.modules, "pyspark.sql", sql)
        for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_API_MODE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)

    def getActiveSession(self) -> Any:
        return self.active

    def appName(self, name: str) -> Self:
        return self

    def master(self, master: str) -> Self:
        return self.config("spark.master", master)

    def config(self, name: str, value: str) -> Self:
        self.asked[name] = value
        return self

    def getOrCreate(self) -> Any:
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Spark:
    return Spark(monkeypatch)


def measured(backend: SparkBackend, on: Callable[..., Any]) -> Any:
    backend._on = on  # type: ignore[method-assign]
    return backend.measured(Run(None, lambda done, total, what: None))


def fails(*_: Any) -> Any:
    raise ConnectionError("the JVM is gone")


def test_a_session_that_does_not_start_is_a_sentence(spark: Spark):
    spark.made = Exception("x\n: org.apache.spark.SparkException: Could not parse Master URL\n\tat")
    spark.context._active_spark_context = begun = Session()
    begun._jsc = None  # type: ignore[assignment]
    with pytest.raises(AuditedSystemError, match=r"did not start with master = 'odd': Could not"):
        measured(SparkBackend(plan_of(type="spark", master="odd"), ()), fails)
    assert begun.stopped == 1  # the next session would be given it


@pytest.mark.parametrize(
    ("engine", "remote"),
    [
        ({"master": "sc://one"}, ""),
        ({"options": {"spark.remote": "sc://one"}}, ""),
        ({"options": {"spark.api.mode": "connect"}}, ""),
        ({}, "sc://one"),
    ],
)
def test_spark_connect_is_refused_by_name(
    spark: Spark, monkeypatch: pytest.MonkeyPatch, engine: Any, remote: str
):
    if remote:
        monkeypatch.setenv("SPARK_REMOTE", remote)
    with pytest.raises(PlanError, match="Spark Connect"):
        measured(SparkBackend(plan_of(type="spark", **engine), ()), fails)
    given = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(PlanError, match="the session is one of Spark Connect"):
        measured(SparkBackend(plan_of(type="spark"), (), session=given), fails)


def test_what_went_wrong_is_told_although_the_session_cannot_be_stopped(spark: Spark):
    def stop() -> None:
        raise ConnectionError("refused")

    spark.made.stop = stop
    with pytest.raises(AuditedSystemError, match="before the audit was done: the JVM is gone"):
        measured(SparkBackend(plan_of(type="spark"), ()), fails)
    spark.made = broken = Session()
    broken.sparkContext = None  # type: ignore[assignment]
    with pytest.raises(AuditedSystemError, match="before the audit was done"):
        measured(SparkBackend(plan_of(type="spark"), ()), fails)
    assert broken.stopped == 1  # although the watch could not begin


def test_only_a_new_session_is_stopped(spark: Spark):
    used: list[Any] = []

    def on(session: Any, *_: Any) -> None:
        used.append(session)

    plan = plan_of(type="spark", options={"spark.x": "1"})
    measured(SparkBackend(plan, ()), on)
    assert used == [spark.made] and spark.made.stopped == 1 and spark.asked == {"spark.x": "1"}
    # Another thread has made it: it is not active in this one.
    spark.asked, spark.made = {}, Session()
    spark.context._active_spark_context = spark.made
    measured(SparkBackend(plan, ()), on)
    assert used.pop() is spark.made and not spark.made.stopped
    assert not spark.asked  # a session of others is not changed
    frames = {"interactions": SimpleNamespace(sparkSession=Session())}
    measured(SparkBackend(plan, (), frames=frames), on)
    assert used.pop() is frames["interactions"].sparkSession


def test_settings_that_a_session_does_not_have_are_told(spark: Spark):
    engine = {"master": "spark://one:7077", "options": {"spark.x": "1", "spark.y": "2"}}
    audit = SparkBackend(plan_of(type="spark", **engine), (), session=Session(**{"spark.x": "1"}))
    measured(audit, lambda *_: None)
    assert audit._unheeded is not None and audit._unheeded.is_warning
    assert str(audit._unheeded) == (
        "engine: 2 of 3 settings of the plan excluded: the audit ran in a Spark session that was "
        "there before, whose master is 'local[1]', and which has other settings than "
        "master = 'spark://one:7077', spark.y = '2'"
    )
    audit.session = None  # a new one
    measured(audit, lambda *_: None)
    assert audit._unheeded is None


class Rows:
    """As much of an RDD as sums are merged by; counts what one task merges."""

    def __init__(self, partitions: list[list[Any]], most: list[int]) -> None:
        self.partitions, self.most = partitions, most

    def mapPartitionsWithIndex(self, function: Callable[[int, Iterable[Any]], Any]) -> Rows:
        return Rows([list(function(*some)) for some in enumerate(self.partitions)], self.most)

    def map(self, function: Callable[[Any], Any]) -> Rows:
        return Rows([[function(row) for row in some] for some in self.partitions], self.most)

    def reduceByKey(self, function: Callable[[Any, Any], Any], partitions: int) -> Rows:
        found: list[dict[Any, Any]] = [{} for _ in range(partitions)]
        merged = Counter[int]()
        for key, value in self.collect():
            place = found[hash(key) % partitions]
            merged[hash(key) % partitions] += 1
            place[key] = function(place[key], value) if key in place else value
        self.most.append(max(merged.values()))
        return Rows([list(some.items()) for some in found], self.most)

    def collect(self) -> list[Any]:
        return [row for some in self.partitions for row in some]


@pytest.mark.parametrize("count", [1, 2, 3, 400])
def test_sums_of_many_partitions_are_merged_by_many_executors(count: int):
    def merge(part: int, one: bytes, other: bytes) -> bytes:
        assert one[0] == other[0] == part
        return bytes([part]) + one[1:] + other[1:]

    rows = [[(part, bytes([part, block % 256])) for part in (0, 1, 2)] for block in range(count)]
    rows[count // 2] = rows[count // 2] if count == 1 else []  # a partition without rows
    most: list[int] = []
    found = _merged(Rows(rows, most), count, 3, merge)
    expected = Counter(state[1] for some in rows for part, state in some if part == 0)
    assert sorted(found) == [0, 1, 2]
    assert all(Counter(state[1:]) == expected for state in found.values())
    assert count < 400 or max(most) <= 20


@pytest.mark.skipif(find_spec("pyspark") is None or bool(java_fault()), reason="no Spark or Java")
@pytest.mark.filterwarnings("ignore")
def test_no_covers_every_item_as_in_memory(tmp_path: Path):
    """Items 20 to 29 are in lists only and item 20 alone is labeled: all others count as no."""
    rows = [(user, item) for user in range(40) for item in range(10)]
    frame = pl.DataFrame(rows, schema=["user", "item"], orient="row")
    frame.write_parquet(tmp_path / "history.parquet")
    shown = frame.with_columns(pl.col("item") + 20 + pl.col("user") // 30, rank=pl.col("item") + 1)
    shown.write_parquet(tmp_path / "lists.parquet")
    labels = pl.DataFrame({"item": [0, 1, 20], "label": ["violence", "other", "violence"]})
    labels.write_parquet(tmp_path / "labels.parquet")
    found = {}
    for engine in ({"type": "memory"}, {"type": "spark", "master": "local[1]"}):
        content = {
            "data": {
                "interactions": "history.parquet",
                "labels": "labels.parquet",
                "unlabeled": "no",
            },
            "systems": {"s": {"type": "recorded", "path": "lists.parquet"}},
            "metrics": [{"name": "share-gap", "k": 10}],
            "engine": engine,
        }
        plan = Plan.from_dict(content).relative_to(tmp_path)
        (one,) = Audit.from_plan(plan).run().select(label="violence", kind="level")
        found[engine["type"]] = (one.value, one.n)
    # By hand: 1 of 10 in histories, 1 of 10 in the lists of 30 of 40 users.
    assert found["memory"] == found["spark"] == (pytest.approx(0.075 - 0.1), 40)
