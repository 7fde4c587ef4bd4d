"""The taxonomies that come with the package hold what their sources publish."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from ombud.errors import RegistryError
from ombud.taxonomy import load_taxonomy, taxonomy_names
from ombud.taxonomy.resources import is_refused, spelling_key

PUBLISHED = {"warnings-ddd@1": 137, "warnings-ao3@1": 36, "delicate@1": 17, "delicate-coarse@1": 7}


def test_names_are_versioned_and_bare_names_mean_the_newest() -> None:
    assert set(taxonomy_names()) == {*PUBLISHED, "identity@1"}
    assert load_taxonomy("delicate") == load_taxonomy("delicate@1")


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(RegistryError, match=r"warnings-dd@1.*warnings-ddd@1"):
        load_taxonomy("warnings-dd@1")


@pytest.mark.parametrize("key", PUBLISHED)
def test_every_published_label_is_there_or_refused(key: str) -> None:
    taxonomy = load_taxonomy(key)
    assert taxonomy.published == PUBLISHED[key]
    # Of the two refused topics of Does the Dog Die, one is among the 137.
    refused_of_source = {"warnings-ddd@1": 1}.get(key, 0)
    assert len(taxonomy.labels) + refused_of_source == PUBLISHED[key]


@pytest.mark.parametrize("key", taxonomy_names())
def test_files_are_complete(key: str) -> None:
    taxonomy = load_taxonomy(key)
    assert taxonomy.key == key
    assert taxonomy.source and taxonomy.licence and taxonomy.title
    assert len(set(taxonomy.ids)) == len(taxonomy.ids)
    assert {label.parent for label in taxonomy.labels} <= {*taxonomy.parent_ids, ""}
    for parent in taxonomy.parent_ids:
        assert taxonomy.children(parent), f"{parent} has no label below it"
    for label in taxonomy.labels:
        for spelling in (label.id, label.title, *label.aliases):
            assert taxonomy.resolve(spelling) == label.id


@pytest.mark.parametrize("key", taxonomy_names())
def test_refused_labels_are_known_and_never_shown(key: str) -> None:
    taxonomy = load_taxonomy(key)
    shown = repr(taxonomy) + repr(taxonomy.labels) + repr(taxonomy.parents)
    for spelling in taxonomy.refused_spellings:
        assert taxonomy.is_refused(spelling.upper())
        assert taxonomy.resolve(spelling) is None
        assert spelling not in spelling_key(shown)


def test_refused_spellings_hold_in_every_taxonomy() -> None:
    for spelling in ("sexual/minors", "CSAM", "Underage Sex"):
        assert is_refused(spelling)
        assert load_taxonomy("delicate@1").is_refused(spelling)
    for spelling in ("child-abuse", "sexual-content", "minor character dies", "incest"):
        assert not is_refused(spelling)


def test_fine_to_coarse_keeps_the_two_meanings_of_abuse_apart() -> None:
    ao3 = load_taxonomy("warnings-ao3@1")
    assert len(ao3.parents) == 7
    assert ao3.to_parents()["abuse"] == "abuse"
    assert {label.id for label in ao3.children("pregnancy")} == {
        "miscarriage",
        "abortion",
        "childbirth",
        "other-pregnancy",
    }


def test_identity_has_the_nine_groups_in_order() -> None:
    assert load_taxonomy("identity@1").parent_ids == (
        "non-white",
        "white",
        "men",
        "women",
        "christian",
        "non-christian",
        "lgbt",
        "straight",
        "disability",
    )


def test_unknown_label_and_parent_are_refused_by_name() -> None:
    taxonomy = load_taxonomy("warnings-ao3@1")
    with pytest.raises(RegistryError, match="no label 'nope'"):
        taxonomy["nope"]
    with pytest.raises(RegistryError, match="no parent 'nope'"):
        taxonomy.children("nope")
    assert taxonomy.resolve("nope") is None


@pytest.mark.realdata
def test_ao3_labels_and_map_are_those_of_webis(realdata: Path) -> None:
    folder = realdata / "webis-warnings" / "label-set"
    ao3 = load_taxonomy("warnings-ao3@1")
    assert list(ao3.ids) == json.loads((folder / "tw-fine-open.json").read_text())
    assert list(ao3.parent_ids) == json.loads((folder / "tw-coarse.json").read_text())
    published = json.loads((folder / "map-fine-to-coarse.json").read_text())
    published.pop("None")
    assert ao3.to_parents() == published


@pytest.mark.realdata
def test_topics_of_the_web_api_resolve(realdata: Path) -> None:
    ddd = load_taxonomy("warnings-ddd@1")
    with open(realdata / "ddd-sample" / "old_yeller_topic_votes.csv", encoding="utf-8") as file:
        topics = list(csv.DictReader(file))
    found = {}
    refused = 0
    for topic in topics:
        ids = {
            ddd.resolve(name)
            for name in (topic["topic_name"], topic["does_name"], f"topic {topic['topic_id']}")
        }
        assert len(ids) == 1, topic["topic_id"]
        refused += ddd.is_refused(topic["topic_name"])
        found[topic["topic_id"]] = ids.pop()
    assert refused == 2
    assert sorted(id for id in found.values() if id) == sorted(ddd.ids)
    # All topics up to number 307 are in the paper's list, and no later one is.
    assert {
        int(number) > 307 for number, id in found.items() if id is None and number != "287"
    } == {True}
