"""Names, arguments, and the door for plugins."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from ombud import registry
from ombud.errors import RegistryError
from ombud.metrics import ShareGap


def test_a_built_in_thing_is_made_from_plain_values() -> None:
    made = registry.create("metric", "share-gap", {"k": 5, "unknown": "no"})
    assert made == ShareGap(k=5, unknown="no")
    assert made.registered_name == "share-gap"


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(RegistryError, match="no metric is called 'share-gup'; did you mean"):
        registry.get("metric", "share-gup")


def test_all_faults_of_arguments_in_one_message() -> None:
    with pytest.raises(RegistryError, match="does not take colour, size; it takes k, unknown"):
        registry.create("metric", "share-gap", {"colour": 1, "size": 2})
    with pytest.raises(RegistryError) as caught:
        registry.create("metric", "share-gap", {"k": "many", "unknown": "perhaps"})
    assert "k: " in str(caught.value) and "unknown: " in str(caught.value)


def test_a_value_that_the_thing_refuses_is_an_error_of_the_plan() -> None:
    with pytest.raises(RegistryError, match="recommender 'svd': .*factors"):
        registry.create("recommender", "svd", {"factors": -1})


def test_kinds_are_fixed() -> None:
    with pytest.raises(RegistryError, match="kind 'colour' is not one of"):
        registry.register("colour", "red")


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    registry.names("metric")
    monkeypatch.setattr(registry, "_things", {k: dict(v) for k, v in registry._things.items()})
    monkeypatch.setattr(registry, "_question_keys", dict(registry._question_keys))
    monkeypatch.setattr(registry, "_plugins", {})
    monkeypatch.setattr(registry, "_loaded", {"builtins": True, "plugins": False})
    monkeypatch.setenv("OMBUD_PLUGINS", "")


@pytest.mark.usefixtures("clean")
def test_a_question_keeps_its_keys_under_the_name_of_its_plugin() -> None:
    assert registry.question_keys("exposure") == ("share-gap",)
    registry._plugins["mypack"] = registry.Plugin("mypack", "mypack", "mypack")
    with registry._registering_for("mypack"):
        registry.question("mine", "a/", "b")(lambda: None)
        registry.question("always")(lambda: None)
    assert registry.question_keys("mypack/mine") == ("a/", "b")
    assert registry.question_keys("mypack/always") == ()


@pytest.mark.usefixtures("clean")
def test_two_things_cannot_have_one_name() -> None:
    with pytest.raises(RegistryError, match="registered twice"):

        @registry.metric("share-gap")
        @dataclass(frozen=True)
        class Another:
            """Another."""


@pytest.mark.usefixtures("clean")
def test_a_plugin_is_loaded_on_the_first_unknown_name(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("mypack_registry")

    def load(entry: EntryPoint) -> object:
        @registry.metric("thing")
        @dataclass(frozen=True)
        class Thing:
            """A thing."""

        return module

    monkeypatch.setitem(sys.modules, "mypack_registry", module)
    monkeypatch.setattr(EntryPoint, "load", load)
    entry = EntryPoint("mypack", "mypack_registry", "ombud")
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry])
    registry.get("metric", "share-gap")
    assert not registry._plugins, "a built-in name must not load plugins"
    assert registry.describe("metric", "mypack/thing") == "A thing."
    (plugin,) = registry.plugins()
    assert plugin.registered == ["metric:mypack/thing"]


@pytest.mark.usefixtures("clean")
def test_a_broken_plugin_warns_once_and_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("broken", "no_such_module_anywhere", "ombud")
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry])
    with pytest.warns(UserWarning, match="plugin 'broken' .* could not be loaded"):
        registry.names("metric")
    (plugin,) = registry.plugins()
    assert "ModuleNotFoundError" in plugin.error


@pytest.mark.usefixtures("clean")
def test_plugins_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMBUD_PLUGINS", "none")
    monkeypatch.setattr(registry, "entry_points", lambda group: pytest.fail("asked for plugins"))
    registry.names("metric")
