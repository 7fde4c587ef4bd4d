"""A new moderator for an old one: thresholds matched, decisions paired, counts by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.audits import Audit, Plan
from ombud.audits.analysis import Context
from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions, Outcome
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.metrics import FalsePositiveRate
from ombud.metrics.engine.estimator import Settings
from ombud.questions.suppression.changes import Migration, matched_threshold
from ombud.report import Report
from ombud.stats.paired import PairedCounts, mcnemar, paired_proportion_interval
from ombud.systems import RecordedDecisions

N = 1000


@given(st.lists(st.integers(0, 20), min_size=1, max_size=60), st.integers(0, 60))
def test_no_threshold_is_nearer(values: list[int], flagged: int) -> None:
    scores = np.array(values, dtype=float)
    threshold, count = matched_threshold(scores, flagged)
    assert np.count_nonzero(scores >= threshold) == count
    others = [np.count_nonzero(scores >= t) for t in (*values, np.inf)]
    assert abs(count - flagged) == min(abs(other - flagged) for other in others)


def world() -> tuple[Dataset, dict[str, Decisions]]:
    """The old moderator is even; the new one scores texts of group a higher."""
    rng = np.random.default_rng(3)
    ids = np.arange(N)
    truth = (ids % 5 == 0).astype(np.int8)
    members = np.zeros((N, 2), dtype=bool)
    members[:200, 0] = members[500:, 1] = True
    texts = Texts(
        ids,
        np.array([f"text {i}" for i in ids], dtype=object),
        truth,
        sets=np.where(ids % 2, "odd", "even").astype(object),
    )
    groups = Grouping(Vocabulary(ids), ("a", "b"), members, ("identity",) * 2)
    noise = rng.random(N)
    old_scores = noise + truth
    new_scores = noise + 0.15 * rng.random(N) + truth + np.where(members[:, 0], 0.3, 0.0)
    old = Decisions(ids, (old_scores > 0.8).astype(np.int8), old_scores.astype(np.float32))
    new = Decisions(ids, (new_scores > 0.5).astype(np.int8), new_scores.astype(np.float32))
    return Dataset(texts=texts, text_groups=groups), {"old": old, "new": new}


@pytest.mark.parametrize("match", ["false-positive-rate", "flag-rate", "none"])
def test_by_hand(match: str) -> None:
    data, outputs = world()
    found = Migration(old="old", new="new", match=match).analyze(
        Context(data, outputs, Settings(replicates=50))
    )
    (fact,) = found.tables["migration"].to_dicts()
    assert data.texts is not None
    fine = data.texts.truth == 0
    old, new = outputs["old"].outcomes == 1, outputs["new"].outcomes == 1
    if match == "none":
        assert fact["threshold"] is None
    else:
        new = outputs["new"].scores >= fact["threshold"]
        part = fine if match == "false-positive-rate" else np.ones(N, bool)
        assert np.count_nonzero(new & part) == np.count_nonzero(old & part)
    assert fact["newly_flagged"] == np.count_nonzero(new & ~old & fine)
    here = fine & (np.arange(N) < 200)
    up, down = int((new & ~old & here).sum()), int((old & ~new & here).sum())
    (a,) = [
        e
        for e in found.estimates
        if e.group == "a" and not e.label and e.key == "migration/false-positive-rate"
    ]
    assert a.value == pytest.approx((up - down) / here.sum())
    assert a.p_value == pytest.approx(float(mcnemar(up, down, "exact")))
    both, neither = int((old & new & here).sum()), int((~old & ~new & here).sum())
    counts = PairedCounts(*(np.asarray(c) for c in (both, up, down, neither)))
    interval = paired_proportion_interval(counts)
    assert a.interval == pytest.approx((float(interval.low), float(interval.high)))
    assert (a.details["up"], a.details["down"]) == (up, down)
    assert a.interval is not None
    assert a.interval[0] > 0
    sets = {e.label for e in found.estimates}
    assert sets == {"", "set=even", "set=odd"}
    harmful = [e for e in found.estimates if e.key == "migration/true-positive-rate"]
    assert harmful[0].details["before"] == pytest.approx(old[~fine].mean())


def test_what_cannot_be_matched() -> None:
    data, outputs = world()
    how = Settings(replicates=50)
    bare = Decisions(
        outputs["new"].ids, outputs["new"].outcomes, np.full(N, np.nan, dtype=np.float32)
    )
    with pytest.raises(PlanError, match="new gives no score for 1,000 of 1,000 texts"):
        Migration(old="old", new="new").analyze(Context(data, outputs | {"new": bare}, how))
    assert (
        Migration(old="old", new="new", match="none")
        .analyze(Context(data, outputs | {"new": bare}, how))
        .estimates
    )
    with pytest.raises(PlanError, match="no moderator is called 'next'"):
        Migration(old="old", new="next").analyze(Context(data, outputs, how))
    with pytest.raises(PlanError, match="name two moderators"):
        Migration(old="old", new="old").analyze(Context(data, outputs, how))
    refused = outputs["old"].outcomes.copy()
    refused[:30] = Outcome.REFUSED
    some = outputs | {"old": Decisions(outputs["old"].ids, refused, outputs["old"].scores)}
    found = Migration(old="old", new="new").analyze(Context(data, some, how))
    assert found.exclusions[0].count == 30


def test_the_report_tells_it() -> None:
    data, outputs = world()
    plan = Plan(
        preset="suppression",
        options={"old": "old", "new": "new", "scores": False},
        statistics={"replicates": 100},  # type: ignore[arg-type]
        systems={"old": {"type": "recorded"}, "new": {"type": "recorded"}},
    )
    from ombud.audits.presets import complete

    filled = complete(plan)
    assert {
        "name": "migration",
        "old": "old",
        "new": "new",
        "match": "false-positive-rate",
    } in list(filled.analyses)
    systems = {name: RecordedDecisions(d, name) for name, d in outputs.items()}
    result = Audit(
        data, systems, [FalsePositiveRate()], analyses=(Migration(old="old", new="new"),)
    ).run()
    text = Report(result).markdown()
    assert "What changes with the new moderator" in text
    assert "would be newly flagged" in text
    threshold = result.tables["migration"]["threshold"][0]
    same = f"At a threshold of {threshold:.4g}, the new moderator flags as many acceptable texts"
    assert same in text
    assert "The new moderator flags acceptable texts about these groups more often" in text
