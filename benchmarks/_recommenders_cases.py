"""One case of the recommender benchmark, run alone in a fresh process.

``python _recommenders_cases.py SIDE CASE SIZE USERS THREADS`` prints one line of JSON. SIDE is
``ombud`` or ``peer``; the peer's side runs in the peers' own environment and imports no ombud.
CPU time is that of the process and its children, compilation and reading of data left out.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from _recommenders_data import Data, load

N = 100
ITERATIONS = 15
EPOCHS = 20
SHORT = 10  # iterations of the factors whose lists are timed; enough for both to settle
Answer = tuple[np.ndarray, np.ndarray]


def cpu_seconds() -> float:
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        total += usage.ru_utime + usage.ru_stime
    return total


def peak_mib() -> float:
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(w).ru_maxrss for w in who) / 1024


class Timer:
    """CPU and wall seconds by name, and the peak of memory up to the last of them."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.peak = 0.0

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        gc.collect()
        wall, cpu = time.perf_counter(), cpu_seconds()
        yield
        self.seconds[f"{name}_cpu"] = cpu_seconds() - cpu
        self.seconds[f"{name}_wall"] = time.perf_counter() - wall
        self.peak = peak_mib()  # so far, that is without the measuring of quality


def rmse(predicted: np.ndarray, data: Data) -> float:
    """Return the error on held-out ratings of items that the training data have."""
    known = np.zeros(data.size.items, bool)
    known[data.indices] = True
    kept = known[data.test_items]
    error = np.clip(predicted[kept], 0.5, 5.0) - data.test_ratings[kept]
    return float(np.sqrt(np.mean(error.astype(np.float64) ** 2)))


def factor_rmse(
    data: Data, mean: float, user_bias: Any, item_bias: Any, users: Any, items: Any
) -> float:
    predicted = np.empty(len(data.test_users), np.float32)
    for start in range(0, len(predicted), 100_000):
        part = slice(start, start + 100_000)
        u, i = data.test_users[part], data.test_items[part]
        product = np.einsum("kf,kf->k", users[u], items[i])
        predicted[part] = mean + user_bias[u] + item_bias[i] + product
    return rmse(predicted, data)


def recall(data: Data, users: np.ndarray, lists: np.ndarray) -> float:
    """Return the mean share of a user's held-out items that are among the first N."""
    starts = np.searchsorted(data.test_users, np.arange(data.size.users + 1))
    shares = []
    for user, row in zip(users.tolist(), lists, strict=True):
        held = data.test_items[starts[user] : starts[user + 1]]
        if len(held):
            shares.append(np.isin(held, row).mean())
    return float(np.mean(shares))


# ------------------------------------------------------------------------------------ ombud


def ombud_data(data: Data, explicit: bool) -> Any:
    from scipy import sparse

    from ombud.data.ids import Vocabulary
    from ombud.data.interactions import Interactions

    size = data.size
    users, items = (Vocabulary(np.arange(count)) for count in (size.users, size.items))
    values = data.ratings if explicit else np.ones(len(data.indices), np.float32)
    matrix = sparse.csr_array(
        (values, data.indices, data.indptr), shape=(size.users, size.items), copy=False
    )
    return Interactions(users, items, matrix, explicit, (0.5, 5.0) if explicit else None)


def ombud_model(case: str, threads: int) -> tuple[Any, bool]:
    from ombud.systems.recommenders import BPR, SVD, ExplicitALS, ImplicitALS, ItemKNN, UserKNN

    als = {"factors": 64, "iterations": ITERATIONS, "regularization": 0.05, "threads": threads}
    models: dict[str, tuple[Any, bool]] = {
        "svd": (SVD(factors=100, epochs=EPOCHS, threads=threads), True),
        "ials": (ImplicitALS(alpha=39.0, **als), False),
        "eals": (ExplicitALS(**als), True),
        "bpr": (BPR(factors=63, epochs=EPOCHS, threads=threads), False),
        "itemknn_fit": (ItemKNN(neighbours=None, stored=100, threads=threads), False),
        "itemknn_rec": (ItemKNN(neighbours=20, stored=100, threads=threads), False),
        "userknn_rec": (UserKNN(neighbours=20, threads=threads), False),
        "topn": (ImplicitALS(**{**als, "iterations": SHORT, "solver": "cholesky"}), False),
    }
    return models[case]


def run_ombud(case: str, data: Data, users: np.ndarray, timer: Timer, threads: int) -> float:
    model, explicit = ombud_model(case, threads)
    with timer("jit"):
        tiny = load("tiny")
        warm, _ = ombud_model(case, threads)
        warm.fit(ombud_data(tiny, explicit)).recommend(tiny.asked(300), N)
        del warm, tiny
    interactions = ombud_data(data, explicit)
    with timer("fit"):
        model.fit(interactions)
    with timer("rec"):
        lists = model.recommend(users, N)
    if explicit:
        return rmse(model.predict(data.test_users, data.test_items), data)
    return recall(data, users, lists.items)


# ------------------------------------------------------------------------------------ peers


def run_surprise(data: Data, users: np.ndarray, timer: Timer, threads: int) -> float:
    import pandas as pd
    from surprise import SVD, Dataset, Reader

    frame = pd.DataFrame({"u": data.rows(), "i": data.indices, "r": data.ratings})
    with timer("load"):
        dataset = Dataset.load_from_df(frame, Reader(rating_scale=(0.5, 5)))
        train = dataset.build_full_trainset()
    del frame, dataset
    model = SVD(n_factors=100, n_epochs=EPOCHS, random_state=1)
    with timer("fit"):
        model.fit(train)
    size = data.size
    arrays = {
        "user_bias": np.zeros(size.users, np.float32),
        "item_bias": np.zeros(size.items, np.float32),
        "users": np.zeros((size.users, 100), np.float32),
        "items": np.zeros((size.items, 100), np.float32),
    }
    raw_users = np.array([train.to_raw_uid(k) for k in range(train.n_users)])
    raw_items = np.array([train.to_raw_iid(k) for k in range(train.n_items)])
    arrays["user_bias"][raw_users], arrays["users"][raw_users] = model.bu, model.pu
    arrays["item_bias"][raw_items], arrays["items"][raw_items] = model.bi, model.qi
    return factor_rmse(data, train.global_mean, **arrays)


def run_implicit(case: str, data: Data, users: np.ndarray, timer: Timer, threads: int) -> float:
    from implicit.cpu.als import AlternatingLeastSquares
    from implicit.cpu.bpr import BayesianPersonalizedRanking
    from implicit.nearest_neighbours import CosineRecommender
    from threadpoolctl import threadpool_limits

    shared = {"num_threads": threads, "random_state": 1}
    # implicit asks for single-threaded BLAS: it runs its own threads over users.
    with threadpool_limits(1, "blas"):
        if case == "ials":
            model = AlternatingLeastSquares(
                factors=64, regularization=0.05, alpha=40, iterations=ITERATIONS, **shared
            )
        elif case == "bpr":
            model = BayesianPersonalizedRanking(
                factors=63, learning_rate=0.01, regularization=0.01, iterations=EPOCHS, **shared
            )
        else:
            model = CosineRecommender(K=100, num_threads=threads)
        matrix = data.matrix(explicit=False)
        with timer("fit"):
            model.fit(matrix, show_progress=False)
        with timer("rec"):
            lists, _ = model.recommend(users, matrix[users], N=N, filter_already_liked_items=True)
    return recall(data, users, lists)


def run_lenskit(case: str, data: Data, users: np.ndarray, timer: Timer, threads: int) -> float:
    import logging

    import pandas as pd
    from lenskit.als import BiasedMFScorer, ImplicitMFScorer
    from lenskit.batch import recommend
    from lenskit.data import from_interactions_df
    from lenskit.knn import ItemKNNScorer, UserKNNScorer
    from lenskit.pipeline import topn_pipeline
    from lenskit.training import TrainingOptions

    logging.disable(logging.INFO)
    als = {"embedding_size": 64, "regularization": 0.05, "user_embeddings": "prefer"}
    scorers: dict[str, Callable[[], Any]] = {
        "eals": lambda: BiasedMFScorer(epochs=ITERATIONS, **als),
        "topn": lambda: ImplicitMFScorer(epochs=SHORT, weight=40, **als),
        "itemknn_rec": lambda: ItemKNNScorer(max_nbrs=20, save_nbrs=100, feedback="implicit"),
        "userknn_rec": lambda: UserKNNScorer(max_nbrs=20, feedback="implicit"),
    }
    columns = {"user_id": data.rows(), "item_id": data.indices, "rating": data.ratings}
    with timer("load"):
        dataset = from_interactions_df(pd.DataFrame(columns))
    pipeline = topn_pipeline(scorers[case](), n=N)
    with timer("fit"):
        pipeline.train(dataset, TrainingOptions(rng=1))
    if case == "eals":
        scorer = pipeline.node("scorer").component
        known_users, known_items = scorer.users.ids(), scorer.items.ids()
        size = data.size
        user_bias, item_bias = np.zeros(size.users, "f4"), np.zeros(size.items, "f4")
        left, right = np.zeros((size.users, 64), "f4"), np.zeros((size.items, 64), "f4")
        bias = scorer.bias
        user_bias[known_users], item_bias[known_items] = bias.user_biases, bias.item_biases
        left[known_users] = np.asarray(scorer.user_embeddings)
        right[known_items] = np.asarray(scorer.item_embeddings)
        return factor_rmse(data, bias.global_bias, user_bias, item_bias, left, right)
    with timer("rec"):
        output = recommend(pipeline, users.tolist(), n=N, n_jobs=1)
    lists = np.full((len(users), N), -1)
    place = {int(user): row for row, user in enumerate(users)}
    for key, items in output:
        ids = items.ids()
        lists[place[int(key.user_id)], : len(ids)] = ids
    return recall(data, users, lists)


def main() -> None:
    side, case, size, count, threads = sys.argv[1:6]
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LK_NUM_THREADS"):
        os.environ[name] = threads
    data = load(size)
    users, timer = data.asked(int(count)), Timer()
    if side == "ombud":
        quality = run_ombud(case, data, users, timer, int(threads))
    elif case == "svd":
        quality = run_surprise(data, users, timer, int(threads))
    elif case in {"ials", "bpr", "itemknn_fit"}:
        quality = run_implicit(case, data, users, timer, int(threads))
    else:
        quality = run_lenskit(case, data, users, timer, int(threads))
    result = {"quality": quality, "peak_mib": timer.peak, **timer.seconds}
    print("RESULT " + json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
