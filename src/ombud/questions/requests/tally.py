"""Every place that was shown to someone who had asked not to see a label, counted."""

from __future__ import annotations

import numpy as np
import polars as pl

from ombud.data.dated import DatedLists, Requests
from ombud.data.labels import Labels, LabelState
from ombud.errors import DataError
from ombud.metrics.base import Rows

DAY = 86_400.0
"""Seconds of a day."""


def pairs_of(
    requests: Requests, shown: DatedLists, labels: Labels, *, at_once: bool = False
) -> pl.DataFrame:
    """Return one row for each request and each place that its user was shown.

    Parameters
    ----------
    requests
        Who asked not to see what.
    shown
        What was shown, and when.
    labels
        Which items carry which label.
    at_once
        Whether a place at the very moment of a request counts as after it.

    Returns
    -------
    `user`, `label`, `delay` (seconds from the request to the place; negative before it), `leak`
    and `unknown` (whether the item is known to carry the label, and whether that is not known).
    Places after a request was taken back are left out; so are those before it that fall under an
    earlier request of the same user and label.

    Raises
    ------
    DataError
        If a label was asked for that no item could carry, or no request is of a user who was shown
        anything.
    """
    missing = sorted(set(requests.labels.tolist()) - set(labels.names))
    if missing:
        faults = [f"the label {name!r} was asked not to be shown; no item could carry it"
                  for name in missing]  # fmt: skip
        raise DataError("requests", [*faults, f"the labels are: {', '.join(labels.names)}"])
    index = {name: place for place, name in enumerate(labels.names)}
    asked = pl.DataFrame(
        {
            "user": requests.users,
            "label": [index[name] for name in requests.labels],
            "time": requests.times,
            "until": requests.until,
        },
        schema_overrides={"label": pl.Int32},
    ).sort("user", "label", "time")
    ends = pl.col("until").shift(1).over("user", "label").fill_null(float("-inf"))
    asked = asked.with_columns(earlier=ends)
    # Unknown items have the row behind the last.
    rows = labels.items.codes(shown.catalogue.arrow)[shown.items]
    places = pl.DataFrame({"user": shown.users, "at": shown.times, "row": rows})
    if places["user"].dtype != asked["user"].dtype:
        places, asked = (t.with_columns(pl.col("user").cast(pl.String)) for t in (places, asked))
    joined = asked.join(places, on="user", how="inner")
    if joined.is_empty():
        fault = "no user who asked was shown anything: do the ids of both files mean the same?"
        raise DataError("requests", [fault])
    inside = (pl.col("at") < pl.col("until")) & (pl.col("at") >= pl.col("earlier"))
    joined = joined.filter(inside).with_columns(delay=pl.col("at") - pl.col("time"))
    if not at_once:
        joined = joined.filter(pl.col("delay") != 0)
    found = labels.padded[joined["row"].to_numpy(), joined["label"].to_numpy()]
    return joined.select("user", "label", "delay").with_columns(
        leak=pl.Series(found == LabelState.YES), unknown=pl.Series(found < 0)
    )


def rows_of(pairs: pl.DataFrame, names: tuple[str, ...], *, as_yes: bool = False) -> Rows:
    """Return what engine and metric need: places that leak over places, by user and label.

    The first label, without a name, is for all requests together.

    Parameters
    ----------
    pairs
        What `pairs_of` returns, or some of it.
    names
        The labels behind its codes.
    as_yes
        Whether places whose label is not known count as leaks.
    """
    leak = pl.col("leak") | pl.col("unknown") if as_yes else pl.col("leak")
    counted = pairs.group_by("user", "label", maintain_order=True).agg(
        leaks=leak.sum(), places=pl.len(), unknown=pl.col("unknown").sum()
    )
    used = sorted(set(counted["label"].to_list()))
    users = counted["user"].unique(maintain_order=True)
    row = dict(zip(users.to_list(), range(len(users)), strict=True))
    at = {label: place for place, label in enumerate(used, 1)}
    shape = (len(users), len(used) + 1)
    leaks, places = np.full(shape, np.nan), np.full(shape, np.nan)
    where = (
        np.array([row[user] for user in counted["user"].to_list()], dtype=np.int64),
        np.array([at[label] for label in counted["label"].to_list()], dtype=np.int64),
    )
    leaks[where] = counted["leaks"].to_numpy()
    places[where] = counted["places"].to_numpy()
    leaks[:, 0], places[:, 0] = np.nansum(leaks[:, 1:], axis=1), np.nansum(places[:, 1:], axis=1)
    labels = ("", *(names[label] for label in used))
    details = {
        name: {
            "leaks": int(some["leaks"].sum()),
            "places": int(some["places"].sum()),
            "unknown": int(some["unknown"].sum()),
            "users": some["user"].n_unique(),
            "users_with_leak": some.filter(pl.col("leaks") > 0)["user"].n_unique(),
        }
        for name, label in zip(labels, (None, *used), strict=True)
        for some in [counted if label is None else counted.filter(pl.col("label") == label)]
    }
    notes = {
        name: f"{d['leaks']:,} of {d['places']:,} places; of {d['unknown']:,} it is not known"
        for name, d in details.items()
    }
    columns = {"numerator": leaks, "denominator": places}
    return Rows("user", users.to_numpy(), columns, labels, notes=notes, details=details)
