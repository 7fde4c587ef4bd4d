"""Tables that ombud writes run nothing in a spreadsheet, whatever the names in them are."""

from __future__ import annotations

import csv
import io
import zipfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.app.exchange import add_ratings, export, read_ratings
from ombud.app.project import Project
from ombud.app.settings import ProjectSettings
from ombud.app.tables import ratings_table
from ombud.audits import Audit, Result
from ombud.audits.plan import StatisticsPlan
from ombud.data import Dataset, Grouping, Interactions, Labels
from ombud.files import csv_text, without_apostrophe
from ombud.metrics import ShareGap
from ombud.report import Report
from ombud.report.packing import pack
from ombud.systems import RecordedRecommendations

EVIL = [
    "=1+1", "+1+1", "-1+1", "@SUM(A1)", "=cmd|' /C calc'!A0", "\t=1", "\r=1", "\n=1", "  =1", "'=1",
    "''=1", "＝1+1", "＋1", "－1+1", "＠A1", "%0A=1", "|cmd", "\x00=1", "\ufeff=1", "\u202e=1", "\x1b=1",
    "-cmd", "--1", "+49 30 1=2", "-1e", "a;=1", "a\t=1", '=HYPERLINK("http://a";"b")', "\x85=1", "=",
]  # fmt: skip


def inert(cell: str) -> bool:
    """Whether Excel, LibreOffice and Sheets show a cell as it is, by a rule of its own."""
    try:
        float(cell.replace(",", ".").removesuffix("%"))
    except ValueError:
        pass
    else:
        return True
    if any(ord(c) < 32 and c not in "\t\n" or 127 <= ord(c) < 160 for c in cell):
        return False
    if any(c in "\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069" for c in cell):
        return False
    return cell in {"-", "+"} or cell.lstrip(" ")[:1] not in tuple("=+-@\t\n|%＝＋－＠")


def cells(text: str) -> list[list[str]]:
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert len({len(row) for row in rows}) == 1
    return rows


def check(text: str) -> None:
    found = [cell for row in cells(text) for cell in row]
    assert [cell for cell in found if not inert(cell)] == []


def test_cells_headers_and_categories_are_inert_and_come_back() -> None:
    frame = pl.DataFrame({name: EVIL for name in [*EVIL, "plain"]}).with_columns(
        category=pl.Series(EVIL, dtype=pl.Categorical), number=pl.Series(range(len(EVIL))) - 5
    )
    check(csv_text(frame))
    kept = [one for one in EVIL if not any(c in one for c in "\r\x00\ufeff\u202e\x1b\x85")]
    back = [row[0] for row in cells(csv_text(pl.DataFrame({"a": kept})))][1:]
    assert list(map(without_apostrophe, back)) == kept


@given(
    st.lists(
        st.text(st.sampled_from("=+-@|%'\" \t\n\r;,.1eE\x00\u202eaＡ＝"), max_size=6), min_size=1
    )
)
def test_any_cells_are_inert(texts: list[str]) -> None:
    check(csv_text(pl.DataFrame({"a": texts, "b": texts, "".join(texts): texts})))


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers())
def test_numbers_stay_numbers(number: float, whole: int) -> None:
    texts = [str(number), str(whole), f"+{abs(whole)}"]
    assert [row[0] for row in cells(csv_text(pl.DataFrame({"a": texts})))][1:] == texts


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evil")
    names = [name for name in EVIL if name.isprintable() and name == name.strip()][:6]
    users = [f"u{i}" for i in range(24)]
    items = [f"i{i}" for i in range(12)]
    seen = [(u, i) for n, u in enumerate(users) for m, i in enumerate(items) if (n + m) % 3]
    lists = [(u, items[(n + r) % 12], r + 1) for n, u in enumerate(users) for r in range(5)]
    dataset = Dataset(
        interactions=Interactions.from_frame(
            pl.DataFrame(seen, schema=["user", "item"], orient="row")
        ),
        labels=Labels.from_applied(
            pl.DataFrame({"item": items, "label": [names[n % 2] for n in range(12)]})
        ),
        users=Grouping.from_frame(
            pl.DataFrame({"user": users, names[2]: [names[3 + n % 3] for n in range(24)]}),
            by=[names[2]],
        ),
    )
    shown = pl.DataFrame(lists, schema=["user", "item", "rank"], orient="row")
    Audit(
        dataset,
        [RecordedRecommendations(shown, name="shop+")],
        [ShareGap(k=5)],
        by=[names[2]],
        title=names[0],
        statistics=StatisticsPlan(replicates=100, minimum=2),
    ).run(folder / "r")
    return folder / "r"


def test_tables_of_a_result_are_inert(stored: Path, tmp_path: Path) -> None:
    result = Result.load(stored)
    names = {e.system for e in result.estimates} | {e.group for e in result.estimates}
    assert any("=" in name or "+" in name or "@" in name for name in names)
    check(result.to_table(tmp_path / "a.csv").read_text(encoding="utf-8"))
    Report(result).save(tmp_path / "out", formats=["csv"])
    check((tmp_path / "out" / "report.csv").read_text(encoding="utf-8"))
    with zipfile.ZipFile(pack(result, tmp_path / "a.zip", redact="none")) as archive:
        check(archive.read("estimates.csv").decode())


def test_tables_of_the_annotation_app_are_inert_and_come_back(tmp_path: Path) -> None:
    names = ["=1+1", "+1+1", "@SUM(A1)", "-1+1", "--1", "plain"]
    texts = {"id": names, "text": [f"{name} {name}" for name in EVIL[:6]]}
    with (
        Project.create(tmp_path / "one", ProjectSettings(dictionary=())) as one,
        Project.create(tmp_path / "two", ProjectSettings(dictionary=())) as two,
    ):
        for project in (one, two):
            assert project.add_texts(texts) == len(names)
        frame = pl.DataFrame({"id": names, "rater": names[::-1], "answer": ["not delicate"] * 6})
        add_ratings(one, read_ratings(frame, one.settings), new_raters=True)
        for name in ("ratings.csv", "labels.csv"):
            check(export(one, name, tmp_path / name).read_text(encoding="utf-8"))
        back = read_ratings(tmp_path / "ratings.csv", two.settings)
        assert add_ratings(two, back, new_raters=True) == len(names)
        wanted, found = (p.store.read(ratings_table)["id", "rater"].rows() for p in (one, two))
        assert sorted(found) == sorted(wanted)
