"""The preset authors: samples, systems, tuned parameters, and what it finds in a made world."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ombud.audits import Audit, Plan, Result
from ombud.audits.audit import rescore
from ombud.audits.load import load_data
from ombud.audits.presets import complete
from ombud.errors import PlanError
from ombud.questions.authors.shares import ALL_CREATORS
from ombud.report.model import Table
from ombud.report.page import build_page


def changed(plan: Path, **options: object) -> Plan:
    whole = Plan.load(plan)
    return whole.model_copy(update={"options": {**whole.options, **options}})


def test_both_samples_are_drawn_and_do_not_overlap(authors_plan: Path) -> None:
    data = load_data(changed(authors_plan, users=50, accuracy_users=40))
    assert data.interactions is not None and data.test is not None and data.audited is not None
    held = np.diff(data.test.matrix.indptr)
    assert held.max() == 1 and held.sum() == 40
    assert len(data.audited) == 90
    # What is held out of one is nobody's training data, and everything else is.
    assert data.interactions.matrix.multiply(data.test.matrix).nnz == 0
    again = load_data(changed(authors_plan, users=50, accuracy_users=40))
    assert again.audited is not None
    np.testing.assert_array_equal(data.audited, again.audited)


def test_nothing_is_held_out_when_accuracy_is_not_asked_for(authors_plan: Path) -> None:
    plan = complete(changed(authors_plan, accuracy_users=0))
    assert load_data(plan).test is None
    assert "mrr" not in [m["name"] for m in plan.metrics]


def test_systems_follow_the_feedback(authors_plan: Path) -> None:
    made = complete(changed(authors_plan, trained=None, feedback="auto")).systems
    assert [c["type"] for c in made.values()] == ["user-knn", "item-knn", "explicit-als"]
    made = complete(changed(authors_plan, trained=None, feedback="implicit")).systems
    assert [c["type"] for c in made.values()] == ["user-knn", "item-knn", "implicit-als", "bpr"]


def test_both_forms_of_feedback_are_in_one_joint_fit(authors_plan: Path) -> None:
    plan = changed(
        authors_plan,
        trained=None,
        feedback="both",
        placebo=False,
        strategies=[],
        accuracy_users=0,
        users=80,
    )
    made = complete(plan)
    assert list(made.systems) == [
        "user-kNN explicit", "item-kNN explicit", "ALS explicit",
        "user-kNN implicit", "item-kNN implicit", "ALS implicit", "BPR",
    ]  # fmt: skip
    # A joint fit of seven systems takes a minute: two are run.
    some = plan.model_copy(update={"options": plan.options | {"trained": ["ALS"]}})
    systems = list(complete(some).systems)
    assert systems == ["ALS explicit", "ALS implicit"]
    result = Audit.from_plan(some).run()
    slopes = result.select("propagation/slope")
    assert sorted(e.system or "" for e in slopes) == systems
    # Every two systems are compared by joint draws.
    assert len(result.select("propagation/slope-difference")) == 1


def test_both_forms_need_ratings(authors_plan: Path, tmp_path: Path) -> None:
    ratings = pl.read_csv(authors_plan.parent / "ratings.csv").select("user", "item")
    ratings.write_csv(tmp_path / "ratings.csv")
    shutil.copy(authors_plan.parent / "items.csv", tmp_path)
    plan = tmp_path / "plan.toml"
    plan.write_text(authors_plan.read_text().replace("implicit", "both"))
    with pytest.raises(PlanError, match="needs ratings, and this data has none"):
        load_data(complete(Plan.load(plan)))


def test_parameters_come_from_tuning_folders(authors_plan: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tuned" / "knn"
    folder.mkdir(parents=True)
    (folder / "tuned.json").write_text(json.dumps({"model": "item-knn", "best": {"neighbours": 7}}))
    made = complete(changed(authors_plan, tuned=str(tmp_path / "tuned")))
    assert made.systems["item-kNN"] == {"neighbours": 7, "type": "item-knn"}
    assert "creator-tuning" not in [a["name"] for a in made.analyses]
    content = {"model": "item-knn", "best": {}, "metric": "mrr@20", "value": 0.25}
    (folder / "tuned.json").write_text(json.dumps(content))
    made = complete(changed(authors_plan, tuned=str(tmp_path / "tuned")))
    values = {"name": "creator-tuning", "metric": "mrr@20", "values": {"item-kNN": 0.25}}
    assert values in made.analyses
    with pytest.raises(PlanError, match="no finished search"):
        complete(changed(authors_plan, tuned=str(authors_plan.parent)))
    other = tmp_path / "tuned" / "als"
    other.mkdir()
    (other / "tuned.json").write_text(json.dumps({"model": "explicit-als", "best": {}}))
    with pytest.raises(PlanError, match="parameters of explicit-als; no system is one"):
        complete(changed(authors_plan, tuned=str(tmp_path / "tuned")))


def test_faults_come_together(authors_plan: Path) -> None:
    with pytest.raises(PlanError, match=r"(?s)options.k.*options.strategies"):
        complete(changed(authors_plan, k=0, strategies=["Fair"]))


def test_inferred_identities_must_be_asked_for(
    authors_plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ombud.audits import load

    data = load._load(Plan.load(authors_plan), {}, None)
    facts = data.card.model_copy(update={"facts": {"inferred_identities": "yes"}})
    object.__setattr__(data, "card", facts)
    monkeypatch.setattr(load, "_load", lambda *_: data)
    with pytest.raises(PlanError, match="inferred = true"):
        load_data(changed(authors_plan))
    assert load_data(changed(authors_plan, inferred=True)).audited is not None


def test_the_taste_of_users_shows_in_lists_and_the_placebo_does_not(authors_result: Result) -> None:
    (slope,) = authors_result.select("propagation/slope")
    assert slope.interval is not None and slope.interval[0] > 0
    assert "misfit" in slope.details and "above_one" in slope.details
    fits = {e.group for e in authors_result.select("propagation/spread")}
    assert fits == {"profile fit", "joint fit"}
    (placebo,) = authors_result.select("propagation-placebo/slope")
    assert placebo.value is None and placebo.label == "placebo"


def test_strategies_reach_their_target(authors_result: Result) -> None:
    shares = {
        e.details["strategy"]: e
        for e in authors_result.select("creator-pipeline/share")
        if e.details["stage"] == "reranked" and e.label == "f"
    }
    assert set(shares) == {"SingleEQ", "GreedyEQ", "GreedyReflect"}
    assert shares["GreedyEQ"].value == pytest.approx(0.5, abs=0.05)
    profiles = next(
        e
        for e in authors_result.select("creator-pipeline/share")
        if e.details["stage"] == "profiles" and e.label == "f"
    )
    assert profiles.value is not None
    assert shares["GreedyReflect"].value == pytest.approx(profiles.value, abs=0.05)
    losses = authors_result.select("creator-reranking/relative-loss")
    assert {e.details["strategy"] for e in losses} == set(shares)
    for e in losses:
        assert "hits_before" in e.details
        assert (e.value is None) == (e.details["hits_before"] < 50)


def test_every_estimate_has_a_key(authors_result: Result, three_result: Result) -> None:
    for result in (authors_result, three_result):
        assert all(e.key for e in result.estimates)


def test_three_identities_are_told_one_by_one(three_result: Result) -> None:
    slopes = three_result.select("propagation/slope")
    assert {e.label for e in slopes} == {"m", "f", "x"}
    shares = [
        e for e in three_result.select("creator-pipeline/share") if e.details["stage"] == "lists"
    ]
    assert sum(e.value or 0.0 for e in shares) == pytest.approx(1.0)


def test_a_rare_identity_is_not_enough_data_and_never_merged(
    make_world: Callable[[Path], Path], tmp_path: Path
) -> None:
    plan = make_world(tmp_path)
    text = (tmp_path / "items.csv").read_text().splitlines()
    row = next(i for i, line in enumerate(text) if line.endswith(",m,known"))
    text[row] = text[row].replace(",m,", ",x,")
    (tmp_path / "items.csv").write_text("\n".join(text) + "\n")
    made = Plan.load(plan)
    found = Audit.from_plan(
        made.model_copy(update={"options": {**made.options, "placebo": False}})
    ).run()
    rare = [e for e in found.select("propagation/slope") if e.label == "x"]
    assert rare and all("not enough data" in e.reason for e in rare)
    assert any(e.where == "reranking: x" for e in found.exclusions)
    assert {e.label for e in found.estimates if "pipeline" in e.key} == {"m", "f", "x"}


def test_a_stored_result_is_measured_again_to_the_same(
    authors_result: Result, authors_plan: Path
) -> None:
    again = rescore(authors_plan.parent / "result")
    first = [(e.key, e.label, e.system, e.group, e.value) for e in authors_result.estimates]
    assert first == [(e.key, e.label, e.system, e.group, e.value) for e in again.estimates]


def test_the_attribute_is_that_of_by_item(authors_plan: Path, tmp_path: Path) -> None:
    folder = authors_plan.parent
    items = pl.read_csv(folder / "items.csv").with_columns(creator=pl.lit("someone"))
    items.write_csv(tmp_path / "items.csv")
    shutil.copy(folder / "ratings.csv", tmp_path)
    attribute = next(c for c in items.columns if f"{c}_status" in items.columns)
    plan = tmp_path / "plan.toml"
    plan.write_text(f'by_item = ["{attribute}"]\n' + authors_plan.read_text())
    completed = complete(Plan.load(plan))
    assert {a["attribute"] for a in completed.analyses} == {attribute}
    assert "creator" in load_data(completed).items.attributes  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"target": {"f": 0.7, "m": 0.7}}, "add up to 1.4"),
        ({"target": {"f": 1.0}}, "the identities with enough items are"),
        ({"genres": ["nope"]}, "the data has no labels"),
        ({"exposure": True, "strategies": ["FA*IR"]}, "counts positions"),
    ],
)
def test_what_cannot_work_is_said_before_training(
    authors_plan: Path, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(PlanError, match=said):
        load_data(complete(changed(authors_plan, **options)))


def test_exposure_and_fewest_items_reach_the_analysis(authors_plan: Path) -> None:
    plan = complete(changed(authors_plan, exposure=True, fewest_items=7))
    (found,) = [a for a in plan.analyses if a["name"] == "creator-reranking"]
    assert found["exposure"] is True and found["fewest_items"] == 7


def tables(result: Result) -> list[Table]:
    blocks = (block for section in build_page(result).sections for block in section.blocks)
    return [block for block in blocks if isinstance(block, Table)]


def test_shares_with_all_creators_are_in_the_report(authors_plan: Path, tmp_path: Path) -> None:
    items = pl.read_csv(authors_plan.parent / "items.csv").select("item", "gender")
    # Every item has a second creator, of the other identity or unknown.
    second = items.with_columns(gender=pl.lit("f"))
    table = pl.concat([items, second]).with_columns(weight=pl.lit(0.5))
    table.write_parquet(tmp_path / "item_creators.parquet")
    plan = changed(
        authors_plan, creators=str(tmp_path / "item_creators.parquet"), placebo=False,
        strategies=[], accuracy_users=0,
    )  # fmt: skip
    result = Audit.from_plan(plan).run()
    found = result.select(ALL_CREATORS)
    shares = {(e.label, e.details["stage"]): e.value for e in found}
    assert {stage for _, stage in shares} == {"platform", "interactions", "profiles", "lists"}
    assert shares["f", "platform"] > 0.6 > shares["m", "platform"] > 0
    shown = [t for t in tables(result) if t.caption.startswith("Shares with all creators")]
    assert [len(t.rows) for t in shown] == [len(found)]
