"""Two results and a series of them: changes by group and set, refusals, alarms and their rate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ombud.audits import Audit, Result
from ombud.audits.compare import compare, stands
from ombud.audits.monitor import results_in, watch
from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.texts import Texts
from ombud.errors import ResultError
from ombud.metrics import FalsePositiveRate
from ombud.metrics.base import Rows
from ombud.metrics.engine.changes import estimate_changes
from ombud.metrics.engine.estimator import Settings
from ombud.questions.suppression.metrics import PooledSuppression, Suppression
from ombud.report.watching import change_verdict, watch_lines, watch_page, watch_verdict
from ombud.stats.paired import mcnemar
from ombud.systems import RecordedDecisions

N = 1200


def data(words: str = "text", clustered: bool = False) -> Dataset:
    ids = np.arange(N)
    texts = Texts(
        ids,
        np.array([f"{words} {i}" for i in ids], dtype=object),
        np.zeros(N, dtype=np.int8),
        (ids // 4).astype(np.int32) if clustered else None,
        sets=np.where(ids < 700, "one", "two").astype(object),
    )
    members = np.zeros((N, 3), dtype=bool)
    members[:300, 0] = members[300:500, 1] = members[900:, 2] = True
    groups = Grouping(Vocabulary(ids), ("a", "b", "c"), members, ("identity",) * 3)
    return Dataset(texts=texts, text_groups=groups)


def flags(seed: int = 1) -> NDArray[np.bool_]:
    return np.random.default_rng(seed).random(N) < 0.2


def moderator(flagged: NDArray[np.bool_]) -> RecordedDecisions:
    scores = np.where(flagged, 0.9, 0.1).astype(np.float32)
    return RecordedDecisions(Decisions(np.arange(N), flagged.astype(np.int8), scores), "mine")


def run(folder: Path, flagged: NDArray[np.bool_], some: Dataset | None = None) -> Result:
    metrics = [FalsePositiveRate(families=True), Suppression(families=True), PooledSuppression()]
    plan = {"replicates": 200}
    from ombud.audits.plan import StatisticsPlan

    statistics = StatisticsPlan(**plan)
    return Audit(some or data(), {"mine": moderator(flagged)}, metrics, statistics=statistics).run(
        folder
    )


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("series")
    first = flags()
    worse = first.copy()
    worse[:60] = True  # group a is flagged more, group b less, in set one
    worse[300:500] = False
    for name, flagged in (("1-jan", first), ("2-feb", first), ("3-mar", worse)):
        run(folder / name, flagged)
    return folder


def test_changes_by_group_and_set(series: Path) -> None:
    found = compare(Result.load(series / "1-jan"), Result.load(series / "3-mar"))
    rates = {(e.group, e.label): e for e in found if e.metric == "false-positive rate"}
    assert {g for g, _ in rates} == {"", "a", "b", "c"}
    assert {w for _, w in rates} == {"", "set=one", "set=two"}
    first, last = flags(), flags()
    last[:60], last[300:500] = True, False
    a = rates["a", ""]
    assert a.value == pytest.approx(last[:300].mean() - first[:300].mean())
    up = int(np.count_nonzero(last[:300] & ~first[:300]))
    assert a.p_value == pytest.approx(float(mcnemar(up, 0)))
    assert a.details["before"] == pytest.approx(first[:300].mean())
    b = rates["b", "set=one"]
    assert b.value == pytest.approx(-first[300:500].mean())
    assert rates["c", ""].value == 0
    standing = {(e.metric, e.group) for e in found.standing}
    assert ("false-positive rate", "a") in standing
    assert ("false-positive rate", "b") in standing
    assert ("false-positive rate", "c") not in standing
    own = [e for e in found if e.metric == "false-positive rate"]
    sizes = [abs(e.value or 0) for e in own if e in found.standing]
    assert sizes == sorted(sizes, reverse=True)
    assert [e in found.standing for e in own] == sorted(
        (e in found.standing for e in own), reverse=True
    )


def test_ratios_change_by_ratios(series: Path) -> None:
    found = compare(Result.load(series / "1-jan"), Result.load(series / "3-mar"))
    (a,) = [e for e in found if e.metric == "suppression" and e.group == "a" and not e.label]
    first, last = flags(), flags()
    last[:60], last[300:500] = True, False
    expected = (last[:300].mean() / last.mean()) / (first[:300].mean() / first.mean())
    assert a.value == pytest.approx(expected)
    assert a.interval is not None
    assert a.interval[0] < expected < a.interval[1]
    (b,) = [e for e in found if e.metric == "suppression" and e.group == "b" and not e.label]
    assert b.value is None
    assert "0 after" in b.reason
    assert any("pooled suppression is computed over all groups" in r for r in found.remarks)


def test_nothing_changed_is_said(series: Path) -> None:
    found = compare(Result.load(series / "1-jan"), Result.load(series / "2-feb"))
    assert found.nothing_changed
    assert not found.standing


def test_other_data_is_refused(series: Path, tmp_path: Path) -> None:
    run(tmp_path / "other", flags(2), data("another"))
    before, after = Result.load(series / "1-jan"), Result.load(tmp_path / "other")
    with pytest.raises(ResultError, match=r"different data \(their texts are not the same\)"):
        compare(before, after)
    found = compare(before, after, same_units=True)
    assert any("pairs rest on ids alone" in remark for remark in found.remarks)


def test_clusters_are_compared_by_their_signs() -> None:
    some = data(clustered=True)
    metric = FalsePositiveRate()
    one, two = flags(), flags()
    two[:40] = True
    rows = [metric.measure(moderator(f).moderate(some.texts), some) for f in (one, two)]  # type: ignore[arg-type]
    found = estimate_changes(metric, rows[0], rows[1], some.text_groups, Settings(replicates=200))
    whole = found[0]
    sums = np.bincount(np.arange(N) // 4, two.astype(float) - one)
    changed = sums[sums != 0]
    assert len(changed) <= 13
    assert whole.p_value == pytest.approx(2 / 2 ** len(changed))
    (c,) = [e for e in found if e.group == "c"]
    assert c.value == 0
    assert c.p_value == 1


def test_a_series_alarms_where_something_changed(series: Path) -> None:
    found = watch(series, false_alarms=0.01, per_result=True)
    assert found.names == ("1-jan", "2-feb", "3-mar")
    assert found.paired
    alarming = {(c.metric, c.group, c.label) for c in found.alarms}
    assert ("false-positive rate", "b", "") in alarming
    assert not any(group == "c" for _, group, _ in alarming)
    (b,) = [
        c
        for c in found.charts
        if c.metric == "false-positive rate" and c.group == "b" and not c.label
    ]
    assert [point.alarm for point in b.points] == [False, False, True]
    last = b.points[-1]
    assert last.low is not None
    assert last.value is not None
    assert last.value < last.low
    lines = watch_lines(found)
    assert "changed beyond chance" in lines[0]
    assert "at most 0.01" in lines[0]
    page = watch_page(found)
    assert "false-positive rate, mine, b" in page and "false-positive rate, mine, c" in page
    calm = watch(results_in(series)[:2], per_result=True)
    assert not calm.alarms
    assert "nothing changed beyond chance" in watch_lines(calm)[0]
    first, second, third = results_in(series)
    back = watch([first, third, second], false_alarms=0.01, per_result=True)
    over = [[point.alarm for point in chart.points] for chart in back.charts]
    earlier = sum(any(alarms) and not alarms[-1] for alarms in over)
    assert earlier and earlier < len(over)
    (line,) = [line for line in watch_lines(back) if "alarmed in an earlier result" in line]
    assert line.split()[0] == str(earlier)
    assert not any("alarmed in an earlier result" in line for line in lines)


def test_results_on_other_texts_are_independent_samples(series: Path, tmp_path: Path) -> None:
    more = flags(3)
    more[:300] |= np.random.default_rng(4).random(300) < 0.5
    run(tmp_path / "next", more, data("another"))
    found = watch([Result.load(series / "1-jan"), Result.load(tmp_path / "next")])
    assert not found.paired
    assert any("independent samples" in remark for remark in found.remarks)
    assert "a" in {chart.group for chart in found.alarms}
    assert "c" not in {chart.group for chart in found.alarms}


def test_what_is_no_series(series: Path, tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="0 finished results"):
        watch(tmp_path)
    with pytest.raises(ResultError, match="is one result"):
        watch(series / "1-jan")
    with pytest.raises(ResultError, match="no result is called 'june'; there are: 1-jan"):
        watch(series, reference="june")
    with pytest.raises(ResultError, match="nothing comes after it"):
        watch(series, reference="3-mar")
    with pytest.raises(ResultError, match="0 to 1 is expected"):
        watch(series, false_alarms=0)


@pytest.mark.simulation
def test_alarms_are_no_more_frequent_than_stated() -> None:
    """Random flips that favour no direction: some number of a result alarms as rarely as stated."""
    from ombud.stats.multiplicity import adjust

    rng = np.random.default_rng(9)
    some = data()
    metric = FalsePositiveRate(families=True)
    runs, rate, alarms = 60, 0.2, 0
    first = flags()
    rows = metric.measure(moderator(first).moderate(some.texts), some)  # type: ignore[arg-type]
    for _ in range(runs):
        flips = rng.random(N) < np.where(first, 0.2, 0.05)  # as many either way
        other = metric.measure(moderator(first ^ flips).moderate(some.texts), some)  # type: ignore[arg-type]
        found = estimate_changes(metric, rows, other, some.text_groups, Settings(replicates=50))
        p = np.array([e.p_value for e in found if e.p_value is not None])
        alarms += bool((adjust(p, "holm") < rate).any())
    # Two standard errors of 60 runs are 0.10.
    assert alarms / runs <= rate + 0.1


def test_a_group_does_not_change_because_the_whole_does() -> None:
    """Only the texts of one of seven groups are decided otherwise; the ratios of all seven move."""
    n, groups = 700, 7
    ids = np.arange(n)
    before = (ids % 4 == 0).astype(float)[:, None]
    after = before.copy()
    after[:100:12] = after[4:100:12] = 0  # group 0 is flagged less
    members = (ids[:, None] // 100) == np.arange(groups)
    names = tuple(f"g{g}" for g in range(groups))
    grouping = Grouping(Vocabulary(ids), names, members, ("group",) * groups)
    rows = [Rows("text", ids, {"value": values}) for values in (before, after)]
    found = {e.group: e for e in estimate_changes(Suppression(), *rows, grouping, Settings())}
    shared = after.mean() / before.mean()
    for g, name in enumerate(names):
        own = after[members[:, g]].mean() / before[members[:, g]].mean()
        e = found[name]
        assert e.value == pytest.approx(own / shared)
        assert e.details["own_change"] == pytest.approx(own)
        assert e.details["shared_change"] == pytest.approx(shared)
        assert stands(e) is (g == 0)
    assert "own rate did not change" in found["g3"].note


def test_the_verdict_on_a_change_names_both_levels(series: Path, tmp_path: Path) -> None:
    """More flags on a group are worse, fewer better, the same are no clear change."""
    more = flags()
    more[:300] |= np.random.default_rng(9).random(300) < 0.6
    run(tmp_path / "worse", more)
    worse, first = Result.load(tmp_path / "worse"), Result.load(series / "1-jan")
    verdict = change_verdict(compare(first, worse), worse)
    assert verdict.answer == "worse" and " to " in verdict.changes[0]
    back = change_verdict(compare(worse, first), first)
    assert back.answer in {"better", "worse"} and back.changes
    same = change_verdict(compare(first, Result.load(series / "2-feb")), first)
    assert same.answer == "no clear change" and not same.changes
    other = Result(first.plan, (), ())
    assert change_verdict(compare(first, worse), other).answer == "cannot tell"
    followed = watch([first, worse], per_result=True)
    told = watch_verdict(followed, worse)
    assert told.answer == "no clear change" and "other numbers changed" in told.headline
