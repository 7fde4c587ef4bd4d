"""Write what the peers answer on a small generated set, for `test_reference.py`.

Run it in an environment that has implicit 0.7.3, LensKit 2025.8.1 and scikit-surprise 1.1.5 (the
benchmarks make one, ``.bench-peers``)::

    .bench-peers/bin/python tests/reference/make_recommenders.py

Every file is a plain table: row, column, value. The data and all starting factors follow from
formulas in this file, so nothing but the peers' own answers is stored.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent / "recommenders"
USERS, ITEMS = 30, 24


def triples() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return users, items and ratings, sorted by user and item."""
    rng = np.random.default_rng(77)
    match = rng.normal(size=(USERS, 3)) @ rng.normal(size=(ITEMS, 3)).T
    there = rng.random((USERS, ITEMS)) < 1 / (1 + np.exp(1.0 - match))
    there[np.arange(USERS), np.arange(USERS) % ITEMS] = True
    users, items = np.nonzero(there)
    noise = rng.normal(0, 0.4, len(users))
    ratings = np.clip(np.rint(2 * (3 + 0.5 * match[users, items] + noise)) / 2, 0.5, 5)
    return users, items, ratings


def write(name: str, matrix: np.ndarray) -> None:
    """Write a matrix as a table; what is not a number is left out."""
    lines = ["row,column,value"]
    for row, column in np.argwhere(np.isfinite(matrix)):
        lines.append(f"{row},{column},{matrix[row, column]:.7g}")
    HERE.mkdir(exist_ok=True)
    (HERE / f"{name}.csv").write_text("\n".join(lines) + "\n")


def surprise_svd() -> None:
    import pandas as pd
    from surprise import SVD, Dataset, Reader

    users, items, ratings = triples()
    frame = pd.DataFrame({"u": users, "i": items, "r": ratings})
    train = Dataset.load_from_df(frame, Reader(rating_scale=(0.5, 5))).build_full_trainset()
    model = SVD(n_factors=5, n_epochs=12, lr_all=0.02, reg_all=0.05, random_state=3).fit(train)
    scores = np.full((USERS, ITEMS), np.nan)
    start_users, start_items = np.full((USERS, 5), np.nan), np.full((ITEMS, 5), np.nan)
    # Surprise draws the starting factors in its own order of users and items.
    rng = np.random.RandomState(3)
    pu, qi = rng.normal(0, 0.1, (train.n_users, 5)), rng.normal(0, 0.1, (train.n_items, 5))
    for u in range(train.n_users):
        start_users[train.to_raw_uid(u)] = pu[u]
        for i in range(train.n_items):
            score = train.global_mean + model.bu[u] + model.bi[i] + model.pu[u] @ model.qi[i]
            scores[train.to_raw_uid(u), train.to_raw_iid(i)] = score
    for i in range(train.n_items):
        start_items[train.to_raw_iid(i)] = qi[i]
    write("surprise_svd", scores)
    write("surprise_svd_start_users", start_users)
    write("surprise_svd_start_items", start_items)


def implicit_models() -> None:
    from implicit.cpu.als import AlternatingLeastSquares
    from implicit.nearest_neighbours import CosineRecommender
    from scipy import sparse

    users, items, ratings = triples()
    matrix = sparse.csr_matrix((np.ones(len(users), np.float32), (users, items)), (USERS, ITEMS))
    for name, cg in (("cg", True), ("cholesky", False)):
        model = AlternatingLeastSquares(
            factors=4, regularization=0.3, alpha=6.0, iterations=2, use_cg=cg, num_threads=1
        )
        rng = np.random.default_rng(8)
        model.user_factors = rng.normal(0, 0.1, (USERS, 4)).astype(np.float32)
        model.item_factors = rng.normal(0, 0.1, (ITEMS, 4)).astype(np.float32)
        model.fit(matrix, show_progress=False)
        write(f"implicit_als_{name}", model.user_factors @ model.item_factors.T)
    # Weights, not ones: equal similarities at the end of a list would be kept as it happens.
    matrix.data = ratings.astype(np.float32)
    model = CosineRecommender(K=9, num_threads=1)
    model.fit(matrix, show_progress=False)
    write("implicit_item_knn", np.asarray((matrix @ model.similarity).todense()))


def lenskit_models() -> None:
    import pandas as pd
    from lenskit.als import BiasedMFScorer
    from lenskit.basic import UserTrainingHistoryLookup
    from lenskit.data import ItemList, from_interactions_df
    from lenskit.knn import ItemKNNScorer, UserKNNScorer
    from lenskit.training import TrainingOptions

    users, items, ratings = triples()
    frame = pd.DataFrame({"user_id": users, "item_id": items, "rating": ratings})
    data = from_interactions_df(frame)
    lookup = UserTrainingHistoryLookup()
    lookup.train(data, TrainingOptions())
    models = {
        "lenskit_item_knn_explicit": ItemKNNScorer(max_nbrs=3, min_nbrs=2, save_nbrs=None),
        "lenskit_item_knn_implicit": ItemKNNScorer(max_nbrs=3, feedback="implicit"),
        "lenskit_user_knn_explicit": UserKNNScorer(max_nbrs=4, min_nbrs=2),
        "lenskit_user_knn_implicit": UserKNNScorer(max_nbrs=4, feedback="implicit"),
        "lenskit_explicit_als": BiasedMFScorer(
            embedding_size=3, epochs=400, regularization=0.2, damping=5.0
        ),
    }
    everything = ItemList(item_ids=np.arange(ITEMS))
    for name, model in models.items():
        model.train(data, TrainingOptions(rng=1))
        scores = np.full((USERS, ITEMS), np.nan)
        for user in range(USERS):
            query = lookup(user)
            if name.startswith("lenskit_user_knn"):
                query.user_items = None  # a supplied history would not be normalised
            scores[user] = model(query, everything).scores()
        write(name, scores)


if __name__ == "__main__":
    surprise_svd()
    implicit_models()
    lenskit_models()
