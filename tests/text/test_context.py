"""Words of more than one sense: when they name an identity, measured on sentences of our own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.errors import DataError
from ombud.taxonomy.terms import load_terms, read_terms
from ombud.text.identity import tag_identities
from ombud.text.matching import TermMatcher

SENTENCES = pl.read_csv(Path(__file__).with_name("identity_sentences.csv"))
TERMS = load_terms("terms-identity@2")
GROUPS = {"trans": "lgbt", "gay": "lgbt", "black": "non-white", "muslim": "non-christian"}


def measured(part: str) -> dict[str, tuple[int, int, int]]:
    """By target: sentences about it, sentences tagged, and both."""
    rows = SENTENCES.filter(pl.col("part") == part)
    tags = tag_identities(rows["text"].to_list(), TERMS)
    result = {}
    for target in rows["target"].unique(maintain_order=True):
        here = (rows["target"] == target).to_numpy()
        about = (rows["about"] == 1).to_numpy() & here
        tagged = tags.of(GROUPS.get(target, target)) & here
        result[target] = int(about.sum()), int(tagged.sum()), int((about & tagged).sum())
    return result


def test_every_sentence_by_which_the_rules_were_made() -> None:
    for target, (about, tagged, both) in measured("tuned").items():
        assert about == 10, target
        assert both == about == tagged, target


def test_sentences_written_after_the_rules() -> None:
    """Half of them not about the group; published in the guide as measured, not as promised."""
    found = measured("held-out")
    about, tagged, both = (sum(row[i] for row in found.values()) for i in range(3))
    assert (about, tagged, both) == (37, 37, 37)
    # The list before it, on the same sentences, for comparison.
    assert len(SENTENCES.filter(pl.col("part") == "held-out")) == 73


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("black coffee", ()),
        ("a straight line", ()),
        ("Ms. Gay called", ("women",)),
        ("black and Asian officers", ("non-white",)),
        ("the black, gay man", ("men", "non-white", "lgbt")),
        ("she was born blind", ("women", "disability")),
        ("Cookies are disabled.", ()),
        ("the blind alley", ()),
        ("GAY PEOPLE EXIST", ("lgbt",)),
        ("a gay-friendly bar near Gay-Lussac square", ("lgbt",)),
        ("bi-weekly", ()),
        ("she is bi", ("women", "lgbt")),
        ("immigrants are welcome", ("immigrants",)),
        ("flame retardant", ()),
        ("", ()),
    ],
)
def test_examples_by_hand(text: str, groups: tuple[str, ...]) -> None:
    tags = tag_identities([text])
    assert {g for g in tags.groups if tags.of(g)[0]} == set(groups)


def test_published_tags_and_older_lists_know_no_context() -> None:
    texts = ["a gay melody played", "some black coffee here"]
    assert tag_identities(texts, mode="published").counts()["lgbt"] == 1
    for key in ("terms-identity@1", "terms-identity-extended@1"):
        assert tag_identities(texts, load_terms(key)).counts()["lgbt"] == 1
        assert not any(term.context for term in load_terms(key).terms)
    assert tag_identities(texts, mode="published").terms.name == "terms-identity@1"
    assert tag_identities(texts).terms.name == "terms-identity@2"


SOME = "black the gay people is she straight line - and blind . white Gay trans of"
WORDS = st.sampled_from(SOME.split(" "))


@given(st.lists(st.lists(WORDS, max_size=8).map(" ".join), min_size=1, max_size=4))
def test_a_context_only_takes_away(texts: list[str]) -> None:
    tags = tag_identities(texts, TERMS)
    plain = TermMatcher([term.text for term in TERMS.terms], suffixes=("", "s", "es")).match(texts)
    every = plain.to_sparse().toarray()
    hits = tags.hits.toarray()
    assert not np.any(hits & ~every)
    always = np.array([not term.context for term in TERMS.terms])
    unruled = np.array([term.text in {"people of color", "woman"} for term in TERMS.terms])
    assert np.array_equal(hits[:, always & unruled], every[:, always & unruled])
    alone = [tag_identities([text], TERMS).membership[0] for text in texts]
    assert np.array_equal(tags.membership, np.array(alone)), "a text is tagged by itself"


def test_own_lists_may_have_contexts() -> None:
    frame = pl.DataFrame({"group": ["green"], "term": ["green"], "context": ["person"]})
    tags = tag_identities(["green people", "green tea"], read_terms(frame))
    assert tags.of("green").tolist() == [True, False]
    with pytest.raises(DataError, match="context is unknown"):
        read_terms(frame.with_columns(context=pl.lit("sometimes")))
