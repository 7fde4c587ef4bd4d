"""Identity tagging: whole words by default, the published quirks on request."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.errors import DataError
from ombud.taxonomy import TermList, load_terms
from ombud.taxonomy.terms import read_terms
from ombud.text import tag_identities
from ombud.text.identity import TagDifference

TERMS = read_terms(
    pl.DataFrame(
        {
            "group": ["cats", "dogs", "dogs", "cats", "cats"],
            "sub_identity": ["all", "small", "big", "wild", "wild"],
            "term": ["pet", "pet", "great-dane", "big cat", "Pet"],
            "kind": ["neutral", "slur", "neutral", "neutral", "neutral"],
        }
    )
)


def published_by_definition(text: str, terms: TermList, punctuation: str) -> set[int]:
    """The notes on the published code, word by word."""
    last = {term.text: index for index, term in enumerate(terms.terms)}
    for char in punctuation:
        text = text.replace(char, " ")
    text = text.lower()
    return {
        index
        for spelling, index in last.items()
        if any(f" {spelling.lower()}{end} " in text for end in ("", "s", "es"))
    }


def test_default_mode_by_hand() -> None:
    tags = tag_identities(["PETS!", "a great-dane", "big cats", "petty"], TERMS)
    assert tags.groups == ("cats", "dogs")
    assert tags.membership.tolist() == [[True, True], [False, True], [True, False], [False, False]]
    assert tags.sub_identities == (
        ("cats", "all"),
        ("cats", "wild"),
        ("dogs", "small"),
        ("dogs", "big"),
    )
    assert tags.sub_membership[0].tolist() == [True, True, True, False]
    assert tags.has_slur.tolist() == [True, False, False, False]
    assert tags.hits.toarray()[0].tolist() == [True, True, False, False, True]
    assert tags.counts() == {"cats": 2, "dogs": 2}
    assert len(tags) == 4
    assert tags.columns()["dogs"].tolist() == [True, True, False, False]


def test_published_mode_by_hand() -> None:
    texts = ["pet", "a pet here", "a (pet) here", "a pet; here", "a great-dane here", "a Pet here"]
    tags = tag_identities(texts, TERMS, mode="published")
    # The lower-case spelling counts for dogs only, where it stands last; "Pet" is another key.
    assert tags.of("dogs").tolist() == [False, True, True, False, False, True]
    assert tags.of("cats").tolist() == [False, True, True, False, False, True]
    assert tags.sub_membership[:, 0].sum() == 0
    kept = tag_identities(texts, TERMS, mode="published", punctuation=".,#")
    assert kept.of("dogs").tolist() == [False, True, False, False, True, True]


WORDS = st.sampled_from(
    ["pet", "Pets", "petes", "PET", "big", "cat", "cats", "big cat", "great-dane", "x", "'", "("]
    + [".", ";", "\t", "", "İ", "ß"]
)


@given(
    st.lists(st.lists(WORDS, max_size=8).map(" ".join), max_size=5), st.sampled_from(["", ".'-("])
)
def test_published_mode_is_its_definition(texts: list[str], punctuation: str) -> None:
    tags = tag_identities(texts, TERMS, mode="published", punctuation=punctuation)
    for row, text in enumerate(texts):
        found = set(np.flatnonzero(tags.hits[[row]].toarray()[0]).tolist())
        assert found == published_by_definition(text, TERMS, punctuation)


def test_difference_between_modes_is_counted() -> None:
    texts = ["pet", "a pet here", "the sea"]
    ours = tag_identities(texts, TERMS)
    theirs = tag_identities(texts, TERMS, mode="published")
    assert ours.compare(theirs)[1] == TagDifference(
        group="dogs", both=1, only_first=1, only_second=0
    )
    with pytest.raises(DataError, match="expected the same texts"):
        ours.compare(tag_identities(texts[:1], TERMS))


def test_bad_input() -> None:
    tags = tag_identities(["x"])
    with pytest.raises(DataError, match="no group is named 'cats'"):
        tags.of("cats")
    with pytest.raises(DataError, match="found 'fuzzy'"):
        tag_identities(["x"], mode="fuzzy")
    with pytest.raises(DataError, match="rows are not text"):
        tag_identities([None])


def test_no_texts() -> None:
    for mode, groups in (("whole-word", 10), ("published", 9)):
        tags = tag_identities([], mode=mode)
        assert tags.membership.shape == (0, groups)
        assert tags.hits.shape == (0, len(tags.terms.terms))


# Published counts per group: speech-suppression paper, Table 2.
GROUPS = load_terms("terms-identity@1").groups
PUBLISHED = {
    "stormfront": dict(zip(GROUPS, (476, 255, 1025, 727, 118, 327, 91, 1, 18), strict=True)),
    "tweeteval-hate": dict(zip(GROUPS, (932, 135, 2611, 4805, 121, 332, 90, 1, 27), strict=True)),
    "jigsaw-bias": dict(
        zip(GROUPS, (19682, 3028, 1514, 1514, 4542, 7570, 15140, 3028, 4542), strict=True)
    ),
}
# The default mode: how many texts it tags more than the published mode, and fewer.
DIFFERENCE = {
    "stormfront": dict(
        zip(
            GROUPS,
            [(29, 0), (13, 1), (69, 0), (51, 0), (4, 0), (16, 0), (6, 0), (0, 0), (0, 0)],
            strict=True,
        )
    ),
    "tweeteval-hate": dict(
        zip(
            GROUPS,
            [(173, 0), (23, 0), (153, 0), (396, 0), (8, 0), (25, 0), (9, 0), (1, 0), (6, 0)],
            strict=True,
        )
    ),
}


def real_texts(folder: Path, name: str) -> list[str]:
    if name == "tweeteval-hate":
        return [
            line
            for part in ("train", "val", "test")
            for line in (folder / name / f"{part}_text.txt")
            .read_text(encoding="utf-8")
            .removesuffix("\n")
            .split("\n")
        ]
    file, column = {
        "stormfront": ("stormfront_sentences.csv", "text"),
        "jigsaw-bias": ("en_sentence_templates.csv", "phrase"),
    }[name]
    with open(folder / name / file, encoding="utf-8", newline="") as rows:
        return [row[column] for row in csv.DictReader(rows)]


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["stormfront", "tweeteval-hate"])
def test_published_counts_and_the_difference_to_the_default(realdata: Path, name: str) -> None:
    texts = real_texts(realdata, name)
    theirs = tag_identities(texts, mode="published")
    assert theirs.counts() == PUBLISHED[name]
    ours = tag_identities(texts, load_terms("terms-identity@1"))
    found = {row.group: (row.only_first, row.only_second) for row in ours.compare(theirs)}
    assert found == DIFFERENCE[name]
    assert 0.91 < theirs.membership.sum() / ours.membership.sum() < 0.95


@pytest.mark.realdata
def test_published_counts_of_jigsaw_bias(realdata: Path) -> None:
    texts = real_texts(realdata, "jigsaw-bias")
    tags = tag_identities(texts, load_terms("terms-jigsaw-bias@1"), suffixes=("",))
    assert tags.counts() == PUBLISHED["jigsaw-bias"]
    assert tags.membership.sum(axis=1).max() == 1
    # The templates put the identity word last, which the published matching cannot see.
    seen = tag_identities(texts, mode="published").membership.sum()
    assert seen < 0.05 * tags.membership.sum()
