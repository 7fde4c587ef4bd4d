"""Texts, groups and decisions in Parquet, for the engines that measure them in blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ombud.audits import Plan, Result

METRICS = [
    {"name": "suppression"},
    {"name": "suppression", "against": "outside"},
    {"name": "worst-suppression"},
    {"name": "false-positive-rate"},
    {"name": "undecided-share"},
]
WORDS = {"women": "my sister", "christian": "the church", "": "the sea"}


def write_texts(folder: Path) -> None:
    """Texts in templates, some without text or truth; one of two systems knows but some of them."""
    rng, n = np.random.default_rng(5), 2400
    ids = np.array([f"t{i}" for i in range(n)])
    named = rng.choice(list(WORDS), n, p=[0.3, 0.2, 0.5])
    texts = pl.DataFrame(
        {
            "id": ids,
            "text": [f"{WORDS[name]} {i}" for i, name in enumerate(named)],
            "label": rng.choice([0, 1, 2], n, p=[0.8, 0.17, 0.03]),
            "cluster": rng.integers(150, size=n),
        }
    ).with_columns(
        text=pl.when(pl.Series(rng.random(n) < 0.99)).then("text"),
        label=pl.col("label").replace(2, None),
    )
    texts.write_parquet(folder / "clusters.parquet")
    texts.drop("cluster").write_parquet(folder / "texts.parquet")
    wide = pl.DataFrame({"id": [*ids[:2000], "nobody"], "named": [*named[:2000], "women"]})
    wide = wide.with_columns(pl.col("named").replace("", None))
    wide.write_parquet(folder / "wide.parquet")
    pairs = wide.drop_nulls().select("id", group="named", attribute=pl.lit("identity"))
    pairs.sort("group", "id").write_parquet(folder / "members.parquet")
    kinds = ["flagged", "allowed", "refused", "error"]
    outcome = rng.choice(kinds, n, p=[0.08, 0.8, 0.07, 0.05])
    outcome[(named == "women") & (rng.random(n) < 0.2)] = "flagged"
    one = pl.DataFrame({"id": [*ids, "stranger"], "outcome": [*outcome, "flagged"]})
    one.sample(fraction=1, shuffle=True, seed=1).write_parquet(folder / "one.parquet")
    again = pl.DataFrame({"id": np.repeat(ids[:900], 2), "score": rng.random(1800)})
    again = again.with_columns(repeat=pl.int_range(pl.len()) % 2)
    again.write_parquet(folder / "two.parquet")


def plan_of_texts(lake: Path, texts: str, groups: str | None, **more: Any) -> Plan:
    data = {"texts": str(lake / f"{texts}.parquet")}
    if groups is not None:
        data["text_groups"] = str(lake / f"{groups}.parquet")
    plan: dict[str, Any] = {
        "data": data,
        "systems": {
            "one": {"type": "recorded", "path": str(lake / "one.parquet")},
            "two": {"type": "recorded", "path": str(lake / "two.parquet"), "threshold": 0.99},
        },
        "metrics": METRICS,
        "statistics": {"replicates": 200},
    }
    if groups is None:
        plan |= {"preset": "suppression", "analyses": []}
    return Plan.from_dict(plan | more)


def by_name(result: Result) -> dict[tuple[Any, ...], Any]:
    fields = ("metric", "key", "system", "label", "group", "against")
    return {tuple(getattr(e, f) for f in fields): e for e in result.estimates}


def same(one: Result, other: Result) -> None:
    """Values and intervals to 1e-9, and what is said beside them."""
    mine, theirs = by_name(one), by_name(other)
    assert mine.keys() == theirs.keys()
    for about, a in mine.items():
        b = theirs[about]
        assert (a.n, a.reason, a.note) == (b.n, b.reason, b.note)
        assert (a.value, a.p_value) == pytest.approx((b.value, b.p_value), abs=1e-9)
        assert a.interval == pytest.approx(b.interval, abs=1e-9)
