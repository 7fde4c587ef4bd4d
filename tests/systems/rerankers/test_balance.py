"""Balanced lists of a recommender, recorded here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ombud.data.ids import Vocabulary
from ombud.data.interactions import Interactions
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.systems.recorded import RecordedRecommendations
from ombud.systems.rerankers import BalancedReranker
from ombud.systems.rerankers.balance import (
    balance,
    calibrate_identities,
    identity_codes,
    profile_mix,
)

ITEMS = Vocabulary(["f1", "f2", "m1", "m2", "m3", "x"])
CODES = np.array([0, 0, 1, 1, 1, -1])
RANKED = {"u": ["m1", "m2", "m3", "x", "f1", "new", "f2"], "v": ["f1", "f2", "m1"]}


def lists() -> Recommendations:
    rows = [(user, item) for user, ranked in RANKED.items() for item in ranked]
    return Recommendations.from_frame({"user": [u for u, _ in rows], "item": [i for _, i in rows]})


def shown(found: Recommendations) -> dict[str, list[str]]:
    table = found.to_lists()
    return dict(zip(table["user"].to_list(), table["items"].to_list(), strict=True))


def histories() -> Interactions:
    return Interactions.from_frame(
        {"user": ["u", "u", "u", "u", "w"], "item": ["f1", "m1", "m2", "m3", "x"]}
    )


def test_codes_of_unknown_items_and_ended_lists() -> None:
    found = identity_codes(lists(), ITEMS, CODES)
    assert found.tolist() == [[1, 1, 1, -1, 0, -1, 0], [0, 0, 1, -2, -2, -2, -2]]
    with pytest.raises(PlanError, match="5 codes for 6 items"):
        identity_codes(lists(), ITEMS, CODES[:5])


def test_profile_mixes_count_items_of_known_identity() -> None:
    found = profile_mix(histories(), ["u", "w", "nobody"], ITEMS, CODES, 2)
    assert found[0].tolist() == [0.25, 0.75]
    assert np.isnan(found[1:]).all()


def test_equal_lists_and_what_ended_early() -> None:
    found = balance(lists(), ITEMS, CODES, [0.5, 0.5], 5)
    assert shown(found) == {"u": ["m1", "x", "f1", "m2", "new"], "v": ["f1", "m1", "f2"]}
    found = balance(lists(), ITEMS, CODES, [0.5, 0.5], 5, take="single")
    assert shown(found) == {"u": ["m1", "x", "f1", "new", "f2"], "v": ["f1", "m1"]}
    assert [(e.count, e.of) for e in found.exclusions] == [(1, 2)]


def test_scores_follow_their_items() -> None:
    scored = Recommendations(
        np.array(["u"]),
        np.array([[0, 1, 2]], dtype=np.int32),
        Vocabulary(["f1", "f2", "m1"]),
        np.array([[3.0, 2.0, 1.0]], dtype=np.float32),
    )
    found = balance(scored, ITEMS, CODES, [0.5, 0.5])
    assert found.scores is not None
    assert found.scores.tolist() == [[3.0, 1.0, 2.0]]


def test_a_recorded_recommender_is_wrapped_like_any_other() -> None:
    inner = RecordedRecommendations.from_frame(lists())
    system = BalancedReranker(inner, ITEMS, CODES, ["f", "m"], candidates=2)
    assert shown(system.recommend(["u", "v"], 4))["u"] == ["m1", "x", "f1", "m2"]
    aware = BalancedReranker(
        inner, ITEMS, CODES, ["f", "m"], {"f": 0.5, "m": 0.5}, exposure=True, candidates=2
    )
    assert shown(aware.recommend(["u"], 4))["u"] == ["m1", "x", "f1", "new"]


def test_profiles_as_targets_and_users_without_one() -> None:
    inner = RecordedRecommendations.from_frame(lists())
    system = BalancedReranker(inner, ITEMS, CODES, ["f", "m"], "profile", candidates=2)
    with pytest.raises(PlanError, match="needs interactions"):
        system.recommend(["u"], 4)
    data: Any = SimpleNamespace(interactions=histories())
    found = system.bind(data).recommend(["u", "v"], 4)
    # A quarter f: after three m it is f's turn at the latest; v has no history and is left alone.
    assert shown(found) == {"u": ["m1", "x", "f1", "m2"], "v": ["f1", "f2", "m1"]}
    assert any("no target mix" in e.reason and e.count == 1 for e in found.exclusions)


def test_calibration_trades_relevance_for_the_mix() -> None:
    same = calibrate_identities(lists(), ITEMS, CODES, [0.5, 0.5], 3, strength=0.0)
    assert shown(same)["u"] == ["m1", "m2", "m3"]
    moved = calibrate_identities(lists(), ITEMS, CODES, [0.5, 0.5], 4, strength=0.99)
    assert sorted(i[0] for i in shown(moved)["u"]) == ["f", "f", "m", "m"]
    left = calibrate_identities(
        lists(), ITEMS, CODES, [[np.nan, np.nan], [0.5, 0.5]], 3, strength=0.99
    )
    assert shown(left)["u"] == ["m1", "m2", "m3"]
    assert left.exclusions[0].count == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"identities": ["f"]}, "two or more"),
        ({"target": {"f": 1.0}}, "target names"),
        ({"target": "half"}, "target is 'half'"),
        ({"candidates": 0}, "candidates is 0"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], words: str) -> None:
    inner = RecordedRecommendations.from_frame(lists())
    options: dict[str, Any] = {"items": ITEMS, "codes": CODES, "identities": ["f", "m"]}
    with pytest.raises(PlanError, match=words):
        BalancedReranker(inner, **options | changes)
