"""What every trained recommender promises."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from ombud.data.interactions import Interactions
from ombud.errors import AuditedSystemError, DataError
from ombud.registry import create
from ombud.systems.base import Recommender

pytest.importorskip("numba")

MODELS = {
    "random": ({"seed": 3}, "plays"),
    "popular": ({}, "plays"),
    "popular by damped mean": ({"by": "damped-mean"}, "ratings"),
    "svd": ({"factors": 6, "epochs": 5}, "ratings"),
    "explicit-als": ({"factors": 6, "iterations": 4}, "ratings"),
    "explicit-als exact": ({"factors": 6, "iterations": 4, "solver": "cholesky"}, "ratings"),
    "implicit-als": ({"factors": 6, "iterations": 4}, "plays"),
    "implicit-als exact": ({"factors": 6, "iterations": 4, "solver": "cholesky"}, "plays"),
    "bpr": ({"factors": 6, "epochs": 10}, "plays"),
    "item-knn": ({"neighbours": 3, "stored": 9}, "plays"),
    "item-knn on ratings": ({"neighbours": None, "stored": 9}, "ratings"),
    "item-knn lazy": ({"stored": 9, "lazy": True}, "ratings"),
    "user-knn": ({"neighbours": 5}, "plays"),
    "ease": ({"regularization": 3.0}, "plays"),
    "ease on ratings": ({"regularization": 30.0}, "ratings"),
    "user-knn on ratings": ({"neighbours": 5}, "ratings"),
}
FOLDING = [name for name in MODELS if name != "bpr"]
THREADED = [name for name in MODELS if name.split()[0] not in {"random", "popular"}]


def build(name: str, **more: object):
    return create("recommender", name.split()[0], {**MODELS[name][0], **more})


@pytest.fixture(params=list(MODELS))
def named(request):
    return request.param


def fitted(name: str, request: pytest.FixtureRequest, **more: object):
    data = request.getfixturevalue(MODELS[name][1])
    return build(name, **more).fit(data), data


def test_obeys_the_protocol(named, request):
    model, data = fitted(named, request)
    assert isinstance(model, Recommender) and model.trainable
    assert model.name == named.split()[0]
    lists = model.recommend(data.users.ids, 7)
    assert lists.items.shape == (data.n_users, 7) and lists.items.dtype == np.int32
    assert lists.catalogue is data.items


def test_lists_are_the_best_scores_without_the_seen_items(named, request):
    model, data = fitted(named, request)
    lists = model.recommend(data.users.ids, 8)
    scores = model.score(data.users.ids, data.items.ids)
    for u in range(data.n_users):
        seen = set(data.matrix.indices[data.matrix.indptr[u] : data.matrix.indptr[u + 1]].tolist())
        free = [j for j in range(data.n_items) if j not in seen and not np.isnan(scores[u, j])]
        row = [j for j in lists.items[u].tolist() if j >= 0]
        assert not seen & set(row) and len(row) == min(8, len(free))
        expected = sorted((scores[u, j] for j in free), reverse=True)[:8]
        np.testing.assert_allclose(lists.scores[u, : len(row)], expected, rtol=1e-6)
        np.testing.assert_array_equal(lists.scores[u, : len(row)], scores[u, row])


def test_seen_items_come_back_when_asked(named, request):
    model, data = fitted(named, request)
    everything = model.recommend(data.users.ids, data.n_items, exclude_seen=False)
    scores = model.score(data.users.ids, data.items.ids)
    np.testing.assert_array_equal(everything.lengths, np.isfinite(scores).sum(axis=1))


def test_a_list_does_not_depend_on_who_else_is_asked(named, request):
    model, data = fitted(named, request)
    together = model.recommend(data.users.ids, 5)
    alone = model.recommend(data.users.ids[17:18], 5)
    assert alone.items.tolist() == together.items[17:18].tolist()
    assert alone.scores.tobytes() == together.scores[17:18].tobytes()


def test_pairs_agree_with_scores(named, request):
    model, data = fitted(named, request)
    users, items = data.users.ids[[3, 3, 0, 9]], data.items.ids[[1, 2, 0, 5]]
    scores = model.score(users, items)[range(4), range(4)]
    if data.explicit:
        scores = np.clip(scores, *data.rating_scale)
    np.testing.assert_allclose(model.predict(users, items), scores, rtol=1e-5)
    assert np.isnan(model.predict([users[0], -1], [-1, items[0]])).all()


@pytest.mark.parametrize("name", THREADED)
def test_one_thread_and_two_give_the_same_bits(name, request):
    one, data = fitted(name, request, threads=1)
    two, _ = fitted(name, request, threads=2)
    a, b = (model.score(data.users.ids, data.items.ids) for model in (one, two))
    assert a.tobytes() == b.tobytes()
    a, b = (model.recommend(data.users.ids, 6) for model in (one, two))
    assert a.items.tobytes() == b.items.tobytes() and a.scores.tobytes() == b.scores.tobytes()


@pytest.mark.parametrize("name", ["random", "svd", "explicit-als", "implicit-als", "bpr"])
def test_a_seed_repeats_and_another_seed_differs(name, request):
    first, data = fitted(name, request, seed=1)
    again, _ = fitted(name, request, seed=1)
    other, _ = fitted(name, request, seed=2)
    a, b, c = (m.score(data.users.ids, data.items.ids) for m in (first, again, other))
    assert a.tobytes() == b.tobytes() and not np.array_equal(a, c)


def test_unknown_users_and_long_lists_are_short_and_counted(named, request):
    model, data = fitted(named, request)
    lists = model.recommend([int(data.users.ids[0]), -5], data.n_items + 10)
    assert lists.items.shape == (2, data.n_items + 10)
    assert (lists.items[1] == -1).all() and (lists.items[0] >= 0).any()
    assert (lists.items[0, -10:] == -1).all()
    assert [e.count for e in lists.exclusions if "not trained on" in e.reason] == [1]


def test_nothing_is_answered_before_training(named):
    model = build(named)
    for ask in (lambda: model.recommend([1], 2), lambda: model.score([1], [2])):
        with pytest.raises(AuditedSystemError, match="not trained yet; call fit"):
            ask()


def test_an_interrupted_training_leaves_the_model_as_it_was(named, request):
    data = request.getfixturevalue(MODELS[named][1])
    model = build(named)
    calls = []

    def interrupt(done: int, total: int, note: str) -> None:
        calls.append(done)
        raise KeyboardInterrupt

    try:
        model.fit(data, progress=interrupt)
    except KeyboardInterrupt:
        with pytest.raises(AuditedSystemError, match="not trained yet"):
            model.recommend([1], 2)
    else:
        assert not calls  # short trainings report nothing
    model.fit(data)
    before = model.recommend(data.users.ids, 4).items
    if calls:
        with pytest.raises(KeyboardInterrupt):
            model.fit(data, progress=interrupt)
    np.testing.assert_array_equal(model.recommend(data.users.ids, 4).items, before)


@pytest.mark.parametrize("name", ["svd", "explicit-als", "implicit-als", "bpr", "item-knn"])
def test_progress_rises_to_the_end(name, request):
    seen: list[tuple[int, int]] = []
    data = request.getfixturevalue(MODELS[name][1])
    build(name).fit(data, progress=lambda done, total, note: seen.append((done, total)))
    done = [d for d, _ in seen]
    assert done == sorted(done) and seen[-1][0] == seen[-1][1] > 0


def test_users_without_history_and_items_without_users(named, request):
    data = request.getfixturevalue(MODELS[named][1])
    rows = np.repeat(np.arange(data.n_users), np.diff(data.matrix.indptr))
    thinned = data.select((rows != 4) & (data.matrix.indices != 11))
    model = build(named).fit(thinned)
    lists = model.recommend(data.users.ids, 6)
    kind = named.split()[0]
    if kind not in {"random"} and named != "popular":
        assert 11 not in lists.items
    if kind in {"ease", "implicit-als", "item-knn", "user-knn"}:
        assert lists.lengths[4] == 0
        assert [e.count for e in lists.exclusions if "nothing to go by" in e.reason] == [1]
    else:
        assert lists.lengths[4] == 6
    assert np.isfinite(lists.scores[lists.items >= 0]).all()


@pytest.mark.parametrize("shape", [(1, 6), (6, 1)])
def test_a_single_user_or_item(named, shape):
    users, items = np.divmod(np.arange(6), shape[1])
    ratings = None if MODELS[named][1] == "plays" else [1.0, 2, 3, 4, 5, 3]
    data = Interactions.from_arrays(users, items, ratings)
    more = {"factors": 1} if "factors" in MODELS[named][0] else {}
    model = build(named, **more).fit(data)
    lists = model.recommend(data.users.ids, 3)
    assert (lists.items == -1).all()  # everyone has everything
    again = model.recommend(data.users.ids, 3, exclude_seen=False)
    assert again.items.shape == (data.n_users, 3)


@pytest.mark.parametrize("name", ["svd", "explicit-als", "implicit-als", "bpr"])
def test_more_factors_than_the_data_can_tell_apart(name, request):
    data = request.getfixturevalue(MODELS[name][1])
    with pytest.raises(DataError, match="factors is 46, but 60 users and 45 items"):
        build(name, factors=46).fit(data)


def test_rating_models_refuse_data_without_ratings(plays):
    for name, arguments in (("svd", {}), ("explicit-als", {}), ("popular", {"by": "mean"})):
        with pytest.raises(DataError, match="needs ratings"):
            create("recommender", name, arguments).fit(plays)


@pytest.mark.parametrize("name", ["user-knn", "item-knn", "implicit-als"])
def test_ratings_can_be_left_aside(name, ratings):
    arguments = {"factors": 6} if name == "implicit-als" else {}
    without = create("recommender", name, arguments).fit(ratings.without_ratings())
    ignoring = create("recommender", name, {**arguments, "ignore_ratings": True}).fit(ratings)
    using = create("recommender", name, arguments).fit(ratings)
    users = ratings.users.ids
    expected = without.recommend(users, 9)
    np.testing.assert_array_equal(ignoring.recommend(users, 9).items, expected.items)
    assert (using.recommend(users, 9).items != expected.items).any()
    # A new history may come with ratings; they are left aside too.
    rated = ignoring.recommend_for(ratings.matrix, 9)
    np.testing.assert_array_equal(
        rated.items, without.recommend_for(without.interactions.matrix, 9).items
    )
    assert ratings.matrix.data.max() > 1
    assert not ignoring.predicts_ratings


def test_a_training_that_runs_away_is_said(ratings):
    with pytest.raises(AuditedSystemError, match="diverged.*lower learning_rate"):
        create("recommender", "svd", {"factors": 6, "learning_rate": 50.0}).fit(ratings)


def test_all_faults_of_the_arguments_in_one_message():
    from ombud.systems.recommenders import SVD, ImplicitALS, ItemKNN, Popular

    with pytest.raises(ValueError, match=r"factors is 0.*epochs is 0.*strata is 300"):
        SVD(factors=0, epochs=0, strata=300)
    with pytest.raises(ValueError, match=r"alpha is -1.*regularization is 0"):
        ImplicitALS(alpha=-1, regularization=0)
    with pytest.raises(ValueError, match=r"neighbours is 2; it must be at least min_neighbours"):
        ItemKNN(neighbours=2, min_neighbours=3)
    with pytest.raises(ValueError, match="by is 'fame'"):
        Popular(by="fame")
    with pytest.raises(ValueError, match="n is 0"):
        Popular().fit(Interactions.from_arrays([1], [1])).recommend([1], 0)


@pytest.mark.parametrize("name", FOLDING)
def test_histories_are_checked_and_an_empty_one_is_allowed(name, request):
    model, data = fitted(name, request)
    with pytest.raises(DataError, match="3 columns; the catalogue has 45"):
        model.recommend_for(sparse.csr_array(np.ones((1, 3))), 2)
    if data.explicit:
        with pytest.raises(DataError, match="outside the scale 0.5 to 5"):
            model.recommend_for(sparse.csr_array(np.full((1, 45), 9.0)), 2)
    empty = model.recommend_for(sparse.csr_array((2, 45), dtype=np.float32), 3)
    assert empty.items.shape == (2, 3)


def test_importing_the_package_does_not_import_numba():
    code = "import sys, ombud.systems.recommenders as r; r.SVD(); print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_kernels_compile_where_no_cache_can_be_written():
    code = (
        "import numba.core.caching as c\n"
        "c.CacheImpl._locator_classes = []\n"
        "import numpy as np\n"
        "from ombud.systems.recommenders.kernels import topn\n"
        "s = np.ones((1, 2), np.float32)\n"
        "topn.mask_seen(s, np.zeros(1, np.int32), np.array([0, 1], np.int32), "
        "np.array([1], np.int32))\n"
        "print(s.tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[[1.0, -inf]]"
