"""What one part of the analysis found about one system."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ombud.data.exclusions import Exclusion
from ombud.stats import Estimate

COLUMNS: Mapping[str, Mapping[str, Any]] = {
    "counterfactual-lists": {
        "system": pl.String, "person": pl.Int64, "rank": pl.Int64, "item": pl.String,
    },
    "counterfactual-reach": {
        "system": pl.String, "person": pl.Int64, "item": pl.String, "decile": pl.Int64,
        "reachable": pl.String, "edits": pl.String, "rank_today": pl.Int64, "rank_best": pl.Int64,
        "policy": pl.String, "budget": pl.Int64,
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
class Part:
    """Estimates, rows of tables by name, and what was left out."""

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

    def add(self, other: Part) -> None:
        """Take in another part."""
        self.estimates += other.estimates
        self.exclusions += other.exclusions
        for name, rows in other.rows.items():
            self.rows.setdefault(name, []).extend(rows)


def tables_of(rows: Mapping[str, Iterable[Mapping[str, Any]]]) -> dict[str, pl.DataFrame]:
    """Return rows as tables."""
    return {name: pl.DataFrame(list(some), schema=COLUMNS[name]) for name, some in rows.items()}
