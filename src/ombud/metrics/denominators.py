"""What a share of labels is a share of: how many items are labeled, and who has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.exclusions import Exclusion
from ombud.data.labels import Labels
from ombud.metrics.history import table_width
from ombud.stats.statistics import Floats
from ombud.stats.tipping import LabelCoverage

DECLARED = "declared no"
"""What `details` say of unlabeled items where the data declares that they carry no label."""

_NEVER_NO = (
    "no item is known not to carry this label, so its share cannot be computed; set [data] "
    'unlabeled = "no" if every item was looked at, or add rows that say no'
)
_DISPUTED = (
    "annotators disagree about this label so often that no item is known not to carry it; lower "
    "[data] threshold (0.75: three of four votes must agree), as in threshold = 0.6"
)
_SIDES = {"list": "recommended", "history": "history"}
_WORDS = {"list": "the list", "history": "the history"}


def labeled_items(labels: Labels) -> tuple[int, NDArray[np.uint8]]:
    """Return how many columns the table has, and which items the data itself labels.

    It is a table for `count_items`, with one column where that is the same for every label. The
    last row stands for all items without labels.
    """
    n, w = labels.states.shape
    # The table is large: it is written in place.
    table = np.zeros((n + 1, table_width(w)), dtype=np.bool_)
    labeled = np.greater_equal(labels.states, 0, out=table[:n, :w])
    if labels.stated is not None:
        labeled &= labels.stated
    if w > 1 and all(np.array_equal(labeled[:, 0], labeled[:, other]) for other in range(1, w)):
        w, table = 1, table[:, : table_width(1)] & (np.arange(table_width(1)) == 0)
    return w, table.view(np.uint8)


def share_of_items(lists: sparse.csr_array, counted: NDArray[Any]) -> Floats:
    """Return counts of items, lists x labels, as shares of each list; 0 for an empty list."""
    return counted / np.maximum(np.diff(lists.indptr), 1)[:, None].astype(np.float64)


def label_tallies(
    labels: Labels,
    unknown: str,
    defined: NDArray[np.bool_],
    shares: Mapping[str, Floats],
    labeled: Mapping[str, Floats],
) -> dict[str, Floats]:
    """Return sums over users that `label_details` and `users_without_labels` are made of.

    Parameters
    ----------
    labels
        The labels.
    unknown
        How the metric counts unknown labels.
    defined
        Users x labels: who has a number.
    shares, labeled
        By side, ``list`` and ``history``: users x labels, the share with the label, and the share
        that is labeled.
    """
    tallies: dict[str, Floats] = {
        "users": count_users(defined).astype(np.float64),
        "measured": np.array([float(len(defined))]),
        "as no": np.array([float(unknown == "no" or labels.unlabeled == "no")]),
        "declared": np.array([float(labels.unlabeled == "no")]),
    }
    if unknown == "exclude":
        whole = defined.shape[1] == len(labels.names)  # else one number is made of all labels
        for name, each in (("says no", labels.some_no), ("disputed", labels.some_disputed)):
            tallies[name] = np.asarray(each if whole else [each.any()], dtype=np.float64)
    lacking = np.zeros(defined.shape, dtype=np.bool_)
    everyone = bool(defined.all())  # mostly; spares copies of tables
    for side, share in shares.items():
        tallies[side] = (share if everyone else np.where(defined, share, 0.0)).sum(axis=0)
    for side, share in labeled.items():
        # As a table of its own: sums over a repeated column would be added in another order.
        known = np.ascontiguousarray(share) if everyone else np.where(defined, share, 0.0)
        tallies[f"labeled {side}"] = known.sum(axis=0)
        without = ~defined & ~lacking & (share == 0)
        tallies[f"without {side}"] = without.sum(axis=0).astype(np.float64)
        lacking |= without
    return tallies


def count_users(chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return in how many rows, which are users, each column is true."""
    rows, columns = chosen.shape
    # Mostly it is true everywhere, which is faster to see than to count.
    return np.full(columns, rows) if chosen.all() else np.count_nonzero(chosen, axis=0)


def label_details(tallies: Mapping[str, Floats], n: int) -> list[dict[str, Any]]:
    """Return for each of `n` labels its denominators as plain values, or why it has no number.

    `tallies` are what `label_tallies` returns, summed over blocks of users.
    """
    if "users" not in tallies:
        return [{} for _ in range(n)]
    # Lists: reading single numbers of arrays takes longer than measuring a hundred labels.
    values = {name: sums.tolist() for name, sums in tallies.items()}
    meaning = "no" if values["as no"][0] else "unknown"
    meaning = DECLARED if values["declared"][0] else meaning
    shown = [(side, values[side]) for side in _SIDES if side in values]
    labeled, without = (
        [(key + w, values[name + s]) for s, w in _SIDES.items() if name + s in values]
        for name, key in (("labeled ", "labeled_"), ("without ", "users_without_labeled_"))
    )
    found: list[dict[str, Any]] = []
    for at, users in enumerate(values["users"]):
        details: dict[str, Any] = {}
        found.append(details)
        if "says no" in values and not values["says no"][at]:
            details["undefined"] = _DISPUTED if values["disputed"][at] else _NEVER_NO
        elif users:
            details |= {side: sums[at] / users for side, sums in shown}
            shares = {key: sums[at] / users for key, sums in labeled}
            if min(shares.values(), default=1) < 1:
                details |= shares | {"unlabeled": meaning}
            details |= {key: int(sums[at]) for key, sums in without if sums[at]}
    return found


def users_without_labels(tallies: Mapping[str, Floats]) -> tuple[Exclusion, ...]:
    """Return users who are excluded because none of their items is labeled."""
    found = []
    for side, words in _WORDS.items():
        counts = tallies.get(f"without {side}", np.zeros(1))
        most = int(counts.max(initial=0))
        if not most:
            continue
        reason = f"no item of {words} is labeled"
        if (counts != most).any():
            reason += ", for the label with the most such users; each number states its own count"
        of = int(tallies["measured"][0])
        found.append(Exclusion("users", "users", most, reason, of, f"unlabeled/{side}"))
    return tuple(found)


def coverage_of(details: Mapping[str, Any]) -> LabelCoverage | None:
    """Return rates among labeled items and labeled shares from the details of an estimate.

    None where every item is labeled, or nothing is.
    """
    lists = "list" if "list" in details else "lists"
    names = ("labeled_recommended", "labeled_history", lists, "history")
    given = [value for name in names if isinstance(value := details.get(name), float)]
    if len(given) < len(names) or "unlabeled" not in details:
        return None
    shares, rates = given[:2], given[2:]
    assumed = 1.0 if details.get("unlabeled") == "unknown" else 0.0
    if not assumed:  # a share of all items; that among labeled items is larger
        if not all(shares):
            return None
        rates = [min(rate / share, 1.0) for rate, share in zip(rates, shares, strict=True)]
    return LabelCoverage(
        recommended=rates[0],
        history=rates[1],
        labeled_recommended=min(shares[0], 1.0),
        labeled_history=min(shares[1], 1.0),
        assumed=assumed,
    )
