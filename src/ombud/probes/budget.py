"""How many questions a search may ask, counted, and never exceeded."""

from __future__ import annotations

from threading import Lock

from ombud.errors import OmbudError, PlanError


class BudgetSpentError(OmbudError):
    """A search wanted to ask more questions than it was allowed."""


class QueryBudget:
    """A number of questions that threads may share; it is taken before a question is asked.

    Parameters
    ----------
    limit
        The most questions; None for no limit.

    Examples
    --------
    >>> budget = QueryBudget(3)
    >>> budget.grant(2), budget.grant(2), budget.grant(2)
    (2, 1, 0)
    >>> budget.spent, budget.left
    (3, 0)
    """

    def __init__(self, limit: int | None = None) -> None:
        if limit is not None and limit < 1:
            raise PlanError(f"queries is {limit}; at least one question is needed")
        self.limit = limit
        self._spent = 0
        self._lock = Lock()

    @property
    def spent(self) -> int:
        """How many questions were taken."""
        return self._spent

    @property
    def left(self) -> int | None:
        """How many questions are left; None without a limit."""
        return None if self.limit is None else self.limit - self._spent

    def grant(self, wanted: int) -> int:
        """Take up to ``wanted`` questions and return how many were there to take."""
        with self._lock:
            given = wanted if self.limit is None else min(wanted, self.limit - self._spent)
            self._spent += given
            return given

    def take(self, wanted: int = 1) -> None:
        """Take exactly ``wanted`` questions.

        Raises
        ------
        BudgetSpentError
            When there are fewer; then none is taken.
        """
        with self._lock:
            if self.limit is not None and self._spent + wanted > self.limit:
                raise BudgetSpentError(
                    f"{wanted} more questions were wanted, and {self.limit - self._spent} of "
                    f"{self.limit} are left"
                )
            self._spent += wanted
