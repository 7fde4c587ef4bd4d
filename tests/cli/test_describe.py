"""``ombud describe`` knows every name, and its example plans are plans."""

from __future__ import annotations

import json
import tomllib

import pytest
from typer.testing import CliRunner

from ombud import registry
from ombud.audits import Plan
from ombud.audits.faults import check_names
from ombud.cli import app
from ombud.taxonomy import taxonomy_names

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
            check_names(plan)


def test_taxonomies_are_described() -> None:
    for name in taxonomy_names():
        assert name in described(name)


def test_arguments_are_shown_with_defaults() -> None:
    assert "k: int" in described("share-gap")
    assert "Example plan" in described("share-gap")


def test_a_wrong_name_gets_a_suggestion() -> None:
    result = CliRunner().invoke(app, ["describe", "share-gpa"])
    assert result.exit_code == 2
    assert "did you mean 'share-gap'" in result.output
