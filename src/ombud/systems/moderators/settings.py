"""How a service is asked: pace, patience, money."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ombud.errors import PlanError

__all__ = ["RunSettings"]


@dataclass(frozen=True)
class RunSettings:
    """How a service is asked.

    Parameters
    ----------
    concurrency
        Requests under way at a time.
    per_second, per_minute
        The most requests started in that time; None for no limit.
    timeout
        Seconds until a request counts as unanswered.
    retries
        How often a request is tried again after 408, 429, 5xx or no reply.
    backoff, longest_backoff
        Seconds of the first and of the longest wait before a retry; a Retry-After of the service
        is waited for by all requests, and then this on top, so that they do not return at once.
    longest_wait
        A Retry-After over this many seconds stops the run: a quota is used up.
    give_up_after
        The run stops when so many questions in a row failed with all their retries: the service
        is down.
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
        limits = ("per_second", "per_minute", "timeout")
        faults += [f"{k} is {v}" for k in limits if (v := getattr(self, k)) is not None and v <= 0]
        if faults:
            raise PlanError(f"settings of a run must be positive: {', '.join(faults)}")
