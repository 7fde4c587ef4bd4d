"""Fitted models of implicit, LensKit and Surprise: their lists, unchanged.

These tests need the extra ``peers``; without it they are skipped, and say so.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

from ombud.data.dataset import Dataset
from ombud.data.interactions import Interactions
from ombud.systems.base import Recommender
from ombud.systems.own import as_system
from ombud.systems.recommenders.adapters import (
    ImplicitRecommender,
    LensKitRecommender,
    SurpriseRecommender,
)

# Their warnings are theirs.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    users, items = np.nonzero(rng.random((40, 30)) < 0.3)
    ratings = rng.integers(1, 6, len(users)).astype(float)
    return Interactions.from_arrays(users + 100, items + 500, ratings)


def check(system, data, exclude_seen_works=True):
    assert isinstance(system, Recommender)
    users = data.users.ids[[3, 0, 7]].tolist()
    made = system.recommend([*users, 99999], 50)
    assert made.catalogue is data.items
    assert [(e.count, e.of) for e in made.exclusions] == [(1, 4)]
    seen = np.diff(data.matrix.indptr)[[3, 0, 7]]
    # n is larger than the catalogue: every unseen item, and nothing else.
    assert made.lengths.tolist() == [*(data.n_items - seen), 0]
    for row, code in enumerate([3, 0, 7]):
        history = set(data.matrix.indices[slice(*data.matrix.indptr[code : code + 2])].tolist())
        listed = made.items[row][made.items[row] >= 0]
        assert not history & set(listed.tolist())
        assert len(set(listed.tolist())) == len(listed)
        scores = made.scores[row, : len(listed)]
        assert (np.diff(scores) <= 1e-5).all()
    everything = system.recommend(users, 50, exclude_seen=False)
    assert everything.lengths.tolist() == [data.n_items] * 3
    return made


def test_implicit(data):
    als = pytest.importorskip("implicit.als", reason="implicit is not installed (extra peers)")
    matrix = sparse.csr_matrix(data.matrix)
    model = als.AlternatingLeastSquares(factors=8, iterations=3, random_state=1, num_threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(matrix, show_progress=False)
    made = check(ImplicitRecommender(model, data), data)
    theirs, scores = model.recommend(3, matrix[3], N=5)
    assert made.items[0, :5].tolist() == theirs.tolist()
    np.testing.assert_allclose(made.scores[0, :5], scores, rtol=1e-5)


def test_implicit_item_knn_gives_short_lists(data):
    nearest = pytest.importorskip("implicit.nearest_neighbours", reason="implicit is not installed")
    model = nearest.CosineRecommender(K=3, num_threads=1)
    model.fit(sparse.csr_matrix(data.matrix), show_progress=False)
    made = ImplicitRecommender(model, data).recommend(data.users.ids, 30)
    assert made.lengths.max() < 30
    rows, places = np.nonzero(made.items >= 0)
    seen = data.matrix[rows, made.items[rows, places]]
    assert not np.asarray(seen).any()


def test_lenskit(data, monkeypatch):
    pytest.importorskip("lenskit", reason="lenskit is not installed (extra peers)")
    from lenskit import recommend
    from lenskit.als import BiasedMFScorer
    from lenskit.data import from_interactions_df
    from lenskit.pipeline import topn_pipeline

    frame = data.to_frame().rename({"user": "user_id", "item": "item_id"}).to_pandas()
    pipeline = topn_pipeline(
        BiasedMFScorer(features=4, epochs=2), predicts_ratings=True, name="their mf"
    )
    pipeline.train(from_interactions_df(frame))
    system = LensKitRecommender(pipeline, data, "mf")
    made = check(system, data)
    theirs = recommend(pipeline, int(data.users.ids[3]), 5)
    assert data.items.take(made.items[0, :5]).tolist() == theirs.ids().tolist()
    pairs = data.to_frame().sample(20, seed=1)
    predicted = system.predict(pairs["user"].to_numpy(), pairs["item"].to_numpy())
    assert np.isfinite(predicted).all()
    assert np.corrcoef(predicted, pairs["rating"].to_numpy())[0, 1] > 0.3
    monkeypatch.setattr(type(pipeline), "train", None)  # given as it is, it is never trained
    as_it_is = as_system("mf", pipeline, None).bind(Dataset(interactions=data))
    assert (as_it_is.recommend(data.users.ids[3:4], 5).items == made.items[:1, :5]).all()


def test_surprise(data):
    surprise = pytest.importorskip("surprise", reason="scikit-surprise is not installed")
    frame = data.to_frame().to_pandas()
    table = surprise.Dataset.load_from_df(
        frame[["user", "item", "rating"]], surprise.Reader(rating_scale=(1, 5))
    )
    model = surprise.SVD(n_factors=4, n_epochs=5, random_state=1)
    model.fit(table.build_full_trainset())
    system = SurpriseRecommender(model, data)
    made = check(system, data)
    user, item = int(data.users.ids[3]), int(data.items.ids[made.items[0, 0]])
    assert made.scores[0, 0] == pytest.approx(model.predict(user, item).est)
    predicted = system.predict([user, 12345], [item, item])
    assert predicted[0] == made.scores[0, 0] and np.isfinite(predicted[1])
