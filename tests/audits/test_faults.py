"""A plan's faults come all at once, with what was probably meant."""

from __future__ import annotations

import pytest

from ombud.audits import Audit, Plan
from ombud.audits.plan import build_named
from ombud.errors import PlanError


def test_misspelt_keys_are_named_with_a_suggestion() -> None:
    content = {
        "titel": "x",
        "data": {"interaction": "a.csv"},
        "statistics": {"level": 2, "replicate": 100},
    }
    with pytest.raises(PlanError) as error:
        Plan.from_dict(content)
    text = str(error.value)
    assert text.startswith("the plan: 4 faults")
    assert "the plan has no key 'titel'; did you mean 'title'?" in text
    assert "[data] has no key 'interaction'; did you mean 'interactions'?" in text
    assert "[statistics] has no key 'replicate'; did you mean 'replicates'?" in text
    assert "statistics.level: " in text
    assert "Extra inputs" not in text


def test_unknown_names_come_all_at_once() -> None:
    plan = Plan.from_dict(
        {
            "data": {"source": "smal"},
            "systems": {"mine": {"type": "populr"}},
            "metrics": [{"name": "amplifcation"}, {"name": "share-gap", "kk": 3}],
        }
    )
    with pytest.raises(PlanError) as error:
        Audit.from_plan(plan)
    text = str(error.value)
    assert text.startswith("the plan: 4 faults")
    assert "no source or world is called 'smal'; did you mean 'small'" in text
    assert "no recommender is called 'populr'; did you mean 'popular'?" in text
    assert "no metric is called 'amplifcation'; did you mean 'amplification'?" in text
    assert "it does not take kk" in text


def test_a_key_like_no_other_gets_the_keys_there_are() -> None:
    with pytest.raises(
        PlanError, match=r"\[statistics\] has no key 'zzz'; it has level, replicates"
    ):
        Plan.from_dict({"statistics": {"zzz": 1}})


def test_a_type_that_is_no_system_names_those_that_the_metrics_measure() -> None:
    plan = {
        "data": {"source": "small"},
        "systems": {"x": {"type": "als"}, "y": {"type": "zzz"}},
        "metrics": [{"name": "recall"}],
    }
    with pytest.raises(PlanError) as error:
        build_named(Plan.from_dict(plan))
    said = str(error.value)
    assert "no recommender is called 'als'; did you mean 'explicit-als' or 'implicit-als'" in said
    assert "no recommender is called 'zzz'; known: avoid-list" in said
    assert "perspective" not in said
