"""Whether lists are as long as a metric looks: said beside the number, or instead of it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.data.dataset import Dataset
from ombud.data.recommendations import Recommendations
from ombud.metrics.base import Metric, Outputs, Rows


@dataclass(frozen=True)
class ListDepth:
    """How deep lists are where a metric looks at so many places."""

    places: int  # how many places the metric looks at
    lists: int  # how many lists hold anything
    longest: int  # places of the longest list, cut to those looked at
    shorter: int  # Lists that end before that, though the catalogue has more
    ended: int  # Lists that end before that because they hold every item the user has not seen
    filled: int  # places that hold an item, of those looked at
    seen: int = 0  # of these, places with an item of the user's own history

    def merged(self, other: ListDepth) -> ListDepth:
        """Return the depth of two sets of lists together."""
        sums = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return ListDepth(
            **sums | {"places": self.places, "longest": max(self.longest, other.longest)}
        )

    @property
    def is_cut(self) -> bool:
        """Whether no list is as long as the metric looks, and not for want of items."""
        return self.longest < self.places and self.shorter > 0

    @property
    def reason(self) -> str:
        """Why there is no number, where all lists are cut."""
        return (
            f"it looks at {self.places:,} places, and the longest list has {self.longest:,}; "
            f"measure at k = {self.longest:,}, or give longer lists"
        )

    @property
    def note(self) -> str:
        """What a reader must know beside the number; empty when every list is long enough."""
        parts = []
        if self.is_cut:
            parts.append(
                f"the longest list has {self.longest:,} of {self.places:,} places, so this is "
                f"about {self.longest:,}"
            )
        elif self.shorter:
            parts.append(
                f"{self.shorter:,} of {self.lists:,} lists are shorter than {self.places:,} places"
            )
        if self.ended:
            parts.append(
                f"{self.ended:,} of {self.lists:,} lists end because nothing unseen is left"
            )
        if self.seen:
            parts.append(
                f"{self.seen:,} of {self.filled:,} places hold an item of the user's own history"
            )
        return "; ".join(parts)

    @property
    def details(self) -> dict[str, Any]:
        """The same as plain values; empty when every list is long enough."""
        told: dict[str, Any] = {}
        if self.shorter or self.ended:
            told = {
                "places_looked_at": self.places,
                "longest_list": self.longest,
                "shorter_lists": self.shorter,
                "ended_lists": self.ended,
            }
        if self.seen:
            told |= {"places": self.filled, "seen_places": self.seen}
        return told


def list_depth(
    lists: Recommendations, data: Dataset, places: int, seen: NDArray[np.bool_] | None = None
) -> ListDepth:
    """Return how deep lists are, for a metric that looks at so many places.

    A list has *ended* when it holds at least as many items as the user has not seen; every other
    list with fewer places is *shorter*. Users without any list are counted elsewhere. `seen` is
    what `Recommendations.seen_in` returns, where it is known.

    Examples
    --------
    >>> from ombud.data.dataset import Dataset
    >>> from ombud.data.interactions import Interactions
    >>> history = Interactions.from_arrays(["u", "u", "v"], ["a", "b", "c"])
    >>> lists = Recommendations.from_frame({"user": ["u", "v"], "item": ["c", "a"]})
    >>> list_depth(lists, Dataset(history), 2)  # u has seen all but c; v has not seen a and b
    ListDepth(places=2, lists=2, longest=1, shorter=1, ended=1, filled=2, seen=0)
    """
    lengths = np.minimum(lists.lengths, places)
    given = lengths > 0
    short = given & (lengths < places)
    ended = np.zeros(len(lists), dtype=np.bool_)
    repeated = 0 if seen is None else int(np.count_nonzero(seen[:, :places]))
    if short.any() and data.interactions is not None:
        rows = data.interactions.users.codes(lists.users)
        met = np.where(rows >= 0, np.diff(data.interactions.matrix.indptr)[rows], 0)
        ended = short & (lists.lengths >= len(data.interactions.items) - met)
    return ListDepth(
        places=places,
        lists=int(np.count_nonzero(given)),
        longest=int(lengths.max(initial=0)),
        shorter=int(np.count_nonzero(short & ~ended)),
        ended=int(np.count_nonzero(ended)),
        filled=int(lengths.sum()),
        seen=repeated,
    )


def with_list_depth(
    metric: Metric,
    rows: Rows,
    outputs: Outputs,
    data: Dataset,
    seen: NDArray[np.bool_] | None = None,
) -> Rows:
    """Return what was measured with what the length of the lists means for it.

    Lists that a reranker has shortened are what it shows, and are measured as they are.
    """
    if not isinstance(outputs, Recommendations) or metric.shallow_lists == "unread":
        return rows
    depth = list_depth(outputs, data, metric.depth, seen)
    return told_depth(metric, rows, depth, shortened=was_shortened(outputs))


def told_depth(metric: Metric, rows: Rows, depth: ListDepth, *, shortened: bool = False) -> Rows:
    """Return what was measured with what the depth of lists means for it.

    `shortened` says that a reranker has shortened the lists.
    """
    if not depth.details:
        return rows
    if depth.is_cut and metric.shallow_lists == "undefined" and not shortened:
        return replace(rows, undefined=depth.reason, details=_merged(rows.details, depth.details))
    notes = {label: "; ".join((text, depth.note)) for label, text in rows.notes.items() if text}
    return replace(
        rows,
        notes={**dict.fromkeys(("", *rows.notes), depth.note), **notes},
        details=_merged(rows.details, depth.details),
    )


def _merged(told: Any, more: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {label: {**told.get(label, {}), **more} for label in ("", *told)}


def was_shortened(lists: Recommendations) -> bool:
    """Whether a reranker has taken places away."""
    return any(e.key.endswith(("/shortened", "/emptied")) for e in lists.exclusions)
