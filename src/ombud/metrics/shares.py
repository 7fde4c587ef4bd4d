"""How much of a list, and of a history, carries a label."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.interactions import Interactions
from ombud.data.labels import Labels, LabelState
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics.base import ListMetric, Notes, Outputs, Rows
from ombud.metrics.denominators import (
    DECLARED,
    coverage_of,
    label_details,
    label_tallies,
    labeled_items,
    share_of_items,
    users_without_labels,
)
from ombud.metrics.engine.label_uncertainty import (
    DRAWN,
    LABEL_ERRORS,
    TERCILES,
    error_cells,
    over_label_draws,
    terciles,
)
from ombud.metrics.history import count_items, history_matrix, places, table_width
from ombud.registry import metric
from ombud.stats.estimate import Estimate, TippingPoint
from ombud.stats.statistics import Mean
from ombud.stats.tipping import gap_tipping

# Shares of lists and histories that differ by less are the same share.
_ROUNDING = 1e-12

Unknown = Literal["exclude", "no", "yes"]
"""How items with an unknown or disputed label count: not at all, as *no*, or as *yes*."""


def label_share(
    lists: sparse.csr_array, states: NDArray[np.int8] | NDArray[np.float32], unknown: Unknown
) -> NDArray[np.float64]:
    """Return, for each list and label, the share of the list's items that carry the label.

    Parameters
    ----------
    lists
        Lists x items; whatever is stored counts as one item.
    states
        Items x labels, values of `LabelState`; or how far each item carries each label, NaN where
        that is not known.
    unknown
        How items that are neither YES nor NO count.

    Returns
    -------
    Lists x labels; NaN where no item counts.

    Examples
    --------
    >>> lists = sparse.csr_array(np.array([[1, 1, 1, 0], [0, 0, 0, 1]], dtype=np.float32))
    >>> states = np.array([[1], [0], [-2], [-2]], dtype=np.int8)
    >>> label_share(lists, states, "exclude").ravel().tolist()
    [0.5, nan]
    >>> label_share(lists, states, "no").ravel().round(3).tolist()
    [0.333, 0.0]
    """
    return _shares([lists], unknown, states)[0][0]


def _shares(
    matrices: Sequence[sparse.csr_array],
    unknown: Unknown,
    *states: NDArray[np.int8] | NDArray[np.float32],
) -> list[tuple[NDArray[np.float64], NDArray[Any]]]:
    """Return for each matrix what `label_share` does, and how many items count.

    `states` may be in parts: those of the first items, those of the next ones.
    """
    labels, ends = states[0].shape[1], np.cumsum([len(part) for part in states])
    table = np.zeros((ends[-1], table_width(labels)), dtype=np.bool_)
    # Tables of all items and labels are the largest thing here: each is written in place.
    outs = np.split(table[:, :labels], ends[:-1])
    if states[0].dtype == np.float32:
        # NaN alone differs from itself.
        known = np.equal(states[0], states[0], out=outs[0])
        wanted = np.where(known, states[0], np.float32(unknown == "yes"))
        ones = [np.ones(lists.nnz, dtype=np.float32) for lists in matrices]
        carrying = [
            sparse.csr_array((data, lists.indices, lists.indptr), shape=lists.shape) @ wanted
            for data, lists in zip(ones, matrices, strict=True)
        ]
    else:
        # Plain numbers: numpy widens the states to 64 bits for a member of an enumeration.
        yes, no = LabelState.YES.value, LabelState.NO.value
        compare, state = (np.not_equal, no) if unknown == "yes" else (np.equal, yes)
        for part, out in zip(states, outs, strict=True):
            compare(part, state, out=out)
        carrying = [count_items(lists, table.view(np.uint8), labels) for lists in matrices]
        if unknown == "exclude":
            for part, out in zip(states, outs, strict=True):
                np.greater_equal(part, 0, out=out)
    result = []
    for lists, some in zip(matrices, carrying, strict=True):
        counted: NDArray[Any] = np.diff(lists.indptr)[:, None]
        if unknown == "exclude":
            counted = count_items(lists, table.view(np.uint8), labels)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = some.astype(np.float64) / counted
        result.append((share if counted.all() else np.where(counted > 0, share, np.nan), counted))
    return result


@dataclass(frozen=True)
class _Share(ListMetric):
    """What the three share metrics have in common."""

    k: int = 10
    unknown: Unknown = "exclude"

    registered_name: ClassVar[str]
    null: ClassVar[float | None] = None
    contrast: ClassVar[Literal["difference"]] = "difference"
    statistic: ClassVar[Mean] = Mean()
    shallow_lists: ClassVar[Literal["said", "unread"]] = "said"

    def block_fault(self, tables: Collection[str]) -> str:
        """Return why users cannot be measured in blocks; empty when they can."""
        return DRAWN if LABEL_ERRORS in tables else ""

    @property
    def possible(self) -> tuple[float, float]:
        """A share is 0 to 1."""
        return (0.0, 1.0)

    def notes(self, tallies: Mapping[str, NDArray[np.float64]], labels: tuple[str, ...]) -> Notes:
        """Return the denominators beside each number, why there is none, and who is excluded."""
        details = dict(zip(labels, label_details(tallies, len(labels)), strict=True))
        return Notes(details=details, exclusions=users_without_labels(tallies))

    @property
    def _how(self) -> str:
        return "" if self.unknown == "exclude" else f", unknown as {self.unknown}"


@metric("label-share")
@dataclass(frozen=True)
class LabelShare(_Share):
    r"""Share of recommended items that carry a label, averaged over users.

    .. math:: \frac{1}{|U|} \sum_u \frac{|\{i \in L_u^k : w \in i\}|}{|L_u^k|}

    - **Unit of resampling**: the user.
    - **Undefined**: when no user has a list with an item whose label is known.
    - **Does not capture**: rank within the list, how severe the content is, or whether the user
      wanted it; an average can hide users who are shown nothing else.

    Parameters
    ----------
    k
        How many places of each list count.
    unknown
        How items with an unknown or disputed label count: ``exclude`` (the share is among items
        whose label is known), as ``no``, or as ``yes``.

    References
    ----------
    Kovacs, Kazemian, Chee and Dean (2025), *Datasets for Navigating Sensitive Topics in
    Recommendation Systems*.
    """

    @property
    def title(self) -> str:
        """The name as printed."""
        return f"label share@{self.k}{self._how}"

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return the share of each label in each user's list."""
        return _measure(self, outputs, data, "list")


@metric("history-share")
@dataclass(frozen=True)
class HistoryShare(_Share):
    r"""Share of items in users' own histories that carry a label, averaged over users.

    .. math:: \frac{1}{|U|} \sum_u \frac{|\{i \in H_u : w \in i\}|}{|H_u|}

    - **Unit of resampling**: the user.
    - **Undefined**: when no user has a history with an item whose label is known.
    - **Does not capture**: whether the user liked what they met.

    Parameters
    ----------
    k
        Only for symmetry with the other share metrics: users with a list are measured.
    unknown
        How items with an unknown or disputed label count.
    """

    shallow_lists: ClassVar[Literal["unread"]] = "unread"

    @property
    def title(self) -> str:
        """The name as printed."""
        return f"history share{self._how}"

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return the share of each label in each user's history."""
        return _measure(self, outputs, data, "history")


@metric("share-gap")
@dataclass(frozen=True)
class ShareGap(_Share):
    r"""Share of a label in a user's list minus its share in the user's own history.

    .. math:: \frac{1}{|U|} \sum_u \left( \frac{|\{i \in L_u^k : w \in i\}|}{|L_u^k|}
              - \frac{|\{i \in H_u : w \in i\}|}{|H_u|} \right)

    Above 0, the lists hold more of the label than the same users' histories do.

    - **Unit of resampling**: the user (both shares move together).
    - **Undefined**: when no user has both shares.
    - **Does not capture**: why; a gap may come from popularity, from missing labels that differ
      between popular and rare items, or from the recommender.

    Parameters
    ----------
    k
        How many places of each list count.
    unknown
        How items with an unknown or disputed label count, in lists and in histories alike.
    """

    null: ClassVar[float | None] = 0.0
    sides: ClassVar[tuple[str, str]] = ("lists", "history")

    @property
    def title(self) -> str:
        """The name as printed."""
        return f"share gap@{self.k}{self._how}"

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return, for each user and label, list share minus history share."""
        return _measure(self, outputs, data, "gap")

    @property
    def possible(self) -> tuple[float, float]:
        """A difference of two shares is -1 to 1."""
        return (-1.0, 1.0)

    def tipping(
        self, estimate: Estimate, lowest: float, highest: float, *groups: Mapping[str, Any]
    ) -> TippingPoint | None:
        """Return what unlabeled items would have to be like to reverse a gap."""
        told = groups or (estimate.details,)
        known = [one for one in map(coverage_of, told) if one is not None]
        if len(known) < len(told) or estimate.interval is None:
            return None
        decides = told[0].get("unlabeled") != DECLARED
        return gap_tipping(
            estimate.interval, *known, lowest=lowest, highest=highest, decides=decides
        )


def _measure(
    asked: _Share, outputs: Outputs, data: Dataset, part: Literal["list", "history", "gap"]
) -> Rows:
    interactions, labels = _needs(data)
    if not isinstance(outputs, Recommendations):
        raise PlanError("a share metric measures recommendations, not a moderator's decisions")
    exclusions: list[Exclusion] = []
    outputs = outputs.top(asked.k)
    rows = interactions.users.codes(outputs.users)
    has_list, has_history = outputs.lengths > 0, rows >= 0
    has_history[has_history] = np.diff(interactions.matrix.indptr)[rows[has_history]] > 0
    kept = has_list & has_history
    for lacking, reason in (
        (~has_list, "no list was recommended"),
        (has_list & ~has_history, "a list, but no history to compare it with"),
    ):
        if lacking.any():
            count = int(np.count_nonzero(lacking))
            exclusions.append(Exclusion("users", "users", count, reason, len(outputs)))
    codes, others = outputs.in_catalogue(labels.items), len(labels.items)
    if labels.unlabeled == "unknown" and (codes == -2).any():
        known_items = interactions.items.codes(outputs.catalogue.arrow) >= 0
        nowhere = int(np.count_nonzero((codes == -2) & ~known_items[outputs.items]))
        if nowhere:
            reason = f"in no history and without labels (treated as unknown={asked.unknown!r})"
            exclusions.append(Exclusion("recommendations", "places", nowhere, reason))
    ids = np.asarray(outputs.users)[kept]
    matrices = {}
    if part != "history":
        codes = codes if kept.all() else codes[kept]
        matrices["list"] = places(codes, others, np.ones(codes.shape[1], dtype=np.float32))
    if part != "list":
        matrices["history"] = history_matrix(interactions, "all", rows[kept], labels.items)

    def shares_by(degrees: NDArray[np.float32], *sides: str) -> list[NDArray[np.float64]]:
        states = np.concatenate([degrees, np.full((1, degrees.shape[1]), np.nan, np.float32)])
        return [label_share(matrices[side], states, asked.unknown) for side in sides]

    def gap(shares: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        return shares[0] - shares[1] if part == "gap" else shares[0]

    shared = None
    if labels.errors is not None:
        shares, shared = over_label_draws(labels, ids, lambda some: gap(shares_by(some, *matrices)))
        sides: dict[str, NDArray[np.float64]] = {}
        if part == "gap":
            own, _ = over_label_draws(labels, ids, lambda some: shares_by(some, "history")[0])
            sides = {"history": own}
        tallies = label_tallies(labels, "no", ~np.isnan(shares), sides, {})
    else:
        states = (labels.states, labels.of_others[None])
        counts = _shares(list(matrices.values()), asked.unknown, *states)
        sides = {side: share for side, (share, _) in zip(matrices, counts, strict=True)}
        shares = gap(list(sides.values()))
        counted = {side: each for side, (_, each) in zip(matrices, counts, strict=True)}
        if asked.unknown != "exclude" or labels.unlabeled == "no" or labels.stated is not None:
            # What counts is not what the data labels.
            width, table = labeled_items(labels)
            counted = {side: count_items(each, table, width) for side, each in matrices.items()}
        known = {
            side: np.broadcast_to(share_of_items(matrices[side], each), shares.shape)
            for side, each in counted.items()
        }
        tallies = label_tallies(labels, asked.unknown, ~np.isnan(shares), sides, known)
        if asked.unknown == "exclude":
            shares = np.where(labels.some_no, shares, np.nan)
    context: dict[str, NDArray[np.float64]] = {}
    if labels.errors is not None:
        context, told = _by_exposure(labels, matrices, data, ids, part)
    if part == "gap":
        context |= {"lists": sides["history"] + shares, "history": sides["history"]}
        if labels.errors is None and not all((share == 1).all() for share in known.values()):
            context |= {f"labeled_{_WORDS[side]}": share for side, share in known.items()}
    noted = asked.notes(tallies, labels.names)
    details: Mapping[str, Mapping[str, Any]] = noted.details
    if labels.errors is not None:
        details = {n: {**details.get(n, {}), **told[k]} for k, n in enumerate(labels.names)}
    return Rows(
        unit="user",
        ids=ids,
        columns={"value": np.asarray(shares)},
        labels=labels.names,
        exclusions=(*exclusions, *noted.exclusions),
        details=details,
        shared=shared,
        tallies=tallies,
        context=context,
        events=np.abs(shares) > _ROUNDING if part == "gap" else None,
    )


def _by_exposure(
    labels: Labels,
    matrices: Mapping[str, sparse.csr_array],
    data: Dataset,
    ids: NDArray[Any],
    part: str,
) -> tuple[dict[str, NDArray[np.float64]], list[dict[str, Any]]]:
    """Return what each third of the items, by exposure, adds to shares; and the errors in it.

    The columns are, for each user and label, the share of items in a third that the system said
    yes to, and that it said anything of: in lists minus in histories, for a gap. They are followed
    by the errors for each label, by third and by group of users.
    """
    assert labels.errors is not None
    said = labels.errors.said
    shown = matrices.get("list", next(iter(matrices.values())))
    count = np.asarray(shown.astype(np.bool_).sum(axis=0), dtype=np.float64).ravel()[: len(said)]
    third = terciles(count)
    cells = {name: third == k for k, name in enumerate(TERCILES)}
    columns: dict[str, NDArray[np.float64]] = {}
    for side, matrix in matrices.items():
        sign = -1.0 if part == "gap" and side == "history" else 1.0
        known = np.zeros((matrix.shape[1], said.shape[1]))
        known[: len(said)] = said >= 0
        with np.errstate(invalid="ignore", divide="ignore"):
            for k in range(3):
                inside = known.copy()
                inside[: len(said)] *= cells[TERCILES[k]][:, None]
                inside[len(said) :] = 0
                yes = inside.copy()
                yes[: len(said)] *= said > 0
                total = matrix @ known
                for word, table in (("said", yes), ("items", inside)):
                    share = sign * (matrix @ table) / total
                    name = f"{word}_{k}"
                    columns[name] = columns[name] + share if name in columns else share
    errors = error_cells(labels, cells)
    groups: dict[str, NDArray[np.bool_]] = {}
    if data.users is not None:
        members = data.users.aligned(ids)
        for g, name in enumerate(data.users.names):
            groups[name] = (
                np.asarray(shown[members[:, g]].astype(np.bool_).sum(axis=0)).ravel()[: len(said)]
                > 0
            )
    by_group = error_cells(labels, groups)
    return columns, [
        {"label_errors": one} | ({"label_errors_by_group": other} if other else {})
        for one, other in zip(errors, by_group, strict=True)
    ]


_WORDS = {"list": "recommended", "history": "history"}


def _needs(data: Dataset) -> tuple[Interactions, Labels]:
    if data.interactions is None or data.labels is None:
        lacking = "interactions" if data.interactions is None else "labels"
        raise PlanError(f"share metrics need interactions and labels; the data has no {lacking}")
    return data.interactions, data.labels
