"""Lists made at one time, against what their users had asked not to see by then."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from ombud.data.dated import DatedLists, Requests
from ombud.data.exclusions import Exclusion
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics.base import Metric, Outputs, Rows
from ombud.questions.requests.tally import DAY, pairs_of, rows_of
from ombud.registry import metric
from ombud.stats.statistics import RatioOfSums

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset


@metric("request-leak")
@dataclass(frozen=True)
class RequestLeak(Metric):
    r"""Share of list places that are known to carry a label the user had asked not to see.

    .. math:: \frac{\sum_{(u, w)} |\{i \in L_u^k : w \in i\}|}{\sum_{(u, w)} |L_u^k|}

    over all requests of a user u for a label w that stand at the time `at`; by label, and for all
    requests together. Lists whose places have dates are measured by the analysis ``requests``.

    - **Unit of resampling**: the user.
    - **Undefined**: when no user with a standing request has a list.
    - **Does not capture**: labels that nobody has applied or voted on. Places whose label is
      unknown are counted beside the number, and the share if all of them carried it is there too.

    Parameters
    ----------
    path
        A file with `user`, `label`, `time`, and `until` where a request was taken back.
    k
        How many places of each list count.
    at
        When the lists were made, such as ``2024-12-31``; default, after all requests.
    older_than
        Only requests that were at least so many days old by then.
    """

    path: Path | None = None
    k: int = 100
    at: str = ""
    older_than: float = 0.0

    registered_name: ClassVar[str]
    of: ClassVar[Literal["recommender"]] = "recommender"
    null: ClassVar[float | None] = None
    statistic: ClassVar[RatioOfSums] = RatioOfSums()
    shallow_lists: ClassVar[Literal["said"]] = "said"

    def __post_init__(self) -> None:
        if self.path is None:
            raise PlanError("request-leak needs a path to a file with user, label and time")
        if self.k < 1 or self.older_than < 0:
            raise PlanError(
                f"k is {self.k} and older_than {self.older_than}; at least 1 and 0 are expected"
            )
        self._moment()

    @property
    def title(self) -> str:
        """The name as printed."""
        told = [f"at {self.at}"] if self.at else []
        told += [f"requests at least {self.older_than:g} days old"] if self.older_than else []
        return f"request leak@{self.k}" + (f" ({', '.join(told)})" if told else "")

    @property
    def depth(self) -> int:
        """How many places of a list are looked at."""
        return self.k

    def _moment(self) -> float | None:
        if not self.at:
            return None
        try:
            moment = datetime.fromisoformat(self.at)
        except ValueError:
            raise PlanError(f"at is {self.at!r}; a date such as 2024-12-31 was expected") from None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return, for each user with a standing request, the places that leak and all places."""
        if data.labels is None:
            raise PlanError("request-leak needs labels; the data has none")
        if not isinstance(outputs, Recommendations):
            raise PlanError("request-leak measures recommendations, not a moderator's decisions")
        requests = Requests.from_frame(str(self.path))
        latest = float(np.max(requests.times, initial=0.0)) + self.older_than * DAY
        moment = self._moment()
        when = latest if moment is None else moment
        lists = outputs.top(self.k)
        rows, places = np.nonzero(lists.items >= 0)
        shown = DatedLists(
            np.asarray(lists.users)[rows],
            lists.items[rows, places],
            lists.catalogue,
            places + 1,
            np.full(len(rows), when),
        )
        pairs = pairs_of(requests, shown, data.labels, at_once=True)
        kept = pairs.filter(pairs["delay"] >= self.older_than * DAY)
        asked = len(set(requests.users.tolist()))
        measured = rows_of(kept, data.labels.names)
        lost = asked - len(measured.ids)
        reason = "they have no list, or no request that stands at that time"
        gone = Exclusion("requests", "users who asked", lost, reason, asked)
        return Rows(
            unit=measured.unit,
            ids=measured.ids,
            columns=measured.columns,
            labels=measured.labels,
            exclusions=(gone,) if lost > 0 else (),
            notes=measured.notes,
            details=measured.details,
        )
