"""Rate limits, waits and settings."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.errors import PlanError
from ombud.http.pace import RateLimit, RunSettings, backoff, retry_after


@given(
    st.floats(0.5, 50) | st.none(),
    st.floats(30, 3000) | st.none(),
    st.lists(st.floats(0, 0.5), min_size=2, max_size=60),
)
def test_no_window_ever_holds_more_than_its_limit(
    per_second: float | None, per_minute: float | None, gaps: list[float]
) -> None:
    now = [100.0]
    limit = RateLimit(per_second, per_minute, lambda: now[0])
    starts = []
    for gap in gaps:
        now[0] += gap
        starts.append(now[0] + limit.wait())
    for window, most in ((1.0, per_second), (60.0, per_minute)):
        if most is None:
            continue
        for start in starts:
            inside = sum(start <= s < start + window * (1 - 1e-9) for s in starts)
            assert inside <= most * 1.0 + 1


def test_a_pause_holds_everyone_back() -> None:
    now = [0.0]
    limit = RateLimit(None, None, lambda: now[0])
    assert limit.wait() == 0
    limit.pause(5)
    now[0] = 2
    assert limit.wait() == limit.wait() == 3
    now[0] = 6
    assert limit.wait() == 0


def test_waits_grow_are_capped_and_repeat_with_the_seed() -> None:
    waits = [backoff(i, 1, "a", 0.5, 8.0) for i in range(60)]
    for i, wait in enumerate(waits):
        most = min(8.0, 0.5 * 2.0**i)
        assert most / 2 <= wait <= most
    assert waits == [backoff(i, 1, "a", 0.5, 8.0) for i in range(60)]
    assert waits[:9] != [backoff(i, 2, "a", 0.5, 8.0) for i in range(9)]
    assert backoff(3, 1, "b", 0.5, 8.0) != waits[3]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("", None),
        ("0", 0.0),
        ("1.5", 1.5),
        ("-3", None),
        ("soon", None),
        ("Sun, 15 Nov 2026 12:00:30 GMT", 30.0),
        ("Sun, 15 Nov 2026 11:00:00 GMT", 0.0),
        ("Sun, 99 Nov 2026 11:00:00 GMT", None),
    ],
)
def test_retry_after(header: str, seconds: float | None) -> None:
    assert retry_after(header, datetime(2026, 11, 15, 12, tzinfo=UTC)) == seconds


def test_settings_say_all_faults() -> None:
    with pytest.raises(PlanError, match=r"concurrency is 0, retries is -1, timeout is 0"):
        RunSettings(concurrency=0, retries=-1, timeout=0)


def test_settings_are_finite() -> None:
    with pytest.raises(PlanError, match="timeout is inf"):
        RunSettings(timeout=float("inf"))
    with pytest.raises(PlanError, match="longest_wait is nan"):
        RunSettings(longest_wait=float("nan"))
