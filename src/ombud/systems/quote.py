"""What a run would cost, before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from ombud.errors import PlanError

CHARACTERS_PER_TOKEN = 4
_ASSUMED_SECONDS = 0.5


def least_seconds(
    requests: int,
    times: Sequence[float],
    concurrency: int,
    per_second: float | None,
    per_minute: float | None,
) -> tuple[float, str]:
    """Return how long some requests take at least, and what that assumes.

    `times` are the seconds that earlier replies took; None is no limit.

    Examples
    --------
    >>> least_seconds(120, [1.0, 3.0], 4, None, 60)
    (120.0, '')
    >>> least_seconds(8, [], 4, None, None)
    (1.0, 'assuming replies in 0.5 s')
    """
    seconds = requests * (median(times) if times else _ASSUMED_SECONDS) / concurrency
    rates = [rate for rate in (per_second, per_minute and per_minute / 60) if rate]
    if rates:
        seconds = max(seconds, requests / min(rates))
    assumed = f"assuming replies in {_ASSUMED_SECONDS} s"
    return seconds, assumed if requests and not times else ""


@dataclass(frozen=True)
class Price:
    """What a service asks for its work.

    Parameters
    ----------
    amount
        For one unit; None when unknown, 0 when the service is free.
    unit
        What the amount is for. Tokens are counted as four characters each: an approximation.
    currency
        Of the amount.
    """

    # A misspelt setting in a plan is a fault, not silence.
    __pydantic_config__ = {"extra": "forbid"}

    amount: float | None = None
    unit: Literal["text", "1k-characters", "1m-tokens"] = "text"
    currency: str = "USD"

    def of(self, characters: int, questions: int, overhead: int) -> float | None:
        """Return the price of some questions.

        Parameters
        ----------
        characters
            Of all texts together.
        questions
            How many texts.
        overhead
            Characters of prompt around each text.

        Examples
        --------
        >>> Price(0.5, "1k-characters").of(characters=5000, questions=10, overhead=0)
        2.5
        """
        total = characters + overhead * questions
        units = {
            "text": float(questions),
            "1k-characters": total / 1000,
            "1m-tokens": total / CHARACTERS_PER_TOKEN / 1e6,
        }
        return None if self.amount is None else self.amount * units[self.unit]


@dataclass(frozen=True)
class CostQuote:
    """What a run would ask, cost and take."""

    system: str  # Whom it would ask
    host: str  # where the texts would go
    texts: int  # texts, times repeats; of a recommender, users
    known: int  # of these, already answered in the cache
    unsent: int  # of these, never sent: empty, or over the service's limit
    uncertain: int  # of these, in flight when an earlier run was killed
    questions: int  # Distinct texts, times repeats, that would be sent
    requests: int  # HTTP requests for them, retries not counted
    cost: float | None  # in `currency`; None when no price was given
    currency: str  # of the cost
    # At least this long, from the rate limit, the concurrency and the time of a reply.
    seconds: float
    note: str  # what the figures assume
    what: str = "texts"  # what is asked about, in the plural

    def __str__(self) -> str:
        if self.cost is None:
            cost = "cost unknown (no price given)"
        else:
            cost = f"about {self.cost:,.2f} {self.currency}" if self.cost else "no cost"
        took = f"{self.seconds:,.0f} s" if self.seconds < 120 else f"{self.seconds / 60:,.0f} min"
        parts = [
            f"{self.system} at {self.host}: {self.questions:,} of {self.texts:,} {self.what} to "
            f"ask in {self.requests:,} requests, {cost}, at least {took}",
            f"{self.known:,} already answered" if self.known else "",
            f"{self.unsent:,} empty or too long, not sent" if self.unsent else "",
            f"{self.uncertain:,} in flight when an earlier run ended" if self.uncertain else "",
            self.note,
        ]
        return "; ".join(part for part in parts if part)

    def check_budget(self, max_cost: float | None) -> None:
        """Raise `PlanError` when the cost is above a budget, or unknown under a budget."""
        if max_cost is None:
            return
        if self.cost is None:
            raise PlanError(f"{self.system}: there is a max_cost but no price; give a price")
        if self.cost > max_cost:
            raise PlanError(
                f"{self.system}: the run would cost about {self.cost:,.2f} {self.currency}, over "
                f"max_cost = {max_cost:,.2f}; nothing was asked. Raise it or ask about fewer texts"
            )
