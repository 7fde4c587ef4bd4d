"""Options are written once: validation, help and documentation read the same fields."""

from __future__ import annotations

from inspect import getdoc

import pytest

from ombud import registry
from ombud.audits.presets import Options
from ombud.errors import PlanError

PRESETS = registry.names("preset")


@pytest.mark.parametrize("name", PRESETS)
def test_every_option_has_a_description_and_stands_in_the_help(name: str) -> None:
    preset = registry.get("preset", name)
    options: type[Options] = preset.options
    bare = [option for option, field in options.model_fields.items() if not field.description]
    assert not bare
    text = getdoc(preset) or ""
    missing = [option for option in options.model_fields if f"\n{option}\n    " not in text]
    assert not missing


@pytest.mark.parametrize("name", PRESETS)
def test_a_misspelled_option_names_the_nearest(name: str) -> None:
    options: type[Options] = registry.get("preset", name).options
    long = max(options.model_fields, key=len)
    with pytest.raises(PlanError, match=f"preset '{name}'.*(.|\n)*did you mean '{long}'"):
        options(**{long + "s": 1})


def test_all_faults_come_in_one_error() -> None:
    options: type[Options] = registry.get("preset", "suppression").options
    with pytest.raises(PlanError) as caught:
        options(events=0, mode="guess", nonsense=1)
    assert str(caught.value).count("\n  - options.") == 3


def test_an_analysis_of_a_preset_has_the_same_fields() -> None:
    analysis = registry.get("analysis", "counterfactual")
    preset = registry.get("preset", "counterfactual").options
    assert analysis.model_fields.keys() == preset.model_fields.keys()
    assert "\nParameters\n----------\nparts\n" in (getdoc(analysis) or "")


def test_defaults_are_written_as_a_plan_writes_them() -> None:
    text = getdoc(registry.get("preset", "warnings")) or ""
    assert "Default: ``[10, 50, 100]``." in text and 'Default: ``"auto"``.' in text
