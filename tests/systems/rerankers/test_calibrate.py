from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ombud.audits.audit import Audit
from ombud.data.dataset import Dataset
from ombud.data.ids import Vocabulary
from ombud.data.interactions import Interactions
from ombud.data.labels import Labels
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics.calibration import Miscalibration, divergence, item_mixes
from ombud.registry import create
from ombud.systems.recorded import RecordedRecommendations
from ombud.systems.rerankers import CalibratedReranker
from ombud.systems.rerankers.calibrate import calibrate
from ombud.worlds import small_world

ITEMS, LABELS = 30, 4


def case(seed: int, scored: bool) -> tuple[Dataset, Recommendations]:
    rng = np.random.default_rng(seed)
    users = 5
    items = Vocabulary(np.arange(ITEMS))
    states = rng.choice([-2, 0, 1], (ITEMS, LABELS), p=[0.2, 0.5, 0.3]).astype(np.int8)
    labels = Labels(items, tuple("abcd"), states)
    met = [(u, i) for u in range(users) for i in rng.choice(ITEMS, 6, replace=False)]
    user, item = zip(*met, strict=True)
    lists = np.array([rng.permutation(ITEMS)[:12] for _ in range(users)], dtype=np.int32)
    lists[0, 9:] = -1
    scores = -np.sort(-rng.random(lists.shape), axis=1).astype(np.float32) if scored else None
    data = Dataset(Interactions.from_arrays(user, item), labels)
    return data, Recommendations(np.arange(users), lists, items, scores)


def bernoulli(target: NDArray[Any], found: NDArray[Any], alpha: float) -> float:
    q = (1 - alpha) * found + alpha * target
    p = target
    with np.errstate(divide="ignore", invalid="ignore"):
        one = np.where(p > 0, p * np.log(p / q), 0) + np.where(
            p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0
        )
    return float(one.sum())


def by_loop(
    data: Dataset, lists: Recommendations, n: int, strength: float, target: Any, weighting: str
) -> list[list[int]]:
    """The same greedy choice with the whole divergence computed for every candidate."""
    assert data.labels is not None and data.interactions is not None
    mixes = item_mixes(data.labels).todense()
    carries = (data.labels.states == 1).astype(float)
    result = []
    for u, row in enumerate(lists.items):
        left = [p for p in range(len(row)) if row[p] >= 0]
        past = data.interactions.items.ids[data.interactions.matrix[[u]].indices]
        aim = np.asarray(mixes[past]).mean(axis=0)
        if lists.scores is None:
            r = {p: 1 - p / len(row) for p in left}
        else:
            s = {p: float(lists.scores[u, p]) for p in left}
            r = {p: (s[p] - min(s.values())) / (max(s.values()) - min(s.values())) for p in left}
        chosen: list[int] = []
        while left and len(chosen) < n:
            value = {}
            d = np.ones(len(chosen) + 1)
            if weighting == "exposure":
                d = 1 / np.log2(np.arange(len(d)) + 2)
            for p in left:
                codes = [row[q] for q in [*chosen, p]]
                if target == "history":
                    q = d @ np.asarray(mixes[codes]) / d.sum()
                    cost = float(divergence(aim[None], q[None])[0])
                else:
                    where = [data.labels.names.index(w) for w in target]
                    q = d @ carries[codes][:, where] / d.sum()
                    cost = bernoulli(np.array(list(target.values())), q, 0.01)
                value[p] = (1 - strength) * r[p] - strength * cost
            best = max(left, key=lambda p: (round(value[p], 9), -p))
            chosen.append(best)
            left.remove(best)
        result.append([int(row[p]) for p in chosen])
    return result


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.3, 0.8, 1.0]),
    st.sampled_from(["history", {"b": 0.25}, {"a": 0.0, "c": 1.0}]),
    st.sampled_from(["share", "exposure"]),
    st.booleans(),
)
def test_equals_a_plain_loop(
    seed: int, strength: float, target: Any, weighting: Any, scored: bool
) -> None:
    data, lists = case(seed, scored)
    assert data.labels is not None
    found = calibrate(
        lists, data.labels, data.interactions, target=target, strength=strength, n=7,
        weighting=weighting,
    )  # fmt: skip
    slow = by_loop(data, lists, 7, strength, target, weighting)
    # Where values tie to rounding, either choice is right: compare what was achieved.
    for row, plain in zip(found.items, slow, strict=True):
        chosen = row[row >= 0].tolist()
        assert len(chosen) == len(plain) and len(set(chosen)) == len(chosen)
        if strength < 1:
            assert chosen == plain


def test_strength_zero_keeps_the_order() -> None:
    data, lists = case(1, True)
    assert data.labels is not None
    kept = calibrate(lists, data.labels, data.interactions, strength=0.0, n=5)
    assert np.array_equal(kept.items, lists.items[:, :5])
    assert kept.scores is not None and lists.scores is not None
    assert np.array_equal(kept.scores, lists.scores[:, :5])


def test_a_target_share_is_reached() -> None:
    items = Vocabulary(np.arange(40))
    states = (np.arange(40) < 20).astype(np.int8)[:, None]
    labels = Labels(items, ("w",), states)
    lists = Recommendations(np.array([0]), np.arange(40, dtype=np.int32)[None], items)
    for share in (0.0, 0.25, 0.5, 1.0):
        found = calibrate(lists, labels, target={"w": share}, strength=0.999, n=20)
        assert (found.items < 20).mean() == pytest.approx(share, abs=0.051)


def test_a_user_without_a_history_keeps_the_list() -> None:
    data, lists = case(2, False)
    assert data.labels is not None
    stranger = Recommendations(np.array([0, 1, 2, 3, 99]), lists.items, lists.catalogue)
    found = calibrate(stranger, data.labels, data.interactions, strength=0.9, n=4)
    assert np.array_equal(found.items[4], lists.items[4, :4])


def test_faults() -> None:
    data, lists = case(3, False)
    assert data.labels is not None
    for options, words in (
        ({"strength": 2.0}, "strength is 2.0"),
        ({"target": {}}, "names no label"),
        ({"target": {"a": 1.5}}, "a share is 0 to 1"),
        ({"target": "history"}, "needs interactions"),
    ):
        with pytest.raises(PlanError, match=words):
            calibrate(lists, data.labels, **options)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="candidates is 0"):
        CalibratedReranker(RecordedRecommendations.from_frame(lists), candidates=0)


def test_an_audit_shows_less_miscalibration_for_a_price() -> None:
    world = small_world(9)
    systems: dict[str, Any] = {
        "as it is": create("recommender", "popular"),
        "calibrated": create(
            "recommender", "calibrated", {"inner": {"type": "popular"}, "strength": 0.7}
        ),
    }
    result = Audit(world.dataset, systems, [Miscalibration(k=20)]).run()
    (gap,) = [e for e in result.select(kind="gap") if not e.group]
    assert gap.interval is not None and gap.interval[0] > 0
