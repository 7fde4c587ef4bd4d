"""From an old moderator to a new one: the threshold, the test, and what the command writes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from ombud.audits.analysis import Context
from ombud.audits.gate import Gate
from ombud.audits.plan import Plan
from ombud.audits.result import Result
from ombud.cli import app
from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions, Outcome
from ombud.data.groups import Grouping
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.metrics.engine.estimator import Settings
from ombud.questions.migration import ALL_FLAGS, APART, FLAGS, MigrationTest
from ombud.questions.suppression.changes import WRONG
from ombud.stats.estimate import Estimate
from ombud.systems.moderators import PolicyModerator, Price


def world(
    seed: int, shift: float, n: int = 1200, labels: bool = False, clusters: int = 0
) -> tuple[Dataset, dict[str, Decisions]]:
    """Texts of two groups; the new moderator scores group a higher by a shift."""
    rng = np.random.default_rng(seed)
    member = rng.random(n) < 0.5
    truth = (rng.random(n) < 0.3).astype(np.int8) if labels else np.full(n, -1, dtype=np.int8)
    harm = rng.normal(size=n) + 1.5 * (truth == 1)
    scores = [
        (harm + rng.normal(size=n) * 0.7 + extra * member).astype(np.float32)
        for extra in (0.0, shift)
    ]
    ids = np.arange(n)
    shared = rng.integers(clusters, size=n) if clusters else None
    words = np.array([f"text {i}" for i in range(n)], dtype=object)
    texts = Texts(ids, words, truth, clusters=shared)
    groups = Grouping.from_values(ids, {"about": np.where(member, "a", "b")})
    old = Decisions(ids, (scores[0] > 0.8).astype(np.int8), scores[0])
    new = Decisions(ids, np.full(n, Outcome.SCORED, dtype=np.int8), scores[1])
    return Dataset(texts=texts, text_groups=groups), {"old": old, "new": new}


def changes(seed: int, shift: float, **options: Any) -> dict[str, Estimate]:
    match = options.pop("match", "flag-rate")
    share = options.pop("share", 0.5)
    data, outputs = world(seed, shift, **options)
    test = MigrationTest(old="old", new="new", match=match, share=share)
    found = test.analyze(Context(data, outputs, Settings(replicates=200, seed=seed)))
    return {e.group: e for e in found.estimates if e.key == APART}


def significant(e: Estimate) -> bool:
    return e.p_adjusted is not None and e.p_adjusted < 0.05


def simulated(times: int, **options: Any) -> tuple[int, int]:
    """In how many simulations a planted difference is found, and a planted equality is not."""
    found = unfound = 0
    for seed in range(times):
        one = changes(seed, 0.8, **options)
        up = one["about=a"]
        assert up.value is not None
        found += significant(up) and up.value > 0
        unfound += not any(significant(e) for g, e in changes(seed, 0.0, **options).items() if g)
    return found, unfound


def test_a_planted_difference_is_found_and_a_planted_equality_is_not() -> None:
    found, unfound = simulated(12)
    assert found == 12 and unfound >= 10


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{}, {"labels": True, "match": "false-positive-rate"}, {"clusters": 100}],
    ids=["flag rate", "false-positive rate", "clusters"],
)
def test_in_two_hundred_simulations(options: dict[str, Any]) -> None:
    found, unfound = simulated(200, **options)
    # A test at its level is silent in 190 of 200; 181 allows for three standard errors.
    assert found >= 190 and unfound >= 181


def test_the_threshold_by_hand_and_the_test_by_another_route() -> None:
    data, outputs = world(3, 0.5)
    result = MigrationTest(old="old", new="new", match="flag-rate").analyze(
        Context(data, outputs, Settings(replicates=100, seed=3))
    )
    fact = result.tables["migration"].row(0, named=True)
    assert fact["chosen_on"] == 600 and fact["texts"] == 600
    assert fact["chosen_new_flag_rate"] == pytest.approx(fact["chosen_old_flag_rate"])
    # Without the code: of the texts that chose, as many scores reach the threshold as old flags.
    new = outputs["new"].scores >= fact["threshold"]
    old = outputs["old"].outcomes == 1
    assert old.sum() == pytest.approx(600 * (fact["chosen_old_flag_rate"] + fact["old_flag_rate"]))
    assert new.sum() == pytest.approx(600 * (fact["chosen_new_flag_rate"] + fact["new_flag_rate"]))
    change = next(e for e in result.estimates if e.key == FLAGS and not e.group)
    assert change.value == pytest.approx(fact["new_flag_rate"] - fact["old_flag_rate"])
    assert change.details["up"] - change.details["down"] == pytest.approx(600 * (change.value or 0))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.1, 0.9), st.integers(4, 60))
def test_clusters_stay_together_and_no_text_is_in_both_halves(
    seed: int, share: float, clusters: int
) -> None:
    data, outputs = world(seed, 0.3, n=300, clusters=clusters)
    test = MigrationTest(old="old", new="new", share=share)
    assert data.texts is not None and data.texts.clusters is not None
    chosen = test._chosen(300, data.texts.clusters, Settings(seed=seed))
    assert 0 < chosen.sum() < 300
    for cluster in np.unique(data.texts.clusters):
        assert len(set(chosen[data.texts.clusters == cluster].tolist())) == 1


def test_what_a_maker_recommends_needs_decisions_and_is_tested_on_all() -> None:
    data, outputs = world(1, 0.5)
    recommended = MigrationTest(old="old", new="new", match="none")
    with pytest.raises(PlanError, match="scores and no decisions"):
        recommended.analyze(Context(data, outputs, Settings(replicates=100)))
    outputs["new"] = Decisions(
        outputs["new"].ids, (outputs["new"].scores > 1).astype(np.int8), outputs["new"].scores
    )
    found = recommended.analyze(Context(data, outputs, Settings(replicates=100)))
    fact = found.tables["migration"].row(0, named=True)
    assert fact["threshold"] is None and fact["chosen_on"] == 0 and fact["texts"] == 1200


def test_categories_and_what_cannot_be_matched() -> None:
    data, outputs = world(2, 0.0, n=200)
    rng = np.random.default_rng(0)
    a, b = rng.random(200), rng.random(200)
    old = np.column_stack([a, b]).astype(np.float32)
    new = np.column_stack([b**3, rng.random(200)]).astype(np.float32)
    parts = outputs["old"], outputs["new"]
    outcomes = parts[0].outcomes.copy()
    outcomes[:3] = Outcome.REFUSED
    outputs["old"] = Decisions(parts[0].ids, outcomes, parts[0].scores, ("INSULT", "THREAT"), old)
    outputs["new"] = Decisions(
        parts[1].ids, parts[1].outcomes, parts[1].scores, ("violence", "x"), new
    )
    test = MigrationTest(old="old", new="new")
    result = test.analyze(Context(data, outputs, Settings(replicates=100)))
    rows = {(r["from"], r["category"]): r for r in result.tables["migration-categories"].to_dicts()}
    assert rows["old", "THREAT"]["counterpart"] == "violence"
    assert rows["old", "THREAT"]["correlation"] == pytest.approx(1.0)
    assert rows["old", "INSULT"]["counterpart"] == ""
    assert rows["new", "x"]["counterpart"] == ""
    lost = {r["what"]: r["count"] for r in result.tables["migration-unmatched"].to_dicts()}
    assert lost["answers of old that are refused"] == 3
    assert lost["texts that only one of both decided, which count nowhere"] == 3


def write(folder: Path, n: int = 600, labels: bool = True) -> None:
    data, outputs = world(5, 0.9, n=n, labels=labels)
    assert data.texts is not None
    member = data.text_groups is not None and data.text_groups.aligned(data.texts.ids)[:, 0]
    words = np.where(member, "women said @someone https://x.org", "the men said")
    frame = pl.DataFrame({"id": data.texts.ids, "text": [f"{w} {i}" for i, w in enumerate(words)]})
    if labels:
        frame = frame.with_columns(label=data.texts.truth)
    frame.write_csv(folder / "texts.csv")
    for name, one in outputs.items():
        pl.DataFrame({"id": one.ids, "score": one.scores}).write_csv(folder / f"{name}.csv")


def run(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, ["migrate", *map(str, arguments)])


def check_findings(folder: Path) -> None:
    """Each finding states both levels, those of other texts, and the difference of its numbers."""
    found = {e.group: e for e in Result.load(folder).estimates if e.key == APART}
    words = " ".join(re.sub(r"<[^>]+>", " ", (folder / "report.html").read_text()).split())
    sentences = re.findall(
        r"flags acceptable texts about (\w+) (more|less) often than the old moderator, relative to "
        r"other texts: ([\d.]+)%, where the old one flags ([\d.]+)%; of other texts, ([\d.]+)% and "
        r"([\d.]+)%\. ([+\u2212])([\d.]+) percentage points relative to other texts \(95% CI",
        words,
    )
    assert sentences
    for group, more, *rates, sign, size in sentences:
        after, before, others_after, others_before = map(float, rates)
        difference = float(size) * (1 if sign == "+" else -1)
        assert (more == "more") == (difference > 0)
        assert (after - before) - (others_after - others_before) == pytest.approx(
            difference, abs=0.06
        )
        e = found[group]
        assert difference == pytest.approx(100 * (e.value or 0.0), abs=0.051)
        assert (after, before) == pytest.approx(
            (100 * e.details["after"], 100 * e.details["before"]), abs=0.051
        )


def test_the_command_writes_a_report_a_plan_and_a_gate(tmp_path: Path) -> None:
    write(tmp_path)
    folder = tmp_path / "moved"
    files = tmp_path / "old.csv", tmp_path / "new.csv", "--texts", tmp_path / "texts.csv"
    made = run(*files, "--old-threshold", "0.8", "--match", "false-positive-rate", "-o", folder)
    assert made.exit_code == 0, made.output
    assert "more acceptable texts about women than the old moderator" in " ".join(
        made.output.split()
    )
    assert "flags are not measured" not in made.output
    check_findings(folder / "migration.result")
    result = Result.load(folder / "migration.result")
    assert {e.key for e in result.estimates} >= {WRONG, ALL_FLAGS}
    page = (folder / "migration.result" / "report.html").read_text()
    for words in ("chosen on", "Texts that change sides", "What cannot be matched", "@user [link]"):
        assert words in page, words
    assert "@someone" not in page and "x.org" not in page
    assert "Categories cannot be mapped" in page and "recorded outputs state neither" in page
    # Afterwards: the new moderator against itself as it was, and a gate that is open now.
    after = Plan.load(folder / "after.toml")
    threshold = result.tables["migration"]["threshold"][0]
    assert after.options["new_threshold"] == threshold
    assert len(Gate.load(folder / "gate.toml").expect) == 2
    cli = CliRunner()
    then = folder / "after.result"
    assert cli.invoke(app, ["run", str(folder / "after.toml"), "-o", str(then)]).exit_code == 0
    gate = ["check", str(then), "--gate", str(folder / "gate.toml")]
    assert cli.invoke(app, [*gate, "--fail-if-undefined"]).exit_code == 0
    # A new moderator that drifts closes it.
    shifted = pl.read_csv(tmp_path / "new.csv").with_columns(pl.col("score") + 1.5)
    shifted.write_csv(tmp_path / "new.csv")
    then = folder / "drifted.result"
    assert cli.invoke(app, ["run", str(folder / "after.toml"), "-o", str(then)]).exit_code == 0
    gate[1] = str(then)
    assert cli.invoke(app, gate).exit_code == 1
    again = run(*files, "--old-threshold", "0.7", "-o", folder)
    assert again.exit_code == 2 and "is of another migration" in again.output


def test_without_labels_the_flag_rate_answers(tmp_path: Path) -> None:
    write(tmp_path, labels=False)
    files = tmp_path / "old.csv", tmp_path / "new.csv", "--texts", tmp_path / "texts.csv"
    made = run(*files, "--old-threshold", "0.8", "-o", tmp_path / "moved", "--json")
    assert made.exit_code == 0, made.output
    verdict = json.loads(made.output)["verdicts"][0]
    assert verdict["answer"] == "yes"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["old.csv", "new.csv", "--texts", "texts.csv"], "scores and no decisions"),
        (["old.csv", "new.csv"], "--texts is needed"),
        (["old.csv", "--texts", "texts.csv"], "name the new moderator"),
        (["old.csv", "new.csv", "--texts", "none.csv"], "there is no such file"),
        (["old.csv", "new.csv", "--texts", "hatechek:none.csv"], "did you mean 'hatecheck'"),
        (["old.csv", "perspectiv", "--texts", "texts.csv"], "did you mean 'perspective'"),
        (["old.csv", "new.csv", "--texts", "texts.csv", "--match", "x"], "expected flag-rate"),
        (["old.csv", "new.csv", "--texts", "texts.csv", "--new-threshold", "1"], "recommended"),
        (["old.csv", "new.csv", "--texts", "texts.csv", "--store", "x.csv"], "takes one moderator"),
        (["old.csv", "--texts", "texts.csv", "--store", "x.xls"], "ends with .csv or .parquet"),
    ],
)
def test_what_the_command_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    write(tmp_path, n=40)
    monkeypatch.chdir(tmp_path)
    made = run(*arguments)
    assert made.exit_code == 2 and words in " ".join(made.output.split()), made.output


def test_costs_are_those_of_the_plan(tmp_path: Path) -> None:
    data, outputs = world(2, 0.0, n=100)
    system = PolicyModerator(
        form="llama-guard",
        model="m",
        price=Price(0.5, "1k-characters"),
        cache=tmp_path / "a.sqlite",
    )
    context = Context(data, outputs, Settings(replicates=100), {"old": system})
    costs = MigrationTest(old="old", new="new").analyze(context).tables["migration-costs"]
    old, new = costs.to_dicts()
    assert data.texts is not None
    characters = sum(len(text) for text in data.texts.texts) + 100 * len("{text}")
    assert old["cost_per_1000"] == pytest.approx(0.5 * characters / 1000 * 10)
    assert old["seconds_per_1000"] is None, "nothing was asked yet"
    assert new["note"] == "recorded outputs state neither"
