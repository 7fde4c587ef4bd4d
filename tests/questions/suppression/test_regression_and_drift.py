"""Regressions by hand and by least squares; drift against McNemar and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ombud.audits.analysis import Context
from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.metrics.engine.estimator import Settings
from ombud.questions.suppression.changes import Drift
from ombud.questions.suppression.regression import (
    Columns,
    FlagRegression,
    ScoreRegression,
    independent,
)
from ombud.questions.suppression.texts import ScoreSpread
from ombud.stats.estimate import Estimate
from ombud.stats.paired import mcnemar

pytest.importorskip("statsmodels")
HOW = Settings(replicates=400)


def world(
    n: int = 3000, *, clusters: NDArray[np.int32] | None = None, seed: int = 1
) -> tuple[Dataset, NDArray[np.bool_], NDArray[np.bool_], np.random.Generator]:
    rng = np.random.default_rng(seed)
    ids = np.arange(n)
    members = rng.random((n, 2)) < 0.3
    words = rng.integers(3, 60, n)
    truth = (rng.random(n) < 0.3).astype(np.int8)
    texts = Texts(
        ids,
        np.array(["w " * k for k in words], dtype=object),
        truth,
        clusters,
        np.where(np.arange(n) % 2, "traditional", "generative-ai").astype(object),
    )
    groups = Grouping(Vocabulary(ids), ("a", "b"), members, ("x", "y"))
    chance = np.where(members[:, 0], 0.6, 0.85)
    right = rng.random(n) < chance
    flagged = np.where(right, truth == 1, truth == 0)
    return Dataset(texts=texts, text_groups=groups), members, flagged, rng


def decided(flagged: NDArray[np.bool_], scores: NDArray[np.float64] | None = None) -> Decisions:
    given = np.full(len(flagged), np.nan) if scores is None else scores
    ids = np.arange(len(flagged))
    return Decisions(ids, flagged.astype(np.int8), given.astype(np.float32))


def of(found: tuple[Estimate, ...], group: str) -> Estimate:
    (estimate,) = [e for e in found if e.group == group]
    return estimate


def test_odds_ratios_are_those_of_the_table_when_there_is_one_column() -> None:
    data, members, flagged, _ = world()
    assert data.texts is not None
    plain = Texts(data.texts.ids, np.full(3000, "same words", dtype=object), data.texts.truth)
    groups = Grouping(Vocabulary(plain.ids), ("a",), members[:, :1], ("x",))
    found = FlagRegression().analyze(
        Context(Dataset(texts=plain, text_groups=groups), {"s": decided(flagged)}, HOW)
    )
    right = flagged == (plain.truth == 1)
    inside, outside = right[members[:, 0]], right[~members[:, 0]]
    odds = [p.mean() / (1 - p.mean()) for p in (inside, outside)]
    estimate = of(found.estimates, "a")
    assert estimate.value == pytest.approx(odds[0] / odds[1], rel=1e-6)
    assert [e.group for e in found.estimates] == ["a"]
    why = {e.what: e.reason for e in found.exclusions}
    assert "collinear" in why["column (words (hundreds))"]
    assert "not enough data" in why["column (has slur)"]
    wald = np.sqrt(sum(1 / (p.sum() * 1.0) + 1 / (~p).sum() for p in (inside, outside)))
    assert estimate.interval is not None
    assert np.log(estimate.interval[1] / estimate.interval[0]) == pytest.approx(
        2 * 1.96 * wald, rel=0.02
    )


def test_all_columns_and_a_planted_effect() -> None:
    data, _, flagged, _ = world()
    found = FlagRegression().analyze(Context(data, {"s": decided(flagged)}, HOW))
    assert [e.group for e in found.estimates] == [
        "a",
        "b",
        "family: generative-ai",
        "words (hundreds)",
    ]
    hit, quiet = of(found.estimates, "a"), of(found.estimates, "b")
    assert hit.interval is not None
    assert hit.interval[1] < 0.5
    assert quiet.p_adjusted is not None
    assert quiet.p_adjusted > 0.01
    assert found.tables["flag-regression"].height == 4
    assert hit.method == "robust (HC1) errors"


def test_clusters_widen_the_interval() -> None:
    n = 3000
    clusters = np.repeat(np.arange(100), 30).astype(np.int32)
    data, members, _, rng = world(n, clusters=clusters)
    assert data.texts is not None
    members[:] = (rng.random((100, 2)) < 0.4)[clusters]
    score = 0.3 + 0.3 * rng.normal(size=100)[clusters] + 0.05 * rng.normal(size=n)
    outputs = {"s": decided(score > 0.5, score)}
    clustered = of(ScoreRegression().analyze(Context(data, outputs, HOW)).estimates, "a")
    texts = data.texts
    alone = Dataset(
        texts=Texts(texts.ids, texts.texts, texts.truth, None, texts.families),
        text_groups=data.text_groups,
    )
    plain = of(ScoreRegression().analyze(Context(alone, outputs, HOW)).estimates, "a")
    assert clustered.value == pytest.approx(plain.value)
    widths = [e.interval[1] - e.interval[0] for e in (clustered, plain) if e.interval]
    assert widths[0] > 3 * widths[1]
    assert clustered.unit == "cluster"
    assert clustered.method == "cluster-robust errors"


def test_linear_coefficients_are_least_squares_on_acceptable_texts() -> None:
    data, members, _, rng = world()
    assert data.texts is not None
    score = 0.2 + 0.1 * members[:, 0] + 0.05 * rng.normal(size=3000)
    found = ScoreRegression().analyze(Context(data, {"s": decided(score > 0.3, score)}, HOW))
    assert of(found.estimates, "a").value == pytest.approx(0.1, abs=0.01)
    negative = data.texts.truth == 0
    words = np.array([len(t.split()) for t in data.texts.texts]) / 100
    family = (data.texts.families == "generative-ai").astype(float)
    x = np.column_stack([np.ones(3000), members, family, words])[negative]
    expected = np.linalg.lstsq(x, score.astype(np.float32)[negative], rcond=None)[0]
    got = [e.value for e in found.estimates]
    np.testing.assert_allclose(got, expected[1:], atol=1e-6)


def test_separation_and_missing_scores_are_said() -> None:
    data, members, flagged, _ = world()
    assert data.texts is not None
    right_inside = np.where(members[:, 0], data.texts.truth == 1, flagged)
    found = FlagRegression().analyze(Context(data, {"s": decided(right_inside)}, HOW))
    assert of(found.estimates, "a").reason.startswith("complete separation")
    perfect = FlagRegression().analyze(Context(data, {"s": decided(data.texts.truth == 1)}, HOW))
    assert of(perfect.estimates, "a").reason == "all outcomes are the same"
    silent = ScoreRegression().analyze(Context(data, {"s": decided(flagged)}, HOW))
    assert silent.estimates[0].reason == "the system gives no scores"
    with pytest.raises(PlanError, match="no moderator"):
        FlagRegression().analyze(Context(data, {}, HOW))


def test_columns_that_follow_from_others_are_left_out() -> None:
    rng = np.random.default_rng(2)
    a = (rng.random(200) < 0.5).astype(float)
    values = np.column_stack([np.ones(200), a, 1 - a, rng.normal(size=200)])
    kept = independent(Columns(("constant", "a", "not a", "z"), values), np.ones(200, dtype=bool))
    assert kept.names == ("constant", "a", "z")
    assert kept.dropped[0][0] == "not a"
    assert np.linalg.matrix_rank(kept.values) == 3


def test_drift_is_mcnemar_on_the_pairs() -> None:
    data, members, flagged, rng = world()
    assert data.texts is not None
    later = flagged ^ (rng.random(3000) < np.where(members[:, 0], 0.1, 0.0))
    outputs = {"v1": decided(flagged), "v2": decided(later)}
    outputs["v2"].outcomes[:10] = 3
    found = Drift(before="v1", after="v2").analyze(Context(data, outputs, HOW))
    both = (data.texts.truth == 0) & (np.arange(3000) >= 10) & members[:, 0]
    only_new = int(np.sum(later[both] & ~flagged[both]))
    only_old = int(np.sum(flagged[both] & ~later[both]))
    change = of(found.estimates, "a")
    assert change.value == pytest.approx((only_new - only_old) / both.sum())
    assert change.p_value == pytest.approx(float(mcnemar(only_new, only_old)))
    assert change.p_adjusted is not None
    assert (change.system, change.against) == ("v2", "v1")
    assert found.exclusions[0].count == int(np.sum(data.texts.truth[:10] == 0))
    with pytest.raises(PlanError, match="known: v1, v2"):
        Drift(before="v1", after="v9").analyze(Context(data, outputs, HOW))


def test_drift_of_clusters_is_resampled() -> None:
    clusters = np.repeat(np.arange(100), 30).astype(np.int32)
    data, _, flagged, rng = world(clusters=clusters)
    later = flagged | (rng.random(100) < 0.1)[clusters]
    found = Drift(before="v1", after="v2").analyze(
        Context(data, {"v1": decided(flagged), "v2": decided(later)}, HOW)
    )
    everyone = of(found.estimates, "")
    assert everyone.unit == "cluster"
    assert "bootstrap" in everyone.method
    assert everyone.n == 100
    few = Settings(replicates=200, minimum=101)
    short = Drift(before="v1", after="v2").analyze(
        Context(data, {"v1": decided(flagged), "v2": decided(later)}, few)
    )
    assert short.estimates[0].reason.startswith("not enough data: 100 clusters")


def test_drift_is_silent_without_drift_and_covers_with_it() -> None:
    rng = np.random.default_rng(6)
    alarms = hits = 0
    for seed in range(60):
        data, _, _, _ = world(600, seed=seed)
        base = rng.random(600) < 0.2
        flip = rng.random(600)
        quiet = np.where(flip < 0.1, rng.random(600) < 0.2, base)
        more = base | (flip > 0.9)
        outputs = {"v1": decided(base), "same": decided(quiet), "more": decided(more)}
        alarm = of(
            Drift(before="v1", after="same").analyze(Context(data, outputs, HOW)).estimates, ""
        )
        assert alarm.p_value is not None
        alarms += alarm.p_value < 0.05
        found = of(
            Drift(before="v1", after="more").analyze(Context(data, outputs, HOW)).estimates, ""
        )
        assert found.interval is not None
        hits += found.interval[0] <= 0.08 <= found.interval[1]
    assert alarms <= 8
    assert hits >= 53


def test_score_spread_is_the_quantiles() -> None:
    data, members, flagged, rng = world()
    assert data.texts is not None
    score = rng.random(3000)
    table = ScoreSpread().analyze(Context(data, {"s": decided(flagged, score)}, HOW)).tables
    rows = {row["group"]: row for row in table["score-spread"].to_dicts()}
    some = score.astype(np.float32)[(data.texts.truth == 0) & members[:, 1]]
    assert rows["b"]["q25"] == pytest.approx(np.quantile(some, 0.25), abs=1e-6)
    assert rows["b"]["texts"] == len(some)
    assert ScoreSpread().analyze(Context(data, {"s": decided(flagged)}, HOW)).tables == {}


def test_how_well_a_regression_fits_is_told() -> None:
    data, members, flagged, rng = world()
    assert data.texts is not None
    truth = data.texts.truth
    plain = Texts(data.texts.ids, np.full(3000, "same words", dtype=object), truth)
    groups = Grouping(Vocabulary(plain.ids), ("a",), members[:, :1], ("x",))
    alone = Dataset(texts=plain, text_groups=groups)
    scores = np.where(members[:, 0], 0.5, 0.2) + 0.1 * rng.random(3000)
    outputs = {"s": decided(flagged, scores)}
    linear = ScoreRegression().analyze(Context(alone, outputs, HOW)).tables["score-regression-fit"]
    (row,) = linear.to_dicts()
    here = truth == 0
    x = np.column_stack([np.ones(here.sum()), members[here, 0]])
    y = scores[here].astype(np.float32).astype(float)
    beta, *_ = np.linalg.lstsq(x, y, rcond=None)
    rest = y - x @ beta
    r2 = 1 - rest @ rest / ((y - y.mean()) ** 2).sum()
    df = len(y) - 2
    assert row["intercept"] == pytest.approx(beta[0])
    assert row["r2"] == pytest.approx(r2)
    assert row["statistic"] == pytest.approx(r2 / ((1 - r2) / df))
    assert row["adjusted_r2"] == pytest.approx(1 - (1 - r2) * (len(y) - 1) / df)
    assert row["residual_error"] == pytest.approx(np.sqrt(rest @ rest / df))
    logistic = FlagRegression().analyze(Context(alone, outputs, HOW)).tables["flag-regression-fit"]
    (row,) = logistic.to_dicts()
    right = flagged == (truth == 1)
    total = 0.0
    for part in (members[:, 0], ~members[:, 0]):
        k, m = right[part].sum(), part.sum()
        total += k * np.log(k / m) + (m - k) * np.log(1 - k / m)
    assert row["log_likelihood"] == pytest.approx(total)
    assert 0 < row["r2"] < 1


def test_the_joint_test_of_clusters_is_the_robust_one() -> None:
    """By hand from the sandwich: clusters' sums of scores, and statsmodels' own F test."""
    import statsmodels.api as sm

    n = 3000
    clusters = np.repeat(np.arange(100), 30).astype(np.int32)
    data, members, _, rng = world(n, clusters=clusters)
    assert data.texts is not None
    members[:, 0] = (rng.random(100) < 0.4)[clusters]
    score = 0.3 + 0.3 * rng.normal(size=100)[clusters] + 0.05 * rng.normal(size=n)
    outputs = {"s": decided(score > 0.5, score)}
    (row,) = (
        ScoreRegression()
        .analyze(Context(data, outputs, HOW))
        .tables["score-regression-fit"]
        .to_dicts()
    )
    here = data.texts.truth == 0
    words = np.array([len(text.split()) for text in data.texts.texts]) / 100
    family = (data.texts.families == "generative-ai").astype(float)
    x = np.column_stack([np.ones(n), members, family, words])[here]
    y = score[here].astype(np.float32).astype(float)
    beta = np.linalg.lstsq(x, y, rcond=None)[0]
    rest = y - x @ beta
    sums = np.array([(x * rest[:, None])[clusters[here] == c].sum(axis=0) for c in range(100)])
    bread = np.linalg.inv(x.T @ x)
    small = 100 / 99 * (len(y) - 1) / (len(y) - x.shape[1])
    covariance = small * bread @ (sums.T @ sums) @ bread
    wald = beta[1:] @ np.linalg.solve(covariance[1:, 1:], beta[1:]) / (x.shape[1] - 1)
    assert row["test"] == "robust F"
    assert row["statistic"] == pytest.approx(wald, rel=1e-6)
    assert row["degrees_of_freedom"] == 99
    how = {"cov_type": "cluster", "cov_kwds": {"groups": clusters[here]}}
    theirs = sm.OLS(y, x).fit(**how)
    assert row["statistic"] == pytest.approx(float(theirs.fvalue), rel=1e-6)
    assert row["p"] == pytest.approx(float(theirs.f_pvalue), rel=1e-4)
    classical = ScoreRegression(errors="classical").analyze(Context(data, outputs, HOW))
    (plain,) = classical.tables["score-regression-fit"].to_dicts()
    assert plain["test"] == "F"
    assert plain["statistic"] == pytest.approx(float(sm.OLS(y, x).fit().fvalue), rel=1e-6)
    assert plain["statistic"] > 1.2 * row["statistic"]
    estimate = of(classical.estimates, "a")
    assert estimate.method == "classical errors"
    assert estimate.interval is not None
    ends = sm.OLS(y, x).fit().conf_int()[1]
    assert estimate.interval == pytest.approx(tuple(ends), rel=1e-4)


def test_fewer_clusters_than_columns_have_no_joint_test() -> None:
    clusters = (np.arange(3000) % 4).astype(np.int32)
    data, _, flagged, rng = world(clusters=clusters)
    assert data.texts is not None
    outputs = {"s": decided(flagged, rng.random(3000))}
    found = ScoreRegression().analyze(Context(data, outputs, Settings(replicates=50, minimum=2)))
    assert "score-regression-fit" not in found.tables
