"""What all services over HTTP share."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar

from ombud.data.decisions import Decisions, Outcome
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.http.dispatch import REJECTED, TRY_AGAIN, ReplyStatus
from ombud.http.keys import check_address, host_matches, normal_address, read_key, redact
from ombud.http.pace import RunSettings
from ombud.http.store import default_path
from ombud.systems.base import Moderator, Progress
from ombud.systems.moderators.answers import (
    Answer,
    error,
    highest_ratio,
    is_refusal,
    rejected,
    unparseable,
    without_surrogates,
)
from ombud.systems.moderators.runner import Runner, RunReport, read_reply
from ombud.systems.quote import CostQuote, Price

_LARGEST_SCORE = 3.4e38  # of the 32 bits in which scores are kept
# Requests that fail for this text alone, whenever they are sent.
_TOO_MUCH = re.compile(
    r"exceeds the maximum allowed|longer than|too long|too large|context_length_exceeded"
    r"|maximum context length|does not support request languages|language_not_supported"
)
# A quota that waiting does not fill up again.
_SPENT = re.compile(
    r"insufficient_quota|exceeded your current quota|credit balance is too low"
    r"|out of call volume quota|billing hard limit"
)
_STOP = {
    401: "the service does not accept the key (401)",
    403: "the service does not allow this key or this address (403)",
    404: "there is nothing at this address, or no such model (404)",
    405: "this address takes no questions (405)",
    402: "the service wants to be paid first (402)",
    410: "the service or the model has ended (410)",
}


@dataclass(kw_only=True)
class Service(Moderator):
    """A moderation service that is queried over HTTP.

    Parameters
    ----------
    name
        The system's name in messages and reports; default, the name it is registered under.
    base_url
        The service's address; another one for a proxy or a compatible server. The key goes only
        to the service's own host, to this machine, or to hosts named in ``OMBUD_KEY_HOSTS``.
    key_env
        The environment variable that holds the key; empty for none.
    cache
        The file of answers; default ``moderators.sqlite`` in ``$OMBUD_CACHE`` or ``.ombud``.
    edition
        A date or word of your own. Texts are sent again when it changes: so drift is measured in
        a service that changes under the same model name.
    published
        Query as the speech-suppression paper did: with its model, prompt, categories and
        thresholds. A `model` of your own stays, for models that still answer; replies of retired
        models are read from the cache.
    run
        Pace, retries, repeats and budget.
    price
        For the estimate of the cost.
    max_bytes
        The longest text that is sent; a longer one is an error with that reason.
    max_characters
        The same in characters, for services that count those.
    """

    is_service: ClassVar[bool] = True
    own_host: ClassVar[str] = ""
    known_categories: ClassVar[tuple[str, ...]] = ()
    # Models that were served at this release, those that are not any more (with the date), and
    # how fast the service's own host may be queried unless the plan says otherwise.
    current_models: ClassVar[tuple[str, ...]] = ()
    retired_models: ClassVar[Mapping[str, str]] = {}
    pace: ClassVar[Mapping[str, float]] = {}
    # Whether every good reply scores the same categories, so that one that lacks some is noted.
    steady_categories: ClassVar[bool] = False

    name: str = ""
    base_url: str = ""
    key_env: str = ""
    cache: Path | None = None
    edition: str = ""
    published: bool = False
    run: RunSettings = field(default_factory=RunSettings)
    price: Price = field(default_factory=Price)
    max_bytes: int = 1_000_000
    max_characters: int | None = None

    def __post_init__(self) -> None:
        self.name = self.name or self.cache_name
        if self.published:
            self._set_published()
        self.base_url = self.base_url.rstrip("/")
        if not self.base_url:
            raise PlanError(f"{self.name}: set base_url, the address of your service")
        host = check_address(self.url)
        paced = any(getattr(self.run, key) for key in ("per_second", "per_minute", *_TOKENS))
        if self.own_host and not paced and host_matches(host, self.own_host):
            self.run = RunSettings(**{**vars(self.run), **self.pace})
        # No field: a plan does not set it, and a saved result does not hold it.
        self._last_report: RunReport | None = None

    def as_published(self) -> Mapping[str, Any]:
        """Return the settings of the speech-suppression paper; empty if it has not this service."""
        return {}

    def _set_published(self) -> None:
        settings = self.as_published()
        if not settings:
            fault = "published is for the services of the speech-suppression paper; remove it"
            raise PlanError(f"{self.name}: {fault}")
        plain = {f.name: f.default for f in fields(self)} | {
            f.name: f.default_factory() for f in fields(self) if f.default_factory is not MISSING
        }
        for option, value in settings.items():
            given = getattr(self, option)
            if option == "model" and given not in ("", plain["model"]):
                continue
            if given not in (plain[option], value):
                raise PlanError(f"{self.name}: published sets {option}; remove one of them")
            setattr(self, option, value)

    @property
    def last_report(self) -> RunReport | None:
        """What came of the last call of `moderate`."""
        return self._last_report

    @property
    def url(self) -> str:
        """Where questions are posted."""
        return self.base_url

    @property
    def configuration(self) -> str:
        """What of the configuration changes what the service would answer."""
        raise NotImplementedError

    @property
    def identity(self) -> str:
        """The version in the cache's key: configuration, edition, and an address of one's own.

        Two servers may answer differently to the same model name, so they never share answers.
        """
        edition = f"@{self.edition}" if self.edition else ""
        usual = str(type(self).base_url).rstrip("/")
        same = self.base_url == usual or normal_address(self.base_url) == normal_address(usual)
        address = "" if same else f"#at-{digest(self.base_url)}"
        return f"{self.configuration}{edition}{address}"

    @property
    def queried_model(self) -> str:
        """The model that the plan names; empty where a service has only one."""
        return ""

    def check_model(self) -> None:
        """Refuse to send texts to a model that is no longer served; its stored replies are read."""
        model = self.queried_model
        if model in self.retired_models:
            raise PlanError(
                f"{self.name}: {model} was retired on {self.retired_models[model]}. Set model to "
                f"one that is served, at this release {' or '.join(self.current_models)}. Replies "
                "of the retired model that are in the cache are still read"
            )

    def need_model(self, model: str, example: str = "") -> None:
        """Refuse an empty model: a default would move, or end."""
        if not model:
            served = " or ".join(self.current_models)
            raise PlanError(
                f"{self.name}: set model; at this release the service has {served}. There is no "
                f"default, because it would change or end{example}"
            )

    @property
    def notices(self) -> tuple[str, ...]:
        """What a reader of the decisions should know of the service itself."""
        return ()

    def suspect(self, reply: Any, answer: Answer) -> str:
        """Return why a reply may be misread; empty when nothing speaks for that."""
        return ""

    @property
    def cache_name(self) -> str:
        """The system in the cache's key: its type, so that another name asks nothing again."""
        return str(getattr(type(self), "registered_name", type(self).__name__))

    @property
    def prompt_characters(self) -> int:
        """What the prompt adds to each text."""
        return 0

    @property
    def answer_tokens(self) -> int:
        """The longest answer in tokens, for the estimate of the cost."""
        return 0

    @property
    def first_replies(self) -> int:
        """How many replies are examined before the run continues; 0 for none."""
        return 0

    def headers(self) -> Mapping[str, str]:
        """Return the headers of every question, the key among them."""
        key = read_key(self.key_env, self.url, self.own_host, self.name)
        return self.key_headers(key) if key else {}

    def key_headers(self, key: str) -> Mapping[str, str]:
        """Return the headers that carry a key."""
        return {"Authorization": f"Bearer {key}"}

    def redact(self, body: bytes) -> bytes:
        """Return a reply without the key, should the service have repeated it."""
        key = os.environ.get(self.key_env, "").strip() if self.key_env else ""
        return redact(body, key)

    def question(self, text: str) -> Any:
        """Return the JSON of a question about one text."""
        raise NotImplementedError

    def body(self, texts: Sequence[str]) -> bytes:
        """Return the body of a question."""
        (text,) = texts
        return json.dumps(self.question(text), ensure_ascii=False).encode()

    def split(self, body: bytes, count: int) -> list[bytes]:
        """Return the reply to several texts as one reply a text."""
        raise ValueError(f"{self.name} takes one text in a request")

    def read(self, reply: Any) -> Answer:
        """Return what the JSON of a good reply means; may raise when it is not as documented."""
        raise NotImplementedError

    @property
    def echoes(self) -> bool:
        """Whether replies repeat something of the question that `echoed` can check."""
        return False

    def echoed(self, reply: Any, text: str) -> bool:
        """Return whether a reply is about a text, as far as it says what it is about."""
        return True

    def parse(self, status: int, body: bytes) -> Answer:
        """Return what a reply to one text means; never raises."""
        try:
            reply = _decoded(body)
        except _TwiceError as fault:
            return unparseable(str(fault))
        except (ValueError, RecursionError):
            page = body.lstrip()[:1] == b"<"
            if status != 200:
                return error(f"the service answered {status}{' with a web page' if page else ''}")
            return unparseable(f"the reply is not JSON{' but a web page' if page else ''}")
        if status != 200:
            words = said(reply)
            reason = f"the service answered {status}{words and ': '}{words}"
            final = status in _OF_THE_TEXT and _TOO_MUCH.search(_words(reply)) is not None
            return rejected(reason) if final else error(reason)
        try:
            return _kept(self.read(reply))
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as fault:
            what = f"{type(fault).__name__} {fault}"
            return unparseable(f"the reply is not as documented: {what}")

    def judge(self, status: int, body: bytes, payload: str) -> ReplyStatus:
        """Return what a reply to one text means for the run; never raises."""
        answer = read_reply(self, status, body)
        if answer.final:
            return ReplyStatus(REJECTED, answer.reason)
        spent = 400 <= status < 500 and _SPENT.search(_words_in(body)) is not None
        if status in TRY_AGAIN and not spent:
            return ReplyStatus("error", answer.reason, again=True)
        if status in _STOP or 300 <= status < 400 or spent:
            reason = _STOP.get(status, f"the service redirects elsewhere ({status})")
            reason = f"a quota or the credit is used up ({status})" if spent else reason
            why = error(f"{reason}: {answer.reason}" if answer.reason else reason).reason
            return ReplyStatus("error", why, stop=why)
        if status == 200 and answer.outcome == Outcome.UNPARSEABLE and not _is_json(body):
            return ReplyStatus("malformed", answer.reason)
        if status == 200 and self.echoes:
            try:
                about = self.echoed(_decoded(body), payload)
            except Exception:  # a reply that is not as documented is not known to be this one's
                about = False
            if not about:
                return ReplyStatus(
                    "error", "the reply is about another text", again=True, stray=True
                )
        return ReplyStatus(answer.outcome.name.lower(), answer.reason)

    def exhausted(self, reason: str, tries: int) -> str:
        """Return how to say that all tries failed, the last of them for a reason."""
        return f"{reason}, {tries} times"

    def runner(self) -> Runner:
        """Return the runner that asks this service."""
        if self.run.batch > 1 and type(self).split is Service.split:
            raise PlanError(f"{self.name} takes one text in a request; batch must be 1")
        return Runner(self, self.cache or default_path("moderators"), self.run)

    def quote(self, texts: Texts) -> CostQuote:
        """Return what asking about some texts would cost and take; asks nothing."""
        return self.runner().quote(texts)

    def moderate(self, texts: Texts, *, progress: Progress | None = None) -> Decisions:
        """Return one outcome a text and repeat; `last_report` has reasons and notices."""
        self._last_report = self.runner().run(texts, progress=progress)
        return self._last_report.decisions


@dataclass(kw_only=True)
class ScoredService(Service):
    """A service that states a score for each category, and no decision.

    Parameters
    ----------
    threshold
        Flag when the score of a category that counts reaches it. Without it the system has
        scores and no decisions, and metrics of flags are undefined.
    thresholds
        By category, where it differs. The score of a text is then the largest score divided by
        its threshold: 1 is where flags begin.
    """

    largest_threshold: ClassVar[float] = 1.0
    steady_categories: ClassVar[bool] = True

    threshold: float | None = None
    thresholds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        limits = {f"the threshold of {c}": v for c, v in self.thresholds.items()}
        if self.threshold is not None:
            limits["threshold"] = self.threshold
        for name, value in limits.items():
            self.check_threshold(value, name)

    def check_threshold(self, value: float, name: str) -> None:
        """Refuse a threshold that no score of this service can be compared with."""
        share(value, name, self.name, self.largest_threshold)

    def answer(self, scores: Mapping[str, float], counting: Iterable[str], version: str) -> Answer:
        """Return the decision by the thresholds, or the largest score without one.

        Parameters
        ----------
        scores
            By category, as the service states them.
        counting
            The categories that count; those without a score are skipped.
        version
            The model that answered.

        Raises
        ------
        LookupError
            If none of the categories that count has a score.
        """
        counted = {c: scores[c] for c in counting if c in scores}
        if not counted:
            raise LookupError("none of the categories that count was scored")
        if self.steady_categories and (lacking := [c for c in counting if c not in scores]):
            raise LookupError(f"a category that counts was not scored: {', '.join(lacking)}")
        limits = {c: self.thresholds.get(c, self.threshold) for c in counted}
        known = {c: limit for c, limit in limits.items() if limit is not None}
        if len(known) < len(counted):
            return Answer(Outcome.SCORED, max(counted.values()), scores, version)
        flagged = any(score >= known[c] for c, score in counted.items())
        score = highest_ratio(counted, counted, known)
        return Answer(
            Outcome(flagged), score if self.thresholds else max(counted.values()), scores, version
        )


@dataclass(kw_only=True)
class ChatService(Service):
    """A general model behind a chat protocol, prompted to give a verdict in words.

    Parameters
    ----------
    model
        The model to ask, as the service names it.
    prompt
        What is sent; ``{text}`` stands for the text, and nothing else is replaced.
    max_tokens
        The longest answer, in tokens.
    temperature
        Of the answer; None to send none.
    """

    expected: ClassVar[str] = ""
    """Why an answer that `read_text` cannot read is unparseable."""

    run: RunSettings = field(default_factory=lambda: RunSettings(timeout=120.0))
    max_bytes: int = 400_000
    model: str = ""
    prompt: str = "{text}"
    max_tokens: int = 50
    temperature: float | None = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if "{text}" not in self.prompt:
            raise PlanError(f"{self.name}: the prompt does not hold {{text}}")

    @property
    def queried_model(self) -> str:
        """The model that the plan names."""
        return self.model

    @property
    def configuration(self) -> str:
        """Model, prompt and temperature."""
        return f"{self.model}#{digest(self.prompt, self.max_tokens, self.temperature)}"

    @property
    def answer_tokens(self) -> int:
        """The longest answer, for the estimate of the cost."""
        return self.max_tokens

    @property
    def prompt_characters(self) -> int:
        """What the prompt adds to each text."""
        return len(self.prompt)

    def question(self, text: str) -> Any:
        """Return the JSON of a question about one text."""
        content = self.prompt.replace("{text}", text)
        question: dict[str, Any] = {
            "model": self.model,
            "max_tokens": self.max_tokens,
            "messages": [{"role": "user", "content": content}],
        }
        if self.temperature is not None:
            question["temperature"] = self.temperature
        return question

    def read(self, reply: Any) -> Answer:
        """Return what the JSON of a good reply means."""
        text, version, refusal = self.reply_text(reply)
        if refusal:
            return Answer(Outcome.REFUSED, version=version, reason=refusal)
        answer = self.read_text(text)
        if answer is not None:
            return replace(answer, version=version)
        if is_refusal(text):
            return Answer(Outcome.REFUSED, version=version, reason="the model declined to answer")
        return unparseable(self.expected, version)

    def reply_text(self, reply: Any) -> tuple[str, str, str]:
        """Return what a reply says, the model that says it, and why it refuses, if it does."""
        raise NotImplementedError

    def read_text(self, text: str) -> Answer | None:
        """Return what an answer in words means; None when it is none of the words asked for."""
        raise NotImplementedError


class _TwiceError(ValueError):
    """An object of a reply names a key twice, and which is meant is anyone's guess."""


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        again = next(name for name in names if names.count(name) > 1)
        raise _TwiceError(f"the reply names {again!r:.60} twice")
    return made


_DECODER = json.JSONDecoder(object_pairs_hook=_each_once)


def _decoded(body: bytes) -> Any:
    # json.loads would make a decoder for every reply.
    return _DECODER.decode(body.decode(json.detect_encoding(body), "surrogatepass"))


def _is_json(body: bytes) -> bool:
    try:
        _decoded(body)
    except _TwiceError:
        return True
    except (ValueError, RecursionError):
        return False
    return True


def said(reply: Any) -> str:
    """Return what a reply says of an error, in the forms that services use.

    Examples
    --------
    >>> said({"error": {"code": 400, "message": "no such field"}})
    'no such field'
    >>> said({"detail": [{"loc": ["body", "input"], "msg": "Field required", "type": "missing"}]})
    'body.input: Field required'
    """
    if isinstance(reply, list):
        return "; ".join(filter(None, map(said, reply[:3])))
    if isinstance(reply, dict):
        fields = {str(name).lower(): value for name, value in reply.items()}
        words = next(filter(None, (said(fields[n]) for n in _SAYING if fields.get(n))), "")
        place = fields.get("loc")
        return f"{'.'.join(map(str, place))}: {words}" if isinstance(place, list) else words
    return reply if isinstance(reply, str) else ""


_SAYING = ("error", "message", "detail", "msg", "errors", "error_description", "title", "code")
_OF_THE_TEXT = frozenset({400, 413, 422, 429})
_TOKENS = ("tokens_per_minute",)


def _words(reply: Any) -> str:
    """Return a reply in lower case, codes included, as far as words of errors go."""
    return json.dumps(reply, ensure_ascii=False)[:4000].lower()


def _words_in(body: bytes) -> str:
    return body[:4000].decode(errors="replace").lower()


def _kept(answer: Answer) -> Answer:
    """Return an answer as it can be kept: names that UTF-8 can hold, scores of 32 bits."""
    scores = (answer.score, *answer.categories.values())
    if any(abs(score) > _LARGEST_SCORE for score in scores):
        raise ValueError(f"a score is beyond {_LARGEST_SCORE:g}")
    names = "".join((answer.version, *answer.categories))
    if names.isascii():
        return answer
    return replace(
        answer,
        version=without_surrogates(answer.version),
        categories={without_surrogates(c): s for c, s in answer.categories.items()},
    )


def number(value: Any) -> float:
    """Return a finite number of a reply; TypeError or ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a number was expected, not {type(value).__name__}")
    score = float(value)
    if not math.isfinite(score):
        raise ValueError("a score is not finite")
    return score


def share(value: float, name: str, system: str, most: float = 1.0) -> float:
    """Return a threshold, or say that it is not above 0 and at most 1 (or another maximum)."""
    if not 0 < value <= most:
        raise PlanError(f"{system}: {name} is {value}; it must be above 0 and at most {most:g}")
    return value


def digest(*parts: object) -> str:
    """Return eight hexadecimal digits that change with any of the parts."""
    return blake2b(repr(parts).encode(), digest_size=4).hexdigest()
