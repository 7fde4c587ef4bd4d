"""Dated requests against dated lists: what still gets through, by label and delay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ombud.audits.analysis import Analysis, AnalysisResult, Context
from ombud.data.dated import DatedLists, Requests
from ombud.data.exclusions import Exclusion
from ombud.errors import PlanError
from ombud.metrics.base import Rows
from ombud.metrics.engine.estimate import estimate_metric
from ombud.questions.requests.metric import RequestLeak
from ombud.questions.requests.tally import DAY, pairs_of, rows_of
from ombud.registry import analysis
from ombud.stats.estimate import Estimate
from ombud.stats.proportions import proportion

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.metrics.engine.estimator import Settings


AFTER, BEFORE, CHANGE = "requests/leak-after", "requests/leak-before", "requests/change"
DELAY, HIGHEST = "requests/leak-by-delay", "requests/leak-if-unknown-yes"
USERS = "requests/users-with-leak"


@analysis("requests")
@dataclass(frozen=True)
class RequestLeaks(Analysis):
    r"""How much of what people asked not to see they are shown after they asked.

    For every request (user u, label w, time t) and every place that u was shown,

    .. math:: \frac{\sum |\{\text{places after } t : \text{known to carry } w\}|}
              {\sum |\{\text{places after } t\}|},

    summed over requests: for all of them, by label, and by how long after the request a place was
    shown. Beside it: the same before the request and the change within users; the share of users
    who were shown at least one such place (with Wilson's interval, which 0 of n has too); and the
    share if every unknown label were *yes*.

    - **Unit of resampling**: the user; before and after are of the same users.
    - **Undefined**: without places after (or before) a request; with fewer users than the minimum.
    - **Does not capture**: whether a person met the place, why it was shown, or items whose label
      nobody knows. Who asks has often just seen something: the rate before a request is then high,
      and some of the change would have come without any request.

    Parameters
    ----------
    requests
        A file with `user`, `label`, `time`, and `until` where a request was taken back.
    lists
        A file with `user`, `item`, `time`, and optionally `rank`: every place that was shown.
    days
        Where delays are cut, in days.
    before
        How many days before a request count as before.
    k
        Only the first places of each list, where `rank` is there; default, all.
    """

    requests: Path | None = None
    lists: Path | None = None
    days: tuple[float, ...] = (1.0, 7.0, 30.0)
    before: float = 30.0
    k: int | None = None

    def __post_init__(self) -> None:
        if self.requests is None or self.lists is None:
            raise PlanError("the analysis 'requests' needs two files: requests and lists")
        cuts = (0.0, *self.days)
        if any(a >= b for a, b in zip(cuts, cuts[1:], strict=False)) or self.before <= 0:
            raise PlanError("days must grow from above 0, and before must be above 0")

    def analyze(self, context: Context) -> AnalysisResult:
        """Return leak rates after and before requests, by label and delay, with their bounds."""
        data, settings = context.data, context.settings
        if data.labels is None:
            raise PlanError("the analysis 'requests' needs labels; the data has none")
        requests = Requests.from_frame(str(self.requests))
        shown = self._shown()
        pairs = pairs_of(requests, shown, data.labels)
        after = pairs.filter(pl.col("delay") > 0)
        past = pairs.filter((pl.col("delay") < 0) & (pl.col("delay") >= -self.before * DAY))
        names = data.labels.names
        estimates = self._two_sides(after, past, data, settings)
        if after.height:
            bound = self._engine({"": rows_of(after, names, as_yes=True)}, data, settings)
            estimates += [_named(e, HIGHEST, "leak rate if every unknown were yes") for e in bound]
            late = self._engine({"": self._by_delay(after)}, data, settings)
            estimates += [_named(e, DELAY, "leak rate by delay") for e in late if not e.group]
            details = rows_of(after, names).details
            estimates += [_users(label, told, settings) for label, told in details.items()]
        unshown = len(set(requests.users.tolist()) - set(after["user"].to_list()))
        people = len(set(requests.users.tolist()))
        reason = "they were shown nothing after their request"
        gone = (Exclusion("requests", "users who asked", unshown, reason, people),)
        return AnalysisResult(tuple(estimates), exclusions=gone if unshown else ())

    def _shown(self) -> DatedLists:
        shown = DatedLists.from_frame(str(self.lists))
        if self.k is None:
            return shown
        if not shown.ranks.any():
            raise PlanError(f"k is {self.k}, but the dated lists have no column rank")
        kept = shown.ranks <= self.k
        return DatedLists(
            shown.users[kept], shown.items[kept], shown.catalogue, shown.ranks[kept],
            shown.times[kept],
        )  # fmt: skip

    def _engine(
        self, rows: Mapping[str, Rows], data: Dataset, settings: Settings
    ) -> list[Estimate]:
        metric = RequestLeak(path=self.requests)
        return estimate_metric(metric, rows, data.users, settings)

    def _two_sides(
        self, after: pl.DataFrame, past: pl.DataFrame, data: Dataset, settings: Settings
    ) -> list[Estimate]:
        """Return the rates after and before, and their difference within users."""
        assert data.labels is not None  # analyse has checked
        names = data.labels.names
        if not after.height:
            reason = "nothing was shown to anyone after a request"
            about = {"metric": "leak rate after the request", "key": AFTER, "unit": "user"}
            return [Estimate.undefined(reason_code="no-units", reason=reason, n=0, **about)]
        sides = {"after": rows_of(after, names)}
        if past.height:
            sides["before"] = rows_of(past, names)
        both = [set(rows.labels) for rows in sides.values()]
        common = tuple(w for w in sides["after"].labels if all(w in some for some in both))
        found: list[Estimate] = []
        only = self._engine({"": sides["after"]}, data, settings)
        found += [_named(e, AFTER, "leak rate after the request") for e in only]
        if "before" not in sides:
            return found
        cut = {name: _only(rows, common) for name, rows in sides.items()}
        for e in self._engine(cut, data, settings):
            if e.group:
                continue
            if e.kind == "level" and e.system == "before":
                found.append(_named(e, BEFORE, "leak rate before the request"))
            elif e.kind == "gap" and e.system:
                told = _named(e, CHANGE, "change of the leak rate")
                found.append(told.replace(against="before the request"))
        return found

    def _by_delay(self, after: pl.DataFrame) -> Rows:
        cuts = [days * DAY for days in self.days]
        bins = np.searchsorted(cuts, after["delay"].to_numpy(), side="left")
        words = _delays(self.days)
        # A delay takes the place of a label; the first of `rows_of` is all of them together.
        made = rows_of(after.with_columns(label=pl.Series(bins, dtype=pl.Int32)), words)
        return _only(made, tuple(word for word in words if word in made.labels))


def _delays(days: tuple[float, ...]) -> tuple[str, ...]:
    """Return names of delays.

    Examples
    --------
    >>> _delays((1.0, 7.0))
    ('within 1 day', '1 to 7 days', 'later than 7 days')
    """

    def said(value: float) -> str:
        return f"{value:g} day{'' if value == 1 else 's'}"

    middle = [f"{a:g} to {said(b)}" for a, b in zip(days, days[1:], strict=False)]
    return (f"within {said(days[0])}", *middle, f"later than {said(days[-1])}")


def _only(rows: Rows, labels: tuple[str, ...]) -> Rows:
    places = [rows.labels.index(label) for label in labels]
    columns = {name: values[:, places] for name, values in rows.columns.items()}
    return Rows(rows.unit, rows.ids, columns, labels, notes=rows.notes, details=rows.details)


def _named(e: Estimate, key: str, title: str) -> Estimate:
    return e.replace(metric=title, key=key, system="")


def _users(label: str, told: Mapping[str, int], settings: Settings) -> Estimate:
    return proportion(
        told["users_with_leak"],
        told["users"],
        level=settings.level,
        metric="users shown at least one such place after the request",
        key=USERS,
        unit="user",
        label=label,
        details=dict(told),
    )
