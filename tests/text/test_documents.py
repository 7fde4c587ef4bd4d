"""Files of documents: every form, and every way in which they are broken."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from ombud.errors import DataError
from ombud.text.documents import Columns, Damage, read_documents

ROWS = [
    {"text": "A first text.", "url": "https://a.example.org/1", "date": "2020-01-01"},
    {"text": "Ein zweiter Text: ü", "url": "https://b.example.org/2", "date": "2020-01-02"},
]


def record(
    text: bytes, number: int, declared: int | None = None, kind: str = "conversion"
) -> bytes:
    length = len(text) if declared is None else declared
    return (
        (
            f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: https://a.example.org/{number}\r\n"
            f"WARC-Date: 2022-08-01T00:00:00Z\r\nWARC-Record-ID: <urn:uuid:{number:032d}>\r\n"
            f"Content-Type: text/plain\r\nContent-Length: {length}\r\n\r\n"
        ).encode()
        + text
        + b"\r\n\r\n"
    )


def read(path: Path, **options: object) -> tuple[list[str], Damage]:
    damage = Damage()
    texts: list[str] = []
    for batch in read_documents(path, damage=damage, **options):  # type: ignore[arg-type]
        texts += batch.frame["text"].to_list()
    return texts, damage


@pytest.fixture
def forms(tmp_path: Path) -> dict[str, Path]:
    frame = pl.DataFrame(ROWS)
    lines = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
    paths = {name: tmp_path / f"x.{name}" for name in ("parquet", "csv", "tsv", "jsonl")}
    frame.write_parquet(paths["parquet"])
    frame.write_csv(paths["csv"])
    frame.write_csv(paths["tsv"], separator="\t")
    paths["jsonl"].write_bytes(lines)
    for name in ("csv", "jsonl"):
        packed = tmp_path / f"x.{name}.gz"
        packed.write_bytes(gzip.compress(paths[name].read_bytes()))
        paths[f"{name}.gz"] = packed
    return paths


@pytest.mark.parametrize("form", ["parquet", "csv", "tsv", "jsonl", "csv.gz", "jsonl.gz"])
def test_tables_give_the_same_documents(forms: dict[str, Path], form: str) -> None:
    batches = list(read_documents(forms[form]))
    frame = pl.concat([batch.frame for batch in batches])
    assert frame["text"].to_list() == [row["text"] for row in ROWS]
    assert frame["url"].to_list() == [row["url"] for row in ROWS]
    assert frame["date"].to_list() == [row["date"] for row in ROWS]
    assert frame["language"].to_list() == [None, None]


def test_plain_text_and_other_column_names(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("One,\non two lines.\n \nTwo,\nwithout an end")
    assert read(path)[0] == ["One,\non two lines.", "Two,\nwithout an end"]
    table = tmp_path / "x.csv"
    table.write_text('body,link\n"two\nlines",https://a.example.org\n')
    batch = next(iter(read_documents(table, columns=Columns(text="body", url="link"))))
    assert batch.frame.row(0)[:2] == ("two\nlines", "https://a.example.org")


@pytest.mark.parametrize("name", ["x.warc.wet", "x.warc.wet.gz", "x.warc"])
def test_archives_give_their_plain_text(tmp_path: Path, name: str) -> None:
    pytest.importorskip("fastwarc")
    path = tmp_path / name
    records = [record(f"Text number {i}".encode(), i) for i in range(5)]
    path.write_bytes(
        b"".join(gzip.compress(r) for r in records) if name.endswith("gz") else b"".join(records)
    )
    texts, damage = read(path)
    assert texts == [f"Text number {i}" for i in range(5)]
    assert not damage.counts and not damage.files


def test_pages_of_responses_become_text(tmp_path: Path) -> None:
    pytest.importorskip("fastwarc")
    page = b"<html><body><p>Seen text.</p><script>no()</script></body></html>"
    body = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + page
    head = record(body, 1, kind="response").replace(b"text/plain", b"application/http")
    path = tmp_path / "x.warc"
    path.write_bytes(head)
    texts, _ = read(path)
    assert len(texts) == 1 and "Seen text." in texts[0]
    assert "no()" not in texts[0] and "<p>" not in texts[0]


@pytest.mark.parametrize("form", ["jsonl", "txt"])
def test_a_gzip_cut_in_the_middle_is_said_and_its_beginning_used(tmp_path: Path, form: str) -> None:
    line = json.dumps({"text": "abc " * 50}) + "\n"
    data = gzip.compress("".join(line for _ in range(400_000)).encode(), 1)
    path = tmp_path / f"x.{form}.gz"
    path.write_bytes(data[: len(data) * 2 // 3])
    texts, damage = read(path)
    assert texts
    assert "cut or damaged" in damage.files[path.name]


@pytest.mark.parametrize("form", ["jsonl", "txt", "csv"])
def test_a_small_gzip_is_used_up_to_the_line_that_was_cut(tmp_path: Path, form: str) -> None:
    """Less than a block: all that stands before the cut must come out, and nothing of the rest."""
    texts = [f"text {i} {hash(i) * 7919 % 10**9}" for i in range(300)]
    lines = {"jsonl": [json.dumps({"text": t}) for t in texts], "csv": ["text", *texts]}
    end = "\n\n" if form == "txt" else "\n"
    data = gzip.compress((end.join(lines.get(form, texts)) + end).encode())
    path = tmp_path / f"x.{form}.gz"
    path.write_bytes(data[: len(data) * 2 // 3])
    found, damage = read(path)
    assert 100 < len(found) < 300 and found == texts[: len(found)]
    assert "cut or damaged" in damage.files[path.name]
    assert list(damage.counts) == ["pieces cut off by the end of a damaged file"]


def test_paragraphs_of_plain_text_may_lie_across_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ombud.text.documents.BLOCK", 64)
    wanted = [f"paragraph {i}\nof two lines" for i in range(50)]
    path = tmp_path / "x.txt"
    path.write_text("\r\n\r\n".join(wanted))
    assert read(path)[0] == wanted


def test_an_archive_cut_in_the_middle_is_said(tmp_path: Path) -> None:
    pytest.importorskip("fastwarc")
    records = [record(b"Text " * 200 + str(i).encode(), i) for i in range(9)]
    for name, data in (
        ("x.wet.gz", b"".join(gzip.compress(r) for r in records)),
        ("x.wet", b"".join(records)),
    ):
        path = tmp_path / name
        path.write_bytes(data[:-60])
        texts, damage = read(path)
        assert len(texts) == 8
        assert "cut in the middle" in damage.files[name]


@pytest.mark.parametrize("declared", [-50, 50, 10**12])
@pytest.mark.parametrize("packed", [False, True])
def test_a_record_that_lies_about_its_length_spoils_no_text(
    tmp_path: Path, declared: int, packed: bool
) -> None:
    pytest.importorskip("fastwarc")
    texts = [f"text {i} ".encode() * 40 for i in range(6)]
    records = [
        record(text, i, len(text) + declared if i == 3 else None) for i, text in enumerate(texts)
    ]
    path = tmp_path / ("x.wet.gz" if packed else "x.wet")
    path.write_bytes(b"".join(gzip.compress(r) if packed else r for r in records))
    found, damage = read(path)
    assert found == [text.decode() for i, text in enumerate(texts) if i != 3]
    assert "at 1 place reading went on" in damage.files[path.name]
    assert sum(damage.counts.values()) == 1


def test_a_damaged_record_costs_no_more_than_the_one_before_it(tmp_path: Path) -> None:
    pytest.importorskip("fastwarc")
    parts = [gzip.compress(record(f"text {i} ".encode() * 40, i)) for i in range(9)]
    parts[4] = parts[4][:30] + b"\x00" * 20 + parts[4][50:]
    path = tmp_path / "x.wet.gz"
    path.write_bytes(b"".join(parts))
    found, damage = read(path)
    assert [text.split()[1] for text in found] == ["0", "1", "2", "5", "6", "7", "8"]
    assert "after byte" in damage.files[path.name] and sum(damage.counts.values()) == 1


def test_an_archive_of_lies_is_given_up(tmp_path: Path) -> None:
    pytest.importorskip("fastwarc")
    path = tmp_path / "x.wet"
    path.write_bytes(b"".join(record(b"text " * 9, i, 7) for i in range(150)))
    found, damage = read(path)
    assert found == []
    assert "at 100 places" in damage.files[path.name]
    assert "what stands before is used" in damage.files[path.name]


def test_bytes_that_are_not_utf8_are_replaced_and_counted(tmp_path: Path) -> None:
    lines = tmp_path / "x.jsonl"
    lines.write_bytes(b'{"text": "good"}\n{"text": "b\xffd"}\nnot json\n[1]\n{"text": null}\n')
    texts, damage = read(lines)
    assert texts == ["good", "b\ufffdd"]
    assert sorted(damage.counts.values()) == [1, 1, 1]
    assert list(damage.mended.values()) == [1]  # it is used: not among what was left out
    table = tmp_path / "x.csv"
    table.write_bytes(b"text,url\nb\xffd,u\nfine,u\n1,2,3\n")
    texts, damage = read(table)
    assert texts == ["b\ufffdd", "fine"]
    assert list(damage.counts.values()) == list(damage.mended.values()) == [1]
    plain = tmp_path / "x.txt"
    plain.write_bytes(b"b\xffd\n")
    texts, damage = read(plain)
    assert texts == ["b\ufffdd"]
    assert not damage.counts and list(damage.mended.values()) == [1]


def test_lone_surrogates_of_json_become_replacement_characters(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "a \\ud800 b"}\n')
    texts, _ = read(path)
    assert texts[0].encode("utf-8")


def test_a_text_of_ten_megabytes_is_a_document(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"text": "ab " * 3_500_000}) + '\n{"text": "c"}\n')
    texts, damage = read(path)
    assert [len(text) for text in texts] == [10_500_000, 1]
    assert not damage.counts


def test_what_is_no_file_or_has_no_texts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read(tmp_path / "none.jsonl")
    odd = tmp_path / "x.docx"
    odd.write_bytes(b"x")
    with pytest.raises(DataError, match=r"'.docx' are not read"):
        read(odd)
    table = tmp_path / "x.csv"
    table.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="no column 'text'"):
        read(table)
    fake = tmp_path / "x.parquet"
    fake.write_bytes(b"PAR1 not really")
    with pytest.raises(DataError, match="not Parquet"):
        read(fake)
    lines = tmp_path / "x.jsonl"
    lines.write_text('{"other": 1}\n')
    with pytest.raises(DataError, match="no line has a text"):
        read(lines)


@pytest.mark.realdata
def test_real_archives(realdata: Path) -> None:
    pytest.importorskip("fastwarc")
    folder = realdata / "warc-samples"
    texts, damage = read(folder / "whirlwind.warc.wet.gz")
    assert len(texts) == 1 and len(texts[0]) > 4000 and not damage.files
    again, _ = read(folder / "whirlwind.warc.wet")
    assert again == texts
    texts, _ = read(folder / "example.warc.gz")
    assert "Example Domain" in texts[0]
    _, damage = read(folder / "example-trunc.warc")
    assert damage.files
