"""Options are written once: validation, help and documentation read the same fields."""

from __future__ import annotations

from inspect import getdoc

import pytest

from ombud import registry
from ombud.audits.presets import Options
from ombud.errors import PlanError, RegistryError

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


MODELS = [
    name
    for name in registry.names("analysis")
    if isinstance(model := registry.get("analysis", name), type) and issubclass(model, Options)
]


@pytest.mark.parametrize("name", MODELS)
def test_every_option_of_an_analysis_has_a_description(name: str) -> None:
    model = registry.get("analysis", name)
    text = getdoc(model) or ""
    for option, field in model.model_fields.items():
        assert field.description, option
        assert f"\n{option}\n    " in text, option
    with pytest.raises(RegistryError, match="it does not take"):
        registry.create("analysis", name, {"no_such_option": 1})


@pytest.mark.parametrize(
    ("preset", "analysis", "shared"),
    [
        ("suppression", "tag-validation", {"terms": "terms", "path": "path", "mode": "mode"}),
        ("suppression", "migration", {"match": "match"}),
        ("delicate", "base-rates", {"rates": "base_rates"}),
        ("delicate", "bias-tests", {"most": "swapped_texts", "sentence": "sentence"}),
        ("delicate", "error-terms", {"show": "show_terms", "examples": "examples"}),
        ("authors", "creator-lists", {"k": "k", "least": "least"}),
    ],
)
def test_an_analysis_takes_options_from_the_model_of_its_preset(
    preset: str, analysis: str, shared: dict[str, str]
) -> None:
    model, options = registry.get("analysis", analysis), registry.get("preset", preset).options
    for name, of in shared.items():
        mine, its = model.model_fields[name], options.model_fields[of]
        assert (mine.description, mine.default) == (its.description, its.default)
        assert mine.metadata == its.metadata


def test_a_limit_holds_for_preset_and_analysis() -> None:
    options: type[Options] = registry.get("preset", "delicate").options
    for make, option in (
        (options, "base_rates"),
        (registry.get("analysis", "base-rates"), "rates"),
    ):
        with pytest.raises(PlanError, match=f"{option}.0: Input should be less than 1"):
            make(**{option: (2.0,)})


def test_a_required_option_is_asked_for() -> None:
    with pytest.raises(RegistryError, match="it needs before; it needs after"):
        registry.create("analysis", "drift")


def test_defaults_are_written_as_a_plan_writes_them() -> None:
    text = getdoc(registry.get("preset", "warnings")) or ""
    assert "Default: ``[10, 50, 100]``." in text and 'Default: ``"auto"``.' in text
