"""Amplification@k: how much more of a label lists hold than users' own histories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ombud.metrics.base import Notes, Outputs, Rows
from ombud.questions.warnings.amplification.measure import Measured, measure, notes_of
from ombud.questions.warnings.amplification.options import Options
from ombud.registry import metric
from ombud.stats.statistics import Floats

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset


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
    >>> from ombud.data.dataset import Dataset
    >>> from ombud.data.interactions import Interactions
    >>> from ombud.data.labels import Labels
    >>> from ombud.data.recommendations import Recommendations
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
        result: Measured = measure(self, outputs, data, over_labels=True)
        return result.rows()

    def notes(self, tallies: Mapping[str, Floats], labels: tuple[str, ...]) -> Notes:
        """Return how many histories were smoothed, and how many lists are short."""
        return notes_of(self, tallies, labels, over_labels=True)
