"""What a share of labels is a share of: how many items are labeled, and who has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.exclusions import Exclusion
from ombud.data.labels import Labels, LabelState
from ombud.metrics.history import count_items, table_width
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


def never_no(labels: Labels) -> NDArray[np.bool_]:
    """Return which labels no item is known not to carry: among known items, their share is 1."""
    no = LabelState.NO.value
    return ~((labels.states == no).any(axis=0) | (labels.of_others == no))


def labeled_share(lists: sparse.csr_array, labeled: NDArray[np.bool_]) -> Floats:
    """Return lists x labels: which share of each list's items is labeled.

    `lists` is lists x items, whatever is stored counting as one item; `labeled` is items x labels.
    """
    # Most often an item is looked at for every label or for none.
    labels = labeled.shape[1]
    alike = labels > 1 and bool((labeled == labeled[:, :1]).all())
    width = 1 if alike else labels
    table = np.zeros((len(labeled), table_width(width)), dtype=np.bool_)
    table[:, :width] = labeled[:, :width]
    counted = count_items(lists, table.view(np.uint8), width).astype(np.float64)
    share = counted / np.maximum(np.diff(lists.indptr), 1)[:, None]
    return np.broadcast_to(share, (share.shape[0], labels))


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
        "users": defined.sum(axis=0).astype(np.float64),
        "measured": np.array([float(len(defined))]),
        "as no": np.array([float(unknown == "no" or labels.unlabeled == "no")]),
        "declared": np.array([float(labels.unlabeled == "no")]),
    }
    if unknown == "exclude":
        says, disputed = ~never_no(labels), (labels.states == LabelState.DISPUTED).any(axis=0)
        whole = defined.shape[1] == len(says)  # else one number is made of all labels
        for name, each in (("says no", says), ("disputed", disputed)):
            tallies[name] = np.asarray(each if whole else [each.any()], dtype=np.float64)
    lacking = np.zeros(defined.shape, dtype=np.bool_)
    everyone = bool(defined.all())  # mostly; spares copies of tables
    for side, share in shares.items():
        tallies[side] = (share if everyone else np.where(defined, share, 0.0)).sum(axis=0)
    for side, share in labeled.items():
        tallies[f"labeled {side}"] = np.where(defined, share, 0.0).sum(axis=0)
        without = ~defined & ~lacking & (share == 0)
        tallies[f"without {side}"] = without.sum(axis=0).astype(np.float64)
        lacking |= without
    return tallies


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
    shown = [side for side in _SIDES if side in values]
    labeled = [(f"labeled {side}", f"labeled_{word}") for side, word in _SIDES.items()]
    labeled = [(name, key) for name, key in labeled if name in values]
    without = [
        (f"without {side}", f"users_without_labeled_{word}") for side, word in _SIDES.items()
    ]
    without = [(name, key) for name, key in without if name in values]
    found: list[dict[str, Any]] = []
    for at, users in enumerate(values["users"]):
        details: dict[str, Any] = {}
        found.append(details)
        if "says no" in values and not values["says no"][at]:
            details["undefined"] = _DISPUTED if values["disputed"][at] else _NEVER_NO
        elif users:
            details |= {side: values[side][at] / users for side in shown}
            shares = {key: values[name][at] / users for name, key in labeled}
            if any(share < 1 for share in shares.values()):
                details |= shares | {"unlabeled": meaning}
            details |= {key: int(values[name][at]) for name, key in without if values[name][at]}
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
