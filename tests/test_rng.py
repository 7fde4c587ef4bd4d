"""Random streams by name."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.rng import generator


def test_the_same_names_give_the_same_stream() -> None:
    assert np.array_equal(generator(3, "a", "b").random(5), generator(3, "a", "b").random(5))


@given(st.lists(st.text(max_size=5), min_size=1, max_size=3))
def test_other_names_give_other_streams(names: list[str]) -> None:
    other = [*names, "x"]
    assert generator(1, *names).integers(2**62) != generator(1, *other).integers(2**62)
    assert generator(1, *names).integers(2**62) != generator(2, *names).integers(2**62)


def test_a_joint_is_not_a_name() -> None:
    assert generator(0, "ab", "c").random() != generator(0, "a", "bc").random()


def test_negative_seeds_are_refused() -> None:
    with pytest.raises(ValueError, match="seed is -1"):
        generator(-1)
