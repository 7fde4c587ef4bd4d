"""Windows cover every token, and join to one value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.text.windows import join_windows, slide


def test_hand_worked() -> None:
    spans = slide([3, 10, 0], size=4, step=3)
    assert spans.text.tolist() == [0, 1, 1, 1, 2]
    assert list(zip(spans.start.tolist(), spans.end.tolist(), strict=True)) == [
        (0, 3),
        (0, 4),
        (3, 7),
        (6, 10),
        (0, 0),
    ]
    values = [0.1, 0.2, 0.9, 0.4, 0.5]
    assert join_windows(values, spans.text, "max", 3).tolist() == [0.1, 0.9, 0.5]
    assert join_windows(values, spans.text, "mean", 3).tolist() == pytest.approx([0.1, 0.5, 0.5])
    assert join_windows(values, spans.text, "first", 3).tolist() == [0.1, 0.2, 0.5]
    rows = join_windows(np.column_stack((values, values)), spans.text, "mean", 3)
    assert rows.shape == (3, 2)


@settings(deadline=None)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=6), st.integers(1, 20), st.integers(1, 20))
def test_every_token_is_covered_and_no_window_is_too_long(
    lengths: list[int], size: int, step: int
) -> None:
    spans = slide(lengths, size, min(step, size))
    assert (spans.end - spans.start <= size).all()
    for text, length in enumerate(lengths):
        mine = spans.text == text
        covered = {
            token
            for a, b in zip(spans.start[mine], spans.end[mine], strict=True)
            for token in range(a, b)
        }
        assert covered == set(range(length))
        assert mine.sum() == 1 or length > size


def test_gaps_are_refused() -> None:
    with pytest.raises(ValueError, match="leaves gaps"):
        slide([5], size=2, step=3)
    with pytest.raises(ValueError, match="holds nothing"):
        slide([5], size=0)
