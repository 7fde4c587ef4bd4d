"""Suppression on planted worlds: coverage when there is an effect, silence when there is none."""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy.stats import binom

from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions, Outcome
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.texts import Texts
from ombud.metrics import FalsePositiveRate, UndecidedShare
from ombud.metrics.engine.comparisons import WHOLE
from ombud.metrics.engine.estimate import estimate_metric
from ombud.metrics.engine.estimator import Settings
from ombud.questions.suppression.metrics import PooledSuppression, Suppression, WorstSuppression
from ombud.worlds import PlantedModerator, small_world

pytestmark = pytest.mark.simulation
WHOLE_RUN = os.environ.get("OMBUD_SLOW", "") not in {"", "0"}


def times(whole: int, quick: int) -> int:
    """Return how often to repeat: fewer times where the suite only samples."""
    return whole if WHOLE_RUN else quick


def least(rate: float, runs: int) -> float:
    """Return the share that a coverage of `rate` falls below in one of a thousand suites."""
    return float(binom.ppf(0.001, runs, rate)) / runs


def most(rate: float, runs: int) -> float:
    """Return the share that alarms with probability `rate` exceed in one of a thousand suites."""
    return float(binom.ppf(0.999, runs, rate)) / runs


SHARES = np.array([0.02, 0.05, 0.1, 0.1, 0.2])
NAMES = ("a", "b", "c", "d", "e")
HOW = Settings(replicates=400, interval="bca")


def draw(
    rng: np.random.Generator, factors: np.ndarray, n: int = 3000, correlation: float = 0.0
) -> tuple[Dataset, Decisions]:
    """Texts with known probabilities of a flag; with correlation, those of a cluster are alike."""
    ids = np.arange(n)
    members = rng.random((n, len(factors))) < SHARES
    u = rng.random(n)
    clusters = None
    if correlation:
        clusters = rng.integers(0, n // 10, n).astype(np.int32)
        members = (rng.random((n // 10, len(factors))) < SHARES)[clusters]
        u = np.where(rng.random(n) < correlation, rng.random(n // 10)[clusters], u)
    chance = 0.08 * np.where(members, factors, 1.0).prod(axis=1)
    flags = u < chance
    scores = np.where(flags, 0.9, 0.1) + 0.1 * rng.random(n)
    texts = Texts(ids, np.full(n, "", dtype=object), np.zeros(n, dtype=np.int8), clusters)
    groups = Grouping(Vocabulary(ids), NAMES, members, ("identity",) * 5)
    data = Dataset(texts=texts, text_groups=groups)
    return data, Decisions(ids, flags.astype(np.int8), scores.astype(np.float32))


def truth(factors: np.ndarray) -> np.ndarray:
    """Exact suppression of each group when memberships are independent."""
    means = 1 - SHARES + SHARES * factors
    return np.asarray(factors / means)


def test_planted_suppression_is_covered() -> None:
    rng = np.random.default_rng(11)
    factors = np.array([2.5, 1.0, 1.0, 2.0, 0.6])
    true = truth(factors)
    hits = np.zeros(5)
    largest = pooled = 0
    runs = times(150, 15)
    for _ in range(runs):
        data, decisions = draw(rng, factors)
        for metric in (Suppression(), WorstSuppression(), PooledSuppression()):
            found = estimate_metric(
                metric, {"s": metric.measure(decisions, data)}, data.text_groups, HOW
            )
            if isinstance(metric, WorstSuppression):
                ends = found[0].interval
                assert ends is not None
                largest += ends[0] <= true.max() <= ends[1]
                continue
            for e in found:
                if e.against != WHOLE or e.interval is None:
                    continue
                covered = e.interval[0] <= true[NAMES.index(e.group)] <= e.interval[1]
                if isinstance(metric, Suppression):
                    hits[NAMES.index(e.group)] += covered
                else:
                    pooled += covered
    assert np.all(hits / runs >= least(0.94, runs)), hits / runs
    assert hits.mean() / runs >= least(0.94, 5 * runs)
    assert largest / runs >= least(0.95, runs)
    assert pooled / (5 * runs) >= least(0.92, 5 * runs)


def test_silence_when_there_is_no_suppression() -> None:
    rng = np.random.default_rng(12)
    runs, alarms, single = times(150, 20), 0, 0
    for _ in range(runs):
        data, decisions = draw(rng, np.ones(5))
        metric = Suppression()
        found = estimate_metric(
            metric, {"s": metric.measure(decisions, data)}, data.text_groups, HOW
        )
        whole = [e for e in found if e.against == WHOLE and e.p_adjusted is not None]
        alarms += any(e.p_adjusted < 0.05 for e in whole if e.p_adjusted is not None)
        single += sum(e.excludes_null for e in whole)
    assert alarms / runs <= most(0.05, runs)
    assert single / (5 * runs) <= most(0.05, 5 * runs)


SMALL = np.array([0.03, 0.02, 0.1, 0.07, 0.012, 0.019, 0.006, 0.0018])


def rare(rng: np.random.Generator, clustered: bool) -> tuple[Dataset, Decisions]:
    """Many texts, small groups, rare flags and refusals, and no difference between groups."""
    n = 6000
    ids, names = np.arange(n), tuple("abcdefgh")
    members, clusters, chance = rng.random((n, 8)) < SMALL, None, np.full(n, 0.02)
    if clustered:
        clusters = rng.integers(0, n // 4, n).astype(np.int32)
        members = (rng.random((n // 4, 8)) < SMALL)[clusters]
        chance = 0.02 * rng.gamma(1.0, 1.0, n // 4)[clusters]
    outcomes = (rng.random(n) < chance).astype(np.int8)
    outcomes[rng.random(n) < chance / 2] = Outcome.REFUSED
    texts = Texts(ids, np.full(n, "", dtype=object), np.zeros(n, dtype=np.int8), clusters)
    groups = Grouping(Vocabulary(ids), names, members, ("identity",) * 8)
    scores = np.full(n, np.nan, dtype=np.float32)
    return Dataset(texts=texts, text_groups=groups), Decisions(ids, outcomes, scores)


@pytest.mark.parametrize("clustered", [False, True], ids=["alone", "clusters"])
def test_silence_where_events_are_rare(clustered: bool) -> None:
    rng = np.random.default_rng(15)
    runs = times(50, 5) if clustered else times(120, 8)
    how = Settings(replicates=200)
    metrics = (FalsePositiveRate(), UndecidedShare(), Suppression())
    alarms, gates = dict.fromkeys(metrics, 0), 0
    for _ in range(runs):
        data, decisions = rare(rng, clustered)
        for metric in metrics:
            rows = {"s": metric.measure(decisions, data)}
            found = estimate_metric(metric, rows, data.text_groups, how)
            hits = [e for e in found if e.against and (e.p_adjusted or 1.0) < 0.05]
            alarms[metric] += bool(hits)
            if isinstance(metric, Suppression):
                gates += any(e.interval is not None and e.interval[0] > 1.25 for e in hits)
    assert max(alarms.values()) / runs <= most(0.05, runs), alarms
    assert gates / runs <= most(0.05, runs)


@pytest.mark.slow
@pytest.mark.parametrize(("share", "size"), [(0.05, 4), (0.1, 4), (0.1, 10)])
def test_a_group_that_is_flagged_less_is_found(share: float, size: int) -> None:
    """Through the whole engine: power at half and a quarter of the rate, silence at 1."""
    rng = np.random.default_rng(16)
    metric, n, runs = Suppression(), 4000, 200
    alarms = {}
    for ratio in (1.0, 0.5, 0.25):
        low = 0
        for _ in range(runs):
            clusters = rng.integers(0, n // size, n).astype(np.int32)
            member = (rng.random(n // size) < share)[clusters]
            chance = 0.1 * rng.gamma(1.0, 1.0, n // size)[clusters]
            flags = rng.random(n) < chance * np.where(member, ratio, 1.0)
            ids = np.arange(n)
            texts = Texts(ids, np.full(n, "", dtype=object), np.zeros(n, dtype=np.int8), clusters)
            groups = Grouping(Vocabulary(ids), ("g",), member[:, None], ("identity",))
            scores = np.full(n, np.nan, dtype=np.float32)
            data = Dataset(texts=texts, text_groups=groups)
            rows = {"s": metric.measure(Decisions(ids, flags.astype(np.int8), scores), data)}
            (found,) = estimate_metric(metric, rows, groups, Settings(replicates=200))
            low += found.value is not None and found.value < 1 and (found.p_value or 1) < 0.05
        alarms[ratio] = low / runs
    assert alarms[1.0] <= 0.05
    assert alarms[0.5] > 0.3
    assert alarms[0.25] > 0.8


@pytest.mark.parametrize("ratio", [1.0, 2.2])
def test_a_small_group_shown_for_its_flags_alone_is_covered(ratio: float) -> None:
    """Groups of 15 texts, of which only those with 5 flags have a ratio."""
    rng = np.random.default_rng(17)
    n, size, rate = 3000, 15, 0.15
    true = ratio / (1 - size / n + size / n * ratio)
    member = np.arange(n) < size
    ids, none = np.arange(n), np.full(n, np.nan, dtype=np.float32)
    metric, shown, hits = Suppression(), 0, 0
    for _ in range(times(1200, 60)):
        flags = rng.random(n) < rate * np.where(member, ratio, 1.0)
        texts = Texts(ids, np.full(n, "", dtype=object), np.zeros(n, dtype=np.int8))
        groups = Grouping(Vocabulary(ids), ("g",), member[:, None], ("identity",))
        data = Dataset(texts=texts, text_groups=groups)
        rows = {"s": metric.measure(Decisions(ids, flags.astype(np.int8), none), data)}
        (found,) = estimate_metric(metric, rows, groups, Settings(replicates=100))
        if found.value is not None:
            assert found.interval is not None
            shown += 1
            hits += found.interval[0] <= true <= found.interval[1]
    assert hits / shown >= least(0.95, shown)


@pytest.mark.parametrize("correlation", [0.3, 0.7])
@pytest.mark.parametrize("factors", [(1.0,) * 5, (2.5, 1.0, 1.0, 2.0, 0.6)])
def test_the_smallest_clustered_groups_are_covered(
    correlation: float, factors: tuple[float, ...]
) -> None:
    """Sixteen clusters in the smallest group; every group's own coverage counts."""
    rng = np.random.default_rng(18)
    true = truth(np.array(factors))
    hits, shown, metric = np.zeros(5), np.zeros(5), Suppression()
    for _ in range(times(400, 12)):
        data, decisions = draw(rng, np.array(factors), n=8000, correlation=correlation)
        rows = {"s": metric.measure(decisions, data)}
        for e in estimate_metric(metric, rows, data.text_groups, HOW):
            if e.against == WHOLE and e.interval is not None:
                place = NAMES.index(e.group)
                shown[place] += 1
                hits[place] += e.interval[0] <= true[place] <= e.interval[1]
    for covered, of in zip(hits, shown, strict=True):
        assert covered / of >= least(0.94, int(of)), hits / shown


def test_clusters_are_what_is_resampled() -> None:
    rng = np.random.default_rng(13)
    factors = np.array([1.0, 1.0, 1.0, 1.0, 1.0])
    hits = total = narrow = 0
    for _ in range(times(60, 10)):
        data, decisions = draw(rng, factors, n=8000, correlation=0.7)
        metric = Suppression()
        rows = metric.measure(decisions, data)
        found = estimate_metric(metric, {"s": rows}, data.text_groups, HOW)
        for e in found:
            if e.against == WHOLE and e.interval is not None and e.group in "cde":
                hits += e.interval[0] <= 1 <= e.interval[1]
                total += 1
        assert data.texts is not None
        alone = Dataset(
            texts=Texts(data.texts.ids, data.texts.texts, data.texts.truth),
            text_groups=data.text_groups,
        )
        ignoring = estimate_metric(
            metric, {"s": metric.measure(decisions, alone)}, data.text_groups, HOW
        )
        narrow += sum(
            e.interval[0] <= 1 <= e.interval[1]
            for e in ignoring
            if e.against == WHOLE and e.interval is not None and e.group in "cde"
        )
    assert hits / total >= least(0.93, total)
    assert narrow < hits - 0.1 * total


def test_medians_are_covered() -> None:
    rng = np.random.default_rng(14)
    metric = Suppression(by="scores")
    hits = total = 0
    for _ in range(times(100, 15)):
        n = 2000
        members = rng.random((n, 2)) < np.array([0.05, 0.3])
        scores = rng.gamma(2.0, np.where(members[:, 0], 1.5, 1.0)).astype(np.float32)
        ids = np.arange(n)
        texts = Texts(ids, np.full(n, "", dtype=object), np.zeros(n, dtype=np.int8))
        groups = Grouping(Vocabulary(ids), ("a", "b"), members, ("x", "y"))
        data = Dataset(texts=texts, text_groups=groups)
        found = estimate_metric(
            metric,
            {"s": metric.measure(Decisions(ids, np.zeros(n, dtype=np.int8), scores), data)},
            groups,
            HOW,
        )
        # The median of a mixture of two gammas, by a large sample.
        for e, true in zip(found[:2], (GAMMA, 1.0), strict=True):
            assert e.interval is not None
            hits += e.interval[0] <= true <= e.interval[1]
            total += 1
    assert hits / total >= least(0.94, total)


def _gamma_ratio() -> float:
    from scipy.optimize import brentq
    from scipy.stats import gamma

    whole = brentq(
        lambda x: 0.95 * gamma.cdf(x, 2) + 0.05 * gamma.cdf(x, 2, scale=1.5) - 0.5, 0.1, 10
    )
    return float(gamma.median(2, scale=1.5) / whole)


GAMMA = _gamma_ratio()


def test_the_planted_moderator_is_found() -> None:
    world = small_world(4, texts=4000, templates=400)
    planted = world.truth.texts
    assert planted is not None
    victim = planted.groups.names[0]
    moderator = PlantedModerator(world, suppress={victim: 3.0})
    metric = Suppression()
    rows = metric.measure(moderator.moderate(world.texts), world.dataset)
    found = estimate_metric(metric, {"s": rows}, world.dataset.text_groups, HOW)
    whole = {e.group: e for e in found if e.against == WHOLE}
    truths = moderator.truth().suppression
    above = whole[victim]
    assert above.interval is not None
    assert above.interval[0] > 1.5
    assert above.interval[0] <= truths[0] <= above.interval[1]
    (worst,) = estimate_metric(WorstSuppression(), {"s": rows}, world.dataset.text_groups, HOW)
    assert worst.note.startswith(victim)
