"""The warnings experiment on MovieLens with warnings from TMDB keywords, reduced."""

from __future__ import annotations

from pathlib import Path

import pytest

from ombud.audits import Audit, Plan
from ombud.audits.presets import complete
from ombud.report import Report
from ombud.report.model import Chart

EXAMPLES = Path(__file__).parents[3] / "examples" / "warnings"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda p: p.stem)
def test_examples_are_plans_that_the_preset_completes(path: Path) -> None:
    plan = complete(Plan.load(path))
    assert {"Random", "TopPop"} < set(plan.systems)
    assert plan.metrics


@pytest.mark.realdata
def test_movielens_with_keywords(realdata: Path) -> None:
    options = {
        "path": str(realdata / "movielens-small"),
        "keywords": str(realdata / "tmdb-keywords"),
        "absent": "no-if-any-keyword",
    }
    plan = Plan.from_dict(
        {
            "preset": "warnings",
            "seed": 1,
            "sample": 300,
            "data": {"source": "movielens-tmdb", "options": options},
            "systems": {
                "TopPop": {"type": "popular", "by": "mean"},
                "SVD": {"type": "svd", "factors": 16, "epochs": 20, "seed": 1},
            },
            "options": {
                "feedback": "explicit",
                "accuracy_at": [100],
                "forms": ["mean", "ratio-of-means"],
                "remedies": [{"type": "avoid-list", "of": "SVD", "labels": ["blood-gore"]}],
            },
            "analyses": [
                {"name": "distribution"},
                {"name": "popularity-shift", "permutations": 1000},
                {"name": "user-preference", "permutations": 1000},
            ],
            "statistics": {"replicates": 200},
        }
    )
    result = Audit.from_plan(plan).run()

    def value(metric: str, system: str, label: str = "") -> float:
        (e,) = result.select(metric=metric, system=system, label=label, group="", kind="level")
        assert e.value is not None
        return e.value

    # A raw mean rating puts films that were rated once on top: hardly a held-out film is met.
    assert value("recall@100, top quartile", "TopPop") < 0.01
    assert value("recall@100, top quartile", "SVD") > 0.1
    assert 0.8 < value("RMSE", "SVD") < 1.0
    # Lists of TopPop hold far fewer known warnings than histories, those of SVD about as many;
    # the mean over pairs, most of them smoothed, is far below zero for both.
    ratio = "user amplification@100 (ratio-of-means)"
    assert value(ratio, "TopPop") < -0.4
    assert -0.2 < value(ratio, "SVD") < 0.2
    assert value("user amplification@100", "SVD") < -0.6
    assert value("avoid leak@100", "SVD") > 0.01
    assert value("avoid leak@100", "SVD + avoid list") == 0
    shift = {e.label: e for e in result.select(metric="popularity shift (mean rating)")}
    assert shift["blood-gore"].value is not None and shift["blood-gore"].value < 0
    charts = [b for x in Report(result).sections for b in x.blocks if isinstance(b, Chart)]
    assert [chart.name for chart in charts] == [
        "warnings-tradeoff", "warnings-spread", "warnings-popularity", "warnings-preference",
        "warnings-users", "warnings-activity",
    ]  # fmt: skip
