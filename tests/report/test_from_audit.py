"""From an audit to its report, and from the stored result to the same report."""

from __future__ import annotations

from pathlib import Path

from ombud.audits import Audit, Result
from ombud.metrics import LabelShare, ShareGap
from ombud.report import Report
from ombud.worlds import small_world


def test_the_report_of_a_stored_result_is_the_same(tmp_path: Path) -> None:
    world = small_world(seed=1)
    metrics = [ShareGap(k=10), LabelShare(k=10)]
    result = Audit(world.dataset, world.recommenders(), metrics, title="A world").run(tmp_path)
    stored = Result.load(tmp_path)
    assert Report(stored).html(interactive=False) == Report(result).html(interactive=False)
    assert Report(stored).json() == Report(result).json()


def test_limits_come_from_the_documentation_of_the_metrics() -> None:
    world = small_world(seed=1)
    result = Audit(world.dataset, world.recommenders(), [ShareGap(k=10)]).run()
    text = Report(result).markdown()
    assert "Does not capture: why; a gap may come from popularity" in text
    assert "Above 0, the lists hold more of the label than the same users' histories do." in text


def test_a_report_does_not_tell_where_files_lay(tmp_path: Path) -> None:
    world = small_world(seed=1)
    Audit(world.dataset, world.recommenders(), [ShareGap(k=10)]).run(tmp_path)
    report = Report(Result.load(tmp_path))
    assert "interactions.parquet" in report.json()
    for text in (report.json(), report.markdown(), report.html(interactive=False)):
        assert str(tmp_path) not in text
