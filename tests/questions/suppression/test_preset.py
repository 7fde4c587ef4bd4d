"""The suppression preset: what it fills in, what it finds, and the gate on it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from ombud.audits import Audit, Plan, Result
from ombud.audits.audit import rescore
from ombud.audits.presets import complete
from ombud.cli import app
from ombud.errors import PlanError

WORDS = {"women": "women", "men": "men", "christian": "christian", "": "people"}


def write_world(folder: Path, *, factor: float, seed: int = 1, n: int = 1600) -> Path:
    """Write texts that name groups, and decisions that flag those about women more often."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(list(WORDS), size=n)
    texts = [f"text {i} about {WORDS[k]} and the sea" for i, k in enumerate(kind)]
    harmful = rng.random(n) < 0.3
    chance = np.where(harmful, 0.8, 0.1 * np.where(kind == "women", factor, 1.0))
    ids = [f"t{i}" for i in range(n)]
    family = np.where(np.arange(n) % 2 == 0, "traditional", "generative-ai")
    pl.DataFrame({"id": ids, "text": texts, "label": harmful, "family": family}).write_csv(
        folder / "texts.csv"
    )
    for name, shift in (("old", 0.0), ("new", 0.03)):
        u = np.random.default_rng(seed + 7).random(n)
        flagged = u < chance + shift
        outcome = np.where(flagged, "flagged", "allowed").astype(object)
        outcome[rng.random(n) < 0.01] = "refused"
        score = np.clip(0.5 * u + 0.4 * flagged, 0, 1)
        pl.DataFrame({"id": ids, "outcome": outcome, "score": score}).write_csv(
            folder / f"{name}.csv"
        )
    plan = folder / "plan.toml"
    plan.write_text(
        'preset = "suppression"\n[options]\nbefore = "old"\nafter = "new"\npages = true\n'
        'regressions = true\n[data]\ntexts = "texts.csv"\n'
        '[systems.old]\ntype = "recorded"\npath = "old.csv"\nmoderates = true\n'
        '[systems.new]\ntype = "recorded"\npath = "new.csv"\nmoderates = true\n'
        "[statistics]\nreplicates = 300\n"
    )
    return plan


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suppression")
    plan = write_world(folder, factor=3.0)
    Audit.from_plan(Plan.load(plan)).run(folder / "result")
    return folder / "result"


def test_what_the_plan_leaves_open_is_filled_in(tmp_path: Path) -> None:
    plan = complete(Plan.load(write_world(tmp_path, factor=1.0)))
    names = [spec["name"] for spec in plan.metrics]
    assert names[:5] == [
        "suppression",
        "suppression",
        "worst-suppression",
        "pooled-suppression",
        "false-positive-rate",
    ]
    assert {spec["name"] for spec in plan.analyses} == {
        "identity-tag-counts",
        "set-sizes",
        "tag-validation",
        "suppression-counts",
        "score-spread",
        "flag-regression",
        "score-regression",
        "drift",
    }
    assert plan.title == "Whose acceptable speech is flagged?"
    own = Plan.load(tmp_path / "plan.toml").model_copy(
        update={"metrics": ({"name": "false-positive-rate"},), "title": "Mine"}
    )
    assert complete(own).metrics == own.metrics
    assert complete(own).title == "Mine"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "guess"}, "options.mode"),
        ({"nonsense": 1}, "options.nonsense is not an option; known: mode, terms"),
        ({"regresions": True}, "did you mean 'regressions'"),
        ({"before": "old"}, "needs both options"),
    ],
)
def test_faults_of_options_are_said(options: dict[str, object], words: str) -> None:
    plan = Plan.from_dict(
        {"preset": "suppression", "options": options, "systems": {"s": {"type": "recorded"}}}
    )
    with pytest.raises(PlanError, match=words):
        complete(plan)


def test_systems_and_texts_are_needed(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"under \[systems\]"):
        complete(Plan.from_dict({"preset": "suppression"}))
    pl.DataFrame({"user": [1], "item": [2]}).write_csv(tmp_path / "i.csv")
    plan = write_world(tmp_path, factor=1.0)
    plan.write_text(plan.read_text().replace('texts = "texts.csv"', 'interactions = "i.csv"'))
    with pytest.raises(PlanError, match="needs texts"):
        Audit.from_plan(Plan.load(plan))


def test_planted_suppression_is_found(stored: Path) -> None:
    result = Result.load(stored)
    found = {
        (e.system, e.group): e
        for e in result.select(metric="suppression", label="", against="all texts")
    }
    women = found["old", "women"]
    assert women.interval is not None
    assert women.interval[0] > 1.3
    assert women.p_adjusted is not None
    assert women.p_adjusted < 0.01
    men = found["old", "men"].interval
    assert men is not None
    assert men[0] < 1
    assert found["old", "lgbt"].reason.startswith("not enough data")
    labels = {e.label for e in result.select(metric="suppression")}
    assert labels == {"", "generative-ai", "traditional"}
    assert {"identity-tag-counts", "score-spread", "flag-regression"} <= set(result.tables)
    drift = result.select(metric="drift of the false-positive rate", group="")
    assert drift[0].value == pytest.approx(0.03, abs=0.02)
    assert drift[0].p_value is not None
    assert drift[0].p_value < 0.01
    counts = result.tables["identity-tag-counts"]
    women_row = counts.filter(pl.col("group") == "women")
    assert women_row["whole_word"][0] == women_row["published"][0] > 300


def test_a_stored_result_is_measured_again_with_the_same_tags(stored: Path) -> None:
    again = rescore(stored)
    assert again.to_dict()["estimates"] == Result.load(stored).to_dict()["estimates"]


def test_own_term_list(tmp_path: Path) -> None:
    plan = write_world(tmp_path, factor=1.0)
    (tmp_path / "mine.csv").write_text("group,term\nsailors,sea\nnobody,unicorn\n")
    text = plan.read_text().replace("regressions = true", 'path = "mine.csv"')
    plan.write_text(text.replace("pages = true", "scores = false"))
    data = Audit.from_plan(Plan.load(plan)).data
    assert data.text_groups is not None
    assert data.text_groups.names == ("sailors", "nobody")
    assert data.text_groups.members[:, 0].all()


def test_groups_that_come_with_the_data_stay(tmp_path: Path) -> None:
    plan = write_world(tmp_path, factor=1.0)
    ids = [f"t{i}" for i in range(1600)]
    pl.DataFrame({"id": ids, "who": ["a", "b"] * 800}).write_csv(tmp_path / "g.csv")
    given = plan.read_text().replace("[systems.old]", 'text_groups = "g.csv"\n[systems.old]')
    plan.write_text(given)
    groups = Audit.from_plan(Plan.load(plan)).data.text_groups
    assert groups is not None
    assert groups.names == ("who=a", "who=b")
    plan.write_text(given.replace("pages = true", 'groups = "tagged"'))
    tagged = Audit.from_plan(Plan.load(plan)).data.text_groups
    assert tagged is not None
    assert "women" in tagged.names


def test_intersections_need_enough_texts(tmp_path: Path) -> None:
    plan = write_world(tmp_path, factor=1.0)
    texts = pl.read_csv(tmp_path / "texts.csv")
    both = pl.when(pl.int_range(pl.len()) < 300).then(pl.lit(" of a christian woman"))
    texts.with_columns(text=pl.col("text") + both.otherwise(pl.lit(""))).write_csv(
        tmp_path / "texts.csv"
    )
    plan.write_text("intersections = true\n" + plan.read_text())
    groups = Audit.from_plan(Plan.load(plan)).data.text_groups
    assert groups is not None
    assert [name for name in groups.names if " & " in name] == ["women & christian"]


def test_the_gate_closes_on_suppression_and_stays_open_without_it(
    stored: Path, tmp_path: Path
) -> None:
    condition = 'metric == "suppression" and kind == "ratio" and low > 1.25'
    closed = CliRunner().invoke(app, ["check", str(stored), "--fail-if", condition])
    assert closed.exit_code == 1
    assert "women" in closed.output
    plan = write_world(tmp_path, factor=1.0, seed=5)
    Audit.from_plan(Plan.load(plan)).run(tmp_path / "result")
    opened = CliRunner().invoke(app, ["check", str(tmp_path / "result"), "--fail-if", condition])
    assert opened.exit_code == 0, opened.output


@pytest.mark.realdata
def test_a_word_list_on_real_sentences(realdata: Path, tmp_path: Path) -> None:
    plan = Plan.from_dict(
        {
            "preset": "suppression",
            "options": {"scores": False, "mode": "published"},
            "data": {"source": "stormfront", "options": {"path": str(realdata / "stormfront")}},
            "systems": {"words": {"type": "keyword", "builtin": "terms-identity@1"}},
            "statistics": {"replicates": 300},
        }
    )
    audit = Audit.from_plan(plan)
    assert audit.data.text_groups is not None
    counts = dict(
        zip(audit.data.text_groups.names, audit.data.text_groups.members.sum(axis=0), strict=True)
    )
    assert counts["women"] == 727  # as published: 598 acceptable and 129 hateful sentences
    result = audit.run(tmp_path / "result")
    found = {e.group: e for e in result.select(metric="suppression")}
    lgbt = found["lgbt"].interval
    assert lgbt is not None
    assert lgbt[0] > 10  # slurs are terms of the groups they name
    assert found["straight"].value is None
