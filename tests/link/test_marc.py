"""MARC: hand-made records, pymarc as a second reader, broken input, and real samples."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import polars as pl
import pymarc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.link.isbn import extract_isbns, isbn_key
from ombud.link.marc import MarcRecord, decode_marc8, read_marc
from ombud.link.names import name_variants
from ombud.link.problems import Problems
from ombud.link.readers.base import ReaderOptions
from ombud.link.readers.library import authority_row, book_row


def binary(fields: list[tuple[str, bytes]], leader: str = "00000nam a2200000 a 4500") -> bytes:
    directory, body = b"", b""
    for tag, content in fields:
        directory += b"%s%04d%05d" % (tag.encode(), len(content) + 1, len(body))
        body += content + b"\x1e"
    base = 24 + len(directory) + 1
    length = base + len(body) + 1
    head = f"{length:05d}{leader[5:12]}{base:05d}{leader[17:]}".encode()
    return head + directory + b"\x1e" + body + b"\x1d"


BOOK = [
    ("001", b"ocm1"),
    ("008", b"040112s2004    nyu           000 0 eng  "),
    ("020", b"  \x1fa0525230106 (pbk.) :\x1fc$12.95\x1fz0804429570"),
    ("020", b"  \x1fa9780804429573\x1fqset"),
    ("100", "1 \x1faGarcía Márquez, Gabriel,\x1fd1927-2014.".encode()),
    ("700", b"1 \x1faRabassa, Gregory."),
]


def read(tmp_path: Path, data: bytes, name: str = "a.mrc") -> tuple[list[MarcRecord], Problems]:
    file = tmp_path / name
    file.write_bytes(data)
    problems = Problems()
    return list(read_marc(file, problems)), problems


def test_a_hand_made_book(tmp_path: Path) -> None:
    (record,), problems = read(tmp_path, binary(BOOK))
    row = book_row(record, "a.mrc", problems)
    assert row == (
        "ocm1",
        None,
        ["0525230106 (pbk.) :", "9780804429573 (set)"],
        ["0804429570"],
        [],
        ["García Márquez, Gabriel,", "Rabassa, Gregory."],
    )
    assert not problems.rows()


def test_only_the_fields_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "a.mrc"
    file.write_bytes(binary(BOOK))
    (record,) = read_marc(file, Problems(), tags=frozenset({"100"}))
    assert record.tags() == ["100"]


@pytest.mark.parametrize(
    ("leader", "fixed", "reason"),
    [
        ("00000nem a2200000 a 4500", b" " * 40, "not a book"),
        ("00000nam a2200000 a 4500", b" " * 28 + b"f" + b" " * 11, "government"),
    ],
)
def test_what_is_no_book_is_counted(tmp_path: Path, leader: str, fixed: bytes, reason: str) -> None:
    (record,), problems = read(tmp_path, binary([("008", fixed)], leader))
    assert book_row(record, "a.mrc", problems) is None
    assert reason in problems.rows()[0]["reason"]


@pytest.mark.parametrize("fixed", [b"", b"short", b" " * 28 + b"|" + b" " * 11])
def test_a_short_008_is_a_book(tmp_path: Path, fixed: bytes) -> None:
    (record,), problems = read(tmp_path, binary([("008", fixed)]))
    assert book_row(record, "a.mrc", problems) is not None


def test_broken_records_cost_only_themselves(tmp_path: Path) -> None:
    good = binary(BOOK)
    wrong_length = b"00007" + good[5:]
    shifted = good.replace(b"\x1e", b"\x1e\x20", 1)  # every offset is one too small
    data = good + b"rubbish\x1d" + wrong_length + shifted + good[: len(good) // 2]
    records, problems = read(tmp_path, data)
    assert [r.subfields("100", "a") for r in records] == [["García Márquez, Gabriel,"]] * 3
    reasons = {row["reason"]: row["count"] for row in problems.rows()}
    assert reasons["the record has no usable leader"] == 1
    assert reasons["wrong length in the leader (read all the same)"] == 2
    assert reasons["wrong directory; fields taken in their order"] == 1
    assert reasons["the file is cut in a record"] == 1


@given(st.binary(max_size=400), st.integers(0, 200))
def test_any_bytes_are_read(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int
) -> None:
    good = binary(BOOK)
    place = at % len(good)
    folder = tmp_path_factory.mktemp("noise")
    problems = Problems()
    for number, data in enumerate((good[:place] + noise + good[place:] + good, noise)):
        file = folder / f"{number}.mrc"
        file.write_bytes(data)
        for record in read_marc(file, problems):
            book_row(record, file.name, problems)
            authority_row(record, ReaderOptions(), file.name, problems)


def test_marc8_is_that_of_pymarc() -> None:
    cases = [
        b"Garc\xe2ia M\xe2arquez",
        b"Dostoevski\xe6i, F\xb0\xa3",
        b"\x1b$1!0!\x1b(B x",  # Chinese, then Latin again
        b"\x1b(NTolstoj\x1b(B",
        b"plain",
        b"\x1bg\x61\x1bs b",
    ]
    for data in cases:
        expected = unicodedata.normalize("NFC", pymarc.marc8_to_unicode(data))
        assert decode_marc8(data) == (expected, 0)


@given(st.binary(max_size=60))
def test_marc8_reads_anything(data: bytes) -> None:
    decode_marc8(data)


def test_utf8_that_says_it_is_marc8(tmp_path: Path) -> None:
    (record,), _ = read(tmp_path, binary(BOOK, "00000nam  2200000 a 4500"))
    assert record.subfields("100", "a") == ["García Márquez, Gabriel,"]


XML = """<?xml version="1.0" encoding="UTF-8"?>
<collection xmlns="http://www.loc.gov/MARC21/slim">
<record><leader>00000cz  a2200000n  4500</leader><controlfield tag="001">n 1</controlfield>
<datafield tag="010" ind1=" " ind2=" "><subfield code="a">n  79 1</subfield></datafield>
<datafield tag="024" ind1="7" ind2=" "><subfield code="a">http://viaf.org/viaf/5</subfield>
<subfield code="2">viaf</subfield></datafield>
<datafield tag="100" ind1="1" ind2=" "><subfield code="a">Morris, Jan,</subfield></datafield>
<datafield tag="400" ind1="1" ind2=" "><subfield code="a">Morris, James</subfield></datafield>
<datafield tag="375" ind1=" " ind2=" "><subfield code="a">male</subfield>
<subfield code="s">1926</subfield><subfield code="t">1972</subfield></datafield>
<datafield tag="375" ind1=" " ind2=" "><subfield code="a">female</subfield>
<subfield code="s">1972</subfield><subfield code="2">lcdgt</subfield></datafield>
</record>
<record><leader>broken</leader><datafield></record>
<record><leader>00000nam a2200000 a 4500</leader>
<datafield tag="020" ind1=" " ind2=" "><subfield code="a">0525230106 &lt;x&gt;</subfield>
</datafield></record>
<record><leader>cut"""


def test_xml_with_a_broken_record(tmp_path: Path) -> None:
    records, problems = read(tmp_path, XML.encode(), "a.xml")
    assert len(records) == 2
    row = authority_row(records[0], ReaderOptions(), "a.xml", problems)
    assert row is not None
    key, names, ids, assertions = row
    assert (key, names) == ("n 1", ["Morris, Jan,", "Morris, James"])
    assert ids == ["lccn:n791", "viaf:5"]
    said = [(a["value"], a["start"], a["end"], a["vocabulary"]) for a in assertions]
    assert said == [("male", "1926", "1972", ""), ("female", "1972", None, "lcdgt")]
    assert records[1].subfields("020", "a") == ["0525230106 <x>"]
    reasons = {r["reason"] for r in problems.rows()}
    assert reasons == {"the XML of the record is broken", "the file is cut in a record"}


def test_entities_of_a_document_type_are_not_expanded(tmp_path: Path) -> None:
    bomb = XML.replace(
        "<collection", '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><collection', 1
    ).replace("Morris, Jan,", "&b;")
    records, problems = read(tmp_path, bomb.encode(), "a.xml")
    assert len(records) == 1
    assert problems.count("the XML of the record is broken") == 2


def test_another_field_for_another_attribute(tmp_path: Path) -> None:
    text = XML.replace('tag="375"', 'tag="374"').replace("male", "Journalists")
    records, problems = read(tmp_path, text.encode(), "a.xml")
    options = ReaderOptions(attribute="occupation", marc_field="374")
    row = authority_row(records[0], options, "a.xml", problems)
    assert row is not None
    assert {a["attribute"] for a in row[3]} == {"occupation"}


# --- real samples -----------------------------------------------------------------------------


def normal(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip()


@pytest.mark.realdata
def test_all_fields_are_those_of_pymarc(realdata: Path) -> None:
    folder = realdata / "marc-samples"
    files = [*folder.glob("openlibrary/bin_input/*.mrc"), *folder.glob("pymarc/*.dat")]
    compared = 0
    for file in sorted(files):
        problems = Problems()
        ours = list(read_marc(file, problems))
        with file.open("rb") as stream:
            theirs = list(pymarc.MARCReader(stream, utf8_handling="replace"))
        if problems.rows() or None in theirs or len(ours) != len(theirs):
            continue  # records that one of the two repairs are looked at below
        for own, other in zip(ours, theirs, strict=True):
            assert other is not None
            for tag in {f.tag for f in other.fields}:
                if tag < "010":
                    assert normal(own.control(tag) or "") == normal(other[tag].data or "")
                    continue
                fields = [f for f in other.get_fields(tag) if f.tag == tag]
                expected = [[(s.code, normal(s.value)) for s in f.subfields] for f in fields]
                found = [[(c, normal(t)) for c, t in pairs] for _, pairs in own.fields(tag)]
                assert found == expected, (file.name, tag)
            compared += 1
    assert compared > 90


def samples(realdata: Path) -> list[tuple[Path, Path]]:
    folder = realdata / "marc-samples" / "openlibrary"
    pairs = []
    for kind, ending in (("bin", ".mrc"), ("xml", "_marc.xml")):
        for expected in sorted((folder / f"{kind}_expect").glob("*.json")):
            file = folder / f"{kind}_input" / (expected.stem + ending)
            if file.is_file():
                pairs.append((file, expected))
    return pairs


@pytest.mark.realdata
def test_openlibrary_finds_the_same_isbns_and_authors(realdata: Path) -> None:
    isbns = authors = 0
    for file, answer in samples(realdata):
        problems = Problems()
        (record,) = read_marc(file, problems)
        expected = json.loads(answer.read_text(encoding="utf-8"))
        texts = record.subfields("020", "a") + record.subfields("020", "z")
        found = set(extract_isbns(pl.Series(texts, dtype=pl.String))["isbn"].to_list())
        told = [t for form in ("isbn_10", "isbn_13") for t in expected.get(form, [])]
        # One answer holds a nine-digit number; ISBNs have 10 or 13.
        wanted = {isbn_key(t) for t in told if len(t) in {10, 13}}
        assert wanted <= found, file.name
        isbns += len(wanted)
        people = [a for a in expected.get("authors", []) if a.get("entity_type") == "person"]
        first = record.subfields("100", "a")[:1]
        if first and people:
            # OpenLibrary prefers the name in its own script (880) and keeps ours beside it.
            names = [people[0]["name"], *people[0].get("alternate_names", [])]
            keys = {key for name in names for key in name_variants(name)}
            # It also puts numeration and titles ($b, $c) into the name; we compare $a alone.
            pairs = record.fields("100")[0][1]
            whole = " ".join(text.strip(" ,") for code, text in pairs if code in "abc")
            ours = {*name_variants(first[0]), *name_variants(whole)}
            assert keys & ours, (file.name, first, names)
            authors += 1
    assert isbns >= 20
    assert authors >= 25


@pytest.mark.realdata
def test_damaged_samples_are_read_and_reported(realdata: Path) -> None:
    folder = realdata / "marc-samples" / "openlibrary" / "bin_input"
    problems = Problems()
    for name in ("dasrmischepriv00rein_meta.mrc", "upei_short_008.mrc"):
        (record,) = read_marc(folder / name, problems)
        assert record.subfields("245", "a")
    assert problems.count("wrong directory; fields taken in their order") == 2
