"""Inputs as they lie in the field: folders, current bookdata-tools files, scanned numbers."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.errors import DataError
from ombud.link import LinkFolder, LinkOptions, build_links
from ombud.link.isbn import extract_isbns
from ombud.link.names import name_variants

ISBN = "9780804429573"


def dump(folder: Path, name: str, *records: dict[str, object]) -> Path:
    """Write OpenLibrary records, an edition or an author each."""
    kinds = {"isbn_13": "edition"}
    lines = []
    for record in records:
        kind = next((k for field, k in kinds.items() if field in record), "author")
        lines.append(f"/type/{kind}\t{record['key']}\t1\tx\t{json.dumps(record)}")
    (folder / name).write_text("\n".join(lines) + "\n")
    return folder / name


def people(folder: Path, *rows: str) -> Path:
    (folder / "people.csv").write_text("name,gender,viaf,start,end,id\n" + "\n".join(rows) + "\n")
    return folder / "people.csv"


def outcome(inputs: list[tuple[str, Path]], to: Path, **options: object) -> dict[str, object]:
    folder = build_links(inputs, to, LinkOptions(**options))  # type: ignore[arg-type]
    (row,) = pl.read_parquet(folder / "item_facts.parquet").to_dicts()
    return row


def test_a_folder_and_a_pattern_stand_for_their_files(tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    for n in range(3):
        edition = {"key": f"/books/{n}", "isbn_13": [f"978080442957{n}"], "authors": []}
        dump(parts, f"ol.{n}.txt", edition)
    (parts / ".DS_Store").write_text("no record")
    sizes = []
    for number, path in enumerate(
        (parts, parts / "ol.*.txt", parts / "ol.0.txt", tmp_path / "p*" / "ol.?.txt")
    ):
        folder = build_links([("openlibrary", path)], tmp_path / f"linked{number}")
        sizes.append(LinkFolder(folder).tables.scan("books").collect().height)
    assert sizes == [3, 3, 1, 3]
    with pytest.raises(DataError, match="there is no file or folder"):
        build_links([("openlibrary", parts / "*.mrc")], tmp_path / "none")
    outer = tmp_path / "outer"
    outer.mkdir()
    parts.rename(outer / "parts")
    with pytest.raises(DataError, match="no file in the folder .*outer; of folders in it"):
        build_links([("openlibrary", outer)], tmp_path / "none")
    with pytest.raises(DataError, match="there is no file or folder"):
        build_links([("openlibrary", outer / "*")], tmp_path / "none")


def test_a_folder_of_goodreads_is_read_as_one(tmp_path: Path) -> None:
    """Its files belong together; other files in it are no fault, files of one kind are counted."""
    book = {"book_id": "1", "isbn13": "9780804429573", "authors": []}
    (tmp_path / "goodreads_books_poetry.json").write_text(json.dumps(book))
    (tmp_path / "goodreads_books_young.json").write_text(json.dumps(book | {"book_id": "2"}))
    (tmp_path / "README.txt").write_text("Books, by genre.")
    folder = LinkFolder(build_links([("goodreads", tmp_path)], tmp_path / "linked"))
    assert folder.tables.scan("books").collect().height == 1
    reason = "not read beside goodreads_books_poetry.json; a pattern reads all files"
    known = json.loads((tmp_path / "linked" / "link.json").read_text())["problems"]
    assert [p["source"] for p in known if p["reason"] == reason] == ["goodreads_books_young.json"]
    both = build_links([("goodreads", tmp_path / "goodreads_books*")], tmp_path / "both")
    assert LinkFolder(both).tables.scan("books").collect().height == 2


# The columns of the published schemas (PIReTship/bookdata-tools, goodreads/full/*.json and
# goodreads/gr-work-item-gender.json); later versions name users and items as LensKit does.
SCHEMAS = {
    "gr-work-actions": ["user", "item", "first_time", "last_time", "nactions", "last_rating"],
    "gr-work-ratings-5core": ["user", "item", "rating", "nratings"],
    "gr-work-actions-2015-100-10core": ["user_id", "item_id", "nactions"],
}


def test_current_files_of_bookdata_tools(tmp_path: Path) -> None:
    root = tmp_path / "bookdata"
    for folder in ("book-links", "goodreads/full", "az2014", "az2018"):
        (root / folder).mkdir(parents=True)
    clusters = {"isbn": [ISBN], "isbn_id": [1], "cluster": [100]}
    pl.DataFrame(clusters).write_parquet(root / "book-links/isbn-clusters.parquet")
    pl.DataFrame({"cluster": [100], "gender": ["female"]}).write_parquet(
        root / "book-links/cluster-genders.parquet"
    )
    pl.DataFrame({"item_id": [7, 8], "gender": ["female", "no-book-author"]}).write_parquet(
        root / "goodreads/gr-work-item-gender.parquet"
    )
    for name, columns in SCHEMAS.items():
        rows = {c: [1, 2] if "user" in c else [7, 8] if "item" in c else [4, 5] for c in columns}
        pl.DataFrame(rows).write_parquet(root / f"goodreads/full/{name}.parquet")
    for year, core in (("az2014", ""), ("az2018", "-5core")):
        pl.DataFrame({"user": [1], "item": [100], "rating": [5.0], "nratings": [1]}).write_parquet(
            root / f"{year}/az-cluster-ratings{core}.parquet"
        )
    folder = build_links([("bookdata", root)], tmp_path / "linked")
    items = pl.read_parquet(folder / "items.parquet")
    works = {r["item"]: (r["gender"], r["gender_status"]) for r in items.to_dicts()}
    assert works[ISBN] == ("female", "known")
    (female,) = (i for i, found in works.items() if found[0] == "female" and i != ISBN)
    assert "7" in female and works[female.replace("7", "8")] == (None, "no_author")
    sets = {f.name for f in (folder / "interactions").iterdir()}
    assert {
        "az2014-explicit.parquet", "az2018-5core-explicit.parquet",
        "gr-full-implicit-works-implicit.parquet", "gr-full-explicit-works-5core-explicit.parquet",
        "gr-full-implicit-works-2015-100-10core-implicit.parquet",
    } <= sets  # fmt: skip
    rated = pl.read_parquet(folder / "interactions/gr-full-implicit-works-implicit.parquet")
    assert set(rated["item"]) <= set(works)
    pl.DataFrame({"u": [1], "i": [7]}).write_parquet(
        root / "goodreads/full/gr-cluster-actions.parquet"
    )
    with pytest.raises(DataError, match="no columns user_id and item_id"):
        build_links([("bookdata", root)], tmp_path / "other")


@pytest.mark.parametrize(
    "text",
    ["O882970208", "0882970208", "\uff10\uff18\uff18\uff12\uff19\uff17\uff10\uff12\uff10\uff18",
     "08829\u030170208", "0-88297-O2O-8 (pbk.)"],
)  # fmt: skip
def test_numbers_with_letters_marks_and_wide_digits(text: str) -> None:
    found = extract_isbns(pl.Series([text]))
    assert found["isbn"].to_list() == extract_isbns(pl.Series(["0882970208"]))["isbn"].to_list()


@given(st.sampled_from(["Of 1984", "No. 5", "Oslo 2010", "O", "ISBN O"]))
def test_words_with_an_o_are_no_numbers(text: str) -> None:
    assert extract_isbns(pl.Series([text])).height == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [("JK Rowling", "J. K. Rowling"), ("Tolkien, J.R.R.", "JRR Tolkien"), ("Sir Walter Scott",
     "Scott, Walter"), ("Günter Graß", "Günter Grass"), ("Dr. Jane Doe", "Jane Doe")],
)  # fmt: skip
def test_names_meet(one: str, other: str) -> None:
    assert set(name_variants(one)) & set(name_variants(other))


@pytest.mark.parametrize(("one", "other"), [("Al E. Smith", "Ale Smith"), ("Dra Doe", "A Doe")])
def test_other_names_do_not_meet(one: str, other: str) -> None:
    assert not set(name_variants(one)) & set(name_variants(other))


def test_an_id_beats_the_names_of_other_records(tmp_path: Path) -> None:
    """One record has an id; another gives a name that a second person of that name shares."""
    books = dump(
        tmp_path, "dump.txt",
        {"key": "/books/1", "isbn_13": [ISBN], "authors": [{"key": "/authors/1"}]},
        {"key": "/books/2", "isbn_13": [ISBN], "authors": [{"key": "/authors/2"}]},
        {"key": "/authors/1", "name": "Jan Morris", "remote_ids": {"viaf": "42"}},
        {"key": "/authors/2", "name": "Jan Morris"},
    )  # fmt: skip
    asserted = people(tmp_path, "Jan Morris,female,42,,,p1", "Jan Morris,male,77,,,p2")
    inputs = [("openlibrary", books), ("people", asserted)]
    own = outcome(inputs, tmp_path / "own")
    assert (own["gender"], own["n_authorities"], own["via"]) == ("female", 1, "id")
    paper = outcome(inputs, tmp_path / "paper", published=True)
    assert (paper["gender_status"], paper["n_authorities"]) == ("ambiguous", 2)


def test_dates_settle_nothing_as_published(tmp_path: Path) -> None:
    books = dump(
        tmp_path, "dump.txt",
        {"key": "/books/1", "isbn_13": [ISBN], "authors": [{"key": "/authors/1"}]},
        {"key": "/authors/1", "name": "Jan Morris"},
    )  # fmt: skip
    asserted = people(tmp_path, "Jan Morris,male,,1926,1972,p", "Jan Morris,female,,1972,,p")
    inputs = [("openlibrary", books), ("people", asserted)]
    assert outcome(inputs, tmp_path / "own")["gender"] == "female"
    assert outcome(inputs, tmp_path / "paper", published=True)["gender_status"] == "ambiguous"


@pytest.mark.parametrize(
    ("cell", "status", "gender"),
    [("male; female", "ambiguous", None), ("Q6581072", "known", "female"),
     ("Q1052281", "known", "q1052281")],
)  # fmt: skip
def test_cells_with_two_values_and_numbers_of_wikidata(
    cell: str, status: str, gender: str | None, tmp_path: Path
) -> None:
    books = dump(
        tmp_path, "dump.txt",
        {"key": "/books/1", "isbn_13": [ISBN], "authors": [{"key": "/authors/1"}]},
        {"key": "/authors/1", "name": "Jan Morris"},
    )  # fmt: skip
    inputs = [("openlibrary", books), ("people", people(tmp_path, f"Jan Morris,{cell},,,,p"))]
    found = outcome(inputs, tmp_path / "linked")
    assert (found["gender_status"], found["gender"]) == (status, gender)
    terms = LinkFolder(tmp_path / "linked").facts["mapping"]["terms"]
    # A term that the file does not know is counted as such.
    assert all(t["known"] == (cell != "Q1052281") for t in terms)
