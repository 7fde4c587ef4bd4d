"""A small made world: readers with tastes, books whose creators' identity is known for some."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ombud.audits import Audit, Plan, Result


def write_world(
    folder: Path, *, identities: Sequence[str] = ("m", "f"), users: int = 240, items: int = 200
) -> Path:
    """Write ratings and items; the second identity is read by those who like it."""
    rng = np.random.default_rng(1)
    weights = np.array([5, 3, 2][: len(identities)], dtype=float)
    who = rng.choice(len(identities), items, p=weights / weights.sum())
    popularity = rng.gamma(1.0, 1.0, items)
    rows = []
    for user, taste in enumerate(rng.normal(0, 1.2, users)):
        weight = popularity * np.where(who == 1, np.exp(taste), 1.0)
        size = int(rng.integers(8, 25))
        for item in rng.choice(items, size, replace=False, p=weight / weight.sum()):
            rows.append((f"u{user}", f"i{item}", int(rng.integers(1, 6))))
    frame = pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row")
    frame.write_csv(folder / "ratings.csv")
    known = rng.random(items) < 0.8
    outcome = rng.choice(["no_book", "unknown", "ambiguous"], items)
    pl.DataFrame(
        {
            "item": [f"i{i}" for i in range(items)],
            "gender": [identities[w] if k else None for w, k in zip(who, known, strict=True)],
            "gender_status": np.where(known, "known", outcome),
        }
    ).write_csv(folder / "items.csv")
    plan = folder / "plan.toml"
    plan.write_text(
        'preset = "authors"\n[options]\nk = 10\naccuracy_at = 20\ncandidates = 60\nleast = 5\n'
        'trained = ["item-kNN"]\nplacebo = true\nfeedback = "implicit"\n'
        '[data]\ninteractions = "ratings.csv"\nitems = "items.csv"\n'
        "[statistics]\nreplicates = 200\n"
    )
    return plan


@pytest.fixture(scope="session")
def make_world() -> Callable[[Path], Path]:
    """Return what writes a world into a folder."""
    return write_world


@pytest.fixture(scope="session")
def authors_plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a plan of two identities."""
    return write_world(tmp_path_factory.mktemp("authors"))


@pytest.fixture(scope="session")
def authors_result(authors_plan: Path) -> Result:
    """Return what the preset finds in it, stored and read again."""
    folder = authors_plan.parent / "result"
    Audit.from_plan(Plan.load(authors_plan)).run(folder)
    return Result.load(folder)


@pytest.fixture(scope="session")
def three_result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Return what the preset finds with three identities."""
    plan = write_world(tmp_path_factory.mktemp("three"), identities=("m", "f", "x"), items=400)
    return Audit.from_plan(Plan.load(plan)).run()
