"""One metric measured on blocks of units: what is kept of a block, how blocks merge, the end.

A block is any set of whole units (all rows of a user or text, all texts of a cluster). What is
kept of it are sums (`stats.bootstrap.binned`), so the blocks of a billion units fit where one does.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ombud.data.exclusions import Exclusion
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary, hash_ids
from ombud.errors import PlanError
from ombud.metrics.base import Metric, Notes, Rows
from ombud.metrics.engine.estimate import estimates_of, nothing_measured
from ombud.metrics.engine.estimator import Beside, MetricEstimator, Settings
from ombud.metrics.engine.layout import EVENTS, Layout, aligned, all_units, sums_beside
from ombud.metrics.engine.list_depth import ListDepth, told_depth
from ombud.metrics.engine.paired import SharedUnits
from ombud.rng import generator
from ombud.stats.bootstrap._design import one_thread
from ombud.stats.bootstrap.binned import BINS, BinnedReplicates, add_to_bins, bins_of, resample_bins
from ombud.stats.clustered_rates import RateSums
from ombud.stats.estimate import Estimate
from ombud.stats.statistics import Floats, OfSums

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

# Before the names of sums that are told beside the number.
_BESIDE = "beside/"
# What a difference of two sums may be off by, relative to them.
_ROUNDING = 1e-12


def block_fault(metric: Metric, tables: Sequence[str]) -> str:
    """Return why a metric cannot be measured in blocks that merge; empty when it can.

    Examples
    --------
    >>> from ombud.metrics import LabelShare
    >>> block_fault(LabelShare(), ["interactions", "labels"])
    ''
    """
    if not isinstance(metric.statistic, OfSums):
        name = type(metric.statistic).__name__.lower()
        return (
            f"its statistic ({name}) is no function of sums: it needs all units at once, so blocks "
            "of them do not merge; measure a mean instead, or run the plan without [engine]"
        )
    return metric.block_fault(tables)


@dataclass
class LeftOut:
    """Exclusions of blocks, added up."""

    # By what they are about: how many, out of how many, in how many blocks, and whether "out of"
    # was everyone who was asked for in each of them.
    counts: dict[tuple[str, ...], list[int]] = field(default_factory=dict)
    asked: int = 0  # how many units were asked for, in all blocks
    blocks: int = 0  # how many blocks there were

    def add(self, exclusions: Sequence[Exclusion], asked: int) -> None:
        """Add those of one block, in which so many units were asked for."""
        self.asked += asked
        self.blocks += 1
        for e in Exclusion.merged(exclusions):
            about = (e.where, e.what, e.reason, e.key, e.system)
            of = -1 if e.of is None else e.of
            self._add(about, [e.count, of, 1, int(of == asked), int(of < 0)])

    def _add(self, about: tuple[str, ...], counts: Sequence[int]) -> None:
        known = self.counts.setdefault(about, [0, 0, 0, 0, 0])
        for place, count in enumerate(counts):
            known[place] += count

    def merge(self, other: LeftOut) -> None:
        """Add those of other blocks."""
        self.asked += other.asked
        self.blocks += other.blocks
        for about, counts in other.counts.items():
            self._add(about, counts)

    def exclusions(self) -> tuple[Exclusion, ...]:
        """Return them over all blocks; "out of" where it is known."""
        result = []
        for (where, what, reason, key, system), counts in self.counts.items():
            count, of, blocks, all_asked, unknown = counts
            whole = of if blocks == self.blocks and not unknown else None
            if all_asked == blocks:
                whole = self.asked  # blocks where nobody was left out said nothing
            result.append(Exclusion(where, what, count, reason, whole, key, system))
        return tuple(result)


class BlockSums:
    """What a metric measured on some blocks.

    The statistic of the metric must be a function of sums. `groups` has names and attributes; of
    their members nothing is asked.
    """

    def __init__(
        self, metric: Metric, systems: Sequence[str], groups: Grouping | None, seed: int
    ) -> None:
        fault = block_fault(metric, ())
        if fault or not isinstance(metric.statistic, OfSums):
            raise PlanError(f"{metric.title}: {fault}")
        self.metric, self.systems, self.groups, self.seed = metric, tuple(systems), groups, seed
        self.statistic: OfSums = metric.statistic
        self.labels: tuple[str, ...] = ()
        self.unit = ""
        self.arrays: dict[str, NDArray[Any]] = {}
        self.tallies: dict[str, dict[str, Floats]] = {name: {} for name in self.systems}
        self.depths: dict[str, ListDepth] = {}
        self.shortened: set[str] = set()
        self.left_out = LeftOut()

    @property
    def layout(self) -> Layout:
        """Where each system, label and group stands."""
        return Layout.of(self.systems, self.labels, self.groups, self.metric.comparisons.groups)

    def add(
        self,
        rows: Mapping[str, Rows],
        groups: Grouping | None,
        *,
        asked: int = 0,
        depths: Mapping[str, ListDepth] | None = None,
        keys: tuple[Vocabulary, NDArray[np.uint64]] | None = None,
    ) -> None:
        """Add a block of whole units.

        Parameters
        ----------
        rows
            What was measured, by system.
        groups
            Groups of the block's units, with the names and in the order of all groups.
        asked
            How many units were asked for in the block.
        depths
            How deep lists are, by system, where the metric looks at lists.
        keys
            The ids of units and the 64-bit keys of their clusters; default, units stand alone and
            their keys are hashes of their ids.
        """
        first = rows[self.systems[0]]
        if not self.arrays:
            self._begin(first, keys is not None)
        if {r.labels for r in rows.values()} != {self.labels}:
            raise ValueError(f"{self.metric.title}: blocks or systems differ in their labels")
        for name, measured in rows.items():
            assert measured.shared is None  # `Metric.block_fault` has refused what draws labels
            for tally, values in measured.tallies.items():
                known = self.tallies[name]
                known[tally] = known[tally] + values if tally in known else values.copy()
        self._leave_out(rows, asked)
        for name, depth in (depths or {}).items():
            known_depth = self.depths.get(name)
            self.depths[name] = depth if known_depth is None else known_depth.merged(depth)
        units = all_units([rows[s].ids for s in self.systems])
        if len(units) == 0:
            return
        names = () if self.groups is None else self.groups.names
        member = np.zeros((len(units), len(names)), dtype=np.bool_)
        if groups is not None:
            if groups.names != names:
                raise ValueError("the groups of a block differ from those of the audit")
            member = groups.aligned(units.arrow)
        if keys is None:
            begin, bins = None, bins_of(hash_ids(units.arrow), self.seed)
        else:
            own = keys[1][keys[0].codes(units.arrow)]
            order = np.argsort(own, kind="stable")
            units, own, member = Vocabulary(units.take(order)), own[order], member[order]
            bins, begin = bins_of(own, self.seed), first_of(own)
        values, there = self._values(rows, units)
        with one_thread():
            self._sum("sums", bins, self._stored(member), self._terms(values, there))
            self._count(member, values, there, begin)
            self._sum_pairs(bins, values, there, begin)
        beside = sums_beside(rows, units, self.layout.columns(member), there)
        for name, sums in beside.items():
            self.arrays[_BESIDE + name] += sums
        self.arrays["overlap"] += self.layout.overlap(member)

    def _leave_out(self, rows: Mapping[str, Rows], asked: int) -> None:
        """Add what was left out, but for what is told from tallies at the end."""
        kept = []
        for name, measured in rows.items():
            told = {e.key for e in self._notes(measured.tallies).exclusions}
            about = [e for e in measured.exclusions if not e.key or e.key not in told]
            kept += [replace(e, where=f"{name}: {e.where}", system=name) for e in about]
        self.left_out.add(kept, asked)

    def _notes(self, tallies: Mapping[str, NDArray[np.float64]]) -> Notes:
        return self.metric.notes(tallies, self.labels or ("",)) if tallies else Notes()

    def exclusions(self) -> tuple[Exclusion, ...]:
        """Return what was left out of all blocks, by system."""
        told = [
            replace(e, where=f"{name}: {e.where}", system=name)
            for name, tallies in self.tallies.items()
            for e in self._notes(tallies).exclusions
        ]
        return (*self.left_out.exclusions(), *told)

    def _begin(self, rows: Rows, clustered: bool) -> None:
        self.labels, self.unit = rows.labels, rows.unit
        width = len(self.statistic.columns)
        terms = self.statistic.terms_of(np.zeros((1, width))).shape[1] + 1
        groups = 0 if self.groups is None else len(self.groups.names)
        samples = len(self.systems) * len(self.labels)
        pairs = len(self._pairs())
        every = 1 + 2 * groups
        stored = len(self._stored(np.zeros((0, groups), dtype=np.bool_)))
        floats = {
            "sums": (BINS, stored, samples, terms),
            "columns": (every, samples, width),
            "pairs": (BINS, 1, 2 * pairs, terms),
            "squares": (every, samples),
            "moments": (every, samples, 4, 4),
        }
        counts = {
            "n": (every, samples),
            "rows": (every, samples),
            "either": (groups, samples),
            "above": (every, samples, width),
            "with_event": (every, samples),
            "without": (every, samples),
            "pairs_n": (pairs,),
            "pairs_above": (1, 2 * pairs, width),
            "dropped": (pairs,),
            "overlap": (groups, groups),
            "clustered": (1,),
        }
        told = [*rows.context, *([] if rows.events is None else [EVENTS])]
        floats |= {_BESIDE + name: (every, samples) for name in told}
        self.arrays = {name: np.zeros(shape) for name, shape in floats.items()}
        self.arrays |= {name: np.zeros(shape, np.int64) for name, shape in counts.items()}
        self.arrays["clustered"][:] = clustered

    def _pairs(self) -> list[tuple[int, int, int]]:
        """Pairs of systems with each label, where systems are compared."""
        return list(self.layout.pairs()) if self.metric.comparisons.systems else []

    def _stored(self, member: Flags) -> list[Ints]:
        """Return the units in each sum: everyone, each group, everyone known in an attribute."""
        columns = [np.arange(len(member))]
        columns += [np.flatnonzero(column) for column in member.T]
        for same in self.layout.shared_out().values():
            columns.append(np.flatnonzero(member[:, same].any(axis=1)))
        return columns

    def _values(self, rows: Mapping[str, Rows], units: Vocabulary) -> tuple[Floats, Flags]:
        """Return units x samples x columns, and units x samples: whether all columns are known."""
        columns = self.statistic.columns
        values = [aligned(rows[name], units, columns) for name in self.systems]
        flat = np.concatenate(values, axis=1)
        return flat, np.asarray(~np.isnan(flat).any(axis=2))

    def _terms(self, values: Floats, known: Flags) -> Floats:
        """Return units x samples x (terms, weight); zero where a unit does not contribute."""
        if self.statistic.terms is None:
            whole = np.where(known[:, :, None], values, 0.0)
            return np.concatenate([whole, known[:, :, None]], axis=2)
        width = self.statistic.terms_of(np.zeros((1, values.shape[2]))).shape[1]
        result = np.zeros((*known.shape, width + 1))
        result[known, :width] = self.statistic.terms_of(values[known])
        result[known, width] = 1.0
        return result

    def _sum(self, name: str, bins: Ints, columns: list[Ints], terms: Floats) -> None:
        sums = self.arrays[name]
        flat = sums.reshape(sums.shape[0], sums.shape[1], -1)
        add_to_bins(flat, bins, columns, terms.reshape(len(terms), -1))

    def _count(self, member: Flags, values: Floats, known: Flags, begin: Ints | None) -> None:
        columns = self.layout.columns(member)
        groups = member.shape[1]
        wide = columns.T.astype(np.float64)
        counted = known.astype(np.float64)
        rows = np.rint(wide @ counted).astype(np.int64)
        self.arrays["rows"] += rows
        filled = np.where(known[:, :, None], values, 0.0)
        shape = (columns.shape[1], *filled.shape[1:])
        self.arrays["columns"] += (wide @ filled.reshape(len(filled), -1)).reshape(shape)
        above = (filled > 0).astype(np.float64)
        counts = (wide @ above.reshape(len(above), -1)).reshape(shape)
        self.arrays["above"] += np.rint(counts).astype(np.int64)
        if self.metric.of == "moderator":
            self._count_events(columns, filled[:, :, 0], known, begin)
        others = [self.layout.other(g) for g in range(groups)]
        if begin is None:
            self.arrays["n"] += rows
            for g in range(groups):
                whole = others[g] == 0
                self.arrays["either"][g] += rows[0] if whole else rows[1 + g] + rows[others[g]]
            return
        for c in range(columns.shape[1]):
            self.arrays["n"][c] += distinct(begin, known & columns[:, [c]])
        for g in range(groups):
            both = columns[:, [1 + g]] | columns[:, [others[g]]]
            self.arrays["either"][g] += distinct(begin, known & both)

    def _count_events(self, columns: Flags, y: Floats, known: Flags, begin: Ints | None) -> None:
        """Add what tests of rates need: events by cluster."""
        wide = columns.T.astype(np.float64)
        self.arrays["squares"] += wide @ y**2
        flags = {"with_event": known & (y > 0), "without": known & (y < 1)}
        if begin is None:
            for name, some in flags.items():
                self.arrays[name] += np.rint(wide @ some.astype(np.float64)).astype(np.int64)
            return

        def by_cluster(values: Floats) -> Floats:
            return np.asarray(np.add.reduceat(values, begin, axis=0))

        whole = [by_cluster(y), by_cluster(known.astype(np.float64))]
        for c in range(columns.shape[1]):
            inside = columns[:, [c]]
            for name, some in flags.items():
                self.arrays[name][c] += distinct(begin, some & inside)
            part = [by_cluster(y * inside), by_cluster((known & inside).astype(np.float64))]
            held = np.stack([*part, *whole], axis=2)
            self.arrays["moments"][c] += np.einsum("csi,csj->sij", held, held)

    def _sum_pairs(self, bins: Ints, values: Floats, known: Flags, begin: Ints | None) -> None:
        pairs, layout = self._pairs(), self.layout
        if not pairs:
            return
        ones = [layout.sample(one, label) for one, _, label in pairs]
        others = [layout.sample(other, label) for _, other, label in pairs]
        both = known[:, ones] & known[:, others]
        self.arrays["dropped"] += np.count_nonzero(known[:, ones] ^ known[:, others], axis=0)
        alone = np.count_nonzero(both, axis=0) if begin is None else distinct(begin, both)
        self.arrays["pairs_n"] += alone
        filled = [np.where(both[:, :, None], values[:, some], 0.0) for some in (ones, others)]
        above = np.count_nonzero(np.concatenate(filled, axis=1) > 0, axis=0)
        self.arrays["pairs_above"][0] += above
        sides = [self._terms(values[:, some], both) for some in (ones, others)]
        self._sum("pairs", bins, [np.arange(len(bins))], np.concatenate(sides, axis=1))

    def merge(self, other: Self) -> None:
        """Add what was measured on other blocks."""
        if not other.arrays:
            return
        if not self.arrays:
            self.labels, self.unit = other.labels, other.unit
            self.arrays = {name: values.copy() for name, values in other.arrays.items()}
        elif self.labels != other.labels:
            raise ValueError(f"{self.metric.title}: blocks differ in their labels")
        else:
            for name, values in other.arrays.items():
                self.arrays[name] += values if name != "clustered" else 0
        for system, tallies in other.tallies.items():
            known = self.tallies[system]
            for tally, values in tallies.items():
                known[tally] = known[tally] + values if tally in known else values
        for system, depth in other.depths.items():
            mine = self.depths.get(system)
            self.depths[system] = depth if mine is None else mine.merged(depth)
        self.left_out.merge(other.left_out)

    def to_bytes(self) -> bytes:
        """Return the state for another process; `restore` reads it."""
        arrays = {f"a/{name}": values for name, values in self.arrays.items()}
        for system, tallies in self.tallies.items():
            arrays |= {f"t/{system}/{name}": values for name, values in tallies.items()}
        told = {
            "labels": self.labels,
            "unit": self.unit,
            "depths": {name: asdict(depth) for name, depth in self.depths.items()},
            "left_out": [[list(about), counts] for about, counts in self.left_out.counts.items()],
            "asked": [self.left_out.asked, self.left_out.blocks],
        }
        arrays["told"] = np.frombuffer(json.dumps(told).encode(), dtype=np.uint8)
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        return buffer.getvalue()

    def restore(self, state: bytes) -> None:
        """Become the state that `to_bytes` returned, of the same metric, systems and groups."""
        with np.load(io.BytesIO(state), allow_pickle=False) as stored:
            told = json.loads(stored["told"].tobytes())
            self.labels, self.unit = tuple(told["labels"]), told["unit"]
            self.depths = {name: ListDepth(**depth) for name, depth in told["depths"].items()}
            counts = {tuple(about): counts for about, counts in told["left_out"]}
            self.left_out = LeftOut(counts, *told["asked"])
            self.arrays, self.tallies = {}, {name: {} for name in self.systems}
            for key in stored.files:
                kind, _, name = key.partition("/")
                if kind == "a":
                    self.arrays[name] = stored[key]
                elif kind == "t":
                    system, _, tally = name.rpartition("/")
                    self.tallies[system][tally] = stored[key]

    def estimates(self, settings: Settings) -> list[Estimate]:
        """Return every estimate of the metric, from all blocks that were added."""
        rows = {name: self._told(name) for name in self.systems}
        if not self.arrays or not self.arrays["rows"].any():
            return nothing_measured(self.metric, rows, self.layout)
        seed = int(generator(settings.seed, "bins").integers(2**63))

        def draw(sums: Floats, n: Ints) -> BinnedReplicates:
            return resample_bins(sums, self.statistic, n, replicates=settings.replicates, seed=seed)

        drawn = draw(self._all_sums(), self.arrays["n"])
        drawn.column_sums, drawn.above_zero = self.arrays["columns"], self.arrays["above"]
        for g, either in enumerate(self.arrays["either"]):
            drawn.either[1 + g, self.layout.other(g)] = either
        if self.metric.of == "moderator":
            arrays = self.arrays
            alone = arrays["n"][0] == arrays["rows"][0]
            drawn.rates = RateSums(
                arrays["columns"][:, :, 0],
                arrays["squares"],
                arrays["rows"],
                arrays["with_event"],
                arrays["without"],
                arrays["moments"],
                alone,
            )
        maker = MetricEstimator(
            self.metric,
            self.unit,
            rows,
            drawn,
            self.layout,
            settings,
            self._shared(draw),
            (drawn.point,),
            self._beside(),
        )
        return estimates_of(maker, self.groups, self.arrays["overlap"])

    def _beside(self) -> Beside:
        """Return what rows tell beside the number."""
        sums = {
            name.removeprefix(_BESIDE): values
            for name, values in self.arrays.items()
            if name.startswith(_BESIDE)
        }
        return Beside.of(sums, self.arrays["rows"].astype(np.float64))

    def _all_sums(self) -> Floats:
        """Return the sums of everyone, of each group, and of those outside each group."""
        sums = self.arrays["sums"]
        if self.groups is None or not self.groups.names:
            return sums
        groups = len(self.groups.names)
        attributes = list(self.layout.shared_out())
        parts = [sums[:, : 1 + groups]]
        for g in range(groups):
            whole = sums[:, 0]
            if attributes:
                whole = sums[:, 1 + groups + attributes.index(self.groups.attributes[g])]
            inside = sums[:, 1 + g]
            rest = whole - inside
            rest[np.abs(rest) <= _ROUNDING * (np.abs(whole) + np.abs(inside))] = 0.0
            parts.append(rest[:, None])
        return np.concatenate(parts, axis=1)

    def _shared(self, draw: Any) -> SharedUnits:
        """Return pairs of systems on the units that both measured, where they differ."""
        dropped = self.arrays["dropped"]
        if not dropped.any():
            return SharedUnits()
        n = np.concatenate([self.arrays["pairs_n"], self.arrays["pairs_n"]])[None]
        cut = {pair: i for i, pair in enumerate(self._pairs()) if dropped[i]}
        places = {pair: (i, len(dropped) + i) for pair, i in cut.items()}
        lost = {pair: int(dropped[i]) for pair, i in cut.items()}
        drawn = draw(self.arrays["pairs"], n)
        drawn.above_zero = self.arrays["pairs_above"]
        return SharedUnits(drawn, places, lost)

    def _told(self, system: str) -> Rows:
        """Return what must be said beside the numbers of a system, as rows without units."""
        labels = self.labels or ("",)
        told = self._notes(self.tallies[system])
        empty = {name: np.empty((0, len(labels))) for name in self.statistic.columns}
        notes, details = dict(told.by_label), dict(told.details)
        rows = Rows(self.unit, np.empty(0), empty, labels, notes=notes, details=details)
        depth = self.depths.get(system)
        if depth is None or self.metric.shallow_lists == "unread":
            return rows
        return told_depth(self.metric, rows, depth)


def first_of(keys: NDArray[np.uint64]) -> Ints:
    """Return where each run of equal keys begins, in sorted keys.

    Examples
    --------
    >>> first_of(np.array([3, 3, 7, 9, 9])).tolist()
    [0, 2, 3]
    """
    return np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))


def distinct(begin: Ints, flags: Flags) -> Ints:
    """Return, for each column of flags, how many clusters have one set; they begin at `begin`."""
    present = np.logical_or.reduceat(flags, begin, axis=0)
    return np.asarray(np.count_nonzero(present, axis=0), dtype=np.int64)
