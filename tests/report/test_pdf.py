"""A report as PDF: through a browser that is there, or a sentence that says what is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ombud.audits.result import Result
from ombud.errors import ReportError
from ombud.report import Report
from ombud.report.pdf import BROWSERS, find_browser, write_pdf


def script(folder: Path, body: str) -> Path:
    path = folder / "browser"
    path.write_text(f"#!{sys.executable}\nimport sys\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_without_a_browser_one_sentence_says_what_to_do(
    moderator: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("OMBUD_BROWSER", raising=False)
    with pytest.raises(ReportError, match="none was found; install one, name it in OMBUD_BROWSER"):
        Report(moderator).save(tmp_path / "report.pdf")
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv("OMBUD_BROWSER", "netscape")
    with pytest.raises(ReportError, match="OMBUD_BROWSER names 'netscape', which is not there"):
        find_browser()


def test_a_browser_is_found_by_any_of_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMBUD_BROWSER", raising=False)
    made = script(tmp_path, "").rename(tmp_path / BROWSERS[-1])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_browser() == str(made)


def test_what_the_browser_prints_is_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = (
        "wanted = next(a for a in sys.argv if a.startswith('--print-to-pdf='))\n"
        "assert any('NOTFOUND' in a for a in sys.argv)\n"
        "open(wanted.split('=', 1)[1], 'wb').write(b'%PDF made')"
    )
    monkeypatch.setenv("OMBUD_BROWSER", str(script(tmp_path, body)))
    write_pdf("<p>x</p>", tmp_path / "new" / "a.pdf")
    assert (tmp_path / "new" / "a.pdf").read_bytes() == b"%PDF made"


@pytest.mark.parametrize(
    ("body", "said"),
    [("sys.exit('no screen')", "no screen"), ("", "it ended with 0")],
    ids=["fails", "prints nothing"],
)
def test_a_browser_that_fails_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, said: str
) -> None:
    monkeypatch.setenv("OMBUD_BROWSER", str(script(tmp_path, body)))
    with pytest.raises(ReportError, match=f"could not print the report: {said}"):
        write_pdf("<p>x</p>", tmp_path / "a.pdf")
    assert not (tmp_path / "a.pdf").exists()
