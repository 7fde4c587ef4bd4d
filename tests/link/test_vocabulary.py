"""Terms become codes, and no identity is folded into another."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ombud.errors import DataError
from ombud.link.vocabulary import read_mapping


def codes(values: list[str], vocabulary: str = "", attribute: str = "gender") -> list[str | None]:
    frame = pl.DataFrame(
        [{"attribute": attribute, "vocabulary": vocabulary, "value": v} for v in values]
    )
    return read_mapping().codes(frame)["code"].to_list()


def test_synonyms_and_open_terms() -> None:
    values = [
        "male.",
        "Women",
        "Nonbinary",
        "transman",
        "Unknown",
        "",
        "butch",
        "female / nonbinary",
    ]
    assert codes(values) == [
        "male", "female", "non-binary", "trans man", None, None, "butch", "female / nonbinary",
    ]  # fmt: skip


@pytest.mark.parametrize("attribute", ["gender", "nationality"])
def test_unknown_is_no_assertion_of_any_attribute(attribute: str) -> None:
    values = ["Unknown", "", " ", "not known.", "N/A", "?", "[unspecified]"]
    assert codes(values, "people", attribute) == [None] * len(values)
    assert codes(["French"], "people", attribute) == ["french"]


def test_what_is_no_gender_may_be_another_answer() -> None:
    assert codes(["none"], attribute="religion") == ["none"]
    assert codes(["none"]) == [None]


def test_a_row_for_one_attribute_goes_before_one_for_all(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("# version: 1\nattribute,vocabulary,term,code\nstance,*,unknown,agnostic\n")
    frame = pl.DataFrame(
        {"attribute": ["stance", "place"], "vocabulary": ["x", "x"], "value": ["unknown"] * 2}
    )
    assert read_mapping(file).codes(frame)["code"].to_list() == ["agnostic", None]


def test_a_letter_means_what_its_own_vocabulary_says() -> None:
    assert codes(["a", "b", "u"], "viaf") == ["female", "male", None]
    assert codes(["a"], "other") == ["a"]
    assert codes(["http://www.wikidata.org/entity/Q48270", "Q6581072"], "wikidata") == [
        "non-binary",
        "female",
    ]


def test_the_shipped_file_folds_nothing() -> None:
    table = read_mapping().terms.filter(pl.col("vocabulary") == "*")
    binary = table.filter(pl.col("code").is_in(["male", "female"]))["term"].to_list()
    assert not [t for t in binary if "trans" in t or "binary" in t or "queer" in t or "sex" in t]


def test_codes_of_wikidata_are_not_folded_and_letters_stay_free(tmp_path: Path) -> None:
    file, head = tmp_path / "mine.csv", "# version: 1\nattribute,vocabulary,term,code\n"
    for code in ("female", "-"):
        file.write_text(f"{head}gender,wikidata,Q1052281,{code}\n")
        with pytest.raises(DataError, match="'q1052281', which is 'trans woman', may not become"):
            read_mapping(file)
    # In a Spanish list m is mujer; and a term may be told apart from others.
    file.write_text(f"{head}gender,mine,m,female\ngender,mine,h,male\ngender,*,boys,boy\n")
    frame = pl.DataFrame(
        {"attribute": ["gender"] * 2, "vocabulary": ["mine", "x"], "value": ["M"] * 2}
    )
    assert read_mapping(file).codes(frame)["code"].to_list() == ["female", "male"]


@pytest.mark.parametrize(
    ("term", "code"),
    [
        ("trans woman", "female"),
        ("trans woman", "transgender"),
        ("nonbinary", "female"),
        ("genderqueer", "non-binary"),
        ("male", "non-binary"),
        ("transgender", "-"),
        ("transgender people", "trans man"),
        ("female", "male"),
        ("weiblich", "male"),
        ("demiboy", "male"),
        ("Fa'afafine", "female"),
        ("MTF", "female"),
        ("they/them", "female"),
        ("third-gender", "male"),
    ],
)
def test_a_file_that_folds_identities_is_refused(tmp_path: Path, term: str, code: str) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(f"# version: 1\nattribute,vocabulary,term,code\ngender,*,{term},{code}\n")
    with pytest.raises(DataError, match="never folded"):
        read_mapping(file)


def test_own_rows_take_precedence_and_are_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("# version: 7\nattribute,vocabulary,term,code\ngender,*,herr,male\n")
    mapping = read_mapping(file)
    assert mapping.version.endswith("mine.csv 7")
    frame = pl.DataFrame({"attribute": ["gender"], "vocabulary": ["x"], "value": ["Herr"]})
    assert mapping.codes(frame)["code"].to_list() == ["male"]


@pytest.mark.parametrize(
    "text", ["attribute,vocabulary,term,code\n", "# version: 1\na,b\n", "# version: 1\n"]
)
def test_broken_files(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(text)
    with pytest.raises(DataError):
        read_mapping(file)
