"""What the runner needs to know of a service: how a question looks, and how an answer reads.

The adapters speak the services' documented wire formats themselves. The official SDKs would each
bring their own client, retries, logging and model classes; an audit needs one place that limits,
retries, records raw replies and keeps keys out of sight, and it must read the replies of years
ago with today's code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ombud.systems.moderators.answers import Answer, unparseable
from ombud.systems.moderators.quote import Price

__all__ = ["Asker", "Reply", "read_reply"]


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back over HTTP."""

    status: int
    body: bytes
    retry_after: str = ""


@runtime_checkable
class Asker(Protocol):
    """One service, without any networking.

    Attributes
    ----------
    name
        The system's name in messages and reports.
    cache_name
        What kind of service it is: the system in the cache's key.
    identity
        Everything that changes what the service would answer (model, prompt, attributes asked
        for), as one string: the version in the cache's key. Thresholds are not part of it: they
        are applied when a reply is read, so changing one asks nothing again.
    url
        Where questions are posted.
    max_bytes
        The longest text that is sent, in bytes of UTF-8.
    price
        What a question costs.
    prompt_characters
        What the prompt adds to each text.
    """

    name: str
    price: Price
    max_bytes: int

    @property
    def cache_name(self) -> str: ...  # noqa: D102

    @property
    def identity(self) -> str: ...  # noqa: D102

    @property
    def url(self) -> str: ...  # noqa: D102

    @property
    def prompt_characters(self) -> int: ...  # noqa: D102

    def headers(self) -> Mapping[str, str]:
        """Return the headers of every question, the key among them."""
        ...

    def body(self, texts: Sequence[str]) -> bytes:
        """Return the body of a question about some texts (one, unless the service takes more)."""
        ...

    def split(self, body: bytes, count: int) -> list[bytes]:
        """Return the reply to several texts as one reply a text; ValueError when it is not."""
        ...

    def redact(self, body: bytes) -> bytes:
        """Return a reply without the key, should the service have repeated it."""
        ...

    def parse(self, status: int, body: bytes) -> Answer:
        """Return what a reply to one text means; never raises."""
        ...


def read_reply(asker: Asker, status: int, body: bytes) -> Answer:
    """Return what a reply means, also when the service's own reader fails."""
    try:
        return asker.parse(status, body)
    except Exception as fault:  # a plugin's reader may fail in any way; the reply is kept
        return unparseable(f"the reader failed: {type(fault).__name__}: {fault}")
