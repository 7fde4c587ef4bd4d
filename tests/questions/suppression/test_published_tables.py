"""Tables 1, 2, 4 and 11 to 16 in their own form: published counts in, published ratios out."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ombud.audits import Audit, Plan, Result
from ombud.report import Report
from ombud.report.model import Table

pytest.importorskip("statsmodels")

# True negatives and false positives of OpenAI on Stormfront, recovered from the published rates.
N, FLAGGED = 9748, 1180
OPENAI = {
    "white": (101, 94),
    "non-white": (167, 112),
    "men": (713, 190),
    "women": (467, 131),
    "christian": (74, 32),
    "non-christian": (79, 101),
    "lgbt": (27, 28),
    "straight": (0, 1),
    "disability": (9, 7),
}


def members() -> dict[str, np.ndarray]:
    """Return who is in each group: the first texts are flagged."""
    rng = np.random.default_rng(4)
    return {
        group: np.concatenate(
            [rng.choice(FLAGGED, fp, False), FLAGGED + rng.choice(N - FLAGGED, tn, False)]
        )
        for group, (tn, fp) in OPENAI.items()
    }


@pytest.fixture(scope="module")
def stormfront(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Acceptable texts with the published true negatives and false positives of each group."""
    folder = tmp_path_factory.mktemp("stormfront")
    n = N
    flags = np.arange(n) < FLAGGED
    groups = [(f"t{row}", group) for group, rows in members().items() for row in rows]
    # Longer and shorter texts in both families, so that the regressions have columns.
    words = ["w " * (3 + i % 9) for i in range(n)]
    family = np.where(np.arange(n) % 3 == 0, "generative-ai", "traditional")
    pl.DataFrame(
        {"id": [f"t{i}" for i in range(n)], "text": words, "label": 0, "family": family}
    ).write_csv(folder / "texts.csv")
    pl.DataFrame(groups, schema=["id", "group"], orient="row").write_csv(folder / "groups.csv")
    scores = (np.arange(n)[::-1] + 1) / n
    ids = [f"t{i}" for i in range(n)]
    frame = pl.DataFrame({"id": ids, "flagged": flags, "score": scores})
    frame.drop("score").write_csv(folder / "openai.csv")
    frame.drop("flagged").write_csv(folder / "perspective.csv")
    plan = Plan.from_dict(
        {
            "preset": "suppression",
            "options": {"regressions": True},
            "data": {"texts": str(folder / "texts.csv"), "text_groups": str(folder / "groups.csv")},
            "systems": {
                name: {"type": "recorded", "path": str(folder / f"{name}.csv")}
                for name in ("openai", "perspective")
            },
            "statistics": {"replicates": 100},
        }
    )
    return Audit.from_plan(plan).run(folder / "result")


def tables(result: Result) -> dict[str, Table]:
    sections = Report(result).page.sections
    return {b.name: b for s in sections for b in s.blocks if isinstance(b, Table)}


def row_of(table: Table, *names: str) -> dict[str, str]:
    """Return the cells of a row, by the whole title of their column."""
    (row,) = [row for row in table.rows if [cell.text for cell in row[: len(names)]] == [*names]]
    return {c.whole: cell.text for c, cell in zip(table.columns, row, strict=True)}


def test_the_row_of_stormfront_in_table_11(stormfront: Result) -> None:
    found = row_of(tables(stormfront)["suppression-table-11"], "All texts")
    assert found["openai: Supp."] == "8.26†"  # as printed; ombud itself gives no ratio of one flag
    assert found["openai: Identity"] == "straight people"
    assert found["openai: #FP"] == "1"


def test_every_ratio_that_was_published_for_stormfront(stormfront: Result) -> None:
    rows = stormfront.tables["suppression-counts"].filter(
        (pl.col("system") == "openai") & (pl.col("label") == "")
    )
    ratios = {row["group"]: row for row in rows.to_dicts()}
    assert ratios["white"]["ratio"] == pytest.approx(3.98, abs=0.005)
    assert ratios["non-christian"]["ratio"] == pytest.approx(4.64, abs=0.005)
    assert (ratios["men"]["flagged"], ratios["men"]["texts"]) == (190, 903)
    assert ratios[""]["level"] == pytest.approx(1180 / 9748)


def test_table_4_has_both_the_printed_and_the_ranked_group(stormfront: Result) -> None:
    table = tables(stormfront)["suppression-table-4"]
    assert {c.block for c in table.columns if c.block} == {"Traditional", "GenAI"}
    row = row_of(table, "openai")
    assert row["Traditional: Identity"] == "straight people" or "†" not in row["Traditional: Supp."]
    worst = {
        e.label: e for e in stormfront.select(metric="largest suppression") if e.system == "openai"
    }
    assert worst["traditional"].details["group"] == "non-christian"
    assert row["Traditional: Identity (ranked)"] == "people of non-Christian religions"
    # A system of scores alone has no flags, and one of flags alone no scores.
    services = [r[0].text for r in table.rows]
    assert services == ["openai", "perspective"]


def test_tables_13_and_14_have_every_group(stormfront: Result) -> None:
    table = tables(stormfront)["suppression-tables-13-14"]
    flags = stormfront.tables["suppression-counts"].filter(
        (pl.col("part") == "family") & (pl.col("group") != "") & (pl.col("texts") > 0)
    )
    assert len(table.rows) == flags.filter(pl.col("by") == "scores").height
    men = row_of(table, "Traditional", "men")
    (counted,) = flags.filter(
        (pl.col("group") == "men") & (pl.col("name") == "traditional") & (pl.col("by") == "flags")
    ).to_dicts()
    assert men["openai: #FP"] == f"{counted['flagged']:.0f}"
    assert men["openai: Supp."] == f"{counted['ratio']:.2f}"


def test_tables_15_and_16_beside_statsmodels(stormfront: Result) -> None:
    import statsmodels.api as sm

    found = tables(stormfront)
    linear = found["suppression-table-16"]
    assert [c.whole for c in linear.columns] == ["Term", "perspective"]
    logistic = found["suppression-table-15"]
    assert [c.whole for c in logistic.columns] == ["Term", "openai"]  # the other has no flags
    n = N
    family = (np.arange(n) % 3 == 0).astype(float)
    words = np.array([3 + i % 9 for i in range(n)]) / 100
    rows = stormfront.tables["score-regression"].to_dicts()
    order = [row["column"] for row in rows if row["column"]]
    inside = {g: np.isin(np.arange(n), rows).astype(float) for g, rows in members().items()}
    inside |= {"family: generative-ai": family, "words (hundreds)": words}
    x = np.column_stack([np.ones(n), *(inside[one] for one in order)])
    y = ((np.arange(n)[::-1] + 1) / n).astype(np.float32).astype(float)
    theirs = sm.OLS(y, x).fit()
    cells = {row[0].text: row[1] for row in linear.rows}
    men = order.index("men") + 1
    assert cells["men"].value == pytest.approx(theirs.params[men], rel=1e-5)
    assert cells["men"].small.startswith(f"{theirs.bse[men]:.3f}; robust (HC1)")
    assert cells["men"].text.endswith("***") == (theirs.pvalues[men] < 0.01)
    assert cells["Observations"].value == n
    assert cells["Log likelihood"].value == pytest.approx(theirs.llf, rel=1e-6)
    assert cells["Residual std. error"].value == pytest.approx(np.sqrt(theirs.scale), rel=1e-6)
    assert cells["Test of all terms"].value == pytest.approx(theirs.fvalue, rel=1e-5)
    right = (~(np.arange(n) < FLAGGED)).astype(float)
    logit = sm.Logit(right, x).fit(disp=0)
    cells = {row[0].text: row[1] for row in logistic.rows}
    assert cells["men"].value == pytest.approx(logit.params[men], rel=1e-4)
    assert cells["men"].small.startswith(f"{logit.bse[men]:.3f}; ")


def test_groups_below_the_minimum_are_listed_with_their_counts(stormfront: Result) -> None:
    few = tables(stormfront)["suppression-few"]
    listed = {(row[0].text, row[2].text): [c.text for c in row[3:]] for row in few.rows}
    men = {k: v for k, v in listed.items() if "disabilities" in k[1]}
    assert men
    assert all(int(v[0].replace(",", "")) < 5 for v in listed.values())


def test_tables_are_exported_as_latex_too(stormfront: Result, tmp_path: Path) -> None:
    (file,) = Report(stormfront).save(tmp_path / "report.tex")
    text = file.read_text()
    assert "tab:suppression-table-11" in text
    assert "8.26" in text
    shutil.rmtree(tmp_path)
