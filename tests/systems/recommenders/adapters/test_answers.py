"""Lists of foreign systems: checked, cut, counted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.errors import AuditedSystemError
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


def answers_of(*lists):
    return [None if items is None else as_answer(items) for items in lists]


def test_users_without_a_list_are_counted():
    made = gather("mine", [1, 2, 3], answers_of(["a", "b"], None, []), 2)
    assert made.lengths.tolist() == [2, 0, 0]
    assert [(e.count, e.of) for e in made.exclusions] == [(1, 3)]
    none = gather("mine", [7, 8], answers_of([], None), 3)
    assert none.lengths.tolist() == [0, 0] and len(none.catalogue) == 0


def test_too_long_lists_are_cut_and_counted():
    made = gather("mine", [1, 2], answers_of(["a", "b", "c"], ["a", "b", "c"]), 2)
    assert made.items.shape == (2, 2) and made.scores is None
    assert [(e.what, e.count) for e in made.exclusions] == [("places", 2)]


def test_faulty_lists_are_an_error_that_names_the_user_or_counted():
    users, answers = ["u", "v", "w", "x"], answers_of(["a", "a"], ["a"], "b", ["c", "c"])
    with pytest.raises(AuditedSystemError) as caught:
        gather("mine", users, answers, 2)
    words = str(caught.value)
    assert "user 'u' and 1 more: a list that holds an item more than once ('a')" in words
    assert "user 'w'" in words and "faults='exclude'" in words
    made = gather("mine", users, answers, 2, "exclude")
    assert made.lengths.tolist() == [0, 1, 0, 0]
    assert sorted(e.count for e in made.exclusions) == [1, 2]


def test_lists_with_ids_of_two_types_are_refused():
    words = "text in the list of user 8 and whole numbers in that of user 7"
    with pytest.raises(AuditedSystemError, match=words):
        gather("mine", [7, 8], answers_of([1], ["a"]), 3)
