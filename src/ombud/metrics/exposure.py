"""How much of the catalogue is shown, and how unevenly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics.accuracy.lists import DistinctItems, GiniOfExposure, ListStatistic, list_columns
from ombud.metrics.base import ListMetric, Outputs, Rows
from ombud.metrics.engine.comparisons import Comparisons
from ombud.registry import metric


@dataclass(frozen=True)
class _Exposure(ListMetric):
    """What the metrics of all lists together have in common."""

    k: int = 10

    registered_name: ClassVar[str]
    by_item: ClassVar[Literal["catalogue"]] = "catalogue"
    reads: ClassVar[Literal["outputs"]] = "outputs"
    null: ClassVar[float | None] = None
    contrast: ClassVar[Literal["difference"]] = "difference"

    @property
    def comparisons(self) -> Comparisons:
        """No group is compared with another: what is measured depends on their sizes."""
        return Comparisons(groups=None)

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return each user's list, as item codes of the catalogue."""
        if not isinstance(outputs, Recommendations):
            raise PlanError("exposure is measured on recommendations, not on decisions")
        if data.interactions is None:
            raise PlanError("exposure needs the catalogue: the data has no interactions")
        catalogue = data.interactions.items
        lists = outputs.top(self.k)
        codes = lists.in_catalogue(catalogue)
        kept = lists.lengths > 0
        result = []
        for count, what, reason, of in (
            (int(np.count_nonzero(~kept)), "users", "no list was recommended", len(lists)),
            (int(np.count_nonzero(codes == -2)), "places", "not an item of the catalogue", None),
        ):
            if count:
                result.append(Exclusion("exposure", what, count, reason, of))
        values = np.full((int(np.count_nonzero(kept)), self.k + 1), -1.0)
        values[:, 0] = len(catalogue)
        values[:, 1 : codes.shape[1] + 1] = np.maximum(codes[kept], -1)
        return Rows(
            unit="user",
            ids=np.asarray(lists.users)[kept],
            columns={n: values[:, [c]] for c, n in enumerate(list_columns(self.k))},
            exclusions=tuple(result),
            notes={"": self._note()},
        )

    def _note(self) -> str:
        return "depends on the number of users; do not compare groups of different size"


@dataclass(frozen=True)
class _Rarefied(_Exposure):
    """Adds the number of users to which distinct items are scaled."""

    users: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.users is not None and self.users < 1:
            raise PlanError(f"users is {self.users}; at least 1 was expected")

    @property
    def comparisons(self) -> Comparisons:
        """Groups are compared where the number of users is the same for all."""
        return super().comparisons if self.users is None else Comparisons()

    def _note(self) -> str:
        return super()._note() if self.users is None else f"expected for {self.users:,} users"

    def _for(self) -> str:
        return "" if self.users is None else f" of {self.users:,} users"


@metric("coverage")
@dataclass(frozen=True)
class Coverage(_Rarefied):
    r"""Share of the catalogue that stands in at least one list.

    .. math:: \frac{|\bigcup_u L_u^k|}{|I|} \quad\text{or, for } m \text{ users,}\quad
              \frac{1}{|I|} \sum_i \left(1 - \binom{n - n_i}{m} / \binom{n}{m}\right)

    with :math:`n` lists, :math:`n_i` of which hold item :math:`i`.

    - **Unit of resampling**: the user, in linear form (see `ombud.metrics.accuracy.lists`): the
      interval is about the expected coverage for *as many* users, with the jackknife's
      variance, which tends to be too wide rather than too narrow.
    - **Undefined**: when there is no list, or fewer lists than `users`.
    - **Does not capture**: how often an item is shown. It grows with the number of users, so
      groups of different size are only comparable with `users` set.

    Parameters
    ----------
    k
        How many places of each list count.
    users
        Expected coverage for so many of the users (rarefaction, Hurlbert 1971); default, all.

    References
    ----------
    Ge, Delgado-Battenfeld and Jannach (2010), *Beyond Accuracy: Evaluating Recommender Systems by
    Coverage and Serendipity*; Hurlbert (1971), *The Nonconcept of Species Diversity*.

    Examples
    --------
    >>> Coverage(k=2).statistic.point(np.array([[4.0, 0, 1], [4, 1, 2]]))
    0.75
    """

    @property
    def title(self) -> str:
        """The name as printed."""
        return f"coverage@{self.k}{self._for()}"

    @property
    def statistic(self) -> ListStatistic:
        """Distinct items over the catalogue."""
        return DistinctItems(self.k, "catalogue", self.users)


@metric("distinct-share")
@dataclass(frozen=True)
class DistinctShare(_Rarefied):
    r"""Distinct items of all lists over all places: 1 when no two users get the same item.

    .. math:: \frac{|\bigcup_u L_u^k|}{\sum_u |L_u^k|}

    - **Unit of resampling**: the user, in linear form, as for `Coverage`.
    - **Undefined**: when there is no list, or fewer lists than `users`.
    - **Does not capture**: how large the catalogue is. It falls with the number of users, so
      groups of different size are only comparable with `users` set.

    Parameters
    ----------
    k
        How many places of each list count.
    users
        Expected for so many of the users; default, all.
    """

    @property
    def title(self) -> str:
        """The name as printed."""
        return f"distinct share@{self.k}{self._for()}"

    @property
    def statistic(self) -> ListStatistic:
        """Distinct items over filled places."""
        return DistinctItems(self.k, "places", self.users)


@metric("gini")
@dataclass(frozen=True)
class Gini(_Exposure):
    r"""Gini coefficient of how many lists hold each item of the catalogue; 0 is even.

    .. math:: \frac{2 \sum_r r\, x_{(r)}}{|I| \sum_i x_i} - \frac{|I| + 1}{|I|}

    with exposures :math:`x_{(1)} \le x_{(2)} \le \ldots` (items in no list included).

    - **Unit of resampling**: the user, in linear form, as for `Coverage`.
    - **Undefined**: when there is no list.
    - **Does not capture**: the place within a list, and whether uneven exposure is what users
      want. With few users it is high whatever the system does (most items cannot be shown).

    Parameters
    ----------
    k
        How many places of each list count.

    References
    ----------
    Fleder and Hosanagar (2009), *Blockbuster Culture's Next Rise or Fall*; the definition is that
    of LensKit's ``ListGini``.
    """

    @property
    def title(self) -> str:
        """The name as printed."""
        return f"Gini@{self.k}"

    @property
    def statistic(self) -> ListStatistic:
        """The Gini coefficient of exposure."""
        return GiniOfExposure(self.k)
