"""What a run would cost, before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from ombud.errors import PlanError

_ASSUMED_SECONDS = 0.5


def least_seconds(
    requests: int,
    times: Sequence[float],
    concurrency: int,
    per_second: float | None,
    per_minute: float | None,
    tokens: float = 0.0,
    tokens_per_minute: float | None = None,
) -> tuple[float, str]:
    """Return how long some requests take at least, and what that assumes.

    `times` are the seconds that earlier replies took; `tokens` those of all requests together;
    None is no limit.

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
    if tokens_per_minute:
        seconds = max(seconds, 60 * tokens / tokens_per_minute)
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
        What the amount is for. Services that round up bill each text by *started* thousands or
        hundreds of characters.
    currency
        Of the amount.
    output
        With ``1m-tokens``, the amount for a million tokens of answers. The longest answer that is
        requested counts, so the cost is an upper bound.
    characters_per_token
        How many characters make a token: about four in English for most models, about three for
        Claude models since 2026, fewer in other languages.
    """

    # A misspelt setting in a plan is a fault, not silence.
    __pydantic_config__ = {"extra": "forbid"}

    amount: float | None = None
    unit: Literal[
        "text", "1k-characters", "started-1k-characters", "started-100-characters", "1m-tokens"
    ] = "text"
    currency: str = "USD"
    output: float | None = None
    characters_per_token: float = 4.0

    def __post_init__(self) -> None:
        if not self.characters_per_token > 0:
            raise PlanError(f"price: characters_per_token is {self.characters_per_token}")
        if self.output is not None and self.unit != "1m-tokens":
            raise PlanError('price: output is for the unit "1m-tokens"')

    def of(self, lengths: Sequence[int], overhead: int, answer: int = 0) -> float | None:
        """Return the price of some questions.

        Parameters
        ----------
        lengths
            The characters of each text.
        overhead
            Characters of prompt around each text.
        answer
            The longest answer to each, in tokens.

        Examples
        --------
        >>> Price(0.5, "1k-characters").of([500] * 10, overhead=0)
        2.5
        >>> Price(0.5, "started-1k-characters").of([500] * 10, overhead=0)
        5.0
        """
        if self.amount is None:
            return None
        sizes = [length + overhead for length in lengths]
        units = {
            "text": float(len(sizes)),
            "1k-characters": sum(sizes) / 1000,
            "started-1k-characters": float(sum(max(1, -(-size // 1000)) for size in sizes)),
            "started-100-characters": float(sum(max(1, -(-size // 100)) for size in sizes)),
            "1m-tokens": sum(sizes) / self.characters_per_token / 1e6,
        }
        answers = (self.output or 0.0) * len(sizes) * answer / 1e6
        return self.amount * units[self.unit] + answers


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
