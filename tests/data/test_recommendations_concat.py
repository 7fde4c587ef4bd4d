"""Answers of several questions as one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ombud.data.exclusions import Exclusion
from ombud.data.ids import Vocabulary
from ombud.data.recommendations import Recommendations


def part(users, items, n=2, scores=False, exclusions=()):
    catalogue = Vocabulary(pa.array([], pa.int64()))
    codes = np.full((len(users), n), -1, np.int32)
    if any(items):
        catalogue, flat = Vocabulary.encode([i for row in items for i in row])
        codes[np.arange(n) < np.array([len(row) for row in items])[:, None]] = flat
    values = np.where(codes >= 0, codes, np.nan).astype("f4") if scores else None
    return Recommendations(np.array(users), codes, catalogue, values, exclusions)


def lists(made):
    return {
        user: made.catalogue.take(row[row >= 0]).tolist()
        for user, row in zip(made.users.tolist(), made.items, strict=True)
    }


def test_a_part_without_any_item_fits_to_any_other():
    empty, filled = part([3], [[]]), part([1, 2], [["b", "a"], ["a"]])
    expected = {1: ["b", "a"], 2: ["a"], 3: []}
    assert lists(Recommendations.concat([filled, empty])) == expected
    assert lists(Recommendations.concat([empty, filled])) == expected
    assert lists(Recommendations.concat([empty, part([4], [[]])])) == {3: [], 4: []}


def test_scores_are_kept_when_every_list_has_them():
    one, two, empty = (
        part([1], [[5, 6]], scores=True),
        part([2], [[7]], scores=True),
        part([3], [[]]),
    )
    made = Recommendations.concat([one, empty, two])
    assert made.scores is not None
    np.testing.assert_array_equal(made.scores[0], [0, 1])
    np.testing.assert_array_equal(np.isnan(made.scores[1:]), [[True, True], [False, True]])
    assert Recommendations.concat([one, part([2], [[7]])]).scores is None


def test_exclusions_are_added_up():
    why = ("lists", "users")
    one = part([1], [[5]], exclusions=(Exclusion(*why, 1, "unknown", 10),))
    two = part([2], [[5]], exclusions=(Exclusion(*why, 2, "unknown", 5), Exclusion(*why, 1, "bad")))
    made = Recommendations.concat([one, two])
    assert made.exclusions == (Exclusion(*why, 3, "unknown", 15), Exclusion(*why, 1, "bad"))
