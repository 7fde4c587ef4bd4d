"""Hide requests: after people asked not to see something, is it still shown to them?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import polars as pl
from pydantic import Field, field_validator

from ombud.audits import analysis as audits
from ombud.audits.presets import Options
from ombud.data.dated import DatedLists, Requests
from ombud.data.exclusions import Exclusion
from ombud.data.labels import Labels, LabelState
from ombud.data.recommendations import Recommendations
from ombud.errors import DataError, PlanError
from ombud.metrics.base import ListMetric, Outputs, Rows
from ombud.metrics.engine.estimate import estimate_metric
from ombud.registry import analysis, metric, question
from ombud.report.context import Context, Select
from ombud.report.model import Text
from ombud.report.numbers import POINTS, SHARE, percent
from ombud.report.question import Phrase, Question
from ombud.report.show import Alert, Detail, Grid, Listing, Matrix, Measure, Say, part
from ombud.stats.estimate import Estimate
from ombud.stats.proportions import proportion
from ombud.stats.statistics import RatioOfSums

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.metrics.engine.estimator import Settings

AFTER, BEFORE, CHANGE = "requests/leak-after", "requests/leak-before", "requests/change"
DELAY, HIGHEST = "requests/leak-by-delay", "requests/leak-if-unknown-yes"
USERS = "requests/users-with-leak"
DAY = 86_400.0
"""Seconds of a day."""


def pairs_of(
    requests: Requests, shown: DatedLists, labels: Labels, *, at_once: bool = False
) -> pl.DataFrame:
    """Return one row for each request and each place that its user was shown.

    With `at_once`, a place at the very moment of a request counts as after it.

    Returns
    -------
    `user`, `label`, `delay` (seconds from the request to the place; negative before it), `leak`
    and `unknown` (whether the item is known to carry the label, and whether that is not known).
    Places after a request was taken back are excluded; so are those before it that fall under an
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

    `pairs` are what `pairs_of` returns, or some of it; `names` are the labels behind its codes.
    With `as_yes`, places whose label is not known count as leaks.
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


@metric("request-leak")
@dataclass(frozen=True)
class HideRequestLeak(ListMetric):
    r"""Share of list places that are known to carry a label the user had asked not to see.

    .. math:: \frac{\sum_{(u, w)} |\{i \in L_u^k : w \in i\}|}{\sum_{(u, w)} |L_u^k|}

    over all requests of a user u for a label w that stand at the time `at`; by label, and for all
    requests together. Lists whose places have dates are measured by the analysis ``requests``.

    - **Unit of resampling**: the user.
    - **Undefined**: when no user with a standing request has a list.
    - **Does not capture**: labels that nobody has applied or voted on. Places whose label is
      unknown are counted beside the number, and the share if all of them carried it is there too.

    Parameters
    ----------
    path
        A file with `user`, `label`, `time`, and `until` where a request was taken back.
    k
        How many places of each list count.
    at
        When the lists were made, such as ``2024-12-31``; default, after all requests.
    older_than
        Only requests that were at least so many days old by then.
    """

    path: Path | None = None
    k: int = 100
    at: str = ""
    older_than: float = 0.0

    registered_name: ClassVar[str]
    null: ClassVar[float | None] = None
    statistic: ClassVar[RatioOfSums] = RatioOfSums()
    shallow_lists: ClassVar[Literal["said"]] = "said"

    def __post_init__(self) -> None:
        if self.path is None:
            raise PlanError("request-leak needs a path to a file with user, label and time")
        super().__post_init__()
        if self.older_than < 0:
            raise PlanError(f"older_than is {self.older_than}; it must be at least 0")
        self._moment()

    @property
    def title(self) -> str:
        """The name as printed."""
        told = [f"at {self.at}"] if self.at else []
        told += [f"requests at least {self.older_than:g} days old"] if self.older_than else []
        return f"request leak@{self.k}" + (f" ({', '.join(told)})" if told else "")

    def _moment(self) -> float | None:
        if not self.at:
            return None
        try:
            moment = datetime.fromisoformat(self.at)
        except ValueError:
            raise PlanError(f"at is {self.at!r}; a date such as 2024-12-31 was expected") from None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return, for each user with a standing request, the places that leak and all places."""
        labels: Labels = data.need("labels", "request-leak")
        if not isinstance(outputs, Recommendations):
            raise PlanError("request-leak measures recommendations, not a moderator's decisions")
        requests = Requests.from_frame(str(self.path))
        latest = float(np.max(requests.times, initial=0.0)) + self.older_than * DAY
        moment = self._moment()
        when = latest if moment is None else moment
        lists = outputs.top(self.k)
        rows, places = np.nonzero(lists.items >= 0)
        shown = DatedLists(
            np.asarray(lists.users)[rows],
            lists.items[rows, places],
            lists.catalogue,
            places + 1,
            np.full(len(rows), when),
        )
        pairs = pairs_of(requests, shown, labels, at_once=True)
        kept = pairs.filter(pairs["delay"] >= self.older_than * DAY)
        asked = len(set(requests.users.tolist()))
        measured = rows_of(kept, labels.names)
        lost = asked - len(measured.ids)
        reason = "they have no list, or no request that stands at that time"
        gone = Exclusion("requests", "users who asked", lost, reason, asked)
        return Rows(
            unit=measured.unit,
            ids=measured.ids,
            columns=measured.columns,
            labels=measured.labels,
            exclusions=(gone,) if lost > 0 else (),
            notes=measured.notes,
            details=measured.details,
        )


@analysis("requests")
class HideRequestAnalysis(Options, audits.Analysis):
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
    """

    requests: Path
    """A file with `user`, `label`, `time`, and `until` where a request was withdrawn."""
    lists: Path
    """A file with `user`, `item`, `time`, and optionally `rank`: every item that was shown."""
    days: tuple[float, ...] = (1.0, 7.0, 30.0)
    """Where delays are cut, in days, in ascending order."""
    before: float = Field(default=30.0, gt=0)
    """The number of days before a request that count as before."""
    k: int | None = Field(default=None, ge=1)
    """The number of positions of each list that count, where `rank` is given; by default, all."""

    @field_validator("days")
    @classmethod
    def _ascending(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        cuts = (0.0, *value)
        if any(a >= b for a, b in zip(cuts, cuts[1:], strict=False)):
            raise ValueError("days must be above 0 and in ascending order")
        return value

    def analyze(self, context: audits.Context) -> audits.AnalysisResult:
        """Return leak rates after and before requests, by label and delay, with their bounds."""
        data, settings = context.data, context.settings
        labels: Labels = data.need("labels", "the analysis 'requests'")
        requests = Requests.from_frame(str(self.requests))
        shown = self._shown()
        pairs = pairs_of(requests, shown, labels)
        after = pairs.filter(pl.col("delay") > 0)
        past = pairs.filter((pl.col("delay") < 0) & (pl.col("delay") >= -self.before * DAY))
        names = labels.names
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
        return audits.AnalysisResult(tuple(estimates), exclusions=gone if unshown else ())

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
        metric = HideRequestLeak(path=self.requests)
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


# -- The report.

_LARGE = 0.1
LEAKS = Select(AFTER, ("overall",), label="", exact=True)


def _before(e: Estimate, context: Context) -> str:
    found = context.find(Select(BEFORE, ("overall",), label="", exact=True))
    rate = next((b.value for b in found if b.value is not None), None)
    return "" if rate is None else f" Before the request it was {percent(rate)}."


def _unknown(context: Context) -> Text | None:
    for e in context.find(LEAKS):
        shown, unknown = e.details.get("places"), e.details.get("unknown")
        if shown and unknown is not None and unknown / shown >= _LARGE:
            return (f"{percent(unknown / shown)} of the recommendations are unlabeled.",)
    return None


def _shown(context: Context) -> Text | None:
    """Say how much was shown after requests, in counts."""
    found = context.find(LEAKS)
    about = found[0].details if found else {}
    if "places" not in about:
        return (f"Leak rate after the request: undefined ({found[0].reason}).",) if found else None
    return (
        f"{about['leaks']:,} of {about['places']:,} recommendations shown after a request are "
        f"known to carry the hidden label; {about['unknown']:,} are unlabeled. "
        f"{about['users_with_leak']:,} of {about['users']:,} users were shown at least one.",
    )


def _before_reading(context: Context) -> list[Text]:
    if not context.find(LEAKS):
        return []
    said = (
        "People often ask right after they have seen something, so the share before a request "
        "tends to be high. Part of a decrease would have come without the request."
    )
    return [(said,)]


def _of(key: str) -> Select:
    return Select(key, ("overall",), exact=True)


COUNTS = (
    Detail("Hidden label", "leaks"),
    Detail("Shown", "places"),
    Detail("Unlabeled", "unknown"),
)

SECTIONS = (
    part(
        "Shown after people asked not to see it",
        Say((_shown,)),
        Grid(
            (
                Measure("After the request", _of(AFTER)),
                Measure("Before", _of(BEFORE)),
                Measure("Change", Select(CHANGE, exact=True), POINTS),
                Measure("After, if unlabeled carried it", _of(HIGHEST)),
                Measure("Users shown any", _of(USERS)),
            ),
            "Share of recommendations that are known to carry a label that their user had asked "
            "not to see, with confidence intervals; and users who were shown at least one.",
            SHARE,
            rows=("label",),
            name="requests-table",
        ),
        Listing(
            _of(DELAY),
            "The same by time since the request, all requests combined.",
            SHARE,
            ("label", "value", *COUNTS, "n"),
            "Share",
            name="requests-delay-table",
        ),
        Matrix(
            Select(AFTER, ("group", "contrast"), exact=True),
            "After the request, by group of users.",
            SHARE,
            folded=True,
        ),
        Alert("Before reading the change", _before_reading),
    ),
)


@question("requests", "requests/")
def requests_question() -> Question:
    """Declare how much of what people asked not to see is still shown."""
    return Question(
        name="requests",
        asks="Is it still shown after people asked not to see it?",
        family={
            LEAKS: Phrase(
                sentence="{size} of the recommendations shown after a hide request carry the "
                "hidden label.{note}",
                summary="{system} still show{s} {objects}",
                object="what people asked to hide",
                what="hidden labels",
                who="users with a request",
                levels=lambda e: (None, None),
                scale=SHARE,
                null=0.0,
                note=_before,
            )
        },
        systems="system",
        yes="still show{s} what people asked to hide",
        possible="Up to {bound} of them could still carry a hidden label.",
        changes=(_unknown,),
        inspect="Inspect why hide requests fail, and run the audit again.",
        sections=SECTIONS,
    )
