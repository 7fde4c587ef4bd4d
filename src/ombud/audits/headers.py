"""Recognize what a table holds, by its columns and values: a proposal to be corrected."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
import polars as pl

from ombud.data.frames import (
    Frame,
    MappedFile,
    flat,
    open_frame,
    unreadable,
    without_odd_rows,
)
from ombud.data.reading import ENDINGS, MISSING, NO, YES, Reading, file_type
from ombud.data.tables import TABLES
from ombud.errors import DataError, PlanError
from ombud.systems.saved_outputs import ALLOWED, FLAGGED, flagged_labels, saved_form

ROLES = (*TABLES, "recommendations", "decisions")
"""What a file can be: a table of a data set, or what a system returned."""

_ROWS = 5_000
_MOST_WORDS = 12
_MOST_SYSTEMS = 20

# Words without accents, spaces and capitals, the most specific first; German, French and Spanish
# are there for the columns that people have.
_MEANS: dict[str, str] = {
    "user": "user uid customer member viewer reader account visitor person profile listener "
    "subscriber client patron player student watcher benutzer nutzer kunde mitglied leser konto "
    "utilisateur abonne usager membre lecteur usuario cliente",
    "item": "item iid movie film product asin isbn book track song video article work show game "
    "title series episode media clip podcast recipe content doc artikel produkt buch titel werk "
    "livre produit oeuvre contenu libro pelicula producto",
    "rating": "rating stars rate grade ratingvalue userrating bewertung sterne note etoiles "
    "calificacion stern",
    "time": "time timestamp date datetime createdat ts ratedat eventtime created watchedat when "
    "day datum zeit zeitpunkt zeitstempel uhrzeit horodatage heure fecha viewedat",
    "rank": "rank position pos place slot ranking order rang platz rango ordre",
    "score": "score probability prob proba confidence toxicity predictedrating likelihood "
    "relevance prediction toxicityscore wahrscheinlichkeit wert punkte punktzahl probabilite "
    "puntuacion",
    "label": "label labels tag tags warning warnings topic genre genres keyword keywords trigger "
    "triggers category advisory advisories descriptor contentwarning contentwarnings theme themes "
    "warnung warnungen schlagwort schlagworte thema kategorie etikett inhaltswarnung "
    "avertissement avertissements etiquette categorie motcle etiqueta",
    "yes": "yes yesvotes yessum votesyes upvotes numyes ja oui jastimmen",
    "no": "no novotes nosum votesno downvotes numno nein non neinstimmen",
    "present": "present applies ispresent haslabel value vorhanden",
    "state": "state",
    "text": "text comment commenttext body message post sentence tweet utterance content synopsis "
    "prompt review kommentar beitrag nachricht inhalt satz texte commentaire comentario texto",
    "truth": "label truth groundtruth goldlabel gold toxic istoxic hate hateful ishate harmful "
    "target shouldflag abusive offensive delicate isharmful annotation annotated actual expected "
    "human humanlabel reference giftig hass schaedlich schadlich toxique haineux verite class "
    "truelabel ytrue actuallabel truth_label safe issafe acceptable isacceptable benign clean",
    "id": "id textid commentid postid docid messageid tweetid uuid sampleid rowid key nr nummer "
    "kennung identifiant customid",
    "outcome": "outcome decision verdict action result status entscheidung ergebnis decisions",
    "flagged": "flagged flag isflagged blocked removed predicted predictedlabel pred moderated "
    "hidden deleted rejected modelflag entfernt geloscht gesperrt markiert gemeldet supprime "
    "signale bloque marcado prediction ypred modelprediction modeldecision approved isapproved "
    "allowed isallowed accepted visible published passed kept freigegeben approuve aprobado",
    "group": "group gruppe groupe",
    "attribute": "attribute",
    "cluster": "cluster template thread threadid",
    "family": "family",
    "set": "set dataset",
    "repeat": "repeat",
    "categories": "categories",
    "system": "system model algorithm algo recommender moderator variant arm modell modele systeme",
    "annotator": "annotator rater worker annotatorid judge coder reviewer bewerter annotateur",
    "items": "items recommendations recs recommended recommendeditems topk list itemids itemlist "
    "ids toplist empfehlungen recommandations prediction predictions predicteditems topitems",
}
_WORDS = {meaning: tuple(words.split()) for meaning, words in _MEANS.items()}
# What a name may have besides its meaning: user_id, KundenNr, member_no.
_PLAIN = (
    "id", "ids", "no", "nr", "num", "number", "nummer", "key", "code", "ref", "uuid", "idx",
    "index", "identifier", "identifiant", "kennung", "fk", "pk", "the", "original", "raw", "my",
)  # fmt: skip
# Names that are an id only where nothing else is: a title, or the content of a text.
_WEAK = ("title", "titel", "content", "contenu", "inhalt", "show", "series", "work", "media", "doc")
# Columns whose yes means that a text is fine.
_TURNED = (
    "safe", "issafe", "acceptable", "isacceptable", "benign", "clean", "approved", "isapproved",
    "allowed", "isallowed", "accepted", "visible", "published", "passed", "kept", "freigegeben",
    "approuve", "aprobado",
)  # fmt: skip
_GROUPS = (
    "identity", "identities", "gender", "sex", "race", "ethnicity", "religion", "dialect",
    "language", "lang", "age", "agegroup", "orientation", "disability", "nationality", "country",
    "region", "geschlecht", "alter", "sprache", "genre_auteur", "langue", "group", "groups",
    "gruppe", "gruppen", "groupe", "groupes", "grupo", "edad", "genero", "sexe",
)  # fmt: skip

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
_SCORES = ("score", "scores", "predictions", "distances")
_HELD_OUT = ("test", "heldout", "holdout")
_RETURNED = ("rec", "shown", "served", "toplist", "empfehl", "output", "pred", "run", "slate")
_PEOPLE = ("user", "customer", "people", "member", "reader", "viewer", "profile", "nutzer", "kunde")
_THINGS = ("item", "movie", "film", "book", "product", "catalog", "work", "track", "show", "title")
_TAGS = ("label", "tag", "warn", "advis", "trigger", "keyword", "genre", "topic")
BY_TEXT = "decisions are matched with texts by the text itself"
"""What is assumed of decisions without ids."""
Profile = Literal["empty", "flag", "list", "number", "text", "time", "whole", "word"]


@dataclass(frozen=True)
class Question:
    """Something that a file does not tell.

    Parameters
    ----------
    text
        What is asked, in one sentence.
    flag
        The option that answers it, such as ``--map user=COLUMN``.
    proposal
        What ``--yes`` takes; empty if there is none.
    """

    text: str
    flag: str
    proposal: str = ""

    def __str__(self) -> str:
        proposed = f" (--yes takes {self.proposal})" if self.proposal else ""
        return f"{self.text} Answer with {self.flag}{proposed}"


@dataclass(frozen=True)
class Answers:
    """What somebody said about files.

    Parameters
    ----------
    columns
        By ombud's name, the name in the file: ``{"user": "member_no"}``, or for one role
        ``{"labels.item": "title"}``.
    yes_values
        Words that mean that a text is, or should be, flagged, or that a label applies.
    reading
        By role, how its file is written.
    unlabeled
        What an item means that no row of the labels mentions.
    threshold
        From which score on a text is flagged.
    accept
        Whether proposals are accepted.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    yes_values: tuple[str, ...] = ()
    reading: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    unlabeled: Literal["no", "unknown"] | None = None
    threshold: float | None = None
    accept: bool = False

    def about(self, role: str) -> bool:
        """Whether somebody said something about the files of one role."""
        named = {name.rpartition(".")[0].replace("-", "_") for name in self.columns}
        return role in named or bool(self.reading.get(role))


@dataclass(frozen=True)
class FileRole:
    """What a file (or frame) seems to hold.

    Parameters
    ----------
    path
        The file; of a frame, a name for messages.
    role
        One of `ROLES`.
    columns
        By ombud's name, the name in the file.
    others
        The remaining columns: attributes, or not used.
    reading
        How it is written, as a plan states it under ``[data.reading.TABLE]``.
    systems
        The systems whose outputs the file holds, and the column that names them.
    assumed
        What a person should look at.
    questions
        What the file does not tell.
    saved
        Which form of saved output it has (`ombud.systems.saved_outputs.saved_form`), if any.
    frame
        The table itself, if it is not a file.
    system
        The system's name, if it is not that of the file.
    """

    path: Path
    role: str
    columns: Mapping[str, str]
    others: tuple[str, ...]
    reading: Mapping[str, Any] = field(default_factory=dict)
    systems: tuple[str, tuple[str, ...]] = ("", ())
    assumed: tuple[str, ...] = ()
    questions: tuple[Question, ...] = ()
    saved: str = ""
    frame: Any = None
    system: str = ""

    @property
    def renamed(self) -> dict[str, str]:
        """The columns whose name in the file is another."""
        return {ours: theirs for ours, theirs in self.columns.items() if ours != theirs}

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

    Parameters
    ----------
    path
        The file; of a frame, its name in messages.
    role
        What it holds, where somebody has said so.
    answers
        What else somebody said.
    frame
        A frame instead of a file.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    path, answers = Path(path), answers or Answers()
    table = path if frame is None else frame
    reading = dict(answers.reading.get(role or "", {}))
    chosen_reading = Reading.from_dict(reading, "--read")
    plain = replace(chosen_reading, items=(), labels=(), split="", where=(), votes=False)
    file = MappedFile(table, {}, reading=plain)
    if frame is None and role in {None, "decisions"} and _holds_lists(path):
        return FileRole(path, "decisions", {}, (), reading, saved="pipeline")
    lazy, _ = open_frame(file)
    try:
        rows: pl.DataFrame = lazy.head(_ROWS).collect(backend="polars").to_native()
    except (pl.exceptions.PolarsError, nw.exceptions.NarwhalsError, OSError) as error:
        raise DataError(path.name, [unreadable(error)]) from None
    saved = saved_form(rows.columns) if role in {None, "decisions"} else ""
    if saved and not ({"text", "comment_text"} & set(rows.columns) and role is None):
        return _saved_role(path, saved, rows, reading, answers, frame)
    if frame is None:
        rows = without_odd_rows(rows, path.name)
    rows = flat(nw.from_native(rows).lazy()).collect(backend="polars").to_native()
    profiles = {name: _profile(rows[name]) for name in rows.columns}
    found = _meanings(profiles, path, role, answers.columns)
    wide = _wide_lists(rows.columns) if "user" in found else ()
    chosen = role or _role(found, profiles, path, wide)
    if chosen is None:
        shown = ", ".join(rows.columns[:12])
        asked = Question(
            f"{path.name}: what does it hold? Its columns ({shown}) do not tell.",
            f"--as ROLE={path} (one of {', '.join(r.replace('_', '-') for r in ROLES)})",
        )
        return FileRole(path, "", {}, tuple(rows.columns), questions=(asked,), frame=frame)
    if role is None and answers.about(chosen):
        return read_role(path, chosen, answers, frame)
    table = _Table(path, chosen, rows, profiles, found, answers, reading, _own(chosen, found))
    table.find(wide, named=role is not None)
    others = tuple(name for name in rows.columns if name not in table.own.values())
    return FileRole(
        path, chosen, table.own, others, reading, table.systems(), tuple(table.assumed),
        tuple(table.questions), "", frame,
    )  # fmt: skip


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

    def find(self, wide: Sequence[str], *, named: bool) -> None:
        """Find the columns of the role, and how they are written."""
        own, found, reading, role = self.own, self.found, self.reading, self.role
        if role == "recommendations" and "item" not in own:
            self.find_lists(wide)
        if role == "labels":
            self.find_labels()
        if role == "decisions" and "id" not in own and "text" in found:
            own["id"] = found["text"]
            self.assume(BY_TEXT)
        free = ", ".join([n for n in self.rows.columns if n not in own.values()][:12])
        for one in _NEEDED[role]:
            wide_too = reading.get("items") or (one == "label" and reading.get("labels"))
            if one not in own and not wide_too:
                what = f"{one} of the {role.replace('_', ' ')}"
                self.ask(f"which column is the {what}? Columns: {free}.", f"--map {one}=COLUMN")
        if role == "decisions" and named and not {"outcome", "flagged", "score"} & set(own):
            self.ask(
                f"which column says whether a text is flagged? Columns: {free}.",
                "--map decisions.flagged=COLUMN (or --map decisions.score=COLUMN)",
            )
        flags = {"texts": ("label",), "decisions": ("flagged", "outcome"), "labels": ("present",)}
        for ours in flags.get(role, ()):
            if ours in own:
                self.find_words(ours)
        if "annotator" in found and role in {"texts", "labels"}:
            reading["votes"] = True
            self.assume("several rows about one thing are votes of annotators")
        if role == "labels" and (reading.get("votes") or {"yes", "no"} & set(own)):
            self.assume(
                "a label applies, or does not, if at least 75% of the votes say so; otherwise it "
                "is unknown ([data] threshold)"
            )
        elif reading.get("votes"):
            self.assume("the majority of the votes counts; a tie is unknown")
        if role == "labels":
            self.find_alike()

    def systems(self) -> tuple[str, tuple[str, ...]]:
        """Return the column that names systems, and their names."""
        column = self.found.get("system", "")
        if self.role not in {"recommendations", "decisions"} or column in {"", *self.own.values()}:
            return "", ()
        names = self.rows[column].drop_nulls().cast(pl.String).str.strip_chars()
        values = tuple(names.unique(maintain_order=True).to_list())
        return (column, values) if 1 <= len(values) <= _MOST_SYSTEMS else ("", ())

    def find_lists(self, wide: Sequence[str]) -> None:
        """Find lists that are in one row per user."""
        if len(wide) > 1:
            self.reading["items"] = list(wide)
            self.assume(f"{wide[0]} to {wide[-1]} are one list per row, best first")
        elif "items" in self.found:
            self.reading["items"] = [self.found["items"]]
            self.assume(f"column {self.found['items']!r} holds the whole list, best first")
        if self.reading.get("items"):
            scores = [n for n, p in self.profiles.items() if p == "list" and _joined(n) in _SCORES]
            if scores and len(self.reading["items"]) == 1:
                self.own["score"] = scores[0]
            self.own.pop("rank", None)
            if self.profiles.get(self.own.get("score", "")) != "list":
                self.own.pop("score", None)

    def find_labels(self) -> None:
        """Find labels that are columns, and several labels in one cell."""
        if "label" not in self.own or self.profiles[self.own["label"]] == "flag":
            flags = [
                n for n, p in self.profiles.items() if p == "flag" and n != self.own.get("item")
            ]
            if flags and "labels" not in self.reading:
                for ours in ("label", "yes", "no", "present", "state"):
                    self.own.pop(ours, None)
                self.reading["labels"] = flags
                self.assume(f"the columns {', '.join(flags[:6])} are labels, one each")
            return
        if self.reading.get("split"):
            return
        if self.profiles[self.own["label"]] == "list":
            # Arrays written as text are cut at commas; a list of its own needs no mark.
            self.reading["split"] = ","
            return
        mark = several_in_a_cell(self.rows[self.own["label"]])
        if mark:
            self.reading["split"] = mark
            self.assume(f"{mark!r} separates several labels in one cell")

    def find_words(self, ours: str) -> None:
        """Find which values of a column mean yes."""
        theirs = self.own[ours]
        values = self.rows[theirs]
        if values.dtype.is_float():
            whole = values.fill_nan(None)
            if not (whole.drop_nulls() == whole.drop_nulls().round()).all():
                return
            values = whole.cast(pl.Int64, strict=False)
        said = values.drop_nulls().cast(pl.String).str.strip_chars().str.to_lowercase()
        words = set(said.unique().to_list())
        if ours == "outcome":
            if words <= {"allowed", "flagged", "refused", "error", "unparseable"}:
                return
            self.own["flagged"] = self.own.pop("outcome")
            ours = "flagged"
        if self.reading.get("yes"):
            return
        open_words = words - set(MISSING)
        if len(open_words) > _MOST_WORDS:
            del self.own[ours]
            if ours == "flagged" and values.dtype.is_numeric():
                self.own.setdefault("score", theirs)
            return
        turned = any(word in _TURNED for word in _spellings(theirs))
        known = words <= {*YES, *NO, *MISSING}
        given = {word.strip().lower() for word in self.answers.yes_values}
        if given & words and (not known or turned):
            self.reading["yes"] = list(self.answers.yes_values)
            return
        if known and not turned:
            return
        plain = {word: _joined(word) for word in open_words}
        yes = sorted(w for w, p in plain.items() if w in FLAGGED or p in FLAGGED or w in YES)
        no = {w for w, p in plain.items() if w in ALLOWED or p in ALLOWED or w in NO}
        no |= {
            w for w in open_words if w.startswith(("not ", "non-", "non ", "no ", "not-", "nicht "))
        }
        yes = [word for word in yes if word not in no]
        if turned and known:
            yes = sorted(no)
        elif yes and set(yes) | no == open_words:
            self.reading["yes"] = yes
            shown = ", ".join(map(repr, yes))
            self.assume(f"{shown} in column {theirs!r} means yes, other words no")
            return
        if all(re.fullmatch(r"-?\d+", word) for word in open_words) and not turned:
            yes = ["1"] if open_words == {"-1", "1"} else []
        shown = ", ".join(map(repr, sorted(open_words)))
        meant = {"label": "that a text should be flagged", "flagged": "that a text is flagged"}
        what = meant.get(ours, "that a label applies")
        self.ask(
            f"which values of column {theirs!r} mean {what}? Found: {shown}.",
            f"--read {self.role}.yes=VALUE,VALUE" if turned else "--yes-values WORD,WORD",
            ",".join(yes),
        )
        if yes and self.answers.accept:
            self.reading["yes"] = yes
            self.assume(f"{', '.join(map(repr, yes))} in column {theirs!r} means {what}")

    def find_alike(self) -> None:
        """Ask about labels that differ in capitals and spaces alone."""
        cells = self.rows.get_column(self.own.get("label", ""), default=pl.Series()).drop_nulls()
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
        self.ask(
            f"labels differ in capitals and spaces alone ({shown}). Are they the same?",
            "--read labels.fold=true (or false)",
            "--read labels.fold=true",
        )
        if self.answers.accept:
            self.reading["fold"] = True
            self.assume(f"labels that differ in capitals and spaces alone are the same ({shown})")


def _holds_lists(path: Path) -> bool:
    """Whether a JSON file holds one list of labels for each text, as a pipeline returns them."""
    if file_type(path)[0] not in {".json", ".jsonl", ".ndjson"} or not path.is_file():
        return False
    with path.open("rb") as opened:
        start = b"".join(opened.read(4096).split())
    return start.startswith(b"[[{") or (start.startswith(b"[{") and file_type(path)[0] != ".json")


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
    if saved == "pipeline":
        if answers.yes_values:
            reading["yes"] = list(answers.yes_values)
        labels = sorted(map(str, rows["label"].drop_nulls().unique().to_list()))
        try:
            flagged_labels(labels, Reading.from_dict(reading, "--read"), path.name)
        except DataError:
            asked = f"{path.name}: which labels mean flagged? Found: {', '.join(labels[:12])}."
            questions.append(Question(asked, "--yes-values LABEL,LABEL"))
    return FileRole(
        path, "decisions", {}, tuple(rows.columns), reading, questions=tuple(questions),
        saved=saved, frame=frame,
    )  # fmt: skip


def _own(role: str, found: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of a role; one column has one meaning."""
    own: dict[str, str] = {}
    for ours in _COLUMNS[role]:
        if ours in found and found[ours] not in own.values():
            own[ours] = found[ours]
    if role == "texts" and "truth" in own:
        own["label"] = own.pop("truth")
    return own


def several_in_a_cell(values: pl.Series) -> str:
    """Return what separates several names in one cell of a column; empty if nothing does."""
    if not (values.dtype in (pl.String, pl.Categorical) or isinstance(values.dtype, pl.Enum)):
        return ""
    cells = values.drop_nulls().cast(pl.String)
    for mark in ("|", ";", ","):
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


def _spellings(name: str) -> list[str]:
    """Return what a name may mean, the whole of it first."""
    tokens = _tokens(name)
    bare = [word for word in tokens if word not in _PLAIN]
    made = ["".join(tokens), "".join(bare)]
    if "." in name:  # a part of an object: comment.body
        last = "".join(_tokens(name.rpartition(".")[2]))
        made += [last] if last not in _PLAIN else []
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
                if depth == 0 and meaning == "item" and word in _WEAK:
                    continue
                named = [
                    n for n, spellings in spelled.items()
                    if (spellings[:1] == [word] if depth == 0 else word in spellings)
                    and _fits(meaning, profiles[n])
                    and (depth == 0 or n not in found.values())
                ]  # fmt: skip
                if named:
                    found[meaning] = named[0]
                    break
    for meaning in ("user", "item"):  # one word of a name is enough where no name is better
        if meaning not in found:
            named = [n for n in profiles if set(_tokens(n)) & set(_WORDS[meaning])
                     and n not in found.values() and _fits(meaning, profiles[n])]  # fmt: skip
            if len(named) == 1:
                found[meaning] = named[0]
    if "id" in found and any(word in _WEAK for word in _spellings(found.get("item", ""))):
        # A title beside an id is no id.
        if {"text", "flagged", "outcome", "score"} & set(found):
            del found["item"]
        else:
            found["item"] = found["id"]
    stem = _joined(path.stem)
    for meaning, words in (("user", _PEOPLE), ("item", _THINGS)):
        # users.csv may call the user "id".
        if meaning not in found and "id" in found and any(word in stem for word in map(str, words)):
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
    if kept.str.contains(r"^[+-]?\d+(\.0+)?$").all():
        return "whole"
    # Several ids in one cell: "1003 1017 1040"; not 1 234 567.
    ids = kept.str.contains(r"^[\[(]?\w*\d\w*([ ,;|]+\w*\d\w*)*[\])]?$").all()
    thousands = kept.str.contains(r"^\d{1,3}([ ,]\d{3})+$").all()
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
    if meaning == "text":
        return profile in {"text", "word"}
    if meaning == "label":
        return profile in {"text", "word", "list"}
    if meaning in {"family", "set", "categories", "system", "annotator"}:
        return profile not in {"list", "number", "time"}
    if meaning == "items":
        return profile in {"list", "text", "word"}
    if meaning in {"truth", "flagged", "present", "outcome"}:
        return profile in {"flag", "whole", "word"}
    if meaning in {"rating", "score"}:
        return profile in {"whole", "number", "flag", "empty"}
    if meaning in {"rank", "yes", "no", "state", "repeat"}:
        return profile in {"whole", "flag"}
    if meaning == "time":
        return profile in {"time", "whole", "number", "word", "text", "empty"}
    return profile not in {"list", "empty"}


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


def _role(
    found: Mapping[str, str], profiles: Mapping[str, Profile], path: Path, wide: Sequence[str]
) -> str | None:
    stem = _joined(f"{path.parent.name} {path.stem}")
    own_stem = _joined(path.stem)
    user, item = "user" in found, "item" in found
    if (
        user
        and (len(wide) > 1 or "items" in found)
        and (not item or found.get("items") == found.get("item"))
    ):
        return "recommendations"
    if user and item and found["user"] != found["item"]:
        scored = "score" in found and "rating" not in found
        if "rank" in found or (scored and any(word in stem for word in _RETURNED)):
            return "recommendations"
        return "test" if any(word in own_stem for word in _HELD_OUT) else "interactions"
    if user and "rank" in found and not item:
        return "recommendations"
    if "text" in found and not user:
        return "texts"
    flags = [n for n, p in profiles.items() if p == "flag" and n != found.get("item")]
    if item and "label" in found and found["label"] != found["item"]:
        return "labels"
    if (
        item
        and (len(flags) > 1 or (flags and any(word in own_stem for word in _TAGS)))
        and (len(flags) == len(profiles) - 1 or any(word in own_stem for word in _TAGS))
    ):
        return "labels"
    if "id" in found and found["id"] not in (found.get("user"), found.get("item")):
        if any(name in found for name in ("outcome", "flagged", "score")):
            return "decisions"
        if not user and not item:
            return "text_groups" if len(profiles) > 1 else None
    if user and len(profiles) > 1:
        return "users"
    return "items" if item and len(profiles) > 1 else None


def group_columns(role: FileRole) -> list[str]:
    """Return the columns of texts that name groups of people."""
    return [n for n in role.others if {_joined(n), *_tokens(n)} & set(_GROUPS)]


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
