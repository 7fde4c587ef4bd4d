"""Where to look for a model's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ombud.data.interactions import Interactions
from ombud.errors import PlanError


@dataclass(frozen=True)
class Range:
    """Numbers from low to high, ends included; whole numbers when both ends are."""

    # The ends.
    low: float
    high: float
    log: bool = False  # whether to search on a logarithmic scale

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise PlanError(f"a range from {self.low} to {self.high} is empty; low < high expected")
        if self.log and self.low <= 0:
            raise PlanError(f"a logarithmic range begins above 0, not at {self.low}")

    def suggest(self, trial: Any, name: str) -> float:
        """Ask an Optuna trial for a value."""
        if isinstance(self.low, int) and isinstance(self.high, int):
            return int(trial.suggest_int(name, self.low, self.high, log=self.log))
        return float(trial.suggest_float(name, self.low, self.high, log=self.log))


@dataclass(frozen=True)
class Choice:
    """One of several values."""

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise PlanError("there is nothing to choose from: give at least one value")

    def suggest(self, trial: Any, name: str) -> Any:
        """Ask an Optuna trial for a value."""
        return trial.suggest_categorical(name, self.values)


Space: TypeAlias = dict[str, Range | Choice]

_FACTORS = Range(8, 128, log=True)
_NEIGHBOURS: Space = {"neighbours": Range(5, 200, log=True), "min_neighbours": Range(1, 5)}

SPACES: dict[str, Space] = {
    "bpr": {
        "factors": _FACTORS, "epochs": Range(20, 200, log=True),
        "learning_rate": Range(0.001, 0.1, log=True),
        "regularization": Range(0.0001, 0.1, log=True),
    },
    "explicit-als": {
        "factors": _FACTORS, "iterations": Range(5, 30),
        "regularization": Range(0.005, 0.5, log=True), "damping": Range(0.5, 50.0, log=True),
    },
    "implicit-als": {
        "factors": _FACTORS, "iterations": Range(5, 30),
        "regularization": Range(0.001, 10.0, log=True), "alpha": Range(1.0, 100.0, log=True),
    },
    "item-knn": _NEIGHBOURS,
    "popular": {
        "by": Choice(("count", "mean", "damped-mean")), "damping": Range(0.5, 50.0, True),
    },
    "spark-als": {
        "factors": _FACTORS, "iterations": Range(5, 30),
        "regularization": Range(0.005, 1.0, log=True),
    },
    "svd": {
        "factors": _FACTORS, "epochs": Range(10, 60, log=True),
        "learning_rate": Range(0.001, 0.03, log=True),
        "regularization": Range(0.005, 0.2, log=True),
    },
    "user-knn": _NEIGHBOURS,
}  # fmt: skip
"""The default space of each model."""

# Zero itself would make neighbours of users with nothing in common.
_SIMILAR = Range(1e-6, 0.1)

PUBLISHED: dict[str, Space] = {
    "bpr": {
        "factors": Range(5, 250), "regularization": Range(0.0, 0.25),
        "learning_rate": Range(0.0001, 0.1),
    },
    "explicit-als": {
        "factors": Range(5, 300), "regularization": Range(1e-6, 5.0, log=True),
        "damping": Range(0.0, 25.0),
    },
    "implicit-als": {
        "factors": Range(5, 500), "regularization": Range(1e-6, 5.0, log=True),
        "alpha": Range(1.0, 50.0),
    },
    "item-knn": {"neighbours": Range(5, 250), "min_similarity": _SIMILAR},
    "user-knn": {"neighbours": Range(5, 500), "min_similarity": _SIMILAR},
}  # fmt: skip
"""The ranges of Ekstrand and Kluver; one regularization stands for users and items."""


def space_for(
    model: str, space: Mapping[str, Any] | None = None, data: Interactions | None = None
) -> Space:
    """Return where to look: the given space, or the model's own.

    Parameters
    ----------
    model
        The registered name of a recommender.
    space
        By parameter: a `Range` or `Choice`, or as a plan has it: ``{"low": 1, "high": 9, "log":
        true}``, or a list of values.
    data
        Cuts the range of `factors` to what the data can tell apart.
    """
    if space is None and model not in SPACES:
        raise PlanError(f"{model} has no default search space; known: {', '.join(sorted(SPACES))}")
    result: Space = {}
    faults = []
    for name, asked in (SPACES[model] if space is None else space).items():
        try:
            result[name] = _parsed(asked)
        except (PlanError, TypeError) as error:
            faults.append(f"{name}: {error}")
    if faults:
        raise PlanError(f"search space of {model}: {'; '.join(faults)}")
    if not result:
        raise PlanError(f"the search space of {model} is empty")
    factors = result.get("factors")
    if data is not None and isinstance(factors, Range):
        most = min(data.n_users, data.n_items)
        if factors.high > most:
            result["factors"] = (
                Range(factors.low, most, factors.log) if factors.low < most else Choice((most,))
            )
    return result


def _parsed(asked: Any) -> Range | Choice:
    if isinstance(asked, Range | Choice):
        return asked
    if isinstance(asked, list | tuple):
        return Choice(tuple(asked))
    if isinstance(asked, Mapping):
        unknown = sorted(set(asked) - {"low", "high", "log"})
        if not unknown:
            return Range(**asked)
        raise PlanError(f"low, high and log were expected, not {', '.join(unknown)}")
    raise PlanError(f"found {asked!r}; a list of values, or low and high were expected")
