"""What an audit on Spark says before there is a cluster, and when one fails."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ombud.audits import Plan
from ombud.audits.engines import audit_of
from ombud.audits.on_spark import _parts, _told, java_fault, spark_fault
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
