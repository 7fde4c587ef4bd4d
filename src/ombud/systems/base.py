"""What ombud audits: one base for each kind of system, with one method that must be given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions
from ombud.data.ids import Ids
from ombud.data.interactions import Interactions
from ombud.data.recommendations import Recommendations
from ombud.data.texts import Texts
from ombud.systems.quote import CostQuote

Progress = Callable[[int, int, str], None]
"""Called with (done, total, note) during long work."""


def silent(done: int, total: int, note: str) -> None:
    """Show no progress."""


class Recommender(ABC):
    """Anything that answers with ranked lists; `recommend` and a `name` must be given.

    An audit also takes functions and objects of other classes (`ombud.systems.own`).
    """

    name: str

    trainable: bool = False
    """Whether `fit` trains it on the interactions of the audit."""

    fitted_elsewhere: bool = False
    """Whether somebody else trained it, so that it may have seen held-out interactions."""

    predicts_ratings: bool | None = False
    """Whether `predict` gives ratings; a model of implicit feedback has scores that are none.
    None when a system of somebody else has `predict`, but does not say."""

    recommends_seen: bool | None = None
    """Whether items of the user's own history are meant to be in lists. False refuses them; None
    refuses them in answers that are not `Recommendations`, which say what was shown."""

    @abstractmethod
    def recommend(self, users: Ids, n: int, exclude_seen: bool = True) -> Recommendations:
        """Return the n best items for each user, best first.

        Parameters
        ----------
        users
            User ids.
        n
            The length of a list; shorter lists are allowed when the system has no more to give.
        exclude_seen
            Whether items of the user's own history are left out. A system that cannot obey
            (a recorded file) ignores it and says so in its documentation.
        """

    def bind(self, data: Dataset) -> Self:
        """Take what is needed from the data of the audit before anything is asked."""
        del data
        return self

    def fit(self, interactions: Interactions, *, progress: Progress | None = None) -> Self:
        """Train on interactions and return the recommender itself."""
        del interactions, progress
        return self

    def predict(self, users: Ids, items: Ids) -> NDArray[Any]:
        """Return the number for each pair of a user and an item."""
        raise NotImplementedError(f"{self.name} predicts nothing")

    @property
    def record(self) -> Recommendations | None:
        """Everything that was recorded, of a system that answers from a record."""
        return None

    def quote_lists(self, users: Ids, n: int, part: int) -> CostQuote | None:
        """Return what asking a service for some users' lists would take; asks nothing."""
        del users, n, part
        return None


class Moderator(ABC):
    """Anything that decides which texts to flag; `moderate` and a `name` must be given.

    An audit also takes functions and objects of other classes (`ombud.systems.own`).
    """

    name: str

    is_service: ClassVar[bool] = False
    """Whether it is asked over a network, so that answers cost and errors may pass."""

    former_threshold: ClassVar[float | None] = None
    """The score from which earlier versions of ombud flagged where a plan set no threshold."""

    @abstractmethod
    def moderate(self, texts: Texts, *, progress: Progress | None = None) -> Decisions:
        """Return one outcome per text, in the order of the texts."""

    @property
    def record(self) -> Decisions | None:
        """Everything that was recorded, of a system that answers from a record."""
        return None

    def quote(self, texts: Texts) -> CostQuote | None:
        """Return what asking a service about some texts would take and cost; asks nothing."""
        del texts
        return None
