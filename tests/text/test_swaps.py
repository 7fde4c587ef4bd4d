"""Swaps: grammar kept, case kept, whole words; templates; countries and outlines."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.errors import DataError
from ombud.text.geography import countries, world_outlines
from ombud.text.swaps import GenderSwap, WordSwap, fill_templates, read_swap

PAIRS = [
    ("He saw her.", "She saw him."),
    ("He saw her yesterday.", "She saw him yesterday."),
    ("She lost her book.", "He lost his book."),
    ("His book is not hers.", "Her book is not his."),
    ("The book is his.", "The book is hers."),
    ("I told her to give him her last letter.", "I told him to give her his last letter."),
    ("I gave her a book and took his.", "I gave him a book and took hers."),
    ("They blamed her for it.", "They blamed him for it."),
    ("Her own mother hurt herself.", "His own father hurt himself."),
    ("MR. SMITH AND HIS WIFE", "MS. SMITH AND HER HUSBAND"),
    ("Mrs. Jones, a widow", "Mr. Jones, a widower"),
    ("He's here; she'd know, he\u2019ll come", "She's here; he'd know, she\u2019ll come"),
    ("My father's brothers", "My mother's sisters"),
    ("James met Mary", "Mary met James"),
    ("king Boy WOMEN", "queen Girl MEN"),
    ("The heron shed hermetic history.", "The heron shed hermetic history."),
    ('"I saw her," he said.', '"I saw him," she said.'),
    ("her", "him"),
    ("He gave her his book and her own.", "She gave him her book and his own."),
]


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_gender_swap_keeps_the_grammar(before: str, after: str) -> None:
    found = GenderSwap().apply([before])
    assert found.texts == [after]
    assert (found.changed[0] > 0) == (before != after)


def test_hard_sentences() -> None:
    """Sentences of our own; a question mark where the text has two readings.

    The rules were written with these at hand, so the rates on other sentences are higher: of
    the 140 that were added last, 5 were wrong before the rules were changed for them.
    """
    with Path(__file__).with_name("gender_sentences.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = GenderSwap().apply([row["before"] for row in rows])
    pairs = list(zip(rows, found.texts, strict=True))
    wrong = [
        f"{row['before']} -> {text}"
        for number, (row, text) in enumerate(pairs)
        if number not in found.abstained and text != row["after"]
    ]
    assert len(rows) > 500
    assert len(wrong) <= 0.015 * len(rows), wrong
    assert len(found.abstained) <= 0.05 * len(rows)
    assert all(found.texts[row] == rows[row]["before"] for row in found.abstained)
    assert (found.changed[sorted(found.abstained)] == 0).all()


def test_typography_is_kept() -> None:
    before = "\u201cShe\u2019s *his* aunt\u201d \u2014 HER\u00a0words\u2026 his/her; (s)he"
    after = "\u201cHe\u2019s *her* uncle\u201d \u2014 HIS\u00a0words\u2026 her/his; (s)he"
    assert GenderSwap().apply([before]).texts == [after]


def test_ways_and_directions() -> None:
    texts = ["He left.", "She left.", "He met her.", "It left.", "He and his son met her."]
    both = GenderSwap().apply(texts)
    assert both.direction.tolist() == [1, -1, 0, 0, 1]
    assert both.changed.tolist() == [1, 1, 2, 0, 4]
    only = GenderSwap(way="to female").apply(texts)
    assert only.texts == [
        "She left.",
        "She left.",
        "She met her.",
        "It left.",
        "She and her daughter met her.",
    ]
    male = GenderSwap(way="to male").apply(["She lost her book. His?"])
    assert male.texts == ["He lost his book. His?"]
    assert GenderSwap(names=False).apply(["James left his wife"]).texts == [
        "James left her husband"
    ]
    assert GenderSwap().apply(["a james, a lord"]).texts == ["a james, a lord"]


@given(
    st.lists(st.sampled_from(["he", "boys", "wife", "James", "sun", "king's", "MEN"]), max_size=9)
)
def test_swapping_twice_gives_the_text_back(words: list[str]) -> None:
    text = " ".join(words)
    once = GenderSwap().apply([text])
    assert GenderSwap().apply(once.texts).texts == [text]


@settings(deadline=None)
@given(st.text(max_size=60))
def test_a_text_without_changes_is_the_same_text(text: str) -> None:
    found = GenderSwap().apply([text])
    assert (found.texts[0] == text) or found.changed[0] > 0


@pytest.mark.realdata
def test_published_swaps_are_met(realdata: Path) -> None:
    """The six published pairs: the same words change, but for the first names chosen."""
    lines = (realdata / "delicate-excerpts" / "counterfactual_examples.json").read_text()
    pairs = [json.loads(line) for line in lines.splitlines() if line.strip()]
    assert len(pairs) == 6
    found = GenderSwap().apply([pair["text"] for pair in pairs])
    assert (found.changed > 0).all()
    assert found.texts[0] == pairs[0]["text_counterfactual"]


def test_words_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "pets.csv"
    path.write_text("from,to\ncat,dog\n")
    assert read_swap(path).apply(["A Cat, a dog."]).texts == ["A Dog, a cat."]
    assert read_swap(path, both=False).apply(["A Cat, a dog."]).texts == ["A Dog, a dog."]
    path.write_text("from,to\ncat,\ncat,dog\ncat,cow\n")
    with pytest.raises(DataError) as caught:
        read_swap(path)
    assert len(caught.value.faults) == 2
    with pytest.raises(DataError, match="one word"):
        WordSwap({"two words": "x"})
    with pytest.raises(DataError, match="no pairs"):
        WordSwap({})


def test_templates_are_filled_with_everything() -> None:
    filled = fill_templates(["{a} and {b}", "{b}: {a}"], {"a": ["x", "y"], "b": ["1", "2", "3"]})
    assert len(filled.texts) == 12
    assert filled.texts[:2] == ["x and 1", "x and 2"]
    assert filled.texts[-1] == "3: y"
    assert filled.template.tolist() == [0] * 6 + [1] * 6
    with pytest.raises(DataError, match="template 1: has the slots a"):
        fill_templates(["{a}"], {"b": ["x"]})
    with pytest.raises(DataError, match="template 2: "):
        fill_templates(["{a}", "{a"], {"a": ["x"]})
    with pytest.raises(DataError, match="no values"):
        fill_templates(["{a}"], {"a": []})


def test_a_template_cannot_reach_into_values() -> None:
    with pytest.raises(DataError, match="slots"):
        fill_templates(["{a.__class__}"], {"a": ["x"]})
    assert fill_templates(["{a!r:>9}"], {"a": ["x"]}).texts == ["x"]


def test_countries_are_those_of_iso_3166() -> None:
    found = countries()
    assert len(found) == 249
    assert len({c.iso2 for c in found}) == len({c.iso3 for c in found}) == 249
    assert len({c.in_sentence for c in found}) == 249
    assert all(len(c.numeric) == 3 and c.continent for c in found)
    assert all(-180 <= c.longitude <= 180 and -90 <= c.latitude <= 90 for c in found)
    sentence = {c.iso2: c.in_sentence for c in found}
    assert sentence["US"] == "the United States" and sentence["FR"] == "France"
    assert sentence["NL"] == "the Netherlands" and sentence["PH"] == "the Philippines"
    assert {c.continent for c in found} == {
        "Africa",
        "America",
        "Antarctica",
        "Asia",
        "Europe",
        "Oceania",
    }


def test_outlines_belong_to_countries() -> None:
    shapes = world_outlines()["objects"]["countries"]["geometries"]
    ids = {shape["id"] for shape in shapes if "id" in shape}
    assert {c.numeric for c in countries() if c.outline} == ids
    # Three outlines have no ISO code (Kosovo, Northern Cyprus, Somaliland): drawn without a value.
    assert len(shapes) - len(ids) == 3


def test_codes_agree_with_pycountry() -> None:
    pycountry = pytest.importorskip("pycountry")
    theirs = {(c.alpha_2, c.alpha_3, c.numeric) for c in pycountry.countries}
    assert {(c.iso2, c.iso3, c.numeric) for c in countries()} == theirs


def test_the_gender_list_has_no_word_twice() -> None:
    from importlib.resources import files

    text = files("ombud.text").joinpath("files", "gender-swap@2.csv").read_text()
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    female = [r["male"].lower() for r in rows if r["way"] != "to male"]
    male = [r["female"].lower() for r in rows if r["way"] != "to female"]
    assert len(set(female)) == len(female) and len(set(male)) == len(male)
    assert not set(female) & set(male)
