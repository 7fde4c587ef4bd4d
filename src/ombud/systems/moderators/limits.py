"""How often a service may be asked, and how long to wait after a failure."""

from __future__ import annotations

from collections.abc import Callable

from ombud.rng import generator

__all__ = ["RateLimit", "backoff"]


class RateLimit:
    """Spreads requests evenly, below so many a second and so many a minute.

    Each request takes the next free slot; slots stand ``1 / rate`` apart, where the rate is the
    lower of the two limits. There are no bursts, so no window of any service is ever overrun.

    Parameters
    ----------
    per_second, per_minute
        The limits; None for no limit.
    clock
        Seconds that only grow.
    """

    def __init__(
        self, per_second: float | None, per_minute: float | None, clock: Callable[[], float]
    ) -> None:
        rates = [r for r in (per_second, per_minute and per_minute / 60) if r]
        self.interval = 1 / min(rates) if rates else 0.0
        self._clock = clock
        self._next = clock()

    def wait(self) -> float:
        """Take the next slot and return the seconds until it comes."""
        now = self._clock()
        slot = max(now, self._next)
        self._next = slot + self.interval
        return slot - now

    def pause(self, seconds: float) -> None:
        """Give no slot for some seconds: the service asked for it."""
        self._next = max(self._next, self._clock() + seconds)


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
