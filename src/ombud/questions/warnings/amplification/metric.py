"""Amplification@k: how much more of a label lists hold than users' own histories."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ombud.errors import PlanError
from ombud.metrics.base import ListMetric, Notes, Outputs, Rows, options_of
from ombud.metrics.denominators import DECLARED, coverage_of
from ombud.metrics.engine.comparisons import Needs
from ombud.metrics.engine.label_uncertainty import DRAWN, LABEL_ERRORS
from ombud.metrics.history import History, Weighting
from ombud.questions.warnings.amplification.measure import measure, notes_of
from ombud.questions.warnings.amplification.tally import Smoothing, UnknownLabels
from ombud.registry import metric
from ombud.stats.estimate import Estimate, TippingPoint
from ombud.stats.statistics import Floats, Mean, Median, OfSums, Statistic
from ombud.stats.tipping import contrast_tipping, ratio_tipping

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset

Form = Literal["log-ratio", "mean", "median", "ratio-of-means"]
"""How one number is made of many users."""
Votes = Literal["probability", "state"]
"""Whether an item carries a label or not, or to the degree that votes say."""


def _less_one(top: Floats, bottom: Floats, weight: Floats) -> Floats:
    return top / bottom - 1


class RatioOfMeans(OfSums):
    """Mean share in lists over mean share in histories, minus 1; undefined when the latter is 0.

    It is tested by its logarithm, because a ratio is skewed: on the plain scale a test would find
    less of a label far more readily than more of it. With the label in fewer than five histories
    there is no number.

    Examples
    --------
    >>> from ombud.stats.statistics import as_rows
    >>> round(RatioOfMeans().point(as_rows([[0.2, 0.1], [0.4, 0.3]])), 6)
    0.5
    """

    log_shift: ClassVar[float | None] = 1.0

    def __init__(self) -> None:
        super().__init__(("list", "history"), _less_one)


_SAID: dict[str, dict[str, str]] = {
    "form": {
        "median": "Here it is the median over users, not their mean.",
        "log-ratio": "Here it is the mean over users of the logarithm of the ratio of shares.",
        "ratio-of-means": "Here it is the mean share in lists over the mean share in histories, "
        "minus 1.",
    },
    "history": {"all": "Histories are whole, not only what a user rated best."},
    "smoothing": {
        "drop": "Users whose history lacks a label are left out for that label.",
        "additive": "Half an item with and half an item without the label are added to every list "
        "and history.",
    },
    "unknown": {
        "yes": "Items whose label is not known count as carrying it.",
        "exclude": "Items whose label is not known do not count.",
        "lowest": "It is the lowest value that labels which are not known could give.",
        "highest": "It is the highest value that labels which are not known could give.",
    },
    "weighting": {"exposure": "Places high in the list count for more."},
    "votes": {"probability": "An item carries a label to the degree that votes say."},
}
"""What options other than the default make of an amplification."""


@dataclass(frozen=True)
class Options(ListMetric):
    """What both amplification metrics can be asked for."""

    k: int = 100
    history: History = "relevant"
    smoothing: Smoothing = "imaginary-item"
    unknown: UnknownLabels = "no"
    form: Form = "mean"
    weighting: Weighting = "share"
    votes: Votes = "state"
    draws: int = 50

    registered_name: ClassVar[str]
    shallow_lists: ClassVar[Literal["said"]] = "said"
    word: ClassVar[str]

    @property
    def reads_ratings(self) -> bool:
        """Whether what counts depends on ratings."""
        return self.history == "relevant"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.draws < 10:
            raise PlanError(f"draws is {self.draws}; at least 10 draws of the labels are needed")

    @property
    def null(self) -> float | None:
        """No amplification; a bound for unknown labels is no finding, so it has none."""
        return None if self.unknown in {"lowest", "highest"} else 0.0

    @property
    def title(self) -> str:
        """The name as printed: its choices, and what counts where labels are unknown."""
        counted = "unlabeled as no" if self.unknown == "no" else f"unknown {self.unknown}"
        return self._named("" if self.unknown == "exclude" else counted)

    @property
    def seed_name(self) -> str:
        """The first title, in which unlabeled items as *no* went without saying."""
        return self._named("" if self.unknown == "no" else f"unknown {self.unknown}")

    def _named(self, unknown: str) -> str:
        chosen = {
            "whole history": self.history == "all",
            self.smoothing: self.smoothing != "imaginary-item",
            self.form: self.form != "mean",
            self.weighting: self.weighting != "share",
            unknown: bool(unknown),
            "votes as probabilities": self.votes == "probability",
        }
        text = [word for word, said in chosen.items() if said]
        return f"{self.word}@{self.k}" + (f" ({', '.join(text)})" if text else "")

    @property
    def variant(self) -> str:
        """What the chosen options make of it, in sentences."""
        told = [
            _SAID[name][value]
            for name, value in sorted(options_of(self).items())
            if name in _SAID and value in _SAID[name]
        ]
        return " ".join([*(["It is the mean over users."] if self.form == "mean" else []), *told])

    @property
    def statistic(self) -> Statistic:
        """How one number is made of many users."""
        if self.form == "ratio-of-means":
            return RatioOfMeans()
        return Median() if self.form == "median" else Mean()

    @property
    def needs(self) -> Needs | None:
        """A ratio of means needs the label in some histories."""
        if self.form != "ratio-of-means":
            return None
        return Needs("history", 5, "with the label in their history")

    @property
    def sides(self) -> tuple[str, str] | None:
        """Mean shares in lists and in histories, where the number is made of them."""
        return ("list", "history") if self.form == "ratio-of-means" else None

    @property
    def possible(self) -> tuple[float, float]:
        """A list can hold none of a label, which is -1; a logarithm has no bound."""
        return (-math.inf if self.form == "log-ratio" else -1.0, math.inf)

    def tipping(
        self, estimate: Estimate, lowest: float, highest: float, *groups: Mapping[str, Any]
    ) -> TippingPoint | None:
        """Return what unlabeled items would have to be like to reverse an amplification."""
        details = estimate.details
        told = groups or (details,)
        known = [one for one in map(coverage_of, told) if one is not None]
        if self.unknown not in {"exclude", "no"} or len(known) < len(told):
            return None
        if estimate.interval is None:
            return None
        log = self.form == "log-ratio"
        plain = math.exp if log else (1.0).__add__
        decides = told[0].get("unlabeled") != DECLARED
        if groups:
            sides = (plain(details["level"]), plain(details["other_level"]))
            return contrast_tipping(
                estimate.interval, sides, *known, log=log, lowest=lowest, highest=highest,
                decides=decides,
            )  # fmt: skip
        low, high = estimate.interval
        ends = (plain(low), plain(high))
        return ratio_tipping(ends, *known, lowest=lowest, highest=highest, decides=decides)

    @property
    def spread(self) -> bool:
        """Whether a result keeps how users are spread, for the figures of a report."""
        return self.form == "mean"

    def block_fault(self, tables: Collection[str]) -> str:
        """Return why users cannot be measured in blocks; empty when they can."""
        if self.votes == "probability":
            return "votes='probability' keeps draws of all users; choose votes='state'"
        return DRAWN if LABEL_ERRORS in tables else ""


@metric("amplification")
@dataclass(frozen=True)
class Amplification(Options):
    r"""How much larger a label's share is in lists than in the same users' histories.

    For user u and label w, with :math:`L_u^k` the first k places of the list and :math:`H_u` the
    relevant history,

    .. math::
       \mathrm{amp}(u, w) = \frac{|\{i \in L_u^k : w \in i\}| / |L_u^k|}
                                 {|\{i \in H_u : w \in i\}| / |H_u|} - 1,

    and the label's number is made of those of the users by `form`. 0 means as much as in the
    history, 1 twice as much, -1 none of it.

    - **Unit of resampling**: the user. With ``votes="probability"`` the uncertainty of the
      labels is carried into the interval as well.
    - **Undefined**: for a user without a list, without a history, or (``unknown="exclude"``)
      without any item whose label is known; such users are counted. For a label when no user is
      left. With ``form="ratio-of-means"``, when no history holds the label.
    - **Does not capture**: whether users wanted the content. A ratio is skewed: users whose
      history lacks the label get a large value from one recommended item, and can dominate a
      mean; how many there are is said beside each number. Read the median and the ratio of
      means as well.

    Parameters
    ----------
    k
        How many places of each list count. A shorter list is divided by its own length.
    history
        ``relevant``: the user's own top quartile of ratings, every rating that ties with the
        75th percentile included; all interactions where there are no ratings. ``all``: all.
    smoothing
        When no item of the history has the label: ``imaginary-item`` adds one that has it, so
        the share is 1 / (n + 1); ``drop`` leaves the user out for that label; ``additive`` adds
        half an item with and half an item without to every list and history.
    unknown
        How items whose label is unknown or disputed count: as ``no`` (the paper's definition),
        as ``yes``, not at all (``exclude``), or as a bound: ``lowest`` (no in lists, yes in
        histories) and ``highest`` (the reverse), beyond which no truth about them can go.
    form
        ``mean`` or ``median`` of amp(u, w) over users; ``ratio-of-means``: mean share in lists
        over mean share in histories, minus 1, without any smoothing; ``log-ratio``: mean of the
        logarithm of the ratio (lists without the label are smoothed as histories are).
    weighting
        ``share``: all places alike; ``exposure``: place r counts 1 / log2(r + 1).
    votes
        ``state``: yes, no, unknown as the labels say. ``probability``: an item has a label to
        the degree :math:`\theta`, the share of voters who would say yes, with a Beta posterior
        from its votes and a prior fitted to each label. The value is the posterior mean.
        Pairs without votes are unknown. A history *lacks* a label when less than half an item
        is expected to carry it.
    draws
        Draws from the posterior, for ``votes="probability"``. Each draw costs as much as one
        measurement.

    References
    ----------
    Kovacs, Kazemian, Chee and Dean (2025), *Datasets for Navigating Sensitive Topics in
    Recommendation Systems*.

    Examples
    --------
    >>> from ombud.data import Dataset, Interactions, Labels, Recommendations
    >>> history = Interactions.from_arrays(["u"] * 4, ["a", "b", "c", "d"])
    >>> labels = Labels.from_applied({"item": ["a", "e"], "label": ["blood", "blood"]})
    >>> lists = Recommendations.from_frame({"user": ["u", "u"], "item": ["e", "f"]})
    >>> rows = Amplification(k=2).measure(lists, Dataset(history, labels))
    >>> float(rows.columns["value"][0, 0])  # 1 of 2 in the list, 1 of 4 in the history
    1.0
    """

    word: ClassVar[str] = "amplification"

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return amp(u, w) for each user and label."""
        return measure(self, outputs, data).rows()

    def notes(self, tallies: Mapping[str, Floats], labels: tuple[str, ...]) -> Notes:
        """Return how many histories were smoothed, and how many lists are short."""
        return notes_of(self, tallies, labels)


@metric("amplification-user")
@dataclass(frozen=True)
class UserAmplification(Options):
    r"""A user's amplification over all labels, taken over users.

    .. math:: \frac{1}{|U|} \sum_u \frac{1}{|W_u|} \sum_{w \in W_u} \mathrm{amp}(u, w)

    with amp as in ``amplification`` and :math:`W_u` the labels for which it is defined.

    - **Unit of resampling**: the user; label uncertainty as in ``amplification``.
    - **Undefined**: for a user for whom no label is defined; such users are counted.
    - **Does not capture**: which label. All labels weigh alike, so many rare ones, most of them
      smoothed, can outweigh a common one.

    Parameters
    ----------
    k, history, smoothing, unknown, form, weighting, votes, draws
        As in ``amplification``; `form` is over users. With ``ratio-of-means``, shares are first
        averaged over labels.

    References
    ----------
    Kovacs, Kazemian, Chee and Dean (2025), *Datasets for Navigating Sensitive Topics in
    Recommendation Systems*.
    """

    word: ClassVar[str] = "user amplification"

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return the mean over labels for each user."""
        return measure(self, outputs, data, over_labels=True).rows()

    def notes(self, tallies: Mapping[str, Floats], labels: tuple[str, ...]) -> Notes:
        """Return how many histories were smoothed, and how many lists are short."""
        return notes_of(self, tallies, labels, over_labels=True)
