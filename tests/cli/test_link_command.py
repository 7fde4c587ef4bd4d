"""``ombud link`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ombud.cli import app

runner = CliRunner()


@pytest.fixture
def inputs(tmp_path: Path) -> list[str]:
    book = {"key": "/b/1", "isbn_10": ["0525230106"], "authors": [{"key": "/a/1"}]}
    author = {"key": "/a/1", "name": "Young, [red]Peter\x1b"}
    dump = tmp_path / "dump.txt"
    dump.write_text(
        f"/type/edition\t/b/1\t1\tx\t{json.dumps(book)}\n/type/edition\tx\t1\tx\t{{broken\n"
        f"/type/author\t/a/1\t1\tx\t{json.dumps(author)}\n"
    )
    people = tmp_path / "people.csv"
    people.write_text('name,gender\n"[red]Peter Young",agender\n')
    return ["--read", f"openlibrary={dump}", "--read", f"people={people}"]


def test_build_report_explain(inputs: list[str], tmp_path: Path) -> None:
    to = str(tmp_path / "linked")
    built = runner.invoke(app, ["link", "build", *inputs, "--to", to, "--json"])
    assert built.exit_code == 0, built.output
    facts = json.loads(built.stdout)
    assert facts["outcomes"] == [
        {"set": "openlibrary", "outcome": "agender", "items": 1, "interactions": None, "flagged": 0}
    ]
    assert [p["reason"] for p in facts["problems"]] == ["a line that is not JSON"]
    shown = runner.invoke(app, ["link", "report", to])
    assert shown.exit_code == 0, shown.output
    assert "agender" in shown.stdout
    assert "a line that is not JSON" in shown.stdout
    told = runner.invoke(app, ["link", "explain", to, "0-525-23010-6", "--json"])
    assert json.loads(told.stdout)["identity"] == "agender"
    plain = runner.invoke(app, ["link", "explain", to, "openlibrary:/b/1"])
    assert "item 9780525230106, agender" in plain.stdout
    sizes = [line.split()[:-2] for line in shown.stdout.splitlines() if "up to" in line]
    assert [int(words[-1]) for words in sizes] == [1, 2, 5, 10, 20, 50, 100, 1000]
    lines = [line.strip() for line in shown.stdout.splitlines()]
    after = next(n for n, line in enumerate(lines) if line.startswith("up to 1000"))
    assert lines[after + 1].startswith("any ")
    # One record is no cluster to split: no headings without rows.
    assert "largest clusters" not in shown.stdout and "exclude.txt" not in shown.stdout
    # Names come from files of others: no markup, nothing hidden.
    assert "[red]" in plain.stdout
    assert "\x1b" not in plain.stdout
    again = runner.invoke(app, ["link", "build", *inputs, "--to", to])
    assert again.exit_code == 2
    replaced = runner.invoke(app, ["link", "build", *inputs, "--to", to, "--replace"])
    assert replaced.exit_code == 0, replaced.output


def test_the_report_gives_sizes_shares_and_what_is_counted_apart(tmp_path: Path) -> None:
    book = {"book_id": "1", "isbn13": "9780525230106", "authors": [{"author_id": "7"}]}
    more = {"book_id": "1", "isbn13": "9780804429573"}
    (tmp_path / "goodreads_books.json").write_text(f"{json.dumps(book)}\n{json.dumps(more)}")
    (tmp_path / "goodreads_book_authors.json").write_text('{"author_id": "7", "name": "A Bee"}')
    seen = {"user_id": "u", "book_id": "1", "rating": 4}
    (tmp_path / "goodreads_interactions.json").write_text(json.dumps(seen))
    people = tmp_path / "people.csv"
    people.write_text("name,gender,id\nA Bee,female,1\nA Bee,male,2\n")
    read = ["--read", f"goodreads={tmp_path}", "--read", f"people={people}"]
    to = str(tmp_path / "linked")
    done = runner.invoke(app, ["link", "build", *read, "--platform-authors", "--to", to])
    assert done.exit_code == 0, done.output
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "up to 2 2 100.0" in lines
    assert "goodreads 1 1 0 1" in lines
    assert "several authority records 1 50.0 1 100.0" in lines
    assert "items that only platforms name a creator of 1" in lines
    # The table of problems may be broken into lines, between the words of a cell.
    assert "in several" in done.stdout and "first record is" in done.stdout
    told = runner.invoke(app, ["link", "report", to, "--json"])
    [problem] = json.loads(told.stdout)["problems"]
    assert problem["reason"].startswith("a rated id whose records lie in several clusters")
    assert problem["count"] == 1


@pytest.mark.parametrize(
    "options",
    [
        ["--read", "nonsense"],
        ["--read", "marc=/none.mrc"],
        ["--read", "nope=/none"],
        ["--read", "marc=/none.mrc", "--marc-field", "gender"],
    ],
)
def test_wrong_use_is_one_sentence(options: list[str], tmp_path: Path) -> None:
    done = runner.invoke(app, ["link", "build", *options, "--to", str(tmp_path / "linked")])
    assert done.exit_code == 2
    assert "Traceback" not in done.output


def test_formats() -> None:
    done = runner.invoke(app, ["link", "formats", "--json"])
    assert set(json.loads(done.stdout)) >= {"marc", "viaf", "openlibrary", "wikidata", "bookdata"}
