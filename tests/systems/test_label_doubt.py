"""Findings on a detector's labels hold only where its errors cannot have made them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from ombud.audits import Audit, Result
from ombud.audits.plan import StatisticsPlan
from ombud.cli import app
from ombud.data import Labels
from ombud.data.dataset import Dataset
from ombud.data.label_errors import LabelErrors, Transport
from ombud.data.labels import LabelState
from ombud.data.tables import TableOptions, read_labels, write_table
from ombud.metrics import LabelShare, ShareGap
from ombud.metrics.engine.label_uncertainty import LABEL_DOUBT, label_doubt, rates_of, terciles
from ombud.report.verdict import verdicts_of
from ombud.stats.estimate import Estimate
from ombud.stats.proportions import wilson
from ombud.systems.base import Recommender
from ombud.worlds import small_world

WORLD = small_world(seed=4, users=300, items=600)
NAME = "violence"
TRUTH = WORLD.truth.catalogue.true_labels[:, WORLD.dataset.labels.names.index(NAME)].astype(bool)
AMPLIFYING = next(r for r in WORLD.recommenders() if r.name == "amplifying")


NEUTRAL = next(r for r in WORLD.recommenders() if r.name != "amplifying")


def shown(recommender: Recommender) -> NDArray[np.float64]:
    lists = recommender.recommend(WORLD.interactions.users.ids, 10).to_frame()
    place = {v: i for i, v in enumerate(WORLD.interactions.items.ids.tolist())}
    return np.bincount([place[i] for i in lists["item"].to_list()], minlength=len(TRUTH)) * 1.0


def labels_with(
    found: Any, false: Any, checked: int, *, seed: int = 1, transport: Transport = "error-rates"
) -> Labels:
    """Return a detector's labels: with its error rates for each item, checked on some items."""
    rng = np.random.default_rng(seed)
    said = np.where(TRUTH, rng.random(len(TRUTH)) < found, rng.random(len(TRUTH)) < false)
    truth = np.full(len(TRUTH), -1, dtype=np.int8)
    some = rng.choice(len(TRUTH), checked or 200, replace=False)
    counts = [
        np.array([[np.sum((TRUTH[some] == a) & (said[some] == b))] for b in (False, True)])
        for a in (True, False)
    ]
    if checked:
        truth[some] = TRUTH[some]
    errors = LabelErrors(
        said.astype(np.int8)[:, None], counts[0], counts[1], transport, truth[:, None]
    )
    states = np.where(said, LabelState.YES, LabelState.NO).astype(np.int8)[:, None]
    return Labels(WORLD.interactions.items, (NAME,), states, None, None, "x", (), errors)


def audited(labels: Labels, recommender: Recommender = AMPLIFYING) -> Result:
    data = replace(WORLD.dataset, labels=labels)
    few = StatisticsPlan(replicates=200)
    return Audit(data, [recommender], [ShareGap(k=10)], statistics=few).run()


def level(result: Result) -> Estimate:
    (e,) = [e for e in result.select(label=NAME) if not e.group and e.kind == "level"]
    return e


def test_with_good_labels_of_every_third_the_finding_stands() -> None:
    result = audited(labels_with(0.97, 0.02, 600))
    found = level(result)
    assert found.p_value is not None and found.p_value < 0.01
    assert found.details[LABEL_DOUBT] == ""
    assert sum(map(sum, found.details["label_errors"].values())) == 600
    assert verdicts_of(result)[0].answer == "yes"
    assert any("how often the system" in str(t).lower() for t in verdicts_of(result)[0].changes)


def test_a_detector_that_errs_more_on_what_is_shown_decides_nothing() -> None:
    """The trial that showed it: false alarms more often on what is shown than on the rest."""
    much = np.argsort(np.argsort(-shown(NEUTRAL))) < len(TRUTH) // 4
    false, found = np.where(much, 0.7, 0.03), np.where(much, 0.95, 0.7)
    result = audited(labels_with(found, false, 200), NEUTRAL)
    p = level(result).p_value
    assert p is not None and p < 0.05  # the error makes a finding, where there is none
    assert level(result).details[LABEL_DOUBT]
    assert verdicts_of(result)[0].answer == "cannot tell"
    assert "rrors of the labels" in str(verdicts_of(result)[0].rule)


@pytest.mark.parametrize("checked", [0, 60])
def test_too_few_validation_items_may_decide_nothing(checked: int) -> None:
    result = audited(labels_with(0.95, 0.05, checked))
    assert "30 are needed" in level(result).details[LABEL_DOUBT]
    assert verdicts_of(result)[0].answer == "cannot tell"


def test_withdrawn_labels_are_read_without_correction(tmp_path: Path) -> None:
    labels = labels_with(0.9, 0.1, 600, transport="calibration")
    write_table("labels", Dataset(labels=labels), tmp_path / "labels.parquet")
    again = read_labels(tmp_path / "labels.parquet", TableOptions())
    assert again.errors is not None and "withdrawn" in again.rule
    plain = replace(labels, errors=None)
    corrected, raw = audited(again), audited(plain)
    assert level(corrected).value == pytest.approx(level(raw).value)
    assert "withdrawn" in level(corrected).details[LABEL_DOUBT]
    assert verdicts_of(corrected)[0].answer == "cannot tell"
    assert verdicts_of(raw)[0].answer == "yes"


def test_no_new_labels_are_calibrated(tmp_path: Path) -> None:
    pl.DataFrame({"item": [1], "text": ["x"]}).write_csv(tmp_path / "items.csv")
    rows = {
        "label": ["v"] * 40,
        "text": [f"t{i}" for i in range(40)],
        "present": [True, False] * 20,
    }
    pl.DataFrame(rows).write_csv(tmp_path / "seen.csv")
    done = CliRunner().invoke(
        app,
        ["text", "label", str(tmp_path / "items.csv"), "--detector", f"v={tmp_path}",
         "--validation", str(tmp_path / "seen.csv"), "--to", str(tmp_path / "l.parquet"),
         "--calibration"],
    )  # fmt: skip
    assert done.exit_code == 2 and "withdrawn" in done.output.replace("\n", " ")


def test_checked_items_survive_being_stored(tmp_path: Path) -> None:
    labels = labels_with(0.9, 0.1, 100)
    write_table("labels", Dataset(labels=labels), tmp_path / "labels.parquet")
    again = read_labels(tmp_path / "labels.parquet", TableOptions())
    assert again.errors is not None and again.errors.truth is not None
    assert labels.errors is not None and labels.errors.truth is not None
    assert np.array_equal(again.errors.truth, labels.errors.truth)


def test_impossible_values_are_never_printed() -> None:
    """More is said yes to than error rates allow: corrected shares would be above 1."""
    said = np.ones(len(TRUTH), dtype=np.int8)
    said[:60] = 0
    errors = LabelErrors(said[:, None], np.array([[50], [50]]), np.array([[90], [10]]))
    states = said[:, None].copy()
    labels = Labels(WORLD.interactions.items, (NAME,), states, None, None, "x", (), errors)
    data = replace(WORLD.dataset, labels=labels, users=None)
    few = StatisticsPlan(replicates=200)
    result = Audit(data, [AMPLIFYING], [LabelShare(k=10), ShareGap(k=10)], statistics=few).run()
    (share,) = result.select(metric="label share@10", label=NAME, kind="level")
    assert share.value is None and "no possible value" in share.reason
    for e in result.estimates:
        for name in ("lists", "history", "level", "other_level"):
            assert not e.details.get(name) or -1 <= e.details[name] <= 1


def test_thirds_by_hand() -> None:
    assert terciles(np.array([5.0, 0, 1, 9, 2, 3])).tolist() == [2, 0, 0, 2, 1, 1]
    assert len(set(terciles(np.zeros(7)).tolist())) == 1  # shown alike, they stay together


def plain_doubt(
    value: float, said: list[float], items: list[float], cells: list[list[int]]
) -> bool:
    """Return whether any error rates on a grid within their intervals reverse a difference."""
    total = []
    for s, n, (tp, fn, fp, tn) in zip(said, items, cells, strict=True):
        found = np.linspace(*map(float, wilson(tp, tp + fn)), 15)
        false = np.linspace(*map(float, wilson(fp, fp + tn)), 15)
        values = (s - false[None] * n) / (found[:, None] - false[None])
        total.append((values.min(), values.max()))
    low, high = (sum(one[k] for one in total) for k in (0, 1))
    return not (low > 0 if value > 0 else high < 0)


def test_the_bound_is_that_of_a_grid_of_error_rates() -> None:
    rng = np.random.default_rng(3)
    outcomes = set()
    for _ in range(200):
        cells = [[int(k) for k in rng.integers((40, 0, 0, 40), (90, 20, 20, 90))] for _ in range(3)]
        items = rng.normal(0, 0.2, 3)
        items -= items.mean()
        rates = [rates_of(cell) for cell in cells]
        share = rng.uniform(0, 0.6, 3)
        said = [
            n * (p * found[0] + (1 - p) * false[0]) + rng.normal(0, 0.02)
            for n, p, (found, false) in zip(items, share, rates, strict=True)
        ]
        value = sum(said) or 0.1
        names = ("least shown", "middle", "most shown")
        side: dict[str, Any] = {"label_errors": dict(zip(names, cells, strict=True))}
        side |= {f"said_{k}": said[k] for k in range(3)} | {
            f"items_{k}": items[k] for k in range(3)
        }
        e = Estimate(metric="m", value=value, interval=None, method="none: x", n=9, null=0.0)
        doubt = bool(label_doubt(e, side))
        assert doubt == plain_doubt(value, said, items.tolist(), cells)
        outcomes.add(doubt)
    assert outcomes == {True, False}
