"""From an audit to its report, and from the stored result to the same report."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ombud import Dataset, Interactions, Labels, RecordedRecommendations
from ombud.audits import Audit, Result
from ombud.metrics import LabelShare, ShareGap
from ombud.report import Report
from ombud.worlds import small_world


def test_the_report_of_a_stored_result_is_the_same(tmp_path: Path) -> None:
    world = small_world(seed=1)
    metrics = [ShareGap(k=10), LabelShare(k=10)]
    result = Audit(world.dataset, world.recommenders(), metrics, title="A world").run(tmp_path)
    stored = Result.load(tmp_path)
    assert Report(stored).html(script=False) == Report(result).html(script=False)
    assert Report(stored).json() == Report(result).json()


def test_limits_come_from_the_documentation_of_the_metrics() -> None:
    world = small_world(seed=1)
    result = Audit(world.dataset, world.recommenders(), [ShareGap(k=10)]).run()
    text = Report(result).markdown()
    assert "why; a gap may come from popularity" in text


def test_a_report_does_not_tell_where_files_lay(tmp_path: Path) -> None:
    world = small_world(seed=1)
    Audit(world.dataset, world.recommenders(), [ShareGap(k=10)]).run(tmp_path)
    report = Report(Result.load(tmp_path))
    assert "interactions.parquet" in report.json()
    for text in (report.json(), report.markdown(), report.html(script=False)):
        assert str(tmp_path) not in text


@pytest.mark.parametrize(
    ("users", "votes", "answer", "why"),
    [
        (1, 5, "cannot tell", "not enough data"),
        (30, 0, "cannot tell", "no spread between replicates of 30 units"),
    ],
    ids=["one user", "a label that is never yes"],
)
def test_a_report_of_an_audit_that_can_test_nothing(
    tmp_path: Path, users: int, votes: int, answer: str, why: str
) -> None:
    def table(items: range) -> pl.DataFrame:
        user, item = pl.Series("user", range(users)), pl.Series("item", items)
        return user.to_frame().join(item.to_frame(), how="cross")

    labels = pl.DataFrame({"item": range(12)}).with_columns(
        label=pl.lit("violence"), yes=pl.col("item") % 2 * votes, no=(1 - pl.col("item") % 2) * 5
    )
    if not votes:
        labels = labels.with_columns(no=5)
    lists = table(range(6, 9)).with_columns(rank=pl.col("item") - 5)
    lists.write_parquet(tmp_path / "lists.parquet")
    data = Dataset(Interactions.from_frame(table(range(6))), Labels.from_votes(labels))
    system = RecordedRecommendations(tmp_path / "lists.parquet", name="ours")
    report = Report(Audit(data, [system], [ShareGap(k=3)]).run())
    assert why in report.html(script=False).lower()
    assert why in report.markdown().lower()
    assert [verdict.answer for verdict in report.verdicts] == [answer]
