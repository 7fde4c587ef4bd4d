"""What each part of the analysis found, stored in the folder of the run so that it can resume."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from ombud import __version__
from ombud.data.exclusions import Exclusion
from ombud.errors import ResultError
from ombud.probes import Edit
from ombud.probes.edits import Edits
from ombud.probes.escape import Way
from ombud.probes.reachability import Reach
from ombud.probes.recipe import Bracket, Fewest
from ombud.stats import Estimate

WHERE = "counterfactual"
"""Where exclusions of this question are counted."""

FILE = "counterfactual.jsonl"
"""What was found so far, in the folder of a run."""

_HEAD = {"counterfactual": 2, "ombud": __version__}
COLUMNS: Mapping[str, Mapping[str, Any]] = {
    "counterfactual-lists": {
        "system": pl.String, "person": pl.Int64, "rank": pl.Int64, "item": pl.String,
    },
    "counterfactual-reach": {
        "system": pl.String, "person": pl.Int64, "item": pl.String, "decile": pl.Int64,
        "reachable": pl.String, "edits": pl.String, "rank_today": pl.Int64, "rank_best": pl.Int64,
        "today": pl.Float64, "best": pl.Float64, "status": pl.String, "policy": pl.String,
        "budget": pl.Int64,
    },
    "counterfactual-pairs": {
        "system": pl.String, "user": pl.Int64, "item": pl.String, "decile": pl.Int64,
        "rated": pl.Boolean, "policy": pl.String, "budget": pl.Int64, "drawing": pl.String,
        "beta": pl.Float64, "seeds": pl.Int64, "today": pl.Float64, "best": pl.Float64,
        "bound": pl.Float64, "status": pl.String, "gain": pl.Float64, "log_lift": pl.Float64,
        "gain_low": pl.Float64, "gain_high": pl.Float64, "edits": pl.String,
        "frozen_today": pl.Float64, "frozen_best": pl.Float64,
    },
    "counterfactual-ways": {
        "system": pl.String, "person": pl.Int64, "direction": pl.String, "label": pl.String,
        "before": pl.Int64, "outcome": pl.String, "cost": pl.Int64, "edits": pl.String,
        "kept": pl.Float64, "policy": pl.String, "budget": pl.Int64,
    },
    "counterfactual-others": {
        "system": pl.String, "person": pl.Int64, "treatment": pl.String, "distance": pl.Float64,
        "exact": pl.Boolean, "typical": pl.Float64, "noise": pl.Float64, "policy": pl.String,
    },
    "counterfactual-cost": {
        "system": pl.String, "part": pl.String, "users": pl.Int64, "questions": pl.Int64,
        "trainings": pl.Int64,
    },
}  # fmt: skip
"""The tables stored with a result, and their columns; a person is the audit's own number."""


@dataclass
class PartResult:
    """Estimates, rows of tables by name, and what was excluded."""

    estimates: list[Estimate] = field(default_factory=list)
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    exclusions: list[Exclusion] = field(default_factory=list)

    def row(self, table: str, **values: Any) -> None:
        """Add a row to a table."""
        self.rows.setdefault(table, []).append(values)

    def cost(self, system: str, part: str, users: int, questions: int, trainings: int) -> None:
        """Note what was spent."""
        self.row(
            "counterfactual-cost",
            system=system, part=part, users=users, questions=questions, trainings=trainings,
        )  # fmt: skip

    def add(self, other: PartResult) -> None:
        """Take in another part."""
        self.estimates += other.estimates
        self.exclusions += other.exclusions
        for name, rows in other.rows.items():
            self.rows.setdefault(name, []).extend(rows)


def rows_to_tables(rows: Mapping[str, Iterable[Mapping[str, Any]]]) -> dict[str, pl.DataFrame]:
    """Return rows as tables."""
    return {name: pl.DataFrame(list(some), schema=COLUMNS[name]) for name, some in rows.items()}


@dataclass(frozen=True)
class Checkpoint:
    """Answers by key, appended to a file as soon as they are there.

    Everything is turned into JSON and back, whether it was kept or not: a run that goes on gives
    what an uninterrupted one gives, to the bit.
    """

    path: Path | None = None  # The file; None to keep nothing
    prefix: tuple[Any, ...] = ()  # What all keys begin with
    known: dict[str, str] = field(default_factory=dict)  # What was read, and what was added since

    @classmethod
    def in_folder(cls, folder: Path | None) -> Checkpoint:
        """Open the file of a run; a line that was being written at a kill is forgotten."""
        if folder is None:
            return cls()
        path = folder / FILE
        head = json.dumps(_HEAD) + "\n"
        try:
            text = path.read_bytes() if path.exists() else b""
            if not text.startswith(head.encode()):
                path.write_text(head, encoding="utf-8")
                return cls(path)
            whole = text[: text.rfind(b"\n") + 1]
            if len(whole) < len(text):
                os.truncate(path, len(whole))
            known = {}
            for line in whole.decode("utf-8").splitlines()[1:]:
                key, value = json.loads(line)
                known[str(key)] = str(value)
        except (OSError, UnicodeDecodeError, ValueError, TypeError) as fault:
            raise ResultError(f"{path} is damaged: {fault}. Delete it to ask anew") from None
        return cls(path, (), known)

    def within(self, *more: Any) -> Checkpoint:
        """Return the same store, whose keys begin with more."""
        return replace(self, prefix=(*self.prefix, *more))

    def __call__(self, key: Sequence[Any], find: Callable[[], Any]) -> Any:
        """Return what is kept under a key, as JSON gives it back; find and keep it if need be."""
        name = json.dumps([*self.prefix, *key])
        if name not in self.known:
            value = json.dumps(find())
            if self.path is not None:
                with self.path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([name, value]) + "\n")
            self.known[name] = value
        return json.loads(self.known[name])


def _plain_edits(edits: Edits) -> list[list[Any]]:
    return [[e.item, e.before, e.after] for e in edits]


def _edits(plain: Sequence[Sequence[Any]]) -> Edits:
    return tuple(Edit(*entry) for entry in plain)


def _plain_bracket(bracket: Bracket[Edits]) -> dict[str, Any]:
    return asdict(replace(bracket, witness=())) | {"witness": _plain_edits(bracket.witness)}


def _bracket(plain: dict[str, Any]) -> Bracket[Edits]:
    return Bracket(**(plain | {"witness": _edits(plain["witness"])}))


def reach_to_json(reach: Reach) -> dict[str, Any]:
    """Return what is known of a target as JSON-ready values."""
    chance = reach.probability
    return {
        "targets": list(reach.targets),
        "in_list": _plain_bracket(reach.in_list),
        "probability": None if chance is None else _plain_bracket(chance),
        "rank_today": reach.rank_today,
        "rank_best": reach.rank_best,
        "notes": list(reach.notes),
        "why_undecided": reach.why_undecided,
        "agreed": reach.agreed,
        "gain_interval": reach.gain_interval,
        "frozen": reach.frozen,
    }


def reach_from_json(plain: dict[str, Any]) -> Reach:
    """Rebuild it from `reach_to_json`."""
    chance = plain["probability"]
    return Reach(
        tuple(plain["targets"]),
        _bracket(plain["in_list"]),
        None if chance is None else _bracket(chance),
        plain["rank_today"],
        plain["rank_best"],
        tuple(plain["notes"]),
        plain["why_undecided"],
        plain["agreed"],
        None if plain["gain_interval"] is None else tuple(plain["gain_interval"]),
        None if plain["frozen"] is None else tuple(plain["frozen"]),
    )


def path_to_json(way: Way) -> dict[str, Any]:
    """Return one person's way as JSON-ready values."""
    witness = way.fewest.witness
    found = asdict(replace(way.fewest, witness=None))
    found["witness"] = None if witness is None else _plain_edits(witness)
    return {
        "fewest": found,
        "before": way.before,
        "after": way.after,
        "kept": way.kept,
        "random": way.random,
        "retrained": way.retrained,
    }


def path_from_json(plain: dict[str, Any]) -> Way:
    """Rebuild it from `path_to_json`."""
    fewest, rest = plain["fewest"], {k: v for k, v in plain.items() if k != "fewest"}
    witness = None if fewest["witness"] is None else _edits(fewest["witness"])
    return Way(Fewest(**(fewest | {"witness": witness})), **rest)


def part_to_json(part: PartResult) -> dict[str, Any]:
    """Return a part as JSON-ready values; the tails of tests are kept too."""
    return {
        "estimates": [e.to_dict() | {"p_tail": e.p_tail} for e in part.estimates],
        "rows": part.rows,
        "exclusions": [e.to_dict() for e in part.exclusions],
    }


def part_from_json(plain: dict[str, Any]) -> PartResult:
    """Rebuild it from `part_to_json`."""
    return PartResult(
        [Estimate.from_dict(e) for e in plain["estimates"]],
        plain["rows"],
        [Exclusion(**e) for e in plain["exclusions"]],
    )
