"""A reranker towards a mix of creators' identities, as plans name it: by an attribute of items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ombud.data.ids import Vocabulary
from ombud.errors import PlanError
from ombud.registry import recommender
from ombud.systems.base import Recommender
from ombud.systems.rerankers.balance import Balance, BalancedReranker
from ombud.systems.rerankers.quota import UNKNOWN_IDENTITY, Pass

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset


@recommender("balanced")
class CreatorReranker(BalancedReranker):
    """A recommender whose lists are kept close to a mix of creators' identities.

    Identities come from the table of items of the audited data; see `BalancedReranker`.

    Parameters
    ----------
    inner
        The recommender; or, as a plan has it, its `type` and arguments.
    attribute
        Which attribute of the items; default, the only one.
    target, take, exposure, candidates, name
        As in `BalancedReranker`.
    """

    def __init__(
        self,
        inner: Recommender | Mapping[str, Any],
        attribute: str = "",
        target: Balance = "equal",
        take: Pass = "greedy",
        exposure: bool = False,
        candidates: int = 20,
        name: str = "",
    ) -> None:
        # The identities are known when the data is; two names stand in for them until then.
        nobody = Vocabulary(np.empty(0, dtype=np.int64)), np.empty(0, dtype=np.int64)
        super().__init__(inner, *nobody, ("", "-"), "equal", take, exposure, candidates, name)
        self.attribute = attribute
        self.target = target

    def bind(self, data: Dataset) -> Self:
        """Take identities and histories from the data."""
        if data.items is None:
            raise PlanError(f"{self.name} needs a table of items; the data has none")
        known = data.items.descriptive
        if self.attribute not in known and (self.attribute or len(known) > 1):
            raise PlanError(f"{self.name}: name one attribute of the items: {', '.join(known)}")
        values = data.items.values[self.attribute or known[0]]
        there = np.array([value is not None for value in values], dtype=bool)
        found, codes = np.unique(values[there].astype(str), return_inverse=True)
        if len(found) < 2:
            raise PlanError(f"{self.name}: a mix needs two identities; items have {len(found)}")
        if isinstance(self.target, Mapping) and set(self.target) != set(found):
            raise PlanError(
                f"{self.name}: target names {', '.join(sorted(self.target))}; identities are "
                f"{', '.join(found)}"
            )
        self.codes = np.full(len(values), UNKNOWN_IDENTITY, dtype=np.int64)
        self.codes[there] = codes
        self.items = data.items.items
        self.identities = tuple(str(name) for name in found)
        return super().bind(data)
