"""Audits of tables that are larger than memory: sorted into blocks of users or texts, measured one
by one.

``[engine] type = "stream"``. Recorded lists and decisions only: what a live system answers is
written first.
"""

from __future__ import annotations

import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ombud.audits.backends.base import Inputs, Measured, Notice, Run, metric_info
from ombud.audits.backends.blocks import (
    BlockAudit,
    BlockTotals,
    TextBlockAudit,
    UserBlockAudit,
    tagged_members,
    with_clusters,
)
from ombud.audits.backends.tables import (
    GROUP_TABLES,
    Found,
    Tables,
    checked_members,
    checked_values,
    plain_batch,
    refuse_missing,
    tagger_members,
)
from ombud.audits.plan import DataPlan, Plan, engine_faults
from ombud.audits.presets import tagger_of
from ombud.audits.provenance import input_hashes
from ombud.audits.run_folder import RunFolder
from ombud.data.card import Card
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
from ombud.data.tables import TableOptions, has_label_errors, read_tables
from ombud.errors import OmbudError, PlanError, ResultError
from ombud.files import inside, open_files, read_json, write_atomically, write_json, write_parquet
from ombud.metrics.base import Metric, Rows
from ombud.metrics.engine.blocks import block_fault
from ombud.metrics.engine.estimator import Settings
from ombud.metrics.engine.label_uncertainty import LABEL_ERRORS
from ombud.metrics.engine.paired import different_units
from ombud.systems.base import Progress
from ombud.systems.quote import CostQuote

_CHECKPOINTS = 20
"""How often what is known so far is stored during a run."""


def refuse_whole(plan: Plan, metrics: Sequence[Metric]) -> None:
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
    faults += _table_faults(plan)
    read = {f"systems.{n}.reading": c.get("reading") for n, c in plan.systems.items()}
    read |= {f"data.reading.{n}": r for n, r in plan.data.reading.items() if n not in _WHOLE}
    faults += [
        f"{place}: an audit in blocks reads only files in the standard form; convert the file"
        for place, settings in read.items()
        if settings
    ]
    for name, config in plan.systems.items():
        if config.get("type") != "recorded" or not isinstance(config.get("path"), str):
            faults.append(
                f"systems.{name}: only recorded lists in Parquet can be read in blocks, and "
                "recorded decisions; a live system is audited in memory, or writes answers first"
            )
    tables = [
        name for name in ("interactions", "test", "labels", "items") if getattr(plan.data, name)
    ]
    try:
        if has_label_errors(*_read_whole(plan.data)):
            tables.append(LABEL_ERRORS)
        tagger_of(plan)
    except OmbudError as error:
        faults.append(str(error))
    of = "recommender" if plan.data.texts is None else "moderator"
    for metric in metrics:
        if metric.of != of:
            faults.append(f"{metric.title}: it measures a {metric.of}, and the data is of a {of}")
        elif fault := block_fault(metric, tables):
            faults.append(f"{metric.title}: {fault}")
    if not plan.metrics:
        faults.append("metrics: there is none")
    if not plan.systems:
        faults.append("systems: there is none")
    if faults:
        lines = "\n".join(f"  - {fault}" for fault in faults)
        raise PlanError(f"{said} cannot do what the plan asks:\n{lines}")


_WHOLE = ("labels", "items")  # read at once, as in memory
_OF_LISTS = ("interactions", "test", "labels", "items", "users")
_OF_TEXTS = ("texts", "text_groups")


def _read_whole(data: DataPlan) -> tuple[dict[str, str], TableOptions]:
    """Return the small tables that a plan names, and how they are read."""
    small = {n: p for n in _WHOLE if (p := getattr(data, n)) is not None}
    options = TableOptions(
        unlabeled=data.unlabeled,
        threshold=data.threshold,
        strict=data.strict,
        columns={n: c for n, c in data.columns.items() if n in small},
        reading={n: r for n, r in data.reading.items() if n in small},
    )
    return small, options


def _table_faults(plan: Plan) -> list[str]:
    """Return what is wrong with the tables that a plan names: lacking, or never looked at."""
    faults = []
    main, unread = ("interactions", _OF_TEXTS) if plan.data.texts is None else ("texts", _OF_LISTS)
    if getattr(plan.data, main) is None and plan.data.source is None:
        faults.append(f"data.{main}: there is none")
    faults += [
        f"data.{name}: an audit in blocks is of lists or of texts; of {main} it reads no {name}"
        for name in unread
        if getattr(plan.data, name) is not None
    ]
    if plan.data.text_labels is not None:
        faults.append("data.text_labels: an audit in blocks reads the column label of the texts")
    groups = "users" if plan.data.texts is None else "text_groups"
    if plan.by == () and getattr(plan.data, groups) is not None:
        faults.append(f"by = [] compares no groups, but [data] names {groups}")
    if plan.by and plan.data.texts is None and plan.data.users is None:
        faults.append(f"by names {', '.join(plan.by)}; the plan names no users")
    return faults


@dataclass
class BlockBackend(ABC):
    """An audit of what was recorded, in blocks of users or texts that are measured one by one."""

    plan: Plan  # what to audit
    metrics: tuple[Metric, ...]  # what is measured
    needs_folder = True

    def quote(self) -> dict[str, CostQuote]:
        """Return nothing: no service is asked."""
        return {}

    def ready(self, notice: Notice | None) -> None:
        """Look at the columns of all tables, and say which of them cannot be hashed."""
        for name, path in self._paths().items():
            if notice is not None and is_remote(path):
                notice(
                    f"{name} is read from {path}: its files are not hashed, so `ombud verify` "
                    "cannot tell whether they have changed"
                )
        if notice is not None and self.plan.preset is not None:
            notice(
                f"preset {self.plan.preset!r}: it fills in what can be measured in blocks; for its "
                "medians, families and analyses run the plan without [engine]"
            )
        _ = self.tables

    @cached_property
    def tables(self) -> Tables:
        """The tables that are read, their columns checked."""
        return Tables.of(self.plan, self._given(), tagger_of(self.plan))

    def _given(self) -> dict[str, dict[str, Any]]:
        """Return the types of the columns of tables that do not come from files."""
        return {}

    def inputs(self) -> Inputs:
        """Return what is audited, as hashes."""
        return self._inputs

    @cached_property
    def _inputs(self) -> Inputs:
        files = input_hashes(self.plan)
        return Inputs(_digest(files), files)

    @abstractmethod
    def measured(self, run: Run) -> tuple[BlockAudit, BlockTotals]:
        """Measure every block; return how, and all sums."""

    def measure(self, run: Run) -> Measured:
        """Sort, measure and estimate; a run that was stopped goes on when it is started again."""
        audit, totals = self.measured(run)
        settings = Settings(**self.plan.statistics.model_dump(), seed=self.plan.seed)
        exclusions = dict.fromkeys(audit.exclusions(totals))
        estimates, infos = [], []
        for metric, sums in zip(audit.metrics, totals.sums, strict=True):
            found = sums.estimates(settings)
            estimates += found
            exclusions |= dict.fromkeys((*sums.exclusions(), *different_units(found)))
            plain = "text" if metric.of == "moderator" else "user"
            infos.append(metric_info(metric, sums.unit or plain))
        rule = "" if audit.labels is None else audit.labels.rule
        names = {Path(place).name: value for place, value in self.inputs().files.items()}
        title = ", ".join(sorted({Path(path).name for path in self._paths().values()}))
        card = Card(name="files", title=title, hashes=names, unknowns=rule)
        return Measured(estimates, infos, exclusions, card)

    def block_audit(self, found: Found) -> BlockAudit:
        """Return what must be known to measure a block."""
        tables, data, systems = self.tables, self.plan.data, self.plan.systems
        shared: dict[str, Any] = {"groups": found.grouping(), "values": found.values}
        shared |= {"metrics": self.metrics, "systems": tuple(systems), "seed": self.plan.seed}
        if tables.main == "texts":
            return TextBlockAudit(
                **shared,
                thresholds={name: config.get("threshold") for name, config in systems.items()},
                files={name: Path(config["path"]).name for name, config in systems.items()},
                is_clustered=tables.is_clustered,
            )
        assert found.items is not None  # there are histories
        read = read_tables(*_read_whole(data))
        return UserBlockAudit(
            **shared,
            catalogue=Vocabulary.encode(found.items)[0],
            labels=read.get("labels"),
            items=read.get("items"),
            held_out="test" in tables.tables,
            reading={n: getattr(data, n) for n in ("rating_scale", "duplicates", "missing")},
        )

    def _paths(self) -> dict[str, str]:
        """Return the paths of all tables, by the place that names them."""
        named = {f"data.{n}": getattr(self.plan.data, n) for n in (*_OF_LISTS, *_OF_TEXTS)}
        named |= {f"systems.{name}.path": c["path"] for name, c in self.plan.systems.items()}
        return {place: path for place, path in named.items() if path is not None}


@dataclass
class StreamBackend(BlockBackend):
    """Blocks on disk: memory does not grow with rows or users."""

    def measured(self, run: Run) -> tuple[BlockAudit, BlockTotals]:
        """Sort rows into blocks, and measure one after the other."""
        tables, store, progress = self.tables, run.store, run.progress
        assert store is not None  # a run in blocks always has a folder
        self._forget_other_blocks(store, run.notice)
        scratch, identity = self._scratch(store), self._identity
        blocks = sort_into_blocks(tables, scratch, self.plan.engine.blocks, progress, identity)
        audit = self.block_audit(blocks)
        totals = audit.totals()
        begun = _restored(totals, _state(store), identity)
        if not begun:  # there may have been more blocks before
            shutil.rmtree(store.path / "rows", ignore_errors=True)
        step = max(1, blocks.count // _CHECKPOINTS)
        for block in range(begun, blocks.count):
            progress(block, blocks.count, f"measuring blocks of {tables.what}")
            frames = {name: read_block(scratch / name, block) for name in tables.parts}
            measured = audit.measure(frames, totals)
            if self.plan.engine.rows:
                _store_rows(store, measured, block)
            if (block + 1) % step == 0 and block + 1 < blocks.count:
                _keep(totals, _state(store), block + 1, identity)
        progress(blocks.count, blocks.count, "measured")
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(_state(store).parent, ignore_errors=True)
        return audit, totals

    def _scratch(self, store: RunFolder) -> Path:
        if self.plan.engine.scratch is None:
            return store.path / "blocks"
        return Path(self.plan.engine.scratch) / f"ombud-{_key(store.path)}"

    @cached_property
    def _identity(self) -> str:
        """Return a digest of what sorted blocks and sums of them depend on."""
        remote = {
            place: LakeTable(path, name=place).listing()
            for place, path in self._paths().items()
            if is_remote(path)
        }
        plan = self.plan.model_dump(mode="json")
        return _digest({"plan": plan, "files": dict(self.inputs().files), "remote": remote})

    def _forget_other_blocks(self, store: RunFolder, notice: Notice | None) -> None:
        """Delete blocks in the place of this run's that are of another plan or other files."""
        scratch = self._scratch(store)
        if not is_sorted(scratch) or is_sorted(scratch, self._identity):
            return
        shutil.rmtree(scratch)
        if notice is not None:
            notice(
                f"the blocks that a stopped run has left in {scratch} are of another plan or of "
                "other files; they are deleted, and everything is sorted anew"
            )


def _store_rows(store: RunFolder, measured: list[dict[str, Rows]], block: int) -> None:
    for number, rows in enumerate(measured):
        for system, some in rows.items():
            path = inside(store.path, "rows", f"{number:02d}", system, f"{block:04d}.parquet")
            write_parquet(path, some.to_frame())


def _state(store: RunFolder) -> Path:
    """Return where sums are kept: with the rows that were measured, so that none go missing."""
    return store.path / "blocks" / "state.npz"


def _keep(totals: BlockTotals, path: Path, done: int, identity: str) -> None:
    """Store what is known after so many blocks."""
    parts = {
        f"p{number:04d}": np.frombuffer(p, np.uint8) for number, p in enumerate(totals.to_bytes())
    }

    def write(part: Path) -> None:
        with part.open("wb") as file:
            about = {"done": np.array([done]), "identity": np.array([identity])}
            np.savez(file, allow_pickle=False, **about, **parts)

    write_atomically(path, write)


def _restored(totals: BlockTotals, path: Path, identity: str) -> int:
    """Go on from what a stopped run has stored of the same blocks; return how many are done."""
    if not path.exists():
        return 0
    try:
        with np.load(path, allow_pickle=False) as stored:
            if "identity" not in stored.files or stored["identity"][0] != identity:
                return 0
            names = sorted(set(stored.files) - {"done", "identity"})
            totals.restore([stored[name].tobytes() for name in names])
            return int(stored["done"][0])
    except (OSError, ValueError, KeyError) as error:
        raise ResultError(f"{path} is damaged: {error}; delete the folder {path.parent}") from None


def _key(path: Path) -> str:
    return blake2b(str(path.resolve()).encode(), digest_size=6).hexdigest()


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(dict(content), sort_keys=True)
    return blake2b(text.encode(), digest_size=16).hexdigest()


_MARKER = "sorted.json"
_ROWS_IN_BLOCK = {"interactions": 4_000_000, "texts": 1_000_000}
"""Rows of a block, by default: about 600 MiB while it is measured."""


def is_sorted(scratch: Path, identity: str | None = None) -> bool:
    """Whether a folder holds sorted blocks; of a plan and files, where their digest is given."""
    marker = scratch / _MARKER
    if not marker.exists():
        return False
    return identity is None or read_json(marker).get("identity") == identity


def sort_into_blocks(
    tables: Tables, scratch: Path, wanted: int | None, progress: Progress, identity: str
) -> Found:
    """Sort the rows of all tables by a hash of their unit, unless that was done before.

    Parameters
    ----------
    tables
        What is sorted.
    scratch
        Where the blocks go.
    wanted
        How many blocks; default, by the number of interactions or texts.
    progress
        Called with (done, total, note).
    identity
        A digest of the plan and its files: blocks of others are not used, but sorted anew.
    """
    marker = scratch / _MARKER
    if is_sorted(scratch, identity):
        return _sorted_before(scratch, read_json(marker))
    # What a killed run has left half sorted; what is known of measured blocks may lie there too.
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    rows = {name: table.count() for name, table in tables.tables.items()}
    empty = [name for name, count in rows.items() if not count and name not in GROUP_TABLES]
    if empty:
        raise PlanError("\n".join(f"{tables.tables[n].told}: the table has no rows" for n in empty))
    count = blocks_for(rows[tables.main], wanted, _ROWS_IN_BLOCK[tables.main])
    sorting = _Sorting(tables, scratch, count)
    # Groups that texts name are written while texts are.
    with _permitted(count * (1 if tables.tagger is None else 2), count):
        _sort(sorting, tables, sum(rows.values()), progress)
        if tables.is_clustered:
            _sort_by_cluster(tables, scratch, count, progress)
    found = sorting.found(rows.get(tables.groups))
    if found.items is not None:
        write_parquet(scratch / "items.parquet", pl.DataFrame({"item": found.items}))
    values = {attribute: list(some) for attribute, some in found.values.items()}
    members = [list(pair) for pair in found.members]
    told = {"identity": identity, "count": count, "values": values, "members": members}
    write_json(marker, told)
    return found


@contextmanager
def _permitted(files: int, blocks: int) -> Iterator[None]:
    """Permit that so many files are open; refuse, in one sentence, what the system does not."""
    with ExitStack() as stack:
        try:
            stack.enter_context(open_files(files))
        except OSError as error:
            raise PlanError(
                f"{blocks:,} blocks are too many here: {files:,} files are open at once while a "
                f"table is sorted, and {error}; choose fewer ([engine] blocks), or permit more "
                "files (ulimit -n)"
            ) from None
        yield


def _sort(sorting: _Sorting, tables: Tables, total: int, progress: Progress) -> None:
    """Sort by id, a table at a time."""
    done = 0
    for name, table in tables.tables.items():
        for batch in table.batches(tables.columns[name]):
            progress(done, total, f"sorting {table.told} into {sorting.count:,} blocks")
            sorting.add(name, batch)
            done += batch.num_rows
        sorting.close()


class _Sorting:
    """Rows of tables on their way into blocks, and what is seen of them."""

    def __init__(self, tables: Tables, scratch: Path, count: int) -> None:
        self.tables, self.count = tables, count
        self.folder = scratch / "by-id" if tables.is_clustered else scratch
        self.writers: dict[str, BlockWriter] = {}
        self.items: pa.Array | None = None
        self.kinds: dict[str, pa.Array] = {}
        self.pairs: set[tuple[str, str]] = set()

    def add(self, name: str, batch: pa.RecordBatch) -> None:
        """Sort a part of a table."""
        plain = plain_batch(batch, name, self.tables.tables[name].told)
        self._write(name, plain)
        if name in ("interactions", "test"):
            self.items = distinct_of(self.items, plain.column("item"))
        elif name == "texts" and self.tables.tagger is not None:
            self._write("text_groups", tagged_members(self.tables.tagger, batch))
        elif name == self.tables.groups and self.tables.has_members:
            self.pairs |= _members_of(plain)
        elif name == self.tables.groups:
            for attribute in plain.schema.names[1:]:
                some = plain.column(attribute).drop_null()
                self.kinds[attribute] = distinct_of(self.kinds.get(attribute), some)

    def _write(self, name: str, batch: pa.RecordBatch) -> None:
        if name not in self.writers:
            self.writers[name] = BlockWriter(self.folder / name, self.count, batch.schema)
        self.writers[name].write(batch, block_of(batch.column(0), self.count))

    def close(self) -> None:
        """Finish the files of a table: those of all tables are more than a process may open."""
        for writer in self.writers.values():
            writer.close()
        self.writers.clear()

    def found(self, units: int | None) -> Found:
        """Return what was seen; `units` are the rows of the table of groups."""
        if self.tables.tagger is not None:
            return Found(self.count, self.items, members=tagger_members(self.tables.tagger))
        if self.tables.has_members:
            members = checked_members(self.pairs, self.tables.by)
            return Found(self.count, self.items, members=members)
        values = checked_values({a: k.to_pylist() for a, k in self.kinds.items()}, units)
        return Found(self.count, self.items, values)


def _members_of(batch: pa.RecordBatch) -> set[tuple[str, str]]:
    """Return the attributes and names of groups among some memberships."""
    frame = pl.from_arrow(batch)
    assert isinstance(frame, pl.DataFrame)  # a batch never becomes a series
    if "attribute" not in frame.columns:
        frame = frame.with_columns(attribute=pl.lit("group"))
    refuse_missing(name for name in ("group", "attribute") if frame[name].null_count())
    return set(frame.select("attribute", "group").unique().iter_rows())


def _sort_by_cluster(tables: Tables, scratch: Path, count: int, progress: Progress) -> None:
    """Sort once more, by what texts share: only a text's own row says what that is."""
    by_id, total = scratch / "by-id", count * len(tables.parts)
    for number, name in enumerate(tables.parts):  # one by one: each block is an open file
        with ExitStack() as stack:
            writer: BlockWriter | None = None
            for block in range(count):
                note = f"sorting {name} by what texts share"
                progress(number * count + block, total, note)
                frames = {n: read_block(by_id / n, block) for n in {"texts": 0, name: 0}}
                frame = with_clusters(frames)[name]
                table = frame.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
                for batch in table.to_batches():
                    if writer is None:
                        writer = BlockWriter(scratch / name, count, batch.schema)
                        stack.enter_context(writer)
                    key = batch.column("cluster").to_numpy().view(np.uint64)
                    writer.write(batch, (key % np.uint64(count)).astype(np.int64))
    shutil.rmtree(scratch / "by-id")


def _sorted_before(scratch: Path, told: Mapping[str, Any]) -> Found:
    path = scratch / "items.parquet"
    items = pl.read_parquet(path)["item"].to_arrow() if path.exists() else None
    values = {attribute: tuple(some) for attribute, some in told["values"].items()}
    members = tuple((attribute, name) for attribute, name in told["members"])
    return Found(int(told["count"]), items, values, members)
