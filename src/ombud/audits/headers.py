"""What a table holds, by the names of its columns: a proposal that a person can correct."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ombud.data.frames import open_frame
from ombud.data.tables import TABLES
from ombud.errors import DataError, PlanError

ROLES = (*TABLES, "recommendations", "decisions")
"""What a file can be: a table of a data set, or what a system answered."""

_MEANS: dict[str, tuple[str, ...]] = {
    "user": (
        "user", "userid", "uid", "customer", "customerid", "member", "memberid", "viewer",
        "viewerid", "reader", "readerid", "account", "accountid", "visitor", "visitorid",
        "person", "personid", "profile", "profileid", "listener",
    ),
    "item": (
        "item", "itemid", "iid", "movie", "movieid", "film", "filmid", "product", "productid",
        "asin", "isbn", "book", "bookid", "track", "trackid", "song", "songid", "video",
        "videoid", "article", "articleid", "work", "workid", "show", "showid", "game", "gameid",
    ),
    "rating": ("rating", "stars", "rate", "grade", "ratingvalue", "userrating"),
    "time": ("time", "timestamp", "date", "datetime", "createdat", "ts", "ratedat", "eventtime"),
    "rank": ("rank", "position", "pos", "place", "slot"),
    "score": ("score", "probability", "prob", "confidence", "toxicity", "predictedrating"),
    "label": ("label", "tag", "warning", "topic", "genre", "keyword", "trigger", "category"),
    "yes": ("yes", "yesvotes", "yessum", "votesyes", "upvotes", "numyes"),
    "no": ("no", "novotes", "nosum", "votesno", "downvotes", "numno"),
    "present": ("present", "applies", "ispresent", "haslabel"),
    "state": ("state",),
    "text": (
        "text", "comment", "commenttext", "body", "message", "post", "sentence", "tweet",
        "utterance", "content", "synopsis",
    ),
    "truth": (
        "label", "toxic", "istoxic", "hate", "hateful", "ishate", "harmful", "truth", "target",
        "shouldflag", "abusive", "offensive", "delicate", "goldlabel",
    ),
    "id": ("id", "textid", "commentid", "postid", "docid", "messageid", "tweetid", "uuid"),
    "outcome": ("outcome", "decision"),
    "flagged": ("flagged", "flag", "isflagged", "blocked", "removed", "predicted", "prediction"),
    "group": ("group",),
    "attribute": ("attribute",),
    "cluster": ("cluster", "template", "thread", "threadid"),
    "family": ("family",),
    "set": ("set", "dataset"),
    "repeat": ("repeat",),
    "categories": ("categories",),
}  # fmt: skip

_COLUMNS: dict[str, tuple[str, ...]] = {
    "recommendations": ("user", "item", "rank", "score"),
    "interactions": ("user", "item", "rating", "time", "set"),
    "test": ("user", "item", "rating", "time"),
    "labels": ("item", "label", "yes", "no", "present", "state"),
    "texts": ("text", "id", "truth", "cluster", "family", "set"),
    "decisions": ("id", "outcome", "flagged", "score", "repeat", "categories"),
    "text_groups": ("id", "group", "attribute"),
    "users": ("user", "group", "attribute"),
    "items": ("item",),
}
_NEEDED: dict[str, tuple[str, ...]] = {
    "recommendations": ("user", "item"),
    "interactions": ("user", "item"),
    "test": ("user", "item"),
    "labels": ("item", "label"),
    "texts": ("text",),
    "decisions": ("id",),
    "text_groups": ("id",),
    "users": ("user",),
    "items": ("item",),
}
_HELD_OUT = ("test", "heldout", "holdout")
_ANSWERS = ("rec", "shown", "served", "toplist")
_PEOPLE = ("user", "customer", "people", "member", "reader", "viewer", "profile")
_THINGS = ("item", "movie", "film", "book", "product", "catalog", "work", "track", "show")


@dataclass(frozen=True)
class FileRole:
    """What a file seems to hold.

    Parameters
    ----------
    path
        The file.
    role
        One of `ROLES`.
    columns
        By ombud's name, the name in the file.
    others
        The remaining columns: attributes, or not used.
    """

    path: Path
    role: str
    columns: Mapping[str, str]
    others: tuple[str, ...]

    @property
    def renamed(self) -> dict[str, str]:
        """The columns whose name in the file is another."""
        return {ours: theirs for ours, theirs in self.columns.items() if ours != theirs}


def read_role(path: Path, role: str | None = None) -> FileRole:
    """Return what a file seems to hold, by its header and the types of its columns.

    Parameters
    ----------
    path
        A Parquet, CSV, TSV or JSONL file.
    role
        What it holds, where somebody has said so.

    Raises
    ------
    PlanError
        If its columns tell nothing, or not what they were said to be.
    """
    lazy, _ = open_frame(path)
    try:
        schema: pl.Schema = lazy.to_native().collect_schema()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(path.name, [f"its header cannot be read: {str(error)[:200]}"]) from None
    found = _meanings(schema, path)
    chosen = role or _role(found, schema, path)
    if chosen is None:
        raise PlanError(
            f"{path.name}: its columns ({', '.join(schema.names()[:12])}) do not tell what it "
            f"holds; say it, as in interactions={path} (one of {', '.join(ROLES)})"
        )
    missing = [one for one in _NEEDED[chosen] if one not in found]
    if missing:
        raise PlanError(
            f"{path.name} has no column for {' and '.join(missing)} of {chosen} "
            f"(found: {', '.join(schema.names()[:12])})"
        )
    own = {ours: found[ours] for ours in _COLUMNS[chosen] if ours in found}
    if chosen == "texts" and "truth" in own:
        own = {("label" if ours == "truth" else ours): theirs for ours, theirs in own.items()}
    if len(set(own.values())) < len(own):  # one column for two meanings: the first stands
        own = {ours: theirs for ours, theirs in own.items() if ours == _first(own, theirs)}
    others = tuple(name for name in schema.names() if name not in own.values())
    return FileRole(path, chosen, own, others)


def _first(own: Mapping[str, str], theirs: str) -> str:
    return next(ours for ours, name in own.items() if name == theirs)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _meanings(schema: pl.Schema, path: Path) -> dict[str, str]:
    """Return the column for each meaning; the spelling that stands first in the list wins."""
    found: dict[str, str] = {}
    plain: dict[str, str] = {}
    for name in schema.names():
        plain.setdefault(_plain(name), name)
    for meaning, words in _MEANS.items():
        for word in words:
            if word in plain and _fits(meaning, schema[plain[word]]):
                found[meaning] = plain[word]
                break
    stem = _plain(path.stem)
    for meaning, words in (("user", _PEOPLE), ("item", _THINGS)):
        # users.csv may call the user "id".
        if meaning not in found and "id" in found and any(word in stem for word in words):
            found[meaning] = found["id"]
    return found


def _fits(meaning: str, dtype: pl.DataType) -> bool:
    """Whether a column of this type can have a meaning that its name suggests."""
    if meaning in {"text", "label", "outcome", "family", "set", "categories"}:
        return dtype in {pl.String, pl.Categorical} or isinstance(dtype, pl.Enum)
    if meaning in {"truth", "flagged", "present"}:
        return dtype == pl.Boolean or dtype.is_integer()
    if meaning in {"rating", "score"}:
        return dtype.is_numeric()
    if meaning in {"rank", "yes", "no", "state", "repeat"}:
        return dtype.is_integer()
    return True


def _role(found: Mapping[str, str], schema: pl.Schema, path: Path) -> str | None:
    stem = _plain(f"{path.parent.name} {path.stem}")
    user, item = "user" in found, "item" in found
    if user and item and found["user"] != found["item"]:
        scored = "score" in found and "rating" not in found
        if "rank" in found or (scored and any(word in stem for word in _ANSWERS)):
            return "recommendations"
        return "test" if any(word in _plain(path.stem) for word in _HELD_OUT) else "interactions"
    if "text" in found and not user:
        return "texts"
    if item and "label" in found:
        return "labels"
    if "id" in found and found["id"] not in (found.get("user"), found.get("item")):
        if any(name in found for name in ("outcome", "flagged", "score")):
            return "decisions"
        if not user and not item:
            return "text_groups" if len(schema) > 1 else None
    if user and len(schema) > 1:
        return "users"
    return "items" if item and len(schema) > 1 else None


def named_role(word: str) -> tuple[str | None, Path]:
    """Return what ``ROLE=FILE`` or ``FILE`` on a command line says.

    Examples
    --------
    >>> role, path = named_role("interactions=clicks.csv")
    >>> role, path.name
    ('interactions', 'clicks.csv')
    """
    role, equals, rest = word.partition("=")
    if equals and role.replace("-", "_") in ROLES and not Path(word).exists():
        return role.replace("-", "_"), Path(rest)
    return None, Path(word)


def files_in(folder: Path, endings: Sequence[str]) -> list[Path]:
    """Return the tables that lie in a folder, by name."""
    return sorted(p for p in folder.iterdir() if p.is_file() and p.suffix.lower() in endings)
