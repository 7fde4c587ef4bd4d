"""Prose is not data: a report holds the same whatever its titles and notes are called."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ombud.audits import Audit, Plan, Result
from ombud.audits.result import MetricInfo
from ombud.metrics import LabelShare, ShareGap
from ombud.report import Report
from ombud.worlds import small_world

# Letters that the renaming swaps are the same for the comparison.
FOLD = {ord(a): min(a, codecs.encode(a, "rot13")) for a in "abcdefghijklmnopqrstuvwxyz"}


def turned(text: str) -> str:
    """Other words of the same length: each letter is another, digits and signs stay."""
    return codecs.encode(text, "rot13")


def renamed(result: Result) -> Result:
    words = [
        f.name for f in fields(MetricInfo) if f.type == "str" and f.name not in {"key", "unit"}
    ]
    assert {"title", "summary", "reading", "limits"} <= set(words)
    infos = tuple(
        replace(info, **{name: turned(getattr(info, name)) for name in words})
        for info in result.metrics
    )
    estimates = tuple(
        e.replace(metric=turned(e.metric), note=turned(e.note), reason=turned(e.reason))
        for e in result.estimates
    )
    exclusions = tuple(
        replace(e, where=turned(e.where), reason=turned(e.reason)) for e in result.exclusions
    )
    return replace(result, metrics=infos, estimates=estimates, exclusions=exclusions)


def content(result: Result) -> str:
    report = Report(result)
    # Pictures hold titles in an encoded form, which folding letters does not reach.
    whole = [report.markdown(), re.sub(r"base64,[^\"]*", "", report.html())]
    whole += [json.dumps(verdict.to_dict()) for verdict in report.verdicts]
    return "\n".join(whole).lower().translate(FOLD)


def warnings(folder: Path) -> Result:
    plan = {
        "preset": "warnings",
        "seed": 1,
        "data": {"source": "small", "options": {"seed": 3, "ratings": True}},
        "by": ["gender"],
        "options": {
            "k": 20,
            "accuracy_at": [10, 20],
            "remedies": [{"type": "avoid-list", "of": "SVD", "labels": ["violence"]}],
        },
        "statistics": {"replicates": 100},
    }
    return Audit.from_plan(Plan.from_dict(plan)).run()


def suppression(folder: Path) -> Result:
    rng = np.random.default_rng(1)
    kind = rng.choice(["women", "men", "christian", "people"], size=900)
    harmful = rng.random(900) < 0.3
    ids = [f"t{i}" for i in range(900)]
    texts = [f"text {i} about {k} and the sea" for i, k in enumerate(kind)]
    family = np.where(np.arange(900) % 2 == 0, "traditional", "generative-ai")
    table = pl.DataFrame({"id": ids, "text": texts, "label": harmful, "family": family})
    table.write_csv(folder / "texts.csv")
    chance = np.where(harmful, 0.8, np.where(kind == "women", 0.4, 0.12))
    for name in ("old", "new"):
        outcome = np.where(rng.random(900) < chance, "flagged", "allowed").astype(object)
        outcome[(rng.random(900) < 0.3) & (kind == "men")] = "refused"
        score = np.clip(chance + rng.normal(0, 0.1, 900), 0, 1)
        frame = pl.DataFrame({"id": ids, "outcome": outcome, "score": score})
        frame.write_csv(folder / f"{name}.csv")
    system = {"type": "recorded", "moderates": True}
    plan = {
        "preset": "suppression",
        "options": {"before": "old", "after": "new", "pages": True, "regressions": True},
        "data": {"texts": str(folder / "texts.csv")},
        "systems": {n: system | {"path": str(folder / f"{n}.csv")} for n in ("old", "new")},
        "statistics": {"replicates": 100},
    }
    return Audit.from_plan(Plan.from_dict(plan)).run()


def plain(folder: Path) -> Result:
    world = small_world(seed=1)
    metrics = [ShareGap(k=10), LabelShare(k=10), LabelShare(k=5)]
    return Audit(world.dataset, world.recommenders(), metrics, title="A world").run()


@pytest.mark.parametrize("make", [warnings, suppression, plain])
def test_renaming_titles_and_notes_changes_nothing_else(
    make: Callable[[Path], Result], tmp_path: Path
) -> None:
    result = make(tmp_path)
    other = renamed(result)
    one, two = content(result), content(other)
    if one != two:
        lines = zip(one.splitlines(), two.splitlines(), strict=False)
        place = next(pair for pair in lines if pair[0] != pair[1])
        pytest.fail(f"\n{place[0][:600]}\nbecame\n{place[1][:600]}")
    assert other.metrics[0].title != result.metrics[0].title
    assert other.metrics[0].title in Report(other).markdown().replace("\\", "")


def test_the_comparison_would_see_what_is_dropped(tmp_path: Path) -> None:
    result = plain(tmp_path)
    assert content(result) != content(replace(result, estimates=result.estimates[1:]))
