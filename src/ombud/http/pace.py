"""How a service is asked: pace, patience, money; and how long to wait after a failure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

from ombud.errors import PlanError
from ombud.rng import generator


@dataclass(frozen=True)
class RunSettings:
    """How a service is asked.

    Parameters
    ----------
    concurrency
        Requests under way at a time.
    per_second, per_minute
        The most requests started in that time; None for no limit.
    tokens_per_minute
        The most tokens sent in that time, where a service counts those too; a token is counted as
        three bytes, which is on the safe side for most languages.
    timeout
        Seconds until a request counts as unanswered, however slowly its reply drips in.
    retries
        How often a request is tried again after 408, 429, 5xx or no reply.
    backoff, longest_backoff
        Seconds of the first and of the longest wait before a retry; a Retry-After of the service
        is waited for by all requests, and then this on top, so that they do not return at once.
    longest_wait
        A Retry-After over this many seconds stops the run: a quota is used up.
    give_up_after
        The run stops when so many questions in a row failed with all their retries (the service
        is down), or were all turned away (it refuses a parameter).
    repeats
        How often each text is asked about: more than once for systems that answer by chance.
    batch
        Texts in one request, for services that take several.
    in_flight
        Texts that were sent but whose reply was not on disk when an earlier run was killed:
        ``"leave"`` counts them as errors, so that nothing is ever paid twice; ``"ask"`` asks
        them again.
    max_cost
        Refuse to start a run that would cost more.
    seed
        Of the jitter in waits.
    """

    # A misspelt setting in a plan is a fault, not silence.
    __pydantic_config__ = {"extra": "forbid"}

    concurrency: int = 8
    per_second: float | None = None
    per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout: float = 30.0
    retries: int = 5
    backoff: float = 0.5
    longest_backoff: float = 30.0
    longest_wait: float = 300.0
    give_up_after: int = 20
    repeats: int = 1
    batch: int = 1
    in_flight: Literal["leave", "ask"] = "leave"
    max_cost: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        whole = {"concurrency": 1, "repeats": 1, "batch": 1, "give_up_after": 1, "retries": 0}
        faults = [
            f"{k} is {getattr(self, k)}" for k, low in whole.items() if getattr(self, k) < low
        ]
        limits = ("per_second", "per_minute", "tokens_per_minute", "timeout")
        waits = ("backoff", "longest_backoff", "longest_wait", "max_cost")
        given = {k: v for k in (*limits, *waits) if (v := getattr(self, k)) is not None}
        faults += [f"{k} is {v}" for k, v in given.items() if v < 0 or (v == 0 and k in limits)]
        if faults:
            raise PlanError(f"settings of a run must be positive: {', '.join(faults)}")
        odd = [f"{k} is {v}" for k, v in given.items() if not math.isfinite(v)]
        if odd:
            raise PlanError(f"settings of a run must be finite: {', '.join(odd)}")


class RateLimit:
    """Spreads requests evenly, below so many a second and so many a minute.

    Each request takes the next free slot; slots stand ``1 / rate`` apart, where the rate is the
    lower of the two limits, and further apart after a request of many tokens. There are no bursts,
    so no window of any service is ever overrun.

    None is no limit; `clock` gives seconds that only grow.
    """

    def __init__(
        self,
        per_second: float | None,
        per_minute: float | None,
        clock: Callable[[], float],
        tokens_per_minute: float | None = None,
    ) -> None:
        rates = [r for r in (per_second, per_minute and per_minute / 60) if r]
        self.interval = 1 / min(rates) if rates else 0.0
        self._per_token = 60 / tokens_per_minute if tokens_per_minute else 0.0
        self._clock = clock
        self._next = clock()

    def wait(self) -> float:
        """Take the next slot and return the seconds until it comes."""
        now = self._clock()
        slot = max(now, self._next)
        self._next = slot + self.interval
        return slot - now

    def spend(self, tokens: float) -> None:
        """Move the next slot away by as much as the tokens of a request take beyond its slot."""
        self._next += max(0.0, tokens * self._per_token - self.interval)

    def pause(self, seconds: float) -> None:
        """Give no slot for some seconds: the service asked for it."""
        self._next = max(self._next, self._clock() + seconds)


def tokens_in(size: int) -> float:
    """Return about how many tokens so many bytes are, rather too many than too few."""
    return size / 3


def backoff(attempt: int, seed: int, key: str, base: float, cap: float) -> float:
    """Return the seconds to wait before trying again: exponential, with full jitter from a seed.

    Parameters
    ----------
    attempt
        0 after the first failure.
    seed, key
        Where the jitter comes from: the same run waits the same times.
    base, cap
        The wait lies between half and all of ``min(cap, base * 2**attempt)``.
    """
    most = min(cap, base * 2.0 ** min(attempt, 40))
    return most * float(generator(seed, "retry", key, str(attempt)).uniform(0.5, 1.0))


def retry_after(header: str | None, now: datetime | None = None) -> float | None:
    """Return the seconds that a Retry-After header asks for; None when there is nothing to read.

    Examples
    --------
    >>> retry_after("30"), retry_after(None), retry_after("soon")
    (30.0, None, None)
    """
    value = (header or "").strip()
    try:
        if value.replace(".", "", 1).isdecimal():
            return float(value)
        when = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())
