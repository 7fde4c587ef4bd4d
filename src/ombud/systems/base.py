"""What ombud audits: two protocols, one method each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from numpy.typing import NDArray

if TYPE_CHECKING:
    from ombud.data.decisions import Decisions
    from ombud.data.ids import Ids
    from ombud.data.interactions import Interactions
    from ombud.data.recommendations import Recommendations
    from ombud.data.texts import Texts


Progress = Callable[[int, int, str], None]
"""Called with (done, total, note) during long work."""


@runtime_checkable
class Recommender(Protocol):
    """Anything that answers with ranked lists."""

    name: str

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
        ...


@runtime_checkable
class TrainableRecommender(Recommender, Protocol):
    """A recommender that ombud can train."""

    def fit(self, interactions: Interactions, *, progress: Progress | None = None) -> Self:
        """Train on interactions and return the recommender itself."""
        ...


@runtime_checkable
class Moderator(Protocol):
    """Anything that decides which texts to flag."""

    name: str

    def moderate(self, texts: Texts) -> Decisions:
        """Return one outcome per text, in the order of the texts."""
        ...


@runtime_checkable
class RatingPredictor(Protocol):
    """A recommender that gives a number for a user and an item."""

    @property
    def predicts_ratings(self) -> bool:
        """Whether the number is a rating; a model of implicit feedback has scores that are none."""
        ...

    def predict(self, users: Ids, items: Ids) -> NDArray[Any]:
        """Return the number for each pair of a user and an item."""
        ...


@runtime_checkable
class ShowsSeen(Protocol):
    """A recommender that says whether its lists may hold items of the user's own history."""

    @property
    def recommends_seen(self) -> bool:
        """Whether seen items are meant to be there; without it they are refused."""
        ...


@runtime_checkable
class Recorded(Protocol):
    """A system that answers from a record, which can be hashed and counted."""

    @property
    def record(self) -> Recommendations | Decisions:
        """Everything that was recorded."""
        ...
