"""The published figures that come with the package, and when they are laid beside a build."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from ombud.data.sources.published_figures import beside_published, published_figures


def test_figures_agree_with_each_other() -> None:
    movies, works = published_figures("ML-DDD"), published_figures("AO3")
    pairs = movies["movies"] * movies["labels"]
    statuses = sum(movies[name] for name in ("clear_yes", "clear_no", "unclear", "no_votes"))
    assert abs(pairs - statuses) == 1, "one pair is missing in the published dictionary"
    assert round(movies["clear_yes"] / pairs, 4) == movies["warning_density"]
    density = movies["interactions"] / (movies["users"] * movies["movies"])
    assert round(density, 4) == movies["interaction_density"]
    assert round(works["applied"] / (36 * works["works"]), 4) == works["warning_density"]
    assert round(works["interactions"] / works["works"], 2) == works["mean_interactions"]


def test_a_full_build_is_compared_and_a_sample_is_not() -> None:
    facts = {"interactions": 22_867_672, "movies": 32_600, "mean_rating": 3.1149, "rule": "x"}
    found = beside_published(facts, "ML-DDD")
    assert found["published movies"] == 32_604 and found["differs movies"] == -4
    assert found["published mean_rating"] == 3.11 and "differs mean_rating" not in found
    assert "differs interactions" not in found
    assert beside_published(facts | {"interactions": 100_000}, "ML-DDD") == {}
    assert "differs mean_rating" in beside_published(facts | {"mean_rating": 3.12}, "ML-DDD")


@pytest.mark.realdata
def test_figures_are_those_of_the_reference(realdata: Path) -> None:
    path = realdata.parent / "reference" / "warnings.csv"
    if not path.exists():
        pytest.skip(f"no reference figures at {path}")
    with path.open() as file:
        rows = [
            (row["dataset"], row["figure"], float(row["value"])) for row in csv.DictReader(file)
        ]
    for dataset, figure, value in rows:
        mine = published_figures(dataset)  # type: ignore[arg-type]
        assert mine.get(figure, value) == value
