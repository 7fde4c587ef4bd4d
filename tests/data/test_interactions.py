"""Interactions: what goes in comes out, and what does not fit is said."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.data import Interactions
from ombud.data.ids import Vocabulary
from ombud.errors import DataError


def test_a_small_table_by_hand() -> None:
    found = Interactions.from_frame(
        {"user": ["v", "u", "u"], "item": [20, 30, 10], "rating": [4.0, 5.0, 1.0]}
    )
    assert found.users.ids.tolist() == ["u", "v"]
    assert found.items.ids.tolist() == [10, 20, 30]
    assert found.matrix.toarray().tolist() == [[1, 0, 5], [0, 4, 0]]
    assert found.matrix.indices.dtype == np.int32
    assert found.matrix.indptr.dtype == np.int32
    assert found.matrix.data.dtype == np.float32
    assert found.explicit and found.rating_scale == (1.0, 5.0)
    assert found.density == pytest.approx(3 / 6)
    assert "3 explicit, 2 users, 3 items" in repr(found)


def test_implicit_feedback_has_ones() -> None:
    found = Interactions.from_frame({"user": [1, 2], "item": [1, 1]})
    assert not found.explicit and found.rating_scale is None
    assert found.matrix.data.tolist() == [1, 1]


def test_duplicates_are_refused_with_rows() -> None:
    frame = {"user": [1, 2, 1, 1], "item": [5, 5, 5, 5], "rating": [1.0, 2.0, 3.0, 5.0]}
    with pytest.raises(DataError, match=r"again in rows 3, 4 \(2 in all\); .*duplicates='last'"):
        Interactions.from_frame(frame)


@pytest.mark.parametrize(("how", "rating"), [("last", 5.0), ("mean", 3.0), ("median", 3.0)])
def test_duplicates_are_merged_and_counted(how: str, rating: float) -> None:
    frame = {"user": [1, 2, 1, 1], "item": [5, 5, 5, 5], "rating": [1.0, 2.0, 3.0, 5.0]}
    found = Interactions.from_frame(frame, duplicates=how)  # type: ignore[arg-type]
    assert found.matrix.toarray().tolist() == [[rating], [2]]
    (left_out,) = found.exclusions
    assert (left_out.count, left_out.of) == (2, 4)


def test_the_last_by_time_wins() -> None:
    frame = {"user": [1, 1], "item": [5, 5], "rating": [1.0, 2.0], "time": [9, 3]}
    found = Interactions.from_frame(frame, duplicates="last")
    assert found.matrix.data.tolist() == [1.0]
    assert found.times is not None and found.times.tolist() == [9.0]


def test_missing_ratings_are_refused_or_counted() -> None:
    frame = pl.DataFrame({"user": [1, 2, 3], "item": [1, 1, 1], "rating": [1.0, None, np.nan]})
    with pytest.raises(DataError, match="missing in row 2"):
        Interactions.from_frame(frame)
    found = Interactions.from_frame(frame, missing="drop")
    assert len(found) == 1 and found.exclusions[0].count == 2


def test_ratings_outside_the_scale() -> None:
    with pytest.raises(DataError, match="above 5 in row 2"):
        Interactions.from_arrays([1, 2], [1, 1], [4.0, 6.0], rating_scale=(0.5, 5))


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=40, unique=True),
    st.randoms(),
)
def test_order_of_rows_does_not_matter_and_nothing_is_lost(
    pairs: list[tuple[int, int]], random: object
) -> None:
    ratings = {pair: float(1 + (pair[0] * 3 + pair[1]) % 5) for pair in pairs}
    first = Interactions.from_arrays(*map(list, zip(*pairs, strict=True)), list(ratings.values()))
    shuffled = list(pairs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    second = Interactions.from_arrays(
        *map(list, zip(*shuffled, strict=True)), [ratings[p] for p in shuffled]
    )
    assert first.to_frame().equals(second.to_frame())
    rows = {(u, i): r for u, i, r in first.to_frame().iter_rows()}
    assert rows == ratings


def test_select_keeps_users_and_items(rng: np.random.Generator) -> None:
    users, items = np.nonzero(rng.random((30, 20)) < 0.3)
    found = Interactions.from_arrays(users, items, rng.integers(1, 6, len(users)))
    keep = rng.random(len(found)) < 0.5
    kept = found.select(keep)
    rest = found.select(~keep)
    assert kept.users is found.users and kept.matrix.shape == found.matrix.shape
    assert (kept.matrix + rest.matrix != found.matrix).nnz == 0
    nobody = found.select(np.zeros(len(found), dtype=bool))
    assert len(nobody) == 0 and nobody.n_users == found.n_users


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.uint64, np.int64])
@pytest.mark.parametrize("far", [False, True])
def test_codes_of_whole_numbers_are_those_of_a_search(kind: type, far: bool) -> None:
    rng = np.random.default_rng(3)
    ends = np.iinfo(kind)
    highest = min(int(ends.max), 2**40) if far else min(int(ends.max), 120)
    own = rng.permutation(
        np.unique(rng.integers(max(int(ends.min), -100), highest, 60, dtype=kind))
    )
    asked = np.concatenate([own[::2], np.array([ends.min, ends.max], kind)])
    place = {value: code for code, value in enumerate(own.tolist())}
    expected = [place.get(value, -1) for value in asked.tolist()]
    assert Vocabulary(own).codes(asked).tolist() == expected
    assert Vocabulary(own).codes(own).tolist() == list(range(len(own)))
    encoded, codes = Vocabulary.encode(own)
    assert encoded.ids.tolist() == sorted(own.tolist())
    assert encoded.ids[codes].tolist() == own.tolist()
