"""A real cluster of two workers: the numbers of one machine, also when a worker dies.

One file, because starting a cluster takes longer than any of these tests.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from _texts_lake import plan_of_texts, same, write_texts

import ombud
from ombud.audits import Audit, Plan, Result
from ombud.audits.backends.spark import _OF_JOBS, ExecutorWatch, java_fault
from ombud.data.frames import Column, read_table
from ombud.data.interactions import Interactions
from ombud.data.recommendations import Recommendations
from ombud.data.splits import per_user
from ombud.errors import AuditedSystemError, DataError, ResultError
from ombud.metrics.accuracy.ranking import NDCG
from ombud.metrics.base import Outputs, Rows
from ombud.systems.recommenders.adapters import SparkALS
from ombud.systems.recommenders.adapters.spark import spark_session

HERE = find_spec("pyspark") is not None and not java_fault()
HERE = HERE or os.environ.get("OMBUD_REQUIRE_SPARK") == "1"  # then its absence is a failure
pytestmark = [
    pytest.mark.skipif(not HERE, reason="Spark needs the extra spark and Java"),
    pytest.mark.filterwarnings("ignore"),
]
USERS = 4000
TABLES = ("interactions", "test", "labels", "users")


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
    labels = {"item": np.arange(60), "label": np.where(np.arange(60) % 3, "war", "loss")}
    pl.DataFrame(labels).write_parquet(folder / "labels.parquet")
    groups = {"user": users[10:], "age": rng.choice(["old", "young", None], USERS - 10)}
    pl.DataFrame(groups).write_parquet(folder / "users.parquet")
    return folder


def plan_of(lake: Path, **engine: Any) -> Plan:
    return Plan.from_dict(
        {
            "data": {"absent": "no"} | {name: str(lake / f"{name}.parquet") for name in TABLES},
            "systems": {
                f"s{n}": {"type": "recorded", "path": str(lake / f"s{n}.parquet")} for n in (0, 1)
            },
            "metrics": [
                {"name": "ndcg", "k": 10},
                {"name": "label-share", "k": 10},
                {"name": "amplification", "k": 10, "form": "ratio-of-means"},
            ],
            "statistics": {"replicates": 200},
            "engine": engine,
        }
    )


class First(NDCG):
    """Does something to the executor that measures first, and measures."""

    marker: Path
    deadly = True

    def measure(self, outputs: Outputs, data: Any) -> Rows:
        """Measure, unless nobody has measured yet."""
        try:
            self.marker.touch(exist_ok=False)
        except FileExistsError:
            return super().measure(outputs, data)
        if self.deadly:  # its grandparent is the executor, Python workers being forked
            parent = int(Path(f"/proc/{os.getppid()}/stat").read_text().split()[3])
            os.kill(parent, signal.SIGKILL)
            raise RuntimeError("this executor is dead")
        time.sleep(60)  # until the driver has gone away
        return super().measure(outputs, data)


def audit_with(first: First, marker: Path, plan: Plan, **more: Any) -> Audit:
    """Return an audit whose first metric is another one, which goes to the executors by value."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    object.__setattr__(first, "marker", marker)

    audit = Audit.from_plan(plan, **more)
    audit.backend.metrics = (first, *audit.metrics[1:])
    return audit


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One cluster of two workers for all tests."""
    import pyspark
    from pyspark.sql import SparkSession

    patch = pytest.MonkeyPatch()
    patch.setenv("PYSPARK_PYTHON", sys.executable)
    patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local-cluster[2,1,700]")
    # Compiling and checking classes takes more than running them, in so small a test.
    java = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    java += "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.maxResultSize": "4m",
        "spark.executor.memory": "700m",
        "spark.driver.extraJavaOptions": java,
        "spark.executor.extraJavaOptions": java,
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
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


@pytest.fixture(scope="module")
def streamed(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The numbers of one machine."""
    folder = tmp_path_factory.mktemp("stream")
    return Audit.from_plan(plan_of(lake, type="stream", blocks=2)).run(folder / "out")


def test_two_workers_give_the_numbers_of_one_machine(
    lake: Path, tmp_path: Path, session: Any, streamed: Result
):
    """Less comes to the driver than the tables hold, and a worker dies in the middle."""
    plan = plan_of(lake, type="spark", blocks=3)
    given = plan.data.model_copy(update={"interactions": "a frame"})
    frames = {"interactions": session.read.parquet(str(lake / "interactions.parquet"))}
    plan = plan.model_copy(update={"data": given})
    died = tmp_path / "died"
    audit = audit_with(First(k=10), died, plan, frames=frames, session=session)
    found = audit.run(tmp_path / "spark")
    assert died.exists()
    assert len(streamed.estimates) > 30
    same(streamed, found)
    assert set(streamed.exclusions) == set(found.exclusions)
    frame = session.read.parquet(str(lake / "interactions.parquet"))
    with pytest.raises(Exception, match="maxResultSize|bigger than"):
        frame.crossJoin(session.range(16)).collect()  # the limit does hold


@pytest.mark.parametrize("groups", ["members", None], ids=["clusters", "tagged"])
def test_decisions_about_texts_give_the_numbers_of_one_machine(
    tmp_path: Path, session: Any, groups: str | None
):
    """Texts are tagged on the executors, and those of a cluster measured on one of them."""
    write_texts(tmp_path)
    texts = "texts" if groups is None else "clusters"
    more = {"metrics": [{"name": "suppression"}, {"name": "false-positive-rate"}]}
    plan = plan_of_texts(tmp_path, texts, groups, engine={"type": "stream", "blocks": 2}, **more)
    one = Audit.from_plan(plan).run(tmp_path / "stream")
    engine = {
        "type": "spark",
        "blocks": 2,
        "options": {"spark.none": "1", "spark.ui.enabled": "false"},
    }
    plan = plan_of_texts(tmp_path, texts, groups, engine=engine, **more)
    audit = Audit.from_plan(plan, session=session)
    two = audit.run(tmp_path / "spark")
    same(one, two)
    [unheeded] = set(one.exclusions) ^ set(two.exclusions)
    assert "engine: 1 of 2 settings" in str(unheeded) and "spark.none = '1'" in str(unheeded)
    assert unheeded in Result.load(tmp_path / "spark").exclusions
    # Texts are read, tagged or keyed, sorted and measured by executors; nothing comes between.
    steps = re.findall(r"MapInArrow|hashpartitioning\(\S+?[,)]|Collect", audit.backend.query)
    sorts = [re.sub(r"#\d+L?", "", step) for step in steps if "hash" in step]
    ids = ["hashpartitioning(_unit,"]
    assert sorts == (ids if groups is None else ["hashpartitioning(cluster:bigint,", *ids])
    assert steps.count("MapInArrow") == 3 and "Collect" not in steps


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
    backend = Audit.from_plan(plan, session=session).backend
    assert backend._frame(session, "interactions").count() == 100


def test_als_trains_and_recommends_in_spark(tmp_path: Path, session: Any):
    """Two tastes: users like the items of their own half."""
    rng = np.random.default_rng(2)
    liking = np.where((np.arange(60)[:, None] % 2) == (np.arange(40)[None, :] % 2), 4.5, 1.5)
    users, items = np.nonzero(rng.random((60, 40)) < 0.5)
    ratings = np.clip(liking[users, items] + rng.normal(0, 0.3, len(users)), 1, 5)
    parts = per_user(
        Interactions.from_arrays(users, items, ratings, rating_scale=(1, 5)), share=0.2, seed=1
    )
    model = SparkALS(factors=2, iterations=3, blocks=1, regularization=0.05)
    model.fit(parts.train)
    held = parts.test.to_frame()
    predicted = model.predict(held["user"].to_numpy(), held["item"].to_numpy())
    error = np.sqrt(np.mean((predicted - held["rating"].to_numpy()) ** 2))
    assert error < 0.6  # the means alone leave 1.5
    lists = model.recommend(np.arange(60), 5)
    alike = lists.catalogue.take(lists.items.ravel()).reshape(60, 5) % 2
    assert (alike == np.arange(60)[:, None] % 2).mean() > 0.95
    # The same in Spark alone, without ratings: lists as an audit reads them, of unseen items.
    train = parts.train.to_frame()
    train.write_parquet(tmp_path / "train.parquet")
    liked = session.read.parquet(str(tmp_path / "train.parquet")).where("rating > 3")
    model.write_lists(liked.drop("rating"), str(tmp_path / "lists"), 5)
    stored = pl.read_parquet(tmp_path / "lists" / "*.parquet")
    in_spark = Recommendations.from_frame(stored.cast({"user": pl.Int64, "item": pl.Int64}))
    assert in_spark.lengths.tolist() == [5] * 60
    seen = train.filter(pl.col("rating") > 3).join(stored, on=["user", "item"])
    assert not seen.height
    assert ((stored["item"] % 2) == (stored["user"] % 2)).mean() > 0.9
    with pytest.raises(AuditedSystemError, match="before the lists were stored.*exists"):
        model.write_lists(liked.drop("rating"), str(tmp_path / "lists"), 5)


@pytest.mark.parametrize(
    ("rows", "kinds", "fault"),
    [
        ([(2**31, 1, 1.0)], "bigint", "'user' goes from 2147483648 to 2147483648; .* 32 bits"),
        ([(1, -(2**40), 1.0)], "bigint", "'item' goes from -1099511627776 to"),
        ([(1, 2, 1.0), (None, 2, None)], "int", "'user' is missing in 1 rows\n.*'rating' is mis"),
        ([("a", "b", 1.0)], "string", "'user' is string; Spark's ALS takes whole numbers"),
        ([], "int", "the table has no rows"),
    ],
)
def test_ids_that_als_does_not_take_are_refused(
    tmp_path: Path, session: Any, rows: list[Any], kinds: str, fault: str
):
    frame = session.createDataFrame(rows, f"user {kinds}, item {kinds}, rating double")
    with pytest.raises(DataError, match=fault):
        SparkALS(factors=2).write_lists(frame, str(tmp_path / "lists"), 5)
    assert not (tmp_path / "lists").exists()


def test_a_session_of_another_thread_is_found_and_left_alone(session: Any):
    """There it is not the active one."""
    found: list[Any] = []

    def use() -> None:
        with spark_session() as (there, is_new):
            found.extend((there.sparkContext, is_new))
            there.sparkContext.setJobGroup("mine", "my jobs", interruptOnCancel=True)
            with ExecutorWatch(there, lambda done, total, what: None) as watch:
                assert not watch._is_waiting()
            found.extend(there.sparkContext.getLocalProperty(name) for name in _OF_JOBS)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert found == [session.sparkContext, False, "mine", "my jobs", "true"]
    assert session.range(3).count() == 3


def test_jobs_that_the_watch_cancels_are_known_by_their_error(session: Any, tmp_path: Path):
    """Whether they wait is asked of Spark, and what it raises names the group."""
    watch, waited = ExecutorWatch(session, lambda done, total, what: None), []

    def cancel() -> None:
        while not watch._is_waiting():
            time.sleep(0.05)
        waited.append(True)
        watch.given_up = True
        session.sparkContext.cancelJobGroup(watch._group)

    canceller = threading.Thread(target=cancel, daemon=True)
    canceller.start()
    cancelled = tmp_path / "cancelled"

    def slow(row: Any) -> int:
        while not cancelled.exists():
            time.sleep(0.05)
        return int(row[0])

    with pytest.raises(Exception, match="cancelled") as caught, watch:
        session.range(4).rdd.map(slow).collect()
    cancelled.touch()
    canceller.join()
    assert waited and watch.has_cancelled(caught.value)


def test_frames_of_spark_are_tables(session: Any):
    columns = [
        Column("user", "id"),
        Column("item", "id"),
        Column("rating", "number", required=False, low=0.5, high=5),
    ]
    table = pl.DataFrame({"user": [3, 1, 2], "item": ["b", "a", "a"], "rating": [1.0, 2.5, 5.0]})
    found = read_table(session.createDataFrame(table.to_dicts()), columns)
    assert found.sort("user").equals(table.sort("user"))
    bad = table.with_columns(item=pl.lit(None, pl.String), rating=pl.Series([7.0, 2.5, 0.0]))
    frame = session.createDataFrame(bad.rows(), "user bigint, item string, rating double")
    with pytest.raises(DataError) as caught:
        read_table(frame, columns)
    kinds = sorted(fault.split(" in row")[0] for fault in caught.value.faults)
    assert kinds == [
        "column 'item' is missing",
        "column 'rating' is above 5",
        "column 'rating' is below 0.5",
    ]


def test_a_cluster_that_goes_away_leaves_nothing_and_the_run_begins_again(
    lake: Path, tmp_path: Path, session: Any, streamed: Result
):
    """The last test: it stops the cluster, and goes on without one."""
    first = First(k=10)
    object.__setattr__(first, "deadly", False)
    plan = plan_of(lake, type="spark", blocks=2, master="local[1]")
    begun = tmp_path / "begun"

    def stop() -> None:
        while not begun.exists():
            time.sleep(0.1)
        session.sparkContext._jsc.sc().stop()

    stopper = threading.Thread(target=stop, daemon=True)
    stopper.start()
    audit = audit_with(first, begun, plan, session=session)
    with pytest.raises(AuditedSystemError, match=r"^Spark stopped before .* run the plan again$"):
        audit.run(tmp_path / "out")
    stopper.join()
    with pytest.raises(ResultError):
        Result.load(tmp_path / "out")
    session.stop()
    same(streamed, Audit.from_plan(plan).run(tmp_path / "out"))
