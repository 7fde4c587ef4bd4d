"""What every moderator must do."""

from __future__ import annotations

import numpy as np

from ombud.data.decisions import Decisions, Outcome
from ombud.data.texts import Texts
from ombud.systems.base import Moderator
from ombud.testing._options import check_round_trip
from ombud.worlds import World, small_world

_ODD = (
    "",
    " ",
    "a" * 20_000,
    "naïve 文字 🙂",
    "\u202eright to left\u202c",
    "</script><b>",
    "0",
    "\x00",
)


class ModeratorContract:
    """Tests that any moderator must pass; subclass it and say how to make one.

    Attributes
    ----------
    repeatable
        Whether the same text always gets the same outcome; False for a stochastic service.
    """

    repeatable: bool = True

    def make(self, world: World) -> Moderator:
        """Return a system that is ready to decide."""
        raise NotImplementedError("say how the moderator is made")

    def world(self) -> World:
        """Return the world whose texts the tests use: 60 texts."""
        return small_world(1, users=5, texts=60, templates=12)

    def ask(self) -> tuple[Texts, Moderator, Decisions]:
        """Return texts, a system, and its outcomes."""
        world = self.world()
        system = self.make(world)
        return world.texts, system, system.moderate(world.texts)

    def test_it_is_a_moderator_with_a_name(self) -> None:
        """A report must be able to name it."""
        system = self.make(self.world())
        assert isinstance(system, Moderator), "its class is no ombud.systems.Moderator"
        assert isinstance(system.name, str)
        assert system.name, "its name is empty"

    def test_it_decides_something(self) -> None:
        """Without this, errors alone would pass every other test."""
        _, _, result = self.ask()
        assert result.answered.any(), "no text got a decision or a score"

    def test_each_text_gets_one_outcome_in_order(self) -> None:
        """Ids come back as they were given."""
        texts, _, result = self.ask()
        assert result.ids.tolist() == texts.ids.tolist()
        assert np.isin(result.outcomes, [int(outcome) for outcome in Outcome]).all()

    def test_an_outcome_does_not_depend_on_the_order(self) -> None:
        """The texts backwards get the outcomes backwards."""
        self._needs_repeatable()
        texts, system, result = self.ask()
        backwards = system.moderate(part_of(texts, np.arange(len(texts))[::-1]))
        assert backwards.ids.tolist() == texts.ids[::-1].tolist()
        assert backwards.outcomes[::-1].tolist() == result.outcomes.tolist()

    def test_scores_are_numbers_or_absent(self) -> None:
        """A score is finite or NaN; category scores have one column for each category."""
        _, _, result = self.ask()
        assert result.scores.shape == result.outcomes.shape
        assert not np.isinf(result.scores).any()
        if result.category_scores is not None:
            assert result.category_scores.shape == (len(result), len(result.categories))
            assert not np.isinf(result.category_scores).any()

    def test_it_does_not_look_at_the_answer(self) -> None:
        """Outcomes do not depend on the labels, clusters and families that came with the texts."""
        self._needs_repeatable()
        texts, system, result = self.ask()
        bare = Texts(texts.ids, texts.texts, np.full(len(texts), -1, dtype=np.int8))
        assert system.moderate(bare).outcomes.tolist() == result.outcomes.tolist()

    def test_the_same_question_gets_the_same_answer(self) -> None:
        """Asked twice, and made twice."""
        self._needs_repeatable()
        texts, system, result = self.ask()
        again, anew = system.moderate(texts), self.ask()[2]
        for other in (again, anew):
            assert other.outcomes.tolist() == result.outcomes.tolist()
            assert np.array_equal(other.scores, result.scores, equal_nan=True)

    def test_odd_texts_get_an_outcome_too(self) -> None:
        """Empty, long, foreign and hostile texts are decided, refused or an error: never lost."""
        world = self.world()
        ids = np.array([f"odd-{i}" for i in range(len(_ODD))], dtype=object)
        odd = Texts(ids, np.array(_ODD, dtype=object), np.full(len(_ODD), -1, dtype=np.int8))
        result = self.make(world).moderate(odd)
        assert result.ids.tolist() == ids.tolist()
        assert np.isin(result.outcomes, [int(outcome) for outcome in Outcome]).all()

    def test_no_texts_no_outcomes(self) -> None:
        """Nothing asked, nothing answered."""
        texts, system, _ = self.ask()
        assert len(system.moderate(part_of(texts, np.arange(0)))) == 0

    def test_it_leaves_the_texts_alone(self) -> None:
        """What it was given is not changed."""
        texts, _, _ = self.ask()
        before = self.world().texts
        assert texts.texts.tolist() == before.texts.tolist()
        assert texts.ids.tolist() == before.ids.tolist()

    def test_a_plan_can_build_it(self) -> None:
        """If it is registered: name and options, through JSON, give the same system."""
        check_round_trip("moderator", self.make(self.world()))

    def _needs_repeatable(self) -> None:
        if not self.repeatable:
            import pytest

            pytest.skip("this system says that its answers vary")


def part_of(texts: Texts, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Texts:
    """Return some texts, in the order given."""
    return Texts(texts.ids[rows], texts.texts[rows], texts.truth[rows])
