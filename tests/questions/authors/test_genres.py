"""Genre: what is expected of items, by hand; and a slope that is all genre goes away."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from ombud.audits.analysis import Context
from ombud.data.dataset import Dataset
from ombud.data.interactions import Interactions
from ombud.data.items import Items
from ombud.data.labels import Labels
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics.engine.estimator import Settings
from ombud.questions.authors.creators import creators_of, expected_mix
from ombud.questions.authors.propagation import CreatorPropagation


def test_what_genres_let_expect_by_hand() -> None:
    # a and b are crime, b is also romance, c has no genre, d is not known.
    pairs = {"a": 3, "b": 2, "c": 1, "d": 4}
    items = [item for item, times in pairs.items() for _ in range(times)]
    users = [user for times in pairs.values() for user in range(times)]
    table = pl.DataFrame({"item": list("abcd"), "who": ["m", "f", "f", None]})
    genres = pl.DataFrame(
        {"item": ["a", "b", "b", "d"], "label": ["crime", "crime", "love", "love"]}
    )
    data = Dataset(
        Interactions.from_arrays(users, items),
        Labels.from_applied(genres, absent="no"),
        items=Items.from_frame(table),
    )
    creators = creators_of(data, "", "a test")
    assert creators.names == ("f", "m")
    found = expected_mix(creators, data, ("crime", "love"))
    overall = np.array([0.5, 0.5])  # 3 interactions with each
    crime = (np.array([1, 3]) + overall) / 5
    love = (np.array([1, 0]) + overall) / 2
    rest = (np.array([1, 0]) + overall) / 2
    np.testing.assert_allclose(found, [crime, (crime + love) / 2, rest, love])
    # Sums over known items alone.
    assert data.interactions is not None
    own = creators.in_profiles(data.interactions, [0, 3], found)
    np.testing.assert_allclose(own, [found[0] + found[1] + found[2], [0, 0]])
    rows = [("0", "b", 1), ("0", "d", 2), ("0", "zz", 3), ("0", "a", 4), ("1", "d", 1)]
    lists = Recommendations.from_frame(
        pl.DataFrame(rows, schema=["user", "item", "rank"], orient="row")
    )
    made = creators.mix_in_lists(lists, 3, found)
    np.testing.assert_allclose(made, [found[1], [0, 0]])
    with pytest.raises(PlanError, match="crimes, which the labels do not have"):
        expected_mix(creators, data, ("crimes",))
    with pytest.raises(PlanError, match="no labels"):
        expected_mix(creators, replace(data, labels=None), ("crime",))


def test_a_slope_that_is_all_genre_is_gone_when_the_mix_is_held_fixed() -> None:
    rng = np.random.default_rng(4)
    users, items = 150, 300
    genre = np.arange(items) % 2
    woman = rng.random(items) < np.where(genre == 1, 0.85, 0.15)
    rows, lists = [], []
    for user, taste in enumerate(rng.beta(0.7, 0.7, users)):
        weight = np.where(genre == 1, taste, 1 - taste)
        picked = rng.choice(items, 60, replace=False, p=weight / weight.sum())
        rows += [(user, item) for item in picked[:30]]
        lists += [(user, item, rank + 1) for rank, item in enumerate(picked[30:])]
    table = pl.DataFrame({"item": np.arange(items), "who": np.where(woman, "f", "m")})
    applied = pl.DataFrame({"item": np.flatnonzero(genre), "label": ["love"] * int(genre.sum())})
    data = Dataset(
        Interactions.from_arrays(*map(list, zip(*rows, strict=True))),
        Labels.from_applied(applied, absent="no"),
        items=Items.from_frame(table),
    )
    frame = pl.DataFrame(lists, schema=["user", "item", "rank"], orient="row")
    asked = CreatorPropagation(k=30, genres=("love",))
    said: list[tuple[int, int, str]] = []
    outputs = {"s": Recommendations.from_frame(frame)}
    found = asked.analyze(
        Context(data, outputs, Settings(), progress=lambda *one: said.append(one))
    )
    assert said == [
        (0, 3, "fitting all items"),
        (1, 3, "fitting genre mix held fixed"),
        (2, 3, "fitting love"),
    ]
    (plain,) = [e for e in found.estimates if e.key == "propagation/slope"]
    (fixed,) = [e for e in found.estimates if e.key == "propagation-mix/slope"]
    assert plain.interval is not None and plain.interval[0] > 0.6
    # Beyond genre users hardly differ: no slope, or one that may be 0.
    assert fixed.interval is None or fixed.interval[0] < 0.1
    fits = found.tables["creator-propagation-fits"]
    assert "genre mix held fixed" in fits["within"].to_list()
    assert "genre mix held fixed" not in found.tables["creator-propagation-curves"]["within"]
    # Two known items of a genre are enough for a profile within it.
    read, listed = (
        np.bincount([row[0] for row in some if genre[row[1]]], minlength=users)
        for some in (rows, lists)
    )
    assert np.count_nonzero((read == 2) & (listed > 0))
    within = {e.n for e in found.estimates if e.key == "propagation-genre/slope"}
    assert within == {np.count_nonzero((read >= 2) & (listed > 0))}
