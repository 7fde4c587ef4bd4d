"""Any in-house service that takes JSON and answers JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ombud.data.decisions import Outcome
from ombud.errors import PlanError
from ombud.http.keys import header_faults, secret_headers, secrets_in
from ombud.http.store import hash_of
from ombud.registry import moderator
from ombud.systems.moderators.answers import Answer
from ombud.systems.moderators.service import Service, digest, number

_LONGEST_PREFIX = 20


@moderator("http")
@dataclass(kw_only=True)
class HttpModerator(Service):
    """A service of one's own: a template for the question, paths into the answer.

    Parameters
    ----------
    template
        The JSON that is posted; ``{text}`` inside any of its strings stands for the text, and
        with an `echo_path` ``{id}`` for a name of the text.
    score_path
        Where the score is, as keys and positions joined by full stops: ``results.0.score``.
    threshold
        Flag when the score reaches it. Without it and without `flag_path` the system has scores
        and no decisions.
    flag_path
        Where the decision is; it takes precedence over the threshold.
    flagged_values, allowed_values
        What at `flag_path` means flagged and allowed, compared as lower-case text. Anything else
        is *unparseable*.
    categories_path
        Where an object of category to score is, if there is one.
    version_path
        Where the model's version is, if the reply says it.
    version
        Of the service, when the reply does not say it: part of the cache's key.
    echo_path
        Where the reply repeats the text or its ``{id}``, if it does. A reply that names another
        is no answer, and the question is asked again; connections are kept, which is faster
        (a service that repeats nothing gets a connection for every question).
    headers_sent
        Other headers. A key belongs in `key_env`, and is refused here.
    key_header, key_prefix
        How the key is sent.
    """

    template: dict[str, Any] = field(default_factory=lambda: {"text": "{text}"})
    score_path: str = ""
    threshold: float | None = None
    flag_path: str = ""
    flagged_values: list[str] = field(default_factory=lambda: ["true", "1"])
    allowed_values: list[str] = field(default_factory=lambda: ["false", "0"])
    categories_path: str = ""
    version_path: str = ""
    version: str = ""
    echo_path: str = ""
    headers_sent: dict[str, str] = field(default_factory=dict)
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "

    def __post_init__(self) -> None:
        super().__post_init__()
        faults = []
        if filled(self.template, "a") == filled(self.template, "b"):
            faults.append("the template does not hold {text}")
        if not self.flag_path and not self.score_path:
            faults.append("give flag_path or score_path")
        if secret := secret_headers(self.headers_sent) + secrets_in(self.template):
            faults.append(f"{', '.join(secret)} may hold a key: use key_env and key_header")
        if len(self.key_prefix) > _LONGEST_PREFIX:
            faults.append("key_prefix may hold a key: use key_env")
        faults += header_faults({**self.headers_sent, self.key_header: self.key_prefix})
        if faults:
            raise PlanError(f"{self.name}: {'; '.join(faults)}")

    @property
    def configuration(self) -> str:
        """Version, template and headers."""
        return f"{self.version}#{digest(self.template, sorted(self.headers_sent.items()))}"

    def headers(self) -> Mapping[str, str]:
        """Return the headers of every question."""
        return {**self.headers_sent, **super().headers()}

    def key_headers(self, key: str) -> Mapping[str, str]:
        """Return the header that carries a key."""
        return {self.key_header: f"{self.key_prefix}{key}"}

    def question(self, text: str) -> Any:
        """Return the JSON of a question about one text."""
        return filled(self.template, text, hash_of(text).hex() if self.echo_path else None)

    @property
    def echoes(self) -> bool:
        """Whether replies repeat the text or its id."""
        return bool(self.echo_path)

    def echoed(self, reply: Any, text: str) -> bool:
        """Return whether what the service repeats is the text, or its id."""
        try:
            return at_path(reply, self.echo_path) in (text, hash_of(text).hex())
        except (LookupError, TypeError, ValueError):
            return False

    def read(self, reply: Any) -> Answer:
        """Return what the JSON of a good reply means."""
        score = number(at_path(reply, self.score_path)) if self.score_path else float("nan")
        version = str(at_path(reply, self.version_path)) if self.version_path else self.version
        result = at_path(reply, self.categories_path) if self.categories_path else {}
        categories = {str(c): number(s) for c, s in result.items()}
        if self.flag_path:
            value = str(at_path(reply, self.flag_path)).lower()
            meanings = {word.lower(): False for word in self.allowed_values}
            meanings |= {word.lower(): True for word in self.flagged_values}
            if value not in meanings:
                raise ValueError(f"{value!r:.40} means neither flagged nor allowed")
            outcome = Outcome(meanings[value])
        elif self.threshold is None:
            outcome = Outcome.SCORED
        else:
            outcome = Outcome(score >= self.threshold)
        return Answer(outcome, score, categories, version)


def filled(template: Any, text: str, name: str | None = None) -> Any:
    """Return a template with a text put in the place of ``{text}``, a name in that of ``{id}``.

    Examples
    --------
    >>> filled({"docs": [{"body": "{text}"}], "lang": "en"}, "hello")
    {'docs': [{'body': 'hello'}], 'lang': 'en'}
    """
    if isinstance(template, str):
        parts = (part.replace("{text}", text) for part in template.split("{id}"))
        return ("{id}" if name is None else name).join(parts)
    if isinstance(template, dict):
        return {key: filled(value, text, name) for key, value in template.items()}
    if isinstance(template, list):
        return [filled(value, text, name) for value in template]
    return template


def at_path(reply: Any, path: str) -> Any:
    """Return what stands at a path of keys and positions; LookupError when nothing does.

    Examples
    --------
    >>> at_path({"results": [{"score": 0.5}]}, "results.0.score")
    0.5
    """
    for step in path.split("."):
        reply = reply[int(step)] if isinstance(reply, list) else reply[step]
    return reply
