"""Whether what people asked not to see is shown to them all the same."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ombud.data.avoid_lists import Avoided
from ombud.data.exclusions import Exclusion
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics.base import ListMetric, Notes, Outputs, Rows
from ombud.registry import metric
from ombud.stats.statistics import RatioOfSums

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset


@metric("avoid-leak")
@dataclass(frozen=True)
class AvoidLeak(ListMetric):
    r"""Share of list places that are known to carry a label the user avoids.

    .. math:: \frac{\sum_u |\{i \in L_u^k : i \text{ carries a label that } u
              \text{ avoids}\}|}{\sum_u |L_u^k|}

    The sums are over the users who avoid something. With an avoid list in force it must be 0, and
    the number beside it, of places looked at, says how much that is worth; places whose label is
    unknown are counted beside it too.

    - **Unit of resampling**: the user.
    - **Undefined**: when no user who avoids something has a list.
    - **Does not capture**: labels that nobody has applied or voted on: an item whose label is
      unknown may carry it.

    Parameters
    ----------
    k
        How many places of each list count.
    labels
        Labels that everyone avoids.
    path
        A file with `user` and `label`: what each user avoids.
    about
        Words added to the title, to tell several avoid lists apart.
    systems
        Names of the systems that it is about: those with the avoid list, and those it was put
        around. Default, all; elsewhere nobody has asked to avoid anything.
    """

    k: int = 100
    labels: tuple[str, ...] = ()
    path: Path | None = None
    about: str = ""
    systems: tuple[str, ...] = ()

    registered_name: ClassVar[str]
    null: ClassVar[float | None] = None
    contrast: ClassVar[Literal["difference"]] = "difference"
    statistic: ClassVar[RatioOfSums] = RatioOfSums()
    shallow_lists: ClassVar[Literal["said"]] = "said"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.labels and self.path is None:
            raise PlanError("avoid-leak needs labels, or a path to a file with user and label")

    @property
    def title(self) -> str:
        """The name as printed."""
        return f"avoid leak@{self.k}" + (f" ({self.about})" if self.about else "")

    @property
    def avoided(self) -> Avoided:
        """What is avoided."""
        if self.path is None:
            return Avoided.of(everyone=self.labels)
        return Avoided.from_frame(str(self.path), everyone=self.labels)

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return, for each user, the places that leak and all places."""
        data.need("labels", "avoid-leak")
        if not isinstance(outputs, Recommendations):
            raise PlanError("avoid-leak measures recommendations, not a moderator's decisions")
        return leak_rows(outputs.top(self.k), data, self.avoided)

    def block_fault(self, tables: Collection[str]) -> str:
        """Return nothing: a user's row depends on that user alone."""
        del tables
        return ""

    def notes(self, tallies: Mapping[str, NDArray[np.float64]], labels: tuple[str, ...]) -> Notes:
        """Return how many places leak, and of how many it is not known."""
        del labels
        return leak_told(tallies)


def leak_rows(lists: Recommendations, data: Dataset, avoided: Avoided) -> Rows:
    """Return the rows of `AvoidLeak` for lists and what is avoided."""
    assert data.labels is not None  # measure has checked
    concerned = avoided.for_users(lists.users, data.labels.names).any(axis=1)
    kept = concerned & (lists.lengths > 0)
    result, unknown = avoided.judge(lists, data.labels)
    leaks, places = result.sum(axis=1)[kept], lists.lengths[kept]
    sums = {
        "leaks": leaks.sum(),
        "places": places.sum(),
        "users": len(places),
        "unknown": unknown[kept].sum(),
    }
    tallies = {name: np.array([float(value)]) for name, value in sums.items()}
    told = leak_told(tallies)
    gone = int(np.count_nonzero(~concerned))
    reason = "they avoid nothing"
    return Rows(
        unit="user",
        ids=np.asarray(lists.users)[kept],
        columns={
            "numerator": leaks[:, None].astype(np.float64),
            "denominator": places[:, None].astype(np.float64),
        },
        exclusions=(Exclusion("avoid-leak", "users", gone, reason, len(lists)),) if gone else (),
        notes=told.by_label,
        details=told.details,
        tallies=tallies,
        events=leaks[:, None],
    )


def leak_told(tallies: Mapping[str, NDArray[np.float64]]) -> Notes:
    """Return the note and the details of `AvoidLeak` from its sums over users."""
    told = {name: int(value[0]) for name, value in tallies.items()}
    note = (
        f"{told['leaks']:,} of {told['places']:,} places of {told['users']:,} users carry "
        f"what their user avoids; of {told['unknown']:,} it is not known"
    )
    return Notes({"": note}, {"": told})
