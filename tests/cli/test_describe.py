"""``ombud describe`` knows every name, and its example plans are plans."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from ombud import registry
from ombud.audits import Audit, Plan
from ombud.audits.plan import build_named
from ombud.cli import app
from ombud.cli.describe import described as described_as_data
from ombud.taxonomy import taxonomy_names
from ombud.worlds import small_world

NAMES = sorted(
    {
        name
        for kind in ("recommender", "moderator", "metric", "analysis", "preset", "source", "world")
        for name in registry.names(kind)
    }
)


def described(name: str) -> str:
    result = CliRunner().invoke(app, ["describe", name])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("name", NAMES)
def test_every_name_has_a_text_arguments_and_a_plan(name: str) -> None:
    result = CliRunner().invoke(app, ["describe", name, "--json"])
    assert result.exit_code == 0, result.output
    for one in json.loads(result.output):
        assert one["text"]
        known = {argument.name for argument in registry.arguments(one["kind"], name)}
        assert {argument["name"] for argument in one["arguments"]} == known
        plan = Plan.from_dict(tomllib.loads(one["example"]))
        assert name in one["example"]
        # Where a value of one's own belongs, the example has dots or a comment.
        if "..." not in one["example"] and "# " not in one["example"]:
            build_named(plan)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that example plans name: histories, labels, texts, and what a system answered."""
    folder = tmp_path_factory.mktemp("files")
    world = small_world(users=60, items=80, texts=300, templates=60, ratings=True)
    written = world.write(folder, 10)
    pl.read_parquet(written["texts"]).write_csv(folder / "texts.csv")
    creators = pl.read_parquet(written["creators"]).with_columns(
        identity=pl.col("identity").replace("unknown", None)
    )
    creators.unique("item").select("item", "identity").write_parquet(folder / "items.parquet")
    return folder


def examples(kind: str, of: str, files: Path) -> list[dict[str, Any]]:
    """Return the example plans that need no value of one's own, with the file of a system."""
    answers = {"recommender": "recommendations", "moderator": "decisions"}[of]
    plans = []
    for name in registry.names(kind):
        text = example(kind, name)
        about = "moderator" if "texts = " in text else "recommender"
        if about == of and "..." not in text and "# " not in text:
            plan = tomllib.loads(text)
            recorded = {"type": "recorded", "path": str(files / answers / "neutral.parquet")}
            trained = {"type": "svd", "factors": 4, "epochs": 2}
            kind_of = plan["systems"]["mine"]["type"]
            plan["systems"]["mine"] = trained if kind_of == "svd" else recorded
            plan["data"] = {key: str(files / value) for key, value in plan["data"].items()}
            plans.append(plan)
    return plans


def example(kind: str, name: str) -> str:
    return str(described_as_data(kind, name)["example"])


@pytest.mark.parametrize("of", ["recommender", "moderator"])
def test_the_examples_of_metrics_run(of: str, files: Path) -> None:
    together: dict[str, list[dict[str, Any]]] = {}
    for plan in examples("metric", of, files):  # those that differ in their metric are one run
        rest = {key: value for key, value in plan.items() if key != "metrics"}
        together.setdefault(json.dumps(rest, sort_keys=True), []).append(plan)
    assert sum(map(len, together.values())) >= 11
    for plans in together.values():
        metrics = [metric for plan in plans for metric in plan["metrics"]]
        one = plans[0] | {"metrics": metrics, "statistics": {"replicates": 100}}
        result = Audit.from_plan(Plan.from_dict(one)).run()
        assert {info.spec["name"] for info in result.metrics} == {m["name"] for m in metrics}


@pytest.mark.parametrize("preset", ["delicate", "suppression"])
def test_the_examples_of_presets_for_texts_run(preset: str, files: Path) -> None:
    (plan,) = (p for p in examples("preset", "moderator", files) if p["preset"] == preset)
    result = Audit.from_plan(Plan.from_dict(plan | {"statistics": {"replicates": 100}})).run()
    assert result.estimates


def test_taxonomies_are_described() -> None:
    for name in taxonomy_names():
        assert name in described(name)


def test_arguments_are_shown_with_defaults() -> None:
    assert "k: int" in described("share-gap")
    assert "Example plan" in described("share-gap")


def test_arguments_of_base_classes_are_documented_once() -> None:
    for name in ("anthropic", "llama-guard"):
        text = described(name)
        for argument in ("base_url", "edition", "max_bytes", "prompt", "temperature"):
            assert text.count(f"\n{argument}\n    ") == 1, (name, argument)
    assert "run: RunSettings, default RunSettings()" in text
    assert "services: collections.abc.Mapping" in described("counterfactual")
    assert "factory" not in described("counterfactual")


def test_a_wrong_name_gets_a_suggestion() -> None:
    result = CliRunner().invoke(app, ["describe", "share-gpa"])
    assert result.exit_code == 2
    assert "did you mean 'share-gap'" in result.output
