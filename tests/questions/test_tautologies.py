"""Groups and decisions from the same list of terms are no findings, whatever the detector."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

from ombud import registry
from ombud.audits import Plan, Result
from ombud.data.card import Card
from ombud.data.dataset import Dataset
from ombud.data.texts import Texts
from ombud.metrics.engine.estimate import estimate_metric
from ombud.metrics.engine.estimator import Settings
from ombud.questions.delicate.metrics import Recall
from ombud.questions.delicate.options import dictionary_of
from ombud.questions.delicate.preset import text_groups
from ombud.questions.tautologies import BY_TERMS, lists_named, tautologies
from ombud.stats import Estimate
from ombud.text.tagging import STATED

SHIPPED = {"dictionary": "delicate@1", "builtin": "terms-identity@1", "path": "own.txt"}
READS_LISTS = ("load_terms", "load_dictionary", "read_terms", "read_dictionary", "_lines(")


def _detectors() -> list[str]:
    return sorted(registry.names("moderator"))


@pytest.mark.parametrize("name", _detectors())
def test_a_detector_that_decides_by_a_list_is_known_to(name: str):
    """A new detector that reads term lists must name them in its options, or this fails."""
    made = registry.get("moderator", name)
    module = inspect.getmodule(made)
    assert module is not None
    reads = any(word in inspect.getsource(module) for word in READS_LISTS)
    options = [f.name for f in fields(made)] if is_dataclass(made) else []
    named = [o for o in options if o in SHIPPED and lists_named({o: SHIPPED[o]})]
    assert named or not reads


def _delicate(systems: dict[str, dict[str, str]], **options: str) -> Result:
    return Result(Plan(preset="delicate", options=options, systems=systems), ())


def _about(system: str, group: str) -> Estimate:
    return Estimate(
        metric="recall", value=-0.2, interval=(-0.3, -0.1), method="BCa", n=50, kind="gap",
        system=system, group=group, against="texts outside the group",
    )  # fmt: skip


SYSTEMS = {
    "terms": {"type": "keyword", "dictionary": "delicate@1"},
    "slurs": {"type": "keyword", "builtin": "terms-identity@1"},
    "mine": {"type": "keyword", "path": "own.txt"},
    "model": {"type": "detector", "path": "model.npz"},
    "typed": {"type": "keyword", "terms": ["Robbery", "page"]},
    "others": {"type": "keyword", "terms": ["page", "chapter"]},
    "wrapped": {"type": "http", "inner": {"type": "keyword", "dictionary": "delicate"}},
}


@pytest.mark.parametrize(
    ("group", "options", "systems"),
    [
        ("topic=addictions", {}, {"terms", "slurs", "typed", "wrapped"}),
        ("severity=offensive", {}, {"terms", "slurs", "typed", "wrapped"}),
        ("explicit=no term", {}, {"terms", "slurs", "typed", "wrapped"}),
        ("topic=addictions", {"path": "own.txt"}, {"terms", "slurs", "typed", "wrapped", "mine"}),
        ("length=over 200 words", {}, set()),
        ("source=forum", {}, set()),
    ],
)
def test_delicate_pairs_of_the_same_list_are_excluded(group, options, systems):
    holds = tautologies(_delicate(SYSTEMS, **options))
    assert {name for name in SYSTEMS if holds(_about(name, group))} == systems


def test_a_dictionary_finds_all_of_its_topics_by_definition():
    dictionary = dictionary_of()
    terms = [t.text for t in dictionary.terms if t.severity == dictionary.scale[0]][:60]
    said = [f"they said {term} again" for term in terms] + ["a plain sentence"] * 60
    texts = Texts.from_frame(
        {"id": np.arange(len(said)), "text": said, "label": np.ones(len(said), int)}
    )
    groups = text_groups(texts, ("topic", "explicit"), dictionary)
    made = registry.get("moderator", "keyword")(dictionary="delicate@1", plurals=True)
    data = Dataset(texts=texts, text_groups=groups)
    rows = {"terms": Recall().measure(made.moderate(texts), data)}
    found = estimate_metric(Recall(), rows, groups, Settings(replicates=50, minimum=1))
    levels = {e.group: e.value for e in found if e.kind == "level" and e.group}
    assert levels.pop("topic=no term") == levels.pop("explicit=no term") == 0
    assert levels
    assert set(levels.values()) == {1.0}
    holds = tautologies(_delicate({"terms": SYSTEMS["terms"]}))
    assert all(holds(e) for e in found if e.group)
    assert not any(holds(e) for e in found if not e.group)
    assert {e.group.partition("=")[0] for e in found if e.group} <= BY_TERMS


def test_suppression_excludes_the_list_that_tags_unless_the_data_states_its_groups():
    plan = Plan(preset="suppression", systems={k: SYSTEMS[k] for k in ("slurs", "mine", "model")})
    about = [_about(name, "women") for name in plan.systems]

    def excluded(result: Result) -> list[str]:
        return [e.system for e in about if tautologies(result)(e)]

    assert excluded(Result(plan, ())) == ["slurs"]
    own = plan.model_copy(update={"options": {"path": "own.txt"}})
    assert excluded(Result(own, ())) == ["mine"]
    stated = Card(name="texts", facts={STATED: "all"})
    assert excluded(Result(plan, (), card=stated)) == []


def test_other_plans_have_none():
    holds = tautologies(Result(Plan(systems=SYSTEMS), ()))
    assert not any(holds(_about(name, "topic=addictions")) for name in SYSTEMS)
