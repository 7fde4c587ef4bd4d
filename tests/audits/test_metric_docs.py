"""What a report says of a metric comes from the metric's own documentation."""

from __future__ import annotations

from inspect import getdoc

import pytest

from ombud.audits.backends.base import describe_metric
from ombud.metrics import HistoryShare, LabelShare, ShareGap


@pytest.mark.parametrize("metric", [LabelShare, HistoryShare, ShareGap])
def test_every_share_metric_says_what_it_is_and_what_it_leaves_out(metric: type) -> None:
    said = describe_metric(getdoc(metric) or "")
    assert said["summary"].endswith(".")
    assert said["undefined"].startswith("when ")
    assert said["limits"]
    assert not any(mark in "".join(said.values()) for mark in ("`", "**", "::", "\n", "math"))


def test_reading_is_prose_between_the_formula_and_the_list() -> None:
    said = describe_metric(getdoc(ShareGap) or "")
    assert said["reading"] == (
        "Above 0, the lists hold more of the label than the same users' histories do."
    )
    assert said["limits"].startswith("why; a gap may come from popularity")


def test_without_documentation_everything_is_empty() -> None:
    assert set(describe_metric("").values()) == {""}
