"""Small worlds in files, for the plans whose results are stored."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from shims import NgramDetector, small_world, write_tables

WORDS = {"women": "my sister", "christian": "the church", "": "the sea"}


def write_users(folder: Path) -> None:
    """Interactions, held-out ones, labels, groups as columns and as members, lists of two."""
    world = small_world(seed=1)
    data, rng = world.dataset, np.random.default_rng(1)
    rows = data.interactions.to_frame().sample(fraction=1, shuffle=True, seed=1)
    held = rng.random(rows.height) < 0.2
    rows.filter(~held).write_parquet(folder / "interactions.parquet")
    rows.filter(held).write_parquet(folder / "test.parquet")
    gone = dict.fromkeys(("interactions", "users", "texts", "text_groups", "items"))
    write_tables(replace(data, **gone), folder)
    members = data.users.to_members("user")
    members = members.with_columns(value=pl.col("group").str.split("=").list.get(1))
    wide = members.pivot("attribute", index="user", values="value").head(280)
    wide.write_parquet(folder / "users.parquet")
    members.select("user", "group", "attribute").write_parquet(folder / "members.parquet")
    everyone = data.interactions.users.ids
    for n, system in enumerate(world.recommenders()[:2]):
        lists = system.recommend(everyone[: 290 + 10 * n], 10).to_frame()
        lists.write_parquet(folder / f"system{n}.parquet")


def write_texts(folder: Path) -> None:
    """Texts in templates, some without text or truth; one of two systems knows but some of them."""
    rng, n = np.random.default_rng(5), 2400
    ids = np.array([f"t{i}" for i in range(n)])
    named = rng.choice(list(WORDS), n, p=[0.3, 0.2, 0.5])
    texts = pl.DataFrame(
        {
            "id": ids,
            "text": [f"{WORDS[name]} {i}" for i, name in enumerate(named)],
            "label": rng.choice([0, 1, 2], n, p=[0.8, 0.17, 0.03]),
            "cluster": rng.integers(150, size=n),
        }
    ).with_columns(
        text=pl.when(pl.Series(rng.random(n) < 0.99)).then("text"),
        label=pl.col("label").replace(2, None),
    )
    texts.write_parquet(folder / "clusters.parquet")
    texts.drop("cluster").write_parquet(folder / "texts.parquet")
    wide = pl.DataFrame({"id": [*ids[:2000], "nobody"], "named": [*named[:2000], "women"]})
    wide = wide.with_columns(pl.col("named").replace("", None))
    wide.write_parquet(folder / "wide.parquet")
    pairs = wide.drop_nulls().select("id", group="named", attribute=pl.lit("identity"))
    pairs.sort("group", "id").write_parquet(folder / "members.parquet")
    kinds = ["flagged", "allowed", "refused", "error"]
    outcome = rng.choice(kinds, n, p=[0.08, 0.8, 0.07, 0.05])
    outcome[(named == "women") & (rng.random(n) < 0.2)] = "flagged"
    one = pl.DataFrame({"id": [*ids, "stranger"], "outcome": [*outcome, "flagged"]})
    one.sample(fraction=1, shuffle=True, seed=1).write_parquet(folder / "one.parquet")
    again = pl.DataFrame({"id": np.repeat(ids[:900], 2), "score": rng.random(1800)})
    again = again.with_columns(repeat=pl.int_range(pl.len()) % 2)
    again.write_parquet(folder / "two.parquet")


def write_ratings(folder: Path) -> None:
    """A world with ratings and every table, and its labels under names of a taxonomy."""
    world = small_world(seed=2, users=200, items=200, ratings=True)
    write_tables(replace(world.dataset, texts=None, text_groups=None), folder)
    names = dict(zip(world.dataset.labels.names, CHILDREN, strict=True))
    labels = pl.read_parquet(folder / "labels.parquet")
    labels = labels.with_columns(pl.col("label").replace(names))
    labels.write_parquet(folder / "children.parquet")
    write_search(folder / "tuned" / "svd", "svd", {"factors": 5, "epochs": 8}, "rmse", 1.25)


CHILDREN = ("sexism", "racism", "kidnapping", "death", "violence")


def write_search(folder: Path, model: str, best: dict[str, Any], metric: str, value: float) -> None:
    """Write what a finished search for parameters leaves behind."""
    folder.mkdir(parents=True)
    told = {"model": model, "best": best, "metric": metric, "value": value}
    (folder / "tuned.json").write_text(json.dumps(told))


def write_speech(folder: Path) -> None:
    """Texts that name groups, voted on, of two families; four moderators, one asked repeatedly."""
    rng, n = np.random.default_rng(7), 1000
    words = {"women": "women", "muslim": "muslims", "gay": "gay men", "": "people"}
    kind = rng.choice(list(words), n, p=[0.3, 0.25, 0.15, 0.3])
    other = rng.choice(["and the sea", "and christian neighbours"], n, p=[0.7, 0.3])
    ids = [f"t{i}" for i in range(n)]
    yes = np.where(rng.random(n) < 0.3, rng.integers(3, 6, n), rng.integers(0, 3, n))
    harmful = yes >= 3
    table: dict[str, Any] = {
        "id": ids,
        "text": [
            f"text {i} about {words[k]} {o}"
            for i, (k, o) in enumerate(zip(kind, other, strict=True))
        ],
        "label": harmful,
        "yes": yes,
        "no": 5 - yes,
        "family": np.where(np.arange(n) % 2 == 0, "traditional", "generative-ai"),
        "set": np.where(np.arange(n) % 3 == 0, "first", "second"),
        "cluster": rng.integers(250, size=n),
    }
    pl.DataFrame(table).write_csv(folder / "voted.csv")
    pl.DataFrame(table).drop("yes", "no", "cluster").write_csv(folder / "texts.csv")
    stated = pl.DataFrame({"id": ids[:800], "identity": kind[:800]})
    stated.with_columns(pl.col("identity").replace("", None)).write_csv(folder / "stated.csv")
    chance = np.where(harmful, 0.8, 0.1 * np.where(kind == "women", 2.5, 1.0))
    u = rng.random(n)
    for name, shift in (("old", 0.0), ("new", 0.04)):
        flagged = u < chance + shift
        outcome = np.where(flagged, "flagged", "allowed").astype(object)
        outcome[rng.random(n) < 0.04] = "refused"
        score = np.clip(0.5 * u + 0.4 * flagged, 0, 1)
        decided = {"id": ids, "outcome": outcome, "score": score, "hate": score * rng.random(n)}
        pl.DataFrame(decided).write_csv(folder / f"{name}.csv")
    flips = np.repeat(u, 3) + rng.normal(0, 0.05, 3 * n) < np.repeat(chance, 3)
    again = pl.DataFrame({"id": np.repeat(ids, 3), "repeat": np.tile(np.arange(3), n)})
    again = again.with_columns(outcome=np.where(flips, "flagged", "allowed"))
    again.write_csv(folder / "again.csv")
    (folder / "terms.csv").write_text("group,term\nsailors,sea\nneighbours,neighbours\n")


def write_books(folder: Path, identities: tuple[str, ...]) -> None:
    """Ratings of books whose creators' identity is known for some, with genres and a catalogue."""
    rng, users, items = np.random.default_rng(1), 160, 180
    weights = np.array([5, 4, 3][: len(identities)], dtype=float)
    who = rng.choice(len(identities), items, p=weights / weights.sum())
    popularity = rng.gamma(1.0, 1.0, items)
    rows = []
    for user, taste in enumerate(rng.normal(0, 1.2, users)):
        weight = popularity * np.where(who == 1, np.exp(taste), 1.0)
        size = int(rng.integers(10, 25))
        for item in rng.choice(items, size, replace=False, p=weight / weight.sum()):
            rows.append((f"u{user}", f"i{item}", int(rng.integers(1, 6))))
    frame = pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row")
    frame.write_csv(folder / "ratings.csv")
    known = rng.random(items) < 0.85
    outcome = rng.choice(["no_book", "unknown", "ambiguous"], items)
    ids = [f"i{i}" for i in range(items)]
    table = pl.DataFrame(
        {
            "item": ids,
            "gender": [identities[w] if k else None for w, k in zip(who, known, strict=True)],
            "gender_status": np.where(known, "known", outcome),
            "creator": [f"c{c}" for c in rng.integers(90, size=items)],
        }
    )
    table.drop("creator").write_csv(folder / "items.csv")
    unread = pl.DataFrame({"item": [f"x{i}" for i in range(60)], "gender": [*"mf"] * 30})
    both = pl.concat([table.select("item", "gender"), unread])
    both.write_parquet(folder / "catalogue.parquet")
    second = both.with_columns(gender=pl.lit("f"))
    all_of = pl.concat([both, second]).with_columns(weight=pl.lit(0.5))
    all_of.write_parquet(folder / "creators.parquet")
    crime = np.flatnonzero(rng.random(items) < 0.5)
    genres = {"item": [ids[i] for i in crime], "label": ["crime"] * len(crime)}
    pl.DataFrame(genres).write_csv(folder / "genres.csv")
    write_search(folder / "tuned" / "knn", "item-knn", {"neighbours": 15}, "mrr@20", 0.25)


def write_tastes(folder: Path) -> None:
    """Two tastes, one of them labelled, groups of users, titles, and an item nobody reaches."""
    rng, users, items = np.random.default_rng(3), 40, 24
    taste = rng.random(users) < 0.5
    dark = np.arange(items) >= items // 2
    chance = np.where(taste[:, None] == dark[None, :], 0.45, 0.12)
    who, what = np.nonzero(rng.random((users, items)) < chance)
    names = [*(f"p{u:03d}" for u in who), "p999"]
    things = [*(f"item-{i:02d}" for i in what), "item-lonely"]
    plays = pl.DataFrame({"user": names, "item": things})
    plays.write_csv(folder / "plays.csv")
    plays.with_columns(rating=rng.integers(1, 6, len(names))).write_csv(folder / "ratings.csv")
    labels = [(f"item-{i:02d}", "dark", bool(dark[i])) for i in range(items)]
    labels += [("item-lonely", "dark", False)]
    labels += [(f"item-{i:02d}", "loud", i % 3 == 0) for i in range(items)]
    frame = pl.DataFrame(labels, schema=["item", "label", "present"], orient="row")
    frame.write_csv(folder / "labels.csv")
    titles = [(f"item-{i:02d}", f"Film {i}", "Odd|All" if i % 2 else "All") for i in range(items)]
    frame = pl.DataFrame(titles, schema=["item", "title", "kind"], orient="row")
    frame.write_csv(folder / "items.csv")
    groups = {"user": [f"p{u:03d}" for u in range(users)], "age": np.where(taste, "old", "young")}
    pl.DataFrame(groups).write_csv(folder / "users.csv")


ABOUT = {
    "health": "my depression and the chemotherapy",
    "crime": "the robbery and a stabbing",
    "plain": "the garden and our boat",
}
RISKS = {0: "bread honey boat garden", 2: "report court police law", 5: "grief cry loss wound"}


def write_delicate(folder: Path) -> None:
    """Rated texts about delicate matters, a file to train on, two detectors, and bias tests."""
    rng, n = np.random.default_rng(5), 240
    kinds = np.array(list(ABOUT))[np.arange(n) % 3]
    personal = np.arange(n) // 3 % 2 == 0
    ids = [f"t{i}" for i in range(n)]
    train, risk = _risky(240, 1)
    texts = [
        f"{'She' if i % 2 else 'He'} wrote {'darn, I cry about' if p else 'a report on'} "
        f"{ABOUT[k]}, page {i}." + " and so on" * (40 * (i % 7 == 0))
        for i, (k, p) in enumerate(zip(kinds, personal, strict=True))
    ]
    texts[-1] = train[0]
    base = np.where(kinds == "plain", 0, np.where(personal, 5, 2))
    yes = rng.binomial(5, np.where(kinds == "plain", 0.1, 0.8))
    table = {
        "id": ids,
        "text": texts,
        "family": ["forum", "news"] * (n // 2),
        "set": ["OLID A"] * 120 + ["Davidson hate only"] * 120,
        "language": ["en"] * 180 + ["de"] * 60,
        "yes": yes,
        "no": 5 - yes,
    }
    pl.DataFrame(table).write_csv(folder / "voted.csv")
    pl.DataFrame(table).drop("yes", "no", "language").write_csv(folder / "texts.csv")
    ratings = [
        {"id": ids[i], "rater": f"r{r}", "risk": int(np.clip(base[i] + rng.integers(-1, 2), 0, 5))}
        for i in range(n)
        for r in range(3)
    ]
    pl.DataFrame(ratings).write_csv(folder / "ratings.csv")
    notions = {"id": ids, "hateful": base >= 4, "offensive": base >= 2}
    pl.DataFrame(notions).write_csv(folder / "notions.csv")
    pl.DataFrame({"text": train, "risk": risk}).write_csv(folder / "train.csv")
    published = "system,positives,negatives,accuracy,macro_f1,decimals\nx,10,20,80.0,75.0,1\n"
    (folder / "published.csv").write_text(published)
    NgramDetector(name="own").fit(train[:160], risk[:160]).save(folder / "own")
    scores = rng.random(n) * 0.6 + 0.3 * (kinds == "crime")
    times = np.repeat(scores, 2) + rng.normal(0, 0.1, 2 * n)
    taped = {"id": np.repeat(ids, 2), "repeat": np.tile([0, 1], n), "score": np.clip(times, 0, 1)}
    pl.DataFrame(taped).write_csv(folder / "taped.csv")


def _risky(n: int, seed: int) -> tuple[list[str], Any]:
    rng = np.random.default_rng(seed)
    risk = rng.choice(list(RISKS), n)
    texts = [
        " ".join([*rng.choice(RISKS[int(r)].split(), 3), rng.choice(["he", "she"]), f"no{i}{seed}"])
        for i, r in enumerate(risk)
    ]
    return texts, np.clip(risk + rng.integers(-1, 2, n), 0, 5)


def write_requests(folder: Path) -> None:
    """A service that shows gore to 40% before and to 10% after requests for no blood."""
    rng, day = np.random.default_rng(4), 86_400.0
    start, users = 1_700_000_000.0, 40
    shown: dict[str, list[Any]] = {"user": [], "item": [], "time": [], "rank": []}
    for user in range(users):
        for at in np.arange(0.5, 60, 2):
            rate = 0.4 if at < 30 else 0.1
            item = "gore" if rng.random() < rate else rng.choice(["cute", "other"], p=[0.9, 0.1])
            for name, value in (("user", f"u{user}"), ("item", str(item)), ("rank", 1)):
                shown[name].append(value)
            shown["time"].append(start + at * day)
    pl.DataFrame(shown).write_parquet(folder / "lists.parquet")
    asked = {"user": [f"u{u}" for u in range(users)], "label": ["blood"] * users}
    asked |= {"time": [start + 30 * day] * users}
    pl.DataFrame(asked).write_parquet(folder / "requests.parquet")
    labels = {"item": ["gore", "cute"], "label": ["blood"] * 2, "present": [True, False]}
    pl.DataFrame(labels).write_parquet(folder / "labels.parquet")
    pairs = [
        (f"u{u}", item, r + 1) for u in range(users) for r, item in enumerate(("gore", "cute"))
    ]
    now = pl.DataFrame(pairs[::2] + pairs[1::4], schema=["user", "item", "rank"], orient="row")
    now.write_parquet(folder / "now.parquet")
    now.drop("rank").write_parquet(folder / "met.parquet")
