"""Systems that can be asked about a history, and of which nothing else is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import sparse

from ombud.errors import AuditedSystemError, PlanError
from ombud.systems.recommenders.model import Model

HistoryOf = Mapping[Any, float]
"""Item ids and their values."""


class TryAgainError(AuditedSystemError):
    """A system gave no answer this time; it may be asked again after some seconds.

    Parameters
    ----------
    reason
        What happened.
    wait
        Seconds to wait before the next try.
    """

    def __init__(self, reason: str, wait: float) -> None:
        super().__init__(reason)
        self.wait = wait


@runtime_checkable
class HistorySystem(Protocol):
    """Anything that answers a history with a list.

    Attributes
    ----------
    name
        The system's name in the report.
    version
        What its answers depend on beside the history; part of the cache's key.
    writes
        Whether asking leaves something behind, such as ratings in an account. Such a system is
        refused unless the plan says ``sandbox = true``.
    """

    name: str
    version: str
    writes: bool

    def recommend(self, history: HistoryOf, n: int) -> Sequence[Any]:
        """Return the n best item ids for a history, best first."""
        ...


@runtime_checkable
class ManyHistories(Protocol):
    """A system that answers many histories at once, faster than one by one."""

    def recommend_many(self, histories: Sequence[HistoryOf], n: int) -> list[Sequence[Any]]:
        """Return a list for each history."""
        ...


def check_writes(system: HistorySystem, sandbox: bool) -> None:
    """Refuse a system that would write to real accounts.

    Raises
    ------
    PlanError
        Unless the plan says that the system is a sandbox.
    """
    if system.writes and not sandbox:
        raise PlanError(
            f"{system.name} writes the histories it is asked about; edits exist in requests and in "
            "copies of data only. Say sandbox = true if no real account can be touched"
        )


@dataclass
class FunctionSystem:
    """A Python function of a history and a length.

    Examples
    --------
    >>> last = FunctionSystem(lambda history, n: sorted(set("abc") - set(history))[:n])
    >>> last.recommend({"a": 1.0}, 5)
    ['b', 'c']
    """

    function: Callable[[HistoryOf, int], Sequence[Any]]
    name: str = "function"
    version: str = ""
    writes: bool = False

    def recommend(self, history: HistoryOf, n: int) -> Sequence[Any]:
        """Return what the function returns."""
        return self.function(history, n)


class AskedModel:
    """A trained model of ombud, asked only through its lists.

    Parameters
    ----------
    model
        A trained model that folds in.
    """

    writes = False

    def __init__(self, model: Model) -> None:
        self.model, self.name = model, model.name
        self.version = repr(model)

    def recommend(self, history: HistoryOf, n: int) -> Sequence[Any]:
        """Return the model's list for a history."""
        return self.recommend_many([history], n)[0]

    def recommend_many(self, histories: Sequence[HistoryOf], n: int) -> list[Sequence[Any]]:
        """Return the model's lists for some histories."""
        data = self.model.interactions
        flat = [item for history in histories for item in history]
        codes = data.items.codes(flat) if flat else np.empty(0, np.int32)
        rows = np.repeat(np.arange(len(histories)), [len(h) for h in histories])
        values = np.array([v for h in histories for v in h.values()], np.float32)
        known = codes >= 0
        matrix = sparse.csr_array(
            sparse.coo_array(
                (values[known], (rows[known], codes[known])),
                shape=(len(histories), data.n_items),
            )
        )
        lists = self.model.recommend_for(matrix, min(n, data.n_items)).items
        return [data.items.take(row[row >= 0]).tolist() for row in lists]
