"""A reranker stands between a recommender and its users: it asks for more and changes the order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from ombud import registry
from ombud.data.dataset import Dataset
from ombud.data.interactions import Interactions
from ombud.errors import PlanError
from ombud.systems.base import Progress, Recommender


class Reranker(Recommender):
    """A recommender around another one.

    Parameters
    ----------
    inner
        The recommender; or, as a plan has it, its `type` and arguments.
    name
        The system's name in the report.
    """

    trainable = True

    def __init__(self, inner: Recommender | Mapping[str, Any], name: str) -> None:
        if isinstance(inner, Mapping):
            options = dict(inner)
            kind = options.pop("type", None)
            if kind is None:
                raise PlanError("inner has no type; name a registered recommender")
            inner = registry.create("recommender", kind, options)
        if not isinstance(inner, Recommender):
            raise PlanError(f"inner is {type(inner).__name__}; a recommender was expected")
        self.inner: Recommender = inner
        self.name = name or f"{type(self).__name__} of {inner.name}"
        self.data: Dataset | None = None

    def bind(self, data: Dataset) -> Self:
        """Take labels and histories from the data."""
        data.need("labels", self.name)
        self.data = data
        self.inner.bind(data)
        return self

    def fit(self, interactions: Interactions, *, progress: Progress | None = None) -> Self:
        """Train the inner recommender, if it can be trained."""
        self.inner.fit(interactions, progress=progress)
        return self

    def _data(self) -> Dataset:
        if self.data is None:
            raise PlanError(f"{self.name} was asked before bind(data) gave it the labels")
        return self.data
