"""People with tastes, long-tailed activity, and attributes that are sometimes unknown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.rng import generator

ATTRIBUTES: dict[str, tuple[tuple[str, ...], tuple[float, ...]]] = {
    "age": (("18-24", "25-34", "35-49", "50+"), (0.25, 0.35, 0.2, 0.1)),
    "gender": (("man", "non-binary", "woman"), (0.42, 0.06, 0.42)),
}
"""For each attribute its values and their shares; what is missing from 1 is unknown."""


@dataclass(frozen=True, eq=False)
class Population:
    """Users and everything that is true of them."""

    users: Vocabulary  # The user ids
    # Users x dimensions; what a user likes is the product with an item's factors.
    tastes: NDArray[np.float32]
    activity: NDArray[np.int64]  # How many items each user met
    # Age band and gender; a user whose value is unknown is in no group of that attribute.
    groups: Grouping


def draw_population(
    users: Vocabulary,
    factors: int,
    mean_history: float,
    history_range: tuple[int, int],
    seed: int,
    *stream: str,
) -> Population:
    """Draw people; groups differ in taste, so their histories differ too.

    Parameters
    ----------
    users
        The user ids.
    factors
        Dimensions of taste.
    mean_history, history_range
        The mean length of a history, before it is cut to the range.
    seed, stream
        The random stream.
    """
    count = len(users)
    rng = generator(seed, *stream, "population")
    tastes = rng.standard_normal((count, factors), dtype=np.float32)
    # A lognormal with sigma 0.9 has the mean exp(mu + 0.405).
    lengths = np.exp(rng.normal(np.log(mean_history) - 0.405, 0.9, count))
    activity = np.clip(np.rint(lengths), *history_range).astype(np.int64)
    names: list[str] = []
    attributes: list[str] = []
    members: list[NDArray[np.bool_]] = []
    for attribute, (values, shares) in ATTRIBUTES.items():
        drawn = np.searchsorted(np.cumsum(shares), rng.random(count))
        shift = rng.normal(0, 0.4, (len(values) + 1, factors)).astype(np.float32)
        tastes += shift[drawn]
        for code, value in enumerate(values):
            names.append(f"{attribute}={value}")
            attributes.append(attribute)
            members.append(drawn == code)
    groups = Grouping(users, tuple(names), np.stack(members, axis=1), tuple(attributes))
    return Population(users, tastes, activity, groups)
