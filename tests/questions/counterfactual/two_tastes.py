"""A world of two tastes, one of them labelled, and an item that nobody can reach."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ombud.audits import Plan

LONELY = "item-lonely"


def write_world(folder: Path, *, seed: int = 3, users: int = 40, items: int = 24) -> None:
    """Write interactions, labels on the second taste, titles, and groups."""
    rng = np.random.default_rng(seed)
    taste = rng.random(users) < 0.5
    dark = np.arange(items) >= items // 2
    chance = np.where(taste[:, None] == dark[None, :], 0.45, 0.12)
    who, what = np.nonzero(rng.random((users, items)) < chance)
    names = [f"secretperson{u:03d}" for u in who] + ["secretperson999"]
    things = [f"item-{i:02d}" for i in what] + [LONELY]
    pl.DataFrame({"user": names, "item": things}).write_csv(folder / "plays.csv")
    rows = [(f"item-{i:02d}", "dark", bool(dark[i])) for i in range(items)]
    rows.append((LONELY, "dark", False))
    pl.DataFrame(rows, schema=["item", "label", "present"], orient="row").write_csv(
        folder / "labels.csv"
    )
    titles = [(f"item-{i:02d}", f"Film no. {i}", "Odd|All" if i % 2 else "All")
              for i in range(items)]  # fmt: skip
    pl.DataFrame(titles, schema=["item", "title", "kind"], orient="row").write_csv(
        folder / "items.csv"
    )


def plan_of(folder: Path, systems: dict[str, Any], **options: Any) -> Plan:
    """Return a plan that is quick to run."""
    few = {
        "k": 3, "users": 8, "targets": 12, "at_risk": 12, "looked_at": 40, "random": 4,
        "retrained": 2, "moved": 6, "random_treatments": 3, "noise_runs": 2, "people": 2,
        "frozen": True, "seeds": 2, "choosing_seeds": 1, "candidates": 1,
    }  # fmt: skip
    return Plan.from_dict(
        {
            "preset": "counterfactual",
            "seed": 1,
            "data": {
                "interactions": str(folder / "plays.csv"),
                "labels": str(folder / "labels.csv"),
                "items": str(folder / "items.csv"),
            },
            "systems": systems,
            "options": few | options,
            "statistics": {"replicates": 100},
        }
    )


SYSTEMS: dict[str, Any] = {
    "Our EASE": {"type": "ease", "regularization": 5.0},
    "ALS": {"type": "implicit-als", "factors": 4, "seed": 1},
    "Dice": {"type": "random", "seed": 1},
}
