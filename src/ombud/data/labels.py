"""Which items carry which label: by votes or as applied, and unknown is a state of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import Literal, Self, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.data.exclusions import Exclusion
from ombud.data.faults import rows_where
from ombud.data.frames import Column, Frame, read_table, without_copies
from ombud.data.ids import Vocabulary
from ombud.data.label_errors import LabelErrors, Transport
from ombud.errors import DataError, PlanError
from ombud.taxonomy.model import refused_anywhere

# The sum of both sides must fit 32 bits.
_MOST_VOTES = 2**30
MEASURED = ("said", "validated_yes", "validated_no")
"""Columns of the measured errors of the system that gave the labels."""

Unlabeled = Literal["no", "unknown"]
"""What a pair of item and label means that no row mentions, for every item there is."""


class LabelState(IntEnum):
    """What is known about one label on one item."""

    UNKNOWN = -2
    DISPUTED = -1
    NO = 0
    YES = 1


@dataclass(frozen=True, eq=False)
class Labels:
    """Items x labels, each pair in one of four states, with the votes where there are votes.

    Build one with `from_votes` or `from_applied`.

    Parameters
    ----------
    items
        The item ids behind the rows.
    names
        The label of each column.
    states
        Items x labels, values of `LabelState`.
    yes, no
        Vote counts of the same shape, or None when labels were applied, not voted on.
    rule
        How states were decided, in words.
    exclusions
        What was left out while reading.
    errors
        For labels that a system gave (`ombud.systems.labelling`): how often it is right,
        as measured. Shares and amplification carry it into their intervals.
    unlabeled
        What a pair means that no row mentions: ``"unknown"``, or ``"no"``. It holds for every
        item, also for those of histories and lists that the label table does not have.
    stated
        Items x labels: whether the data itself states the pair, or `unlabeled` filled it in;
        None when every pair that is not UNKNOWN was stated.
    attributes
        Names among the labels that are groups of items: `unlabeled` says nothing of them.
    """

    items: Vocabulary
    names: tuple[str, ...]
    states: NDArray[np.int8]
    yes: NDArray[np.int32] | None = None
    no: NDArray[np.int32] | None = None
    rule: str = ""
    exclusions: tuple[Exclusion, ...] = field(default=())
    errors: LabelErrors | None = None
    unlabeled: Unlabeled = "unknown"
    stated: NDArray[np.bool_] | None = None
    attributes: frozenset[str] = frozenset()

    @classmethod
    def from_votes(
        cls,
        frame: Frame,
        *,
        threshold: float = 0.75,
        strict: bool = False,
        refused: tuple[str, ...] = (),
        source: str = "",
    ) -> Self:
        """Read vote totals: columns `item`, `label`, `yes`, `no`.

        A pair is YES when yes / (yes + no) reaches the threshold, NO when no / (yes + no) does,
        UNKNOWN without votes, DISPUTED otherwise.

        Parameters
        ----------
        frame
            The table.
        threshold
            Above one half, at most 1.
        strict
            Whether the share must exceed the threshold rather than reach it.
        refused
            Further labels whose rows are dropped and counted, never stored; those of
            `ombud.taxonomy.refused_anywhere` always are.
        source
            The table's name in messages.
        """
        _check_threshold(threshold)
        columns = [
            Column("item", "id"),
            Column("label", "text"),
            Column("yes", "count", low=0, high=_MOST_VOTES),
            Column("no", "count", low=0, high=_MOST_VOTES),
        ]
        table, exclusions = _read(frame, columns, refused, source)
        items, names, rows, places = _axes(table)
        shape = (len(items), len(names))
        yes, no = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        yes[rows, places] = table["yes"].to_numpy()
        no[rows, places] = table["no"].to_numpy()
        states, rule = vote_states(yes, no, threshold, strict)
        return cls(items, names, states, yes, no, rule, exclusions)

    @classmethod
    def from_applied(
        cls,
        frame: Frame,
        *,
        unlabeled: Unlabeled | None = None,
        absent: Unlabeled | None = None,
        refused: tuple[str, ...] = (),
        source: str = "",
    ) -> Self:
        """Read applied labels: columns `item`, `label` and optionally `present`.

        Parameters
        ----------
        frame
            One row for each applied label. A row whose `label` is missing names an item that was
            looked at and has none. With `present` (true/false), false is a known *no*.
        unlabeled
            What a pair without a row means: ``"unknown"`` (default), or ``"no"`` when every
            item was looked at for every label. ``"no"`` holds for every item of histories, lists
            and the item table, also for those without a row here.
        absent
            The older name of `unlabeled`.
        refused
            Further labels whose rows are dropped and counted, never stored; those of
            `ombud.taxonomy.refused_anywhere` always are.
        source
            The table's name in messages.
        """
        columns = [
            Column("item", "id"),
            Column("label", "text", nullable=True),
            Column("present", "flag", required=False, nullable=True),
        ]
        table, exclusions = _read(frame, columns, refused, source)
        if "present" in table.columns and (missing := table["present"].null_count()):
            table = table.filter(pl.col("present").is_not_null())
            reason = "they do not say whether the label applies, so it is unknown"
            every = len(table) + missing
            exclusions = (*exclusions, Exclusion("labels", "rows", missing, reason, every))
        items, names, rows, places = _axes(table)
        states = np.full((len(items), len(names)), LabelState.UNKNOWN, dtype=np.int8)
        named = places >= 0
        present = table["present"].to_numpy() if "present" in table.columns else np.ones(len(rows))
        states[rows[named], places[named]] = present[named].astype(np.int8)
        result = cls(items, names, states, None, None, "as applied", exclusions)
        return result.with_unlabeled(one_meaning(unlabeled, absent))

    @classmethod
    def from_states(cls, frame: Frame, *, rule: str = "as stored", source: str = "") -> Self:
        """Read what `to_frame` wrote: `item`, `label`, `state`; votes; measured errors."""
        columns = [
            Column("item", "id"),
            Column("label", "text"),
            Column("state", "number", low=min(LabelState), high=max(LabelState)),
            Column("yes", "count", required=False, low=0, high=_MOST_VOTES),
            Column("no", "count", required=False, low=0, high=_MOST_VOTES),
            *(Column(name, "count", required=False, low=0, high=_MOST_VOTES) for name in MEASURED),
            Column("transport", "category", required=False),
            Column("checked", "number", required=False, low=-1, high=1),
        ]
        table, exclusions = _read(frame, columns, (), source)
        items, names, rows, places = _axes(table)
        shape = (len(items), len(names))
        states = np.full(shape, LabelState.UNKNOWN, dtype=np.int8)
        states[rows, places] = table["state"].to_numpy()
        votes: dict[str, NDArray[np.int32]] = {}
        for name in ("yes", "no"):
            if name in table.columns:
                votes[name] = np.zeros(shape, np.int32)
                votes[name][rows, places] = table[name].to_numpy()
        errors = None
        if set(MEASURED) <= set(table.columns) and table.height:
            checked = [name for name in ("checked",) if name in table.columns]
            stored = {name: table[name].to_numpy() for name in (*MEASURED, *checked)}
            errors = LabelErrors.from_columns(shape, rows, places, stored, _transport(table))
            texts = int((errors.yes + errors.no).sum())
            rule += f"; a system gave them, its errors were measured on {texts:,} texts"
            if errors.transport == "calibration":
                rule += " and are not corrected (the correction by calibration is withdrawn)"
        yes, no = votes.get("yes"), votes.get("no")
        return cls(items, names, states, yes, no, rule, exclusions, errors)

    def with_unlabeled(self, unlabeled: Unlabeled) -> Self:
        """Return them with a declared meaning of the pairs that no row mentions.

        Examples
        --------
        >>> labels = Labels.from_applied({"item": ["a", "b"], "label": ["blood", "gun"]})
        >>> labels.with_unlabeled("no").states.tolist()
        [[1, 0], [0, 1]]
        """
        rule = "; ".join(filter(None, [self.rule, f"unlabeled counts as {unlabeled}"]))
        if unlabeled == "unknown":
            return replace(self, rule=rule)
        if self.errors is not None:
            fault = 'a system labeled every item, so unlabeled = "no" has no meaning; remove it'
            raise DataError("labels", [fault])
        # Where rows only say yes, an item with a row was looked at for every label.
        stated = self.states != LabelState.UNKNOWN
        stated |= not (self.states[stated] != LabelState.YES).any()
        return replace(self.looked_at(), rule=rule, unlabeled="no", stated=stated)

    def looked_at(self) -> Self:
        """Return them with *no* for every unknown pair of an item that has a row."""
        filled = np.where(self.states == LabelState.UNKNOWN, np.int8(LabelState.NO), self.states)
        return replace(self, states=filled)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Items x labels: whether the state is YES or NO."""
        return self.states >= 0

    @property
    def padded(self) -> NDArray[np.int8]:
        """The states, and behind the last item one row for every item that has none here."""
        return np.concatenate([self.states, self.of_others[None]])

    @property
    def of_others(self) -> NDArray[np.int8]:
        """The states of every item that has none here: NO where the data declares so."""
        declared = [self.unlabeled == "no" and name not in self.attributes for name in self.names]
        return np.where(declared, np.int8(LabelState.NO), np.int8(LabelState.UNKNOWN))

    @cached_property
    def some_no(self) -> NDArray[np.bool_]:
        """Which labels some item is known not to carry."""
        others: NDArray[np.bool_] = self.of_others == LabelState.NO
        return _occurring(self.states, LabelState.NO) | others

    @cached_property
    def some_disputed(self) -> NDArray[np.bool_]:
        """Which labels are disputed on some item."""
        return _occurring(self.states, LabelState.DISPUTED)

    @property
    def as_stated(self) -> NDArray[np.int8]:
        """The same without what `unlabeled` declares, for bounds and for what people voted on."""
        if self.stated is None:
            return self.padded
        states = np.where(self.stated, self.states, np.int8(LabelState.UNKNOWN))
        row = np.full((1, len(self.names)), LabelState.UNKNOWN, dtype=np.int8)
        return np.concatenate([states, row])

    @property
    def labeled(self) -> NDArray[np.bool_]:
        """Of the same shape as `padded`: whether the data itself states yes or no."""
        known = self.known if self.stated is None else self.known & self.stated
        return np.concatenate([known, np.zeros((1, len(self.names)), dtype=np.bool_)])

    def counts(self) -> pl.DataFrame:
        """Return, for each label, how many items are in each state."""
        return pl.DataFrame(
            {"label": list(self.names)}
            | {
                state.name.lower(): np.count_nonzero(self.states == state, axis=0)
                for state in reversed(LabelState)
            }
        )

    def probability(self, prior: tuple[float, float] = (0.5, 0.5)) -> NDArray[np.float64]:
        """Return the posterior mean of "has the label" for each pair, from a Beta prior.

        Without votes, a known state is 0 or 1, and an unknown one is NaN; where a system gave the
        labels and its errors were measured, it is the probability that they give.
        """
        if self.errors is not None:
            return self.errors.chances()
        if self.yes is None or self.no is None:
            return np.where(self.known, self.states, np.nan).astype(np.float64)
        a, b = prior
        return np.asarray((self.yes + a) / (self.yes + self.no + a + b), dtype=np.float64)

    def aligned(self, items: Vocabulary) -> NDArray[np.int8]:
        """Return the states for the items of another vocabulary.

        Items that have no row here are UNKNOWN, or NO where `unlabeled` says so.
        """
        return self.padded[self.items.codes(items.arrow)]  # -1 is the row behind the last

    def select(self, names: tuple[str, ...]) -> Self:
        """Return only some labels, in the order given."""
        missing = sorted(set(names) - set(self.names))
        if missing:
            raise DataError("labels", [f"there is no label {name!r}" for name in missing])
        keep = [self.names.index(name) for name in names]
        yes, no = (None if v is None else v[:, keep] for v in (self.yes, self.no))
        errors = None if self.errors is None else self.errors.select(keep)
        stated = None if self.stated is None else self.stated[:, keep]
        return replace(
            self,
            names=names,
            states=self.states[:, keep],
            yes=yes,
            no=no,
            errors=errors,
            stated=stated,
        )

    def rolled_up(self, parents: Mapping[str, str]) -> Self:
        """Return the labels gathered under their parents.

        A parent applies where any of its labels does; it does not where all of them are known not
        to; elsewhere it is disputed if none is unknown, and unknown otherwise. Labels without a
        parent stay. Votes were about the labels, and are left behind.

        Parameters
        ----------
        parents
            The parent of each label, as `ombud.taxonomy.Taxonomy.to_parents` returns.

        Examples
        --------
        >>> rows = {"item": ["a", "b"], "label": ["blood", "gun"], "present": [True, False]}
        >>> labels = Labels.from_applied(rows)
        >>> both = labels.rolled_up({"blood": "violence", "gun": "violence"})
        >>> both.names, both.states.tolist()
        (('violence',), [[1], [-2]])
        """
        if self.errors is not None:
            raise DataError("labels", ["labels with measured errors cannot be rolled up"])
        of = [parents.get(name, name) for name in self.names]
        names = tuple(dict.fromkeys(of))
        states = np.empty((len(self.items), len(names)), dtype=np.int8)
        for place, parent in enumerate(names):
            part = self.states[:, [index for index, name in enumerate(of) if name == parent]]
            # The lowest state that is not *yes*: unknown before disputed before no.
            states[:, place] = np.where((part == LabelState.YES).any(axis=1), 1, part.min(axis=1))
        rule = f"{self.rule}; rolled up to parents" if self.rule else "rolled up to parents"
        rolled = type(self)(self.items, names, states, None, None, rule, self.exclusions)
        if self.stated is None:
            return replace(rolled, unlabeled=self.unlabeled)
        parts = [[index for index, name in enumerate(of) if name == parent] for parent in names]
        stated = np.stack([self.stated[:, part].all(axis=1) for part in parts], axis=1)
        stated |= states == LabelState.YES
        return replace(rolled, unlabeled=self.unlabeled, stated=stated)

    def to_wide(self) -> pl.DataFrame:
        """Return one row per item and a column per label: 1 yes, 0 no, missing where not known.

        This is the form in which label tables are often published.

        Examples
        --------
        >>> rows = {"item": ["a", "b"], "label": ["blood", "gun"], "present": [True, False]}
        >>> Labels.from_applied(rows).to_wide().rows()
        [('a', 1, None), ('b', None, 0)]
        """
        known = {
            name: pl.Series(self.states[:, place]).replace_strict(
                {0: 0, 1: 1}, default=None, return_dtype=pl.Int8
            )
            for place, name in enumerate(self.names)
        }
        first = "item" if "item" not in self.names else "item id"
        return pl.DataFrame({first: self.items.ids, **known})

    def to_frame(self) -> pl.DataFrame:
        """Return one row per pair that the data states: `item`, `label`, `state`, and votes."""
        rows, places = np.nonzero(self.rows_to_store())
        columns = {
            "item": self.items.take(rows),
            "label": np.array(self.names, dtype=object)[places],
            "state": self.states[rows, places],
        }
        if self.yes is not None and self.no is not None:
            columns |= {"yes": self.yes[rows, places], "no": self.no[rows, places]}
        if self.errors is not None:
            columns |= self.errors.columns(rows, places)
            columns["transport"] = np.full(len(rows), self.errors.transport, dtype=object)
        return pl.DataFrame(columns)

    def rows_to_store(self, part: slice = slice(None)) -> NDArray[np.bool_]:
        """Return which pairs of some items are stored: those that `unlabeled` does not give."""
        known: NDArray[np.bool_] = self.states[part] != LabelState.UNKNOWN
        return known if self.stated is None else known & self.stated[part]

    def __repr__(self) -> str:
        return f"Labels({len(self.names)} labels, {len(self.items):,} items; {self.rule})"


def _occurring(states: NDArray[np.int8], state: LabelState) -> NDArray[np.bool_]:
    """Return which columns hold a state."""
    # The plain number: numpy widens the states to 64 bits for a member of an enumeration.
    held = states == state.value
    # Sixteen rows as one: numpy reduces a few long rows several times faster than many short ones.
    rows, width = len(held) // 16, held.shape[1]
    ends = held[: rows * 16].reshape(rows, 16 * width).any(axis=0).reshape(16, width)
    return np.asarray(ends.any(axis=0) | held[rows * 16 :].any(axis=0))


def one_meaning(unlabeled: Unlabeled | None, absent: Unlabeled | None) -> Unlabeled:
    """Return what unlabeled means, of the name and its older name.

    Examples
    --------
    >>> one_meaning(None, "no"), one_meaning(None, None)
    ('no', 'unknown')
    """
    given = {word for word in (unlabeled, absent) if word is not None}
    if len(given) > 1:
        raise PlanError(
            f"unlabeled is {unlabeled!r}, and absent, its older name, is {absent!r}; remove absent"
        )
    if wrong := given - {"no", "unknown"}:
        raise PlanError(f'unlabeled is {wrong.pop()!r}; it is "no" or "unknown"')
    return "no" if "no" in given else "unknown"


def vote_states(
    yes: NDArray[np.int32], no: NDArray[np.int32], threshold: float = 0.75, strict: bool = False
) -> tuple[NDArray[np.int8], str]:
    """Return the state of each pair of an item and a label by its votes, and the rule in words.

    `threshold` and `strict` are as in `Labels.from_votes`.

    Examples
    --------
    >>> import numpy as np
    >>> states, rule = vote_states(np.array([3, 3, 0]), np.array([1, 2, 0]))
    >>> states.tolist(), rule
    ([1, -1, -2], 'yes or no when at least 75% of votes agree')
    """
    _check_threshold(threshold)
    total = yes + no
    states = np.full(yes.shape, LabelState.DISPUTED, dtype=np.int8)
    states[total == 0] = LabelState.UNKNOWN
    # Products instead of quotients: 3 of 4 votes is exactly 75%.
    reaches = np.greater if strict else np.greater_equal
    states[(total > 0) & reaches(no, threshold * total)] = LabelState.NO
    states[(total > 0) & reaches(yes, threshold * total)] = LabelState.YES
    text = "more than" if strict else "at least"
    return states, f"yes or no when {text} {threshold:.0%} of votes agree"


def _transport(table: pl.DataFrame) -> Transport:
    kinds = set(table["transport"].to_list()) if "transport" in table.columns else {"calibration"}
    for kind in get_args(Transport):
        if kinds == {kind}:
            transport: Transport = kind
            return transport
    raise DataError("labels", ["column 'transport' is not calibration or error-rates throughout"])


def _check_threshold(threshold: float) -> None:
    if not 0.5 < threshold <= 1:
        raise PlanError(f"threshold is {threshold}; it must be above 0.5 and at most 1")


def _read(
    frame: Frame, columns: list[Column], refused: tuple[str, ...], source: str
) -> tuple[pl.DataFrame, tuple[Exclusion, ...]]:
    name = source or (str(frame) if isinstance(frame, str) else "labels")
    table = read_table(frame, columns, source)
    exclusions: tuple[Exclusion, ...] = ()
    result = table["label"].drop_nulls().unique().to_list()
    dropped = [label for label in result if label in refused or refused_anywhere(label)]
    if dropped:
        kept = table.filter(~pl.col("label").is_in(dropped).fill_null(False))
        if kept.height < table.height:
            reason = "labels that ombud refuses to store"
            gone = table.height - kept.height
            exclusions = (Exclusion("labels", "rows", gone, reason, table.height),)
        table = kept
    if not {"yes", "no"} & set(table.columns):  # rows of votes may be those of several people
        table, copies = without_copies(table, "labels")
        exclusions = (*exclusions, *copies)
    if rows := rows_where(table, ~pl.struct("item", "label").is_first_distinct()):
        raise DataError(name, [f"the same item and label again in {rows}; keep one row for each"])
    if table["label"].null_count() == table.height:
        raise DataError(name, ["no row names a label"])
    # An estimate without a label is one over all of them.
    if rows := rows_where(table, pl.col("label").str.strip_chars() == ""):
        raise DataError(name, [f"column 'label' is an empty word in {rows}"])
    return table, exclusions


def _axes(
    table: pl.DataFrame,
) -> tuple[Vocabulary, tuple[str, ...], NDArray[np.int32], NDArray[np.int32]]:
    items, rows = Vocabulary.encode(table["item"].to_arrow())
    names = Vocabulary(table["label"].drop_nulls().unique().sort().to_arrow())
    return items, tuple(names.ids.tolist()), rows, names.codes(table["label"].to_arrow())
