"""189 million interactions, 870,000 users x 1.1 million items: implicit ALS with 64 factors.

Prints the time per iteration and the peak memory. The data are made directly as sorted rows:
activity is lognormal, popularity Zipf-like with taste left out, since only size and skew matter
here.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import numpy as np

USERS, ITEMS, INTERACTIONS = 870_000, 1_100_000, 189_000_000


def generate(users: int, items: int, wanted: int) -> tuple[np.ndarray, np.ndarray]:
    """Return row starts and sorted column codes; about so many entries as wanted."""
    rng = np.random.default_rng(1)
    weight = rng.lognormal(0.0, 1.1, users)
    drawn = np.clip(np.rint(weight / weight.sum() * wanted * 1.04), 5, items // 20).astype(np.int64)
    label = rng.permutation(items).astype(np.int32)
    columns = np.empty(int(drawn.sum()), np.int32)
    starts = np.zeros(users + 1, np.int64)
    end = 0
    for first in range(0, users, 20_000):
        part = drawn[first : first + 20_000]
        u = rng.random(int(part.sum()))
        rank = np.minimum((items + 300.0) ** u * 300.0 ** (1 - u) - 300.0, items - 1)
        row = np.repeat(np.arange(len(part)), part)
        keys = np.unique(row * items + label[rank.astype(np.int64)])
        columns[end : end + len(keys)] = keys % items
        count = np.bincount(keys // items, minlength=len(part))
        starts[first + 1 : first + 1 + len(part)] = end + np.cumsum(count)
        end += len(keys)
    return starts, columns[:end]


def main() -> None:
    from scipy import sparse

    from ombud.data.ids import Vocabulary
    from ombud.data.interactions import Interactions
    from ombud.systems.recommenders import ImplicitALS

    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    users, items = int(USERS * scale), int(ITEMS * scale)
    iterations = 2
    starts, columns = generate(users, items, int(INTERACTIONS * scale))
    matrix = sparse.csr_array(
        (np.ones(len(columns), np.float32), columns, starts.astype(np.int32)), shape=(users, items)
    )
    data = Interactions(Vocabulary(np.arange(users)), Vocabulary(np.arange(items)), matrix, False)
    print(f"{len(data):,} interactions, {users:,} users, {items:,} items", flush=True)
    marks: dict[int, tuple[float, float]] = {}

    def progress(done: int, total: int, note: str) -> None:
        marks[done // 100] = (time.perf_counter(), time.process_time())

    toy = Interactions.from_arrays(np.arange(200) % 40, np.arange(200) % 50)
    ImplicitALS(factors=4, iterations=1, threads=2).fit(toy)
    began = (time.perf_counter(), time.process_time())
    model = ImplicitALS(factors=64, iterations=iterations, threads=2).fit(data, progress=progress)
    ended = marks[iterations]
    asked = np.arange(0, users, max(1, users // 1000))[:1000]
    before = time.process_time()
    lists = model.recommend(asked, 100)
    figures = {
        "huge_interactions": len(data),
        "huge_iteration_wall_s": (ended[0] - began[0]) / iterations,
        "huge_iteration_cpu_s": (ended[1] - began[1]) / iterations,
        "huge_recommend_1000_cpu_s": time.process_time() - before,
        "huge_lists_full": int((lists.items >= 0).all(axis=1).sum()),
        "huge_peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }
    print(json.dumps({"benchmark": "recommenders-huge", "figures": figures}))


if __name__ == "__main__":
    main()
