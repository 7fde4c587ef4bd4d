"""Ask other people's servers slowly, and wait when they say so."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from urllib.parse import urlsplit

from ombud.errors import DataError

__all__ = ["Pace", "check_address", "retry_after", "wait_before"]


class Pace:
    """Keeps requests apart.

    Parameters
    ----------
    per_second
        How many requests a second at most.
    clock, sleep
        Seconds that only grow, and how to wait.
    """

    def __init__(
        self, per_second: float, clock: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        if per_second <= 0:
            raise ValueError(f"per_second is {per_second}; it must be above 0")
        self._gap = 1 / per_second
        self._clock = clock
        self._sleep = sleep
        self._next = clock()

    def wait(self, at_least: float = 0.0) -> None:
        """Wait for the next slot, and at least so many seconds."""
        now = self._clock()
        slot = max(now + at_least, self._next)
        if slot > now:
            self._sleep(slot - now)
        self._next = slot + self._gap


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


def wait_before(attempt: int, base: float = 1.0, most: float = 60.0) -> float:
    """Return the seconds to wait before another attempt: doubling, with chance, up to a limit."""
    longest = min(most, base * 2.0 ** min(attempt, 30))
    return longest * (0.5 + secrets.randbelow(1000) / 2000)


def check_address(url: str) -> str:
    """Return the host of an address that is encrypted, or on this machine."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise DataError("address", [f"{url!r:.200} cannot be read: {error}"]) from None
    local = host == "localhost"
    with suppress(ValueError):
        local = local or ip_address(host).is_loopback
    if parts.username or parts.password:
        raise DataError("address", ["it must not hold a user name or a password"])
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and local)):
        raise DataError("address", [f"{url!r:.200} is not https:// and not on this machine"])
    return host
