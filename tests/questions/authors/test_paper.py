"""Ekstrand and Kluver in their own form: trained on all, whole rankings, users as dots, tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ombud.audits import Audit, Plan, Result
from ombud.audits.load import load_data
from ombud.audits.presets import complete
from ombud.errors import PlanError
from ombud.metrics.accuracy.ranking import MRR
from ombud.questions.authors.reranking import hold_one_out
from ombud.report import Report
from ombud.report.model import Chart, Table, plain
from ombud.stats.losses import relative_loss
from ombud.systems.recommenders import ItemKNN

OPTIONS = {
    "train_apart": True, "points": True, "candidates": "all", "feedback": "both", "users": 120,
    "accuracy_users": 80, "noun": "books", "placebo": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def plan(make_world: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Plan:
    file = make_world(tmp_path_factory.mktemp("paper"))
    own = Plan.load(file)
    return own.model_copy(update={"options": own.options | OPTIONS})


@pytest.fixture(scope="module")
def result(plan: Plan) -> Result:
    return Audit.from_plan(plan).run()


def block(result: Result, name: str, public: bool = False) -> Table | Chart | None:
    found = (b for s in Report(result, public=public).sections for b in s.blocks)
    return next((b for b in found if getattr(b, "name", "") == name), None)


def test_audited_lists_are_of_systems_trained_on_everything(plan: Plan) -> None:
    data = load_data(complete(plan))
    whole = load_data(complete(plan.model_copy(update={"preset": None, "options": {}})))
    assert data.test is None
    assert len(data.interactions) == len(whole.interactions)
    assert len(data.audited) == 120


def test_accuracy_is_of_systems_trained_without_what_is_held_out(
    plan: Plan, result: Result
) -> None:
    """By a second route: hold out, train, recommend and measure by hand."""
    data = load_data(complete(plan))
    taken = np.isin(data.interactions.users.ids, np.asarray(data.audited))
    second, held = hold_one_out(data.interactions, taken, 80, plan.seed)
    assert not taken[second].any() and held.sum() == len(second) == 80
    train, test = data.interactions.select(~held), data.interactions.select(held)
    lists = ItemKNN().fit(train).recommend(data.interactions.users.ids[second], train.n_items)
    rows = MRR(k=20, no_list="zero").measure(lists, replace(data, interactions=train, test=test))
    (e,) = (
        e for e in result.select(key="creator-reranking/mrr", system="item-kNN explicit")
        if e.group == "as recommended"
    )  # fmt: skip
    assert e.n == 80
    assert e.value == pytest.approx(float(rows.columns["value"].mean()))
    keys = {e.key for e in result.estimates}
    assert {"creator-accuracy/hit-rate", "creator-accuracy/ndcg"} <= keys
    assert not any(key.startswith("mrr") for key in keys)


def test_a_loss_on_few_hits_is_printed_with_them_and_said_nowhere(result: Result) -> None:
    found = result.select(key="creator-reranking/relative-loss")
    few = [e for e in found if e.value is None and "on_few_hits" in e.details]
    assert few
    table = block(result, "authors-table-10")
    assert isinstance(table, Table)
    cells = [cell for row in table.rows for cell in row if "hit" in cell.small]
    assert len(cells) == len(few) and all("%" in cell.text for cell in cells)
    # Everything but what a user has read: a few items of 200.
    top = max(result.tables["creator-reranking"]["candidates"])
    assert f"to {top} items" in table.caption and 150 < top < 200
    (verdict,) = Report(result).verdicts
    assert not any("GreedyEQ" in plain(t) for t in verdict.in_short)


@pytest.mark.parametrize(
    "half, doubt", [(0.01, ""), (0.04, "; every confidence interval includes no change")]
)
def test_the_cost_of_balancing_is_said_where_there_are_enough_hits(
    result: Result, half: float, doubt: str
) -> None:
    losses = iter((0.031, -0.02))
    made = tuple(
        e.replace(value=(value := next(losses)), interval=(value - half, value + half),
                  method="paired", reason="", reason_code="")
        if e.key.endswith("relative-loss") and e.details["strategy"] == "GreedyEQ" else e
        for e in result.estimates
    )  # fmt: skip
    (verdict,) = Report(replace(result, estimates=made)).verdicts
    assert plain(verdict.in_short[-1]) == (
        "Balancing each list (GreedyEQ) changes accuracy (MRR) by \u22123.1% (item-kNN explicit) "
        f"to +2.0% (item-kNN implicit){doubt}."
    )


def test_the_few_hits_of_a_loss_by_hand() -> None:
    e = relative_loss([1.0, 0.5, 0.0], [0.5, 0.5, 0.0], metric="loss", unit="user")
    assert e.value is None
    assert e.details["on_few_hits"] == pytest.approx(1 - 1.0 / 1.5)
    none = relative_loss([0.0, 0.0], [0.5, 0.0], metric="loss", unit="user")
    assert "on_few_hits" not in none.details


def test_users_are_dots_on_request_and_never_in_public(result: Result, authors_plan: Path) -> None:
    chart = block(result, "authors-users")
    assert isinstance(chart, Chart)
    table = result.tables["creator-propagation-users"]
    drawn = sum(panel.count("h0") for panel in chart.panels)
    assert drawn == table.filter(pl.col("within") == "").height > 100
    assert "Privacy" in chart.caption
    assert block(result, "authors-users", public=True) is None
    plain_plan = complete(Plan.load(authors_plan))
    (propagation,) = (a for a in plain_plan.analyses if a["name"] == "creator-propagation")
    assert "points" not in propagation


def test_both_kinds_of_feedback_are_rows_of_one_run(result: Result) -> None:
    nine, ten, six = (block(result, f"authors-table-{n}") for n in (9, 10, 6))
    assert isinstance(nine, Table) and isinstance(ten, Table) and isinstance(six, Table)
    kinds = {(row[0].text, row[1].text) for row in nine.rows}
    assert {("Explicit", "item-kNN"), ("Implicit", "item-kNN")} <= kinds
    assert [c.title for c in ten.columns][:2] == ["Feedback", "Algorithm"]
    shares = pl.DataFrame(result.tables["creator-propagation-predicted"])
    (observed,) = shares.filter(kind="observed", system="", identity="f")["mean"]
    assert six.rows[0][1].value == pytest.approx(observed)


def test_share_and_slope_are_said_in_a_sentence_each(result: Result) -> None:
    (verdict,) = Report(result).verdicts
    said = [plain(text) for text in verdict.in_short]
    assert "are books by women; in users\u2019 profiles," in said[0]
    assert "As profiles vary in the share of books by women" in said[1]
    assert said[0] in Report(result).markdown().replace("\\", "")
    assert "In short" in Report(result).html()
    assert "recommends books by women" in " ".join(plain(f.sentence) for f in verdict.findings) or (
        not verdict.findings
    )


def test_what_leaves_nothing_to_hold_out_is_refused(plan: Plan) -> None:
    options = plan.options | {"accuracy_users": 0}
    with pytest.raises(PlanError, match="train_apart holds out interactions itself"):
        complete(plan.model_copy(update={"options": options}))
