"""A real cluster of two workers: the numbers of one machine, also when a worker dies."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from _texts_lake import plan_of_texts, same, write_texts

import ombud
from ombud.audits import Plan
from ombud.audits.engines import audit_of
from ombud.audits.on_spark import SparkAudit, _parts, _told, java_fault, spark_fault
from ombud.audits.streamed import StreamedAudit
from ombud.errors import DataError, MissingExtraError, PlanError
from ombud.metrics.accuracy import NDCG
from ombud.metrics.base import Outputs, Rows

HERE = find_spec("pyspark") is not None and not java_fault()
HERE = HERE or os.environ.get("OMBUD_REQUIRE_SPARK") == "1"  # then its absence is a failure
needs_spark = pytest.mark.skipif(not HERE, reason="Spark needs the extra spark and Java")
USERS = 4000


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More bytes than the driver may be given."""
    folder, rng = tmp_path_factory.mktemp("lake"), np.random.default_rng(1)
    users = np.arange(USERS)
    for name, items in (("interactions", 20), ("test", 3)):
        drawn = rng.permuted(np.tile(np.arange(60), (USERS, 1)), axis=1)[:, :items]
        frame = {"user": np.repeat(users, items), "item": drawn.ravel()}
        pl.DataFrame(frame).sample(fraction=1, shuffle=True, seed=2).write_parquet(
            folder / f"{name}.parquet"
        )
    for number in (0, 1):
        drawn = rng.permuted(np.tile(np.arange(60), (USERS, 1)), axis=1)[: USERS - number, :10]
        frame = {"user": np.repeat(users[: USERS - number], 10), "item": drawn.ravel()}
        frame["rank"] = np.tile(np.arange(1, 11), USERS - number)
        pl.DataFrame(frame).write_parquet(folder / f"s{number}.parquet")
    return folder


def plan_of(lake: Path, **engine: Any) -> Plan:
    return Plan.from_dict(
        {
            "data": {name: str(lake / f"{name}.parquet") for name in ("interactions", "test")},
            "systems": {
                f"s{n}": {"type": "recorded", "path": str(lake / f"s{n}.parquet")} for n in (0, 1)
            },
            "metrics": [{"name": "ndcg", "k": 10}],
            "statistics": {"replicates": 200},
            "engine": engine,
        }
    )


class Deadly(NDCG):
    """Kills the executor that measures first: its grandparent, Python workers being forked."""

    marker: Path

    def measure(self, outputs: Outputs, data: Any) -> Rows:
        """Measure, unless nobody has died yet."""
        try:
            self.marker.touch(exist_ok=False)
        except FileExistsError:
            return super().measure(outputs, data)
        parent = int(Path(f"/proc/{os.getppid()}/stat").read_text().split()[3])
        os.kill(parent, signal.SIGKILL)
        raise RuntimeError("this executor is dead")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One cluster of two workers for all tests."""
    import pyspark
    from pyspark.sql import SparkSession

    patch = pytest.MonkeyPatch()
    patch.setenv("PYSPARK_PYTHON", sys.executable)
    patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local-cluster[2,1,700]")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.maxResultSize": "4m",
        "spark.executor.memory": "700m",
        # Compiling takes more than running, in so small a test.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "2",
        "spark.executorEnv.PYTHONPATH": str(Path(ombud.__file__).parents[1]),
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()
    patch.undo()
    # Workers of a local cluster keep their logs beside the package.
    shutil.rmtree(Path(pyspark.__file__).parent / "work", ignore_errors=True)


@needs_spark
@pytest.mark.filterwarnings("ignore")
def test_two_workers_give_the_numbers_of_one_machine(lake: Path, tmp_path: Path, session: Any):
    """Less comes to the driver than the tables hold, and a worker dies in the middle."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    metric = Deadly(k=10)
    object.__setattr__(metric, "marker", tmp_path / "died")

    class Killed(SparkAudit):
        metrics = (metric,)  # type: ignore[assignment]

    one = audit_of(plan_of(lake, type="stream", blocks=2)).run(tmp_path / "stream")
    plan = plan_of(lake, type="spark", blocks=4)
    given = plan.data.model_copy(update={"interactions": "a frame"})
    frames = {"interactions": session.read.parquet(str(lake / "interactions.parquet"))}
    plan = plan.model_copy(update={"data": given})
    two = Killed(plan, frames, session).run(tmp_path / "spark")
    assert (tmp_path / "died").exists()
    assert len(one.estimates) == len(two.estimates) == 3
    for a, b in zip(one.estimates, two.estimates, strict=True):
        assert (a.value, *a.interval) == pytest.approx((b.value, *b.interval), abs=1e-9)
        assert (a.n, a.note, a.p_value) == (b.n, b.note, pytest.approx(b.p_value, abs=1e-9))
    assert set(one.exclusions) == set(two.exclusions)
    frame = session.read.parquet(str(lake / "interactions.parquet"))
    with pytest.raises(Exception, match="maxResultSize|bigger than"):
        frame.crossJoin(session.range(16)).collect()  # the limit does hold


@needs_spark
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("groups", ["members", None], ids=["clusters", "tagged"])
def test_decisions_about_texts_give_the_numbers_of_one_machine(
    tmp_path: Path, session: Any, groups: str | None
):
    """Texts are tagged on the executors, and those of a cluster measured on one of them."""
    write_texts(tmp_path)
    texts = "texts" if groups is None else "clusters"
    more = {"metrics": [{"name": "suppression"}, {"name": "false-positive-rate"}]}
    plan = plan_of_texts(tmp_path, texts, groups, engine={"type": "stream", "blocks": 2}, **more)
    one = audit_of(plan).run(tmp_path / "stream")
    plan = plan_of_texts(tmp_path, texts, groups, engine={"type": "spark", "blocks": 2}, **more)
    audit = SparkAudit.from_plan(plan, session=session)
    two = audit.run(tmp_path / "spark")
    same(one, two)
    assert set(one.exclusions) == set(two.exclusions)
    # Texts are read, tagged or keyed, sorted and measured by executors; nothing comes between.
    steps = re.findall(r"MapInArrow|hashpartitioning\(\S+?[,)]|Collect", audit.query)
    sorts = [re.sub(r"#\d+L?", "", step) for step in steps if "hash" in step]
    ids = ["hashpartitioning(_unit,"]
    assert sorts == (ids if groups is None else ["hashpartitioning(cluster:bigint,", *ids])
    assert steps.count("MapInArrow") == 3 and "Collect" not in steps


@needs_spark
@pytest.mark.filterwarnings("ignore")
def test_spark_reads_the_present_version_of_a_delta_table(lake: Path, tmp_path: Path, session: Any):
    delta = pytest.importorskip("deltalake", reason="the extra delta is not installed")
    rows = pl.read_parquet(lake / "interactions.parquet").with_columns(day=pl.col("user") % 2)
    path = str(tmp_path / "delta")
    for some in (rows, rows.head(100)):
        delta.write_deltalake(path, some.to_arrow(), mode="overwrite", partition_by=["day"])
    plan = plan_of(lake, type="spark")
    plan = plan.model_copy(
        update={"data": plan.data.model_copy(update={"interactions": path, "test": None})}
    )
    audit = SparkAudit(plan, session=session)
    assert audit._frame(session, "interactions", audit._tables()).count() == 100


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


def test_a_version_outside_the_range_is_refused(monkeypatch: pytest.MonkeyPatch, lake: Path):
    monkeypatch.setattr("ombud.audits.on_spark.require", lambda module, extra: None)
    monkeypatch.setattr("ombud.audits.on_spark.version", lambda name: "2.4.8")
    assert spark_fault() == "pyspark is 2.4.8; ombud works with 3.5 up to, but not with, 5.0"
    with pytest.raises(MissingExtraError, match=r"pyspark is 2\.4\.8"):
        audit_of(plan_of(lake, type="spark"))


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


def test_keys_of_another_engine_are_refused(lake: Path):
    with pytest.raises(PlanError, match="engine.rows is read by"):
        StreamedAudit.from_plan(plan_of(lake, type="spark", rows=False))
