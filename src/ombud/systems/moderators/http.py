"""Any in-house service that takes JSON and answers JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ombud.data.decisions import Outcome
from ombud.errors import PlanError
from ombud.http.keys import header_faults, secret_headers, secrets_in
from ombud.http.store import hash_of
from ombud.registry import moderator
from ombud.systems.moderators.answers import Answer
from ombud.systems.moderators.service import ScoredService, digest, number

_LONGEST_PREFIX = 20


@moderator("http")
@dataclass(kw_only=True)
class HttpModerator(ScoredService):
    """A service of one's own: a template for the question, paths into the answer.

    A path is keys and positions joined by full stops: ``results.0.score``. In a path, ``*`` stands
    for every key of an object or every element of a list, and ``name[*]`` for every element of the
    list `name`: ``categoriesAnalysis[*].severity``, ``attributeScores.*.summaryScore.value``.

    Before the run continues, the first replies are examined. It stops if a path matches nothing
    in some of them, or if a field that no path reads contradicts the decision, such as
    ``blocked: true`` in a reply that is read as *allowed*.

    Parameters
    ----------
    template
        The JSON that is posted; ``{text}`` inside any of its strings stands for the text, and
        with an `echo_path` ``{id}`` for a name of the text.
    score_path
        Where the score is; of several, the largest counts.
    threshold
        Flag when the score, or that of a category that counts, reaches it. Without it and without
        `flag_path` the system has scores and no decisions.
    thresholds
        By category of `categories_path`, where it differs. The score of a text is then the largest
        score divided by its threshold.
    flag_path
        Where the decision is; it takes precedence over the threshold. Of several, any that means
        flagged flags.
    flagged_values, allowed_values
        What at `flag_path` means flagged and allowed, compared as lower-case text. Anything else
        is *unparseable*.
    categories_path
        Where scores by category are: an object of category to score; scores under ``*``, named by
        the keys; or, with `category_key`, scores of elements of a list.
    category_key
        In each element of such a list, the path of the category's name.
    categories
        Which of them count; None for all. Without `score_path` they make the score.
    check_first
        How many replies are examined before the run continues; 0 to run without.
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
    flag_path: str = ""
    flagged_values: list[str] = field(default_factory=lambda: ["true", "1"])
    allowed_values: list[str] = field(default_factory=lambda: ["false", "0"])
    categories_path: str = ""
    category_key: str = ""
    categories: list[str] | None = None
    check_first: int = 20
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
        if not (self.flag_path or self.score_path or self.categories_path):
            faults.append("give flag_path, score_path or categories_path")
        if self.thresholds and (self.flag_path or self.score_path or not self.categories_path):
            faults.append("thresholds are for categories_path without flag_path and score_path")
        if self.category_key and "*" not in self.categories_path:
            faults.append("category_key needs [*] in categories_path")
        if self.categories is not None and (not self.categories_path or self.score_path):
            faults.append("categories are for categories_path without score_path")
        if self.check_first < 0:
            faults.append(f"check_first is {self.check_first}")
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

    def check_threshold(self, value: float, name: str) -> None:
        """Refuse a threshold that is no number; a service's scores may have any range."""
        if not math.isfinite(value) or (self.thresholds and value <= 0):
            fault = "it must be finite, and a threshold by category above 0"
            raise PlanError(f"{self.name}: {name} is {value}; {fault}")

    @property
    def first_replies(self) -> int:
        """How many replies are examined before the run continues."""
        return self.check_first

    def read(self, reply: Any) -> Answer:
        """Return what the JSON of a good reply means."""
        version = str(at_path(reply, self.version_path)) if self.version_path else self.version
        categories = self._category_scores(reply) if self.categories_path else {}
        counting = list(categories) if self.categories is None else self.categories
        if self.score_path:
            score = max(map(number, all_at(reply, self.score_path).values()))
        elif self.categories_path:
            answer = self.answer(categories, counting, version)
            if not self.flag_path:
                return answer
            score = answer.score
        else:
            score = float("nan")
        if self.flag_path:
            meanings = {word.lower(): False for word in self.allowed_values}
            meanings |= {word.lower(): True for word in self.flagged_values}
            values = [str(one).lower() for one in all_at(reply, self.flag_path).values()]
            for value in values:
                if value not in meanings:
                    raise ValueError(f"{value!r:.40} means neither flagged nor allowed")
            outcome = Outcome(any(meanings[value] for value in values))
        elif self.threshold is None:
            outcome = Outcome.SCORED
        else:
            outcome = Outcome(score >= self.threshold)
        return Answer(outcome, score, categories, version)

    def _category_scores(self, reply: Any) -> dict[str, float]:
        found = all_at(reply, self.categories_path)
        if list(found) == [()]:
            return {str(c): number(s) for c, s in found[()].items()}
        if not self.category_key:
            return {".".join(map(str, steps)): number(s) for steps, s in found.items()}
        scores: dict[str, float] = {}
        for steps, value in found.items():
            one = reply
            for step in _element(self.categories_path, steps):
                one = one[step]
            name = str(at_path(one, self.category_key))
            if name in scores:
                raise ValueError(f"category {name!r:.40} is there twice")
            scores[name] = number(value)
        return scores

    def suspect(self, reply: Any, answer: Answer) -> str:
        """Return which field that no path reads contradicts the decision; empty if none does."""
        if answer.outcome not in (Outcome.ALLOWED, Outcome.FLAGGED):
            return ""
        flagged = answer.outcome == Outcome.FLAGGED
        # From which number on a score that no path reads would have flagged the text.
        limit = None if flagged or self.flag_path else self.threshold
        paths = (self.score_path, self.categories_path, self.flag_path)
        used = {_last_name(path) for path in paths if path}
        signs: dict[bool, str] = {}
        for steps, value in _leaves(reply):
            name, shown = (
                next((s for s in reversed(steps) if isinstance(s, str)), ""),
                _shown(steps),
            )
            meaning = None
            if name not in used:
                meaning = _meaning(name, value)
            elif isinstance(value, int | float) and not isinstance(value, bool):
                meaning = True if limit is not None and value >= limit else None
            if meaning is not None:
                signs.setdefault(meaning, f"{shown} is {value!r:.40}")
        if (not flagged) in signs and flagged not in signs:
            return (
                f"{signs[not flagged]}, which no path reads, in a reply read as "
                f"{'flagged' if flagged else 'allowed'}"
            )
        return ""


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


_YES = frozenset(
    {
        "flagged",
        "flag",
        "blocked",
        "unsafe",
        "toxic",
        "harmful",
        "violation",
        "violated",
        "detected",
    }
    | {"rejected", "spam", "offensive", "is_flagged", "is_toxic", "is_unsafe", "is_harmful"}
)
_NO = frozenset({"safe", "allowed", "ok", "clean", "is_safe", "is_allowed", "approved"})
_ACTIONS = frozenset({"action", "decision", "verdict", "label", "result"})
_ACTION_YES = re.compile(r"^(block|flag|deny|reject|remove|unsafe|toxic|harm|guardrail_intervened)")
_ACTION_NO = re.compile(r"^(allow|none|pass|safe|approve|accept)")


def _meaning(name: str, value: Any) -> bool | None:
    """Return what a field says by its name: flagged, allowed, or nothing."""
    word = name.lower()
    if isinstance(value, bool):
        if word in _YES:
            return value
        return not value if word in _NO else None
    if isinstance(value, str) and word in _ACTIONS:
        if _ACTION_YES.match(value.lower()):
            return True
        return False if _ACTION_NO.match(value.lower()) else None
    return None


def _leaves(reply: Any) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield every value of a reply that is no object or list, with the way to it."""
    waiting: list[tuple[tuple[str | int, ...], Any]] = [((), reply)]
    while waiting:
        steps, here = waiting.pop()
        if isinstance(here, dict):
            waiting += [((*steps, str(key)), value) for key, value in here.items()]
        elif isinstance(here, list):
            waiting += [((*steps, at), value) for at, value in enumerate(here)]
        else:
            yield steps, here


def _last_name(path: str) -> str:
    """Return the last key of a path; positions are none."""
    steps = (step for step in reversed(path.replace("[*]", ".*").split(".")))
    return next((step for step in steps if step != "*" and not step.isdecimal()), "")


def _shown(steps: Sequence[str | int]) -> str:
    return ".".join(map(str, steps))


def _element(path: str, steps: Sequence[str | int]) -> list[str | int]:
    """Return the way to the element of a list that the last ``*`` of a path stands for."""
    way: list[str | int] = []
    rest = iter(steps)
    parts = path.replace("[*]", ".*").split(".")
    for part in parts[: len(parts) - parts[::-1].index("*")]:
        way.append(next(rest) if part == "*" else part)
    return way


def all_at(reply: Any, path: str) -> dict[tuple[str | int, ...], Any]:
    """Return what stands at a path, by the keys and positions that its ``*`` stand for.

    Examples
    --------
    >>> all_at({"found": [{"severity": 2}, {"severity": 6}]}, "found[*].severity")
    {(0,): 2, (1,): 6}
    """
    found: dict[tuple[str | int, ...], Any] = {(): reply}
    for step in path.replace("[*]", ".*").split("."):
        if step != "*":
            found = {steps: at_path(value, step) for steps, value in found.items()}
            continue
        wider: dict[tuple[str | int, ...], Any] = {}
        for steps, value in found.items():
            if not isinstance(value, dict | list):
                raise TypeError(f"at * of {path!r} there is no list or object")
            pairs = value.items() if isinstance(value, dict) else enumerate(value)
            wider |= {(*steps, key): one for key, one in pairs}
        found = wider
    if not found:
        raise LookupError(f"nothing stands at {path!r}")
    return found


def at_path(reply: Any, path: str) -> Any:
    """Return what stands at a path of keys and positions; LookupError when nothing does.

    Examples
    --------
    >>> at_path({"results": [{"score": 0.5}]}, "results.0.score")
    0.5
    """
    for step in path.split("."):
        try:
            reply = reply[int(step)] if isinstance(reply, list) else reply[step]
        except (LookupError, TypeError, ValueError):
            raise LookupError(f"nothing stands at {path!r}") from None
    return reply
