"""Readers: hand-made files, broken lines, and the real samples."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ombud.errors import DataError
from ombud.link._streams import lines_in_blocks
from ombud.link.problems import Problems
from ombud.link.readers import READERS
from ombud.link.readers.base import Batch, ReaderOptions

NAMES = ReaderOptions(platform_authors=True)


def read(
    name: str, path: Path, options: ReaderOptions | None = None
) -> tuple[list[Batch], Problems]:
    problems = Problems()
    return list(READERS[name].read(path, options or ReaderOptions(), problems)), problems


def line(kind: str, content: dict[str, object]) -> str:
    return f"/type/{kind}\t{content.get('key', '')}\t1\t2020-01-01\t{json.dumps(content)}"


def test_openlibrary_goes_on_after_a_line_that_is_not_json(tmp_path: Path) -> None:
    edition = {
        "key": "/books/OL1M",
        "isbn_10": ["0525230106"],
        "isbn_13": "9780804429573",
        "authors": [{"key": "/authors/OL1A"}, {"key": "/authors/OL2A"}],
        "works": [{"key": "/works/OL1W"}],
        "notes": {"type": "/type/text", "value": "x"},
    }
    work = {"key": "/works/OL1W", "authors": [{"author": {"key": "/authors/OL1A"}}]}
    author = {
        "key": "/authors/OL1A",
        "name": "A B",
        "alternate_names": ["B, A"],
        "remote_ids": {"viaf": "5", "wikidata": "Q1"},
    }
    lines = [
        line("edition", edition),
        "/type/edition\t/books/OL2M\t1\tx\t{not json",
        "/type/edition\ttoo short",
        line("edition", {"key": "/books/OL3M", "authors": None}),
        line("work", work),
        line("author", author),
        line("delete", {"key": "/x"}),
    ]
    file = tmp_path / "dump.txt.gz"
    file.write_bytes(gzip.compress("\n".join(lines).encode()))
    batches, problems = read("openlibrary", file)
    books = pl.concat([b.frame for b in batches if b.kind == "books"])
    assert books.rows() == [
        (
            "/books/OL1M",
            "/works/OL1W",
            ["0525230106", "9780804429573"],
            [],
            ["/authors/OL1A", "/authors/OL2A"],
            [],
        ),
        ("/books/OL3M", None, [], [], [], []),
        ("/works/OL1W", "/works/OL1W", [], [], ["/authors/OL1A"], []),
    ]
    (people,) = [b.frame for b in batches if b.kind == "authors"]
    ids = ["openlibrary:OL1A", "viaf:5", "wikidata:Q1"]
    assert people.rows() == [("/authors/OL1A", ["A B", "B, A"], ids)]
    assert {r["reason"]: r["count"] for r in problems.rows()} == {
        "a line with fewer than five columns": 1,
        "neither author, edition nor work": 1,
        "a line that is not JSON": 1,
    }


def test_a_gzip_file_that_is_cut(tmp_path: Path) -> None:
    data = gzip.compress(
        "\n".join(
            line("author", {"key": f"/a/{n}", "name": f"N {n}"}) for n in range(4000)
        ).encode()
    )
    file = tmp_path / "dump.txt.gz"
    for left in (len(data) // 2, len(data) - 50):
        file.write_bytes(data[:left])
        (batch,), problems = read("openlibrary", file)
        # The line in which it ends is no line; those before it are there.
        assert batch.frame["author"].to_list() == [f"/a/{n}" for n in range(batch.frame.height)]
        assert 1000 < batch.frame.height < 4000
        assert {r["reason"]: r["count"] for r in problems.rows()} == {
            "the archive is damaged; the rest of it is not read": 1,
            "the line that the damage cuts is left out": 1,
        }


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_what_comes_before_damage_is_read(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    rng = np.random.default_rng(1)
    rows = [f"{n},{rng.integers(10**9):010d},10" for n in range(100_000)]
    packed = bytearray(pack("\n".join(["User-ID,ISBN,Book-Rating", *rows]).encode()))
    at = len(packed) * 3 // 4
    packed[at : at + 100] = bytes(100)
    kind = {gzip: "gz", bz2: "bz2", lzma: "xz"}[sys.modules[pack.__module__]]
    file = tmp_path / f"BX-Ratings.csv.{kind}"
    file.write_bytes(packed)
    (batch,), problems = read("bookcrossing", file)
    assert problems.count("the archive is damaged; the rest of it is not read") == 1
    users = batch.frame["user"].to_list()
    assert len(users) > 20_000 and users[:20_000] == [str(n) for n in range(20_000)]


BX_OLD = (
    '"User-ID";"ISBN";"Book-Rating"\n"276725";"034545104X";"0"\n"276726";"0155061224";"5"\n'
    '"276726";"";"5"\n"276727";"0446520802";"11"\n'
)
BX_BOOKS_OLD = (
    '"ISBN";"Book-Title";"Book-Author";"Year-Of-Publication";"Publisher"\n'
    '"034545104X";"A \\"quoted\\"; title";"M. J. Rose";"2002";"x"\n'
    '"0155061224";"T";"Andr\u00e9 Gide";"2001";"y"\n"broken";"row"\n'
)


def test_bookcrossing_as_first_released(tmp_path: Path) -> None:
    (tmp_path / "BX-Book-Ratings.csv").write_bytes(BX_OLD.encode("latin-1"))
    (tmp_path / "BX-Books.csv").write_bytes(BX_BOOKS_OLD.encode("latin-1"))
    (books, ratings), problems = read("bookcrossing", tmp_path, NAMES)
    assert ratings.frame.select("user", "item", "rating").rows() == [
        ("276725", "034545104X", None),
        ("276726", "0155061224", 5.0),
    ]
    assert books.frame["names"].to_list() == [["M. J. Rose"], ["André Gide"]]
    reasons = {r["reason"]: r["count"] for r in problems.rows()}
    assert reasons["a rating without user, book or a number from 0 to 10"] == 2
    assert reasons["a row with too many or too few columns"] == 1
    (only,), _ = read("bookcrossing", tmp_path)
    assert only.kind == "ratings"


@pytest.mark.parametrize("first", [True, False])
def test_amazon_in_both_orders(tmp_path: Path, first: bool) -> None:
    rows = [("A2ZPBGU", "0525230106", "5.0", "1000"), ("A3ABC", "B00005MF9C", "1.0", "2000")]
    lines = [",".join(row if first else (row[1], row[0], *row[2:])) for row in rows]
    file = tmp_path / "ratings.csv"
    file.write_text("\n".join([*lines, "A4,0525230106,0.0,3000"]))
    (batch,), problems = read("amazon", file)
    assert batch.frame.rows() == [
        ("A2ZPBGU", "0525230106", 5.0, 1000.0),
        ("A3ABC", "B00005MF9C", 1.0, 2000.0),
    ]
    assert problems.count("a line without user, item or a rating from 1 to 5") == 1


def test_goodreads_books_authors_and_shelves(tmp_path: Path) -> None:
    book = {
        "book_id": "7",
        "work_id": "70",
        "isbn": "0525230106",
        "isbn13": "",
        "asin": "",
        "authors": [{"author_id": "1", "role": ""}],
    }
    seen = [
        {
            "user_id": "u",
            "book_id": "7",
            "rating": 0,
            "date_added": "Thu Aug 17 15:15:28 -0700 2017",
        },
        {"user_id": "u", "book_id": "8", "rating": 4, "date_added": ""},
        {"user_id": None, "book_id": "8", "rating": 4},
    ]
    (tmp_path / "goodreads_books.json").write_text(json.dumps(book) + "\nnot json\n")
    (tmp_path / "goodreads_book_authors.json").write_text('{"author_id": "1", "name": "A B"}\n')
    (tmp_path / "goodreads_interactions_dedup.json").write_text("\n".join(map(json.dumps, seen)))
    batches, problems = read("goodreads", tmp_path, NAMES)
    kinds = {b.kind: b for b in batches}
    assert kinds["books"].frame["authors"].to_list() == [["1"]]
    assert kinds["ratings"].refers == "goodreads"
    assert kinds["ratings"].frame.rows() == [("u", "7", None, 1503008128.0), ("u", "8", 4.0, None)]
    assert problems.count("a line that is not JSON") == 1
    assert problems.count("an interaction without user or book") == 1
    without, _ = read("goodreads", tmp_path)
    assert {b.kind for b in without} == {"books", "ratings"}
    assert next(b for b in without if b.kind == "books").frame["authors"].to_list() == [[]]


def test_goodreads_values_that_cannot_be_are_counted(tmp_path: Path) -> None:
    seen = [("7", 9, ""), ("8", -1, ""), ("9", 5, "last summer"), ("10", None, None)]
    rows = [{"user_id": "u", "book_id": b, "rating": r, "date_added": d} for b, r, d in seen]
    file = tmp_path / "goodreads_interactions.json"
    file.write_text("\n".join(map(json.dumps, rows)))
    (batch,), problems = read("goodreads", file)
    assert batch.frame.rows() == [("u", "9", 5.0, None), ("u", "10", None, None)]
    assert problems.count("an interaction with a rating that is not from 0 to 5 (left out)") == 2
    (told,) = [p for p in problems.rows() if "date" in p["reason"]]
    assert (told["count"], told["examples"]) == (1, ["last summer"])


OTHER_TYPE = "a field of another type than expected (not used)"


def test_goodreads_ratings_that_are_no_number_are_left_out(tmp_path: Path) -> None:
    said = ["abc", [5], True, {"a": 1}, "4", "", None, 3]
    rows = [{"user_id": f"u{n}", "book_id": "1", "rating": r} for n, r in enumerate(said)]
    file = tmp_path / "goodreads_interactions.json"
    file.write_text("\n".join(map(json.dumps, rows)))
    (batch,), problems = read("goodreads", file)
    assert batch.frame.select("user", "rating").rows() == [
        ("u4", 4.0),
        ("u5", None),
        ("u6", None),
        ("u7", 3.0),
    ]
    assert problems.count(OTHER_TYPE) == 4
    assert problems.count("an interaction whose rating is no number (left out)") == 4
    # Polars alone would take these for 1 and for a row of nothing.
    file.write_text('{"user_id": "u", "book_id": "1", "rating": true}\n')
    (batch,), problems = read("goodreads", file)
    assert batch.frame.height == 0 and problems.count(OTHER_TYPE) == 1
    file.write_text('{"user_id": "u", "book_id": "1", "rating": 5}\nnull\n')
    (batch,), problems = read("goodreads", file)
    assert batch.frame.height == 1
    assert [r["reason"] for r in problems.rows()] == ["a line that is no JSON object"]


def test_fields_of_another_type_are_counted(tmp_path: Path) -> None:
    odd: list[dict[str, object]] = [
        {"key": "/books/1", "authors": "x"},
        {"key": "/books/2", "isbn_10": [["0525230106"], "080442957X"]},
        {"key": "/books/3", "works": [{"key": {"of": "w"}}], "authors": {"key": "/authors/1"}},
        {"key": "/books/4", "isbn_13": 9780525230106, "authors": [None]},
    ]
    file = tmp_path / "dump.txt"
    file.write_text("\n".join(line("edition", content) for content in odd))
    (batch,), problems = read("openlibrary", file)
    assert batch.frame.select("isbns", "authors").rows() == [
        ([], []),
        ([None, "080442957X"], []),
        ([], ["/authors/1"]),
        (["9780525230106"], []),
    ]
    (told,) = problems.rows()
    assert (told["reason"], told["count"]) == (OTHER_TYPE, 3)
    assert told["examples"][0] == "authors: 'x'"


def test_viaf_says_that_its_xml_asserts_gender_alone(tmp_path: Path) -> None:
    file = tmp_path / "viaf.xml"
    file.write_text(
        '<VIAFCluster xmlns="http://viaf.org/viaf/terms#"><viafID>5</viafID><nameType>Personal'
        "</nameType><mainHeadings><data><text>A B</text></data></mainHeadings>"
        "<fixed><gender>a</gender></fixed></VIAFCluster>"
    )
    (batch,), problems = read("viaf", file)
    assert len(batch.frame["assertions"][0]) == 1 and not problems.rows()
    (batch,), problems = read("viaf", file, ReaderOptions(attribute="nationality"))
    assert len(batch.frame["assertions"][0]) == 0
    assert "nothing about nationality" in problems.rows()[0]["reason"]


def test_goodreads_csv_with_its_map(tmp_path: Path) -> None:
    (tmp_path / "goodreads_interactions.csv").write_text(
        "user_id,book_id,is_read,rating,is_reviewed\n0,5,1,3,0\n0,6,0,0,0\n"
    )
    (tmp_path / "book_id_map.csv").write_text("book_id_csv,book_id\n5,500\n6,600\n")
    (batch,), _ = read("goodreads", tmp_path)
    assert batch.frame.select("item", "rating").rows() == [("500", 3.0), ("600", None)]


@pytest.mark.parametrize("isbn13", ["9780439023481", "9780671729448", "9780805087246"])
def test_goodbooks_isbns_are_restored_or_left_out(tmp_path: Path, isbn13: str) -> None:
    rounded = f"{float(isbn13):.12g}"
    (tmp_path / "books.csv").write_text(
        f'book_id,work_id,isbn,isbn13,authors\n1,10,,{rounded},"A B, C D"\n2,20,439023483,,E F\n'
    )
    with zipfile.ZipFile(tmp_path / "ratings.csv.zip", "w") as archive:
        archive.writestr("ratings.csv", "book_id,user_id,rating\n1,9,5\n")
    (books, ratings), problems = read("goodbooks", tmp_path, NAMES)
    first, second = books.frame["isbns"].to_list()
    assert second == ["0439023483"]
    assert first in ([isbn13], [])
    assert len(first) + problems.count("an ISBN-13 rounded beyond repair") == 1
    assert books.frame["names"].to_list() == [["A B", "C D"], ["E F"]]
    assert ratings.refers == "goodbooks"


STATEMENTS = [
    ("Q1", "label", "Ursula K. Le Guin"),
    ("Q1", "P21", "http://www.wikidata.org/entity/Q6581072"),
    ("Q1", "P214", "100"),
    ("http://www.wikidata.org/entity/Q2", "http://www.wikidata.org/prop/direct/P21", "Q48270"),
    ("Q2", "skos:altLabel", '"R. Solomon"@en'),
]


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl"])
def test_wikidata(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"statements.{kind}"
    if kind == "jsonl":
        names = ("item", "property", "value")
        rows = [json.dumps(dict(zip(names, s, strict=True))) for s in STATEMENTS]
        file.write_text("\n".join([*rows, "broken"]))
    else:
        frame = pl.DataFrame(STATEMENTS, schema=["item", "property", "value"], orient="row")
        frame.write_csv(file, separator="," if kind == "csv" else "\t")
    (batch,), problems = read("wikidata", file)
    rows = {r["key"]: r for r in batch.frame.to_dicts()}
    assert rows["Q1"]["names"] == ["Ursula K. Le Guin"]
    assert set(rows["Q1"]["ids"]) == {"wikidata:Q1", "viaf:100"}
    assert [a["value"] for a in rows["Q2"]["assertions"]] == ["Q48270"]
    assert rows["Q2"]["names"] == ["R. Solomon"]
    assert problems.count("a line that is not JSON") == (kind == "jsonl")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_statements_in_many_blocks_are_those_of_one(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(4)
    rows = []
    for n in rng.integers(0, 60, 900):  # those of one item are far apart
        kind_of, value = [("label", f'Name "{n}"\nand more'), ("P21", "Q1"), ("P214", str(n)),
                          ("P999", "x")][rng.integers(4)]  # fmt: skip
        rows.append((f"Q{n}", kind_of, value))
    frame = pl.DataFrame(rows, schema=["item", "property", "value"], orient="row")
    file = tmp_path / f"statements.{kind}"
    frame.write_csv(file) if kind == "csv" else frame.write_ndjson(file)
    (whole,), problems = read("wikidata", file)
    monkeypatch.setattr(
        "ombud.link.readers.people.lines_in_blocks",
        lambda stream, source, problems: lines_in_blocks(stream, source, problems, 700),
    )
    parts, again = read("wikidata", file)
    assert len(parts) > 10 and again.rows() == problems.rows()
    one = {r["key"]: r for r in whole.frame.to_dicts()}
    many = [r for part in parts for r in part.frame.to_dicts()]
    assert len(many) == len(one) == frame["item"].n_unique()
    for row in many:
        own = one[row["key"]]
        assert sorted(row["names"]) == sorted(own["names"])
        assert row["ids"] == own["ids"] and row["assertions"] == own["assertions"]


def test_own_list_with_periods(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(
        "name,gender,start,end,viaf\nMorris,male,1926,1972,1\nMorris,female,1972,,1\n,male,,,\n"
    )
    (batch,), problems = read("people", file)
    (row,) = batch.frame.to_dicts()
    assert [(a["value"], a["start"], a["end"]) for a in row["assertions"]] == [
        ("male", "1926", "1972"),
        ("female", "1972", None),
    ]
    assert row["ids"] == ["viaf:1"]
    assert problems.count("a person without a name") == 1
    with pytest.raises(DataError, match="'occupation' is missing"):
        read("people", file, ReaderOptions(attribute="occupation"))


def test_bookdata_tools(tmp_path: Path) -> None:
    for folder in ("book-links", "viaf", "bx"):
        (tmp_path / folder).mkdir()
    clusters = pl.DataFrame({"isbn_id": [1, 2], "cluster": [100, 100]})
    clusters.write_parquet(tmp_path / "book-links/isbn-clusters.parquet")
    pl.DataFrame({"isbn_id": [1, 2], "isbn": ["0525230106", "9780804429573"]}).write_parquet(
        tmp_path / "book-links/all-isbns.parquet"
    )
    pl.DataFrame({"cluster": [100], "author_name": ["A B"]}).write_parquet(
        tmp_path / "book-links/cluster-first-authors.parquet"
    )
    pl.DataFrame({"cluster": [100], "gender": ["ambiguous"]}).write_parquet(
        tmp_path / "book-links/cluster-genders.parquet"
    )
    pl.DataFrame({"user": [1], "item": [100], "rating": [7.0], "nratings": [1]}).write_parquet(
        tmp_path / "bx/bx-cluster-ratings.parquet"
    )
    batches, _ = read("bookdata", tmp_path)
    assert [b.kind for b in batches] == ["books", "given", "ratings"]
    assert batches[0].frame.height == 2
    pl.DataFrame({"rec_id": [5], "name": ["A B"]}).write_parquet(
        tmp_path / "viaf/author-name-index.parquet"
    )
    pl.DataFrame({"rec_id": [5], "gender": ["female"]}).write_parquet(
        tmp_path / "viaf/author-genders.parquet"
    )
    batches, _ = read("bookdata", tmp_path)
    assert [b.kind for b in batches] == ["books", "authorities", "ratings"]


def test_bookdata_tools_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("book-links", "viaf"):
        (tmp_path / folder).mkdir()
    links, viaf = tmp_path / "book-links", tmp_path / "viaf"
    isbns = [f"{n:013d}" for n in range(60)]
    clusters = pl.DataFrame({"isbn": isbns, "cluster": [n % 20 for n in range(60)]})
    clusters.write_parquet(links / "isbn-clusters.parquet")
    names = pl.DataFrame({"cluster": range(20), "author_name": [f"A {n}" for n in range(20)]})
    # Another type of the same key.
    names.cast({"cluster": pl.Int32}).write_parquet(links / "cluster-first-authors.parquet")
    index = pl.DataFrame(
        {"rec_id": [n % 9 for n in range(27)], "name": [f"N{n}" for n in range(27)]}
    )
    index.write_parquet(viaf / "author-name-index.parquet")
    pl.DataFrame({"rec_id": [1, 1, 4], "gender": ["f", "m", "f"]}).write_parquet(
        viaf / "author-genders.parquet"
    )
    whole, _ = read("bookdata", tmp_path)
    monkeypatch.setattr("ombud.link.readers.bookdata._BLOCK", 7)
    parts, _ = read("bookdata", tmp_path)
    assert len(whole) == 2 and len(parts) > 8

    def rows(batches: list[Any], kind: str) -> list[str]:
        found = [r for b in batches if b.kind == kind for r in b.frame.to_dicts()]
        return sorted(str({k: sorted(v, key=str) if isinstance(v, list) else v
                           for k, v in row.items()}) for row in found)  # fmt: skip

    for kind in ("books", "authorities"):
        assert rows(parts, kind) == rows(whole, kind) != []


@pytest.mark.parametrize("name", sorted(READERS))
def test_nothing_there_is_one_clear_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError):
        read(name, tmp_path / "nothing")


def test_viaf_lines_with_their_number(tmp_path: Path) -> None:
    record = (
        '<record xmlns="http://www.loc.gov/MARC21/slim"><leader>00000cz a2200037n 45 0</leader>'
        '<controlfield tag="001">viaf{0}</controlfield><datafield tag="700" ind1="1" ind2=" ">'
        '<subfield code="a">Name, {0}</subfield></datafield><datafield tag="375" ind1=" " ind2=" ">'
        '<subfield code="a">{1}</subfield></datafield></record>'
    )
    lines = [f"{n}\t" + record.format(n, "female") for n in (11, 12)]
    file = tmp_path / "viaf.xml.gz"
    file.write_bytes(gzip.compress("\n".join(lines).encode()))
    (batch,), _ = read("viaf", file)
    assert batch.frame["ids"].to_list() == [["viaf:11"], ["viaf:12"]]
    assert batch.frame["names"].to_list() == [["Name, 11"], ["Name, 12"]]


# --- real samples -----------------------------------------------------------------------------


@pytest.mark.realdata
def test_openlibrary_samples(realdata: Path) -> None:
    folder = realdata / "parser-samples" / "openlibrary"
    counts: dict[str, int] = {}
    for file in sorted(folder.glob("*.gz")):
        batches, problems = read("openlibrary", file)
        assert not problems.rows()
        for batch in batches:
            counts[batch.kind] = counts.get(batch.kind, 0) + batch.frame.height
        with gzip.open(file, "rt", encoding="utf-8") as stream:
            assert sum(b.frame.height for b in batches) == sum(1 for _ in stream)
    assert counts == {"authors": 1037, "books": 2050}


@pytest.mark.realdata
def test_viaf_samples(realdata: Path) -> None:
    folder = realdata / "parser-samples" / "viaf"
    (batch,), _ = read("viaf", folder / "steinbeck_no_type.xml.gz")
    first = batch.frame.row(0, named=True)
    assert first["key"] == "96992551"
    assert "Steinbeck, John" in first["names"]
    assert "wikidata:Q39212" in first["ids"]
    assert [a["value"] for a in first["assertions"]] == ["b"]


@pytest.mark.realdata
def test_dated_assertions_of_a_real_authority_field(realdata: Path) -> None:
    file = realdata / "parser-samples" / "marc-auth" / "lcnaf_n2003051366.xml"
    (batch,), _ = read("marc", file)
    assert batch.frame.row(0)[:2] == ("n 2003051366", ["Goodman, Oscar Baylin,"])


@pytest.mark.realdata
def test_inferred_lists_are_read_on_request_only(realdata: Path) -> None:
    folder = realdata / "author-gender"
    asserted, problems = read("author-lists", folder)
    assert not any(b.inferred for b in asserted)
    assert {b.source for b in asserted} >= {"ibm", "pantheon", "post45-nea", "noveltm-manual"}
    every, _ = read("author-lists", folder, ReaderOptions(inferred=True))
    assert {b.source for b in every if b.inferred} == {
        "bestseller-genders",
        "hathi-pre23",
        "underwood-mixed",
    }
    ibm = next(b.frame for b in asserted if b.source == "ibm")
    assert "Gabriel García Márquez" in ibm["names"].explode().to_list()


def test_a_stray_quote_costs_its_own_line_at_most(tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text('u1,0525230106,5,1\n"u2,0525230106,4,2\nu3,080442957X,3,3\n')
    [batch], _ = read("amazon", file)
    assert batch.frame["rating"].to_list() == [5.0, 4.0, 3.0]
    assert batch.frame["user"].to_list()[::2] == ["u1", "u3"]


STRAY = "a line with a stray quote (read without it)"


@pytest.mark.parametrize(
    ("name", "text", "users"),
    [
        (
            "BX-Ratings.csv",
            'User-ID,ISBN,Book-Rating\n1,0525230106,5\n2,"0525230106,4\n3,0525230106,7\n',
            ["1", "2", "3"],
        ),
        (
            "BX-Book-Ratings.csv",
            '"User-ID";"ISBN";"Book-Rating"\n"1";"\\"0525230106\\"";"5"\r\n'
            '"2";"0525230106";"4"\r\n\r\n"3";"05252;30106";"4"\n"4";"0525230106";"7"\n',
            ["1", "2", "4"],
        ),
    ],
)
def test_a_stray_quote_of_bookcrossing_costs_its_own_line_at_most(
    tmp_path: Path, name: str, text: str, users: list[str]
) -> None:
    (tmp_path / name).write_bytes(text.encode())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (batch,), problems = read("bookcrossing", tmp_path)
    assert batch.frame["user"].to_list() == users
    assert set(batch.frame["item"]) == {"0525230106"}
    counts = {r["reason"]: r["count"] for r in problems.rows()}
    long = {"a row with too many columns (left out)": 1} if "Book" in name else {}
    assert counts == {STRAY: 1, **long}


def test_bookcrossing_is_read_whatever_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "BX-Ratings.csv").write_bytes(
        b"\xef\xbb\xbfUser-ID,ISBN,Book-Rating\n1,caf\xe9,5\n2\n3,0525230106,7"
    )
    (batch,), problems = read("bookcrossing", tmp_path)
    assert batch.frame["user"].to_list() == ["1", "3"]
    assert problems.count("a rating without user, book or a number from 0 to 10") == 1
    (tmp_path / "BX-Ratings.csv").write_text("\n")
    with pytest.raises(DataError, match="there is no line in it"):
        read("bookcrossing", tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"A1,0525230106,5\nA2,0525230106,4\n",
        b"A1,0525230106,5,123,x\nA2,0525230106,4,1,y\n",
        bytes(range(256)) * 20,
    ],
)
def test_amazon_of_other_columns_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "ratings.csv"
    file.write_bytes(content)
    with pytest.raises(DataError, match="four columns were expected"):
        read("amazon", file)


def test_times_and_cells_of_amazon_that_are_not_used_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_bytes(
        b"A1,0525230106,5,123\nA2,0525230106,abc,1\nA3,B00005MF9C,4,notatime\nA4,0525230106\n"
        b"A5,0525230106,4,1,extra\nA\xff,0525230106,3,\n"
    )
    (batch,), problems = read("amazon", file)
    assert batch.frame.select("rating", "time").rows() == [(5, 123), (4, None), (4, 1), (3, None)]
    assert {r["reason"]: (r["count"], r["examples"]) for r in problems.rows()} == {
        "a line with more than four cells (the rest is not used)": (1, []),
        "a rating whose time cannot be read (used without one)": (1, ["notatime"]),
        "a line without user, item or a rating from 1 to 5": (2, []),
    }
    file.write_text("user,item,rating,time\n")
    (batch,), _ = read("amazon", file)
    assert batch.frame.height == 0


def test_broken_rows_of_rating_tables_are_counted(tmp_path: Path) -> None:
    (tmp_path / "books.csv").write_text(
        "book_id,work_id,isbn,isbn13,authors\n1,9,525230106,9780525230106,A B\n"
    )
    (tmp_path / "ratings.csv").write_text(
        "user_id,book_id,rating\n1,1,5\n,1,4\n2,1,99\n3,1,abc\n4,1,3\n"
    )
    batches, problems = read("goodbooks", tmp_path)
    assert batches[-1].frame.select("user", "rating").rows() == [("1", 5.0), ("4", 3.0)]
    assert {r["reason"]: r["count"] for r in problems.rows()} == {
        "an interaction without user or book": 1,
        "an interaction whose rating is no number (left out)": 1,
        "a rating that is not from 1 to 5 (left out)": 1,
    }
    shelves = tmp_path / "shelves"
    shelves.mkdir()
    file = shelves / "goodreads_interactions.csv"
    file.write_text("user_id,book_id,is_read,rating,is_reviewed\n1,1,1,x,0\n2,1,1,0,0\n3,1,1,4,0\n")
    [batch], problems = read("goodreads", shelves)
    assert batch.frame["rating"].to_list() == [None, 4.0]
    assert problems.count("an interaction whose rating is no number (left out)") == 1
    file.write_text("who,what\n1,1\n")
    with pytest.raises(DataError, match="column 'book_id' is missing"):
        read("goodreads", shelves)


def test_an_empty_table_of_statements_is_one_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "statements.csv"
    file.write_text("")
    with pytest.raises(DataError, match="cannot be read as a table"):
        read("wikidata", file)
