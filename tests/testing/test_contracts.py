"""The contract suites on our own components, and on components that break the rules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import pytest

from ombud.data import Dataset, Decisions, Outcome, Recommendations, Texts
from ombud.errors import DataError
from ombud.metrics import HistoryShare, LabelShare, Metric, Outputs, Rows, ShareGap
from ombud.stats import Mean
from ombud.systems import Moderator, Recommender, RecordedDecisions, RecordedRecommendations
from ombud.systems.moderators.keyword import KeywordModerator
from ombud.systems.recommenders import Popular, Random
from ombud.testing import MetricContract, ModeratorContract, RecommenderContract
from ombud.worlds import NeutralRecommender, PlantedModerator, PlantedRecommender, World


class TestNeutral(RecommenderContract):
    def make(self, world: World) -> Recommender:
        return NeutralRecommender(world)


class TestPlanted(RecommenderContract):
    def make(self, world: World) -> Recommender:
        return PlantedRecommender(world, "violence", 1.5)


class TestPopular(RecommenderContract):
    def make(self, world: World) -> Recommender:
        return Popular().fit(world.interactions)


class TestRandom(RecommenderContract):
    def make(self, world: World) -> Recommender:
        return Random(seed=3).fit(world.interactions)


class TestRecordedLists(RecommenderContract):
    excludes_seen = False

    def make(self, world: World) -> Recommender:
        lists = NeutralRecommender(world).recommend(world.interactions.users.ids, 10)
        return RecordedRecommendations.from_frame(lists.to_frame())


class TestPlantedModerator(ModeratorContract):
    def make(self, world: World) -> Moderator:
        return PlantedModerator(world, suppress={"twins": 2}, error_rate=0.1, refusal_rate=0.1)


class TestRecordedDecisions(ModeratorContract):
    def make(self, world: World) -> Moderator:
        past = PlantedModerator(world).moderate(world.texts)
        return RecordedDecisions.from_frame(past.to_frame())

    def test_odd_texts_get_an_outcome_too(self) -> None:
        """A record of other texts altogether is refused; of some of them, it has outcomes."""
        with pytest.raises(DataError, match="none of its 60 ids is that of a text"):
            super().test_odd_texts_get_an_outcome_too()


class TestKeyword(ModeratorContract):
    def make(self, world: World) -> Moderator:
        return KeywordModerator(terms=["placeholder"])


class TestShareGap(MetricContract):
    def make(self) -> Metric:
        return ShareGap(k=5, unknown="no")


class TestLabelShare(MetricContract):
    def make(self) -> Metric:
        return LabelShare()


class TestHistoryShare(MetricContract):
    def make(self) -> Metric:
        return HistoryShare()


class _Broken(Recommender):
    """A neutral recommender with one fault."""

    def __init__(self, world: World, fault: str) -> None:
        self.inner, self.fault, self.calls = NeutralRecommender(world), fault, 0
        self.name = "" if fault == "no name" else "broken"

    def recommend(self, users: Any, n: int, exclude_seen: bool = True) -> Recommendations:
        self.calls += 1
        if self.fault == "error for the unknown":
            self.inner.world.interactions.users.ids.tolist().index(users[0])
        if self.fault == "seen items":
            exclude_seen = False
        if self.fault == "too long":
            n += 1
        found = self.inner.recommend(users, n, exclude_seen)
        items = found.items.copy()
        if self.fault == "twice":
            items[:, 1] = items[:, 0]
        if self.fault == "holes":
            items[:, 1] = -1
        if self.fault == "moody":
            items = np.roll(items, self.calls, axis=1)
        if self.fault == "by place":
            items = items[:1].repeat(len(items), axis=0)
        if self.fault == "rising scores":
            return replace(found, scores=np.tile(np.arange(items.shape[1], dtype=np.float32),
                                                 (len(items), 1)))  # fmt: skip
        if self.fault == "nothing":
            items[:] = -1
        return replace(found, items=items)


@pytest.mark.parametrize(
    ("fault", "test"),
    [
        ("no name", "test_it_is_a_recommender_with_a_name"),
        ("nothing", "test_it_gives_somebody_something"),
        ("seen items", "test_seen_items_are_left_out_when_asked"),
        ("too long", "test_lists_have_at_most_n_items_none_twice"),
        ("twice", "test_lists_have_at_most_n_items_none_twice"),
        ("holes", "test_lists_have_at_most_n_items_none_twice"),
        ("moody", "test_the_same_question_gets_the_same_answer"),
        ("by place", "test_lists_are_in_the_order_of_the_users_asked"),
        ("by place", "test_a_list_does_not_depend_on_who_else_is_asked_for"),
        ("rising scores", "test_lists_are_best_first"),
        ("error for the unknown", "test_an_unknown_user_gets_an_empty_list"),
    ],
)
def test_a_broken_recommender_is_caught(fault: str, test: str) -> None:
    class Suite(RecommenderContract):
        def make(self, world: World) -> Recommender:
            return _Broken(world, fault)

    with pytest.raises((AssertionError, ValueError)):
        getattr(Suite(), test)()


class _BrokenModerator(Moderator):
    name = "broken"

    def __init__(self, fault: str) -> None:
        self.fault, self.calls = fault, 0

    def moderate(self, texts: Texts, *, progress: Any = None) -> Decisions:
        self.calls += 1
        outcomes = np.zeros(len(texts), dtype=np.int8)
        ids, scores = texts.ids, np.zeros(len(texts), dtype=np.float32)
        if self.fault == "errors only":
            outcomes[:] = Outcome.ERROR
        if self.fault == "order":
            ids = ids[::-1]
        if self.fault == "peeks":
            outcomes = (texts.truth == 1).astype(np.int8)
        if self.fault == "moody":
            outcomes[:] = self.calls % 2
        if self.fault == "infinite":
            scores[:] = np.inf
        if self.fault == "loses" and len(texts) and texts.texts[0] == "":
            ids, outcomes, scores = ids[1:], outcomes[1:], scores[1:]
        return Decisions(ids, outcomes, scores)


@pytest.mark.parametrize(
    ("fault", "test"),
    [
        ("errors only", "test_it_decides_something"),
        ("order", "test_each_text_gets_one_outcome_in_order"),
        ("peeks", "test_it_does_not_look_at_the_answer"),
        ("moody", "test_the_same_question_gets_the_same_answer"),
        ("infinite", "test_scores_are_numbers_or_absent"),
        ("loses", "test_odd_texts_get_an_outcome_too"),
    ],
)
def test_a_broken_moderator_is_caught(fault: str, test: str) -> None:
    class Suite(ModeratorContract):
        def make(self, world: World) -> Moderator:
            return _BrokenModerator(fault)

    with pytest.raises(AssertionError):
        getattr(Suite(), test)()


@dataclass(frozen=True)
class _BrokenMetric:
    """A metric that says nothing about itself."""

    fault: str = ""

    registered_name: ClassVar[str] = "share-gap"
    title: ClassVar[str] = "broken"
    of: ClassVar[Literal["recommender"]] = "recommender"
    null: ClassVar[float | None] = None
    contrast: ClassVar[Literal["difference"]] = "difference"
    statistic: ClassVar[Mean] = Mean()
    depth: ClassVar[int] = 5

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        assert isinstance(outputs, Recommendations)
        ids, values = outputs.users, outputs.lengths[:, None].astype(np.float64)
        if self.fault == "order":
            values = np.arange(len(ids), dtype=np.float64)[:, None] * outputs.items[:, :1]
        if self.fault == "twice":
            ids = np.repeat(ids[:1], len(ids))
        if self.fault == "undefined":
            values = np.full_like(values, np.nan)
        if self.fault == "moody":
            values = np.random.default_rng().random(values.shape)
        if self.fault == "no data":
            data.interactions.users  # type: ignore[union-attr] # noqa: B018
        return Rows("user", ids, {"value": values})


@pytest.mark.parametrize(
    ("fault", "test"),
    [
        ("", "test_it_says_what_it_must"),
        ("", "test_only_the_first_places_count"),
        ("", "test_a_saved_result_can_build_it"),
        ("order", "test_the_order_of_the_outputs_does_not_matter"),
        ("twice", "test_rows_are_whole"),
        ("undefined", "test_it_gives_a_number"),
        ("moody", "test_measuring_twice_gives_the_same"),
        ("no data", "test_without_data_it_says_what_is_missing"),
    ],
)
def test_a_broken_metric_is_caught(fault: str, test: str) -> None:
    class Suite(MetricContract):
        def make(self) -> Metric:
            return _BrokenMetric(fault)

    from ombud.errors import RegistryError

    with pytest.raises((AssertionError, AttributeError, RegistryError)):
        getattr(Suite(), test)()
