"""A series of results, from stored rows: which units are the same, alarms, acknowledgements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from ombud.audits import Audit, Result
from ombud.audits.monitor import ACKNOWLEDGED, acknowledge, acknowledged_in, results_in, watch
from ombud.cli import app
from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.texts import Texts
from ombud.errors import ResultError
from ombud.metrics import FalsePositiveRate
from ombud.questions.suppression.metrics import Suppression
from ombud.report.watching import watch_lines, watch_page
from ombud.stats.sequential import e_process, evidence, mean_residuals
from ombud.systems import RecordedDecisions

N = 600


def look(
    folder: Path | None, flagged: NDArray[np.bool_], ids: NDArray[Any], *, clusters: bool = False
) -> Result:
    texts = Texts(
        ids,
        np.array([f"text {i}" for i in ids], dtype=object),
        np.zeros(len(ids), dtype=np.int8),
        (np.arange(len(ids)) // 4).astype(np.int32) if clusters else None,
    )
    members = np.zeros((len(ids), 2), dtype=bool)
    members[: len(ids) // 3, 0] = members[len(ids) // 3 :, 1] = True
    groups = Grouping(Vocabulary(ids), ("a", "b"), members, ("identity",) * 2)
    data = Dataset(texts=texts, text_groups=groups)
    scores = np.where(flagged, 0.9, 0.1).astype(np.float32)
    system = RecordedDecisions(Decisions(ids, flagged.astype(np.int8), scores), "mine")
    metrics = [FalsePositiveRate(), Suppression(), Suppression(against="outside")]
    return Audit(data, {"mine": system}, metrics).run(folder)


def series(
    home: Path, rates: list[float], *, same: bool = False, own: float = 0.0, clusters: bool = False
) -> list[Result]:
    """Return looks at flags with these rates; of group a they are higher by `own` from look 3."""
    rng = np.random.default_rng(4)
    made = []
    for t, rate in enumerate(rates):
        chance = np.full(N, rate)
        chance[: N // 3] += own * (t >= 3)
        ids = np.arange(N) + (0 if same else t * N)
        made.append(look(home / f"{t:02d}", rng.random(N) < chance, ids, clusters=clusters))
    return made


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("clusters", [False, True])
def test_a_change_is_named_and_an_unchanged_series_is_calm(
    tmp_path: Path, same: bool, clusters: bool
) -> None:
    calm = watch(series(tmp_path / "calm", [0.2] * 6, same=same, clusters=clusters))
    assert not calm.alarms and not calm.together and calm.paired == same
    assert calm.numbers == 7  # three rates, and two ratios of each kind
    changed = series(tmp_path / "changed", [0.2] * 7, same=same, own=0.35, clusters=clusters)
    found = watch(changed)
    assert found.together
    (rate,) = [c for c in found.alarms if c.group == "a" and c.metric == "false-positive rate"]
    assert rate.alarm is not None and rate.alarm.since == "03"
    assert rate.alarm.interval is not None and rate.alarm.interval[0] < 0.35
    assert 0.2 < (rate.alarm.size or 0) < 0.5
    assert [p.alarm for p in rate.points] == sorted(p.alarm for p in rate.points)
    assert any(c.metric == "suppression" and c.group == "a" for c in found.alarms)
    assert not any(c.metric == "false-positive rate" and c.group == "b" for c in found.alarms)


def test_a_change_at_the_first_look_is_found(tmp_path: Path) -> None:
    found = watch(series(tmp_path, [0.1, 0.3, 0.3, 0.3]))
    (rate,) = [c for c in found.alarms if c.metric == "false-positive rate" and not c.group]
    assert rate.alarm is not None and rate.alarm.since == "01"


def test_rows_and_plain_flags_give_the_same_evidence(tmp_path: Path) -> None:
    made = series(tmp_path, [0.2, 0.25, 0.2, 0.3])
    rng = np.random.default_rng(4)
    flags = [(rng.random(N) < rate).astype(float) for rate in (0.2, 0.25, 0.2, 0.3)]
    (rate,) = [c for c in watch(made).charts if c.metric == "false-positive rate" and not c.group]
    plain = e_process(evidence(mean_residuals(flags)))
    np.testing.assert_allclose([p.evidence for p in rate.points], plain)
    # Results that are not stored have counts, which say the same.
    stored = [Result(r.plan, r.estimates, r.metrics, provenance=r.provenance) for r in made]
    (again,) = [
        c for c in watch(stored).charts if c.metric == "false-positive rate" and not c.group
    ]
    np.testing.assert_allclose([p.evidence for p in again.points], plain)


def test_the_same_answers_are_no_evidence(tmp_path: Path) -> None:
    flagged = np.random.default_rng(1).random(N) < 0.2
    made = [look(tmp_path / str(t), flagged, np.arange(N)) for t in range(4)]
    found = watch(made)
    assert found.paired and not found.alarms
    assert {p.evidence for c in found.charts for p in c.points} == {1.0}


def test_units_that_nobody_can_tell_apart_are_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    flags = rng.random(N) < 0.2
    first = look(tmp_path / "1", flags, np.arange(N))
    partly = look(tmp_path / "2", flags, np.arange(N) + N // 2)
    with pytest.raises(ResultError, match="2 has ids of earlier results, but is on other data"):
        watch([first, partly])
    paired = watch([first, partly], same_units=True)
    assert paired.paired
    unstored = [look(None, flags, np.arange(N)) for _ in range(2)]
    with pytest.raises(ResultError, match="are on the same data; only stored results"):
        watch(unstored)


def test_looks_that_cannot_be_compared_are_named(tmp_path: Path) -> None:
    made = series(tmp_path, [0.2, 0.2])
    texts = Texts(
        np.arange(5000, 5100),
        np.array([f"t{i}" for i in range(100)], dtype=object),
        np.zeros(100, dtype=np.int8),
    )
    decided = Decisions(texts.ids, np.zeros(100, dtype=np.int8), np.zeros(100, dtype=np.float32))
    other = Audit(
        Dataset(texts=texts), {"yours": RecordedDecisions(decided, "yours")}, [FalsePositiveRate()]
    ).run(tmp_path / "99")
    found = watch([*made, other])
    assert any(r.startswith("99 has no system mine") for r in found.remarks)
    assert any("99 has no suppression with the options" in r for r in found.remarks)


def test_an_alarm_stays_until_it_is_acknowledged(tmp_path: Path) -> None:
    rates = [0.1, 0.1, 0.1, 0.4, 0.4, 0.1, 0.1]
    series(tmp_path, rates)

    def told(*more: str, code: int) -> dict[str, Any]:
        done = CliRunner().invoke(app, ["watch", str(tmp_path), "--json", *more])
        assert done.exit_code == code, done.output
        return dict(json.loads(done.stdout))

    standing = told(code=1)  # although the last results are as the first
    (chart,) = [
        c for c in standing["charts"] if c["metric"] == "false-positive rate" and not c["group"]
    ]
    assert chart["alarm"]["result"] in {"03", "04"} and chart["points"][-1]["alarm"]
    assert not told("--acknowledge", code=0)["failed"]
    assert set(acknowledged_in(tmp_path).values()) == {"06"}
    assert not told(code=0)["failed"]
    # From there on, a further change is an alarm again.
    rng = np.random.default_rng(9)
    for t in range(7, 11):
        look(tmp_path / f"{t:02d}", rng.random(N) < 0.5, np.arange(N) + t * N)
    again = told(code=1)
    (chart,) = [
        c for c in again["charts"] if c["metric"] == "false-positive rate" and not c["group"]
    ]
    assert chart["alarm"]["since"] == "07"
    assert (
        CliRunner().invoke(app, ["watch", str(tmp_path), "--acknowledge", "--per-result"]).exit_code
        == 2
    )
    (tmp_path / ACKNOWLEDGED).write_text('{"acknowledged": [{"number": 5}]}')
    with pytest.raises(ResultError, match="is damaged"):
        watch(tmp_path)


def test_the_page_says_since_when_and_how_much(tmp_path: Path) -> None:
    made = series(tmp_path, [0.1, 0.1, 0.4, 0.4])
    found = watch(results_in(tmp_path))
    lines = watch_lines(found, made[-1])
    assert "the chance of any alarm over the whole series" in lines[0]
    assert any("most likely since 02" in line and "confidence sequence" in line for line in lines)
    page = watch_page(found, made[-1])
    assert "most likely since 02" in page and "ombud watch --acknowledge" in page
    assert acknowledge(tmp_path, found) == len(found.alarms)
