"""What an audit on Spark says before there is a cluster, and when one fails."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any, Self

import polars as pl
import pytest

from ombud.audits import Plan
from ombud.audits.engines import audit_of
from ombud.audits.on_spark import _parts, _told, java_fault, spark_fault
from ombud.audits.spark_watch import ExecutorWatch
from ombud.audits.streamed import StreamedAudit
from ombud.errors import DataError, MissingExtraError, PlanError


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
    monkeypatch.setattr("ombud.audits.on_spark.require", lambda module, extra: None)
    monkeypatch.setattr("ombud.audits.on_spark.version", lambda name: "2.4.8")
    assert spark_fault() == "pyspark is 2.4.8; ombud works with 3.5 up to, but not with, 5.0"
    with pytest.raises(MissingExtraError, match=r"pyspark is 2\.4\.8"):
        audit_of(plan_of(type="spark"))


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
        StreamedAudit.from_plan(plan_of(type="spark", rows=False))


class Cluster:
    """As much of a session as the watch looks at; `sizes` are its executors, with the driver."""

    def __init__(self, master: str, sizes: list[int]) -> None:
        self.sparkContext = self._jsc = self
        self.master, self._sizes = master, sizes
        self.cancelled = threading.Event()
        self.group = ""

    def sc(self) -> Self:
        return self

    def getExecutorMemoryStatus(self) -> Self:
        return self

    def size(self) -> int:
        return self._sizes.pop(0) if len(self._sizes) > 1 else self._sizes[0]

    def setJobGroup(self, group: str, told: str, interruptOnCancel: bool) -> None:
        self.group = group

    def setLocalProperty(self, name: str, value: str | None) -> None:
        self.group = ""

    def cancelJobGroup(self, group: str) -> None:
        assert group == self.group
        self.cancelled.set()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"_EVERY": 0.01, "_SAY_AFTER": 0.05, "_GIVE_UP_AFTER": 0.2}.items():
        monkeypatch.setattr(f"ombud.audits.spark_watch.{name}", seconds)


@pytest.mark.usefixtures("impatient")
def test_executors_that_stay_away_end_the_audit():
    cluster, told = Cluster("spark://one:7077", [3, 3, 2, 1]), []
    with ExecutorWatch(cluster, lambda done, total, what: told.append(what)) as watch:
        assert cluster.cancelled.wait(30)
    assert watch.given_up and "had no executor for" in watch.sentence
    assert told == ["the Spark cluster has no executor; waiting for one"]
    assert cluster.group == ""


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("master", "sizes"),
    [("spark://one:7077", [1]), ("spark://one:7077", [2]), ("local[2]", [2, 1])],
    ids=["a queue", "an executor", "the driver alone"],
)
def test_a_queue_is_waited_for(master: str, sizes: list[int]):
    cluster = Cluster(master, sizes)
    with ExecutorWatch(cluster, lambda done, total, what: None) as watch:
        assert not cluster.cancelled.wait(0.6)
    assert not watch.given_up
