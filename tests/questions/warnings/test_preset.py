"""The warnings preset fills in what a plan leaves open, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ombud import registry
from ombud.audits import Audit, Plan, Result
from ombud.audits.backends.memory import bin_edges, spread_tables
from ombud.audits.load import load_data, load_metrics
from ombud.audits.presets import complete
from ombud.data.dataset import Dataset
from ombud.errors import PlanError
from ombud.questions.warnings.amplification.metric import Amplification
from ombud.worlds import small_world


def plan_of(**fields: Any) -> Plan:
    data = fields.pop("data", {"source": "small", "options": {"seed": 2, "ratings": True}})
    return Plan.from_dict({"preset": "warnings", "seed": 1, "data": data} | fields)


def names(plan: Plan) -> list[str]:
    return [metric["name"] for metric in plan.metrics]


def test_ratings_train_random_toppop_and_svd() -> None:
    plan = complete(plan_of())
    assert plan.systems == {
        "Random": {"type": "random", "seed": 1},
        "TopPop": {"type": "popular", "by": "mean"},
        "SVD": {"type": "svd", "seed": 1},
    }
    assert plan.split == {"method": "per-user", "share": 0.1}
    assert plan.sample == 1000
    assert [a["name"] for a in plan.analyses] == [
        "distribution",
        "popularity-shift",
        "user-preference",
        "label-disagreement",
    ]
    recall = [m for m in plan.metrics if m["name"] == "recall"]
    assert [m["k"] for m in recall] == [10, 50, 100]
    assert {m["relevance"] for m in recall} == {"top-quartile"}
    assert {m["average"] for m in plan.metrics if m["name"] == "f1"} == {"means"}
    assert names(plan).count("rmse") == 1
    assert names(plan).count("amplification") == 5  # four forms, and the paper's reading
    assert names(plan).count("amplification-user") == 5 + 2


def test_implicit_feedback_trains_als_and_counts() -> None:
    plan = complete(plan_of(data={"source": "small", "options": {"seed": 2}}))
    assert list(plan.systems) == ["Random", "TopPop", "ALS"]
    assert plan.systems["TopPop"]["by"] == "count"
    assert plan.systems["ALS"]["alpha"] == 1.0
    assert "rmse" not in names(plan)
    assert {m["relevance"] for m in plan.metrics if m["name"] == "recall"} == {"presence"}


def test_what_the_plan_says_stands() -> None:
    plan = complete(
        plan_of(
            title="Mine",
            sample=7,
            split={"method": "per-user", "share": 0.3},
            metrics=[{"name": "amplification", "k": 5}],
            analyses=[{"name": "distribution"}],
            systems={"SVD": {"type": "svd", "factors": 3}},
            options={"trained": ["Random", "SVD"]},
        )
    )
    assert plan.title == "Mine"
    assert plan.sample == 7
    assert plan.split["share"] == 0.3
    assert plan.metrics == ({"name": "amplification", "k": 5},)
    assert plan.analyses == ({"name": "distribution"},)
    assert plan.systems["SVD"] == {"type": "svd", "factors": 3}
    assert list(plan.systems) == ["Random", "SVD"]


def test_completing_twice_changes_nothing() -> None:
    remedies = [{"type": "avoid-list", "of": "SVD", "labels": ["violence"]}]
    once = complete(plan_of(options={"remedies": remedies}))
    assert complete(once) == once


def test_recorded_systems_alone_are_not_split_and_have_no_accuracy(tmp_path: Path) -> None:
    small_world(seed=2).write(tmp_path, 20)
    recorded = {"type": "recorded", "path": str(tmp_path / "recommendations/neutral.parquet")}
    data = {
        "interactions": str(tmp_path / "interactions.parquet"),
        "labels": str(tmp_path / "labels.parquet"),
    }
    plan = complete(plan_of(data=data, systems={"ours": recorded}, options={"k": 20}))
    assert list(plan.systems) == ["ours"]
    assert plan.split == {}
    assert set(names(plan)) == {"amplification", "amplification-user"}
    beside = complete(
        plan_of(data=data, systems={"ours": recorded}, options={"trained": ["TopPop"]})
    )
    assert list(beside.systems) == ["TopPop", "ours"]
    assert beside.split
    assert "recall" in names(beside)


def test_what_was_planted_in_recorded_lists_is_found(tmp_path: Path) -> None:
    world = small_world(seed=2)
    world.write(tmp_path, 20)
    systems = {
        name: {"type": "recorded", "path": str(tmp_path / f"recommendations/{name}.parquet")}
        for name in ("neutral", "amplifying")
    }
    data = {name: str(tmp_path / f"{name}.parquet") for name in ("interactions", "labels")}
    plan = plan_of(
        data=data,
        systems=systems,
        options={"k": 20, "forms": ["ratio-of-means"], "bounds": False},
        statistics={"replicates": 1000, "level": 0.999},
    )
    result = Audit.from_plan(plan).run()
    for system in world.recommenders():
        truth = system.truth(unknown="no", k=20)
        expected = truth.ratio_of_means()[truth.labels.index("violence")] - 1
        (found,) = result.select(
            metric="amplification@20 (ratio-of-means)",
            system=system.name,
            label="violence",
            kind="level",
        )
        assert found.interval is not None
        assert found.interval[0] < expected < found.interval[1]
        assert (found.interval[0] > 0) == (system.name == "amplifying")


def test_remedies_are_systems_around_systems() -> None:
    remedies = [
        {"type": "avoid-list", "of": "SVD", "labels": ["violence"], "unknown": "demote"},
        {"type": "calibrated", "of": "SVD", "strength": 0.7},
        {"type": "calibrated", "of": "SVD", "strength": 0.2},
    ]
    plan = complete(plan_of(options={"remedies": remedies, "k": 20}))
    svd = plan.systems["SVD"]
    assert plan.systems["SVD + avoid list"] == {
        "type": "avoid-list",
        "labels": ["violence"],
        "unknown": "demote",
        "inner": svd,
    }
    assert plan.systems["SVD + calibrated"]["strength"] == 0.7
    assert plan.systems["SVD + calibrated 2"]["strength"] == 0.2
    assert plan.metrics[-1] == {
        "name": "avoid-leak",
        "k": 20,
        "labels": ["violence"],
        "systems": ["SVD", "SVD + avoid list"],
    }
    remedies.append({"type": "avoid-list", "of": "Random", "labels": ["spiders"]})
    plan = complete(plan_of(options={"remedies": remedies, "k": 20}))
    titles = [metric.title for metric in load_metrics(plan.metrics)]
    assert titles[-2:] == ["avoid leak@20 (spiders)", "avoid leak@20 (violence)"]
    assert len(set(titles)) == len(titles)
    assert plan.metrics[-2]["systems"] == ["Random", "Random + avoid list"]


@pytest.mark.parametrize(
    ("system", "predicts"),
    [
        ({"type": "popular", "by": "mean"}, True),
        ({"type": "popular", "by": "damped-mean"}, True),
        ({"type": "popular", "by": "count"}, False),
        ({"type": "svd"}, True),
        ({"type": "explicit-als"}, True),
        ({"type": "item-knn"}, True),
        ({"type": "user-knn"}, True),
        ({"type": "implicit-als"}, False),
        ({"type": "random"}, False),
        ({"type": "calibrated", "inner": {"type": "svd"}}, False),
    ],
)
def test_rmse_is_measured_where_a_system_predicts_ratings(
    system: dict[str, Any], predicts: bool
) -> None:
    assert ("rmse" in names(complete(plan_of(systems={"mine": system})))) == predicts


def test_who_loses_the_whole_list_counts_as_zero_accuracy() -> None:
    plan = complete(plan_of())
    lists = [m for m in plan.metrics if m["name"] in {"precision", "recall", "f1"}]
    assert len(lists) == 9
    assert {m["no_list"] for m in lists} == {"zero"}


def test_a_metric_of_systems_that_are_not_there_is_refused() -> None:
    leak = {"name": "avoid-leak", "labels": ["violence"], "systems": ["SDV"]}
    plan = plan_of(metrics=[leak], options={"trained": ["Random"]})
    with pytest.raises(PlanError, match="avoid leak@100 names SDV; the systems are Random"):
        Audit.from_plan(plan).run()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"k": 0, "kk": 1}, ["2 of the options", "options.k:", "options.kk is not an option"]),
        ({"trained": ["Best"]}, ["options.trained.0"]),
        ({"trained": []}, ["no system is left"]),
        (
            {"remedies": [{"type": "hope", "of": "SVD"}, {"type": "calibrated", "of": "SDV"}]},
            ["'hope'; one of avoid-list, calibrated", "'SDV'; one of Random, TopPop, SVD"],
        ),
    ],
)
def test_all_faults_of_the_options_come_in_one_error(
    options: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(PlanError) as caught:
        complete(plan_of(options=options))
    for word in words:
        assert word in str(caught.value)


def test_data_without_labels_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = Dataset(small_world(seed=2).dataset.interactions)
    monkeypatch.setitem(registry._things["source"], "bare", lambda: bare)
    with pytest.raises(PlanError, match="the data has no labels"):
        complete(plan_of(data={"source": "bare"}))


def test_a_source_is_grouped_by_what_the_plan_names() -> None:
    everything = load_data(plan_of()).users
    assert everything is not None and set(everything.attributes) == {"age", "gender"}
    some = load_data(plan_of(by=["gender"])).users
    assert some is not None and set(some.attributes) == {"gender"}
    column = everything.names.index("gender=woman")
    np.testing.assert_array_equal(
        some.members[:, some.names.index("gender=woman")], everything.members[:, column]
    )
    with pytest.raises(PlanError, match="by names shoe; the data has the attributes age, gender"):
        load_data(plan_of(by=["shoe"]))


def test_an_avoid_list_lets_nothing_through_and_its_cost_is_paired(tmp_path: Path) -> None:
    plan = plan_of(
        options={
            "k": 20,
            "accuracy_at": [20],
            "forms": ["mean", "median"],
            "bounds": False,
            "remedies": [{"type": "avoid-list", "of": "SVD", "labels": ["violence"]}],
        },
        by=["gender"],
        statistics={"replicates": 200},
    )
    result = Audit.from_plan(plan).run(tmp_path / "run")
    assert result.plan.systems["SVD + avoid list"]["inner"] == result.plan.systems["SVD"]
    (leak,) = result.select(
        metric="avoid leak@20", system="SVD + avoid list", group="", kind="level"
    )
    assert leak.value == 0
    assert leak.note.startswith("0 of 6,000 places")
    (before,) = result.select(metric="avoid leak@20", system="SVD", group="", kind="level")
    assert before.value is not None and before.value > 0.1
    measured = {e.system for e in result.estimates if e.metric == "avoid leak@20"}
    assert measured == {"SVD", "SVD + avoid list"}
    (none_left,) = result.select(
        metric="amplification@20",
        system="SVD + avoid list",
        label="violence",
        group="",
        kind="level",
    )
    assert none_left.value == -1
    (cost,) = result.select(
        metric="recall@20, top quartile", system="SVD", against="SVD + avoid list", group=""
    )
    assert cost.kind == "gap"
    assert cost.interval is not None
    assert {e.group for e in result.estimates if e.system and e.group} == {
        "gender",  # the largest minus the smallest
        "gender=man",
        "gender=non-binary",
        "gender=woman",
    }
    again = Result.load(tmp_path / "run")
    assert set(again.tables) == set(result.tables)
    assert again.plan == result.plan
    assert again.estimates == result.estimates


def test_spread_tables_hold_every_user() -> None:
    world = small_world(seed=2)
    lists = {
        system.name: system.recommend(world.dataset.interactions.users.ids, 20)
        for system in world.recommenders()
    }
    metric = Amplification(k=20)
    rows = {name: metric.measure(some, world.dataset) for name, some in lists.items()}
    ((name, table),) = spread_tables(metric, rows).items()
    assert name == "spread-amplification-20-unlabeled-as-no"
    for (label, system), part in table.group_by("label", "system"):
        values = rows[system].columns["value"][:, rows[system].labels.index(label)]
        known = values[np.isfinite(values)]
        assert part["units"].sum() == len(known)
        assert part["share"].sum() == pytest.approx(1)
        below = part.filter(pl.col("to") <= 1e-9)["units"].sum()
        assert below == np.count_nonzero(known < -1e-9)
    assert spread_tables(Amplification(k=20, form="median"), rows) == {}


def test_bins_are_few_round_and_cut_at_zero(rng: np.random.Generator) -> None:
    for scale in (0.01, 1.0, 300.0):
        edges = bin_edges(rng.lognormal(size=1000) * scale - scale)
        assert len(edges) <= 42
        assert np.abs(edges).min() == 0
        steps = np.diff(edges)
        np.testing.assert_allclose(steps, steps[0])
    assert bin_edges(np.array([0.0])).tolist()[0] == 0.0
