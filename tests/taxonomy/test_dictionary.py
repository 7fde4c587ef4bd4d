"""The dictionary of delicate terms, its scales, and dictionaries of one's own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ombud.errors import DataError, RegistryError
from ombud.taxonomy import load_dictionary, load_taxonomy, load_terms
from ombud.taxonomy.dictionary import Dictionary, DictionaryTerm, dictionary_names, read_dictionary
from ombud.taxonomy.model import load_crosswalk, load_scale
from ombud.taxonomy.resources import is_refused

# Table 6 of the paper, without the words that offend.
PAPER = {
    "addictions": {"alcohol", "gambling", "toxicomania"},
    "age": {"elderly", "elderspeak"},
    "appearance": {"unibrow", "humpback"},
    "class-status-occupation": {"yuppie", "unserved", "refugee"},
    "crime-violence": {"murder", "arsonist", "genocide"},
    "family-parenting": {"co-parenting", "surrogacy"},
    "gender-sexual-identity": {"heterosexual", "agenderfluid", "cross-dresser"},
    "medicine": {"venereal", "abortion", "chancre"},
    "mental-health-disability": {"able-bodied", "autist", "bulimia"},
    "paraphilias": {"asphyxiophile", "frotteurism"},
    "politics": {"democrat", "chauvinist", "islamo-leftism"},
    "race-ethnicity-origin": {"white", "brown"},
    "religion": {"bible", "burqa", "mosque"},
    "drugs": {"viagra", "clonazepam", "barbiturate"},
    "trauma-abuse": {"victim", "bullying", "gaslighting"},
}


def test_the_examples_of_the_paper_stand_under_their_topics() -> None:
    words = load_dictionary("delicate@1")
    for topic, examples in PAPER.items():
        assert examples <= {term.text for term in words.terms if term.topic == topic}


def test_every_topic_has_terms_and_every_severity_is_used() -> None:
    words = load_dictionary("delicate@1")
    assert words.topics == load_taxonomy("delicate@1").ids
    assert len(words.topics) == 17
    counts = Counter(term.topic for term in words.terms)
    assert min(counts.values()) >= 40
    assert {term.severity for term in words.terms} == set(words.scale)
    assert len(words.scale) == 4
    assert not any(is_refused(term.text) for term in words.terms)


def test_identity_terms_are_taken_from_their_lists() -> None:
    words = load_dictionary("delicate@1")
    texts = {(term.topic, term.text): term.severity for term in words.terms}
    for term in load_terms("terms-identity@1").terms:
        if term.group == "lgbt":
            assert ("gender-sexual-identity", term.text) in texts
    assert "her" not in words.texts  # a pronoun is no delicate term
    slurs = {t.text for t in load_terms("terms-identity@1").terms if t.kind == "slur"}
    own = {t.text for t in words.terms if t.origin != "terms-identity@1"}
    for term in words.terms:
        if term.origin == "terms-identity@1" and term.severity == "highly-offensive":
            assert term.text in slurs - (own - slurs)


def test_terms_never_show_in_a_representation() -> None:
    words = load_dictionary("delicate@1")
    assert "refugee" not in repr(words) + repr(words.terms[:2000])


def test_scales_are_in_order() -> None:
    assert load_scale("delicate-severity@1").ids == (
        "highly-offensive",
        "offensive",
        "mildly-offensive",
        "potentially-offensive",
    )
    assert [int(id) for id in load_scale("delicate-risk@1").ids] == list(range(6))
    assert len(load_scale("delicate-target@1").ids) == 4
    with pytest.raises(RegistryError, match="no scale is named 'delicate'"):
        load_scale("delicate")


def test_seven_groups_and_a_way_from_every_topic() -> None:
    coarse = load_taxonomy("delicate-coarse@1")
    assert len(coarse.ids) == 7
    mapped = load_taxonomy("delicate@1").map_to(coarse, relations=("exact", "broader"))
    assert all(len(groups) == 1 for groups in mapped.values())
    assert {group for groups in mapped.values() for group in groups} == set(coarse.ids) - {
        "self-harm"
    }
    # The published counts, several groups per text possible.
    counts = [int(label.description.split()[0]) for label in coarse.labels]
    assert sum(counts) == 392


RELATIONS = ("exact", "broader", "narrower", "related")


@pytest.mark.parametrize("source", ["warnings-ddd@1", "warnings-ao3@1", "identity@1"])
def test_coarse_crosswalks_go_by_way_of_the_topics(source: str) -> None:
    first = load_crosswalk(source, "delicate@1")
    second = load_crosswalk("delicate@1", "delicate-coarse@1")
    found: dict[tuple[str, str], int] = {}
    for here, middle, near in first.rows:
        for also, there, far in second.rows:
            if also == middle:
                # Exact keeps the other relation, broader of broader is broader, and so on.
                joined = far if near == "exact" else near if far in {"exact", near} else "related"
                strength = RELATIONS.index(joined)
                found[here, there] = min(strength, found.get((here, there), strength))
    rows = {(here, there, RELATIONS[strength]) for (here, there), strength in found.items()}
    assert rows == set(load_crosswalk(source, "delicate-coarse@1").rows)


def test_a_file_of_ones_own_extends_and_corrects(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(
        "topic,severity,term\nage,offensive,elderly\npolitics,mildly-offensive,gerontocracy\n"
    )
    words = load_dictionary("delicate@1")
    longer = words.extended(read_dictionary(path))
    assert len(longer.terms) == len(words.terms) + 1
    (elderly,) = [term for term in longer.terms if term.text == "elderly"]
    assert elderly.severity == "offensive"
    assert longer.digest != words.digest
    assert words.extended(words).digest == words.digest
    other = Dictionary("x", (), severities="delicate-risk@1")
    with pytest.raises(DataError, match="its severities of delicate-risk@1"):
        words.extended(other)


def test_all_faults_in_one_error_without_the_terms(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(
        "topic,severity,term\nage,worst,secretword\nnope,offensive,secretword\n"
        "age,offensive, x\nage,offensive,y\nage,offensive,y\n"
    )
    with pytest.raises(DataError) as caught:
        read_dictionary(path)
    assert len(caught.value.faults) == 4
    assert "secretword" not in str(caught.value)
    path.write_bytes(b"topic,severity,term\nage,offensive,\xff\n")
    with pytest.raises(DataError, match="not UTF-8"):
        read_dictionary(path)
    path.write_text("topic,severity,term\n")
    with pytest.raises(DataError, match="no terms found"):
        read_dictionary(path)


def test_names_and_parts() -> None:
    assert dictionary_names() == ("delicate@1",)
    part = load_dictionary().where(lambda term: term.severity == "highly-offensive")
    assert 0 < len(part.terms) < len(load_dictionary().terms)
    one = Dictionary("a", (DictionaryTerm("age", "offensive", "x"),))
    assert one.topics == ("age",)
