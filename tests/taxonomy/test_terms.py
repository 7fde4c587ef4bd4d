"""Term lists: what comes with the package, and what a user brings."""

from __future__ import annotations

import ast
import csv
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

from ombud.errors import DataError, RegistryError
from ombud.taxonomy import load_taxonomy, load_terms, term_list_names
from ombud.taxonomy.terms import read_terms


@pytest.mark.parametrize("key", term_list_names())
def test_lists_agree_with_their_taxonomy(key: str) -> None:
    terms = load_terms(key)
    # The taxonomy is the paper's; the second version adds a group that the paper lacks.
    own = {"immigrants"} & set(terms.groups)
    assert tuple(g for g in terms.groups if g not in own) == load_taxonomy("identity@1").parent_ids
    assert not own or key == "terms-identity@2"
    assert all(
        f"{group}/{sub}" in load_taxonomy("identity@1")
        for group, sub in terms.sub_identities
        if group not in own
    )
    assert terms.source and terms.licence


def test_every_sub_identity_of_the_taxonomy_has_a_term() -> None:
    pairs = {f"{group}/{sub}" for group, sub in load_terms("terms-identity@1").sub_identities}
    assert pairs == set(load_taxonomy("identity@1").ids)


def test_terms_stay_out_of_representations() -> None:
    terms = load_terms("terms-jigsaw-bias@1")
    assert "buddhist" not in repr(terms) + repr(terms.terms[:40])


def test_unknown_list() -> None:
    with pytest.raises(RegistryError, match="no term list is named 'terms'"):
        load_terms("terms")


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_frame_of_ones_own(frame: type) -> None:
    terms = read_terms(frame({"group": ["cats", "dogs"], "term": ["tabby", "hound"]}))
    assert terms.groups == ("cats", "dogs")
    assert terms.sub_identities == (("cats", "cats"), ("dogs", "dogs"))
    assert {term.kind for term in terms.terms} == {"neutral"}


def test_a_frame_is_checked_against_a_taxonomy_on_request() -> None:
    frame = pl.DataFrame(
        {"group": ["lgbt", "cats"], "sub_identity": ["gay", "x"], "term": ["a", "b"]}
    )
    with pytest.raises(DataError, match="row 2: group is not one of identity@1"):
        read_terms(frame, taxonomy="identity@1")
    assert read_terms(frame[:1], taxonomy="identity@1").taxonomy == "identity@1"


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(
        "\ufeff# taxonomy: identity@1\ngroup,sub_identity,term,kind\nlgbt,gay,gay men,neutral\n",
        encoding="utf-8",
    )
    terms = read_terms(path)
    assert terms.name == "mine.csv"
    assert [(term.group, term.text) for term in terms.terms] == [("lgbt", "gay men")]
    assert terms.where(lambda term: term.kind == "slur").terms == ()


def test_all_faults_at_once_and_no_term_in_the_message(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(
        "# taxonomy: identity@1\n"
        "group,sub_identity,term,kind\n"
        "lgbt,gay,secretword,rude\n"
        "nobody,gay,secretword,slur\n"
        "lgbt,nobody,secretword,slur\n"
        "lgbt,gay,secretword,slur\n"
        "lgbt,gay,secretword,slur\n"
        ",gay,secretword,slur\n"
        "lgbt,gay, secretword,slur\n"
        "lgbt,gay,,slur\n"
        f"lgbt,gay,{'secretword' * 30},slur\n"
        "lgbt,gay,secret\x07word,slur\n",
        encoding="utf-8",
    )
    with pytest.raises(DataError) as caught:
        read_terms(path)
    text = str(caught.value)
    assert "secretword" not in text
    for part in (
        "row 3: kind is unknown",
        "row 4: group is not one of identity@1",
        "row 5: sub_identity is not one",
        "row 7: the same group",
        "row 8: group is empty",
        "row 9: term starts or ends",
        "row 10: term is empty",
        "row 11: term is longer",
        "row 12: term contains a control character",
    ):
        assert part in text, part
    assert len(caught.value.faults) == 9


def test_bytes_that_are_not_utf8_no_rows_no_columns(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(b"group,term\na,caf\xe9\n")
    with pytest.raises(DataError, match="not UTF-8"):
        read_terms(path)
    path.write_text("group,term\n")
    with pytest.raises(DataError, match="no terms found"):
        read_terms(path)
    with pytest.raises(DataError, match="expected also group"):
        read_terms(pl.DataFrame({"term": ["a"]}))


@pytest.mark.realdata
def test_terms_are_the_published_ones_in_order(realdata: Path) -> None:
    published = []
    for name, kind in (("wiki_identity.csv", "slur"), ("neutral_identity_terms.csv", "neutral")):
        with open(realdata / "identity-terms" / name, encoding="utf-8") as file:
            for row in csv.DictReader(file):
                published += [
                    (text, kind) for text in dict.fromkeys(ast.literal_eval(row["Terms"]))
                ]
    ours = [(term.text, term.kind) for term in load_terms("terms-identity@1").terms]
    assert ours == published
