"""Each estimate is read once, in one place, and none is lost."""

from __future__ import annotations

import pytest

from ombud.audits.result import Result
from ombud.report.findings import Sign, by_sign, families, family, reading
from ombud.stats.estimate import Estimate

BASE = Estimate(metric="m", value=0.2, interval=(0.1, 0.3), method="x", n=9, null=0.0)
WIDE = BASE.replace(interval=(-0.1, 0.5))


@pytest.mark.parametrize(
    ("estimate", "sign"),
    [
        (BASE, "above"),
        (BASE.replace(value=-0.2, interval=(-0.3, -0.1)), "below"),
        (WIDE, "no sign"),
        (BASE.replace(p_value=0.01, p_adjusted=0.04), "above"),
        (BASE.replace(p_value=0.01, p_adjusted=0.2), "above uncorrected"),
        (
            BASE.replace(value=-0.2, interval=(-0.3, -0.1), p_value=0.01, p_adjusted=0.2),
            "below uncorrected",
        ),
        (WIDE.replace(p_value=0.4, p_adjusted=0.8), "no sign"),
        (BASE.replace(level=0.99, p_value=0.02, p_adjusted=0.02), "no sign"),
        (BASE.replace(null=None), "untested"),
        (BASE.replace(interval=None, method="none: why"), "untested"),
        (Estimate.undefined(metric="m", reason="r", n=0), "undefined"),
        (BASE.replace(null=1.0, kind="ratio"), "below"),
    ],
)
def test_reading(estimate: Estimate, sign: Sign) -> None:
    assert reading(estimate) == sign


def test_families_partition_the_result(ordinary: Result) -> None:
    found = [e for f in families(ordinary) for e in f.estimates]
    assert sorted(map(id, found)) == sorted(map(id, ordinary.estimates))
    kinds = [(f.metric.title, f.kind) for f in families(ordinary)]
    assert len(kinds) == len(set(kinds)) == 8


def test_an_estimate_of_an_unlisted_metric_is_kept() -> None:
    from ombud.audits.plan import Plan

    result = Result(Plan(), (BASE,))
    assert [f.metric.title for f in families(result)] == ["m"]
    assert family(result, "m", "overall") is not None
    assert family(result, "m", "group") is None


def test_strongest_come_first() -> None:
    small = BASE.replace(value=0.15)
    assert by_sign([small, BASE])["above"] == (BASE, small)
