"""Reachability on MovieLens: what is claimed is run, and chance does not contradict it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from ombud.data.interactions import Interactions
from ombud.probes import EditSpace, Reachability
from ombud.probes.outcomes import FrozenOutcome
from ombud.systems.recommenders import EASE, ExplicitALS, ImplicitALS, ItemKNN

pytest.importorskip("numba")
pytestmark = pytest.mark.realdata


@pytest.mark.parametrize("kind", ["explicit-als", "implicit-als", "ease", "item-knn"])
def test_claims_about_movielens_hold_when_run(realdata, kind):
    table = pl.read_csv(realdata / "movielens-small" / "ratings.csv")
    often = table.group_by("movieId").len().filter(pl.col("len") >= 15)["movieId"]
    table = table.filter(pl.col("movieId").is_in(often.implode()))
    ratings = None if kind in {"implicit-als", "ease"} else table["rating"]
    data = Interactions.from_arrays(table["userId"], table["movieId"], ratings)
    model = {
        "explicit-als": ExplicitALS(factors=16, regularization=0.1),
        "implicit-als": ImplicitALS(factors=16, alpha=10.0),
        "ease": EASE(100.0),
        "item-knn": ItemKNN(),
    }[kind].fit(data)
    rng = np.random.default_rng(2)
    own = int(np.argsort(np.diff(data.matrix.indptr))[data.n_users // 2])
    space = EditSpace.of_user(data, data.users.ids[own], budget=1)
    outcome = FrozenOutcome(model, space.history, 10, own=own)
    targets = [int(t) for t in rng.choice(data.n_items, 150, replace=False)]
    found = Reachability(k=10).of(model, space, targets, own=own)
    assert all(reach.in_list.exact for reach in found)
    reached = [r for r in found if r.reachable]
    assert reached
    for reach in reached:
        shown = outcome.after([reach.in_list.witness])[0]
        assert np.isin(reach.targets, shown.items).all()
    never = np.array([r.targets[0] for r in found if r.reachable is False])
    singles = space.singles()
    tried = [(singles.edit(int(i)),) for i in rng.choice(len(singles), 300, replace=False)]
    for shown in outcome.after(tried):
        assert not np.isin(never, shown.items).any()
