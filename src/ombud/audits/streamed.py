"""Audits of tables that are larger than memory: sorted into blocks of users, measured one by one.

``[engine] type = "stream"``. Recorded lists only: what a live system answers is written first.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from ombud.audits.block_audit import BlockAudit, BlockTotals, lists_table
from ombud.audits.faults import check_names
from ombud.audits.load import load_metrics
from ombud.audits.metric_docs import metric_info
from ombud.audits.plan import Plan
from ombud.audits.presets import complete
from ombud.audits.provenance import input_hashes, now, versions
from ombud.audits.result import RESULT_SCHEMA, Result
from ombud.audits.run_folder import RunFolder
from ombud.audits.unused import engine_faults
from ombud.data.card import Card
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.lake import (
    BlockWriter,
    LakeTable,
    block_of,
    blocks_for,
    distinct_of,
    is_remote,
    read_block,
)
from ombud.data.tables import TableOptions, read_tables
from ombud.errors import DataError, PlanError, ResultError
from ombud.files import inside, read_json, write_atomically, write_json, write_parquet
from ombud.metrics.base import Metric, Rows
from ombud.metrics.blocks import block_fault
from ombud.metrics.engine import Settings
from ombud.metrics.matters import check_measures, declare
from ombud.systems.base import Progress

__all__ = ["Found", "StreamedAudit", "Tables", "refuse_whole", "sort_into_blocks"]

_ROWS_IN_BLOCK = 4_000_000
"""Interactions of a block, by default: about 600 MiB while it is measured."""

_CHECKPOINTS = 20
"""How often what is known so far is stored during a run."""

_KINDS = {"rank": "whole numbers", "rating": "numbers", "score": "numbers"}


@dataclass(frozen=True)
class Tables:
    """The tables of a plan that are read in blocks, and which of their columns.

    Parameters
    ----------
    tables
        By name: ``interactions``, ``test``, ``users`` and, for each system, its lists.
    columns
        By the same names: the columns that are read, the user first.
    """

    tables: Mapping[str, LakeTable]
    columns: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, plan: Plan, given: Mapping[str, Mapping[str, pa.DataType]] | None = None) -> Self:
        """Return the tables of a plan, their columns checked; all faults in one error.

        Parameters
        ----------
        plan
            What to audit.
        given
            By table, the types of the columns of those that do not come from files.
        """
        tables = {
            name: LakeTable(path, plan.data.columns.get(name, {}), name)
            for name in ("interactions", "test", "users")
            if (path := getattr(plan.data, name)) is not None
        }
        for system, config in plan.systems.items():
            named = {"name": system} | config
            columns = dict(named.get("columns", {}))
            tables[lists_table(system)] = LakeTable(str(config["path"]), columns, system)
        chosen, faults = {}, []
        for name, table in tables.items():
            try:
                types = (given or {}).get(name)
                chosen[name] = _wanted(
                    name, table, plan, table.schema() if types is None else types
                )
            except DataError as error:
                faults.append(str(error))
        if faults:
            raise PlanError("\n".join(faults))
        return cls(tables, chosen)


def _wanted(
    name: str, table: LakeTable, plan: Plan, types: Mapping[str, pa.DataType]
) -> tuple[str, ...]:
    """Return the columns of a table that are read; refuse those of a wrong type."""
    needed = ["user"] if name == "users" else ["user", "item"]
    faults = [
        f"column {column!r} is missing (found: {', '.join(types)})"
        for column in needed
        if column not in types
    ]
    more = {
        "interactions": ("rating", *(["time"] if plan.data.duplicates == "last" else [])),
        "test": ("rating",),
        "users": tuple(_attributes(types, plan)),
    }.get(name, ("rank",) if "rank" in types else ("score",))
    if name == "users" and "group" in types and "group" not in (plan.by or ()):
        faults.append(
            "it lists memberships (a column 'group'); an engine that streams reads one row a user, "
            "with a column for each attribute"
        )
    if name == "interactions" and "set" in types and (plan.by is None or "set" in plan.by):
        faults.append("it has a column 'set', by which only an audit in memory makes groups; name "
                      "the attributes to compare by: by = [...]")  # fmt: skip
    for column in ("user", "item"):
        if column in types and not _is_id(types[column]):
            faults.append(f"column {column!r}: holds {types[column]}; whole numbers or strings "
                          "were expected")  # fmt: skip
    for column, kind in _KINDS.items():
        if column in more and column in types and not _is_number(types[column]):
            faults.append(f"column {column!r}: holds {types[column]}; {kind} were expected")
    if faults:
        raise DataError(table.told, faults)
    return (*needed, *(column for column in more if column in types))


def _attributes(types: Mapping[str, Any], plan: Plan) -> list[str]:
    if plan.by is None:
        return [column for column in types if column != "user"]
    return [column for column in plan.by if column in types]


def _is_id(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(text or pa.types.is_integer(kind) or pa.types.is_string_view(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def refuse_whole(plan: Plan) -> None:
    """Refuse what needs all users at once, or a live system; all of it in one error."""
    said = f'[engine] type = "{plan.engine.type}"'
    faults = engine_faults(plan)
    for key, why in (
        ("split", "hold interactions out beforehand, and name them: [data] test"),
        ("sample", "sample users beforehand"),
        ("by_item", "groups of items are measured in memory only"),
        ("analyses", "analyses read all tables at once"),
        ("intersections", "make a column of the pairs beforehand"),
    ):
        if getattr(plan, key):
            faults.append(f"{key}: {why}")
    if plan.repeat > 1:
        faults.append("repeat: it trains anew each time; run the plan in memory")
    if plan.data.source is not None:
        faults.append("data.source: a source is loaded into memory; name Parquet files")
    if plan.data.texts is not None or plan.data.text_groups is not None:
        faults.append("data.texts: decisions about texts are measured in memory so far")
    if plan.data.interactions is None and plan.data.source is None:
        faults.append("data.interactions: there is none")
    for name, config in plan.systems.items():
        if config.get("type") != "recorded" or not isinstance(config.get("path"), str):
            faults.append(
                f"systems.{name}: only recorded lists in Parquet can be read in blocks; a live "
                "system is audited in memory, or writes its lists first"
            )
    tables = [
        name for name in ("interactions", "test", "labels", "items") if getattr(plan.data, name)
    ]
    for metric in load_metrics(plan.metrics):
        if metric.of != "recommender":
            faults.append(f"{metric.title}: it measures a {metric.of}")
        elif fault := block_fault(metric, tables):
            faults.append(f"{metric.title}: {fault}")
    if not plan.metrics:
        faults.append("metrics: there is none")
    if not plan.systems:
        faults.append("systems: there is none")
    if faults:
        lines = "\n".join(f"  - {fault}" for fault in faults)
        raise PlanError(f"{said} cannot do what the plan asks:\n{lines}")


@dataclass
class StreamedAudit:
    """An audit of recorded lists in Parquet, in memory that does not grow with rows or users.

    Parameters
    ----------
    plan
        What to audit.
    """

    plan: Plan

    @classmethod
    def from_plan(cls, plan: Plan) -> Self:
        """Check what can be checked before anything is read."""
        plan = complete(plan)
        check_names(plan, systems=True)
        refuse_whole(plan)
        check_measures(plan.statistics.matters, [str(m.get("name")) for m in plan.metrics])
        return cls(plan)

    def quote(self) -> dict[str, Any]:
        """Return nothing: no service is asked."""
        return {}

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What is measured."""
        return load_metrics(self.plan.metrics)

    @property
    def settings(self) -> Settings:
        """How uncertainty is computed."""
        return Settings(**self.plan.statistics.model_dump(), seed=self.plan.seed)

    def run(
        self,
        folder: Path | str,
        progress: Progress | None = None,
        notice: Callable[[str], None] | None = None,
    ) -> Result:
        """Sort, measure and estimate; a run that was stopped goes on when it is started again.

        Parameters
        ----------
        folder
            Where to store the result, and by default the blocks while it runs.
        progress
            Called with (done, total, note).
        notice
            Called with a sentence for each table whose files cannot be hashed.
        """
        for name, path in self._paths().items():
            if notice is not None and is_remote(path):
                notice(
                    f"{name} is read from {path}: its files are not hashed, so `ombud verify` "
                    "cannot tell whether they have changed"
                )
        started, folder = now(), Path(folder)
        progress = progress or _silent
        tables = self._tables()
        hashes = input_hashes(self.plan)
        store = self._open(folder, hashes)
        audit, totals = self._measured(tables, store, progress)
        result = self._result(audit, totals, folder, started, hashes)
        return store.finish(result)

    def _tables(self) -> Tables:
        return Tables.of(self.plan)

    def _measured(
        self, tables: Tables, store: RunFolder, progress: Progress
    ) -> tuple[BlockAudit, BlockTotals]:
        scratch = store.path / "blocks"
        if self.plan.engine.scratch is not None:
            scratch = Path(self.plan.engine.scratch) / f"ombud-{_key(store.path)}"
        blocks = sort_into_blocks(tables, scratch, self.plan.engine.blocks, progress)
        audit = self.block_audit(tables, blocks)
        totals = audit.totals()
        begun = _restored(totals, scratch)
        step = max(1, blocks.count // _CHECKPOINTS)
        for block in range(begun, blocks.count):
            progress(block, blocks.count, "measuring blocks of users")
            frames = {name: read_block(scratch / name, block) for name in tables.tables}
            measured = audit.measure(frames, totals)
            if self.plan.engine.rows:
                _store_rows(store, measured, block)
            if (block + 1) % step == 0 and block + 1 < blocks.count:
                _keep(totals, scratch, block + 1)
        progress(blocks.count, blocks.count, "measured")
        shutil.rmtree(scratch, ignore_errors=True)
        return audit, totals

    def block_audit(self, tables: Tables, found: Found) -> BlockAudit:
        """Return what must be known to measure a block."""
        data = self.plan.data
        values = found.values
        groups = None
        if "users" in tables.tables and values:
            names = [(a, f"{a}={v}") for a, some in values.items() for v in some]
            groups = Grouping(
                Vocabulary(np.empty(0, dtype=np.int64)),
                tuple(name for _, name in names),
                np.zeros((0, len(names)), dtype=np.bool_),
                tuple(attribute for attribute, _ in names),
            )
        options = TableOptions(
            absent=data.absent, threshold=data.threshold, strict=data.strict, columns=data.columns
        )
        small = {n: p for n in ("labels", "items") if (p := getattr(data, n)) is not None}
        options = replace(options, columns={n: c for n, c in data.columns.items() if n in small})
        read = read_tables(small, options)
        return BlockAudit(
            self.metrics,
            tuple(self.plan.systems),
            Vocabulary.encode(found.items)[0],
            read.get("labels"),
            read.get("items"),
            groups,
            values,
            "test" in tables.tables,
            {
                "rating_scale": data.rating_scale,
                "duplicates": data.duplicates,
                "missing": data.missing,
            },
            self.plan.seed,
        )

    def _open(self, folder: Path, hashes: Mapping[str, str]) -> RunFolder:
        plan = self.plan.portable(folder)
        identity = {"plan": plan.model_dump(mode="json"), "files": dict(hashes)}
        return RunFolder(folder, identity, plan.to_toml())

    def _result(
        self,
        audit: BlockAudit,
        totals: BlockTotals,
        folder: Path,
        started: str,
        hashes: Mapping[str, str],
    ) -> Result:
        exclusions = dict.fromkeys(audit.exclusions(totals))
        estimates, infos = [], []
        for metric, sums in zip(audit.metrics, totals.sums, strict=True):
            estimates += sums.estimates(self.settings)
            exclusions |= dict.fromkeys(sums.exclusions())
            infos.append(metric_info(metric, sums.unit or "user"))
        rule = "" if audit.labels is None else audit.labels.rule
        names = {Path(place).name: value for place, value in hashes.items()}
        title = ", ".join(sorted({Path(path).name for path in self._paths().values()}))
        return Result(
            plan=self.plan,
            estimates=tuple(declare(estimates, self.plan.statistics.matters)),
            metrics=tuple(infos),
            exclusions=tuple(exclusions),
            card=Card(name="files", title=title, hashes=names, unknowns=rule),
            provenance={
                "schema_version": RESULT_SCHEMA,
                "started": started,
                "finished": now(),
                "seed": self.plan.seed,
                "versions": versions(),
                "data": _digest(hashes),
                "parts": {},
                "inputs": dict(hashes),
                "engine": self.plan.engine.type,
            },
            folder=folder,
        )

    def _paths(self) -> dict[str, str]:
        """Return the paths of all tables, by the place that names them."""
        tables = ("interactions", "test", "labels", "items", "users")
        named = {f"data.{name}": getattr(self.plan.data, name) for name in tables}
        named |= {f"systems.{name}.path": c["path"] for name, c in self.plan.systems.items()}
        return {place: path for place, path in named.items() if path is not None}


@dataclass(frozen=True)
class Found:
    """What sorting has found out about the tables.

    Parameters
    ----------
    count
        How many blocks there are.
    items
        The distinct items of all histories.
    values
        For each attribute of users its values, in order.
    """

    count: int
    items: pa.Array
    values: Mapping[str, tuple[str, ...]]


def sort_into_blocks(
    tables: Tables, scratch: Path, wanted: int | None, progress: Progress
) -> Found:
    """Sort the rows of all tables by a hash of their user, unless that was done before.

    Parameters
    ----------
    tables
        What is sorted.
    scratch
        Where the blocks go.
    wanted
        How many blocks; default, by the number of interactions.
    progress
        Called with (done, total, note).
    """
    marker = scratch / "sorted.json"
    if marker.exists():
        return _sorted_before(scratch, read_json(marker))
    shutil.rmtree(scratch, ignore_errors=True)  # what a killed run has left half sorted
    scratch.mkdir(parents=True)
    rows = {name: table.count() for name, table in tables.tables.items()}
    empty = [name for name, count in rows.items() if not count and name != "users"]
    if empty:
        raise PlanError("\n".join(f"{tables.tables[n].told}: the table has no rows" for n in empty))
    count = blocks_for(rows["interactions"], wanted, _ROWS_IN_BLOCK)
    done, total = 0, sum(rows.values())
    items: pa.Array | None = None
    kinds: dict[str, pa.Array] = {}
    for name, table in tables.tables.items():
        columns = tables.columns[name]
        writer: BlockWriter | None = None
        for batch in table.batches(columns):
            progress(done, total, f"sorting {table.told} into {count:,} blocks")
            plain = _plain(batch, table)
            if writer is None:
                writer = BlockWriter(scratch / name, count, plain.schema)
            writer.write(plain, block_of(plain.column("user"), count))
            if name in ("interactions", "test"):
                items = distinct_of(items, plain.column("item"))
            elif name == "users":
                for attribute in columns[1:]:
                    some = plain.column(attribute).drop_null()
                    kinds[attribute] = distinct_of(kinds.get(attribute), some)
            done += batch.num_rows
        if writer is not None:
            writer.close()
    named = {a: tuple(sorted(some.to_pylist(), key=str)) for a, some in kinds.items()}
    for attribute, values in named.items():
        if len(values) > max(2, rows["users"] // 2) or len(values) > _MOST_GROUPS:
            fault = f"{attribute!r} has {len(values):,} values for {rows['users']:,} units"
            raise PlanError(f"users: {fault}; choose a coarser attribute")
    assert items is not None  # a table without rows was refused
    write_parquet(scratch / "items.parquet", pl.DataFrame({"item": items}))
    write_json(marker, {"count": count, "values": {a: list(some) for a, some in named.items()}})
    return Found(count, items, named)


def _sorted_before(scratch: Path, told: Mapping[str, Any]) -> Found:
    items = pl.read_parquet(scratch / "items.parquet")["item"].to_arrow()
    values = {attribute: tuple(some) for attribute, some in told["values"].items()}
    return Found(int(told["count"]), items, values)


_MOST_GROUPS = 1000
"""More values of one attribute than this are no groups that anyone compares."""


def _plain(batch: pa.RecordBatch, table: LakeTable) -> pa.RecordBatch:
    """Return a part of a table with ids of one type; refuse missing ids."""
    arrays = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if name in ("user", "item"):
            if column.null_count:
                fault = f"column {name!r} is missing in {column.null_count:,} rows or more"
                raise DataError(table.told, [fault])
            whole = pa.types.is_integer(column.type)
            column = pc.cast(column, pa.int64() if whole else pa.large_string())
        elif name not in ("rating", "score", "rank", "time"):
            column = pc.cast(column, pa.large_string())
        arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _store_rows(store: RunFolder, measured: list[dict[str, Rows]], block: int) -> None:
    for number, rows in enumerate(measured):
        for system, some in rows.items():
            path = inside(store.path, "rows", f"{number:02d}", system, f"{block:04d}.parquet")
            write_parquet(path, some.to_frame())


def _keep(totals: BlockTotals, scratch: Path, done: int) -> None:
    """Store what is known after so many blocks."""
    parts = {
        f"p{number:04d}": np.frombuffer(p, np.uint8) for number, p in enumerate(totals.to_bytes())
    }

    def write(part: Path) -> None:
        with part.open("wb") as file:
            np.savez(file, allow_pickle=False, done=np.array([done]), **parts)

    write_atomically(scratch / "state.npz", write)


def _restored(totals: BlockTotals, scratch: Path) -> int:
    """Go on from what a stopped run has stored; return how many blocks are done."""
    path = scratch / "state.npz"
    if not path.exists():
        return 0
    try:
        with np.load(path, allow_pickle=False) as stored:
            names = sorted(name for name in stored.files if name != "done")
            totals.restore([stored[name].tobytes() for name in names])
            return int(stored["done"][0])
    except (OSError, ValueError, KeyError) as error:
        raise ResultError(f"{path} is damaged: {error}; delete the folder {scratch}") from None


def _key(path: Path) -> str:
    return blake2b(str(path.resolve()).encode(), digest_size=6).hexdigest()


def _digest(hashes: Mapping[str, str]) -> str:
    text = json.dumps(dict(hashes), sort_keys=True)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _silent(done: int, total: int, note: str) -> None:
    """Show nothing."""
