"""Sizes, stated and tagged groups, punctuation, sub-identities and the published tables."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ombud.audits import Audit, Plan
from ombud.audits.analysis import Context
from ombud.data.dataset import Dataset
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.metrics.engine.estimator import Settings
from ombud.questions.suppression.preset import tag_texts
from ombud.questions.suppression.texts import SetSizes, TagValidation, measured_quality
from ombud.report import Report
from ombud.stats.proportions import wilson
from ombud.taxonomy import load_terms
from ombud.text import tag_identities
from ombud.text.tagging import tags_of

EXAMPLE = Path(__file__).parents[3] / "examples" / "suppression" / "published-tables.toml"
HOW = Settings(replicates=50)


def world(**more: object) -> Dataset:
    """Two sets: one states groups (wrongly for one text), the other is to be tagged."""
    words = ["my sister spoke", "a stone fell", "her dog barked", "two men ran", "the sea is wide"]
    ids = np.arange(10)
    texts = Texts(
        ids,
        np.array(words * 2, dtype=object),
        np.array([0, 0, 1, 0, -1] * 2, dtype=np.int8),
        sets=np.array(["said"] * 5 + ["bare"] * 5, dtype=object),
    )
    members = np.zeros((10, 1), dtype=bool)
    members[[0, 1], 0] = True  # the first and, wrongly, the second; not the third
    groups = Grouping(Vocabulary(ids), ("women",), members, ("gender",))
    return Dataset(texts=texts, text_groups=groups, **more)  # type: ignore[arg-type]


def plan(**options: object) -> Plan:
    systems = {"x": {"type": "keyword", "terms": ["x"]}}
    return Plan(preset="suppression", options=options, systems=systems)


def test_sets_that_state_groups_keep_them_and_others_are_tagged() -> None:
    data = tag_texts(plan(), world())
    assert data.text_groups is not None
    women = data.text_groups.members[:, data.text_groups.names.index("women")]
    assert women.tolist() == [True, True, False, False, False, True, False, True, False, False]
    men = data.text_groups.members[:, data.text_groups.names.index("men")]
    assert men.tolist() == [False] * 8 + [True, False]
    every = tag_texts(plan(groups="tagged"), world()).text_groups
    assert every is not None
    assert every.members[:, every.names.index("women")].tolist() == [True, False, True] + [
        False,
        False,
    ] + [True, False, True, False, False]


def test_sizes_by_hand() -> None:
    table = SetSizes().analyze(Context(tag_texts(plan(), world()), {}, HOW)).tables["set-sizes"]
    bare, said, whole = table.to_dicts()
    assert (said["name"], said["texts"], said["mean_words"]) == ("said", 5, 3.2)
    assert (said["acceptable"], said["to_be_flagged"], said["label_unknown"]) == (3, 1, 1)
    assert (said["no_group"], bare["no_group"], whole["no_group"]) == (3, 2, 5)
    assert (bare["group: women"], bare["group: men"], whole["group: women"]) == (2, 1, 4)


def test_validation_by_hand() -> None:
    found = TagValidation().analyze(Context(tag_texts(plan(), world()), {}, HOW))
    row = found.tables["tag-validation"].filter(pl.col("group") == "women").to_dicts()[0]
    assert [row[k] for k in row if k != "group"] == [1, 1, 1, 2]
    by = {e.key: e for e in found.estimates if e.group == "women"}
    assert by["tag-validation/recall"].value == 0.5
    assert by["tag-validation/precision"].interval == pytest.approx(
        [float(end) for end in wilson(1, 2)]
    )
    assert by["tag-validation/accuracy"].value == 0.6
    assert (
        TagValidation().analyze(Context(tag_texts(plan(groups="tagged"), world()), {}, HOW)).tables
        == {}
    )


def test_published_punctuation_by_set() -> None:
    ids = np.arange(2)
    texts = Texts(
        ids,
        np.array(["see (sister) there"] * 2, dtype=object),
        np.zeros(2, dtype=np.int8),
        sets=np.array(["a", "b"], dtype=object),
    )
    data = Dataset(texts=texts)
    terms = load_terms("terms-identity@1")
    assert tags_of(data, terms, "published").of("women").tolist() == [True, True]
    some = tags_of(data, terms, "published", {"b": ".,#"})
    assert some.of("women").tolist() == [True, False]
    assert some.hits.toarray().any(axis=1).tolist() == [True, False]
    with pytest.raises(PlanError, match="punctuation names the data set 'c'; there are: a, b"):
        tags_of(data, terms, "published", {"c": "."})
    with pytest.raises(PlanError, match="punctuation needs mode"):
        tag_texts(plan(punctuation={"b": "."}), data)


def test_sub_identities_are_groups() -> None:
    texts = Texts.from_frame({"text": ["a mosque", "a rabbi", "a church"]})
    groups = tag_texts(plan(sub_identities=True), Dataset(texts=texts)).text_groups
    assert groups is not None
    found = dict(zip(groups.names, groups.members.T.tolist(), strict=True))
    assert found["non-christian"] == [True, True, False]
    assert found["non-christian/muslim"] == [True, False, False]
    assert found["non-christian/jewish"] == [False, True, False]


def test_the_extended_list_has_the_plain_words() -> None:
    texts = ["disabled people live here", "black kids play", "an autistic child", "the white house"]
    short = tag_identities(texts, load_terms("terms-identity@1"))
    more = tag_identities(texts, load_terms("terms-identity-extended@1"))
    assert not short.of("disability").any()
    assert more.of("disability").tolist() == [True, False, True, False]
    assert more.of("non-white").tolist() == [False, True, False, False]
    assert not more.of("white").any()
    assert set(load_terms("terms-identity@1").terms) < set(more.terms.terms)


def test_the_report_says_where_groups_come_from(tmp_path: Path) -> None:
    table = world().texts
    assert table is not None
    frame = table.to_frame().drop("set")
    many = pl.concat([frame.with_columns(id=pl.col("id") + 10 * k) for k in range(20)])
    many.write_csv(tmp_path / "texts.csv")
    ids = many["id"].to_list()
    pl.DataFrame({"id": ids, "flagged": [i % 3 == 0 for i in ids]}).write_csv(tmp_path / "m.csv")
    pl.DataFrame({"id": ids[:80], "group": ["women"] * 80}).write_csv(tmp_path / "groups.csv")
    content = {
        "preset": "suppression",
        "options": {"scores": False, "terms": "terms-identity@1"},
        "systems": {"m": {"type": "recorded", "path": "m.csv"}},
        "statistics": {"replicates": 100},
    }
    data = {"texts": "texts.csv"}
    tagged = Plan.from_dict(content | {"data": data}).relative_to(tmp_path)
    text = Report(Audit.from_plan(tagged).run()).markdown()
    assert "Texts are assigned to groups by term lists, matched as whole words" in text
    assert "Term lists that miss many mentions" in text
    assert "straight people (50%)" in text.lower()
    data |= {"text_groups": "groups.csv"}
    given = Plan.from_dict(content | {"data": data}).relative_to(tmp_path)
    text = Report(Audit.from_plan(given).run()).markdown()
    assert "The data itself states the groups." in text
    assert "are assigned to groups by term lists" not in text
    assert "no result of this audit uses them" in text


def published(realdata: Path) -> Plan:
    """Return the example plan, with the real data where it lies."""
    content = tomllib.loads(EXAMPLE.read_text())
    for part in content["data"]["options"]["parts"]:
        part["path"] = str(realdata / Path(part["path"]).name)
    return Plan.from_dict(content)


def test_the_example_is_a_plan() -> None:
    from ombud.audits.presets import complete

    plan = complete(Plan.load(EXAMPLE))
    assert {"set-sizes", "identity-tag-counts"} <= {spec["name"] for spec in plan.analyses}
    parts = plan.data.options["parts"]
    assert all(Path(part["path"]).is_absolute() for part in parts)


def test_the_published_prompt_of_llama_guard() -> None:
    from ombud.systems.moderators import LlamaGuard

    asked = LlamaGuard(prompt="published").question("some words")["messages"][0]["content"]
    assert asked.index("O6: Regulated") < asked.index("some words") < asked.index("safety assess")
    assert "{text}" not in asked


PUBLISHED = {
    "stormfront": (10_944, 18, (476, 255, 1025, 727, 118, 327, 91, 1, 18)),
    "tweeteval-hate": (12_962, 21, (932, 135, 2611, 4805, 121, 332, 90, 1, 27)),
    "jigsaw-bias": (60_560, 5, (19682, 3028, 1514, 1514, 4542, 7570, 15140, 3028, 4542)),
}


@pytest.mark.realdata
def test_one_plan_rebuilds_the_published_tables(realdata: Path) -> None:
    audit = Audit.from_plan(published(realdata))
    table = SetSizes().analyze(Context(audit.data, {}, HOW)).tables["set-sizes"]
    rows = {row["name"]: row for row in table.to_dicts() if row["kind"] == "set"}
    groups = load_terms("terms-identity@1").groups
    for name, (texts, words, tags) in PUBLISHED.items():
        assert rows[name]["texts"] == texts
        assert round(rows[name]["mean_words"]) == words
        assert tuple(rows[name][f"group: {group}"] for group in groups) == tags


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["@1", "@2", "-extended@1"])
def test_the_measured_quality_of_the_lists_is_what_it_says(realdata: Path, name: str) -> None:
    from ombud import registry

    terms = f"terms-identity{name}"
    data = registry.create("source", "jigsaw-bias", {"path": str(realdata / "jigsaw-bias")})
    found = TagValidation(terms=terms).analyze(Context(data, {}, HOW)).tables["tag-validation"]
    told = measured_quality(terms, "whole-word")
    assert told["group"].to_list() == found["group"].to_list()
    assert told["both"].to_list() == found["true_positive"].to_list()
    assert (told["stated"] - told["both"]).to_list() == found["false_negative"].to_list()
    assert (told["tagged"] - told["both"]).to_list() == found["false_positive"].to_list()
