"""From files to a first plan and gate that run as written: ``ombud init``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl
import tomli_w

from ombud.audits.audit import Audit
from ombud.audits.gate import Gate
from ombud.audits.headers import (
    BY_TEXT,
    ROLES,
    Answers,
    FileRole,
    Question,
    called,
    files_in,
    group_columns,
    identity_columns,
    named_role,
    read_role,
    several_in_a_cell,
    unused_answers,
)
from ombud.audits.load import load_metrics
from ombud.audits.plan import ExpectPlan, Plan
from ombud.data.frames import open_frame
from ombud.data.labels import Labels, LabelState
from ombud.data.reading import ENDINGS, MISSING, Reading, noting
from ombud.data.texts import Texts
from ombud.data.values import understand
from ombud.errors import OmbudError, PlanError
from ombud.files import write_text
from ombud.text.tagging import other_languages

_MOST_VALUES = 20
_LENGTH = 10
_REASON = "A first limit that ombud init wrote: put your own number and your reason here."


@dataclass
class Start:
    """A first plan and gate for some files, and what was assumed in writing them.

    Parameters
    ----------
    roles
        What each file seems to hold.
    folder
        Where the plan will lie; its paths are relative to it.
    answers
        What somebody said about the files.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from ombud.worlds import small_world
    >>> with TemporaryDirectory() as folder:
    ...     files = small_world(seed=1, users=40).write(folder, 10)
    ...     some = [files["interactions"], files["labels"], files["recommendations/neutral"]]
    ...     start = Start.from_files(some, folder)
    ...     sorted(path.name for path in start.write())
    ['gate.toml', 'plan.toml']
    """

    roles: Sequence[FileRole]
    folder: Path
    answers: Answers = field(default_factory=Answers)
    assumed: list[str] = field(default_factory=list)
    """What a person should look at, one sentence each."""
    unused: list[str] = field(default_factory=list)
    """Files and columns that the plan does not use, and why."""
    asked: list[Question] = field(default_factory=list)
    """What the plan had to assume and a person should decide."""

    @classmethod
    def from_files(
        cls,
        files: Sequence[Path | str] = (),
        folder: Path | str = ".",
        answers: Answers | None = None,
    ) -> Self:
        """Read the headers of some files and propose a plan for them.

        Parameters
        ----------
        files
            Paths, or ``ROLE=FILE`` where the header would not tell; default, all tables in the
            folder.
        folder
            Where plan and gate will be written.
        answers
            What somebody said about the files.
        """
        folder, answers = Path(folder), answers or Answers()
        named = list(dict.fromkeys(named_role(str(file)) for file in files))
        if not named:
            named = [(None, path) for path in files_in(folder)] if folder.is_dir() else []
        if not named:
            raise PlanError(
                f"there is no table in {folder} ({', '.join(ENDINGS)}); name files, as in: ombud "
                "init ratings.csv labels.csv; or try ombud without any: ombud demo"
            )
        roles, faults = [], []
        for role, path in named:
            try:
                roles.append(read_role(path, role, answers))
            except OmbudError as error:
                faults.append(str(error))
        if faults:
            raise PlanError("\n".join(faults))
        said = {path for role, path in named if role is not None}
        return cls(_resolved(roles, said, answers), folder, answers)

    def questions(self) -> list[Question]:
        """Return everything that the files do not tell, as far as nobody answered it."""
        found = [question for role in self.roles for question in role.questions]
        found += _several(self.roles)
        found += unused_answers(self.roles, self.answers)
        if found:
            self.asked.clear()
            for role in self.roles:
                if role.role == "labels" and all(one.proposal for one in role.questions):
                    self._label_options(role)
        else:
            try:
                self.plan()
            except PlanError as error:
                found.append(Question(str(error), ""))
        found += self.asked
        return [q for q in found if not (self.answers.accept and q.proposal)]

    def write(self) -> tuple[Path, Path]:
        """Write ``plan.toml`` and ``gate.toml``, once the plan has read its data.

        Raises
        ------
        PlanError
            If one of them is there already (nothing is overwritten), or if the scores of a file
            leave open which texts are flagged.
        """
        paths = (self.folder / "plan.toml", self.folder / "gate.toml")
        for path in paths:
            if path.exists() or path.is_symlink():
                raise PlanError(
                    f"{path} is there already, and nothing is overwritten; choose another folder "
                    "with --folder, or move it away"
                )
        plan, gate = self.plan(), self.gate()
        # Any other question has an answer to start from; a threshold out of range has none.
        if faults := [q for q in self.asked if q.flag.startswith("--threshold") and not q.proposal]:
            raise PlanError("\n".join(map(str, faults)))
        with noting():
            Audit.from_plan(Plan.from_dict(plan).relative_to(self.folder))  # its faults come now
        heads = [_comment(f"Assumed, please check: {text}") for text in self.assumed]
        heads += [_comment(f"Not used: {text}") for text in self.unused]
        first = "# Written by ombud init; every setting: docs/plan.md. Run it: ombud run plan.toml"
        plan_text = "\n".join([first, *heads, "", tomli_w.dumps(plan)])
        about = "# Limits to judge a result by: ombud check plan.result --gate gate.toml"
        later = "# Declared in the plan itself, under [expect], they are fixed before a run."
        write_text(paths[0], plan_text)
        write_text(paths[1], "\n".join([about, later, "", tomli_w.dumps(gate)]))
        return paths

    def plan(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        self.assumed[:] = [text for role in self.roles for text in role.assumed]
        self.unused.clear()
        self.asked.clear()
        open_questions = [q for role in self.roles for q in role.questions if not q.proposal]
        open_questions += [*_several(self.roles), *unused_answers(self.roles, self.answers)]
        if open_questions:
            raise PlanError("\n".join(map(str, open_questions)))
        by_role = self._by_role()
        if "interactions" in by_role:
            return self._recommender_plan(by_role)
        if "texts" in by_role:
            return self._moderator_plan(by_role)
        held = ", ".join(f"{role.path.name} ({role.role})" for role in self.roles)
        raise PlanError(
            f"an audit needs interactions or texts; found {held}. Name them with --as "
            "interactions=FILE or --as texts=FILE. If one file holds several tables, name it for "
            "each, with the rows: --read interactions.where=COLUMN=VALUE"
        )

    def gate(self) -> dict[str, Any]:
        """Return a first gate as plain values; its limits are to be replaced."""
        specs = tuple(self.plan()["metrics"])
        expect = {}
        for metric, spec in zip(load_metrics(specs), specs, strict=True):
            said, limit = _LIMITS[spec["name"]]
            where = f'metric == "{metric.title}" and group == ""'
            expect[said] = ExpectPlan(limit=limit, where=where, reason=_REASON)
        Gate(expect)
        return {"expect": {name: one.model_dump() for name, one in expect.items()}}

    def _by_role(self) -> dict[str, list[FileRole]]:
        by_role: dict[str, list[FileRole]] = {}
        for role in self.roles:
            by_role.setdefault(role.role, []).append(role)
        return by_role

    def _recommender_plan(self, by_role: Mapping[str, list[FileRole]]) -> dict[str, Any]:
        data = self._data(by_role, ("interactions", "test", "labels", "users", "items"))
        extra: dict[str, Any] = {}
        (interactions,) = by_role["interactions"]
        data |= self._interaction_options(interactions)
        if "labels" in by_role:
            data |= self._label_options(by_role["labels"][0])
        self._choose_groups(by_role, "users", "user", data, extra)
        if "items" in by_role:
            self._choose_items(by_role["items"][0], data, extra)
        for role in by_role.get("labels", []):
            read = {*role.columns.values(), *role.reading.get("labels", ())}
            rest = [name for name in role.others if name not in read]
            if rest and not role.reading.get("votes"):
                self.unused.append(f"{role.path.name}: columns {', '.join(rest[:12])}")
        systems, k = self._recommenders(by_role.get("recommendations", []))
        if "labels" in data or extra.get("by_item"):
            metrics = [{"name": "share-gap", "k": k}]
        else:
            metrics = [{"name": "coverage", "k": k}, {"name": "gini", "k": k}]
            self.assumed.append("there are no labels of items, so only exposure is measured")
        if "test" in by_role:
            metrics.append({"name": "ndcg", "k": k})
        self._leave_out(by_role, ("texts", "text_groups", "decisions"), "the plan audits lists")
        return self._joined("What do these lists show?", data, systems, metrics, extra)

    def _moderator_plan(self, by_role: Mapping[str, list[FileRole]]) -> dict[str, Any]:
        data = self._data(by_role, ("texts", "text_labels", "text_groups"))
        extra: dict[str, Any] = {}
        (texts,) = by_role["texts"]
        self._choose_groups(by_role, "text_groups", "id", data, extra)
        if "id" not in texts.columns and ("text_groups" in data or "decisions" in by_role):
            self.assumed.append("texts have no id: other files name them by row, counted from 1")
        for one in other_languages(_sample(texts)):
            about = f"{texts.path.name}: {one.count:,} of {one.of:,} texts: {one.reason}"
            self.assumed.append(f"{about} (preset suppression uses such lists)")
        systems = self._moderators(by_role.get("decisions", []))
        if "label" not in texts.columns and "text_labels" not in by_role:
            free = ", ".join(texts.others[:12]) or "none"
            raise PlanError(
                f"{texts.path.name} has no column that says which texts should be flagged (other "
                f"columns: {free}). Name it with --map texts.label=COLUMN (1 = should be flagged), "
                "or a file that has it with --as text-labels=FILE; columns of several annotators "
                "with --read texts.labels=COLUMN,COLUMN --read texts.votes=true"
            )
        metrics = [{"name": "false-positive-rate"}, {"name": "undecided-share"}]
        self._leave_out(
            by_role, ("labels", "users", "items", "test", "recommendations"), "it audits texts"
        )
        read = {name for r in self.roles for name in (*r.columns.values(), *r.systems[:1])}
        read |= set(extra.get("by", ()))
        for role in by_role["texts"]:
            rest = [name for name in role.others if name not in read]
            if rest:
                hint = "" if "text_groups" in data else " (--map group=COLUMN compares its groups)"
                self.unused.append(f"{role.path.name}: columns {', '.join(rest[:12])}{hint}")
        return self._joined("What does this moderator flag?", data, systems, metrics, extra)

    def _joined(
        self,
        title: str,
        data: dict[str, Any],
        systems: dict[str, Any],
        metrics: list[dict[str, Any]],
        extra: dict[str, Any],
    ) -> dict[str, Any]:
        columns = {
            role.role: role.renamed for role in self.roles if role.role in data and role.renamed
        }
        held = data | ({"columns": columns} if columns else {})
        readings = {r.role: dict(r.reading) for r in self.roles if r.role in data and r.reading}
        held |= {"reading": readings} if readings else {}
        held["form"] = {
            r.role: [
                n
                for n in (*r.columns.values(), *r.others)
                if n != "label" or n in r.others or not r.reading.get("labels")
            ]
            for r in self.roles
            if r.role in data and not (r.role == "text_groups" and data["texts"] == data[r.role])
        }
        preset = _preset(data, extra)
        if preset:
            self.assumed.append(
                f'no preset is used; preset = "{preset}" at the top of the plan adds what that '
                f"question needs (ombud describe {preset})"
            )
        return {"title": title, **extra, "data": held, "systems": systems, "metrics": metrics}

    def _data(self, by_role: Mapping[str, list[FileRole]], names: Sequence[str]) -> dict[str, Any]:
        return {name: self._named(by_role[name][0].path) for name in names if name in by_role}

    def _named(self, path: Path) -> str:
        return Path(os.path.relpath(path.resolve(), self.folder.resolve())).as_posix()

    def _leave_out(
        self, by_role: Mapping[str, list[FileRole]], names: Sequence[str], why: str
    ) -> None:
        self.unused += [f"{one.path.name}: {why}" for n in names for one in by_role.get(n, ())]

    def _interaction_options(self, role: FileRole) -> dict[str, Any]:
        options: dict[str, Any] = {}
        frame = _frame(role, ("user", "item", "rating"))
        pairs = frame.select(pl.struct("user", "item").is_duplicated().any()).collect().item()
        if pairs:
            options["duplicates"] = "last"
            self.assumed.append("some users have an item more than once: the last row counts")
        if "rating" in role.columns and not any(r.role == "recommendations" for r in self.roles):
            word = pl.col("rating").cast(pl.String).str.strip_chars().str.to_lowercase()
            empty = (word.is_null() | word.is_in(list(MISSING))).any()
            if frame.select(empty).collect().item():
                options["missing"] = "drop"
                self.assumed.append("rows without a rating are left out")
        return options

    def _label_options(self, role: FileRole) -> dict[str, Any]:
        if self.answers.unlabeled is not None:
            return {"unlabeled": self.answers.unlabeled}
        if {"yes", "no"} & set(role.columns) or "state" in role.columns:
            return {}
        judged = "present" in role.columns or role.reading.get("labels")
        if judged and (role.reading.get("votes") or role.questions):
            return {}
        if judged:
            known = Labels.from_applied(role.source).states
            if (known == LabelState.NO).any():
                return {}
        self.asked.append(
            Question(
                f"{role.path.name} only states which labels apply. Was every item looked at for "
                "every label, so that all other items count as no?",
                "--unlabeled no (every item was looked at) or --unlabeled unknown",
                "--unlabeled unknown: no share can be computed then",
            )
        )
        self.assumed.append(
            f'{role.path.name} only states which labels apply. unlabeled = "unknown" means that a '
            "missing row says nothing: shares cannot be computed then. Write unlabeled = "
            '"no" if every item was looked at for every label: all other items then count as no'
        )
        return {"unlabeled": "unknown"}

    def _choose_groups(
        self,
        by_role: Mapping[str, list[FileRole]],
        table: str,
        unit: str,
        data: dict[str, Any],
        extra: dict[str, Any],
    ) -> None:
        if table not in by_role:
            return
        (role,) = by_role[table]
        if "group" in role.columns:
            return
        again = (
            not role.reading.get("numbered")
            and _frame(role, (unit,)).select(pl.col(unit).is_duplicated().any()).collect().item()
        )
        chosen = [] if again else self._few_values(role)
        if again:
            why = f"an id of {unit} stands in more than one row"
            self.unused.append(f"{role.path.name}: {why}")
        if not chosen:
            del data[table]
        else:
            extra["by"] = chosen

    def _choose_items(self, role: FileRole, data: dict[str, Any], extra: dict[str, Any]) -> None:
        again = _frame(role, ("item",)).select(pl.col("item").is_duplicated().any())
        chosen = [] if again.collect().item() else self._few_values(role)
        if chosen:
            extra["by_item"] = chosen
        else:
            del data["items"]
            self.unused.append(f"{role.path.name}: no column has few values for each item")

    def _few_values(self, role: FileRole) -> list[str]:
        """Return the columns that make groups: words or numbers of which there are few."""
        opened, _ = open_frame(role.source, wanted=role.others)
        lazy = opened.collect(backend="polars").to_native().lazy()
        schema = lazy.collect_schema()
        kept = []
        for name in role.others:
            if name not in schema:  # it differs between rows about one thing
                continue
            dtype = schema[name]
            words = dtype in (pl.String, pl.Boolean, pl.Categorical) or isinstance(dtype, pl.Enum)
            whole = words or dtype.is_integer()
            values = lazy.select(pl.col(name).n_unique()).collect().item() if whole else 0
            if name.endswith("_status"):
                continue
            if not whole:
                self.unused.append(f"column {name!r} of {role.path.name}: cut it into bands first")
            elif not 2 <= values <= _MOST_VALUES:
                self.unused.append(
                    f"column {name!r} of {role.path.name}: {values:,} values, and groups are made "
                    f"of 2 to {_MOST_VALUES}"
                )
            else:
                kept.append(name)
        return kept

    def _recommenders(self, roles: Sequence[FileRole]) -> tuple[dict[str, Any], int]:
        if not roles:
            self.assumed.append(
                "there is no file of recommendations: the plan trains the system 'popular'; "
                "name your own (ombud describe recorded)"
            )
            # Lists that were not recognized must not be replaced by others.
            trained = "" if self.unused else "the system 'popular', trained on the interactions"
            self.asked.append(
                Question(
                    "No file holds recommendations, which are what is audited.",
                    "--as recommendations=FILE",
                    trained,
                )
            )
            return {"popular": {"type": "popular"}}, _LENGTH
        systems: dict[str, Any] = {}
        lengths: list[int] = []
        for role in roles:
            if "rank" not in role.columns and "score" not in role.columns:
                self.assumed.append(f"{role.path.name} has no rank: lists are in the order of rows")
            systems |= self._recorded(role, systems)
            lists: pl.LazyFrame = open_frame(role.source)[0].to_native().select("user")
            longest = lists.group_by("user").len().select(pl.col("len").max())
            together = len(role.systems[1]) if role.systems[0] else 1
            lengths.append(max(1, int(longest.collect().item()) // together))
        return systems, min(_LENGTH, *lengths)

    def _moderators(self, roles: Sequence[FileRole]) -> dict[str, Any]:
        if not roles:
            self.assumed.append(
                "there is no file of decisions: the plan asks a list of words that ombud holds; "
                "name your own moderator (ombud describe recorded, http, sklearn)"
            )
            hint = "".join(
                f" Columns of {role.path.name}: {', '.join(role.others[:12])}."
                for role in self.roles if role.role in {"texts", "text_groups"} and role.others
            )  # fmt: skip
            self.asked.append(
                Question(
                    f"No file holds decisions, which are what is audited.{hint}",
                    "--as decisions=FILE, or --map decisions.flagged=COLUMN,COLUMN",
                )
            )
            return {"word list": {"type": "keyword", "builtin": "terms-identity@1"}}
        systems: dict[str, Any] = {}
        for role in roles:
            made = self._recorded(role, systems)
            threshold = self._threshold(role) if role.is_scored else None
            if threshold is not None:
                made = {name: config | {"threshold": threshold} for name, config in made.items()}
            systems |= made
        return systems

    def _threshold(self, role: FileRole) -> float | None:
        """Return the score from which on a text is flagged; without one flags are not measured."""
        given = self.answers.threshold
        name = role.path.name
        if given is None:
            if role.saved not in {"pipeline", "replies"} or "attributeScores" in role.others:
                self.assumed.append(
                    f"{name} has scores only: flags are not measured; --threshold NUMBER flags "
                    "from that score on"
                )
            return None
        low, high = _score_range(role)
        scores = f"{name} has scores only" + (f" ({low:g} to {high:g})" if low < high else "")
        if low < high and not low < given <= high:
            what = "every text" if given <= low else "no text"
            asked = f"{scores}, so that the threshold {given:g} flags {what}."
            self.asked.append(Question(asked, "--threshold NUMBER"))
        return given

    def _recorded(self, role: FileRole, taken: Mapping[str, Any]) -> dict[str, Any]:
        """Return the systems whose outputs a file holds: one, or one for each value of a column."""
        config: dict[str, Any] = {"type": "recorded", "path": self._named(role.path)}
        # A file that also holds the texts has columns that must not be taken for outputs.
        shared = any(one.path == role.path and one is not role for one in self.roles)
        if role.renamed or (shared and role.columns):
            config["columns"] = dict(role.columns)
        column, names = role.systems
        if not names:
            reading = {"reading": dict(role.reading)} if role.reading else {}
            stems = [
                one.path.stem for one in self.roles if one.role == role.role and not one.system
            ]
            folder = f"{role.path.parent.name} " if stems.count(role.path.stem) > 1 else ""
            return {_name(role.system or folder + role.path.stem, taken): config | reading}
        made: dict[str, Any] = {}
        for name in names:
            own = {"where": {column: name}} if column else {"items": [name]}
            made[_name(name, {**taken, **made})] = config | {"reading": {**role.reading, **own}}
        if column:
            self.assumed.append(f"{role.path.name}: column {column!r} names {len(names)} systems")
        return made


def _resolved(roles: Sequence[FileRole], said: set[Path], answers: Answers) -> list[FileRole]:
    """Return the roles of files that are better told together than one by one."""
    made = list(roles)
    histories = [role for role in made if role.role == "interactions"]
    if len(histories) > 1:
        # Of several tables of users and items, one is called so, or those with scores are what
        # systems returned; a column that nothing reads may be the rank of another one.
        free = [role for role in histories if role.path not in said]
        ranked = {id(r): read_role(r.path, "recommendations", answers, r.frame) for r in free}
        returned = [role for role in free if called(role.path, "returned")]
        scored = [r for r in free if "rating" not in r.columns and "score" in ranked[id(r)].columns]
        if len(returned) != 1 and not any(r.others for r in histories if r not in scored):
            returned = scored
        for role in returned:
            made[made.index(role)] = ranked[id(role)]
    for role in [one for one in made if one.role == "items" and one.path not in said]:
        # Flags among the facts about items are labels.
        again = read_role(role.path, "labels", answers, role.frame)
        flags = again.reading.get("labels", ())
        if flags and not any(one.role == "labels" for one in made):
            rest = tuple(name for name in role.others if name not in flags)
            made[made.index(role)] = replace(role, others=rest)
            made.append(again)
    lists = any(role.role in {"interactions", "recommendations"} for role in made)
    for role in [one for one in made if one.role == "texts" and one.path not in said]:
        if lists:  # a synopsis beside warnings: the table is about items
            again = read_role(role.path, "labels", answers, role.frame)
            found = {"item", "label"} <= set(again.columns) or again.reading.get("labels")
            made[made.index(role)] = again if found else role
        elif "label" not in role.columns and sum(one.role == "texts" for one in made) > 1:
            again = read_role(role.path, "decisions", answers, role.frame)
            if again.saved or {"outcome", "flagged", "score"} & set(again.columns):
                made[made.index(role)] = again
    texts = [one for one in made if one.role == "texts"]
    labels = {one.columns["label"] for one in texts if "label" in one.columns}
    for role in [one for one in made if one.role == "text_groups" and one.path not in said]:
        # What the texts call the truth, a second file calls what a system predicts.
        shared = sorted(labels & set(role.others))
        if shared and not any(one.role == "decisions" for one in made):
            told = replace(answers, columns={**answers.columns, "decisions.flagged": shared[0]})
            made[made.index(role)] = read_role(role.path, "decisions", told, role.frame)
    for role in [one for one in made if one.role == "text_groups" and one.path not in said]:
        # A third file states which texts should be flagged.
        again = read_role(role.path, "text_labels", answers, role.frame)
        if texts and not labels and {"id", "label"} <= set(again.columns):
            made[made.index(role)] = again
            labels.add("")
    if "," in answers.columns.get("decisions.flagged", ""):  # one system in each of the columns
        for role in [one for one in made if one.role == "decisions"]:
            made.remove(role)
            made += _decided(role, answers)
    for role in texts:
        if not any(one.role == "decisions" for one in made):
            made += _decided(role, answers)
        given = answers.columns.get("group", answers.columns.get("texts.group", "")).split(",")
        named = [n for n in role.others if n in map(str.strip, given)] or group_columns(role)
        wide = identity_columns(role) if not named else []
        if (named or wide) and not any(o.role == "text_groups" for o in made):
            columns = {"id": role.columns["id"]} if "id" in role.columns else {}
            reading = {k: v for k, v in role.reading.items() if k not in {"yes", "no", "labels"}}
            reading |= {} if columns else {"numbered": True}
            if wide:
                columns |= {"group": "group"}
                reading = {**reading, "labels": wide, "votes": False}
            part = FileRole(
                role.path, "text_groups", columns, tuple(named), reading, frame=role.frame
            )
            made.append(_split_groups(part))
    return made


def _split_groups(role: FileRole) -> FileRole:
    """Return groups of texts in long form, if the only column of them has several in a cell."""
    if len(role.others) != 1 or not role.columns or role.reading:
        return role
    (name,) = role.others
    lazy, _ = open_frame(role.source, wanted=role.others)
    mark = several_in_a_cell(lazy.select(name).collect(backend="polars").to_native()[name])
    if not mark:
        return role
    told = f"{role.path.name}: {mark!r} separates several groups in one cell of {name!r}"
    columns = {**role.columns, "group": name}
    return replace(role, columns=columns, others=(), reading={"split": mark}, assumed=(told,))


def _decided(role: FileRole, answers: Answers) -> list[FileRole]:
    """Return the decisions that a file of texts holds too, one role for each system."""
    given = answers.columns.get("decisions.flagged", "").split(",")
    columns = [name.strip() for name in given if name.strip()]
    made = []
    for one in columns if len(columns) > 1 else [""]:
        told = replace(answers, columns={**answers.columns, "decisions.flagged": one})
        decided = read_role(role.path, "decisions", told if one else answers, role.frame)
        kept = {k: v for k, v in decided.columns.items() if v != role.columns.get("label")}
        reading, assumed = dict(decided.reading), decided.assumed
        if "id" not in role.columns:
            kept.pop("id", None)
            reading["numbered"] = True
            assumed = tuple(one for one in assumed if one != f"{role.path.name}: {BY_TEXT}")
        if {"outcome", "flagged", "score"} & set(kept):
            questions = _about(decided, kept)
            made.append(
                replace(decided, columns=kept, reading=reading, questions=questions,
                        assumed=assumed, system=one)
            )  # fmt: skip
    return made


def _score_range(role: FileRole) -> tuple[float, float]:
    """Return the lowest and the highest score of a file; the same if it has no such column."""
    if "score" not in role.columns:
        return 0.0, 0.0
    reading = Reading.from_dict(role.reading, "reading")
    cells = _frame(role, ("score",)).collect()["score"]
    scores = understand(cells, "number", reading).values
    known = scores.cast(pl.Float64, strict=False).fill_nan(None).drop_nulls().to_numpy()
    return (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)


def _about(role: FileRole, kept: Mapping[str, str]) -> tuple[Question, ...]:
    return tuple(
        q for q in role.questions if any(repr(theirs) in q.text for theirs in kept.values())
    )


def _several(roles: Sequence[FileRole]) -> list[Question]:
    """Return a question for each table that several files seem to hold."""
    found = []
    for name in ROLES:
        some = [role for role in roles if role.role == name]
        if len(some) > 1 and name not in {"recommendations", "decisions"}:
            files = ", ".join(str(one.path) for one in some)
            found.append(
                Question(
                    f"several files look like {name}: {files}. What does each of them hold?",
                    f"--as ROLE={some[-1].path} (one of "
                    f"{', '.join(r.replace('_', '-') for r in ROLES)})",
                )
            )
    return found


def _preset(data: Mapping[str, Any], extra: Mapping[str, Any]) -> str:
    """Return the preset whose question these tables can answer, if any."""
    if "texts" in data:
        return "suppression"
    if any("gender" in name or name == "creator" for name in extra.get("by_item", ())):
        return "authors"
    return "warnings" if "labels" in data else ""


_LIMITS = {
    "share-gap": ("no label far above people's own histories", "value <= 0.05"),
    "coverage": ("part of the catalogue is shown", "value >= 0.01"),
    "gini": ("places are not all given to a few items", "value <= 0.99"),
    "ndcg": ("lists still fit people's taste", "value >= 0.01"),
    "false-positive-rate": ("few acceptable texts are flagged", "value <= 0.1"),
    "undecided-share": ("few texts stay without a decision", "value <= 0.05"),
}


def _comment(text: str) -> str:
    """Return a line of TOML that says nothing to a program, whatever a file may be called."""
    return "# " + "".join(c if c.isprintable() else "?" for c in text)


def _frame(role: FileRole, columns: Sequence[str]) -> pl.LazyFrame:
    lazy, _ = open_frame(role.source)
    native: pl.LazyFrame = lazy.to_native()
    known = native.collect_schema().names()
    return native.select([name for name in columns if name in known])


def _sample(role: FileRole) -> Texts:
    """Return the first texts of a file, to see their language."""
    kept = {k: v for k, v in role.reading.items() if k in {"separator", "encoding", "names"}}
    plain = replace(role, columns={"text": role.columns["text"]}, reading=kept)
    frame = _frame(plain, ("text",)).drop_nulls().head(500).cast(pl.String)
    found = frame.collect()["text"].to_numpy().astype(object)
    return Texts(np.arange(len(found)), found, np.full(len(found), -1, dtype=np.int8))


def _name(given: str, taken: Mapping[str, Any]) -> str:
    """Return the name of a system from that of its file, as names of systems are written."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in " ._+-") else "-" for c in given)
    name = plain.lstrip(" ._+-") or "system"
    number = 2
    while name in taken:
        name, number = f"{name} {number}", number + 1
    return name
