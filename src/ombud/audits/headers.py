"""Recognize what a table holds, by its columns and values: a proposal to be corrected."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
import polars as pl

from ombud.data.faults import readable
from ombud.data.frames import Frame, MappedFile, flat, open_frame, without_odd_rows
from ombud.data.reading import (
    ENDINGS,
    GRADES,
    MISSING,
    NO,
    YES,
    Reading,
    file_type,
    word_of,
)  # fmt: skip
from ombud.data.tables import TABLES
from ombud.data.values import PLACE, understand
from ombud.errors import DataError, PlanError
from ombud.systems.saved_outputs import (
    ALLOWED,
    FLAGGED,
    flagged_labels,
    replies_in,
    saved_form,
)  # fmt: skip

ROLES = (*TABLES, "text_labels", "recommendations", "decisions")
"""What a file can be: a table of a data set, or what a system returned."""

_ROWS = 5_000
_MOST_WORDS = 12
_MOST_SYSTEMS = 20
# What a column may mean that is read otherwise than as a column of a table.
_LOOSE = {"annotator", "system", "items", "history"}

_NAMES: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("columns.toml").read_text(encoding="utf-8")
)
_WORDS: dict[str, list[str]] = _NAMES["means"]
_COLUMNS: dict[str, list[str]] = _NAMES["columns"]
_NEEDED: dict[str, list[str]] = _NAMES["needed"]
BY_TEXT = "decisions are matched with texts by the text itself"
"""What is assumed of decisions without ids."""
Profile = Literal["empty", "flag", "list", "number", "text", "time", "whole", "word"]


@dataclass(frozen=True)
class Question:
    """Something that a file does not tell."""

    text: str  # what is asked, in one sentence
    flag: str  # the option that answers it, such as ``--map user=COLUMN``
    proposal: str = ""  # what ``--yes`` takes; empty if there is none

    def __str__(self) -> str:
        proposed = f" (--yes takes {self.proposal})" if self.proposal else ""
        return f"{self.text} Answer with {self.flag}{proposed}" if self.flag else self.text


@dataclass(frozen=True)
class Answers:
    """What somebody said about files."""

    # By ombud's name, the name in the file: {"user": "member_no"}, or for one role
    # {"labels.item": "title"}.
    columns: Mapping[str, str] = field(default_factory=dict)
    # Words that mean that a text is, or should be, flagged, or that a label applies.
    yes_values: tuple[str, ...] = ()
    reading: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by role
    unlabeled: Literal["no", "unknown"] | None = None  # items that no row of the labels mentions
    threshold: float | None = None  # from which score on a text is flagged
    accept: bool = False  # whether proposals are accepted

    def about(self, role: str) -> bool:
        """Whether somebody said something about the files of one role."""
        named = {name.rpartition(".")[0].replace("-", "_") for name in self.columns}
        return role in named or bool(self.reading.get(role))


@dataclass(frozen=True)
class FileRole:
    """What a file (or frame) seems to hold."""

    path: Path  # of a frame, a name for messages
    role: str  # one of `ROLES`
    columns: Mapping[str, str]  # by ombud's name, the name in the file
    others: tuple[str, ...]  # the remaining columns: attributes, or not used
    # How it is written, as a plan states it under ``[data.reading.TABLE]``.
    reading: Mapping[str, Any] = field(default_factory=dict)
    # The column that names systems whose outputs the file holds, and their names; without such a
    # column, columns that hold the lists of one system each.
    systems: tuple[str, tuple[str, ...]] = ("", ())
    assumed: tuple[str, ...] = ()  # what a person should look at
    questions: tuple[Question, ...] = ()  # what the file does not tell
    saved: str = ""  # the form of saved output (`ombud.systems.saved_outputs.saved_form`), if any
    frame: Any = None  # the table itself, if it is not a file
    system: str = ""  # the system's name, if it is not that of the file

    @property
    def renamed(self) -> dict[str, str]:
        """The columns whose name in the file is another."""
        return {ours: theirs for ours, theirs in self.columns.items() if ours != theirs}

    @property
    def is_scored(self) -> bool:
        """Whether decisions are not stated, so that a threshold makes them from scores."""
        return self.role == "decisions" and not {"outcome", "flagged"} & set(self.columns)

    @property
    def source(self) -> Frame:
        """The table as `ombud.data` reads it: in ombud's names, and in long form."""
        reading = Reading.from_dict(self.reading, f"[data.reading.{self.role}]")
        table = self.path if self.frame is None else self.frame
        return MappedFile(table, dict(self.columns), reading=reading)


def read_role(
    path: Path | str, role: str | None = None, answers: Answers | None = None, frame: Any = None
) -> FileRole:
    """Return what a table seems to hold, by its header and its first rows.

    `role` and `answers` are what somebody said of it. `frame` is a table instead of a file; `path`
    is then its name in messages.
    """
    path, answers = Path(path), answers or Answers()
    table = path if frame is None else frame
    reading = dict(answers.reading.get(role or "", {}))
    chosen_reading = Reading.from_dict(reading, "--read")
    plain = replace(chosen_reading, items=(), labels=(), split="", where=(), votes=False,
                    duplicates="")  # fmt: skip
    file = MappedFile(table, {}, reading=plain)
    lazy, _ = open_frame(file)
    with readable(path.name):
        rows: pl.DataFrame = lazy.head(_ROWS).collect(backend="polars").to_native()
    if not rows.height:
        raise DataError(path.name, ["the table has no rows"])
    inner = _replies(rows.schema)
    saved = saved_form([*rows.columns, *inner]) if role in {None, "decisions"} else ""
    if saved and not ({"text", "comment_text"} & set(rows.columns) and role is None):
        return _saved_role(path, saved, rows, reading, answers, frame)
    if frame is None:
        rows = without_odd_rows(rows, path.name)
    rows = flat(nw.from_native(rows).lazy()).collect(backend="polars").to_native()
    profiles = {name: _profile(rows[name]) for name in rows.columns}
    found = _meanings(profiles, path, role, answers.columns)
    wide = _wide_lists(rows.columns) if "user" in found else ()
    chosen = role or _role(found, profiles, path, wide)
    if role is None and chosen in {None, "users", "text_groups"}:
        chosen = _role_of_named(answers.columns, found, profiles) or chosen
    if chosen in {None, "interactions"} and _is_bare(rows) and not chosen_reading.names:
        return _bare_role(path, answers, frame)
    if chosen is None:
        shown = ", ".join(rows.columns[:12])
        flag = f"--as ROLE={path} (one of {', '.join(r.replace('_', '-') for r in ROLES)})"
        text = f"{path.name}: what does it hold? Its columns ({shown}) do not tell."
        if all(re.fullmatch(r"column_\d+", name) for name in rows.columns):
            first = ", ".join(map(str, rows.row(0)))
            text = f"{path.name} has no header ({first}). What does it hold, in which columns?"
            flag += " and --read ROLE.names=NAME,NAME,... (such as user,item,rank)"
        asked = Question(text, flag)
        return FileRole(path, "", {}, tuple(rows.columns), questions=(asked,), frame=frame)
    if role is None and answers.about(chosen):
        return read_role(path, chosen, answers, frame)
    table = _Table(path, chosen, rows, profiles, found, answers, reading, _own(chosen, found))
    table.find(wide)
    others = tuple(name for name in rows.columns if name not in table.own.values())
    return FileRole(
        path, chosen, table.own, others, reading, table.systems(), tuple(table.assumed),
        tuple(table.questions), "", frame,
    )  # fmt: skip


_BARE = ["user", "item", "rating", "timestamp"]


def _is_bare(rows: pl.DataFrame) -> bool:
    """Whether a file without a header looks like ratings: two ids, a small number, a time."""
    if rows.width != 4 or not all(re.fullmatch(r"column_\d+", name) for name in rows.columns):
        return False
    a, b, rating, time = rows.select(pl.all().cast(pl.Float64, strict=False))
    whole = not any(one.null_count() for one in (a, b, rating, time))
    return whole and bool((rating <= 100).all() and (time > 1e8).all())


def _bare_role(path: Path, answers: Answers, frame: Any) -> FileRole:
    """Return the role of ratings without a header, whose columns are proposed."""
    flag = f"--read interactions.names={','.join(_BARE)}"
    text = f"{path.name} has no header. Are its columns {', '.join(_BARE)}?"
    named = answers.reading.get("interactions", {}).get("names")
    if not (answers.accept or named):
        asked = Question(text, flag, flag)
        return FileRole(path, "", {}, tuple(_BARE), questions=(asked,), frame=frame)
    told = {"names": _BARE, **answers.reading.get("interactions", {})}
    answers = replace(answers, reading={**answers.reading, "interactions": told})
    made = read_role(path, "interactions", answers, frame)
    said = f"{path.name}: its columns are {', '.join(told['names'])}"
    return replace(made, assumed=(*made.assumed, said))


@dataclass
class _Table:
    """The first rows of a table whose role is known, and what is recognized in them."""

    path: Path
    role: str
    rows: pl.DataFrame
    profiles: Mapping[str, Profile]
    found: Mapping[str, str]
    answers: Answers
    reading: dict[str, Any]
    own: dict[str, str]
    assumed: list[str] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)

    def assume(self, text: str) -> None:
        self.assumed.append(f"{self.path.name}: {text}")

    def ask(self, text: str, flag: str, proposal: str = "") -> None:
        self.questions.append(Question(f"{self.path.name}: {text}", flag, proposal))

    def propose(self, text: str, flag: str, proposal: str, made: dict[str, Any], note: str) -> None:
        """Ask, and take the proposal if proposals are accepted: `made` is how the file is read."""
        self.ask(text, flag, proposal)
        if proposal and self.answers.accept:
            self.reading |= made
            self.assume(note)

    def find(self, wide: Sequence[str]) -> None:
        """Find the columns of the role, and how they are written."""
        own, found, reading, role = self.own, self.found, self.reading, self.role
        if role == "recommendations" and {*self.profiles} == {"item", "labels"}:
            # Somebody said that {17: [titles]} are lists by user, not labels by item.
            own |= {"user": own.pop("item")}
            reading["items"] = ["labels"]
        self.find_blocks()
        if role == "recommendations" and "item" not in own:
            self.find_lists(wide)
        if role == "recommendations" and "rank" not in own:
            self.find_best()
        if role == "interactions":
            self.find_events()
        if role in {"texts", "text_labels"} and "label" not in own:
            self.find_annotators()
        if role == "decisions" and {"flagged", "outcome"} <= set(own):
            self.find_contradiction()
        if role == "labels":
            self.find_labels()
        said = found.get("truth", "") if role == "decisions" else ""
        taken = {"text", "flagged", "outcome"} & set(found)
        if said and not taken and self.profiles[said] not in {"whole", "number"}:
            own["flagged"] = said
            own.pop("score", None)  # beside a label, a score is how sure it is
        if role == "decisions" and "id" not in own and "text" in found:
            own["id"] = found["text"]
            self.assume(BY_TEXT)
        free = ", ".join([n for n in self.rows.columns if n not in own.values()][:12])
        for one in _NEEDED[role]:
            wide_too = reading.get("items") or (one == "label" and reading.get("labels"))
            if one not in own and not wide_too and not (one == "id" and reading.get("numbered")):
                what = f"{one} of the {role.replace('_', ' ')}"
                many = role == "interactions" and len(self.rows.columns) > _MOST_SYSTEMS
                hint = " (if each column is an item, write a row per user and item)" * many
                if role == "decisions":
                    hint = " (or --read decisions.numbered=true, if rows are those of the texts)"
                self.ask(f"which column is the {what}? Columns: {free}.",
                         f"--map {one}=COLUMN{hint}")  # fmt: skip
        if role == "decisions" and not {"outcome", "flagged", "score"} & set(own):
            self.ask(
                f"which column says whether a text is flagged? Columns: {free}.",
                "--map decisions.flagged=COLUMN (or --map decisions.score=COLUMN)",
            )
        score = own.get("score", "")
        turned = role == "decisions" and {*_tokens(score)} & {*_NAMES["turned"]}
        if turned and "flagged" not in own and "decisions.score" not in self.answers.columns:
            self.ask(
                f"a high value of column {score!r} seems to mean that a text is fine, but ombud "
                "flags high scores. Add a column with 1 minus it and name that one.",
                f"--map decisions.score=COLUMN (or {score}, if high values are flagged)",
            )
        for ours in _NAMES["flags"].get(role, ()):
            if ours in own and own[ours] in self.rows.columns:
                self.find_words(ours)
        texts = role in {"texts", "text_labels"}
        judged = "present" in own or reading.get("labels") or texts
        if role == "labels" and not judged and {"user", "annotator"} & set(found):
            reading["votes"] = True
            self.assume("a label applies if anybody applied it")
        elif "annotator" in found and (texts or role == "labels"):
            reading["votes"] = True
            self.assume("several rows about one thing are votes of annotators")
        if role == "labels" and ((judged and reading.get("votes")) or {"yes", "no"} & set(own)):
            self.assume(
                "a label applies, or does not, if at least 75% of the votes say so; otherwise it "
                "is unknown ([data] threshold)"
            )
        elif reading.get("votes") and texts:
            self.assume("the majority of the votes counts; a tie is unknown")
        if role == "text_groups" and "group" in own and "split" not in reading:
            mark = several_in_a_cell(self.rows[own["group"]])
            if mark:
                reading["split"] = mark
                self.assume(f"{mark!r} separates several groups in one cell")
        if role in {"labels", "texts", "text_groups", "users"}:
            self.find_alike()

    def systems(self) -> tuple[str, tuple[str, ...]]:
        """Return the column that names systems, and their names."""
        if self.lists[1:]:
            return "", tuple(self.lists)
        column = self.found.get("system", "")
        if self.role not in {"recommendations", "decisions"} or column in {"", *self.own.values()}:
            return "", ()
        names = self.rows[column].drop_nulls().cast(pl.String).str.strip_chars()
        values = tuple(names.unique(maintain_order=True).to_list())
        return (column, values) if 1 <= len(values) <= _MOST_SYSTEMS else ("", ())

    @property
    def lists(self) -> list[str]:
        """Columns that hold a list each, where none is called so."""
        if self.role != "recommendations" or {"item", "items"} & set(self.found):
            return []
        return self.arrays(scores=False)

    def arrays(self, *, scores: bool) -> list[str]:
        """Return the columns of arrays: those of scores, or all others."""
        lists = [n for n, p in self.profiles.items() if p == "list"]
        return [n for n in lists if (_joined(n) in _NAMES["scores"]) == scores]

    def find_blocks(self) -> None:
        """Ask whether a user who stands in the first row of a block alone is meant below too."""
        cells = self.rows.get_column(self.own.get("user", ""), default=pl.Series([None]))
        users = cells.drop_nulls()
        once = 1 < users.n_unique() == len(users) <= len(cells) / 2 and cells[0] is not None
        if once and "fill_down" not in self.reading:
            text = (
                f"column {cells.name!r} is empty in {cells.null_count():,} of {len(cells):,} rows"
            )
            self.ask(f"{text}. Does an empty cell mean the user of the row above?",
                     f"--read {self.role}.fill_down=true (or false)")  # fmt: skip

    def find_lists(self, wide: Sequence[str]) -> None:
        """Find lists that are in one row per user."""
        if len(wide) > 1:
            self.reading["items"] = list(wide)
            self.assume(f"{wide[0]} to {wide[-1]} are one list per row, best first")
        elif "items" in self.found:
            self.reading["items"] = [self.found["items"]]
            self.assume(f"column {self.found['items']!r} holds the whole list, best first")
        elif self.lists:
            self.reading["items"] = self.lists[:1]
            self.assume(f"lists, best first, are in columns {', '.join(self.lists)}")
        if self.reading.get("items"):
            scores = self.arrays(scores=True)
            if scores and len(self.reading["items"]) == 1:
                self.own["score"] = scores[0]
            self.own.pop("rank", None)
            if self.profiles.get(self.own.get("score", "")) != "list":
                self.own.pop("score", None)

    def find_best(self) -> None:
        """Ask for the order of lists, where the name of a column suggests that it is not usual."""
        name = self.own.get("score", "")
        if not name and "user" in self.own and not self.reading.get("items"):
            self.find_order()
        if "best" in self.reading or not set(_tokens(name)) & set(_NAMES["lowest"]):
            return
        flag = "--read recommendations.best=lowest"
        text = f"which value of column {name!r} is the best, the lowest or the highest?"
        note = f"the lowest value of column {name!r} is the best"
        self.propose(text, f"{flag} (or highest)", flag, {"best": "lowest"}, note)

    def find_order(self) -> None:
        """Ask whether a column that nothing reads gives the order of the lists."""
        named = {*_WORDS["rank"], *_WORDS["score"]}
        for name, profile in self.profiles.items():
            taken = name in (*self.own.values(), self.found.get("time"), self.found.get("system"))
            cells = self.rows[name]
            if (
                taken
                or _joined(name) not in named
                and (
                    profile not in {"number", "whole"}
                    or "id" in _tokens(name)
                    or self.rows.group_by(self.own["user"]).agg(pl.col(name).n_unique())[name].max()
                    == 1
                )
            ):
                continue
            shown = ", ".join(map(str, cells.drop_nulls().unique(maintain_order=True)[:3]))
            either = " or ".join(f"--map recommendations.{one}={name}" for one in ("rank", "score"))
            note = "lists are in the order of the rows"
            self.propose(f"does column {name!r} ({shown}) give the order of the lists?", either,
                         "the order of the rows", {}, note)  # fmt: skip

    def find_events(self) -> None:
        """Find histories in one cell per user, and ask about rows that say no: not clicked."""
        if "item" not in self.own and "history" in self.found:
            self.reading["items"] = [self.found["history"]]
            self.assume(f"column {self.found['history']!r} holds all items of a user")
        for name, profile in self.profiles.items():
            used = name in self.own.values() or self.reading.get("where")
            if used or profile not in {"flag", "word"}:
                continue
            cells = self.rows[name].drop_nulls().cast(pl.String).str.strip_chars()
            words = sorted(cells.unique().to_list())
            shown = [one for one in words if {*_tokens(one)} & {*_NAMES["unused"]}]
            if profile == "flag" and _joined(name) in _NAMES["events"]:
                shown = [one for one in words if one.lower() not in YES]
            elif len(words) > 1 and _joined(name) in _NAMES["logs"]:
                shown = shown or [one for one in words if {*_tokens(one)} & {*_NAMES["weaker"]}]
            yes = ",".join(one for one in words if one not in shown)
            if not shown or not yes or len(words) > _MOST_WORDS:
                continue
            only = f"--read interactions.where={name}={yes}"
            self.propose(
                f"is a row with {', '.join(shown)} in column {name!r} an interaction too, so that "
                "it counts as history?",
                f"{only} (it is not), or --map rating={name} (it is)" if profile == "flag"
                else f"{only} (it is not), or --read interactions.where={name}={','.join(words)}",
                only, {"where": {name: yes}},
                f"only rows with {yes} in column {name!r} are interactions",
            )  # fmt: skip

    def find_annotators(self) -> None:
        """Find what each annotator said, in one column for each."""
        named = set(_WORDS["annotator"])
        said = [n for n, p in self.profiles.items() if p == "flag" and set(_tokens(n)) & named]
        said = self.reading.get("labels", said)
        if len(said) > 1:
            self.reading |= {"labels": said, "votes": True}
            self.own["label"] = "label"
            self.assume(f"{said[0]} to {said[-1]} are votes of annotators")

    def find_contradiction(self) -> None:
        """Ask which of two columns holds the decision, where they differ."""
        flagged, outcome = self.own["flagged"], self.own["outcome"]
        made = []
        for name in (flagged, outcome):
            words = word_of(self.rows[name])
            made.append(pl.when(words.is_in([*YES, *FLAGGED])).then(1)
                        .when(words.is_in([*NO, *ALLOWED])).then(0))  # fmt: skip
        both = self.rows.select(a=made[0], b=made[1])
        differ = both.filter(pl.col("a") != pl.col("b")).height
        if self.answers.columns.get("decisions.flagged") or not differ:
            del self.own["outcome"]
            return
        self.ask(
            f"columns {flagged!r} and {outcome!r} contradict each other in {differ:,} of "
            f"{both.height:,} rows. Which one is the decision?",
            f"--map decisions.flagged={flagged} (or {outcome})",
        )

    def find_labels(self) -> None:
        """Find labels that are columns, and several labels in one cell."""
        if "label" not in self.own or self.profiles[self.own["label"]] == "flag":
            taken = {self.own.get("item"), self.found.get("annotator"), self.found.get("user")}
            flags = [n for n, p in self.profiles.items() if p == "flag" and n not in taken]
            graded = [n for n in self.profiles if n not in taken and self.severities(n)]
            numbers = self.numbers(taken)
            if graded and len(graded) >= len(flags):
                flags = graded
                self.ask_severities(graded)
            elif len(numbers) > max(len(flags), 1):
                flags = sorted([*flags, *numbers], key=self.rows.columns.index)
                self.ask_yes_from(numbers[0], "that a label applies")
            if flags and "labels" not in self.reading:
                for ours in ("label", "yes", "no", "present", "state"):
                    self.own.pop(ours, None)
                self.reading["labels"] = flags
                self.assume(f"the columns {', '.join(flags[:6])} are labels, one each")
            return
        free = [n for n in self.profiles if n not in self.own.values()]
        also = [n for n in free if {*_spellings(n)} & {*_WORDS["label"]}
                and _fits("label", self.profiles[n])]  # fmt: skip
        if also and not {"label", "labels.label"} & set(self.answers.columns):
            names = [self.own["label"], *also]
            self.ask(f"which column holds the labels, {' or '.join(map(repr, names))}?",
                     " or ".join(f"--map labels.label={one}" for one in names))  # fmt: skip
        said = {"yes", "no", "present", "state"} & set(self.own)
        taken = {*self.own.values(), self.found.get("annotator"), self.found.get("user")}
        flags = [n for n, p in self.profiles.items() if p == "flag" and n not in taken]
        grade = self.found.get("score", "")
        if not said and not flags and self.profiles.get(grade) == "number":
            self.own["present"] = grade
        if not said and len(flags) == 1:
            self.own["present"] = flags[0]
            self.assume(f"column {flags[0]!r} says whether the label applies")
        if self.reading.get("split"):
            return
        # RecBole writes sequences with spaces.
        cells = self.rows[self.own["label"]]
        if cells.dtype == pl.List:
            self.reading["split"] = several_in_a_cell(cells)
            return
        hashed = cells.drop_nulls().cast(pl.String).str.starts_with("#").all()
        marks = " " if hashed or file_type(self.path)[0] == ".item" else "|;,"
        mark = several_in_a_cell(cells, marks)
        if mark:
            self.reading["split"] = mark
            self.assume(f"{mark!r} separates several labels in one cell")
        none = cells.drop_nulls().cast(pl.String).str.strip_chars().unique()
        nothing = [one for one in sorted(none.to_list()) if _joined(one) in _NAMES["no_label"]]
        if nothing and not self.reading.get("missing"):
            self.reading["missing"] = nothing
            self.assume(f"{nothing[0]!r} means that an item has no label")

    def numbers(self, taken: set[str | None]) -> list[str]:
        """Return columns of small numbers, which grade labels, in a file that is called so."""
        if not called(self.path, "tags"):
            return []
        return [n for n, p in self.profiles.items() if p in {"number", "whole"} and n not in taken]

    def severities(self, name: str) -> set[str]:
        """Return the words of a column that grades how severe something is; else nothing."""
        if self.profiles[name] != "word":
            return set()
        words = set(word_of(self.rows[name].drop_nulls()).unique().to_list())
        return words if words & {*GRADES} and words <= {*GRADES, *NO, *MISSING, "absent"} else set()

    def ask_severities(self, names: Sequence[str]) -> None:
        """Ask from which severity on a label applies."""
        words = {word for name in names for word in self.severities(name)}
        yes = [word for word in GRADES if word in words]
        given = [word for word in self.answers.yes_values if word.strip().lower() in words]
        if given or self.reading.get("yes"):
            self.reading.setdefault("yes", given)
            return
        flag = f"--yes-values {','.join(yes)}"
        shown = ", ".join(map(repr, sorted(words)))
        question = f"{', '.join(names[:6])} hold {shown}. Which of them mean that a label applies?"
        note = f"a label applies at {', '.join(yes)}"
        self.propose(question, f"{flag} (or fewer)", flag, {"yes": yes}, note)

    def find_words(self, ours: str) -> None:
        """Find which values of a column mean yes."""
        theirs = self.own[ours]
        values = self.rows[theirs]
        meant = {"label": "that a text should be flagged", "flagged": "that a text is flagged"}
        what = meant.get(ours, "that a label applies")
        if self.profiles[theirs] == "number" or "yes_from" in self.reading:
            self.ask_yes_from(theirs, what)
            return
        if values.dtype.is_float():
            values = values.fill_nan(None).cast(pl.Int64, strict=False)
        words = set(word_of(values.drop_nulls()).unique().to_list()) - set(
            self.reading.get("missing", ())
        )
        if ours == "outcome":
            if words <= {"allowed", "flagged", "refused", "error", "unparseable"}:
                return
            self.own["flagged"] = self.own.pop("outcome")
            ours = "flagged"
        if self.reading.get("yes") or self.reading.get("no"):
            return
        open_words = words - set(MISSING)
        if open_words == {"-1", "0", "1"}:
            read = f"--read {self.role.replace('_', '-')}"
            self.ask(
                f"column {theirs!r} holds -1, 0 and 1, and 1 means {what}. What do -1 and 0 mean?",
                f"{read}.missing=-1 (unknown), {read}.missing=0, or {read}.no=-1,0 (both mean no)",
            )
            return
        if len(open_words) > _MOST_WORDS:
            del self.own[ours]
            if ours == "flagged" and values.dtype.is_numeric():
                self.own.setdefault("score", theirs)
            return
        turned = any(word in _NAMES["turned"] for word in _spellings(theirs))
        only = {*YES, *FLAGGED} if len(open_words) == 1 and ours == "flagged" else set()
        if open_words & only:
            (word,) = open_words
            self.ask(
                f"column {theirs!r} flags every text. Add rows for texts that were not flagged, if "
                "the file leaves them out.", f"--read decisions.yes={word} (all were flagged)",
            )  # fmt: skip
            return
        known = words <= {*YES, *NO, *MISSING}
        given = {word.strip().lower() for word in self.answers.yes_values}
        if given & words and (not known or turned):
            self.reading["yes"] = list(self.answers.yes_values)
            return
        if known and not turned:
            return
        plain = {word: _joined(word) for word in open_words}
        yes = sorted(w for w, p in plain.items() if w in FLAGGED or p in FLAGGED or w in YES)
        graded = [word for word in GRADES if word in words] if not yes else []
        no = {w for w, p in plain.items() if w in ALLOWED or p in ALLOWED or w in NO}
        no |= {
            w for w in open_words if w.startswith(("not ", "non-", "non ", "no ", "not-", "nicht "))
        }
        yes = [word for word in yes if word not in no]
        if graded:  # whether mild is enough is not ours to say
            yes = graded
        elif turned and known:
            yes = sorted(no)
        elif yes and set(yes) | no == open_words:
            self.reading["yes"] = yes
            shown = ", ".join(map(repr, yes))
            self.assume(f"{shown} in column {theirs!r} means yes, other words no")
            return
        if all(re.fullmatch(r"-?\d+", word) for word in open_words) and not turned:
            yes = ["1"] if open_words == {"-1", "1"} else []
        shown = ", ".join(map(repr, sorted(open_words)))
        self.propose(
            f"which values of column {theirs!r} mean {what}? Found: {shown}.",
            f"--read {self.role}.yes=VALUE,VALUE" if turned else "--yes-values WORD,WORD",
            ",".join(yes), {"yes": yes},
            f"{', '.join(map(repr, yes))} in column {theirs!r} means {what}",
        )  # fmt: skip

    def ask_yes_from(self, name: str, what: str) -> None:
        """Ask from which number on a column means yes, unless somebody said so."""
        flag = f"--read {self.role.replace('_', '-')}.yes_from=0.5"
        high = _as_number(self.rows[name]).max()
        least = self.reading.get("yes_from")
        if isinstance(high, float) and isinstance(least, int | float) and least > high:
            text = f"no value of column {name!r} is {least:g} or more; the highest is {high:g}."
            self.ask(text, flag)
        if {"yes_from", "yes", "no"} & set(self.reading):
            return
        proposal = flag if isinstance(high, float) and high <= 1 else ""
        question = f"from which value of column {name!r} on does it mean {what}?"
        note = f"0.5 and more in column {name!r} means {what}"
        self.propose(question, f"{flag} (or another number)", proposal, {"yes_from": 0.5}, note)

    def find_alike(self) -> None:
        """Ask about labels and groups that differ in capitals and spaces alone."""
        label, role = self.role == "labels", self.role.replace("_", "-")
        called = [n for n in self.rows.columns if {_joined(n), *_tokens(n)} & {*_NAMES["groups"]}]
        what, name = "labels" if label else "groups", next(iter(called), "")
        name = self.own.get("label", "") if label else name
        cells = self.rows.get_column(name, default=pl.Series()).drop_nulls()
        if "fold" in self.reading or cells.dtype != pl.String:
            return
        if self.reading.get("split"):
            cells = cells.str.split(self.reading["split"]).explode().str.strip_chars(" []\"'")
        names = pl.DataFrame({"name": cells.unique(maintain_order=True)})
        plain = pl.col("name").str.strip_chars().str.to_lowercase()
        alike = names.filter(plain.is_duplicated())["name"].to_list()
        if not alike:
            return
        shown = ", ".join(map(repr, sorted(alike)[:6]))
        self.propose(
            f"{what} differ in capitals and spaces alone ({shown}). Are they the same?",
            f"--read {role}.fold=true (or false)", f"--read {role}.fold=true", {"fold": True},
            f"{what} that differ in capitals and spaces alone are the same ({shown})",
        )  # fmt: skip


def _as_number(values: pl.Series) -> pl.Series:
    """Return a column as numbers, where it holds them: 85% is 0.85."""
    made = understand(values, "number").values if values.dtype == pl.String else values
    return made.cast(pl.Float64, strict=False).fill_nan(None)


def _saved_role(
    path: Path,
    saved: str,
    rows: pl.DataFrame,
    reading: dict[str, Any],
    answers: Answers,
    frame: Any,
) -> FileRole:
    """Return the role of outputs that a common tool saved: they are read as they are."""
    questions: list[Question] = []
    reading = {**answers.reading.get("decisions", {}), **reading}
    if saved == "pipeline":
        if answers.yes_values:
            reading["yes"] = list(answers.yes_values)
        column = replies_in(rows.schema)
        cells = rows[column] if column else rows.to_struct()
        cells = cells.explode() if cells.dtype == pl.List else cells
        words = cells.struct.field("label")
        labels = sorted(map(str, words.drop_nulls().unique().to_list()))
        try:
            flagged_labels(labels, Reading.from_dict(reading, "--read"), path.name)
        except DataError:
            question = f"{path.name}: which labels mean flagged? Found: {', '.join(labels[:12])}."
            questions.append(Question(question, "--yes-values LABEL,LABEL"))
    return FileRole(
        path, "decisions", {}, (*rows.columns, *_replies(rows.schema)), reading,
        questions=tuple(questions), saved=saved, frame=frame,
    )  # fmt: skip


def _replies(schema: pl.Schema) -> list[str]:
    """Return what tells a service's replies, of the objects that a table holds."""
    found = [dtype.inner if isinstance(dtype, pl.List) else dtype for dtype in schema.values()]
    names = {one.name for dtype in found if isinstance(dtype, pl.Struct) for one in dtype.fields}
    known = {"categoriesAnalysis", "attributeScores", "category_scores"}
    return sorted(names & (known | {"label", "score"} if replies_in(schema) else known))


def _own(role: str, found: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of a role; one column has one meaning."""
    own: dict[str, str] = {}
    for ours in _COLUMNS[role]:
        if ours in found and found[ours] not in own.values():
            own[ours] = found[ours]
    if role in {"texts", "text_labels"} and "truth" in own:
        own["label"] = own.pop("truth")
    return own


def several_in_a_cell(values: pl.Series, marks: str = "|;,") -> str:
    """Return what separates several names in one cell of a column; empty if nothing does."""
    if isinstance(values.dtype, pl.List):
        return ","
    if not (values.dtype in (pl.String, pl.Categorical) or isinstance(values.dtype, pl.Enum)):
        return ""
    cells = values.drop_nulls().cast(pl.String)
    for mark in marks:
        several = cells.str.contains(mark, literal=True)
        if not several.any():
            continue
        parts = cells.str.split(mark).explode().str.strip_chars(" []\"'")
        # Labels come again in other cells; the parts of one long name do not.
        if several.mean() > 0.02 and parts.n_unique() < max(parts.len() / 2, 3):  # type: ignore[operator]
            return mark
    return ""


def _tokens(name: str) -> list[str]:
    """Return the words of a name: ``KundenNr`` and ``kunden_nr`` are two."""
    text = unicodedata.normalize("NFKD", name)
    text = "".join(c for c in text if not unicodedata.combining(c))
    text = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text)
    return [word for word in re.split(r"[^a-z0-9]+", text.lower()) if word]


def _joined(name: str) -> str:
    return "".join(_tokens(name))


def called(path: Path, kind: str) -> bool:
    """Whether the name of a file says what it holds: ``tags``, ``returned`` or another kind."""
    return any(word in _joined(path.stem) for word in _NAMES[kind])


def _spellings(name: str) -> list[str]:
    """Return what a name may mean, the whole of it first."""
    tokens = _tokens(name)
    bare = [word for word in tokens if word not in _NAMES["plain"]]
    made = ["".join(tokens), "".join(bare)]
    if "." in name:  # a part of an object: comment.body
        last = "".join(_tokens(name.rpartition(".")[2]))
        made += [last] if last not in _NAMES["plain"] else []
    made += [word.removesuffix("id") for word in made]  # userid
    singular = [word.removesuffix("s").removesuffix("n") for word in made]
    return [word for word in dict.fromkeys([*made, *singular]) if word]


def _meanings(
    profiles: Mapping[str, Profile], path: Path, role: str | None, told: Mapping[str, str]
) -> dict[str, str]:
    """Return the column for each meaning; the spelling that stands first in the list wins."""
    found: dict[str, str] = {}
    spelled = {name: _spellings(name) for name in profiles}
    for depth in (0, 1):
        for meaning, words in _WORDS.items():
            if meaning in found:
                continue
            for word in words:
                if depth == 0 and meaning == "item" and word in _NAMES["weak"]:
                    continue
                named = [
                    n for n, spellings in spelled.items()
                    if (spellings[:1] == [word] if depth == 0 else word in spellings)
                    and _fits(meaning, profiles[n])
                    and (depth == 0 or n not in found.values())
                    and not (meaning == "rank" and "id" in _tokens(n))
                ]  # fmt: skip
                if named:
                    found[meaning] = named[0]
                    break
    for meaning in ("user", "item", "score"):  # one word of a name is enough if none is better
        if meaning not in found:
            named = [n for n in profiles if set(_tokens(n)) & set(_WORDS[meaning])
                     and n not in found.values() and _fits(meaning, profiles[n])]  # fmt: skip
            if len(named) == 1:
                found[meaning] = named[0]
    if "id" in found and any(word in _NAMES["weak"] for word in _spellings(found.get("item", ""))):
        # A title beside an id is no id.
        if {"text", "flagged", "outcome", "score"} & set(found):
            del found["item"]
        else:
            found["item"] = found["id"]
    for meaning, kind in (("user", "people"), ("item", "things")):
        # users.csv may call the user "id".
        if meaning not in found and "id" in found and called(path, kind):
            found[meaning] = found["id"]
    for ours, theirs in told.items():
        part, dot, meaning = ours.rpartition(".")
        if (not dot or part.replace("-", "_") == role) and theirs in profiles:
            for other in [m for m, n in found.items() if n == theirs]:
                del found[other]
            found["truth" if meaning == "label" and profiles[theirs] != "word" else meaning] = (
                theirs
            )
            if meaning == "label":
                found["label"] = found["truth"] = theirs
    return found


def _profile(values: pl.Series) -> Profile:
    """Return what kind of values a column has."""
    dtype = values.dtype
    if isinstance(dtype, pl.List | pl.Array | pl.Struct):
        return "list"
    some = values.drop_nulls()
    if not len(some):
        return "empty"
    if dtype == pl.Boolean:
        return "flag"
    if dtype.is_integer():
        return "flag" if some.is_in([0, 1]).all() else "whole"
    if dtype.is_float():
        known = some.fill_nan(None).drop_nulls()
        if known.is_in([0.0, 1.0]).all():
            return "flag"
        return "whole" if (known == known.round()).all() else "number"
    if dtype.is_temporal():
        return "time"
    words = some.cast(pl.String).str.strip_chars()
    lower = words.str.to_lowercase()
    kept = words.filter(~lower.is_in(list(MISSING)))
    if not len(kept):
        return "empty"
    if lower.is_in([*YES, *NO, *MISSING]).all():
        return "flag"
    if kept.str.contains(rf"^[+-]?\d+(\.0+)?$|{PLACE}").all():
        return "whole"
    # Several ids in one cell: "1003 1017 1040"; not 1 234 567.
    ids = kept.str.contains(r"^[\[(]?\w*\d\w*([ ,;|]+\w*\d\w*)*[\])]?$").all()
    thousands = kept.str.contains(r"^\d{1,3}([ ,]\d{3}){1,5}$").all()
    several = (kept.str.count_matches(r"[ ,;|]+") > 1).sum()
    if ids and not thousands and several > len(kept) / 2:
        return "list"
    if kept.str.contains(r"^[+-]?[\d.,' \u00a0]*\d ?%?$").all():
        return "number"
    if kept.str.contains(r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T ,].*)?$").all():
        return "time"
    if kept.str.starts_with("[").all():
        return "list"
    long = kept.str.len_chars().mean()
    return "text" if isinstance(long, float) and long > 25 else "word"


def _fits(meaning: str, profile: Profile) -> bool:
    """Whether a column of these values can have a meaning that its name suggests."""
    return profile in _NAMES["fits"].get(meaning, _NAMES["fits"]["other"])


def _wide_lists(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns ``rec1`` to ``rec10`` of a list, in order."""
    numbered: dict[str, dict[int, str]] = {}
    for name in columns:
        cut = re.fullmatch(r"(.*?)[ _.#-]?(\d{1,4})", name.strip())
        if cut:
            numbered.setdefault(cut[1].lower(), {})[int(cut[2])] = name
    for places in numbered.values():
        order = sorted(places)
        if len(order) > 1 and order[0] in {0, 1} and order == list(range(order[0], order[-1] + 1)):
            return tuple(places[place] for place in order)
    return ()


def _role_of_named(
    columns: Mapping[str, str], found: Mapping[str, str], profiles: Mapping[str, Profile]
) -> str | None:
    """Return the role for which somebody named columns that this file has."""
    units = {"interactions": "user", "recommendations": "user", "decisions": "id"}
    for ours, theirs in columns.items():
        role = ours.rpartition(".")[0]
        here = {one.strip() for one in theirs.split(",")} <= set(profiles)
        if here and units.get(role) in found:
            return role
    return None


def _role(
    found: Mapping[str, str], profiles: Mapping[str, Profile], path: Path, wide: Sequence[str]
) -> str | None:
    stem = _joined(f"{path.parent.name} {path.stem}")
    user, item = "user" in found, "item" in found
    listed = len(wide) > 1 or "items" in found
    if user and listed and (not item or found.get("items") == found.get("item")):
        return "recommendations"
    if user and not item and "history" in found:
        return "interactions"
    if user and not item and "list" in profiles.values():
        return "recommendations"
    if user and item and found["user"] != found["item"]:
        # MovieLens and others state who applied a tag.
        tagged = {_joined(found.get("label", ""))} & {"tag", "label", "warning", "keyword"}
        if tagged and not {"rank", "score", "rating"} & set(found):
            return "labels"
        scored = "score" in found and "rating" not in found
        if "rank" in found or (scored and any(word in stem for word in _NAMES["returned"])):
            return "recommendations"
        return "test" if called(path, "held_out") else "interactions"
    if user and "rank" in found and not item:
        return "recommendations"
    if "text" in found and not user:
        return "texts"
    flags = [n for n, p in profiles.items() if p == "flag" and n != found.get("item")]
    if item and flags and "annotator" in found:
        return "labels"
    if item and "label" in found and found["label"] != found["item"]:
        return "labels"
    named = called(path, "tags")
    if item and flags and (named or 1 < len(flags) == len(profiles) - 1):
        return "labels"
    graded = [n for n, p in profiles.items() if p in {"whole", "number"} and n != found.get("item")]
    if item and named and 1 < len(graded) == len(profiles) - 1:
        return "labels"
    if "id" in found and found["id"] not in (found.get("user"), found.get("item")):
        if {"outcome", "flagged", "score"} & set(found) or called(path, "decided"):
            return "decisions"
        if not user and not item:
            return "text_groups" if len(profiles) > 1 else None
    if user and len(profiles) > 1:
        return "users"
    return "items" if item and len(profiles) > 1 else None


def group_columns(role: FileRole) -> list[str]:
    """Return the columns of texts that name groups of people."""
    named = [n for n in role.others if {_joined(n), *_tokens(n)} & set(_NAMES["groups"])]
    return [n for n in named if _joined(n) not in _NAMES["no_groups"]]


def identity_columns(role: FileRole) -> list[str]:
    """Return the columns of texts that are called like a group and hold yes or no."""
    named = [n for n in role.others if {*_tokens(n)} & set(_NAMES["identities"])]
    if not named:
        return []
    lazy, _ = open_frame(MappedFile(role.path if role.frame is None else role.frame, {}))
    rows: pl.DataFrame = lazy.head(_ROWS).collect(backend="polars").to_native()
    return [n for n in named if n in rows.columns and _profile(rows[n]) == "flag"]


def unused_answers(roles: Sequence[FileRole], answers: Answers) -> list[Question]:
    """Return a question for each answer that changes nothing in how these files are read."""
    made: list[str] = []
    known = {name for names in (*_COLUMNS.values(), [*_WORDS], ["label"]) for name in names}
    for ours, theirs in answers.columns.items():
        part, dot, meaning = ours.rpartition(".")
        # Groups of texts are a table of their own, also in the file of the texts.
        parts = {part.replace("-", "_"), "text_groups" if meaning == "group" else part}
        here = [one for one in roles if not dot or one.role in parts]
        names = {name.strip() for name in theirs.split(",")}
        there = {name for one in here for name in (*one.columns.values(), *one.others)}
        used = {
            name
            for one in here
            for name in (*one.columns.values(), *one.reading.get("labels", ()))
            + one.others * (one.role in {"text_groups", "users", "items"})
        }
        if meaning not in known:
            every = ", ".join(sorted(known - {"truth"}))
            # Whatever follows may follow from this.
            return [Question(f"--map {ours}={theirs}: {meaning!r} is none of {every}.", "")]
        why = (
            ""
            if meaning in _LOOSE or ours == "labels.user" or names & used
            else "no table has such a column"
        )
        if not here:
            why = f"no file holds {part}"
        elif names - there:
            lacking = ", ".join(map(repr, sorted(names - there)))
            why = f"there is no column {lacking} among {', '.join(sorted(there)[:20])}"
        made += [f"--map {ours}={theirs} was not used: {why}."] if why else []
    held = {one.role for one in roles}
    for role in sorted({*answers.reading} - held):
        settings = ", ".join(f"--read {role}.{name}" for name in answers.reading[role])
        made.append(f"{settings} was not used: no file holds {role}.")
    if answers.unlabeled is not None and "labels" not in held:
        made.append(f"--unlabeled {answers.unlabeled} was not used: no file holds labels of items.")
    if answers.threshold is not None and not any(one.is_scored for one in roles):
        files = [one.path.name for one in roles if one.role == "decisions"]
        why = f"decisions are stated in {', '.join(files)}" if files else "no file holds decisions"
        made.append(f"--threshold {answers.threshold:g} was not used: {why}.")
    questions = [Question(fault, "") for fault in made]
    words = list(answers.yes_values)
    if words and not any(list(role.reading.get("yes", ())) == words for role in roles):
        flags = [
            (one.role, one.columns[name])
            for one in roles
            for name in ("label", "flagged", "present")
            if name in one.columns and one.role in {"texts", "decisions", "labels"}
        ]
        shown = " and ".join(f"{column!r} ({role})" for role, column in flags) or "none"
        text = (
            f"--yes-values {','.join(words)} was not used: which column is meant? Found: {shown}."
        )
        role = flags[0][0] if flags else "texts"
        questions.append(Question(text, f"--read {role}.yes={','.join(words)}"))
    return questions


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
    if equals and not Path(word).exists():
        known = ", ".join(one.replace("_", "-") for one in ROLES)
        raise PlanError(f"{word}: {role!r} is not what a file can hold; one of {known}")
    return None, Path(word)


def files_in(folder: Path) -> list[Path]:
    """Return the tables that lie in a folder, by name."""
    found = (p for p in folder.iterdir() if p.is_file() and file_type(p)[0] in ENDINGS)
    return sorted(p for p in found if p.suffix.lower() != ".txt" or "requirements" not in p.name)
