"""Audits of tables that are larger than memory: sorted into blocks of users or texts, measured one
by one.

``[engine] type = "stream"``. Recorded lists and decisions only: what a live system answers is
written first.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np

from ombud.audits.block_audit import BlockAudit, BlockTotals
from ombud.audits.block_sorting import is_sorted, sort_into_blocks
from ombud.audits.block_tables import Found, Tables
from ombud.audits.block_texts import TextBlockAudit
from ombud.audits.faults import check_names
from ombud.audits.load import load_metrics
from ombud.audits.metric_docs import metric_info
from ombud.audits.plan import Plan
from ombud.audits.presets import complete, tagger_of
from ombud.audits.provenance import input_hashes, now, versions
from ombud.audits.result import RESULT_SCHEMA, Result
from ombud.audits.run_folder import RunFolder
from ombud.audits.unused import engine_faults
from ombud.data.card import Card
from ombud.data.ids import Vocabulary
from ombud.data.lake import LakeTable, is_remote, read_block
from ombud.data.tables import TableOptions, read_tables
from ombud.errors import PlanError, ResultError
from ombud.files import inside, write_atomically, write_parquet
from ombud.metrics.base import Metric, Rows
from ombud.metrics.blocks import block_fault
from ombud.metrics.engine import Settings
from ombud.metrics.matters import check_measures, declare
from ombud.systems.base import Progress

__all__ = ["AnyBlockAudit", "StreamedAudit", "refuse_whole"]

AnyBlockAudit: TypeAlias = BlockAudit | TextBlockAudit

_CHECKPOINTS = 20
"""How often what is known so far is stored during a run."""


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
    faults += _table_faults(plan)
    for name, config in plan.systems.items():
        if config.get("type") != "recorded" or not isinstance(config.get("path"), str):
            faults.append(
                f"systems.{name}: only recorded lists in Parquet can be read in blocks, and "
                "recorded decisions; a live system is audited in memory, or writes answers first"
            )
    tables = [
        name for name in ("interactions", "test", "labels", "items") if getattr(plan.data, name)
    ]
    of = "recommender" if plan.data.texts is None else "moderator"
    for metric in load_metrics(plan.metrics):
        if metric.of != of:
            faults.append(f"{metric.title}: it measures a {metric.of}, and the data is of a {of}")
        elif fault := block_fault(metric, tables):
            faults.append(f"{metric.title}: {fault}")
    try:
        tagger_of(plan)
    except PlanError as error:
        faults.append(str(error))
    if not plan.metrics:
        faults.append("metrics: there is none")
    if not plan.systems:
        faults.append("systems: there is none")
    if faults:
        lines = "\n".join(f"  - {fault}" for fault in faults)
        raise PlanError(f"{said} cannot do what the plan asks:\n{lines}")


_OF_LISTS = ("interactions", "test", "labels", "items", "users")
_OF_TEXTS = ("texts", "text_groups")


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
    groups = "users" if plan.data.texts is None else "text_groups"
    if plan.by == () and getattr(plan.data, groups) is not None:
        faults.append(f"by = [] compares no groups, but [data] names {groups}")
    if plan.by and plan.data.texts is None and plan.data.users is None:
        faults.append(f"by names {', '.join(plan.by)}; the plan names no users")
    return faults


@dataclass
class StreamedAudit:
    """An audit of what was recorded in Parquet, in memory that does not grow with rows or users.

    Parameters
    ----------
    plan
        What to audit.
    """

    plan: Plan

    @classmethod
    def from_plan(cls, plan: Plan) -> Self:
        """Check what can be checked before anything is read."""
        # What is named from the working directory must be found, hashed and stored as what it is.
        plan = complete(plan).relative_to(Path())
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
            Called with a sentence for each table whose files cannot be hashed, and where blocks
            that a stopped run has left are of another plan or other files.
        """
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
        started, folder = now(), Path(folder)
        progress = progress or _silent
        tables = self._tables()
        hashes = input_hashes(self.plan)
        store = self._open(folder, hashes)
        self._forget_other_blocks(store, notice)
        audit, totals = self._measured(tables, store, progress)
        result = self._result(audit, totals, folder, started, hashes)
        return store.finish(result)

    def _tables(self) -> Tables:
        return Tables.of(self.plan, tagger=tagger_of(self.plan))

    def _measured(
        self, tables: Tables, store: RunFolder, progress: Progress
    ) -> tuple[AnyBlockAudit, BlockTotals]:
        scratch, identity = self._scratch(store), self._identity()
        blocks = sort_into_blocks(tables, scratch, self.plan.engine.blocks, progress, identity)
        audit = self.block_audit(tables, blocks)
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

    def _identity(self) -> str:
        """Return a digest of what sorted blocks and sums of them depend on."""
        remote = {
            place: LakeTable(path, name=place).listing()
            for place, path in self._paths().items()
            if is_remote(path)
        }
        plan = self.plan.model_dump(mode="json")
        return _digest({"plan": plan, "files": input_hashes(self.plan), "remote": remote})

    def _forget_other_blocks(
        self, store: RunFolder, notice: Callable[[str], None] | None = None
    ) -> None:
        """Delete blocks in the place of this run's that are of another plan or other files."""
        scratch = self._scratch(store)
        if not is_sorted(scratch) or is_sorted(scratch, self._identity()):
            return
        shutil.rmtree(scratch)
        if notice is not None:
            notice(
                f"the blocks that a stopped run has left in {scratch} are of another plan or of "
                "other files; they are deleted, and everything is sorted anew"
            )

    def block_audit(self, tables: Tables, found: Found) -> AnyBlockAudit:
        """Return what must be known to measure a block."""
        data = self.plan.data
        groups = found.grouping()
        if tables.main == "texts":
            systems = self.plan.systems
            return TextBlockAudit(
                self.metrics,
                tuple(systems),
                {name: config.get("threshold") for name, config in systems.items()},
                {name: Path(config["path"]).name for name, config in systems.items()},
                groups,
                found.values,
                tables.is_clustered,
                self.plan.seed,
            )
        assert found.items is not None  # there are histories
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
            found.values,
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
        audit: AnyBlockAudit,
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
            plain = "text" if metric.of == "moderator" else "user"
            infos.append(metric_info(metric, sums.unit or plain))
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
        named = {f"data.{n}": getattr(self.plan.data, n) for n in (*_OF_LISTS, *_OF_TEXTS)}
        named |= {f"systems.{name}.path": c["path"] for name, c in self.plan.systems.items()}
        return {place: path for place, path in named.items() if path is not None}


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


def _silent(done: int, total: int, note: str) -> None:
    """Show nothing."""
