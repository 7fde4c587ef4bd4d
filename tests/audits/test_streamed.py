"""Audits in blocks on disk: the numbers of an audit in memory, and nothing half-written."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from _texts_lake import same

from ombud.audits import Audit, Plan, Result
from ombud.audits.audit import recompute, rescore
from ombud.audits.backends.stream import sort_into_blocks
from ombud.audits.backends.tables import Tables, checked_members
from ombud.audits.compare import compare
from ombud.data.lake import LakeTable
from ombud.data.tables import write_tables
from ombud.errors import DataError, OmbudError, PlanError, ResultError
from ombud.stats.bootstrap.binned import bins_of, mixed
from ombud.worlds import small_world


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables in the order of a lake; lists and groups of some users only; a folder of files."""
    folder = tmp_path_factory.mktemp("lake")
    world = small_world(seed=1)
    data, rng = world.dataset, np.random.default_rng(1)
    assert data.interactions is not None and data.users is not None
    rows = data.interactions.to_frame().sample(fraction=1, shuffle=True, seed=1)
    held = rng.random(rows.height) < 0.2
    (folder / "parts" / "day=1").mkdir(parents=True)
    (folder / "parts" / "day=2").mkdir()
    rows.filter(~held).write_parquet(folder / "interactions.parquet")
    rows.filter(~held).head(900).write_parquet(folder / "parts" / "day=1" / "a.parquet")
    rows.filter(~held).tail(-900).write_parquet(folder / "parts" / "day=2" / "b.parquet")
    rows.filter(held).write_parquet(folder / "test.parquet")
    only = replace(data, interactions=None, users=None, texts=None, text_groups=None, items=None)
    write_tables(only, folder)
    members = data.users.to_members("user").with_columns(
        value=pl.col("group").str.split("=").list.get(1)
    )
    wide = members.pivot("attribute", index="user", values="value").head(280)
    wide.write_parquet(folder / "users.parquet")
    some = members.filter(pl.col("user").is_in(wide["user"].implode()))
    some.select("user", "group", "attribute").write_parquet(folder / "members.parquet")
    everyone = data.interactions.users.ids
    for number, system in enumerate(world.recommenders()[:2]):
        lists = system.recommend(everyone[: 290 + 10 * number], 10).to_frame()
        stranger = pl.DataFrame({"user": ["nobody"], "item": lists["item"][:1], "rank": [1]})
        lists = pl.concat([lists, stranger.cast(dict(lists.schema))])
        lists.write_parquet(folder / f"system{number}.parquet")
    return folder


def plan_of(lake: Path, **more: Any) -> dict[str, Any]:
    tables = ("interactions", "test", "labels", "users")
    plan: dict[str, Any] = {
        "data": {name: str(lake / f"{name}.parquet") for name in tables},
        "systems": {
            f"s{n}": {"type": "recorded", "path": str(lake / f"system{n}.parquet")} for n in (0, 1)
        },
        "metrics": [{"name": "share-gap", "k": 10}, {"name": "ndcg", "k": 12}],
        "statistics": {"replicates": 200},
    }
    return plan | more


def run(lake: Path, folder: Path, **more: Any) -> Result:
    return Audit.from_plan(Plan.from_dict(plan_of(lake, **more))).run(folder)


def numbers(result: Result) -> list[tuple[Any, ...]]:
    return [(e.value, e.interval, e.p_value, e.p_adjusted, e.n, e.reason) for e in result.estimates]


@pytest.mark.skipif(find_spec("resource") is None, reason="the system has no limit of open files")
def test_only_the_blocks_of_one_table_are_open_at_once(lake: Path, tmp_path: Path):
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = len(list(Path("/proc/self/fd").glob("*"))) if Path("/proc/self/fd").exists() else 100
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 200, before[1]))
    tables = Tables.of(Plan.from_dict(plan_of(lake)))
    try:  # five tables of 100 blocks
        sort_into_blocks(tables, tmp_path, 100, lambda done, total, note: None, "")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert len(list(tmp_path.rglob("*.arrow"))) == 500


def test_blocks_on_disk_give_the_numbers_of_memory(lake: Path, tmp_path: Path):
    memory = run(lake, tmp_path / "memory")
    stream = run(lake, tmp_path / "stream", engine={"type": "stream", "blocks": 3})
    about = ("metric", "key", "system", "label", "group", "against", "n", "reason")
    assert len(memory.estimates) == len(stream.estimates) > 100
    for a, b in zip(memory.estimates, stream.estimates, strict=True):
        assert [getattr(a, f) for f in about] == [getattr(b, f) for f in about]
        if a.value is not None and "attribute-gap" not in a.key:
            assert b.value == pytest.approx(a.value, abs=1e-12)
            assert a.note == b.note
    assert set(stream.exclusions) == set(memory.exclusions)
    stored = pl.read_parquet(tmp_path / "stream" / "rows" / "00" / "s0" / "*.parquet")
    whole = pl.read_parquet(tmp_path / "memory" / "rows" / "00" / "s0.parquet")
    assert stored.sort("unit").equals(whole.sort("unit"))
    assert not (tmp_path / "stream" / "blocks").exists()
    assert Result.load(tmp_path / "stream").integrity.changed == ()
    # Other blocks and order of rows, Hive partitions, memberships: the same to rounding.
    plan = plan_of(lake, engine={"type": "stream", "blocks": 1, "rows": False})
    plan["data"] |= {"interactions": str(lake / "parts"), "users": str(lake / "members.parquet")}
    other = Audit.from_plan(Plan.from_dict(plan)).run(tmp_path / "other")
    same(stream, other)
    assert not (tmp_path / "other" / "rows").exists()
    again = run(lake, tmp_path / "again", engine={"type": "stream", "blocks": 2})
    changes = compare(stream, again, same_units=True).changes
    assert changes and all(abs(change.value or 0) < 1e-12 for change in changes)
    assert "data.interactions/day=1/a.parquet" in other.provenance["inputs"]


def test_a_result_can_be_measured_again(lake: Path, tmp_path: Path):
    for name in ("interactions", "test", "labels", "users", "system0", "system1"):
        shutil.copy(lake / f"{name}.parquet", tmp_path)
    run(tmp_path, tmp_path / "out", engine={"type": "stream", "blocks": 2})
    assert recompute(tmp_path / "out") == ()
    plan = plan_of(tmp_path, metrics=[{"name": "ndcg", "k": 5}])
    again = rescore(tmp_path / "out", plan=Plan.from_dict(plan), into=tmp_path / "again")
    assert "NDCG@5" in {e.metric for e in again.estimates}
    assert again.provenance["engine"] == "stream"
    lists = pl.read_parquet(tmp_path / "system1.parquet")
    lists.head(100).write_parquet(tmp_path / "system1.parquet")
    with pytest.raises(ResultError, match=r"systems\.s1\.path"):
        recompute(tmp_path / "out")


def stop_at_2(done: int, total: int, note: str) -> None:
    if note == "measuring blocks of users" and done == 2:
        raise KeyboardInterrupt


def test_a_run_that_was_stopped_goes_on(lake: Path, tmp_path: Path, monkeypatch):
    engine = {"type": "stream", "blocks": 4, "rows": False}
    whole = run(lake, tmp_path / "whole", engine=engine)
    plan = Plan.from_dict(plan_of(lake, engine=engine))
    with pytest.raises(KeyboardInterrupt):
        Audit.from_plan(plan).run(tmp_path / "stopped", stop_at_2)
    with pytest.raises(OmbudError, match="not a finished result"):
        Result.load(tmp_path / "stopped")
    (tmp_path / "stopped" / "blocks" / "interactions" / "0001.arrow").unlink()  # is done with
    again = Audit.from_plan(plan).run(tmp_path / "stopped")
    assert numbers(again) == numbers(whole)


@pytest.mark.parametrize("changed", ["files", "plan", "nothing"])
def test_blocks_of_another_run_are_not_used(lake: Path, tmp_path: Path, changed: str):
    """The folder of blocks outlives a result that is deleted."""
    rows = pl.read_parquet(lake / "interactions.parquet")
    rows.write_parquet(tmp_path / "rows.parquet")
    engine = {"type": "stream", "blocks": 4, "scratch": str(tmp_path / "scratch")}
    plan = plan_of(lake, engine=engine)
    plan["data"]["interactions"] = str(tmp_path / "rows.parquet")
    with pytest.raises(KeyboardInterrupt):
        Audit.from_plan(Plan.from_dict(plan)).run(tmp_path / "out", stop_at_2)
    assert len(list((tmp_path / "scratch").rglob("sorted.json"))) == 1
    shutil.rmtree(tmp_path / "out")
    if changed == "files":
        rows.head(rows.height // 2).write_parquet(tmp_path / "rows.parquet")
    elif changed == "plan":
        plan["metrics"] = [{"name": "share-gap", "k": 5}, {"name": "ndcg", "k": 3}]
    told: list[str] = []
    again = Audit.from_plan(Plan.from_dict(plan)).run(tmp_path / "out", notice=told.append)
    assert ["everything is sorted anew" in one for one in told] == [True] * (changed != "nothing")
    plan["engine"] = {"type": "stream", "blocks": 4}
    whole = Audit.from_plan(Plan.from_dict(plan)).run(tmp_path / "whole")
    assert numbers(again) == numbers(whole)
    stored = [sorted(p.name for p in (f / "rows").rglob("*")) for f in (again.folder, whole.folder)]
    assert stored[0] == stored[1]
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.parametrize("store", ["file", "memory"])
def test_remote_files_that_changed_are_sorted_anew(lake: Path, tmp_path: Path, store: str):
    """They are not hashed; what the store says of them is part of what blocks are of."""
    rows = pl.read_parquet(lake / "interactions.parquet")
    address = (
        f"file://{tmp_path}/rows.parquet" if store == "file" else "memory://changing/a.parquet"
    )

    def write(frame: pl.DataFrame) -> None:
        frame.write_parquet(tmp_path / "rows.parquet")
        if store == "memory":
            files = pytest.importorskip("fsspec").filesystem("memory")
            files.pipe("/changing/a.parquet", (tmp_path / "rows.parquet").read_bytes())

    plan = plan_of(lake, engine={"type": "stream", "blocks": 4})
    plan["data"]["interactions"] = address
    write(rows)
    with pytest.raises(KeyboardInterrupt):
        Audit.from_plan(Plan.from_dict(plan)).run(tmp_path / "out", stop_at_2)
    told: list[str] = []
    with pytest.raises(KeyboardInterrupt):  # nothing has changed: it goes on
        Audit.from_plan(Plan.from_dict(plan)).run(tmp_path / "out", stop_at_2, told.append)
    assert not any("sorted anew" in one for one in told)
    write(rows.head(rows.height // 2))
    again = Audit.from_plan(Plan.from_dict(plan)).run(tmp_path / "out", notice=told.append)
    assert any("sorted anew" in one for one in told)
    assert numbers(again) == numbers(Audit.from_plan(Plan.from_dict(plan)).run(tmp_path / "whole"))


def test_files_named_from_the_working_directory_are_hashed(lake: Path, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = pl.read_parquet(lake / "interactions.parquet")
    rows.write_parquet("rows.parquet")
    plan = plan_of(lake, engine={"type": "stream", "blocks": 4})
    plan["data"]["interactions"] = "rows.parquet"
    with pytest.raises(KeyboardInterrupt):
        Audit.from_plan(Plan.from_dict(plan)).run("out", stop_at_2)
    whole = rows.head(rows.height // 2)
    whole.write_parquet("rows.parquet")
    with pytest.raises(ResultError, match="holds another run"):
        Audit.from_plan(Plan.from_dict(plan)).run("out")
    result = Audit.from_plan(Plan.from_dict(plan)).run("new")
    assert "data.interactions" in result.provenance["inputs"]
    monkeypatch.chdir(lake)
    assert recompute(tmp_path / "new") == ()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"metrics": [{"name": "amplification", "form": "median"}]}, "no function of sums"),
        ({"metrics": [{"name": "gini"}]}, "needs all units at once"),
        ({"split": {"method": "per-user"}}, "hold interactions out beforehand"),
        ({"systems": {"p": {"type": "popular"}}}, "only recorded lists in Parquet"),
        ({"engine": {"type": "stream", "master": "local"}}, "engine.master is read by"),
        ({"engine": {"type": "stream", "blocks": 0}}, "engine.blocks"),
        ({"data": {"labels": "measured.parquet"}}, "share gap@10: labels with measured errors"),
        (
            {"data": {"labels": "measured.parquet"}, "metrics": [{"name": "amplification"}]},
            "amplification.*: labels with measured errors",
        ),
        ({"data": {"labels": "absent.parquet"}}, "there is no file .*absent.parquet"),
    ],
    ids=lambda part: part if isinstance(part, str) else "-".join(part),
)
def test_what_blocks_cannot_do_is_refused_before_a_table_is_read(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict, told: str
):
    monkeypatch.chdir(tmp_path)
    labels = pl.read_parquet(lake / "labels.parquet").select("item", "label", "state")
    counts = {name: pl.lit(5) for name in ("said", "validated_yes", "validated_no")}
    labels.with_columns(**counts).write_parquet("measured.parquet")
    data = plan_of(lake)["data"] | {"interactions": "absent.parquet"} | more.get("data", {})
    with pytest.raises(PlanError, match=told):
        run(lake, tmp_path / "out", **({"engine": {"type": "stream"}} | more | {"data": data}))
    assert not (tmp_path / "out").exists()


def test_keys_of_another_engine_are_refused(lake: Path, tmp_path: Path):
    with pytest.raises(PlanError, match='engine.blocks is read by type = "stream"'):
        run(lake, tmp_path / "out", engine={"blocks": 3})
    assert not (tmp_path / "out").exists()


def test_how_a_file_is_written_is_refused_and_not_ignored(lake: Path, tmp_path: Path):
    more = plan_of(lake, engine={"type": "stream"})
    more["systems"]["s1"]["reading"] = {"best": "lowest"}
    more["data"]["reading"] = {"interactions": {"where": {"set": "a"}}, "labels": {"fold": True}}
    with pytest.raises(PlanError) as refused:
        run(lake, tmp_path / "out", **more)
    said = "an audit in blocks reads only files in the standard form"
    for place in ("systems.s1.reading", "data.reading.interactions"):
        assert f"{place}: {said}" in str(refused.value)
    assert str(refused.value).count(said) == 2  # labels are read at once, as in memory


def _broken(lake: Path, tmp_path: Path, fault: str) -> str:
    path = tmp_path / "parts"
    path.mkdir()
    good = pl.read_parquet(lake / "interactions.parquet")
    if fault == "schema":
        good.head(50).write_parquet(path / "a.parquet")
        good.tail(50).with_columns(rating=pl.lit("five")).write_parquet(path / "b.parquet")
    elif fault == "null":
        good.with_columns(
            item=pl.when(pl.col("item") == good["item"][0]).then(None).otherwise("item")
        ).write_parquet(path / "a.parquet")
    elif fault == "twice":
        pl.concat([good, good.head(1)]).write_parquet(path / "a.parquet")
    elif fault == "cut":
        good.write_parquet(path / "a.parquet")
        whole = (path / "a.parquet").read_bytes()
        (path / "a.parquet").write_bytes(whole[: len(whole) // 2])
    elif fault == "csv":
        good.write_csv(tmp_path / "a.csv")
        return str(tmp_path / "a.csv")
    elif fault == "ids":
        good.with_columns(item=pl.lit(1.5)).write_parquet(path / "a.parquet")
    elif fault == "wide":
        item = good["item"].rank("dense").cast(pl.UInt64) + 2**63
        good.with_columns(item=item).write_parquet(path / "a.parquet")
    elif fault == "absent":
        return str(tmp_path / "none.parquet")
    elif fault == "store":
        return "nostore://bucket/interactions"
    return str(path)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("schema", "b.parquet has other columns than the first file: rating is"),
        ("null", "column 'item' is missing in"),
        ("twice", "the same user and item again"),
        ("cut", "cannot be listed or read as Parquet"),
        ("csv", "streams reads Parquet only"),
        ("ids", "holds double; whole numbers or strings"),
        ("wide", "column 'item' holds uint64 above 9,223,372,036,854,775,807, which"),
        ("absent", "there is no file or folder"),
        ("store", "cannot be listed or read"),
        ("empty", "holds no .parquet file"),
    ],
)
def test_tables_with_faults_are_refused(lake: Path, tmp_path: Path, fault: str, told: str):
    plan = plan_of(lake, engine={"type": "stream", "blocks": 2})
    plan["data"]["interactions"] = _broken(lake, tmp_path, fault)
    with pytest.raises(OmbudError, match=told):
        Audit.from_plan(Plan.from_dict(plan)).run(tmp_path / "out")
    assert not (tmp_path / "out" / "provenance.json").exists()


@pytest.mark.parametrize("column", ["group", "attribute"])
def test_memberships_that_are_not_filled_in_are_refused(lake: Path, tmp_path: Path, column: str):
    members = pl.read_parquet(lake / "members.parquet")
    hole = pl.when(pl.int_range(pl.len()) != 3).then(column).alias(column)
    members.with_columns(hole).write_parquet(tmp_path / "members.parquet")
    for engine in ("memory", "stream"):
        plan = plan_of(lake, engine={"type": engine})
        plan["data"]["users"] = str(tmp_path / "members.parquet")
        with pytest.raises(OmbudError, match=f"column '{column}' is missing in"):
            Audit.from_plan(Plan.from_dict(plan)).run(tmp_path / engine)
    with pytest.raises(DataError, match=f"column '{column}' is missing in"):  # as Spark asks
        checked_members([("a", "a=1"), (None, "b") if column == "attribute" else ("a", None)], None)


@pytest.mark.parametrize("engine", ["memory", "stream"])
@pytest.mark.parametrize("kind", [pl.Float64, pl.Decimal(10, 2)], ids=["float", "decimal"])
def test_ranks_are_whole_numbers(lake: Path, tmp_path: Path, engine: str, kind: Any):
    # Whole numbers may be written as floats: pandas does so where a cell is empty.
    rank = pl.col("rank").cast(kind) + (0.5 if kind == pl.Float64 else 0)
    lists = pl.read_parquet(lake / "system0.parquet").with_columns(rank)
    lists.write_parquet(tmp_path / "lists.parquet")
    plan = plan_of(lake, engine={"type": engine})
    plan["systems"]["s0"]["path"] = str(tmp_path / "lists.parquet")
    with pytest.raises(OmbudError, match=r"column 'rank': .*whole number"):
        Audit.from_plan(Plan.from_dict(plan)).run(tmp_path / "out")
    assert not (tmp_path / "out" / "estimates.json").exists()
    if kind == pl.Float64:
        lists.with_columns(pl.col("rank") - 0.5).write_parquet(tmp_path / "lists.parquet")
        again = Audit.from_plan(Plan.from_dict(plan)).run(tmp_path / "again")
        same = Audit.from_plan(Plan.from_dict(plan_of(lake, engine={"type": engine}))).run()
        assert [e.value for e in again.estimates] == [e.value for e in same.estimates]


def test_a_seed_may_be_of_any_size(lake: Path, tmp_path: Path):
    for engine in ("memory", "stream"):
        only = {"metrics": [{"name": "share-gap", "k": 10}], "engine": {"type": engine}}
        result = run(lake, tmp_path / engine, **only, seed=2**63)
        assert Result.load(tmp_path / engine).provenance["seed"] == 2**63
        assert any(e.interval for e in result.estimates)
    seeds = (0, 2**63 - 1, 2**63, 2**64, 2**64 + 1, 2**130)
    assert len({bins_of(mixed(np.arange(99)), seed).tobytes() for seed in seeds}) == len(seeds)


def test_object_stores_are_read_and_said(lake: Path, tmp_path: Path):
    """The memory of fsspec stands for a bucket."""
    store = pytest.importorskip("fsspec").filesystem("memory")
    for part in ("day=1/a.parquet", "day=2/b.parquet"):
        store.pipe(f"/bucket/{part}", (lake / "parts" / part).read_bytes())
    plan = plan_of(lake, engine={"type": "stream", "rows": False})
    plan["data"]["interactions"] = "memory://bucket"
    told: list[str] = []
    found = Audit.from_plan(Plan.from_dict(plan)).run(tmp_path / "out", notice=told.append)
    here = run(lake, tmp_path / "here", engine={"type": "stream", "rows": False})
    assert numbers(found) == numbers(here)
    assert told == [
        "data.interactions is read from memory://bucket: its files are not hashed, so `ombud "
        "verify` cannot tell whether they have changed"
    ]


def test_tables_whose_folders_hold_old_rows_are_not_read_as_folders(lake: Path, tmp_path: Path):
    (tmp_path / "iceberg" / "metadata").mkdir(parents=True)
    metadata = tmp_path / "iceberg" / "metadata" / "1.metadata.json"
    metadata.write_text("{}")
    with pytest.raises(DataError, match="is an Iceberg table"):
        LakeTable(str(tmp_path / "iceberg")).files()
    with pytest.raises(OmbudError, match=r"ombud\[iceberg\]|cannot be read as an Iceberg table"):
        LakeTable(str(metadata)).files()
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    with pytest.raises(OmbudError, match=r"ombud\[delta\]|cannot be read as a Delta table"):
        LakeTable(str(tmp_path / "delta")).files()


def test_no_file_of_a_folder_is_left_out_without_a_word(tmp_path: Path):
    (tmp_path / "day=1").mkdir()
    (tmp_path / "_temporary").mkdir()
    ROWS.drop("day").write_parquet(tmp_path / "day=1" / "a.parquet")
    ROWS.drop("day").write_parquet(tmp_path / "day=1" / "b.PARQUET")
    for name in ("_SUCCESS", ".hidden", "a.parquet.crc", "_temporary/part-0"):
        (tmp_path / name).touch()
    assert len(_rows(str(tmp_path))) == 6
    for name in ("part-0000", "day=1/part-0001", "notes.txt", "x.csv"):
        (tmp_path / name).touch()
    told = "not named .parquet: day=1/part-0001, notes.txt, part-0000 and 1 more; rename"
    with pytest.raises(DataError, match=re.escape(told)):
        LakeTable(str(tmp_path)).files()


ROWS = pl.DataFrame({"user": [1, 2, 3], "item": [4, 5, 6], "day": ["a", "b", "a"]})


def _rows(path: str) -> list[tuple[int, ...]]:
    table = LakeTable(path)
    assert list(table.schema()) == ["user", "item", "day"]
    parts = [part for batch in table.batches(["user", "item"]) for part in batch.to_pylist()]
    assert table.count() == len(parts)
    return sorted((row["user"], row["item"]) for row in parts)


def test_of_a_delta_table_the_present_version_is_read(tmp_path: Path, monkeypatch):
    delta = pytest.importorskip("deltalake", reason="the extra delta is not installed")
    path = str(tmp_path / "delta")
    delta.write_deltalake(path, ROWS.to_arrow(), partition_by=["day"])
    delta.write_deltalake(path, ROWS.head(2).to_arrow(), mode="overwrite", partition_by=["day"])
    assert len(list(tmp_path.rglob("*.parquet"))) == 4
    assert _rows(path) == [(1, 4), (2, 5)]

    class Vectors:
        reader_features = ("deletionVectors",)

    monkeypatch.setattr(delta.DeltaTable, "protocol", lambda self: Vectors())
    with pytest.raises(DataError, match="has deletionVectors: its files alone do not say"):
        LakeTable(path).files()


def test_of_an_iceberg_table_the_named_version_is_read(tmp_path: Path, monkeypatch):
    pytest.importorskip("pyiceberg", reason="the extra iceberg is not installed")
    pytest.importorskip("sqlalchemy", reason="the catalogue of this test is not installed")
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.table import DataScan

    options = {"uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}"}
    catalogue = SqlCatalog("test", **options)
    catalogue.create_namespace("a")
    table = catalogue.create_table("a.rows", schema=ROWS.to_arrow().cast(_plain_schema()).schema)
    table.append(ROWS.to_arrow().cast(table.schema().as_arrow()))
    before = table.metadata_location.removeprefix("file://")
    table.overwrite(ROWS.head(2).to_arrow().cast(table.schema().as_arrow()))
    assert len(_rows(before)) == 3
    assert _rows(table.metadata_location.removeprefix("file://")) == [(1, 4), (2, 5)]
    catalogue.close()
    plan_files = DataScan.plan_files

    def with_deletes(self: Any) -> list[Any]:
        return [SimpleNamespace(file=t.file, delete_files={t.file}) for t in plan_files(self)]

    monkeypatch.setattr(DataScan, "plan_files", with_deletes)
    with pytest.raises(DataError, match="rows that are deleted in files beside its own"):
        LakeTable(before).files()


def _plain_schema() -> pa.Schema:
    return pa.schema([("user", pa.int64()), ("item", pa.int64()), ("day", pa.string())])


def test_a_bucket_is_read(tmp_path: Path, monkeypatch):
    """A server on this machine that speaks S3."""
    pytest.importorskip("moto.server", reason="moto is not installed")
    import boto3
    from moto.server import ThreadedMotoServer

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    try:
        bucket = boto3.client("s3", endpoint_url=address)
        bucket.create_bucket(Bucket="lake")
        for day in ("a", "b"):
            ROWS.filter(pl.col("day") == day).drop("day").write_parquet(tmp_path / "part")
            body = (tmp_path / "part").read_bytes()
            bucket.put_object(Bucket="lake", Key=f"rows/day={day}/1.parquet", Body=body)
        assert _rows("s3://lake/rows") == [(1, 4), (2, 5), (3, 6)]
        with pytest.raises(DataError, match="there is nothing at s3://lake/none"):
            LakeTable("s3://lake/none").schema()
        if find_spec("deltalake") is not None:
            from deltalake import write_deltalake

            monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
            monkeypatch.setenv("AWS_S3_ALLOW_UNSAFE_RENAME", "true")
            write_deltalake("s3://lake/delta", ROWS.to_arrow())
            write_deltalake("s3://lake/delta", ROWS.head(2).to_arrow(), mode="overwrite")
            assert _rows("s3://lake/delta") == [(1, 4), (2, 5)]
    finally:
        server.stop()


def test_one_user_may_have_most_rows(lake: Path, tmp_path: Path):
    rows = pl.read_parquet(lake / "interactions.parquet")
    skewed = pl.DataFrame({"user": ["whale"], "item": [[f"x{n}" for n in range(20_000)]]})
    skewed = skewed.explode("item")
    pl.concat([rows.select("user", "item"), skewed]).write_parquet(tmp_path / "rows.parquet")
    plan = plan_of(lake, engine={"type": "stream", "blocks": 3})
    plan["data"] = {**plan["data"], "interactions": str(tmp_path / "rows.parquet")}
    result = Audit.from_plan(Plan.from_dict(plan)).run(tmp_path / "out")
    assert any(e.what == "users" and e.count >= 1 for e in result.exclusions)


def test_engines_refuse_the_same_plans_and_need_no_folder(lake: Path):
    engines = ({"type": "memory"}, {"type": "stream", "blocks": 2})
    for engine in engines:
        twice = plan_of(lake, engine=engine, metrics=[{"name": "ndcg", "k": 12}] * 2)
        with pytest.raises(PlanError, match="two metrics are called"):
            Audit.from_plan(Plan.from_dict(twice))
        odd = plan_of(lake, engine=engine)
        odd["systems"] = {"../s0": odd["systems"]["s0"]}
        with pytest.raises(PlanError, match="they name files"):
            Audit.from_plan(Plan.from_dict(odd))
    one, two = (Audit.from_plan(Plan.from_dict(plan_of(lake, engine=e))).run() for e in engines)
    assert one.folder is two.folder is None
    assert [e.key for e in one.estimates] == [e.key for e in two.estimates]
