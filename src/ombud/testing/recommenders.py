"""What every recommender must do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ombud.data.recommendations import Recommendations
from ombud.systems.base import Recommender
from ombud.testing._options import check_round_trip
from ombud.worlds import World, small_world


class RecommenderContract:
    """Tests that any recommender must pass; subclass it and say how to make one.

    Attributes
    ----------
    excludes_seen
        Whether the system can leave out seen items; False for a recorded file.
    n
        The length of the lists that the tests ask for.
    """

    excludes_seen: bool = True
    n: int = 8

    def make(self, world: World) -> Recommender:
        """Return a system that is ready to answer for the users of a world."""
        raise NotImplementedError("say how the recommender is made")

    def world(self) -> World:
        """Return the world that the tests ask about: 40 users, 150 items."""
        return small_world(1, users=40, items=150, texts=20, templates=4)

    def ask(self, exclude_seen: bool = True) -> tuple[World, Recommender, Recommendations]:
        """Return a world, a system, and its lists for all users of the world."""
        world = self.world()
        system = self.make(world)
        users = world.interactions.users.ids
        return world, system, system.recommend(users, self.n, exclude_seen=exclude_seen)

    def test_it_is_a_recommender_with_a_name(self) -> None:
        """A report must be able to name it."""
        system = self.make(self.world())
        assert isinstance(system, Recommender), "its class is no ombud.systems.Recommender"
        assert isinstance(system.name, str)
        assert system.name, "its name is empty"

    def test_it_gives_somebody_something(self) -> None:
        """Without this, empty lists would pass every other test."""
        _, _, result = self.ask()
        assert result.lengths.sum() > 0, "every list is empty"

    def test_lists_are_in_the_order_of_the_users_asked(self) -> None:
        """The answer names the users as they were asked for."""
        world, system, result = self.ask()
        users = world.interactions.users.ids
        assert result.users.tolist() == users.tolist()
        backwards = system.recommend(users[::-1], self.n)
        assert backwards.users.tolist() == users[::-1].tolist()
        assert (item_ids(backwards)[::-1] == item_ids(result)).all(), (
            "a user's list depends on the order in which users are asked for"
        )

    def test_a_list_does_not_depend_on_who_else_is_asked_for(self) -> None:
        """One user alone gets the same list as among all."""
        world, system, result = self.ask()
        alone = system.recommend(world.interactions.users.ids[3:4], self.n)
        assert (item_ids(alone)[0] == item_ids(result)[3]).all()

    def test_lists_have_at_most_n_items_none_twice(self) -> None:
        """Lists may be shorter, but not longer, and have no holes."""
        _, _, result = self.ask()
        assert result.lengths.max(initial=0) <= self.n
        there = result.items >= 0
        assert (there[:, :-1] >= there[:, 1:]).all(), "a list goes on after it has ended"
        assert result.items.max(initial=-1) < len(result.catalogue), "a code outside the catalogue"
        for row, length in zip(result.items, result.lengths, strict=True):
            assert len(set(row[:length].tolist())) == length, "an item is recommended twice"

    def test_lists_are_best_first(self) -> None:
        """Scores never rise along a list, and a shorter list is the beginning of a longer one."""
        world, system, result = self.ask()
        if result.scores is not None:
            both = (result.items[:, :-1] >= 0) & (result.items[:, 1:] >= 0)
            falls = result.scores[:, :-1] >= result.scores[:, 1:]
            assert falls[both].all(), "a later place has a higher score"
        short = item_ids(system.recommend(world.interactions.users.ids, 3))
        assert (short == item_ids(result)[:, : short.shape[1]]).all()

    def test_seen_items_are_left_out_when_asked(self) -> None:
        """Items of the user's own history are not recommended."""
        if not self.excludes_seen:
            import pytest

            pytest.skip("this system says that it cannot leave out seen items")
        world, _, result = self.ask()
        codes = result.in_catalogue(world.interactions.items)
        user, index = np.nonzero(codes >= 0)
        seen = world.interactions.matrix[user, codes[user, index]]
        assert not np.asarray(seen).any(), "a seen item is recommended"

    def test_an_unknown_user_gets_an_empty_list(self) -> None:
        """Not an error, and not somebody else's list."""
        world, system, result = self.ask()
        known = world.interactions.users.ids[0]
        mixed = system.recommend(np.array(["nobody knows me", known], dtype=object), self.n)
        assert mixed.lengths[0] == 0
        assert mixed.lengths[1] == result.lengths[0]

    def test_nobody_asked_nobody_answered(self) -> None:
        """No users give no lists."""
        _, system, _ = self.ask()
        assert len(system.recommend(np.array([], dtype=object), self.n)) == 0

    def test_the_same_question_gets_the_same_answer(self) -> None:
        """Asked twice, and made twice."""
        world, system, result = self.ask()
        again = system.recommend(world.interactions.users.ids, self.n)
        assert (item_ids(again) == item_ids(result)).all(), "asked again, it answers otherwise"
        _, _, anew = self.ask()
        assert (item_ids(anew) == item_ids(result)).all(), "made again, it answers otherwise"

    def test_it_leaves_the_histories_alone(self) -> None:
        """What it was given is not changed."""
        world, before = self.world(), self.world().interactions.matrix
        system = self.make(world)
        system.recommend(world.interactions.users.ids, self.n)
        system.recommend(world.interactions.users.ids, self.n, exclude_seen=False)
        after = world.interactions.matrix
        assert np.array_equal(before.indices, after.indices)
        assert np.array_equal(before.data, after.data)

    def test_a_plan_can_build_it(self) -> None:
        """If it is registered: name and options, through JSON, give the same system."""
        check_round_trip("recommender", self.make(self.world()))


def item_ids(found: Recommendations) -> NDArray[np.object_]:
    """Return users x places: item ids, None where a list has ended."""
    flat = found.catalogue.take(found.items.ravel())
    return np.asarray(flat, dtype=object).reshape(found.items.shape)
