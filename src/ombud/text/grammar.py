"""What *her* and *his* stand for in a sentence: an owner, a person acted on, or a thing owned.

Rules over parts of speech of single words. Where a sentence allows both readings, there is no
answer: "saw her duck" needs a reader.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

ENGLISH = {
    name: frozenset(words.split())
    for name, words in tomllib.loads(
        (files("ombud.text") / "files" / "english@1.toml").read_text(encoding="utf-8")
    ).items()
}
"""Words of English, by what they are used for."""

Role = Literal["owner", "object", "alone", "unclear"]
"""*her* book, saw *her*, the book is *hers*, or not to be decided."""

_OPENING = re.compile(r"[\s\"'\u201c\u2018*_~`-]*")
_NOUN_ENDINGS = ("tion", "sion", "ness", "ment", "ship", "hood", "ism", "ity", "ance", "ence")
_PAIRED = frozenset({"he", "she", "him", "her", "his", "hers", "himself", "herself"})


class Word(NamedTuple):
    """A word of a text."""

    text: str
    low: str  # in lower case, with straight apostrophes
    gap: str  # what stands between it and the word before
    start: int
    end: int


@cache
def _lexicon() -> dict[str, str]:
    """Return the parts of speech of words that are not nouns alone."""
    lines = (files("ombud.text") / "files" / "english-words@1.txt").read_text(encoding="utf-8")
    known: dict[str, str] = {}
    for line in lines.splitlines():
        if not line.startswith("#"):
            pattern, *words = line.split()
            known |= {word: known.get(word, "") + pattern for word in words}
    return known


def _bases(word: str) -> list[str]:
    """Return what a word may be a form of: walked, walk; stopped, stop; hoping, hope."""
    for ending in ("ing", "ed", "es", "s"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 1:
            found = [stem, stem + "e"] if ending in ("ing", "ed") else [stem]
            if ending == "ing" and stem.endswith("y"):
                found.append(stem[:-1] + "ie")  # lying
            if ending != "s" and len(stem) > 2 and stem[-1] == stem[-2]:
                found.append(stem[:-1])
            if stem.endswith("i"):
                found.append(stem[:-1] + "y")
            if ending in ("ing", "ed") or "v" in "".join(_lexicon().get(b, "") for b in found):
                return found
    return []


@cache
def parts(word: str) -> str:
    """Return the parts of speech of a word, the commonest first.

    n noun, v base form, s third person, d past, g -ing form, a adjective, r adverb, x closed class.
    A capital is the part of at least three quarters of its occurrences.

    Examples
    --------
    >>> parts("angry"), parts("cries"), parts("told"), parts("table")
    ('a', 'sn', 'd', 'n')
    """
    stem, apostrophe, _ = word.partition("'")
    if (
        word in ENGLISH["after_object"]
        or word in ENGLISH["auxiliaries"]
        or (apostrophe and stem in ENGLISH["after_object"])
    ):
        return "x"
    known = _lexicon().get(word, "")
    if "p" in known:
        return "d" + known.replace("p", "").replace("v", "").replace("V", "")
    if word.endswith("ing") and any("v" in _lexicon().get(b, "").lower() for b in _bases(word)):
        return "g" + ("n" if known[:1] in ("n", "N") else "")
    if word.endswith("ed") and any("v" in _lexicon().get(b, "").lower() for b in _bases(word)):
        return "d" + known.lower().replace("v", "")
    if known:
        return known
    if word.endswith("ly") and len(word) > 4:
        return "r"
    bases = [_lexicon().get(base, "") for base in _bases(word)]
    verbs = [base for base in bases if "v" in base.lower()]
    if word.endswith("s") and verbs:
        noun = any("n" in base.lower() for base in bases)
        return ("sn" if verbs[0][0] in "vV" else "ns") if noun else "s"
    if word.endswith(("ous", "ful", "less", "able", "ible", "ical", "ish")) and len(word) > 5:
        return "a"
    return "n"


def is_form(word: str, kind: str) -> bool:
    """Return whether a word is a form of one of a list of words."""
    return word in ENGLISH[kind] or any(base in ENGLISH[kind] for base in _bases(word))


def role(words: Sequence[Word], at: int) -> Role:
    """Return what *his*, *her* or *hers* at a place of a text stands for."""
    low = words[at].low
    if low == "hers":
        return "alone"
    step = _after_pair(words, at)
    partner = words[at + 1].low if step > at + 1 else words[at - 1].low if _slashed(words, at) \
        else words[at - 2].low if _joined(words, at - 1) else ""  # fmt: skip
    if low == "her" and partner in ("him", "he", "himself"):
        return "object"
    if step < len(words) and words[step].gap.strip() == "(":
        return "unclear"
    if step >= len(words) or not _touches(words[step]):
        if low == "his":
            return "owner" if partner == "her" else "alone"
        return "owner" if partner == "his" else "object"
    if low == "his" or partner == "his":
        return _his(words, at, step)
    return _her(words, at, step)


def _slashed(words: Sequence[Word], at: int) -> bool:
    return at > 0 and words[at].gap.strip() == "/" and words[at - 1].low in _PAIRED


def _joined(words: Sequence[Word], at: int) -> bool:
    """Return whether an *or* or *and* between two pronouns stands here."""
    return (
        0 < at < len(words) - 1
        and words[at].low in ("or", "and")
        and words[at - 1].low in _PAIRED
        and words[at + 1].low in _PAIRED
        and not words[at].gap.strip()
        and not words[at + 1].gap.strip()
    )


def _after_pair(words: Sequence[Word], at: int) -> int:
    """Return the word that comes after a pronoun, or after the two of "his or her"."""
    if at + 1 < len(words) and _slashed(words, at + 1):
        return at + 2
    if _joined(words, at + 1):
        return at + 3
    return at + 1


def _touches(word: Word) -> bool:
    """Return whether nothing but space, quotes or emphasis stands before a word."""
    return bool(word.gap) and _OPENING.fullmatch(word.gap) is not None and "- " not in word.gap


def _his(words: Sequence[Word], at: int, step: int) -> Role:
    """Return whether *his* owns what comes next."""
    if not _phrase(words, step):
        return "alone"
    # "a friend of his works here"
    if at > 1 and words[at - 1].low == "of" and is_form(words[at - 2].low, "kin"):
        tags = parts(words[step].low)
        if "d" in tags or "s" in tags or words[step].low in ENGLISH["auxiliaries"]:
            return "unclear" if "n" in tags.lower() else "alone"
    return "owner"


def _phrase(words: Sequence[Word], at: int) -> int:
    """Return where the noun ends that begins here, adverbs and adjectives before it; 0 if none."""
    place, adverb, described = at, False, False
    while place < len(words) and (place == at or words[place].gap == "-" or _touches(words[place])):
        low = words[place].low
        tags = parts(low)
        joined = place + 1 < len(words) and words[place + 1].gap == "-"
        later = joined or place + 1 < len(words) and _touches(words[place + 1])
        if joined and words[place + 1].low.endswith("ed"):
            place += 1  # "red-handed"
            continue
        capital = words[place].text[:1].isupper() and "x" not in tags
        if capital or low in ENGLISH["kin"]:
            return place + 1
        if low in ENGLISH["ownable"] or low in ENGLISH["numbers"] or low == "own":
            if low in ("own", "last", "first", "next") and not later:
                return place + 1 if low == "own" else 0
            if low in ENGLISH["numbers"] and described:
                return 0
        elif low in ENGLISH["degree"] and low not in ("half", "well"):
            if not later:
                return 0
            adverb = True
        elif low in ("being", "having"):
            return place + 1
        elif "x" in tags:
            # "his every move", "her all", "his one chance"
            ahead = words[place + 1].low if later else ""
            if low not in ("every", "one") or not ahead or "x" in parts(ahead) \
                    or ahead in ENGLISH["times"]:  # fmt: skip
                return 0
        elif "n" in tags.lower() and not (tags[0] in "rRaAd" and later and _adds(words, place)):
            if tags[0] == "d" and later and words[place + 1].low in ENGLISH["determined"]:
                return 0
            return 0 if tags[0] == "V" and adverb else place + 1
        elif tags[0] in "vV" and place > at and not adverb:
            return place + 1
        elif (
            tags[0] in "vVs"
            and "a" not in tags.lower()
            or tags == "d"
            and low in ENGLISH["plain_past"]
        ):
            return 0
        elif tags[0] == "g":
            return place + 1
        elif tags[0] in "rR":
            if not later:
                return 0
        elif not later:
            return 0
        described = described or tags[0] in "aAd"
        adverb = adverb or tags[0] in "rR"
        place += 1
    return 0


def _adds(words: Sequence[Word], place: int) -> bool:
    """Return whether the next word may be a noun or adjective that this one goes with."""
    tags = parts(words[place + 1].low).lower()
    return "x" not in tags and tags[0] in "nagd" and tags != "d"


def _her(words: Sequence[Word], at: int, step: int) -> Role:
    """Return whether *her* owns what comes next or is acted on."""
    nxt = words[step]
    low, tags = nxt.low, parts(nxt.low)
    end = _phrase(words, step)
    verb, clause = _governor(words, at)
    quoted = any(sign in nxt.gap for sign in "\"\u201c\u2018'")
    ahead = words[end] if end < len(words) and _touches(words[end]) else None
    if quoted and verb and (is_form(verb, "state") or is_form(verb, "reporting")):
        return "object"
    if low == "own" or low == "back" and verb and is_form(verb, "harming"):
        return "owner"
    if low in ("being", "having") and verb and is_form(verb, "catching"):
        return "object"
    if low == "all":
        return "unclear" if not _more(words, step) else "object"
    dated = low in ENGLISH["ownable"] | {"this", "every"} and _more(words, step)
    if verb and (
        (dated and words[step + 1].low in ENGLISH["times"])
        or (low in ENGLISH["times"] and nxt.text[:1].isupper())
    ):
        return "object"
    if not end:
        compound = step + 1 < len(words) and words[step + 1].gap == "-"
        if "n" in tags.lower() and tags[0] not in "vVs" and not compound:
            return "owner"
        if clause == "start" and low in ENGLISH["directions"] and _more(words, step):
            return "owner" if parts(words[step + 1].low)[0] in "nN" else "object"
        return "object" if verb or clause != "start" or "x" in tags or tags == "d" else "owner"
    if not verb:
        if clause == "preposition" and tags[0] == "g" and "n" not in tags and end == step + 1:
            follows = parts(ahead.low) if ahead else ""
            if words[at - 1].low == "with" and not (ahead and "n" in follows.lower()):
                return "unclear"
        if (
            clause == "preposition"
            and tags[0] in "dsvV"
            and ahead
            and ahead.low in ENGLISH["determined"]
        ):
            return "unclear" if "n" in tags else "object"
        return "owner"
    return _after_verb(words, at, step, end, verb)


def _more(words: Sequence[Word], at: int) -> bool:
    return at + 1 < len(words) and _touches(words[at + 1])


def _governor(words: Sequence[Word], at: int) -> tuple[str, str]:
    """Return the verb whose object *her* may be ("" if none), and what stands before otherwise."""
    if not at or not _touches(words[at]) or re.search(r"[.!?:;]", words[at].gap):
        return "", "start"
    before = words[at - 1].low
    if _joined(words, at - 1) and at > 2:
        return _governor(words, at - 2)
    if before in ENGLISH["prepositions"]:
        return "", "preposition"
    if re.sub(r"n't$", "", before) in ENGLISH["auxiliaries"]:
        return (before, "") if before in ("had", "have", "has", "having", "did") else ("", "be")
    tags = parts(before)
    bases = _bases(before)
    if any(is_form(before, kind) for kind in ("giving", "state", "letting", "seeing", "catching",
                                              "reporting")):  # fmt: skip
        return before, ""
    if (
        set(tags) & set("vVsdg")
        and tags[0] not in "aA"
        or any("v" in _lexicon().get(base, "").lower() for base in bases)
    ):
        return ("", "noun") if tags[0] in "nN" and not bases else (before, "")
    return "", "x" if "x" in tags else "noun"


def _after_verb(words: Sequence[Word], at: int, step: int, end: int, verb: str) -> Role:
    """Return the role of *her* after a verb and before what could be a noun phrase."""
    low, tags = words[step].low, parts(words[step].low)
    last = words[end - 1].low
    head = parts(last)
    ahead = words[end].low if end < len(words) and _touches(words[end]) else ""
    follows = parts(ahead) if ahead else ""
    finite = ahead in ENGLISH["auxiliaries"] or follows == "d" or follows == "s"
    single = end == step + 1
    person = last in ENGLISH["kin"] or last.removesuffix("s") in ENGLISH["kin"]
    capital = words[step].text[:1].isupper() and not words[step].text.isupper()
    if capital:
        return _before_name(words, end, verb, low, finite)
    if single and low in ("home", "downtown", "abroad", "upstairs", "downstairs", "overseas"):
        return "object" if low != "home" or not finite else "unclear"
    if is_form(verb, "letting") or is_form(verb, "seeing"):
        if tags[0] in "rR" and end > step + 1 and "v" in parts(words[step + 1].low).lower():
            return "object" if end == step + 2 and "x" in follows else "unclear"
        choice = _bare_verb(words, step, end, verb, tags, ahead, follows)
        if choice:
            return choice
    if tags[0] == "g" and is_form(verb, "catching"):
        if not single or (ahead and "n" in follows and "x" not in follows):
            return "unclear"
        return "unclear" if low in ENGLISH["made_things"] else "object"
    if is_form(verb, "state") and single:
        if tags[0] in "aAd" and not finite:
            sure = tags[0] in "Ad" or "n" not in tags.lower()
            return "object" if sure else "unclear"
        if low == "names" or low in ENGLISH["roles"]:
            return "object"
    if (tags[0] == "d" and end > step + 1) and is_form(verb, "seeing"):
        return "owner"
    if is_form(verb, "reporting") and finite and not person:
        return "object" if single and low in ENGLISH["given_things"] else "unclear"
    if is_form(verb, "giving") and not person:
        return _given(words, step, end, verb, last, ahead, finite)
    if tags[0] == "A" and single and not ahead and "n" in tags:
        return "unclear"
    relative = at > 1 and words[at - 2].low in ("who", "that", "which", "whoever", "whatever")
    if relative and tags[0] == "d" and not single:
        return "unclear"
    if relative and head in ("sn", "ns", "s") and single and not finite and ahead:
        return "unclear"
    return "owner"


def _before_name(words: Sequence[Word], end: int, verb: str, low: str, finite: bool) -> Role:
    if low in ENGLISH["languages"] and is_form(verb, "giving"):
        return "object"
    if low in ENGLISH["kin"] or low in ("majesty", "highness", "honor", "ladyship", "grace"):
        return "object" if low == "grace" and is_form(verb, "state") else "owner"
    if verb in ("call", "calls", "called", "calling", "name", "named", "names", "naming",
                "nicknamed", "dubbed"):  # fmt: skip
        return "object"
    if is_form(verb, "reporting") and finite:
        return "object"
    return "owner"


def _bare_verb(
    words: Sequence[Word], step: int, end: int, verb: str, tags: str, ahead: str, follows: str
) -> Role | None:
    """Return the role before a word that may be a verb: "let her go", "saw her duck"."""
    if "v" not in tags.lower() or tags[0] in "aA":
        return None
    if "n" not in tags.lower() and tags[0] in "vV":
        return "object"
    if tags[0] == "N" and not (is_form(verb, "letting") and ahead in ENGLISH["directions"]):
        return None
    if ahead in ENGLISH["determined"]:
        return "object" if tags[0] != "N" else "unclear"
    if words[step].low in ENGLISH["body"] and ahead not in ENGLISH["directions"]:
        return None
    verbal = follows[:1] in ("v", "V", "a", "A") or ahead in ENGLISH["auxiliaries"]
    if verbal and end == step + 1:
        return "owner" if is_form(verb, "letting") else "unclear"
    if ahead in ENGLISH["directions"] or (ahead and follows == "r"):
        return "object"
    if tags[0] == "V" and is_form(verb, "letting") and (not ahead or follows[0] in "xg"):
        return "object"
    if is_form(verb, "letting") and verb not in ("had", "have", "has") and tags[0] == "v":
        return "object" if verb not in ("help", "helped", "helps", "helping") else "unclear"
    return "unclear"


def _given(
    words: Sequence[Word], step: int, end: int, verb: str, last: str, ahead: str, finite: bool
) -> Role:
    """Return the role between a verb of giving and a noun: "gave her flowers"."""
    low = words[step].low
    if last.removesuffix("s") in ENGLISH["times"] and last.endswith("s"):
        return "object" if is_form(verb, "taking") else "unclear"
    if is_form(verb, "granting"):
        return "unclear"
    if low in ENGLISH["numbers"]:
        return "unclear" if is_form(verb, "state") else "object"
    if ahead in ("to", "for") and last not in ("permission", "courage", "strength", "help"):
        return "owner"
    if last in ENGLISH["given_things"]:
        if is_form(verb, "state") or verb in ("sold", "sell", "did", "do", "saved", "save"):
            return "unclear"
        return "unclear" if last == "money" and not is_form(verb, "letting") else "object"
    noun = parts(last).lower()
    plural = last.endswith("s") and not last.endswith(("ss", "us", "is")) and "n" in noun
    mass = last.endswith(_NOUN_ENDINGS)
    if (plural or mass) and not is_form(verb, "state") and not finite:
        return "unclear"
    return "owner"
