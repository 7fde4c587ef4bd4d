"""Tag quality: counts by hand, rates by a second route, intervals that cover."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix
from statsmodels.stats.proportion import proportion_confint

from ombud.errors import DataError
from ombud.taxonomy import load_terms
from ombud.taxonomy.terms import read_terms
from ombud.text import IdentityTags, tag_identities, tag_quality

TERMS = read_terms(pl.DataFrame({"group": ["cats", "dogs"], "term": ["tom", "rex"]}))


def tags_of(tagged: list[bool]) -> IdentityTags:
    return tag_identities(["a tom" if hit else "none" for hit in tagged], TERMS)


def test_by_hand() -> None:
    tags = tags_of([True, True, True, False, False, True])
    quality = tag_quality(tags, {"cats": [1, 1, 0, 1, 0, None]})[0]
    assert (
        quality.true_positive,
        quality.false_positive,
        quality.false_negative,
        quality.true_negative,
        quality.unlabelled,
        quality.n,
    ) == (2, 1, 1, 1, 1, 5)
    assert quality.accuracy.value == pytest.approx(3 / 5)
    assert quality.false_positive_rate.value == pytest.approx(1 / 2)
    assert quality.false_negative_rate.value == pytest.approx(1 / 3)
    assert quality.false_negative_rate.note == "1 of 3 texts; 1 without a manual label left out"
    assert quality.accuracy.unit == "text" and quality.accuracy.group == "cats"


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_against_sklearn_and_statsmodels(rows: list[tuple[bool, bool]]) -> None:
    tagged, truth = [row[0] for row in rows], [row[1] for row in rows]
    quality = tag_quality(tags_of(tagged), {"cats": truth}, level=0.9)[0]
    tn, fp, fn, tp = confusion_matrix(truth, tagged, labels=[False, True]).ravel().tolist()
    for estimate, count, n in (
        (quality.accuracy, tp + tn, len(rows)),
        (quality.false_positive_rate, fp, fp + tn),
        (quality.false_negative_rate, fn, fn + tp),
    ):
        if n == 0:
            assert estimate.value is None and estimate.n == 0
            assert "no text is labelled" in estimate.reason
            continue
        assert estimate.value == pytest.approx(count / n)
        low, high = proportion_confint(count, n, alpha=0.1, method="wilson")
        assert estimate.interval == pytest.approx((low, high), abs=1e-12)
        assert estimate.n == n and estimate.level == 0.9


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_and_other_tags(frame: type) -> None:
    tags = tags_of([True, False, True])
    labels = frame({"dogs": [0, 0, 1], "text": ["a", "b", "c"], "cats": [1.0, float("nan"), 0.0]})
    dogs = {row.group: row for row in tag_quality(tags, labels)}["dogs"]
    cats = {row.group: row for row in tag_quality(tags, labels)}["cats"]
    assert (dogs.false_negative, dogs.true_negative) == (1, 2)
    assert (cats.true_positive, cats.false_positive, cats.unlabelled) == (1, 1, 1)
    assert all(row.accuracy.value == 1 for row in tag_quality(tags, tags))


def test_all_faults_at_once() -> None:
    tags = tags_of([True, False])
    with pytest.raises(DataError) as caught:
        tag_quality(tags, {"cats": [True], "dogs": ["yes", 2]})
    assert len(caught.value.faults) == 2
    assert "cats: found 1 labels; expected 2" in str(caught.value)
    assert "dogs: 2 labels are neither" in str(caught.value)
    with pytest.raises(DataError, match="expected some of cats, dogs"):
        tag_quality(tags, {"birds": [True, False]})


@pytest.mark.simulation
def test_intervals_cover_the_true_rates(rng: np.random.Generator) -> None:
    # A tagger that misses 20% of the group and tags 5% of the others.
    covered = np.zeros(2)
    runs = 300
    for _ in range(runs):
        truth = rng.random(400) < 0.3
        tagged = np.where(truth, rng.random(400) < 0.8, rng.random(400) < 0.05)
        quality = tag_quality(tags_of(tagged.tolist()), {"cats": truth})[0]
        for i, (estimate, true) in enumerate(
            ((quality.false_negative_rate, 0.2), (quality.false_positive_rate, 0.05))
        ):
            assert estimate.interval is not None
            covered[i] += estimate.interval[0] <= true <= estimate.interval[1]
    # Within four standard errors of 95%.
    assert np.all(np.abs(covered / runs - 0.95) < 4 * np.sqrt(0.95 * 0.05 / runs))


@pytest.mark.realdata
def test_quality_on_jigsaw_bias(realdata: Path) -> None:
    rows = pl.read_csv(realdata / "jigsaw-bias" / "en_sentence_templates.csv")
    truth = tag_identities(rows["phrase"], load_terms("terms-jigsaw-bias@1"), suffixes=("",))
    ours = tag_identities(rows["phrase"]).with_groups(truth.groups)
    whole = {row.group: row for row in tag_quality(ours, truth)}
    published = tag_identities(rows["phrase"], mode="published")
    old = {row.group: row for row in tag_quality(published, truth)}
    # Without people around them, "black", "white", "straight", "blind" and "deaf" do not count.
    missed = {group: row.false_negative for group, row in whole.items() if row.false_negative}
    assert missed == {"non-white": 73, "white": 73, "straight": 73, "disability": 219}
    assert all(row.false_positive == 0 for row in whole.values())
    assert all(
        row.false_negative_rate.value is not None and row.false_negative_rate.value > 0.9
        for row in old.values()
    )
