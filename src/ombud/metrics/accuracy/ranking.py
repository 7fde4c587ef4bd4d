"""How many of the recommended items were relevant, and how high they stood."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.errors import PlanError
from ombud.metrics.accuracy.held_out import Judged, NoList, Relevance, judge
from ombud.metrics.base import ListMetric, Outputs, Rows
from ombud.registry import metric
from ombud.stats.statistics import Floats, Mean, OfSums


def _f1_of_means(precision: Floats, recall: Floats, weight: Floats) -> Floats:
    p, r = precision / weight, recall / weight
    return np.where(p + r > 0, 2 * p * r / np.where(p + r > 0, p + r, 1), 0.0)


_F1_OF_MEANS = OfSums(("precision", "recall"), _f1_of_means)


@dataclass(frozen=True)
class _Ranking(ListMetric):
    """What the metrics of ranked lists have in common."""

    k: int = 10
    relevance: Relevance = "presence"
    no_list: NoList = "exclude"

    registered_name: ClassVar[str]
    by_item: ClassVar[Literal["held-out"]] = "held-out"
    reads: ClassVar[Literal["outputs"]] = "outputs"
    null: ClassVar[float | None] = None
    contrast: ClassVar[Literal["difference"]] = "difference"
    name: ClassVar[str]

    @property
    def reads_ratings(self) -> bool:
        """Whether what counts depends on ratings."""
        return self.relevance == "top-quartile"

    @property
    def statistic(self) -> OfSums:
        """The mean over users."""
        return Mean()

    def block_fault(self, tables: Collection[str]) -> str:
        """Return nothing: a user's row depends on that user alone."""
        del tables
        return ""

    @property
    def title(self) -> str:
        """The name as printed."""
        rule = "" if self.relevance == "presence" else ", top quartile"
        return f"{self.name}@{self.k}{rule}"

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return one row per user with a relevant held-out item."""
        judged = judge(outputs, data, self.k, self.relevance, self.no_list)
        columns, more = self._columns(judged)
        return Rows(
            unit="user",
            ids=judged.users,
            columns={name: values[:, None] for name, values in columns.items()},
            exclusions=judged.exclusions + more,
            events=judged.hits.sum(axis=1)[:, None],
        )

    def _columns(self, judged: Judged) -> tuple[dict[str, Floats], tuple[Exclusion, ...]]:
        return {"value": self._values(judged)}, ()

    def _values(self, judged: Judged) -> Floats:
        raise NotImplementedError


def _precision(judged: Judged, k: int) -> Floats:
    return np.asarray(judged.hits.sum(axis=1) / k, dtype=np.float64)


def _recall(judged: Judged) -> Floats:
    return np.asarray(judged.hits.sum(axis=1) / judged.n_relevant, dtype=np.float64)


@metric("precision")
@dataclass(frozen=True)
class Precision(_Ranking):
    r"""Share of the k places that hold a relevant held-out item, averaged over users.

    .. math:: \frac{1}{|U|} \sum_u \frac{|L_u^k \cap R_u|}{k}

    A list shorter than k is charged for its empty places (LensKit divides by the list's length).

    - **Unit of resampling**: the user.
    - **Undefined**: when no user has a relevant held-out item and a list.
    - **Does not capture**: order within the list; items the user would have liked but never met
      count as wrong, so it is a lower bound that depends on how much was held out.

    Parameters
    ----------
    k
        How many places of each list count.
    relevance
        ``presence`` (every held-out item) or ``top-quartile`` (held-out items whose rating
        reaches the 75th percentile of all of the user's ratings; ties are in).
    no_list
        Users with a relevant item but no list: ``exclude`` or ``zero``.

    References
    ----------
    Herlocker, Konstan, Terveen and Riedl (2004), *Evaluating Collaborative Filtering Recommender
    Systems*.

    Examples
    --------
    >>> Precision(k=5).title
    'precision@5'
    """

    name: ClassVar[str] = "precision"

    def _values(self, judged: Judged) -> Floats:
        return _precision(judged, self.k)


@metric("recall")
@dataclass(frozen=True)
class Recall(_Ranking):
    r"""Share of a user's relevant held-out items that are in the list, averaged over users.

    .. math:: \frac{1}{|U|} \sum_u \frac{|L_u^k \cap R_u|}{|R_u|}

    A user with more than k relevant items cannot reach 1 (LensKit divides by the smaller of
    :math:`|R_u|` and k).

    - **Unit of resampling**: the user.
    - **Undefined**: when no user has a relevant held-out item and a list.
    - **Does not capture**: order within the list.

    Parameters
    ----------
    k, relevance, no_list
        As in `Precision`.
    """

    name: ClassVar[str] = "recall"

    def _values(self, judged: Judged) -> Floats:
        return _recall(judged)


@metric("f1")
@dataclass(frozen=True)
class F1(_Ranking):
    r"""Harmonic mean of precision and recall.

    .. math:: \frac{1}{|U|} \sum_u \frac{2 |L_u^k \cap R_u|}{k + |R_u|} \quad\text{or}\quad
              \frac{2 \bar p \bar r}{\bar p + \bar r}

    - **Unit of resampling**: the user.
    - **Undefined**: when no user has a relevant held-out item and a list.
    - **Does not capture**: order within the list. The two averages differ; say which was used.

    Parameters
    ----------
    k, relevance, no_list
        As in `Precision`.
    average
        ``users``: each user's own F1, then the mean. ``means``: one F1 from mean precision
        :math:`\bar p` and mean recall :math:`\bar r`, as in Kovacs et al.
    """

    average: Literal["users", "means"] = "users"

    name: ClassVar[str] = "F1"

    @property
    def statistic(self) -> OfSums:
        """The mean over users, or F1 of two means."""
        return Mean() if self.average == "users" else _F1_OF_MEANS

    @property
    def title(self) -> str:
        """The name as printed."""
        return super().title + (" (of means)" if self.average == "means" else "")

    def _columns(self, judged: Judged) -> tuple[dict[str, Floats], tuple[Exclusion, ...]]:
        if self.average == "means":
            return {"precision": _precision(judged, self.k), "recall": _recall(judged)}, ()
        value = 2 * judged.hits.sum(axis=1) / (self.k + judged.n_relevant)
        return {"value": np.asarray(value, dtype=np.float64)}, ()


@metric("hit-rate")
@dataclass(frozen=True)
class HitRate(_Ranking):
    r"""Share of users whose list holds at least one relevant held-out item.

    .. math:: \frac{1}{|U|} \sum_u [L_u^k \cap R_u \ne \emptyset]

    - **Unit of resampling**: the user.
    - **Undefined**: when no user has a relevant held-out item and a list.
    - **Does not capture**: how many relevant items there are; users with more of them hit more
      easily.

    Parameters
    ----------
    k, relevance, no_list
        As in `Precision`.
    """

    name: ClassVar[str] = "hit rate"

    def _values(self, judged: Judged) -> Floats:
        return np.asarray(judged.hits.any(axis=1), dtype=np.float64)


@metric("mrr")
@dataclass(frozen=True)
class MRR(_Ranking):
    r"""Reciprocal of the rank of the first relevant item, averaged over users.

    .. math:: \frac{1}{|U|} \sum_u \frac{1}{\min\{j \le k : L_{u,j} \in R_u\}}

    A list without a relevant item among its first k counts 0.

    - **Unit of resampling**: the user.
    - **Undefined**: when no user has a relevant held-out item and a list.
    - **Does not capture**: anything after the first hit.

    Parameters
    ----------
    k, relevance, no_list
        As in `Precision`.
    """

    name: ClassVar[str] = "MRR"

    def _values(self, judged: Judged) -> Floats:
        result = judged.hits.any(axis=1)
        return np.where(result, 1.0 / (judged.hits.argmax(axis=1) + 1.0), 0.0)


@metric("ndcg")
@dataclass(frozen=True)
class NDCG(_Ranking):
    r"""Discounted gain of the list over that of the best possible list, averaged over users.

    .. math:: \frac{1}{|U|} \sum_u \frac{\sum_{j \le k} g_{u}(L_{u,j}) / \log_2(j + 1)}
              {\sum_{j \le k} g_{u}(I_{u,j}) / \log_2(j + 1)}

    where :math:`I_u` are the user's relevant held-out items, highest gain first.

    - **Unit of resampling**: the user.
    - **Undefined**: when no user has a relevant held-out item and a list.
    - **Does not capture**: how good the best possible list is.

    Parameters
    ----------
    k, relevance, no_list
        As in `Precision`.
    gain
        ``binary``: 1 for a relevant item. ``rating``: its held-out rating (not negative).
    discount
        ``common``: :math:`\log_2(j + 1)`, as above and in scikit-learn. ``original``:
        :math:`\max(1, \log_2 j)`, as in the paper and in LensKit, where the first two places
        weigh the same.

    References
    ----------
    Jarvelin and Kekalainen (2002), *Cumulated Gain-Based Evaluation of IR Techniques*.
    """

    gain: Literal["binary", "rating"] = "binary"
    discount: Literal["common", "original"] = "common"

    name: ClassVar[str] = "NDCG"

    @property
    def title(self) -> str:
        """The name as printed."""
        graded = ", graded" if self.gain == "rating" else ""
        return super().title + graded + (", original" if self.discount == "original" else "")

    def _discount(self) -> Floats:
        ranks = np.arange(1, self.k + 1)
        if self.discount == "common":
            return 1.0 / np.log2(ranks + 1)
        return 1.0 / np.maximum(np.log2(ranks), 1.0)

    def _columns(self, judged: Judged) -> tuple[dict[str, Floats], tuple[Exclusion, ...]]:
        discount = self._discount()
        if self.gain == "binary":
            best = np.cumsum(discount)[np.minimum(judged.n_relevant, self.k) - 1]
            gained = judged.hits @ discount[: judged.hits.shape[1]]
            return {"value": np.asarray(gained / best, dtype=np.float64)}, ()
        if judged.relevant.nnz and judged.relevant.data.min() < 0:
            raise PlanError("gain='rating' needs ratings of 0 or more; use gain='binary'")
        best = _best_gain(judged, discount)
        gained = judged.gains @ discount[: judged.gains.shape[1]]
        without = int(np.count_nonzero(best == 0))
        reason = "all relevant held-out ratings are 0, so no list has a gain"
        excluded = (Exclusion("accuracy", "users", without, reason, len(best)),) if without else ()
        return {"value": np.where(best > 0, gained / np.where(best > 0, best, 1), np.nan)}, excluded


def _best_gain(judged: Judged, discount: Floats) -> NDArray[np.float64]:
    """Return the discounted gain of each user's relevant items, highest first, cut at k."""
    counts = judged.n_relevant
    rows = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((-judged.relevant.data, rows))
    index = np.arange(len(rows)) - np.repeat(judged.relevant.indptr[:-1], counts)
    inside = index < len(discount)
    gains = judged.relevant.data[order][inside] * discount[index[inside]]
    return np.bincount(rows[inside], weights=gains, minlength=len(counts)).astype(np.float64)
