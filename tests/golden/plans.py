"""What is run: every part yields results, each under the name of its plan."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import files
import shims
from shims import Plan, Result
from typer.testing import CliRunner

REPLICATES = {"replicates": 200}


@dataclass(frozen=True)
class Found:
    """What one plan gave: estimates as plain values, tables, and what was left out in words."""

    plan: str
    estimates: list[dict[str, Any]]
    tables: dict[str, Any] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)


Part = Callable[[Path], Iterator[Found]]
PARTS: dict[str, Part] = {}
"""By name, what runs the plans of a part in a folder of its own."""


def part(name: str) -> Callable[[Part], Part]:
    """Register what runs the plans of a part."""

    def add(run: Part) -> Part:
        PARTS[name] = run
        return run

    return add


def told(plan: str, result: Any) -> Found:
    """Return what a result says."""
    estimates = [e.to_dict() for e in result.estimates]
    left_out = sorted(str(e) for e in result.exclusions)
    return Found(plan, estimates, dict(result.tables), left_out)


def run(name: str, plan: Any, folder: Path, *, again: bool = False) -> Iterator[Found]:
    """Run a plan; its result is read as it was stored, and measured once more when asked for."""
    plan = Plan.from_dict(plan) if isinstance(plan, dict) else plan
    into = folder / "results" / name.replace("/", "-")
    shims.audit_of(plan).run(into)
    yield told(name, Result.load(into))
    if again:
        yield told(f"{name}/rescored", shims.rescore(into))


def said(*words: object) -> Any:
    """Return what a command prints as JSON; 1 is the answer of a gate, and no failure."""
    done = CliRunner().invoke(shims.app, [*map(str, words), "--json"])
    if done.exit_code not in {0, 1}:
        raise RuntimeError(f"ombud {' '.join(map(str, words))}: {done.output}") from done.exception
    return json.loads(done.stdout)


# Audits of recorded systems, in memory and in blocks.


def plan_of_users(folder: Path, **more: Any) -> dict[str, Any]:
    """A plan for two recorded recommenders."""
    names = ("interactions", "test", "labels", "users")
    return {
        "data": {name: str(folder / f"{name}.parquet") for name in names},
        "systems": {
            f"s{n}": {"type": "recorded", "path": str(folder / f"system{n}.parquet")}
            for n in (0, 1)
        },
        "metrics": [
            {"name": "share-gap", "k": 10},
            {"name": "ndcg", "k": 12},
            {"name": "label-share", "k": 5},
        ],
        "statistics": REPLICATES,
    } | more


def plan_of_texts(folder: Path, texts: str, groups: str | None, **more: Any) -> dict[str, Any]:
    """A plan for two recorded moderators; without groups, texts are tagged."""
    data = {"texts": str(folder / f"{texts}.parquet")}
    data |= {} if groups is None else {"text_groups": str(folder / f"{groups}.parquet")}
    tagged = {} if groups is not None else {"preset": "suppression", "analyses": []}
    two = {"type": "recorded", "path": str(folder / "two.parquet"), "threshold": 0.99}
    return {
        "data": data,
        "systems": {"one": {"type": "recorded", "path": str(folder / "one.parquet")}, "two": two},
        "metrics": [
            {"name": "suppression"},
            {"name": "suppression", "against": "outside"},
            {"name": "worst-suppression"},
            {"name": "false-positive-rate"},
            {"name": "undecided-share"},
        ],
        "statistics": REPLICATES,
        **tagged,
        **more,
    }


def _texts(name: str, folder: Path, **more: Any) -> Iterator[Found]:
    files.write_texts(folder)
    kinds = (("texts", None), ("clusters", "wide"), ("texts", "wide"), ("clusters", None))
    for texts, groups in kinds:
        plan = plan_of_texts(folder, texts, groups, **more)
        yield from run(f"{name}-{texts}-{groups}", plan, folder, again=True)


@part("memory")
def memory(folder: Path) -> Iterator[Found]:
    """Users and texts in memory: intersections, a sample, no groups, members, repeats."""
    files.write_users(folder)
    bare = {name: str(folder / f"{name}.parquet") for name in ("interactions", "labels")}
    members = plan_of_users(folder)["data"] | {"users": str(folder / "members.parquet")}
    plans: dict[str, dict[str, Any]] = {
        "memory": {},
        "memory-nogroups": {"by": None, "data": bare, "metrics": [{"name": "label-share"}]},
        "memory-inter": {"intersections": True},
        "memory-sample": {"sample": 100},
        "memory-members": {"data": members},
        "memory-percentile": {"statistics": REPLICATES | {"interval": "percentile", "level": 0.9}},
        "memory-matters": {
            "statistics": REPLICATES | {"correction": "holm", "matters": 0.02, "minimum": 40},
            "by": ["age"],
        },
    }
    for name, more in plans.items():
        yield from run(name, plan_of_users(folder, **more), folder, again=True)
    yield from _texts("memory", folder)


def in_blocks(name: str, engine: dict[str, Any], folder: Path) -> Iterator[Found]:
    """Users and texts on an engine that sees a block at a time."""
    files.write_users(folder)
    plan = plan_of_users(folder, engine=engine)
    yield from run(name, plan, folder, again=True)
    members = plan["data"] | {"users": str(folder / "members.parquet")}
    yield from run(f"{name}-members", plan | {"data": members}, folder, again=True)
    yield from _texts(name, folder, engine=engine)


@part("stream")
def stream(folder: Path) -> Iterator[Found]:
    """In one block, and in three whose rows are not kept."""
    for name, engine in (("stream1", {"blocks": 1}), ("stream3", {"blocks": 3, "rows": False})):
        (folder / name).mkdir()
        yield from in_blocks(name, {"type": "stream", **engine}, folder / name)


@part("spark")
def spark(folder: Path) -> Iterator[Found]:
    """On a local Spark of two cores."""
    engine = {"blocks": 2, "master": "local[2]", "options": {"spark.ui.enabled": "false"}}
    yield from in_blocks("spark", {"type": "spark", **engine}, folder)


@part("python")
def python(folder: Path) -> Iterator[Found]:
    """Audits of objects, stored nowhere."""
    del folder
    world = shims.small_world(seed=2)
    metrics = [shims.ShareGap(k=10), shims.LabelShare(k=5)]
    yield told("python", shims.Audit(world.dataset, world.recommenders(), metrics).run())
    names = ("Suppression", "FalsePositiveRate", "UndecidedShare")
    metrics = [shims.metric(name)() for name in names]
    yield told("python-texts", shims.Audit(world.dataset, world.moderators(), metrics).run())


# Trained models and rerankers, with every metric of recommenders.


@part("models")
def models(folder: Path) -> Iterator[Found]:
    """Every model that ombud trains, and every metric; and the same repeated on other splits."""
    files.write_ratings(folder)
    names = ("interactions", "labels", "users")
    data = {name: str(folder / f"{name}.parquet") for name in names}
    small = {"factors": 6, "seed": 1}
    knn = {"type": "item-knn", "neighbours": 20}
    systems = {
        "random": {"type": "random", "seed": 1},
        "count": {"type": "popular", "by": "count"},
        "mean": {"type": "popular", "by": "mean"},
        "damped": {"type": "popular", "by": "damped-mean"},
        "svd": {"type": "svd", "epochs": 10, **small},
        "explicit-als": {"type": "explicit-als", "iterations": 5, **small},
        "implicit-als": {"type": "implicit-als", "iterations": 5, **small},
        "bpr": {"type": "bpr", "epochs": 5, **small},
        "ease": {"type": "ease", "regularization": 20.0},
        "item-knn": knn,
        "user-knn": {"type": "user-knn", "neighbours": 20},
        "avoid": {"type": "avoid-list", "inner": knn, "labels": ["violence"]},
        "calibrated": {"type": "calibrated", "inner": knn, "strength": 0.7},
    }
    at = {"k": 5, "relevance": "top-quartile"}
    metrics = [
        *({"name": name, "k": 10} for name in ("coverage", "distinct-share", "gini")),
        *({"name": name, **at} for name in ("precision", "recall", "f1", "hit-rate", "mrr")),
        {"name": "ndcg", "gain": "rating", "discount": "original", "no_list": "zero"},
        {"name": "rmse"},
        {"name": "mae"},
        {"name": "miscalibration", "weighting": "exposure"},
        *({"name": "share-gap", "unknown": unknown} for unknown in ("exclude", "no", "yes")),
        {"name": "history-share"},
        {"name": "label-share", "k": 3},
        {"name": "amplification", "k": 10},
        {"name": "avoid-leak", "labels": ["violence"], "systems": ["item-knn", "avoid"]},
    ]
    plan = {
        "seed": 3,
        "data": data,
        "split": {"method": "per-user", "share": 0.2},
        "systems": systems,
        "metrics": metrics,
        "statistics": REPLICATES,
    }
    bare = {name: path for name, path in data.items() if name != "users"}
    yield from run("models", plan | {"data": bare}, folder, again=True)
    some = {name: systems[name] for name in ("svd", "ease", "calibrated")}
    plan |= {"systems": some, "metrics": metrics[3:5] + metrics[-5:-4]}
    yield from run("models-repeated", plan | {"repeat": 3}, folder)
    split = {"method": "leave-one-out"}
    yield from run("models-left-out", plan | {"split": split, "by": ["gender"]}, folder)


# The presets, with every option on.


@part("warnings")
def warnings(folder: Path) -> Iterator[Found]:
    """Explicit feedback, implicit feedback, labels under their parents."""
    files.write_ratings(folder)
    small = {"source": "small", "options": {"seed": 2, "users": 200, "items": 200}}
    explicit = small | {"options": small["options"] | {"ratings": True}}
    options: dict[str, Any] = {
        "k": 15,
        "accuracy_at": [5, 10],
        "trained": ["Random", "TopPop", "TopPop damped", "SVD", "ALS"],
        "users": 150,
        "accuracy_users": "all",
        "second_training": True,
        "unknown": "no",  # what the reference assumed without being told
        "item_share": 0.9,
        "tuned": str(folder / "tuned"),
        "rerankers": [
            {"type": "avoid-list", "of": "SVD", "labels": ["violence"]},
            {"type": "calibrated", "of": "SVD"},
        ],
    }
    preset = {"preset": "warnings", "seed": 1, "statistics": REPLICATES}
    plan = preset | {"data": explicit, "options": options}
    yield from run("warnings-explicit", plan, folder, again=True)
    options = {"k": 15, "accuracy_at": [10], "unknown": "exclude", "trained": ["TopPop", "ALS"]}
    yield from run("warnings-implicit", preset | {"data": small, "options": options}, folder)
    data = {name: str(folder / f"{name}.parquet") for name in ("interactions", "users")}
    data |= {"labels": str(folder / "children.parquet")}
    options = {
        "k": 10,
        "roll_up": "warnings-ao3@1",
        "trained": ["TopPop"],
        "forms": ["ratio-of-means"],
        "bounds": False,
        "unknown": "no",
        "feedback": "implicit",
    }
    yield from run("warnings-rolled-up", preset | {"data": data, "options": options}, folder)


@part("requests")
def requests(folder: Path) -> Iterator[Found]:
    """What people asked not to be shown."""
    files.write_requests(folder)
    asked = str(folder / "requests.parquet")
    leak = {"name": "request-leak", "path": asked, "k": 2}
    plan = {
        "data": {name: str(folder / f"{name}.parquet") for name in ("labels",)}
        | {"interactions": str(folder / "met.parquet")},
        "systems": {"now": {"type": "recorded", "path": str(folder / "now.parquet")}},
        "metrics": [leak, leak | {"at": "2023-12-20"}],
        "analyses": [
            {"name": "requests", "requests": asked, "lists": str(folder / "lists.parquet")}
        ],
        "statistics": REPLICATES,
    }
    yield from run("requests", plan, folder, again=True)


def _speech(folder: Path, texts: str, **more: Any) -> dict[str, Any]:
    systems = {
        name: {"type": "recorded", "path": str(folder / f"{name}.csv"), "moderates": True}
        for name in ("old", "new")
    }
    data = {"texts": str(folder / texts)}
    plan = {"preset": "suppression", "seed": 1, "data": data, "systems": systems}
    return plan | {"statistics": REPLICATES} | more


@part("suppression")
def suppression(folder: Path) -> Iterator[Found]:
    """Drift, migration, regressions, votes, clusters, given groups, own terms, over-refusal."""
    files.write_speech(folder)
    options: dict[str, Any] = {
        "sub_identities": True,
        "smallest_intersection": 50,
        "events": 3,
        "regressions": True,
        "before": "old",
        "after": "new",
        "old": "old",
        "new": "new",
        "pages": True,
    }
    plan = _speech(folder, "texts.csv", options=options, intersections=True)
    yield from run("suppression", plan, folder, again=True)
    options = {"mode": "published", "outcome": "either", "scores": False, "events": 3}
    options |= {"old": "old", "new": "new", "match": "flag-rate"}
    yield from run("suppression-published", _speech(folder, "voted.csv", options=options), folder)
    options = {"instability": True, "path": str(folder / "terms.csv"), "scores": False}
    again = {"again": {"type": "recorded", "path": str(folder / "again.csv"), "moderates": True}}
    plan = _speech(folder, "texts.csv", options=options, systems=again)
    yield from run("suppression-repeated", plan, folder)
    data = {"texts": str(folder / "voted.csv"), "text_groups": str(folder / "stated.csv")}
    words = {"words": {"type": "keyword", "terms": ["women", "gay"]}}
    plan = _speech(folder, "voted.csv", data=data)
    plan["systems"] |= words
    yield from run("suppression-stated", plan, folder)


@part("authors")
def authors(folder: Path) -> Iterator[Found]:
    """Two identities with everything on, three identities, both forms of feedback.

    What the fit of propagation gives is a part of its own; see `split_propagation`.
    """
    for name, identities in (("two", ("m", "f")), ("three", ("m", "f", "x"))):
        (folder / name).mkdir()
        files.write_books(folder / name, identities)
    data = {"interactions": "ratings.csv", "items": "items.csv"}
    common: dict[str, Any] = {"k": 10, "accuracy_at": 20, "candidates": 60, "least": 4}
    common |= {"users": 100, "accuracy_users": 60, "fewest_items": 5}
    plan = {"preset": "authors", "seed": 1, "statistics": REPLICATES}

    def of(name: str, **options: Any) -> dict[str, Any]:
        paths = {key: str(folder / name / value) for key, value in data.items()}
        paths |= {"labels": str(folder / name / "genres.csv"), "absent": "no"}
        return plan | {"data": paths, "options": common | options}

    everything = {
        "attribute": "gender",
        "feedback": "implicit",
        "trained": ["item-kNN", "BPR"],
        "tuned": str(folder / "two" / "tuned"),
        "catalogue": str(folder / "two" / "catalogue.parquet"),
        "creators": str(folder / "two" / "creators.parquet"),
        "strategies": ["SingleEQ", "GreedyEQ", "GreedyReflect", "Calibrated", "FA*IR"],
        "minimum_for": "f",
        "placebo": True,
        "genres": ["crime"],
    }
    yield from run("authors", of("two", **everything), folder, again=True)
    three = {"trained": ["item-kNN"], "feedback": "explicit", "splits": "nested"}
    three |= {"exposure": True, "target": {"m": 0.4, "f": 0.4, "x": 0.2}, "inferred": True}
    yield from run("authors-three", of("three", **three), folder)
    both = {"trained": ["user-kNN", "ALS"], "feedback": "both", "strategies": []}
    yield from run("authors-both", of("two", **both), folder)


def split_propagation(found: Found) -> tuple[Found, Found]:
    """Return what a run of preset authors gave without and of the fit of propagation."""

    def is_of_fit(name: str) -> bool:
        return name.startswith(("propagation", "creator-propagation"))

    fits = [e for e in found.estimates if is_of_fit(e["key"])]
    rest = [e for e in found.estimates if not is_of_fit(e["key"])]
    tables = {name: table for name, table in found.tables.items() if is_of_fit(name)}
    others = {name: table for name, table in found.tables.items() if not is_of_fit(name)}
    name = found.plan.replace("authors", "propagation")
    return Found(found.plan, rest, others, found.words), Found(name, fits, tables)


@part("counterfactual")
def counterfactual(folder: Path) -> Iterator[Found]:
    """Every part of the question, with plays and with ratings."""
    files.write_tastes(folder)
    few: dict[str, Any] = {
        "k": 3,
        "users": 6,
        "targets": 8,
        "at_risk": 6,
        "looked_at": 30,
        "random": 3,
        "tries": 10,
        "retrained": 2,
        "moved": 5,
        "random_treatments": 3,
        "noise_runs": 2,
        "people": 2,
    }
    data = {name: str(folder / f"{name}.csv") for name in ("labels", "items", "users")}
    plan = {"preset": "counterfactual", "seed": 1, "statistics": REPLICATES}
    everything = few | {
        "budget": 2,
        "beta": 1.5,
        "labels": ["dark", "loud"],
        "permitted": 1,
        "rate_labelled": True,
        "unknown": "yes",
        "escape_budget": 2,
        "retrained_users": 3,
        "treatments": ["removed"],
        "shortlist": 2,
        "distances": ["jaccard", "rank-biased", "kendall", "first-item", "label-share"],
        "by_group": True,
        "sets": ["dark", "kind"],
        "black_box": ["EASE"],
        "queries": 100,
    }
    systems = {
        "EASE": {"type": "ease", "regularization": 5.0},
        "ALS": {"type": "implicit-als", "factors": 4, "seed": 1},
        "Dice": {"type": "random", "seed": 1},
    }
    plays = data | {"interactions": str(folder / "plays.csv")}
    whole = plan | {"data": plays, "systems": systems, "options": everything}
    yield from run("counterfactual", whole, folder)
    systems = {
        "SVD": {"type": "svd", "factors": 3, "epochs": 20, "seed": 1},
        "ALS": {"type": "explicit-als", "factors": 3, "seed": 1},
        "Users": {"type": "user-knn", "neighbours": 5},
        "Items": {"type": "item-knn", "neighbours": 5},
    }
    rated = few | {"values": "all", "realistic": 10, "kinds": ["add", "change"], "others": 2}
    rated |= {"parts": ["reach", "escape", "stability"], "users": 3, "targets": 5, "at_risk": 3}
    rates = data | {"interactions": str(folder / "ratings.csv")}
    yield from run(
        "counterfactual-ratings",
        plan | {"data": rates, "systems": systems, "options": rated},
        folder,
    )


@part("delicate")
def delicate(folder: Path) -> Iterator[Found]:
    """Ratings, notions, heads trained against bias, published figures, votes, bias tests."""
    files.write_delicate(folder)
    systems = {
        "own": {"type": "detector", "path": str(folder / "own")},
        "words": {"type": "keyword", "terms": ["grief", "cry", "He"]},
        "taped": {"type": "recorded", "path": str(folder / "taped.csv"), "threshold": 0.6},
    }
    plan = {"preset": "delicate", "seed": 1, "statistics": REPLICATES, "systems": systems}
    options: dict[str, Any] = {
        "ratings": str(folder / "ratings.csv"),
        "notions": str(folder / "notions.csv"),
        "train": str(folder / "train.csv"),
        "against_bias": ["gender-swap", "countries"],
        "published": "detexd",
        "base_rates": [0.2, 0.01],
        "templates": ["I am {value}."],
        "values": ["robbery", "fine"],
        "swapped_texts": 100,
        "show_terms": False,
        "examples": 2,
    }
    data = {"texts": str(folder / "texts.csv")}
    yield from run("delicate", plan | {"data": data, "options": options}, folder, again=True)
    options = {"published_file": str(folder / "published.csv"), "bias": "none"}
    options |= {"groups": ["set", "language", "length", "source", "severity", "explicit"]}
    data = {"texts": str(folder / "voted.csv")}
    yield from run("delicate-voted", plan | {"data": data, "options": options}, folder)


# Commands beside the run of a plan, and a probe by itself.


def _weeks(folder: Path) -> list[Path]:
    """Run three results on the same texts: the third one's moderator is another."""
    files.write_speech(folder)
    (folder / "weeks").mkdir()
    made = []
    for week, which in enumerate(("old", "old", "new"), 1):
        plan = _speech(folder, "texts.csv", analyses=[{"name": "set-sizes"}], seed=week)
        plan["systems"] = {"now": plan["systems"][which]}
        plan["options"] = {"scores": False}
        made.append(folder / "weeks" / f"week{week}")
        shims.audit_of(Plan.from_dict(plan)).run(made[-1])
    return made


@part("compare")
def compare(folder: Path) -> Iterator[Found]:
    """Two results on the same texts, and on the same users."""
    before, _, after = _weeks(folder)
    found = said("compare", before, after)
    yield Found("compare-texts", found["changes"], words=found["remarks"])
    (folder / "users").mkdir()
    files.write_users(folder / "users")
    results = []
    for n in (0, 1):
        plan = plan_of_users(folder / "users", seed=n)
        plan["systems"] = {"s": plan["systems"][f"s{n}"]}
        results.append(folder / f"users{n}")
        shims.audit_of(Plan.from_dict(plan)).run(results[-1])
    found = said("compare", *results)
    yield Found("compare-users", found["changes"], words=found["remarks"])


@part("watch")
def watch(folder: Path) -> Iterator[Found]:
    """Three results in a row; the limits of a chart are the interval of a further number."""
    made = _weeks(folder)
    keys = {e.metric: e.key for e in Result.load(made[0]).estimates}
    series = said("watch", made[0].parent, "--false-alarms", 0.05)
    estimates = []
    for chart in series["charts"]:
        about = {k: chart[k] for k in ("metric", "system", "label", "group", "against", "kind")}
        about["key"] = keys[chart["metric"]]
        for point in chart["points"]:
            where = {"result": point["result"]}
            words = {"p_adjusted": point["p"], "note": f"alarm: {point['alarm']}"}
            number = {"value": point["value"], "interval": point["interval"]}
            limits = {"value": None, "interval": _both(point["low"], point["high"])}
            estimates += [
                about | words | number | {"details": where | {"what": "number"}},
                about | limits | {"details": where | {"what": "limits"}},
            ]
    yield Found("watch", estimates, words=series["remarks"])


def _both(low: float | None, high: float | None) -> list[float] | None:
    return None if low is None or high is None else [low, high]


@part("size")
def size(folder: Path) -> Iterator[Found]:
    """How much data plans need, by simulation and from a first result."""
    files.write_users(folder)
    users = Plan.from_dict(plan_of_users(folder))
    (folder / "users.toml").write_text(users.to_toml())
    shims.audit_of(users).run(folder / "pilot")
    files.write_texts(folder)
    texts = Plan.from_dict(plan_of_texts(folder, "texts", "wide"))
    (folder / "texts.toml").write_text(texts.to_toml())
    asked: dict[str, tuple[object, ...]] = {
        "size-users": ("users.toml", "--half-width", 0.02),
        "size-texts": (
            "texts.toml",
            "--effect",
            1.5,
            "--power",
            0.9,
            "--comparisons",
            40,
            "--groups",
            4,
            "--audits",
            20,
        ),
        "size-pilot": ("users.toml", "--half-width", 0.02, "--from", folder / "pilot"),
    }
    for name, (plan, *words) in asked.items():
        found = said("size", folder / str(plan), *words)
        titles = list(dict.fromkeys(one["metric"] for one in found))
        yield Found(
            name,
            [
                {
                    "metric": one["metric"],
                    "key": f"metric {titles.index(one['metric'])}",
                    "group": one["about"],
                    "value": one["spread"],
                    "interval": _both(one["n"], one["n_most"]),
                    "reason": one["reason"],
                }
                for one in found
            ],
        )


@part("probes")
def probes(folder: Path) -> Iterator[Found]:
    """Reach and stability of a model in Python."""
    from ombud import probes
    from ombud.probes.summaries import ReachTable
    from ombud.systems.recommenders import EASE

    del folder
    data = shims.small_world(seed=3, users=40, items=60).dataset.interactions
    model = EASE(regularization=5.0).fit(data)
    asked = probes.Reachability(k=5, beta=1.0)
    reaches = [
        asked.of(
            model,
            probes.EditSpace.of_user(data, data.users.ids[user], budget=1),
            list(range(0, 60, 6)),
            own=user,
        )
        for user in range(6)
    ]
    table = ReachTable.from_reaches(reaches, system="EASE", policy="frozen", budget=1, k=5)
    numbers = probes.reach_summary(table, replicates=200)
    plan = probes.StabilityPlan(k=5, shortlist=2, random=4)
    changes = [probes.Jaccard(), probes.Kendall()]
    moved = probes.stability(
        EASE(regularization=5.0), data, data.users.ids[[0, 5, 9, 12]], plan, changes=changes
    )
    numbers += probes.stability_estimates(moved, replicates=200)
    yield Found("probes", [e.to_dict() for e in numbers])
