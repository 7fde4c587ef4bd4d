"""The names that seed random numbers: changing one changes every interval of its metric."""

from __future__ import annotations

from typing import Any

import pytest

from ombud import registry

FROZEN: list[tuple[str, dict[str, Any], str]] = [
    ("amplification", {}, "amplification@100"),
    ("amplification", {"k": 7}, "amplification@7"),
    ("amplification-user", {}, "user amplification@100"),
    ("amplification-user", {"k": 7}, "user amplification@7"),
    ("avoid-leak", {"labels": ["violence"]}, "avoid leak@100"),
    ("avoid-leak", {"labels": ["violence"], "k": 7}, "avoid leak@7"),
    ("balance-gap", {}, "balance gap@50"),
    ("balance-gap", {"k": 7}, "balance gap@7"),
    ("coverage", {}, "coverage@10"),
    ("coverage", {"k": 7}, "coverage@7"),
    ("decision-instability", {}, "decision instability"),
    ("detection-accuracy", {}, "accuracy"),
    ("detection-f1", {}, "F1"),
    ("detection-precision", {}, "precision"),
    ("detection-recall", {}, "recall"),
    ("distinct-share", {}, "distinct share@10"),
    ("distinct-share", {"k": 7}, "distinct share@7"),
    ("f1", {}, "F1@10"),
    ("f1", {"k": 7}, "F1@7"),
    ("false-positive-rate", {}, "false-positive rate"),
    ("flag-share", {}, "share flagged"),
    ("gini", {}, "Gini@10"),
    ("gini", {"k": 7}, "Gini@7"),
    ("history-share", {}, "history share"),
    ("history-share", {"k": 7}, "history share"),
    ("hit-rate", {}, "hit rate@10"),
    ("hit-rate", {"k": 7}, "hit rate@7"),
    ("label-share", {}, "label share@10"),
    ("label-share", {"k": 7}, "label share@7"),
    ("list-balance", {}, "list balance@50"),
    ("list-balance", {"k": 7}, "list balance@7"),
    ("mae", {}, "MAE"),
    ("median-score", {}, "median score"),
    ("miscalibration", {}, "miscalibration@100"),
    ("miscalibration", {"k": 7}, "miscalibration@7"),
    ("mrr", {}, "MRR@10"),
    ("mrr", {"k": 7}, "MRR@7"),
    ("ndcg", {}, "NDCG@10"),
    ("ndcg", {"k": 7}, "NDCG@7"),
    ("pooled-suppression", {}, "pooled suppression"),
    ("precision", {}, "precision@10"),
    ("precision", {"k": 7}, "precision@7"),
    ("rank-fairness", {}, "rank fairness@50, by exposure, target: platform"),
    ("recall", {}, "recall@10"),
    ("recall", {"k": 7}, "recall@7"),
    ("request-leak", {"path": "requests.csv"}, "request leak@100"),
    ("request-leak", {"path": "requests.csv", "k": 7}, "request leak@7"),
    ("rmse", {}, "RMSE"),
    ("share-gap", {}, "share gap@10"),
    ("share-gap", {"k": 7}, "share gap@7"),
    ("suppression", {}, "suppression"),
    ("undecided-share", {}, "share without a decision"),
    ("worst-suppression", {}, "largest suppression"),
]


@pytest.mark.parametrize(("name", "options", "frozen"), FROZEN)
def test_seed_names_do_not_change(name: str, options: dict[str, Any], frozen: str) -> None:
    assert registry.create("metric", name, options).seed_name == frozen


def test_every_metric_has_a_frozen_name() -> None:
    ours = [
        n for n in registry.names("metric") if registry.get("metric", n).__module__[:6] == "ombud."
    ]
    assert set(ours) == {name for name, _, _ in FROZEN}, "add the new metric's first title"
