"""The rest of the paper: second training, everyone's accuracy, items sampled, parents, wide."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.audits import Audit, Plan, Result
from ombud.audits.analysis import Context, all_interactions
from ombud.audits.audit import rescore
from ombud.audits.load import load_data
from ombud.audits.presets import complete
from ombud.data.ids import Vocabulary
from ombud.data.items import Items
from ombud.data.labels import Labels
from ombud.data.splits import per_user
from ombud.errors import PlanError
from ombud.files import write_json
from ombud.metrics import Precision, Recall
from ombud.metrics.engine.estimator import Settings
from ombud.questions.warnings.amplification.metric import UserAmplification
from ombud.questions.warnings.distribution import Distribution
from ombud.questions.warnings.reruns import item_sample
from ombud.report import Report
from ombud.rng import generator
from ombud.systems.recommenders import SVD, Popular
from ombud.worlds import small_world


def plan_of(ratings: bool = True, **options: Any) -> Plan:
    return Plan.from_dict(
        {
            "preset": "warnings",
            "seed": 1,
            "sample": 60,
            "data": {"source": "small", "options": {"seed": 3, "ratings": ratings}},
            "by": [],
            "options": {"k": 20, "accuracy_at": [10], **options},
            "statistics": {"replicates": 100},
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = plan_of(second_training=True, accuracy_users="all")
    path = tmp_path_factory.mktemp("reruns") / "r"
    Audit.from_plan(plan).run(path)
    return path


def test_a_second_training_is_that_of_a_model_that_saw_everything(folder: Path) -> None:
    result = Result.load(folder)
    data = load_data(complete(result.plan))
    whole = all_interactions(data, "test")
    everything = replace(data, interactions=whole, test=None)
    model = SVD(**{k: v for k, v in result.plan.systems["SVD"].items() if k != "type"}).fit(whole)
    users = pl.read_parquet(folder / "outputs" / "SVD.parquet")["user"].to_numpy()
    metric = UserAmplification(k=20, unknown="exclude")
    rows = metric.measure(model.recommend(users, 20), everything)
    (e,) = result.select(
        key="second-training/amplification-user(k=20,unknown=exclude)",
        system="SVD",
        kind="level",
        group="",
    )
    assert e.value == pytest.approx(float(np.nanmean(rows.columns["value"])))
    assert e.metric.endswith(", trained on everything") and e.interval is not None
    fitted = result.select(key="second-training/rmse", system="SVD", kind="level")[0]
    rated = whole.matrix[whole.users.codes(users)].tocoo()
    guess = model.predict(users[rated.row], whole.items.take(rated.col))
    assert fitted.value == pytest.approx(np.sqrt(np.mean((guess - rated.data) ** 2)), rel=1e-4)
    (tested,) = result.select(key="rmse", system="SVD", kind="level")
    assert fitted.value < tested.value  # it has seen the answers


def test_accuracy_of_everyone_stands_beside_that_of_the_sample(folder: Path) -> None:
    result = Result.load(folder)
    data = load_data(complete(result.plan))
    (e,) = (
        e
        for e in result.select(system="TopPop", kind="level", group="")
        if e.key.startswith("accuracy-of-everyone/recall")
    )
    (sample,) = (
        e
        for e in result.select(system="TopPop", kind="level", group="")
        if e.key.startswith("recall")
    )
    assert e.n > sample.n == 60 or e.n > sample.n
    lists = Popular(by="mean").fit(data.interactions).recommend(data.test.users.ids, 10)
    rows = Recall(k=10, relevance="top-quartile", no_list="zero").measure(lists, data)
    assert e.value == pytest.approx(float(rows.columns["value"].mean()))


def test_second_runs_without_the_models_say_so(folder: Path) -> None:
    again = rescore(folder)
    told = [str(x) for x in again.exclusions]
    assert any(
        "3 of 3 systems excluded: ombud does not train what was recorded" in text for text in told
    )


def test_histograms_count_every_user_and_item(folder: Path) -> None:
    result = Result.load(folder)
    table = result.tables["activity-histogram"]
    data = load_data(complete(result.plan))
    whole = all_interactions(data, "test")
    counted = {k: n for k, n in table.group_by("what").agg(pl.col("count").sum()).iter_rows()}
    assert counted["interactions of a user"] == whole.n_users
    assert counted["mean rating of an item"] == whole.n_items


def test_attributes_of_items_that_are_numbers_are_drawn() -> None:
    data = small_world(seed=1).dataset
    names = data.interactions.items
    n = len(names)
    known = np.full(n, "known", dtype=object)
    hits = np.array([str(i) for i in range(n)], dtype=object)
    items = Items(names, {"hits": hits, "kind": known}, {"hits": known, "kind": known})
    made = Distribution().analyze(Context(replace(data, items=items), {}, Settings()))
    kinds = made.tables["activity-histogram"]["what"].unique().to_list()
    assert "hits" in kinds and "kind" not in kinds


def test_a_share_of_the_items_is_drawn_and_the_rest_is_counted() -> None:
    whole = all_interactions(load_data(complete(plan_of())), "test")
    cut = item_sample(whole, 0.4, 1)
    assert cut.n_items == round(0.4 * whole.n_items)
    assert any("outside a random share of 0.4 of the items" in str(e) for e in cut.exclusions)
    old = {r[:3] for r in whole.to_frame().iter_rows()}
    kept = set(cut.items.ids.tolist())
    assert {r[:3] for r in cut.to_frame().iter_rows()} == {r for r in old if r[1] in kept}
    assert (np.diff(cut.matrix.indptr) > 0).all()


@pytest.fixture(scope="module")
def on_everything() -> Result:
    plan = plan_of(
        amplification_on="everything",
        accuracy_users="all",
        item_share=0.5,
        trained=["TopPop", "SVD"],
    )
    return Audit.from_plan(plan).run()


def test_amplification_is_of_a_model_that_was_trained_on_everything(on_everything: Result) -> None:
    """Its values by user, by label and its histogram are those of a fully trained model."""
    plan = on_everything.plan
    data = load_data(plan)
    whole = all_interactions(load_data(complete(plan_of())), "test")
    assert data.test is None and len(data.interactions) == len(whole)
    # The users whose lists were asked for: a sample drawn with the seed of the plan.
    everyone = whole.users.ids
    drawn = generator(plan.seed, "sample").choice(len(everyone), plan.sample, replace=False)
    users = everyone[np.sort(drawn)]
    model = SVD(**{k: v for k, v in plan.systems["SVD"].items() if k != "type"}).fit(whole)
    lists = model.recommend(users, 20)
    own = UserAmplification(k=20, unknown="exclude").measure(lists, data).columns["value"]
    (e,) = on_everything.select(
        key="amplification-user(k=20,unknown=exclude)", system="SVD", kind="level", group=""
    )
    assert e.value == pytest.approx(float(np.nanmean(own)))
    histograms = [
        t for t in on_everything.tables.values()
        if {"key", "units", "to"} <= set(t.columns) and t["key"][0] == e.key
    ]  # fmt: skip
    (histogram,) = histograms
    of_svd = histogram.filter((pl.col("system") == "SVD") & (pl.col("label") == ""))
    assert of_svd["units"].sum() == np.isfinite(own).sum()
    labels = {
        e.label
        for e in on_everything.select(key="amplification(k=20,unknown=exclude)", system="SVD")
    }
    assert len(labels) == len(data.labels.names)


def test_accuracy_is_measured_on_a_split_of_its_own(on_everything: Result) -> None:
    """Systems are trained again on 90% of each user's interactions with half of the items."""
    whole = all_interactions(load_data(complete(plan_of())), "test")
    parts = per_user(item_sample(whole, 0.5, 1), share=0.1, seed=1)
    data = replace(load_data(on_everything.plan), interactions=parts.train, test=parts.test)
    held = parts.test.users.ids[np.diff(parts.test.matrix.indptr) > 0]
    lists = Popular(by="mean").fit(parts.train).recommend(held, 10)
    for metric, key in ((Recall, "recall"), (Precision, "precision")):
        rows = metric(k=10, relevance="top-quartile", no_list="zero").measure(lists, data)
        (e,) = (
            e for e in on_everything.select(system="TopPop", kind="level", group="")
            if e.key.startswith(f"accuracy-of-everyone/{key}")
        )  # fmt: skip
        assert e.n == int(np.isfinite(rows.columns["value"]).all(axis=1).sum()) > 60
        assert e.value == pytest.approx(float(np.nanmean(rows.columns["value"])))
    config = on_everything.plan.systems["SVD"]
    model = SVD(**{k: v for k, v in config.items() if k != "type"}).fit(parts.train)
    rated = parts.test.matrix.tocoo()
    guess = model.predict(parts.test.users.take(rated.row), parts.test.items.take(rated.col))
    (rmse,) = on_everything.select(key="accuracy-of-everyone/rmse", system="SVD", kind="level")
    assert rmse.value == pytest.approx(np.sqrt(np.mean((guess - rated.data) ** 2)), rel=1e-4)
    assert not on_everything.select(key="rmse")
    assert any("accuracy: items" in str(e) for e in on_everything.exclusions)


def test_tables_and_charts_show_accuracy_that_was_measured_apart(on_everything: Result) -> None:
    sections = {s.title: s for s in Report(on_everything).sections}
    names = [getattr(b, "name", "") for b in sections["Warnings and accuracy"].blocks]
    assert names == ["warnings-accuracy", "warnings-tradeoff"]
    (table,) = (b for b in sections["Tables of the published study"].blocks
                if getattr(b, "name", "") == "warnings-table-2")  # fmt: skip
    assert [c.whole for c in table.columns] == [
        "Algorithm", "Precision: @k=10", "Recall: @k=10", "F1: @k=10", "RMSE",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"amplification_on": "everything", "second_training": True}, "remove second_training"),
        ({"amplification_on": "everything", "split": {"method": "time"}}, "remove \\[data\\] test"),
        ({"item_share": 0.5, "systems": {"R": {"type": "recorded"}}}, "the plan trains no system"),
    ],
)
def test_options_that_leave_no_room_are_refused(more: dict[str, Any], said: str) -> None:
    outside = {name: more.pop(name) for name in ("split", "systems") if name in more}
    with pytest.raises(PlanError, match=said):
        complete(plan_of(**more).model_copy(update=outside))


def test_labels_are_gathered_under_their_parents(tmp_path: Path) -> None:
    plan = {"preset": "warnings", "data": {"source": "small", "options": {"seed": 3}}}
    rolled = Plan.from_dict(plan | {"options": {"roll_up": "warnings-ao3@1"}})
    with pytest.raises(PlanError, match="has no parent for any"):
        load_data(Plan.from_dict(plan | {"options": {"roll_up": "identity@1"}}))
    data = load_data(rolled)
    assert data.labels is not None and "rolled up to parents" in data.labels.rule
    assert "Aggression" in data.labels.names and "violence" not in data.labels.names


@given(st.integers(0, 10_000))
def test_a_parent_is_what_its_labels_allow(seed: int) -> None:
    rng = np.random.default_rng(seed)
    states = rng.integers(-2, 2, size=(6, 4)).astype(np.int8)
    labels = Labels(Vocabulary(np.arange(6)), ("a", "b", "c", "d"), states)
    rolled = labels.rolled_up({"a": "P", "b": "P", "c": "Q"})
    assert rolled.names == ("P", "Q", "d")
    for row, (p, q, d) in zip(states, rolled.states, strict=True):
        children = row[:2].tolist()
        wanted = 1 if 1 in children else 0 if children == [0, 0] else -2 if -2 in children else -1
        assert (p, q, d) == (wanted, row[2], row[3])
    wide = labels.to_wide()
    for name, column in zip(labels.names, states.T, strict=True):
        assert wide[name].to_list() == [None if s < 0 else s for s in column.tolist()]


def test_tuned_parameters_come_from_a_folder(tmp_path: Path) -> None:
    write_json(tmp_path / "t" / "tuned.json", {"model": "svd", "best": {"factors": 7}})
    plan = complete(plan_of(tuned=str(tmp_path)))
    assert plan.systems["SVD"] == {"factors": 7, "type": "svd", "seed": 1}
    with pytest.raises(PlanError, match="parameters of svd; no system is one"):
        complete(plan_of(ratings=False, tuned=str(tmp_path)))


def test_a_result_is_written_wide(folder: Path, tmp_path: Path) -> None:
    result = Result.load(folder)
    wide = result.to_wide()
    some = wide.filter((pl.col("key") == "rmse") & (pl.col("kind") == "level"))
    (svd,) = result.select(key="rmse", system="SVD", kind="level")
    assert some["SVD value"].to_list() == [svd.value] and some["SVD low"][0] == svd.interval[0]
    (path,) = Report(result).save(tmp_path / "wide.csv")
    read = pl.read_csv(path, infer_schema_length=None)
    assert read.height == wide.height and "TopPop value" in read.columns
    e = replace(result, estimates=tuple(x.replace(label="=1+1") for x in result.estimates[:1]))
    (path,) = Report(e).save(tmp_path / "hostile.csv")
    assert pl.read_csv(path)["label"][0] == "'=1+1"
