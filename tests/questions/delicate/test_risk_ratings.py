"""Labels and agreement of risk ratings: by hand, by another library, on real raters."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import krippendorff
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.questions.delicate.ratings import (
    AGREEMENT_TITLES,
    against_others,
    risk_agreement,
    risk_labels,
)
from ombud.stats.agreement import alpha_estimate

RATINGS = st.lists(
    st.lists(st.one_of(st.integers(0, 5), st.none()), min_size=4, max_size=4),
    min_size=1,
    max_size=8,
)


def as_matrix(rows: list[list[int | None]]) -> np.ndarray:
    return np.array([[np.nan if v is None else v for v in row] for row in rows], dtype=float)


def test_labels_of_the_specification() -> None:
    labels = risk_labels([[3, 5, 1], [0, 0, 4], [2, 2, 3], [0, 1, 1], [3, 3, 3]])
    assert labels.identified.tolist() == [1, 0, 1, 1, 1]
    assert labels.delicate.tolist() == [1, 0, 0, 0, 1]
    assert labels.risk.tolist() == [-1, 0, 2, 1, 3]
    assert labels.median.tolist() == [3, 0, 2, 1, 3]
    assert labels.shares[1].tolist() == [2 / 3, 0, 0, 0, 1 / 3, 0]


def test_a_tie_is_not_decided() -> None:
    labels = risk_labels([[0, 3], [np.nan, np.nan], [2, 2]])
    assert labels.identified.tolist() == [-1, -1, 1]
    assert labels.delicate.tolist() == [-1, -1, 0]
    assert labels.risk.tolist() == [-1, -1, 2]
    assert labels.ratings.tolist() == [2, 0, 2]
    assert np.isnan(labels.median[1])


@given(RATINGS)
def test_labels_are_majorities(rows: list[list[int | None]]) -> None:
    labels = risk_labels(as_matrix(rows))
    for at, row in enumerate(rows):
        known = [v for v in row if v is not None]
        for found, votes in (
            (labels.identified[at], sum(v > 0 for v in known)),
            (labels.delicate[at], sum(v >= 3 for v in known)),
        ):
            wanted = -1 if 2 * votes == len(known) else int(2 * votes > len(known))
            assert found == wanted
        top = Counter(known).most_common(2)
        clear = top and top[0][1] >= 2 and (len(top) == 1 or top[0][1] > top[1][1])
        assert labels.risk[at] == (top[0][0] if clear else -1)
        if known:
            assert labels.median[at] == np.median(known)


def test_ratings_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="2 ratings are not whole numbers"):
        risk_labels([[6, 1.5, 2]])
    with pytest.raises(ValueError, match=r"expected \(texts, raters\)"):
        risk_labels([1, 2])


def peers(matrix: np.ndarray) -> dict[str, float]:
    """The same alphas from the `krippendorff` package; NaN where it finds none."""
    known = ~np.isnan(matrix)
    both = np.where(known, matrix > 0, np.nan), np.where(known, matrix >= 3, np.nan)
    agreed = (np.where(known, matrix, 1) > 0).all(axis=1)
    found = {}
    for name, values, level in (
        ("identified", both[0], "nominal"),
        ("delicate", both[1], "nominal"),
        ("ordinal", matrix, "ordinal"),
        ("interval", matrix, "interval"),
        ("step-2", matrix[agreed], "ordinal"),
    ):
        try:
            found[name] = float(krippendorff.alpha(values.T, level_of_measurement=level))
        except (ValueError, AssertionError, ZeroDivisionError):
            found[name] = float("nan")
    return found


@given(RATINGS)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_alphas_equal_another_library(rows: list[list[int | None]]) -> None:
    matrix = as_matrix(rows)
    found = risk_agreement(matrix, rng=np.random.default_rng(1), replicates=20)
    wanted = peers(matrix)
    for estimate in found:
        other = wanted[estimate.label]
        if estimate.value is None:
            assert np.isnan(other) or estimate.reason
        else:
            assert estimate.value == pytest.approx(other, abs=1e-9)


def test_groups_are_alphas_of_their_texts() -> None:
    rng = np.random.default_rng(5)
    matrix = rng.integers(0, 6, (60, 3)).astype(float)
    member = rng.random(60) < 0.4
    found = risk_agreement(matrix, rng=rng, groups={"some": member}, replicates=50)
    alone = peers(matrix[member])
    for estimate in found[len(AGREEMENT_TITLES) :]:
        assert estimate.group == "some"
        assert estimate.value == pytest.approx(alone[estimate.label], abs=1e-9)


def test_a_careless_rater_stands_out() -> None:
    rng = np.random.default_rng(2)
    true = rng.integers(0, 6, 300)
    matrix = np.column_stack([np.clip(true + rng.integers(-1, 2, 300), 0, 5) for _ in range(3)])
    matrix[:, 2] = rng.integers(0, 6, 300)
    found = [against_others(matrix, r, rng=rng, replicates=200) for r in range(3)]
    ordinal = [next(e for e in some if e.label == "ordinal") for some in found]
    assert all(e.n == 300 for e in ordinal)
    assert ordinal[2].interval[1] < ordinal[0].interval[0]  # type: ignore[index]


def test_a_rater_alone_has_no_agreement() -> None:
    found = against_others([[1, np.nan], [np.nan, 2]], 0, rng=np.random.default_rng(1))
    assert {e.reason for e in found} == {"the rater shares no text with another"}


@pytest.mark.simulation
def test_intervals_cover() -> None:
    """95% intervals of the ordinal alpha over simulated sets of 150 texts."""
    rng = np.random.default_rng(9)

    def draw(n: int) -> np.ndarray:
        true = rng.choice(6, p=[0.4, 0.1, 0.15, 0.15, 0.1, 0.1], size=n)
        return np.clip(np.rint(true[:, None] + rng.normal(0, 0.9, (n, 3))), 0, 5)

    truth = peers(draw(60_000))["ordinal"]
    covered = 0
    for _ in range(200):
        found = risk_agreement(draw(150), rng=rng, replicates=400)[2]
        assert found.interval is not None
        covered += found.interval[0] <= truth <= found.interval[1]
    assert 0.90 <= covered / 200 <= 0.985


def wide(frame: pl.DataFrame, value: str) -> np.ndarray:
    table = frame.pivot(on="rater", index="text_id", values=value, aggregate_function="first")
    return table.drop("text_id").cast(pl.Float64).to_numpy()


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("file", "value", "levels"),
    [
        ("hs-brexit.csv.gz", "label", ("nominal",)),
        ("md-agreement.csv.gz", "label", ("nominal",)),
        ("popquorn_offensiveness.csv.gz", "offensiveness", ("nominal", "ordinal", "interval")),
    ],
)
def test_alphas_of_real_raters(
    realdata: Path, file: str, value: str, levels: tuple[str, ...]
) -> None:
    matrix = wide(pl.read_csv(realdata / "rater-labels" / file), value)
    for level in levels:
        ours = alpha_estimate(matrix, level, rng=np.random.default_rng(1), replicates=200)  # type: ignore[arg-type]
        other = krippendorff.alpha(matrix.T, level_of_measurement=level)
        assert ours.value == pytest.approx(other, abs=1e-9)
        assert ours.interval is not None and ours.interval[0] < ours.value < ours.interval[1]


@pytest.mark.realdata
def test_alphas_of_passages_by_warning(realdata: Path) -> None:
    table = pl.read_csv(realdata / "passage-annotations" / "annotations.csv")
    for (_warning,), some in table.group_by("warning"):
        matrix = some.select("rater_1", "rater_2", "rater_3").cast(pl.Float64).to_numpy()
        ours = alpha_estimate(matrix, rng=np.random.default_rng(1), replicates=200)
        other = krippendorff.alpha(matrix.T, level_of_measurement="nominal")
        assert ours.value == pytest.approx(other, abs=1e-9)


@pytest.mark.realdata
def test_risk_agreement_of_real_raters(realdata: Path) -> None:
    """Offensiveness from 1 to 5, moved to 0 to 4, so that step I and step II both exist."""
    table = pl.read_csv(realdata / "rater-labels" / "popquorn_offensiveness.csv.gz")
    matrix = wide(table, "offensiveness") - 1
    found = risk_agreement(matrix, rng=np.random.default_rng(1), replicates=100)
    wanted = peers(matrix)
    for estimate in found:
        assert estimate.value == pytest.approx(wanted[estimate.label], abs=1e-9)
