"""Each preset in a small world with effects and in one without, with few options or with all.

A result is made once, whatever the number of tests and of workers that read it.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ombud.audits import Audit, Plan, Result
from ombud.metrics import LabelShare, ShareGap
from ombud.systems.detectors import NgramDetector
from ombud.worlds import small_world

sys.path.insert(0, str(Path(__file__).parent / "counterfactual"))
import two_tastes

sys.path.insert(0, str(Path(__file__).parents[1] / "golden"))

Config = dict[str, Any]


def _recorded(folder: Path, *names: str) -> Config:
    system = {"type": "recorded", "moderates": True}
    return {name: system | {"path": str(folder / f"{name}.csv")} for name in names}


def warnings(folder: Path, effects: bool, every: bool) -> Config:
    """Films, some violent: trained models with their rerankers, and baselines."""
    options: Config = {"k": 10, "accuracy_at": [10], "users": 200}
    if not effects:
        # Histories are drawn at random, as lists are.
        rng = np.random.default_rng(5)
        who, what = np.nonzero(rng.random((120, 100)) < 0.2)
        pl.DataFrame({"user": who, "item": what}).write_csv(folder / "seen.csv")
        rows = [
            (i, name, bool(rng.random() < 0.3)) for name in ("violence", "gore") for i in range(100)
        ]
        table = pl.DataFrame(rows, schema=["item", "label", "present"], orient="row")
        table.write_csv(folder / "labels.csv")
        data = {"interactions": str(folder / "seen.csv"), "labels": str(folder / "labels.csv")}
        options |= {"trained": ["Random", "ALS"] if every else ["Random"], "bounds": every}
        if every:
            options |= {"accuracy_users": "all", "second_training": True, "item_share": 0.95}
            options["smoothing"] = "additive"
        return {"data": data, "options": options}
    options |= {
        "trained": ["Random", "TopPop", "SVD"],
        "rerankers": [{"type": "avoid-list", "of": "SVD", "labels": ["violence"]}],
    }
    if every:
        options |= {"accuracy_users": "all", "second_training": True, "item_share": 0.95}
        options["rerankers"].append({"type": "calibrated", "of": "SVD"})
    source = {"source": "small", "options": {"seed": 3, "ratings": True}}
    return {"data": source, "by": ["gender"], "options": options, "seed": 5}


def suppression(folder: Path, effects: bool, every: bool) -> Config:
    """Texts about four groups; acceptable ones about women are flagged, and a few about Jews."""
    rng, n = np.random.default_rng(1), 900
    who = rng.choice(["women", "men", "christian", "people"], size=n)
    who[:12] = "jewish"
    harmful = rng.random(n) < 0.3
    harmful[:12] = False
    ids = [f"t{i}" for i in range(n)]
    pl.DataFrame(
        {
            "id": ids,
            "text": [f"text {i} about {k} and the sea" for i, k in enumerate(who)],
            "label": harmful,
            "family": np.where(np.arange(n) % 2 == 0, "traditional", "generative-ai"),
            "set": np.where(np.arange(n) % 3 == 0, "forum", "news"),
        }
    ).write_csv(folder / "texts.csv")
    more = {"women": 0.45, "jewish": 0.7} if effects else {}
    chance = np.where(harmful, 0.8, [more.get(k, 0.12) for k in who])
    for name in ("old", "new"):
        rows = []
        for repeat in (0, 1):
            outcome = np.where(rng.random(n) < chance, "flagged", "allowed").astype(object)
            outcome[(rng.random(n) < 0.1 * effects) & (who == "men")] = "refused"
            score = np.clip(chance + rng.normal(0, 0.1, n), 0, 1)
            columns = {"id": ids, "repeat": repeat, "outcome": outcome, "score": score}
            columns["categories"] = [f'{{"hate": {s:.4f}, "spam": {1 - s:.4f}}}' for s in score]
            rows.append(pl.DataFrame(columns))
        pl.concat(rows).write_csv(folder / f"{name}.csv")
    options = {
        "mode": "published", "punctuation": {"forum": ".,"}, "outcome": "either",
        "instability": True, "regressions": True, "before": "old", "after": "new", "old": "old",
        "new": "new", "pages": True, "sub_identities": True, "smallest_intersection": 50,
        "categories": ["hate"], "groups": "tagged", "terms": "terms-identity@1",
    }  # fmt: skip
    few = {"mode": "published", "outcome": "either", "scores": False} if effects else {}
    return {
        "data": {"texts": str(folder / "texts.csv")}, "systems": _recorded(folder, "old", "new"),
        "options": options if every else {"scores": False} | few,
    }  # fmt: skip


def authors(folder: Path, effects: bool, every: bool) -> Config:
    """Books by women and men; one recommender shows women less than their readers read them."""
    rng, users, items = np.random.default_rng(1), 120, 160
    women = rng.random(items) < 0.4
    popularity = rng.gamma(1.0, 1.0, items)
    ids = np.array([f"i{i}" for i in range(items)])
    read, lists = [], []
    for user, taste in enumerate(rng.normal(0, 1.0, users)):
        weight = popularity * np.where(women, np.exp(taste), 1.0)
        weight /= weight.sum()
        mine = rng.choice(items, 22, replace=False, p=weight)
        read += [(f"u{user}", ids[item]) for item in mine]
        shown = weight * np.where(women & effects, 0.3, 1.0)
        shown[mine] = 0
        drawn = rng.choice(items, 40, replace=False, p=shown / shown.sum())
        lists += [(f"u{user}", ids[item], rank) for rank, item in enumerate(drawn, 1)]
    pl.DataFrame(read, schema=["user", "item"], orient="row").write_csv(folder / "read.csv")
    pl.DataFrame(lists, schema=["user", "item", "rank"], orient="row").write_csv(
        folder / "lists.csv"
    )
    known = rng.random(items) < 0.9
    gender = [("women" if w else "men") if k else None for w, k in zip(women, known, strict=True)]
    table = pl.DataFrame({"item": ids, "gender": gender})
    table.write_csv(folder / "items.csv")
    table.with_columns(weight=pl.lit(1.0)).write_parquet(folder / "creators.parquet")
    pl.DataFrame({"item": ids[::2], "label": "crime"}).write_csv(folder / "genres.csv")
    options: Config = {
        "k": 10, "least": 4, "accuracy_at": 20, "candidates": 40, "fewest_items": 5,
        "attribute": "gender", "users": 120, "accuracy_users": 0,
    }  # fmt: skip
    if every:
        options |= {
            "trained": ["item-kNN"], "accuracy_users": 40,
            "catalogue": str(folder / "items.csv"), "creators": str(folder / "creators.parquet"),
            "strategies": ["SingleEQ", "GreedyEQ", "GreedyReflect", "Calibrated", "FA*IR"],
            "minimum_for": "women", "target": {"women": 0.5, "men": 0.5}, "inferred": True,
            "placebo": True, "genres": ["crime"], "feedback": "implicit", "residual_rate": 2.0,
        }  # fmt: skip
    data = {"interactions": "read.csv", "items": "items.csv", "labels": "genres.csv"}
    systems: Config = {
        "Ours": {"type": "recorded", "path": str(folder / "lists.csv")},
        "Random": {"type": "random"},
    }
    return {
        "data": {k: str(folder / v) for k, v in data.items()} | {"unlabeled": "no"},
        "options": options, "systems": systems,
    }  # fmt: skip


_RISK = {
    0: "a sunny day by the sea",
    1: "they argue about money",
    5: "grief and death in the family",
}


def delicate(folder: Path, effects: bool, every: bool) -> Config:
    """Rated texts; one detector misses those of a source, another one goes by the pronoun."""
    rng, n = np.random.default_rng(5), 360
    risk = rng.choice(list(_RISK), n)
    ids = [f"t{i}" for i in range(n)]
    texts = [
        f"{'She' if i % 2 else 'He'} said: {_RISK[int(r)]}, no. {i}." for i, r in enumerate(risk)
    ]
    forum = np.arange(n) % 3 == 0
    table = {"id": ids, "text": texts, "family": np.where(forum, "forum", "news")}
    pl.DataFrame(table | {"set": "OLID A", "language": "en"}).write_csv(folder / "texts.csv")
    ratings = [(i, f"r{k}", int(np.clip(r + rng.integers(-1, 2), 0, 5)))
               for i, r in zip(ids, risk, strict=True) for k in range(3)]  # fmt: skip
    pl.DataFrame(ratings, schema=["id", "rater", "risk"], orient="row").write_csv(
        folder / "ratings.csv"
    )
    pl.DataFrame({"id": ids, "hateful": risk >= 5, "offensive": risk >= 1}).write_csv(
        folder / "notions.csv"
    )
    train = [f"{_RISK[int(r)]} {k}" for k, r in enumerate(rng.choice(list(_RISK), 120))]
    marks = [next(r for r, words in _RISK.items() if text.startswith(words)) for text in train]
    pl.DataFrame({"text": train, "risk": marks}).write_csv(folder / "train.csv")
    NgramDetector(name="own").fit(train, np.array(marks)).save(folder / "own")
    (folder / "published.csv").write_text(
        "system,positives,negatives,accuracy,macro_f1,decimals\nx,10,20,80.0,75.0,1\n"
    )
    (folder / "swap.csv").write_text("from,to\nsea,lake\n")
    terms = "topic,severity,term\nfamily-parenting,potentially-offensive,sea\n"
    (folder / "terms.csv").write_text(terms)
    (folder / "all_sentences.tsv").write_text(
        "sentid\tsentence\n"
        + "".join(
            f"nurse.patient.{k}.{g}.txt\tThe nurse said that {p} left {k}.\n"
            for k in range(12)
            for g, p in (("male", "he"), ("female", "she"), ("neutral", "they"))
        )
    )
    missed = np.where((risk == 5) & forum & effects, 0.3, 0.9)
    rows = [
        pl.DataFrame({"id": ids, "repeat": repeat, "score": score})
        for repeat in (0, 1)
        if len(score := np.where(rng.random(n) < missed, risk >= 3, risk < 3) * 0.8 + 0.1)
    ]
    pl.concat(rows).write_csv(folder / "taped.csv")
    paths = {"ratings": "ratings.csv", "notions": "notions.csv", "train": "train.csv",
             "published_file": "published.csv", "winogender": "", "swap": "swap.csv"}  # fmt: skip
    options = {name: str(folder / path) for name, path in paths.items()} | {
        "against_bias": ["gender-swap", "countries"], "base_rates": [0.2, 0.01],
        "templates": ["I am {value}."], "values": ["dead", "fine"], "examples": 2,
        "language": "detect", "dictionary": "delicate@1", "model": "ngrams",
        "sentence": "I live in {country}.", "path": str(folder / "terms.csv"),
    }  # fmt: skip
    if not every:
        options = {name: options[name] for name in ("ratings", "notions", "base_rates")}
    systems: Config = {
        "own": {"type": "detector", "path": str(folder / "own")},
        "words": {"type": "keyword", "terms": ["grief", "he"] if effects else ["grief", "death"]},
        "taped": {"type": "recorded", "path": str(folder / "taped.csv"), "threshold": 0.5},
    }
    return {"data": {"texts": str(folder / "texts.csv")}, "options": options, "systems": systems}


def counterfactual(folder: Path, effects: bool, every: bool) -> Config:
    """Two tastes; or one, where nothing is labeled more in anybody's list."""
    two_tastes.write_world(folder)
    parts = ["reach", "escape", "drift-in", "diversity", "stability"]
    options: Config = {"parts": parts if every else ["reach", "diversity", "stability"]}
    if every:
        options |= {"parallel": 2, "editable": ["item-01", "item-13", "item-20"]}
    if effects:
        options = {
            "users": 12, "black_box": ["Our EASE"], "queries": 150, "sets": ["dark", "kind"],
            "retrained_users": 5, "distances": ["rank-biased", "label-share"], "most_labels": 1,
        }  # fmt: skip
    systems = two_tastes.SYSTEMS if effects else {"Dice": two_tastes.SYSTEMS["Dice"]}
    return two_tastes.plan_of(folder, systems, **options).model_dump(exclude_unset=True)


PRESETS = (warnings, suppression, authors, delicate, counterfactual)


def golden(base: Path, plan: str) -> Result:
    """Return the result of a golden plan, whose part is run once."""
    import plans

    part = plan.partition("-")[0]
    folder = base / "golden" / part
    if not folder.exists():
        folder.mkdir(parents=True)
        for _ in plans.PARTS[part](folder):
            pass
    return Result.load(folder / "results" / plan)


@pytest.fixture(scope="session")
def preset_result(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Result]:
    """Return what reads the result of a world by its name; the first reader makes it."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base

    def read(world: str) -> Result:
        if world.endswith("(golden)"):
            return golden(base, world.partition(" ")[0])
        name = world.partition(" ")[0]
        folder = base / "presets" / world.replace(" ", "-")
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if (folder / "result" / "provenance.json").exists():
                return Result.load(folder / "result")
            if name == "plain":
                world = small_world(seed=1)
                metrics = [ShareGap(k=10), LabelShare(k=10), LabelShare(k=5)]
                audit = Audit(world.dataset, world.recommenders(), metrics, title="A world")
            else:
                make = next(make for make in PRESETS if make.__name__ == name)
                plan = {"preset": name, "statistics": {"replicates": 100}}
                config = make(folder, "without effects" not in world, "every option" in world)
                audit = Audit.from_plan(Plan.from_dict(plan | config))
            audit.run(folder / "result")
        return Result.load(folder / "result")

    return read
