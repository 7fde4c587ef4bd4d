"""What a block of users, or of texts, needs of an audit: measured anywhere, merged anywhere."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from ombud.audits.presets import Tagger
from ombud.data.dataset import NO_HISTORY, Dataset, group_exclusions, lists_without_history
from ombud.data.decisions import Decisions
from ombud.data.exclusions import Exclusion, near_identical
from ombud.data.groups import Grouping
from ombud.data.ids import FROM_ZERO, Ids, Vocabulary, hash_ids
from ombud.data.interactions import Interactions
from ombud.data.items import Items
from ombud.data.labels import Labels
from ombud.data.recommendations import Recommendations
from ombud.data.texts import Texts
from ombud.errors import DataError, PlanError
from ombud.metrics.base import Metric, Outputs, Rows
from ombud.metrics.engine.blocks import BlockSums, LeftOut
from ombud.metrics.engine.list_depth import list_depth
from ombud.metrics.engine.text_rows import NOTHING_ACCEPTABLE
from ombud.systems.recorded import decisions_about, unmatched_decisions

_COUNTS = ("units", "rows", "grouped", "grouped_here", "ungrouped", "acceptable", "ones")


def lists_table(system: str) -> str:
    """Return the name of the table that holds a system's lists."""
    return f"lists/{system}"


@dataclass(frozen=True, eq=False)
class Part:
    """A block as data, and what systems said of its units."""

    # As an audit in memory has them.
    data: Dataset
    outputs: Mapping[str, Outputs]
    groups: Grouping | None  # groups of the units
    asked: int  # how many units there are
    # The ids of units and the keys of their clusters; None where units stand alone.
    keys: tuple[Vocabulary, NDArray[np.uint64]] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockAudit(ABC):
    """What must be known to measure a block: nothing that grows with its units."""

    # What is measured, of which systems.
    metrics: tuple[Metric, ...]
    systems: tuple[str, ...]
    # Names and attributes of the groups of units, without members; None for none.
    groups: Grouping | None = None
    # For each attribute the values that make its groups, in their order; empty where memberships
    # are given.
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    labels: Labels | None = None  # labels of items, where the data has them
    seed: int = 0  # the seed of the audit

    def totals(self) -> BlockTotals:
        """Return what no block has been added to yet."""
        return BlockTotals.empty(self.metrics, self.systems, self.groups, self.seed)

    def measure(
        self, frames: Mapping[str, pl.DataFrame], into: BlockTotals
    ) -> list[dict[str, Rows]]:
        """Measure a block and add it to what is known; return the rows of each metric."""
        part = self._part(frames, into)
        measured: list[dict[str, Rows]] = []
        if part is None:
            return measured
        lists = {n: s for n, s in part.outputs.items() if isinstance(s, Recommendations)}
        past = part.data.interactions
        seen = {} if past is None else {name: some.seen_in(past) for name, some in lists.items()}
        for metric, sums in zip(self.metrics, into.sums, strict=True):
            rows = {name: metric.measure(some, part.data) for name, some in part.outputs.items()}
            depths = {}
            if metric.shallow_lists != "unread":
                depths = {
                    name: list_depth(some, part.data, metric.depth, seen[name])
                    for name, some in lists.items()
                }
            sums.add(rows, part.groups, asked=part.asked, depths=depths, keys=part.keys)
            measured.append(rows)
        return measured

    @abstractmethod
    def _part(self, frames: Mapping[str, pl.DataFrame], into: BlockTotals) -> Part | None:
        """Return a block as data, and count what does not fit; None where it has no unit."""

    @abstractmethod
    def exclusions(self, totals: BlockTotals) -> tuple[Exclusion, ...]:
        """Return what was left out of the data, in the words of an audit in memory."""


@dataclass(frozen=True, eq=False, kw_only=True)
class UserBlockAudit(BlockAudit):
    """What must be known to measure a block of users."""

    catalogue: Vocabulary  # the items of all histories
    items: Items | None = None  # Attributes of items, where the data has them
    held_out: bool = False  # whether there are held-out interactions
    # How interactions are read: `rating_scale`, `duplicates` and `missing`.
    reading: Mapping[str, Any] = field(default_factory=dict)

    def _part(self, frames: Mapping[str, pl.DataFrame], into: BlockTotals) -> Part | None:
        data = self._data(frames, into)
        assert data.interactions is not None  # _data has made them
        lists = {name: self._lists(name, frames, data, into) for name in self.systems}
        return Part(data, lists, data.users, len(data.interactions.users.ids))

    def _data(self, frames: Mapping[str, pl.DataFrame], into: BlockTotals) -> Dataset:
        train = self._interactions(frames["interactions"], "interactions")
        test = None
        if self.held_out:
            test = self._interactions(frames["test"], "test")
            both = np.concatenate([train.users.ids, test.users.ids])
            users, _ = Vocabulary.encode(both)
            train, test = train.over(users, self.catalogue), test.over(users, self.catalogue)
        into.left_out.add(train.exclusions, -1)
        into.counts["units"] += train.n_users
        into.counts["rows"] += frames["interactions"].height
        groups = None
        if self.groups is not None:
            groups = block_groups(frames["users"], "user", self.groups, self.values)
            into.grouped(groups, train.users.arrow)
        return Dataset(train, self.labels, users=groups, test=test, items=self.items)

    def _interactions(self, frame: pl.DataFrame, name: str) -> Interactions:
        if not frame.height:
            nobody = Vocabulary(np.empty(0, dtype=self._user_type(frame)))
            return Interactions(nobody, self.catalogue, self._nothing(), "rating" in frame.columns)
        options = dict(self.reading)
        if name == "test":
            options = {"rating_scale": options.get("rating_scale")}
        try:
            return Interactions.from_frame(frame, source=name, catalogue=self.catalogue, **options)
        except DataError as error:
            raise in_block(error) from None

    def _nothing(self) -> sparse.csr_array:
        none = np.empty(0, dtype=np.int32)
        parts = (np.empty(0, dtype=np.float32), none, np.zeros(1, dtype=np.int32))
        return sparse.csr_array(parts, shape=(0, len(self.catalogue)))

    @staticmethod
    def _user_type(frame: pl.DataFrame) -> Any:
        return np.int64 if frame.schema["user"].is_integer() else "U1"

    def _lists(
        self, system: str, frames: Mapping[str, pl.DataFrame], data: Dataset, into: BlockTotals
    ) -> Recommendations:
        assert data.interactions is not None  # _data has made them
        frame, users = frames[lists_table(system)], data.interactions.users
        depth = max((metric.depth for metric in self.metrics), default=1)
        if not frame.height:
            nothing = np.empty((len(users), 0), dtype=np.int32)
            lists = Recommendations(users.ids, nothing, self.catalogue)
            into.recorded(system, 0, 0)
            return lists
        try:
            recorded = Recommendations.from_frame(frame, source=system)
        except DataError as error:
            raise in_block(error) from None
        strangers = int(np.count_nonzero(users.codes(recorded.users) < 0)) if len(users) else 0
        into.recorded(system, strangers if len(users) else len(recorded), len(recorded))
        lists = recorded.top(max(1, depth)).for_users(users.ids)
        into.add_shown(system, lists.shown)
        return lists

    def exclusions(self, totals: BlockTotals) -> tuple[Exclusion, ...]:
        """Return what was left out of the data, in the words of an audit in memory."""
        whole = Interactions(
            Vocabulary(np.empty(0, dtype=np.int64)), self.catalogue, self._nothing(), False
        )
        result = [
            Exclusion(e.where, e.what, e.count, e.reason, totals.counts["rows"], e.key)
            if e.where == "interactions"
            else e
            for e in totals.left_out.exclusions()
        ]
        data = Dataset(whole, self.labels, items=self.items)
        result += data.exclusions
        for system, shown in totals.shown.items():
            where = f"{system}: recommendations"
            told = data.foreign_items(system, shown)
            result += [replace(one, where=where, system=system) for one in told]
        if self.groups is not None:
            result += near_identical("groups", self.groups.names)
            result += totals.unmatched_groups("users", "users", "have no history")
        for system, (strangers, lists, *_) in totals.lists.items():
            if lists and strangers == lists:
                raise DataError(system, [NO_HISTORY])
            if strangers:
                where = f"{system}: recommendations"
                lost = lists_without_history(strangers, lists)
                result.append(replace(lost, where=where, system=system))
        return tuple(result)


def block_groups(
    frame: pl.DataFrame, unit: str, groups: Grouping, values: Mapping[str, tuple[str, ...]]
) -> Grouping:
    """Return the groups of a block's units, with the names and in the order of all groups.

    Parameters
    ----------
    frame
        One row a unit with a column for each attribute, or one row a membership (`group`).
    unit
        The column of ids.
    groups
        Names and attributes of all groups.
    values
        For each attribute the values that make its groups, in their order; empty for memberships.
    """
    units, codes = Vocabulary.encode(frame[unit].to_arrow())
    members = np.zeros((len(units), len(groups.names)), dtype=np.bool_)
    if not values:
        places = Vocabulary(list(groups.names)).codes(frame["group"].to_arrow())
        members[codes[places >= 0], places[places >= 0]] = True
        return Grouping(units, groups.names, members, groups.attributes)
    if len(units) < frame.height:
        raise DataError("groups", [f"column {unit!r} repeats an id; one row for each is expected"])
    place = 0
    for attribute, some in values.items():
        column = frame[attribute].cast(pl.String)
        for value in some:
            members[codes, place] = (column == value).fill_null(False).to_numpy()
            place += 1
    return Grouping(units, groups.names, members, groups.attributes)


def in_block(error: DataError) -> DataError:
    """Return a fault whose row numbers are said to be those of a block."""
    told = "rows are counted within a block"
    return DataError(error.source, [f"{fault} ({told})" for fault in error.faults])


@dataclass
class BlockTotals:
    """What is known of some blocks."""

    sums: list[BlockSums]  # what each metric has measured
    left_out: LeftOut = field(default_factory=LeftOut)  # what was excluded of the tables
    # How many users, interactions and so on there were.
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTS, 0))
    # By system: lists of users without a history, all lists, and twice 0; or ids of decisions that
    # are of no text, all ids of decisions, texts without a decision, and ids 0 that are of no text.
    lists: dict[str, tuple[int, int, int, int]] = field(default_factory=dict)
    shown: dict[str, NDArray[Any]] = field(default_factory=dict)  # by system, its items, each once

    @classmethod
    def empty(
        cls, metrics: Sequence[Metric], systems: Sequence[str], groups: Grouping | None, seed: int
    ) -> Self:
        """Return what is known before any block was measured."""
        return cls([BlockSums(metric, systems, groups, seed) for metric in metrics])

    def recorded(
        self, system: str, strangers: int, lists: int, lacking: int = 0, zeros: int = 0
    ) -> None:
        """Count the lists or decisions of a block, as `lists` has them."""
        a, b, c, d = self.lists.get(system, (0, 0, 0, 0))
        self.lists[system] = (a + strangers, b + lists, c + lacking, d + zeros)

    def add_shown(self, system: str, items: NDArray[Any]) -> None:
        """Add the items of some lists."""
        known = self.shown.get(system)
        if items.dtype.kind == "O":
            items = items.astype(np.str_)
        self.shown[system] = items if known is None else np.union1d(known, items)

    def grouped(self, groups: Grouping, units: Ids) -> None:
        """Count ids of groups, those of them that are units, and units in no group."""
        here = np.unique(groups.units.codes(units))
        self.counts["grouped"] += len(groups.units)
        self.counts["grouped_here"] += int(np.count_nonzero(here >= 0))
        alone = ~groups.aligned(units).any(axis=1)
        self.counts["ungrouped"] += int(np.count_nonzero(alone))

    def unmatched_groups(self, table: str, what: str, absent: str) -> list[Exclusion]:
        """Return what is said of groups that do not match the units; refuse when none does."""
        counts = self.counts
        if counts["grouped"] and not counts["grouped_here"]:
            fault = f"none of its {counts['grouped']:,} ids is among the {what}"
            raise DataError(table, [fault])
        return group_exclusions(
            counts["grouped"],
            counts["grouped_here"],
            counts["ungrouped"],
            counts["units"],
            what,
            absent,
        )

    def merge(self, other: BlockTotals) -> None:
        """Add what is known of other blocks."""
        for mine, theirs in zip(self.sums, other.sums, strict=True):
            mine.merge(theirs)
        self.left_out.merge(other.left_out)
        for name, count in other.counts.items():
            self.counts[name] += count
        for system, counts in other.lists.items():
            self.recorded(system, *counts)
        for system, items in other.shown.items():
            self.add_shown(system, items)

    def to_bytes(self) -> list[bytes]:
        """Return the state for another process: one part for each metric, and one for the rest."""
        counts = [[*about, *map(str, counts)] for about, counts in self.left_out.counts.items()]
        rest = {
            "counts": np.array([self.counts[name] for name in _COUNTS], dtype=np.int64),
            "blocks": np.array([self.left_out.asked, self.left_out.blocks], dtype=np.int64),
            "left_out": np.array(counts, dtype=np.str_).reshape(len(counts), 10),
            "systems": np.array(list(self.lists), dtype=np.str_),
            "lists": np.array(list(self.lists.values()), dtype=np.int64).reshape(-1, 4),
            **{f"shown/{system}": items for system, items in self.shown.items()},
        }
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **rest)
        return [*(sums.to_bytes() for sums in self.sums), buffer.getvalue()]

    def merged_part(self, part: int, one: bytes, other: bytes) -> bytes:
        """Return one of the parts of `to_bytes`, of two sets of blocks together."""
        if part < len(self.sums):
            mine = self.sums[part]
            metric, systems, groups = mine.metric, mine.systems, mine.groups
            theirs = BlockSums(metric, systems, groups, mine.seed)
            mine.restore(one)
            theirs.restore(other)
            mine.merge(theirs)
            return mine.to_bytes()
        rest, more = BlockTotals([]), BlockTotals([])
        rest.restore([one])
        more.restore([other])
        rest.merge(more)
        return rest.to_bytes()[-1]

    def restore(self, state: list[bytes]) -> None:
        """Become the state that `to_bytes` returned."""
        for sums, part in zip(self.sums, state, strict=False):
            sums.restore(part)
        with np.load(io.BytesIO(state[-1]), allow_pickle=False) as stored:
            self.counts = dict(zip(_COUNTS, stored["counts"].tolist(), strict=True))
            counts = {
                tuple(row[:5]): [int(count) for count in row[5:]]
                for row in stored["left_out"].tolist()
            }
            asked, blocks = stored["blocks"].tolist()
            self.left_out = LeftOut(counts, asked, blocks)
            pairs = zip(stored["systems"].tolist(), stored["lists"].tolist(), strict=True)
            self.lists = {name: (some[0], some[1], some[2], some[3]) for name, some in pairs}
            kept = [name for name in stored.files if name.startswith("shown/")]
            self.shown = {name.removeprefix("shown/"): stored[name] for name in kept}


def decisions_table(system: str) -> str:
    """Return the name of the table that holds a system's decisions."""
    return f"decisions/{system}"


def tagged_members(tagger: Tagger, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return which groups some texts name: an id and a group in each row.

    The batch has `id` and `text`.
    """
    frame = pl.from_arrow(batch.select(["id", "text"]))
    assert isinstance(frame, pl.DataFrame)  # a batch never becomes a series
    frame = frame.filter(pl.col("text").is_not_null())
    found = tagger.tag(frame["text"].to_list())
    rows, places = np.nonzero(found)
    names = pl.Series(tagger.names, dtype=pl.String)
    members = pl.DataFrame({"id": frame["id"].gather(rows), "group": names.gather(places)})
    table = members.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    schema = pa.schema([("id", table.schema.field("id").type), ("group", pa.large_string())])
    batches = table.cast(schema).to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=schema)


def with_clusters(frames: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Return rows of decisions and groups with the cluster of their text beside them.

    `frames` are whole texts, by table: ``texts`` with `id` and `cluster`, the others with `id`. An
    id that is of no text is a cluster of its own.
    """
    known = frames["texts"].select("id", "cluster")
    if known["id"].is_duplicated().any():
        raise _repeated(known)
    result = {"texts": frames["texts"]}
    for name, frame in frames.items():
        if name == "texts":
            continue
        own = pl.Series("own", hash_ids(frame["id"].to_arrow()).view(np.int64), dtype=pl.Int64)
        joined = frame.join(known, on="id", how="left", maintain_order="left")
        result[name] = joined.with_columns(cluster=pl.col("cluster").fill_null(own))
    return result


def _repeated(texts: pl.DataFrame) -> DataError:
    again = texts.filter(pl.col("id").is_duplicated())["id"].unique(maintain_order=True)
    told = ", ".join(map(repr, again.head(3).to_list()))
    return DataError("texts", [f"column 'id' repeats an id, such as {told}"])


@dataclass(frozen=True, eq=False, kw_only=True)
class TextBlockAudit(BlockAudit):
    """What must be known to measure a block of texts."""

    # By system: the score from which a text is flagged, where only scores are recorded.
    thresholds: Mapping[str, float | None] = field(default_factory=dict)
    # By system: the name of its file in messages.
    files: Mapping[str, str] = field(default_factory=dict)
    is_clustered: bool = False  # whether texts share clusters

    def _part(self, frames: Mapping[str, pl.DataFrame], into: BlockTotals) -> Part | None:
        texts, keys = self._texts(frames["texts"], into)
        groups = None
        if self.groups is not None:
            groups = block_groups(frames["text_groups"], "id", self.groups, self.values)
            into.grouped(groups, texts.ids)
        said = {
            name: self._decisions(name, frames[decisions_table(name)], texts, into)
            for name in self.systems
        }
        if not len(texts):
            return None
        return Part(Dataset(texts=texts, text_groups=groups), said, groups, len(texts), keys)

    def _texts(
        self, frame: pl.DataFrame, into: BlockTotals
    ) -> tuple[Texts, tuple[Vocabulary, np.ndarray[tuple[int], np.dtype[np.uint64]]] | None]:
        """Return the texts of a block, and the keys of their clusters where they share some."""
        if frame["id"].is_duplicated().any():
            raise _repeated(frame)
        kept = frame.filter(pl.col("text"))
        into.counts["rows"] += frame.height
        into.counts["units"] += kept.height
        if not kept.height:
            ids = frame["id"].head(0).to_numpy()
            nothing = np.empty(0, dtype=object)
            return Texts(ids, nothing, np.empty(0, dtype=np.int8), is_part=True), None
        try:
            read = Texts.from_frame(kept.with_columns(text=pl.lit("")), source="texts")
        except DataError as error:
            raise in_block(error) from None
        into.counts["ones"] += int(np.count_nonzero(read.ids == 1))
        into.counts["acceptable"] += int(np.count_nonzero(read.truth == 0))
        keys = None
        if self.is_clustered:
            keys = (Vocabulary(read.ids), kept["cluster"].to_numpy().view(np.uint64))
        return replace(read, is_part=True), keys

    def _decisions(
        self, system: str, frame: pl.DataFrame, texts: Texts, into: BlockTotals
    ) -> Decisions:
        if not frame.height:
            none = np.empty(0, dtype=np.int8)
            past = Decisions(frame["id"].to_numpy(), none, np.empty(0, dtype=np.float32))
        else:
            limit = self.thresholds.get(system)
            try:
                past = Decisions.from_frame(frame, threshold=limit, source=system)
            except DataError as error:
                raise in_block(error) from None
        said, strangers, lacking = decisions_about(past, texts)
        count = len(past) if past.repeats is None else len(np.unique(past.ids))
        zeros = int(bool((past.ids == 0).any()) and 0 not in texts.ids)
        into.recorded(system, strangers, count, lacking, zeros)
        return said

    def exclusions(self, totals: BlockTotals) -> tuple[Exclusion, ...]:
        """Return what was excluded of the data, in the words of an audit in memory.

        Raises
        ------
        DataError, PlanError
            If the tables do not belong together, or nothing can be measured.
        """
        counts = totals.counts
        if not counts["units"]:
            raise DataError("texts", ["column 'text' is missing in every row"])
        if not counts["acceptable"]:
            raise PlanError(NOTHING_ACCEPTABLE)
        result = []
        gone = counts["rows"] - counts["units"]
        if gone:
            result.append(Exclusion("texts", "rows", gone, "they have no text", counts["rows"]))
        if self.groups is not None:
            result += near_identical("groups", self.groups.names)
            result += totals.unmatched_groups("text_groups", "texts", "are not among the texts")
        for system, (strangers, count, lacking, zeros) in totals.lists.items():
            if count and lacking == counts["units"]:
                fault = f"none of its {count:,} ids is that of a text"
                raise DataError(self.files.get(system, system), [fault])
            if zeros and strangers == 1 and counts["ones"] and lacking:
                raise DataError(self.files.get(system, system), [FROM_ZERO])
            told = unmatched_decisions(
                self.files.get(system, system), strangers, count, lacking, counts["units"]
            )
            result += [replace(e, where=f"{system}: {e.where}", system=system) for e in told]
        return tuple(result)
