"""How lists are divided among creators' identities, and how far that is from users' profiles."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ombud.data.exclusions import Exclusion
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics.base import ListMetric, Notes, Outputs, Rows
from ombud.questions.authors.creators import creators_of, exposure_of, profile_users, shares
from ombud.registry import metric
from ombud.stats.statistics import Mean

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset


# Shares of lists and profiles that differ by less are the same share.
_ROUNDING = 1e-12
_HELD = "one of their interactions is held out: they serve to measure accuracy"


@dataclass(frozen=True)
class _Balance(ListMetric):
    k: int = 50
    attribute: str = ""
    exposure: bool = False
    least: int = 5

    registered_name: ClassVar[str]
    statistic: ClassVar[Mean] = Mean()
    shallow_lists: ClassVar[Literal["said"]] = "said"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.least < 1:
            raise PlanError(f"least is {self.least}; it must be at least 1")

    @property
    def _how(self) -> str:
        return f"@{self.k}" + (", by exposure" if self.exposure else "")

    def _measure(self, outputs: Outputs, data: Dataset, gap: bool) -> Rows:
        if not isinstance(outputs, Recommendations):
            raise PlanError(f"{self.registered_name} measures lists, not a moderator's decisions")
        creators = creators_of(data, self.attribute, self.registered_name)
        assert data.interactions is not None  # creators_of has checked
        users = np.asarray(outputs.users)
        profiles = creators.in_profiles(data.interactions, users)
        weights = exposure_of(self.k) if self.exposure else None
        lists = creators.in_lists(outputs, self.k, weights)
        sample = profile_users(data, users)
        few = profiles.sum(axis=1) < self.least
        bare = lists.sum(axis=1) == 0
        lost = (
            (~sample, _HELD),
            (sample & few, f"fewer than {self.least} items of known {creators.attribute}"),
            (sample & ~few & bare, f"no item of known {creators.attribute} in the list"),
        )
        kept = sample & ~few & ~bare
        values, past = shares(lists[kept]), shares(profiles[kept])
        names = creators.names
        told = list(range(len(names)))
        sums = {"profile": past, "list": values}
        if gap:
            values = values - past
            told = [creators.index(name) for name in creators.told]
            values, names = values[:, told], creators.told
        context = {name: value[:, told] for name, value in sums.items()}
        tallies = {name: value.sum(axis=0)[told] for name, value in sums.items()}
        tallies["users"] = np.array([float(np.count_nonzero(kept))])
        return Rows(
            unit="user",
            ids=users[kept],
            columns={"value": values},
            labels=names,
            exclusions=tuple(
                Exclusion("balance", "users", int(np.count_nonzero(who)), reason, len(users))
                for who, reason in lost
                if who.any()
            ),
            details=self.notes(tallies, names).details,
            tallies=tallies,
            context=context,
            events=np.abs(values) > _ROUNDING if gap else None,
        )

    def block_fault(self, tables: Collection[str]) -> str:
        """Return why users cannot be measured in blocks; empty when they can."""
        if "test" in tables:
            return "who belongs to the profiles depends on of whom interactions are held out"
        return ""

    def notes(self, tallies: Mapping[str, NDArray[np.float64]], labels: tuple[str, ...]) -> Notes:
        """Return the mean share of each identity in profiles and in lists."""
        users = float(tallies["users"][0])
        if not users:
            return Notes()
        sides = {name: tallies[name] / users for name in ("profile", "list")}
        return Notes(
            details={
                label: {name: float(means[g]) for name, means in sides.items()}
                for g, label in enumerate(labels)
            }
        )


@metric("list-balance")
@dataclass(frozen=True)
class ListBalance(_Balance):
    r"""Share of each identity among the items of known identity in a user's list.

    .. math:: \frac{1}{|U|} \sum_u \frac{\sum_{j \le k} w_j [g(L_{u,j}) = g]}
              {\sum_{j \le k} w_j [g(L_{u,j}) \text{ known}]}

    with :math:`w_j = 1`, or :math:`1 / \log_2(j + 1)` by exposure.

    - **Unit of resampling**: the user.
    - **Undefined**: when no user has a list with a known item.
    - **Does not capture**: items whose creator is not known; they are fewer among popular items.

    Parameters
    ----------
    k
        How many places of each list count.
    attribute
        Which attribute of the items; default, the only one.
    exposure
        Whether places count by their exposure.
    least
        Users with fewer items of known identity in their history are left out and counted.

    References
    ----------
    Ekstrand and Kluver (2021), Exploring author gender in book rating and recommendation, UMUAI.
    """

    @property
    def title(self) -> str:
        """The name as printed."""
        return f"list balance{self._how}"

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return, for each user and identity, its share in the list."""
        return self._measure(outputs, data, gap=False)


@metric("balance-gap")
@dataclass(frozen=True)
class BalanceGap(_Balance):
    r"""Share of an identity in a user's list minus its share in the user's own profile.

    Both shares are among items of known identity. Above 0, lists hold more of the identity than
    the same users' histories do. Of two identities, only the less frequent is told: the other has
    the same gap with the other sign.

    - **Unit of resampling**: the user (both shares move together).
    - **Undefined**: when no user has both shares.
    - **Does not capture**: why. Genre, popularity and what is not known may all play a part; and
      it says nothing about what the share should be.

    Parameters
    ----------
    k, attribute, exposure, least
        As in `ListBalance`.
    """

    null: ClassVar[float | None] = 0.0
    sides: ClassVar[tuple[str, str]] = ("list", "profile")

    @property
    def title(self) -> str:
        """The name as printed."""
        return f"balance gap{self._how}"

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return, for each user and identity, list share minus profile share."""
        return self._measure(outputs, data, gap=True)


@metric("rank-fairness")
@dataclass(frozen=True)
class RankFairness(_Balance):
    r"""How far the exposure that each identity gets in a user's list is from a target.

    With shares of exposure :math:`s_{ug}` among items of known identity (``list-balance``) and
    target shares :math:`t_g`: attention-weighted rank fairness,
    :math:`1 - \frac12 \sum_g |s_{ug} - t_g|`, 1 where both are the same; or the loss of expected
    exposure, :math:`\sum_g (s_{ug} - t_g)^2`, 0 where both are the same. Means over users. Diaz and
    others take the loss over items, in expectation over rankings that a system draws; here it is
    over identities, of the one list that each user gets.

    - **Unit of resampling**: the user.
    - **Undefined**: when no user has a list with a known item.
    - **Does not capture**: which identity gets less, what is relevant, and items whose creator is
      not known. A target is a choice; no target is right by itself.

    Parameters
    ----------
    k, attribute, exposure, least
        As in ``list-balance``; exposure counts by default, the attention that positions get.
    target
        ``"platform"``, the shares among items; ``"even"``; or ``"profile"``, the user's own shares.
    loss
        ``"awrf"`` or ``"expected-exposure"``.

    References
    ----------
    Sapiezynski, Zeng, Robertson, Mislove and Wilson (2019), Quantifying the impact of user
    attention on fair group representation in ranked lists, WWW; Diaz, Mitra, Ekstrand, Biega and
    Carterette (2020), Evaluating stochastic rankings with expected exposure, CIKM.
    """

    exposure: bool = True
    target: Literal["platform", "even", "profile"] = "platform"
    loss: Literal["awrf", "expected-exposure"] = "awrf"

    @property
    def title(self) -> str:
        """The name as printed."""
        name = "rank fairness" if self.loss == "awrf" else "expected-exposure loss"
        return f"{name}{self._how}, target: {self.target}"

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return each user's fairness or loss."""
        rows = self._measure(outputs, data, gap=False)
        creators = creators_of(data, self.attribute, self.registered_name)
        assert data.interactions is not None  # creators_of has checked
        codes = creators.on(data.interactions.items)
        items = np.bincount(codes[codes >= 0], minlength=len(creators.names)).astype(np.float64)
        fixed = {"platform": items, "even": np.ones(len(items))}.get(self.target)
        wanted = rows.context["profile"] if fixed is None else (fixed / fixed.sum())[None, :]
        gaps = rows.columns["value"] - wanted
        value = 1 - np.abs(gaps).sum(axis=1) / 2 if self.loss == "awrf" else (gaps**2).sum(axis=1)
        return replace(
            rows, columns={"value": value[:, None]}, labels=("",), details={}, tallies={},
            context={},
        )  # fmt: skip

    def block_fault(self, tables: Collection[str]) -> str:
        """Return why users cannot be measured in blocks."""
        del tables
        return "the shares of identities on the platform are of all items"
