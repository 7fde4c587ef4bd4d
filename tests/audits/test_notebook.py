"""Results in a notebook: short, inert, and easy to take further."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from ombud.audits import Audit, Result
from ombud.audits.plan import Plan
from ombud.errors import PlanError
from ombud.metrics import ShareGap
from ombud.stats.estimate import Estimate
from ombud.worlds import small_world


@pytest.fixture(scope="module")
def result() -> Result:
    world = small_world(seed=1)
    return Audit(world.dataset, world.recommenders(), [ShareGap(k=10)]).run()


def test_repr_is_short(result: Result) -> None:
    assert len(repr(result)) < 300
    assert repr(result).startswith(f"Result({len(result.estimates):,} estimates of share gap@10")
    assert len(result._repr_html_()) < 5_000


def test_names_stay_text_in_html() -> None:
    bad = "<script>alert(1)</script>"
    one = Estimate.undefined(metric=bad, reason=bad, n=0, system=bad, label=bad)
    html = Result(Plan(title=bad), (one,))._repr_html_()
    assert "<script" not in html and "&lt;script&gt;" in html


def test_frames_have_a_row_for_each_estimate(result: Result) -> None:
    assert result.to_polars().height == len(result.estimates)
    pytest.importorskip("pandas")
    frame = result.to_pandas()
    assert len(frame) == len(result.estimates)
    assert frame["value"][0] == result.estimates[0].value
    assert list(frame.columns[:3]) == ["value", "low", "high"]


def test_a_notebook_shows_the_verdict_and_a_small_table(result: Result) -> None:
    (verdict,) = result.verdicts
    assert verdict["headline"][:40] in result._repr_html_()
    table = result.table()
    assert table.columns[:3] == ["value", "low", "high"]
    assert table.height == sum(e.kind == "level" and not e.group for e in result.estimates)


def test_groups_are_chosen_by_the_names_of_attributes() -> None:
    world = small_world(seed=1)
    assert world.dataset.users is not None
    first = world.dataset.users.attributes[0]

    def run(by: list[str]) -> Result:
        return Audit(world.dataset, world.recommenders(), [ShareGap(k=10)], by=by).run()

    assert {e.group.partition("=")[0] for e in run([first]).estimates if e.group} == {first}
    assert not any(e.group for e in run([]).estimates)
    with pytest.raises(PlanError, match="the data has the attributes age, gender"):
        run([first[:-1]])


def test_data_and_audits_show_what_they_hold() -> None:
    world = small_world(seed=1)
    shown = world.dataset._repr_html_()
    assert "<th>Users</th><td>300</td>" in shown and "<th>Texts</th><td>600</td>" in shown
    audit = Audit(world.dataset, world.recommenders(), [ShareGap(k=10)], title="<b>Ours</b>")
    html = audit._repr_html_()
    assert "&lt;b&gt;Ours" in html and "<b>" not in html
    assert "share gap@10" in html and shown in html


def test_a_notebook_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    display = SimpleNamespace(
        HTML=str, display=lambda first, display_id: SimpleNamespace(update=shown.append)
    )
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(
        sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=display)
    )
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    world = small_world(seed=1)
    systems = {"mine": world.recommenders()[0]}
    Audit(world.dataset, systems, [ShareGap(k=10)]).run()
    assert shown and all(one.startswith("<progress max=") for one in shown)
    assert any("mine" in one for one in shown)
    shown.clear()
    Audit(world.dataset, systems, [ShareGap(k=10)]).run(progress=lambda *told: None)
    assert not shown
    # A console of IPython has no kernel and shows none.
    del shell.kernel
    Audit(world.dataset, systems, [ShareGap(k=10)]).run()
    assert not shown
