"""What was asked, in words: also how many were asked."""

from __future__ import annotations

import pytest

from ombud.audits.plan import Plan
from ombud.audits.result import Result
from ombud.data.card import Card
from ombud.report.blocks import Paragraph
from ombud.report.sections.scope import scope
from ombud.stats.estimate import Estimate


def said(sample: int | None, users: int | None, n: int) -> str:
    e = Estimate(metric="m", value=0.1, interval=(0.0, 0.2), method="x", n=n, unit="user")
    card = Card(name="ours", facts={} if users is None else {"users": users})
    blocks = scope(Result(Plan(sample=sample), (e,), card=card)).blocks
    return " ".join(block.plain for block in blocks if isinstance(block, Paragraph))


@pytest.mark.parametrize(
    ("sample", "users", "n", "told"),
    [
        (1000, 671, 671, "All 671 users were asked."),
        (1000, 5000, 990, "A random sample of 1,000 users was asked."),
        (1000, None, 671, "At most 1,000 users were to be asked"),
    ],
)
def test_no_sample_is_larger_than_what_it_is_from(
    sample: int, users: int | None, n: int, told: str
) -> None:
    assert told in said(sample, users, n)
    assert "sample" not in said(None, users, n)
