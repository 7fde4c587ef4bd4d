"""Avoid lists: what a user named is not shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ombud.data.avoid_lists import Avoided
from ombud.data.exclusions import Exclusion
from ombud.data.ids import Ids
from ombud.data.labels import Labels
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.registry import recommender
from ombud.systems.base import Recommender
from ombud.systems.rerankers.base import Reranker

AVOID_LIST = "avoid list"
"""Where the exclusions say that lists were shortened or emptied."""

UnknownItems: TypeAlias = Literal["allow", "demote", "remove"]
"""What happens to items whose avoided label is unknown or disputed."""


def avoid(
    lists: Recommendations,
    labels: Labels,
    avoided: Avoided,
    *,
    unknown: UnknownItems = "allow",
    n: int | None = None,
) -> Recommendations:
    """Return the lists without items that are known to carry a label their user avoids.

    Parameters
    ----------
    lists
        Longer lists than wanted, so that there is something to fill up with.
    labels
        Labels of the items.
    avoided
        Who avoids what.
    unknown
        Items whose avoided label is unknown or disputed: ``allow`` leaves them where they are,
        ``demote`` puts them, in their order, after everything known to be free of it, and
        ``remove`` takes them out.
    n
        The length to cut to; default, that of the lists.

    Examples
    --------
    >>> lists = Recommendations.from_frame({"user": ["u"] * 3, "item": ["a", "b", "c"]})
    >>> labels = Labels.from_applied(
    ...     {"item": ["a", "c"], "label": ["blood", "blood"], "present": [True, False]})
    >>> kept = avoid(lists, labels, Avoided.of(everyone=["blood"]), unknown="demote")
    >>> kept.to_frame()["item"].to_list()
    ['c', 'b']
    """
    if unknown not in get_args(UnknownItems):
        raise PlanError(f"unknown is {unknown!r}; one of {', '.join(get_args(UnknownItems))}")
    result, open_ = avoided.judge(lists, labels)
    rank = np.zeros(lists.items.shape, dtype=np.int8)
    if unknown != "allow":
        rank[open_] = 1 if unknown == "demote" else 2
    rank[result | (lists.items < 0)] = 2
    order = np.argsort(rank, axis=1, kind="stable")[:, :n]
    gone = np.take_along_axis(rank, order, axis=1) == 2
    items = np.where(gone, np.int32(-1), np.take_along_axis(lists.items, order, axis=1))
    scores = None
    if lists.scores is not None:
        moved = np.take_along_axis(lists.scores, order, axis=1)
        scores = np.where(gone, np.float32("nan"), moved)
    return Recommendations(lists.users, items, lists.catalogue, scores, lists.exclusions)


@recommender("avoid-list")
class AvoidList(Reranker):
    """A recommender that does not show what its users avoid, and keeps its lists full.

    It asks the inner recommender for twice as many items as are missing, until every list is
    full, the inner recommender has no more to give, or `most` is reached; a list can then be
    shorter, or empty, and the exclusions of the answer count such lists. Only labels that are
    known can be kept out: see `unknown`.

    Parameters
    ----------
    inner
        The recommender; or, as a plan has it, its `type` and arguments.
    labels
        Labels that nobody is to be shown.
    by_user
        For each user, the labels they avoid.
    path
        A file with `user` and `label`, instead of `by_user`.
    unknown
        What happens to items whose avoided label is unknown: ``allow``, ``demote`` or ``remove``.
    most
        The inner recommender is asked for at most this many times the length of the list.
    name
        The system's name in the report.
    """

    def __init__(
        self,
        inner: Recommender | Mapping[str, Any],
        labels: Sequence[str] = (),
        by_user: Mapping[object, Sequence[str]] | None = None,
        path: Path | str | None = None,
        unknown: UnknownItems = "allow",
        most: int = 20,
        name: str = "",
    ) -> None:
        super().__init__(inner, name)
        if not labels and not by_user and path is None:
            raise PlanError("an avoid list names nothing; give labels, by_user or path")
        if by_user and path is not None:
            raise PlanError("an avoid list has by_user and path; give one of them")
        if unknown not in get_args(UnknownItems):
            raise PlanError(f"unknown is {unknown!r}; one of {', '.join(get_args(UnknownItems))}")
        if most < 1:
            raise PlanError(f"most is {most}; at least 1 is needed")
        if path is not None:
            self.avoided = Avoided.from_frame(str(path), everyone=labels)
        else:
            self.avoided = Avoided.of(by_user, labels)
        self.unknown: UnknownItems = unknown
        self.most = most

    def recommend(self, users: Ids, n: int, exclude_seen: bool = True) -> Recommendations:
        """Return the n best items that each user does not avoid."""
        labels = self._data().labels
        assert labels is not None  # bind has checked
        left: NDArray[Any] = np.asarray(users)
        size, parts = n, []
        first: Recommendations | None = None
        capped: list[NDArray[Any]] = []
        while len(left):
            asked = self.inner.recommend(left, size, exclude_seen)
            first = asked if first is None else first
            kept = avoid(asked, labels, self.avoided, unknown=self.unknown, n=n)
            enough = kept.lengths >= n
            if self.unknown == "demote":
                # Not yet full of items that are known to be free of the label.
                enough &= ~self.avoided.judge(kept, labels)[1].any(axis=1)
            ended = asked.lengths < size
            done = enough | ended | (size >= self.most * n)
            capped.append(left[done & ~enough & ~ended])
            if done.any():
                parts.append(_rows(kept, done))
            left, size = left[~done], min(2 * size, self.most * n)
        if first is None:
            return self.inner.recommend(users, n, exclude_seen)
        lists = parts[0] if len(parts) == 1 else Recommendations.concat(parts).for_users(users)
        stopped = np.isin(np.asarray(users), np.concatenate(capped))
        lost = self._lost(first.lengths, lists.lengths, stopped)
        return replace(lists, exclusions=(*first.exclusions, *lost))

    def _lost(
        self, before: NDArray[np.int64], after: NDArray[np.int64], stopped: NDArray[np.bool_]
    ) -> tuple[Exclusion, ...]:
        """Count the lists that are shorter, or empty, because of what is avoided."""
        result = []
        for how, lists in (
            ("shortened", (after < before) & (after > 0)),
            ("emptied", (after < before) & (after == 0)),
        ):
            for why, cause in (
                ("the recommender had nothing more that the user does not avoid", ~stopped),
                (f"it is asked for at most {self.most} times the length of the list", stopped),
            ):
                count = int(np.count_nonzero(lists & cause))
                if count:
                    reason = f"{how} because {why}"
                    about = (AVOID_LIST, "full lists", count, reason, len(after))
                    result.append(Exclusion(*about, key=f"avoid-list/{how}"))
        return tuple(result)


def _rows(lists: Recommendations, rows: NDArray[np.bool_]) -> Recommendations:
    if rows.all():
        return lists
    scores = None if lists.scores is None else lists.scores[rows]
    return Recommendations(
        np.asarray(lists.users)[rows], lists.items[rows], lists.catalogue, scores
    )
