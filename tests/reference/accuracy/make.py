"""Write a small example and what LensKit 2025.8.1 says about it; run it from this folder.

The example: lists of up to 10 of 40 items for 60 users (some shorter), held-out ratings (users 50
and above have none), and predicted ratings of the held-out pairs.
"""


def main():
    import warnings

    import numpy as np
    import polars as pl
    from lenskit.data import ItemList
    from lenskit.metrics import MAE, NDCG, RMSE, Hit, Precision, Recall, RecipRank
    from lenskit.metrics.ranking import ListGini

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(20250801)
    lists, held = [], []
    for user in range(60):
        order = rng.permutation(40)
        length = 10 if user % 4 else int(rng.integers(1, 11))
        lists += [(user, int(item), rank) for rank, item in enumerate(order[:length], 1)]
        if user < 50:
            # From the front of the order more often than from the back, so that there are hits.
            weights = np.exp(-np.arange(40) / 15)
            chosen = rng.choice(order, int(rng.integers(1, 14)), False, weights / weights.sum())
            for item in chosen:
                rating = int(rng.integers(1, 11)) / 2
                held.append((user, int(item), rating, round(float(rng.normal(3, 1)), 3)))
    lists = pl.DataFrame(lists, ["user", "item", "rank"], orient="row")
    held = pl.DataFrame(held, ["user", "item", "rating", "predicted"], orient="row")
    lists.write_csv("lists.csv")
    held.write_csv("held_out.csv")
    rows = []
    for user in range(50):
        recs = ItemList(item_ids=lists.filter(user=user)["item"].to_numpy(), ordered=True)
        mine = held.filter(user=user)
        test = ItemList(item_ids=mine["item"].to_numpy(), rating=mine["rating"].to_numpy())
        predicted = ItemList(item_ids=mine["item"].to_numpy(), scores=mine["predicted"].to_numpy())
        for k in (3, 10):
            for name, metric in {
                "precision": Precision(k),
                "recall": Recall(k),
                "mrr": RecipRank(k),
                "hit-rate": Hit(k),
                "ndcg": NDCG(k),
                "ndcg-rating": NDCG(k, gain="rating"),
            }.items():
                rows.append((user, name, k, float(metric.measure_list(recs, test))))
        for name, metric in {"rmse": RMSE(), "mae": MAE()}.items():
            rows.append((user, name, 0, float(metric.measure_list(predicted, test))))
    for k in (3, 10):
        gini = ListGini(k, items=40)
        every = [
            gini.compute_list_data(
                ItemList(item_ids=lists.filter(user=user)["item"].to_numpy(), ordered=True), None
            )
            for user in range(60)
        ]
        rows.append((-1, "gini", k, float(gini.global_aggregate(every))))
    pl.DataFrame(rows, ["user", "metric", "k", "value"], orient="row").write_csv("lenskit.csv")


if __name__ == "__main__":
    main()
