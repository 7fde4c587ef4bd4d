"""Lists of foreign systems: checked, cut, counted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.errors import AuditedSystemError
from ombud.systems.base import Recommender
from ombud.systems.recommenders.adapters import CallableRecommender
from ombud.systems.recommenders.adapters.answers import as_answer, gather


@pytest.mark.parametrize(
    ("items", "scores", "words"),
    [
        ("abc", None, "something else"),
        ({"a": 1}, None, "something else"),
        ([1, None], None, "neither a whole number nor text"),
        ([1, True], None, "neither a whole number nor text"),
        ([1.5], None, "neither a whole number nor text"),
        ([1, "a"], None, "two types"),
        ([3, 1, 3], None, "more than once"),
        ([2**70], None, "beyond 64 bits"),
        ([1, 2], [0.5], "one number for each"),
        ([1, 2], 0.5, "one number for each"),
        ([1], [float("nan")], "finite"),
        ([1], ["high"], "finite"),
    ],
)
def test_faults_of_a_list(items, scores, words):
    assert words in as_answer(items, scores).fault


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 99), max_size=6, unique=True), min_size=1, max_size=8))
def test_lists_come_back_as_they_were(lists):
    users = np.arange(len(lists))
    made = gather("s", users, [as_answer(items, [0.5] * len(items)) for items in lists], 6)
    for row, items in enumerate(lists):
        assert made.catalogue.take(made.items[row])[: len(items)].tolist() == items
        assert (made.items[row, len(items) :] == -1).all()
    assert made.exclusions == ()


def test_function_as_recommender():
    system = CallableRecommender(
        function=lambda users, n: [None if u == 3 else np.arange(u, u + n) for u in users],
        name="steps",
        batch=2,
    )
    assert isinstance(system, Recommender)
    made = system.recommend([1, 2, 3, 4, 5], 2)
    assert made.to_frame()["item"].to_list() == [1, 2, 2, 3, 4, 5, 5, 6]
    assert [(e.count, e.of) for e in made.exclusions] == [(1, 5)]
    assert made.scores is None


def test_too_long_lists_are_cut_and_counted():
    made = CallableRecommender(function=lambda users, n: [["a", "b", "c"]] * 2).recommend([1, 2], 2)
    assert made.items.shape == (2, 2)
    assert [(e.what, e.count) for e in made.exclusions] == [("places", 2)]


def test_faulty_lists_are_an_error_that_names_the_user_or_counted():
    def function(users, n):
        return [["a", "a"], ["a"], "b", ["c", "c"]]

    with pytest.raises(AuditedSystemError) as caught:
        CallableRecommender(function=function, name="mine").recommend(["u", "v", "w", "x"], 2)
    words = str(caught.value)
    assert "user 'u' and 1 more: a list that holds an item more than once ('a')" in words
    assert "user 'w'" in words and "faults='exclude'" in words
    kept = CallableRecommender(function=function, faults="exclude")
    made = kept.recommend(["u", "v", "w", "x"], 2)
    assert made.lengths.tolist() == [0, 1, 0, 0]
    assert sorted(e.count for e in made.exclusions) == [1, 2]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([[1]], "returned 1 lists; one for each of 2"),
        ("ab", "returned a str"),
        (None, "returned a NoneType"),
        ([[1], ["a"]], "text in the list of user 8 and whole numbers in that of user 7"),
    ],
)
def test_answers_of_the_wrong_shape(answer, words):
    with pytest.raises(AuditedSystemError, match=words):
        CallableRecommender(function=lambda users, n: answer).recommend([7, 8], 3)


def test_no_list_at_all():
    made = CallableRecommender(function=lambda users, n: [[], None]).recommend([7, 8], 3)
    assert made.lengths.tolist() == [0, 0] and len(made.catalogue) == 0
