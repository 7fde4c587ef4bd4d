"""How policy models state a verdict: one named form for each family, and scores by token."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class UnreadableError(ValueError):
    """An answer states no verdict in its form; the message is the reason."""


@dataclass(frozen=True)
class Verdict:
    """A verdict as an answer states it."""

    word: str  # in lower case
    at: int  # where the word begins in the answer
    categories: tuple[str, ...] = ()
    # Whether nothing after the word can change what it means.
    complete: bool = False


@dataclass(frozen=True)
class Form:
    """How one family of models states verdicts."""

    find: Callable[[str, Collection[str]], Verdict]
    flagged: tuple[str, ...]
    allowed: tuple[str, ...]
    # What a plan must set, because no server adds it, and where it is published.
    needs: Mapping[str, str]
    # Words that are neither; the plan says which they count as.
    between: tuple[str, ...] = ()
    # Where the policy goes by default.
    policy: str = ""


_BLOCKS = r"think|thinking|reasoning"
_REASONING = re.compile(rf"<({_BLOCKS})>.*?</\1>", re.DOTALL | re.IGNORECASE)
_OPENED = re.compile(rf"<(?:{_BLOCKS})>|<\|channel\|>\s*analysis", re.IGNORECASE)
_CLOSED = re.compile(rf"</(?:{_BLOCKS})>|<\|channel\|>\s*final\s*<\|message\|>", re.IGNORECASE)
_SPECIAL = re.compile(r"<\|[\w ]{1,30}\|>|</?s>")


def without_reasoning(text: str) -> str:
    """Return an answer with blanks where it reasons, so that positions stay.

    Raises
    ------
    UnreadableError
        If the reasoning is left open.

    Examples
    --------
    >>> without_reasoning("<think>it is unsafe</think>safe").strip()
    'safe'
    """
    text = _REASONING.sub(_blanks, text)
    ends = [found.end() for found in _CLOSED.finditer(text)]
    if ends:  # the chat template, not the answer, opened it
        text = " " * ends[-1] + text[ends[-1] :]
    if _OPENED.search(text):
        raise UnreadableError("the reasoning is left open")
    return _SPECIAL.sub(_blanks, text)


def _blanks(found: re.Match[str]) -> str:
    return " " * len(found.group())


_CODE = re.compile(r"\b[SO]\d{1,2}\b", re.IGNORECASE)
_TWICE = "the answer states a verdict twice"


def _first_line(text: str, words: Collection[str]) -> Verdict:
    """Read a line of one word, and codes of categories in the lines after it."""
    found = re.match(r"\s*[\"'`*.]*(\w+)[\"'`*.]*[^\S\n]*(?:\n|$)", text)
    if found is None or found[1].lower() not in words:
        raise UnreadableError(f"the first line is none of {', '.join(words)}")
    rest = text[found.end() :]
    if any(line.strip(" \t\"'`*.").lower() in words for line in rest.splitlines()):
        raise UnreadableError(_TWICE)
    codes = tuple(dict.fromkeys(code.upper() for code in _CODE.findall(rest)))
    word = found[1].lower()
    if word == "safe" and rest.strip():
        raise UnreadableError("after 'safe' the answer goes on")
    return Verdict(word, found.start(1), codes)


def _first_word(text: str, words: Collection[str]) -> Verdict:
    """Read the first word; an explanation may follow, but no second verdict."""
    said = "|".join(map(re.escape, words))
    sentence = rf"(?:^|[.!?;:\n]|\bor\b|/)[\s\"'`*]*({said})(?=[\s\"'`*]*(?:[.,:;!?/\n]|$|or\b))"
    found = re.match(rf"[\s\"'`*]*({said})\b", text, re.IGNORECASE)
    if found is None:
        raise UnreadableError(f"the answer does not begin with one of {', '.join(words)}")
    if re.search(sentence, text[found.end(1) :], re.IGNORECASE):
        raise UnreadableError(_TWICE)
    return Verdict(found[1].lower(), found.start(1), complete=True)


def _one_word(text: str, words: Collection[str]) -> Verdict:
    """Read an answer of one word and nothing else."""
    found = re.fullmatch(r"[\s\"'`*.]*(.*?)[\s\"'`*.]*", text, re.DOTALL)
    word = found[1].lower() if found else ""
    if found is None or word not in words:
        parts = re.findall(r"[\w-]+", word)
        if len(parts) > 1 and set(parts) <= set(words):
            raise UnreadableError(_TWICE)
        raise UnreadableError(f"the answer is none of {', '.join(words)}")
    return Verdict(word, found.start(1), complete=True)


def _keyed(
    key: str, listed: str = "", also: Callable[[str, Collection[str]], Verdict] | None = None
) -> Callable[[str, Collection[str]], Verdict]:
    """Return a reader of ``key: word`` on a line, or in a JSON object, once."""
    mention = re.compile(rf"(?:{key})[\"'*]*\s*:", re.IGNORECASE)
    line = re.compile(rf"^[^\S\n]*[\"'*]*(?:{key})[\"'*]*\s*:[\s\"'*]*([\w/]+)", re.I | re.M)
    names = re.compile(rf"^[^\S\n]*(?:{listed})\s*:[^\S\n]*(.*)$", re.I | re.M) if listed else None

    def find(text: str, words: Collection[str]) -> Verdict:
        if _unfenced(text).startswith("{"):
            return _in_json(text, words, key, listed)
        mentions = len(mention.findall(text))
        if not mentions and also is not None:
            return also(text, words)
        if mentions > 1:
            raise UnreadableError(_TWICE)
        found = line.search(text)
        if found is None or found[1].lower() not in words:
            raise UnreadableError(f"no line says {key.replace('|', ' or ')}: {', '.join(words)}")
        named = names.search(text) if names else None
        return Verdict(found[1].lower(), found.start(1), _names(named[1] if named else None))

    return find


def _unfenced(text: str) -> str:
    return re.sub(r"^\s*```(?:json)?|```\s*$", "", text.strip()).strip()


def _pairs_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = {key.strip().lower(): value for key, value in pairs}
    if len(made) < len(pairs):
        raise UnreadableError(_TWICE)
    return made


def _in_json(text: str, words: Collection[str], key: str, listed: str) -> Verdict:
    """Read the value of a key of one whole JSON object."""
    try:
        made = json.loads(_unfenced(text), object_pairs_hook=_pairs_once)
    except (json.JSONDecodeError, RecursionError):
        raise UnreadableError("the answer is no whole JSON object") from None
    hits = [name for name in made if re.fullmatch(key, name, re.IGNORECASE)]
    if len(hits) > 1:
        raise UnreadableError(_TWICE)
    value = made[hits[0]] if hits else None
    word = (str(int(value)) if isinstance(value, bool) else str(value)).strip().lower()
    word = word if word in words else str(value).lower()
    if not hits or word not in words:
        raise UnreadableError(f"the answer states no {key} among {', '.join(words)}")
    place = re.search(rf"\"\s*{re.escape(hits[0])}\s*\"\s*:\s*\"?", text, re.IGNORECASE)
    named = [made[name] for name in made if listed and re.fullmatch(listed, name, re.I)]
    flat = [str(one) for value in named for one in (value if isinstance(value, list) else [value])]
    at = place.end() if place else len(text)
    return Verdict(word, at, _names(",".join(one for one in flat if one != "None")))


def _names(written: str | None) -> tuple[str, ...]:
    """Return the categories of a list separated by commas; none for None, N/A and dashes."""
    parts = [part.strip(" \t\"'`*.[]") for part in (written or "").split(",")]
    return tuple(dict.fromkeys(p for p in parts if p and p.lower() not in {"none", "n/a", "-"}))


def _score_tag(text: str, words: Collection[str]) -> Verdict:
    """Read ``<score> yes </score>``, or a first word for older versions."""
    if "<score" not in text.lower():
        found = re.sub(r"<confidence>.*?</confidence>", _blanks, text, flags=re.I | re.S)
        return _first_word(found, words)
    tags = list(re.finditer(r"<score>\s*(.*?)\s*</score>", text, re.IGNORECASE | re.DOTALL))
    if len(tags) > 1:
        raise UnreadableError(_TWICE)
    if not tags or tags[0][1].lower() not in words:
        raise UnreadableError(f"<score> holds none of {', '.join(words)}")
    return Verdict(tags[0][1].lower(), tags[0].start(1), complete=True)


def keyed_words(key: str) -> Callable[[str, Collection[str]], Verdict]:
    """Return a reader of answers of one word, or of JSON objects with a key of the plan's."""
    return _keyed(re.escape(key), "policy_category|categories|category", _one_word)


FORMS: dict[str, Form] = {
    "llama-guard": Form(_first_line, ("unsafe",), ("safe",), {}),
    "shieldgemma": Form(_first_word, ("yes",), ("no",), {}, policy="guideline"),
    "gpt-oss-safeguard": Form(
        keyed_words("violation"), ("1", "true"), ("0", "false"), {"policy": ""}, policy="system"
    ),
    "granite-guardian": Form(_score_tag, ("yes",), ("no",), {}),
    "qwen3guard": Form(
        _keyed("safety", "categories"), ("unsafe",), ("safe",), {}, ("controversial",)
    ),
    "wildguard": Form(
        _keyed("harmful request"),
        ("yes",),
        ("no",),
        {"prompt": "github.com/allenai/wildguard, wildguard/utils.py"},
    ),
    "nemotron": Form(
        _keyed("user safety|prompt harm", "safety categories|violated categories"),
        ("unsafe", "harmful"),
        ("safe", "unharmful"),
        {},
    ),
    "polyguard": Form(
        _keyed("harmful request", "request safety violations"),
        ("yes",),
        ("no",),
        {"system": "github.com/kpriyanshu256/polyguard, inference.py"},
    ),
    "words": Form(
        keyed_words("verdict"), (), (), {"flagged_words": "", "allowed_words": ""}, policy="system"
    ),
}
"""The answer forms, by the name that a plan gives."""

_UNLISTED = -9000.0
_MARKS = " \t\r\n\"'`*:.,{}[]<>\u2581\u0120"


def verdict_masses(
    tokens: Sequence[Mapping[str, Any]], at: int, flagged: Collection[str], allowed: Collection[str]
) -> tuple[float, float]:
    """Return the probabilities of the words that flag and of those that allow, at one position.

    Spellings that differ in case and blanks add up. A side without any of the alternatives gets
    the smallest probability listed as its bound, or what the listed one leaves where there is
    just one; both are NaN when neither side is listed, or the token is not found.

    Parameters
    ----------
    tokens
        ``logprobs.content`` of a chat reply.
    at
        Where the verdict begins, in characters of all tokens together.
    flagged, allowed
        The words, in lower case.

    Examples
    --------
    >>> token = {"token": "Yes", "logprob": -0.223, "top_logprobs": [
    ...     {"token": "Yes", "logprob": -0.223}, {"token": "No", "logprob": -1.609}]}
    >>> yes, no = verdict_masses([token], 0, ["yes"], ["no"])
    >>> round(yes / (yes + no), 2)
    0.8
    """
    place, token = 0, None
    for one in tokens:
        place += len(str(one["token"]))
        if place > at:
            token = one
            break
    if token is None:
        return math.nan, math.nan
    listed = {
        str(one["token"]): float(one["logprob"])
        for one in (*(token.get("top_logprobs") or ()), token)
        if float(one["logprob"]) > _UNLISTED
    }
    chosen = str(token["token"]).strip(_MARKS).lower()
    split = chosen not in {*flagged, *allowed}  # the tokenizer cuts the word in two
    sides = [0.0, 0.0]
    for written, logprob in listed.items():
        word = written.strip(_MARKS).lower()
        of = [any(_is(word, one, split) for one in side) for side in (flagged, allowed)]
        if of[0] != of[1]:
            sides[of[1]] += math.exp(min(logprob, 0.0))
    if sum(sides) == 0:
        return math.nan, math.nan
    rest = max(0.0, 1 - sum(math.exp(min(p, 0.0)) for p in listed.values()))
    bound = math.exp(min(listed.values())) if len(listed) > 1 else rest
    return sides[0] or bound, sides[1] or bound


def _is(token: str, word: str, split: bool) -> bool:
    return token == word or (split and token != "" and word.startswith(token))
