"""Several data sets in one report: tables in blocks, shared axes, and one verdict across them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from ombud.audits import Result
from ombud.audits.plan import Plan, load_study
from ombud.cli import app
from ombud.errors import PlanError, ResultError
from ombud.link import LinkOptions, build_links
from ombud.link.readers.base import ReaderOptions
from ombud.report import charts
from ombud.report.context import Context
from ombud.report.model import Cell, Chart, Table, plain
from ombud.report.names import Names
from ombud.report.show import BlockTable, Entry
from ombud.report.study import Study

Read = Callable[[str], Result]


@pytest.fixture(scope="module")
def authors(preset_result: Read) -> Study:
    results = [preset_result("authors"), preset_result("authors without effects")]
    return Study.of(results, ("BX-E", "GR-E"))


@pytest.fixture(scope="module")
def warnings(preset_result: Read) -> Study:
    results = [preset_result("warnings"), preset_result("warnings without effects")]
    return Study.of(results, ("ML-DDD", "AO3"), "Sensitive content")


def table(study: Study, name: str) -> Table:
    (found,) = (b for s in study.sections for b in s.blocks if getattr(b, "name", "") == name)
    assert isinstance(found, Table)
    return found


# -- One verdict.


def test_a_finding_in_one_data_set_is_named_as_such(authors: Study) -> None:
    (verdict,) = authors.verdicts
    assert verdict.answer == "yes"
    headline = plain(verdict.headline)
    assert headline == "In BX-E only, Ours recommends fewer works by women than users read."
    assert [s.name for s in verdict.systems] == ["BX-E", "GR-E"]
    assert [s.answer for s in verdict.systems] == ["yes", "no clear evidence"]
    assert (
        "1 comparison could be made in both data sets, of which 0 are significant in both."
        in plain(verdict.sure)
    )
    across = table(authors, "study-1-authors")
    assert [c.title for c in across.columns] == ["System", "What", "BX-E", "GR-E", "Significant"]
    where = {row[0].text: row[-1].text for row in across.rows}
    assert where == {"Ours": "in BX-E only", "Random": "in neither"}


def test_the_same_result_twice_is_significant_in_both(preset_result: Read) -> None:
    result = preset_result("authors")
    study = Study.of([result, result, result], ("A", "B", "C"))
    assert plain(study.verdicts[0].headline).startswith("In all 3 data sets, Ours recommends fewer")
    assert {row[-1].text for row in table(study, "study-1-authors").rows} == {"in all 3", "in none"}


def test_opposite_directions_are_mixed(preset_result: Read) -> None:
    result = preset_result("authors")
    gap = next(e for e in result.estimates if e.key.startswith("balance-gap") and e.system == "Ours"
               and e.kind == "level" and not e.group)  # fmt: skip
    assert gap.value is not None and gap.interval is not None
    turned = gap.replace(value=-gap.value, interval=(-gap.interval[1], -gap.interval[0]))
    other = replace(result, estimates=tuple(turned if e is gap else e for e in result.estimates))
    (verdict,) = Study.of([result, other], ("A", "B")).verdicts
    assert verdict.answer == "mixed"
    assert plain(verdict.headline) == (
        "In opposite directions: Ours, works by women: decrease in A; increase in B."
    )


def test_what_one_data_set_lacks_is_said(warnings: Study) -> None:
    (verdict,) = warnings.verdicts
    assert "In ML-DDD (not compared in AO3), " in plain(verdict.headline)
    rows = {row[0].text: row for row in table(warnings, "study-1-warnings").rows}
    assert rows["SVD"][3].text == "not measured"
    assert rows["SVD"][-1].text == "in ML-DDD; not compared in AO3"


@pytest.mark.parametrize(
    "question", ["suppression", "delicate", pytest.param("counterfactual", marks=pytest.mark.slow)]
)
def test_every_question_makes_a_study(question: str, preset_result: Read, tmp_path: Path) -> None:
    results = [preset_result(question), preset_result(f"{question} without effects")]
    study = Study.of(results, ("one", "two"))
    assert question in [verdict.name for verdict in study.verdicts]
    assert len(table(study, f"study-1-{question}").columns) == 5
    for ending in ("html", "md", "tex", "json", "csv"):
        (file,) = study.save(tmp_path / f"study.{ending}")
        assert file.stat().st_size > 1000


# -- Tables of the papers: heads as printed, one block or column for each data set.


def test_table_1_of_warnings_has_the_heads_of_the_paper(warnings: Study) -> None:
    found = table(warnings, "warnings-table-1")
    assert found.heading == [("", 1), ("ML-DDD", 4), ("AO3", 4)]
    assert [c.title for c in found.columns[1:4]] == ["Harm Label", "Diff", "P-Val"]
    assert [row[0].text for row in found.rows][:2] == ["1", "2"]
    assert len(found.rows) <= 10


def test_table_2_of_warnings_has_a_row_for_each_algorithm_of_each_set(warnings: Study) -> None:
    found = table(warnings, "warnings-table-2")
    assert found.heading == [("", 2), ("Precision", 1), ("Recall", 1), ("F1", 1), ("", 1)]
    assert [c.title for c in found.columns[2:]] == ["@k=10"] * 3 + ["RMSE"]
    rows = [(row[0].text, row[1].text) for row in found.rows]
    assert rows[:2] == [("ML-DDD", "Random"), ("ML-DDD", "TopPop")]
    assert rows[-1] == ("AO3", "Random")
    # F1 is that of both means, as printed in the paper.
    precision, recall, f1 = (cell.value for cell in found.rows[2][2:5])
    assert f1 == pytest.approx(2 * precision * recall / (precision + recall))


def test_tables_3_and_4_of_authors_have_the_heads_of_the_paper(authors: Study) -> None:
    three = table(authors, "authors-table-3")
    assert three.heading == [("", 1), ("Items", 2), ("Ratings", 2)]
    assert [c.title for c in three.columns] == ["Data set", "women", "men", "women", "men"]
    for row in three.rows:
        for first, second in ((1, 2), (3, 4)):
            assert row[first].value + row[second].value == pytest.approx(1)
    rows = Context.of(next(iter(authors.sets.values()))).rows("creator-resolution", known=True)
    known = {row["outcome"]: row for row in rows}
    women, men = known["women"]["interactions"], known["men"]["interactions"]
    assert three.rows[0][3].value == pytest.approx(women / (women + men))
    four = table(authors, "authors-table-4")
    assert four.heading == [("", 1), ("women", 2), ("men", 2)]
    assert [c.title for c in four.columns[1:]] == ["mean", "median"] * 2
    assert [row[0].text for row in four.rows] == ["BX-E", "GR-E"]
    mean = women / known["women"]["items"]
    assert four.rows[0][1].value == pytest.approx(mean)


def test_tables_6_9_and_10_of_authors_have_the_heads_of_the_paper(authors: Study) -> None:
    six = table(authors, "authors-table-6")
    assert [c.title for c in six.columns] == ["", "BX-E", "GR-E"]
    assert [row[0].text for row in six.rows] == [
        "Obs. y/n", "Std. Dev.", "\u03bc", "\u03c3", "E[\u03b8\u2032] (post.)", "Std. Dev. (post.)",
    ]  # fmt: skip
    nine = table(authors, "authors-table-9")
    assert [c.title for c in nine.columns] == ["Algorithm", "BX-E", "GR-E"]
    assert nine.rows[0][0].text == "Popular"
    ten = table(authors, "authors-table-10")
    assert [c.title for c in ten.columns][-3:] == ["SingleEQ", "GreedyEQ", "GreedyReflect"]
    assert [c.title for c in ten.columns][:2] == ["Data set", "Algorithm"]


def test_both_kinds_of_feedback_share_a_column(preset_result: Read) -> None:
    results = []
    for feedback in ("explicit", "implicit"):
        result = preset_result("authors")
        options = result.plan.options | {"feedback": feedback}
        results.append(replace(result, plan=result.plan.model_copy(update={"options": options})))
    nine = table(Study.of(results, ("BX-E", "BX-I")), "authors-table-9")
    assert [c.title for c in nine.columns] == ["Feedback", "Algorithm", "BX"]
    assert [row[0].text for row in nine.rows][:1] == ["Explicit"]
    assert nine.rows[-1][0].text == "Implicit"


def test_a_report_of_one_result_has_the_same_tables_without_sets(warnings: Study) -> None:
    (one, *_) = Study.of([warnings.result, warnings.result], ("A", "B")).sets.values()
    context = Context.of(one)
    from ombud.questions.warnings.tables import TABLE_1, TABLE_2

    (first,), (second,) = TABLE_1.blocks(context), TABLE_2.blocks(context)
    assert isinstance(first, Table) and isinstance(second, Table)
    assert [c.title for c in first.columns][:2] == ["Rank", "Harm Label"]
    assert first.heading == []
    assert second.columns[0].title == "Algorithm"


Places = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from("pq")),
    unique=True, min_size=1,
)  # fmt: skip


@given(Places, Places)
def test_every_cell_is_in_its_row_and_block(one: list, other: list) -> None:
    """Every entry is shown exactly once, where its row, its block and its column meet."""
    made = {"A": one, "B": other}

    def entries(context: Context, _: object) -> list[Entry]:
        return [
            Entry(
                {"row": r, "what": w, "set": f"{context.set}{s}"}, Cell(f"{context.set}{r}{w}{s}")
            )
            for r, w, s in made[context.set]
        ]

    shows = BlockTable("t", "", ("row",), ("set", "what"), entries)
    contexts = [Context(Result(Plan(), ()), Names(), name) for name in made]
    (found,) = shows.of(contexts)
    assert isinstance(found, Table)
    shown = {}
    for row in found.rows:
        for column, cell in zip(found.columns[1:], row[1:], strict=True):
            if cell.text != "\u2014":
                shown[cell.text] = (column.block[0], row[0].text, column.title, column.block[1])
    assert shown == {f"{n}{r}{w}{s}": (n, r, w, s) for n, some in made.items() for r, w, s in some}
    blocks = [column.block for column in found.columns[1:]]
    assert sum(a != b for a, b in pairwise(blocks)) == len(set(blocks)) - 1


def test_two_results_that_would_fill_the_same_cell_are_told_apart() -> None:
    shows = BlockTable(
        "t", "", ("set",), ("what",), lambda c, _: [Entry({"set": "X", "what": "n"}, Cell(c.set))]
    )
    contexts = [Context(Result(Plan(), ()), Names(), name) for name in ("A", "B")]
    (found,) = shows.of(contexts)
    assert isinstance(found, Table)
    assert [[c.text for c in row] for row in found.rows] == [["X", "A"], ["B: X", "B"]]


# -- Charts.


def test_panels_of_one_title_share_their_axes() -> None:
    one = charts.plane("all", [charts.Dot("a", 1, 1)], x=("x", 0, 2), y=("y", 0, 1))
    other = charts.plane("all", [charts.Dot("a", 1, 1)], x=("x", 1, 10), y=("y", -1, 0.5))
    alone = charts.plane("else", [charts.Dot("a", 1, 1)], x=("x", 0, 2), y=("y", 0, 1))
    made = charts.side_by_side({"A": [one, alone], "B": [other]})
    ticks = [re.findall(r'class="tick"[^>]*>([^<]*)<', panel) for panel in made]
    assert ticks[0] == ticks[1]
    assert "10" in ticks[0] and "10" not in ticks[2]
    dots = [re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', panel) for panel in made]
    assert dots[0] == dots[1] != dots[2]
    assert [re.search(r'class="panel"[^>]*>([^<]*)<', p)[1] for p in made] == [
        "A: all", "B: all", "A: else",
    ]  # fmt: skip


def test_charts_of_all_sets_stand_in_one_figure(warnings: Study) -> None:
    shown = [b for s in warnings.sections for b in s.blocks if isinstance(b, Chart)]
    spread = next(c for c in shown if c.name == "warnings-spread")
    titles = [re.search(r'class="panel"[^>]*>([^<]*)<', panel)[1] for panel in spread.panels]
    assert titles[:2] == ["ML-DDD: all labels", "AO3: all labels"]
    names = [c.name for c in shown]
    assert len(names) == len(set(names))


# -- Plans, files and commands.


PLAN = """
title = "Two sets"
preset = "warnings"
seed = 3
[options]
k = 5
accuracy_at = [5]
trained = ["Random", "TopPop"]
[statistics]
replicates = 100
[sets.One.data]
source = "small"
options = { seed = 3, ratings = true }
[sets.Two.data]
source = "small"
options = { seed = 4, ratings = true }
[sets.Two.options]
k = 8
"""


def test_a_plan_of_several_sets_is_one_plan_for_each(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(PLAN)
    plans = load_study(tmp_path / "study.toml")
    assert list(plans) == ["One", "Two"]
    assert [p.options["k"] for p in plans.values()] == [5, 8]
    assert [p.data.options["seed"] for p in plans.values()] == [3, 4]
    assert [p.title for p in plans.values()] == ["Two sets: One", "Two sets: Two"]
    assert [p.about.data for p in plans.values()] == ["One", "Two"]
    with pytest.raises(PlanError, match="plan of a study of several data sets"):
        Plan.load(tmp_path / "study.toml")
    (tmp_path / "plain.toml").write_text("seed = 1\n")
    assert list(load_study(tmp_path / "plain.toml")) == [""]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[sets.One]\nseed = 1\n", "has 1 data set; a study has 2 to 50"),
        ("sets = 3\n", "give each data set a table of its own"),
        ("[sets.One]\n[sets.'../x']\n", "they name folders"),
        ("[sets.One]\nsede = 1\n[sets.Two]\n", r"\[sets.One\]: 1 fault\n.*did you mean 'seed'"),
        ("[sets.One]\nabout = 3\n[sets.Two]\n", "about"),
        ("about = 3\n[sets.One]\n[sets.Two]\n", "about"),
    ],
)
def test_a_faulty_study_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(text)
    with pytest.raises(PlanError, match=said):
        load_study(tmp_path / "study.toml")


def test_run_makes_a_study_and_resumes_it(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(PLAN)
    command = ["run", str(tmp_path / "study.toml")]
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0, first.output
    folder = tmp_path / "study.result"
    page = (folder / "report.html").read_text()
    assert '<a href="./One/report.html">One</a>' in page
    assert '<a href="./Two/report.html">Two</a>' in page
    assert "<h1>Two sets</h1>" in page
    ran = (folder / "One" / "provenance.json").stat().st_mtime_ns
    again = CliRunner().invoke(app, [*command, "--json"])
    assert again.exit_code == 0, again.output
    assert (folder / "One" / "provenance.json").stat().st_mtime_ns == ran
    content = json.loads(again.stdout)
    assert list(content["sets"]) == ["One", "Two"]
    assert content["verdicts"][0]["name"] == "warnings"

    out = tmp_path / "elsewhere" / "both.html"
    results = [str(folder / "One"), str(folder / "Two")]
    made = CliRunner().invoke(app, ["report", *results, "--to", str(out), "--title", "Both"])
    assert made.exit_code == 0, made.output
    assert "<h1>Both</h1>" in out.read_text()
    assert "<td>Two</td>" not in out.read_text()
    frame = CliRunner().invoke(app, ["report", *results, "--to", str(tmp_path / "all.csv")])
    assert frame.exit_code == 0
    assert set(pl.read_csv(tmp_path / "all.csv", infer_schema=False)["set"]) == {"One", "Two"}

    # The folder of the study is reported as it was run, until one of its sets is not finished.
    again = CliRunner().invoke(app, ["report", str(folder)])
    assert again.exit_code == 0, again.output
    assert (folder / "report.html").read_text() == page
    made = CliRunner().invoke(app, ["report", str(folder), "--to", str(tmp_path / "all.tex")])
    assert made.exit_code == 0 and "Precision" in (tmp_path / "all.tex").read_text()
    with pytest.raises(ResultError, match="is the folder of a study; .* such as .*One"):
        Result.load(folder)
    (folder / "Two" / "provenance.json").unlink()
    unfinished = CliRunner().invoke(app, ["report", str(folder)])
    assert unfinished.exit_code != 0 and "is not a finished result" in unfinished.output


def test_what_makes_no_study_is_refused(preset_result: Read, tmp_path: Path) -> None:
    result = preset_result("authors")
    with pytest.raises(PlanError, match="at least two results"):
        Study.of([result])
    with pytest.raises(PlanError, match="2 results and 1 names"):
        Study.of([result, result], ("A",))
    with pytest.raises(PlanError, match="two results are called 'A'"):
        Study.of([result, result], ("A", "A"))
    folder = str(result.folder)
    one = CliRunner().invoke(
        app, ["report", folder, "--names", "A", "--to", str(tmp_path / "r.md")]
    )
    assert one.exit_code == 2 and "several results" in one.output
    gate = CliRunner().invoke(app, ["report", folder, folder, "--gate", "g.toml"])
    assert gate.exit_code == 2 and "--gate is for one result" in gate.output


@pytest.mark.realdata
def test_two_sites_of_books_in_one_study(realdata: Path, tmp_path: Path) -> None:
    """BookCrossing and goodbooks; published numbers stand in docs/studies/authors.md."""
    inputs = [
        ("bookcrossing", realdata / "bookcrossing"),
        ("goodbooks", realdata / "goodbooks-10k"),
        ("author-lists", realdata / "author-gender"),
    ]
    build_links(
        inputs, tmp_path / "linked", LinkOptions(reader=ReaderOptions(platform_authors=True))
    )
    sets = "".join(
        f'[sets.{name}.data]\ninteractions = "linked/interactions/{site}-explicit.parquet"\n'
        f'items = "linked/items.parquet"\n'
        for name, site in (("BX-E", "bookcrossing"), ("GB-E", "goodbooks"))
    )
    options = 'users = 200\naccuracy_users = 200\ncandidates = 100\ntrained = ["item-kNN"]\n'
    (tmp_path / "study.toml").write_text(
        f'preset = "authors"\nseed = 1\n[options]\nfeedback = "explicit"\nnoun = "books"\n{options}'
        f"[statistics]\nreplicates = 200\n{sets}"
    )
    made = CliRunner().invoke(app, ["run", str(tmp_path / "study.toml"), "--quiet"])
    assert made.exit_code == 0, made.output
    results = [Result.load(tmp_path / "study.result" / name) for name in ("BX-E", "GB-E")]
    study = Study.of(results, ("BX-E", "GB-E"))
    assert "books by women" in plain(study.verdicts[0].headline)
    first = {row[0].text: row[2].text for row in table(study, "authors-table-1").rows}
    assert first == {"BX-E": "18,184", "GB-E": "10,000"}
    shares = [cell.value for cell in table(study, "authors-table-6").rows[0][1:]]
    assert all(0.25 < share < 0.5 for share in shares)
