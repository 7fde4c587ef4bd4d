"""Each model beside the peer itself, on MovieLens: same scores, or the same held-out quality.

Skipped where the data or the peers are not there. The environment of the benchmarks has the peers;
ombud's own need not.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from ombud.data.interactions import Interactions

pytest.importorskip("numba")
from ombud.systems.recommenders import BPR, SVD, ExplicitALS, ImplicitALS, ItemKNN, UserKNN

pytestmark = [
    pytest.mark.realdata,
    pytest.mark.filterwarnings("ignore"),  # the peers' own warnings are not ours to fail on
]


class Split:
    """MovieLens with a tenth of each user's ratings held out; codes are the ids."""

    def __init__(self, path) -> None:
        frame = pl.read_csv(path).rename({"userId": "user", "movieId": "item"})
        frame = frame.select("user", "item", "rating")
        whole = Interactions.from_frame(frame, rating_scale=(0.5, 5.0))
        rng = np.random.default_rng(1)
        held = rng.random(len(whole)) < 0.1
        self.train = whole.select(~held)
        known = np.bincount(self.train.matrix.indices, minlength=whole.n_items) > 0
        test = whole.select(held)
        rows = np.repeat(np.arange(whole.n_users), np.diff(test.matrix.indptr))
        kept = known[test.matrix.indices]
        self.rows, self.columns = rows[kept], test.matrix.indices[kept]
        self.actual = test.matrix.data[kept]
        self.users = self.train.users.ids[self.rows]
        self.items = self.train.items.ids[self.columns]
        m = self.train.matrix
        ones = np.ones(m.nnz, np.float32)
        self.ones = sparse.csr_matrix((ones, m.indices, m.indptr), shape=m.shape)
        self.plays = Interactions(
            self.train.users, self.train.items, sparse.csr_array(self.ones), explicit=False
        )

    def rmse(self, predicted: np.ndarray) -> float:
        error = np.clip(predicted, 0.5, 5.0) - self.actual
        return float(np.sqrt(np.nanmean(error.astype(float) ** 2)))

    def recall(self, lists: np.ndarray) -> float:
        hit = (lists[self.rows] == self.columns[:, None]).any(axis=1)
        return float(hit.mean())

    def frame(self):
        import pandas as pd

        rows = np.repeat(np.arange(self.train.n_users), np.diff(self.train.matrix.indptr))
        columns = {"user_id": rows, "item_id": self.train.matrix.indices}
        return pd.DataFrame({**columns, "rating": self.train.matrix.data})


@pytest.fixture(scope="module")
def split(realdata) -> Split:
    return Split(realdata / "movielens-small" / "ratings.csv")


def test_svd_predicts_as_well_as_surprise(split):
    surprise = pytest.importorskip("surprise")
    data = surprise.Dataset.load_from_df(split.frame(), surprise.Reader(rating_scale=(0.5, 5)))
    peer = surprise.SVD(random_state=0).fit(data.build_full_trainset())
    pairs = zip(split.rows.tolist(), split.columns.tolist(), strict=True)
    theirs = split.rmse(np.array([peer.predict(u, i).est for u, i in pairs]))
    ours = [
        split.rmse(SVD(seed=seed).fit(split.train).predict(split.users, split.items))
        for seed in range(3)
    ]
    assert abs(np.mean(ours) - theirs) < 0.01


def test_implicit_als_ranks_as_well_as_implicit(split):
    als = pytest.importorskip("implicit.cpu.als")
    peer = als.AlternatingLeastSquares(
        factors=32, regularization=0.05, alpha=10.0, iterations=15, random_state=0
    )
    peer.fit(split.ones, show_progress=False)
    everyone = np.arange(split.train.n_users)
    theirs = split.recall(peer.recommend(everyone, split.ones, N=50)[0])
    model = ImplicitALS(factors=32, regularization=0.05, alpha=9.0).fit(split.plays)
    ours = split.recall(model.recommend(split.train.users.ids, 50).items)
    assert abs(ours - theirs) < 0.015


def test_bpr_ranks_as_well_as_implicit(split):
    bpr = pytest.importorskip("implicit.cpu.bpr")
    peer = bpr.BayesianPersonalizedRanking(
        factors=31, learning_rate=0.02, regularization=0.01, iterations=60, random_state=0
    )
    peer.fit(split.ones, show_progress=False)
    everyone = np.arange(split.train.n_users)
    theirs = split.recall(peer.recommend(everyone, split.ones, N=50)[0])
    model = BPR(factors=31, learning_rate=0.02, epochs=60).fit(split.plays)
    ours = split.recall(model.recommend(split.train.users.ids, 50).items)
    assert ours > theirs - 0.02


def lenskit_scores(scorer, split: Split, users: int) -> np.ndarray:
    from lenskit.basic import UserTrainingHistoryLookup
    from lenskit.data import ItemList, from_interactions_df
    from lenskit.training import TrainingOptions

    data = from_interactions_df(split.frame())
    lookup = UserTrainingHistoryLookup()
    lookup.train(data, TrainingOptions())
    scorer.train(data, TrainingOptions(rng=1))
    everything = ItemList(item_ids=np.arange(split.train.n_items))
    out = np.full((users, split.train.n_items), np.nan)
    for user in range(users):
        query = lookup(user)
        if "User" in type(scorer).__name__:
            query.user_items = None  # a supplied history would not be normalised
        out[user] = scorer(query, everything).scores()
    return out


@pytest.mark.parametrize("feedback", ["explicit", "implicit"])
@pytest.mark.parametrize("kind", ["item", "user"])
def test_neighbour_scores_are_those_of_lenskit(split, kind, feedback):
    knn = pytest.importorskip("lenskit.knn")
    if kind == "item":
        peer = knn.ItemKNNScorer(max_nbrs=20, feedback=feedback)
        model = ItemKNN(neighbours=20, stored=split.train.n_items)
    else:
        peer = knn.UserKNNScorer(max_nbrs=20, feedback=feedback)
        model = UserKNN(neighbours=20)
    data = split.train if feedback == "explicit" else split.plays
    theirs = lenskit_scores(peer, split, 25)
    ours = model.fit(data).score(data.users.ids[:25], data.items.ids)
    # Equal similarities at the end of the 20 are kept as it happens, and a similarity of next to
    # nothing lies on either side of the threshold by rounding.
    same = np.isclose(ours, theirs, rtol=1e-3, atol=1e-3, equal_nan=True)
    assert same.mean() > 0.99


def test_explicit_als_predicts_as_well_as_lenskit(split):
    als = pytest.importorskip("lenskit.als")
    peer = als.BiasedMFScorer(embedding_size=16, epochs=15, regularization=0.1)
    scores = lenskit_scores(peer, split, split.train.n_users)
    theirs = split.rmse(scores[split.rows, split.columns])
    model = ExplicitALS(factors=16, iterations=15, regularization=0.1).fit(split.train)
    assert abs(split.rmse(model.predict(split.users, split.items)) - theirs) < 0.005
