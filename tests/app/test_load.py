"""Many raters at once, and a server that is killed: the short form of ``benchmarks/app.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from _app_load import Outcome, Server, check, kill_at_random_moments, make_project, rate_for


def test_raters_at_once_lose_and_double_nothing(tmp_path: Path) -> None:
    people = make_project(tmp_path / "p", texts=20, raters=12)
    outcome = Outcome()
    server = Server(tmp_path / "p")
    try:
        rate_for(people, server.url, 600, 0.0, outcome)  # they stop when all is rated
    finally:
        server.stop()
    check(tmp_path / "p", people, outcome)
    told = sum(len(rater.stored) for rater in people)
    assert (outcome.lost, outcome.doubled) == (0, 0)
    assert outcome.stored == told >= 3 * 20


@pytest.mark.parametrize("kills", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_killed_at_any_moment_it_keeps_what_it_confirmed(tmp_path: Path, kills: int) -> None:
    people = make_project(tmp_path / "p", texts=500, raters=6)
    outcome = kill_at_random_moments(tmp_path / "p", people, kills=kills)
    told = sum(len(rater.stored) for rater in people)
    assert (outcome.lost, outcome.doubled) == (0, 0)
    assert told > 0 and outcome.stored - told <= kills * len(people)


def test_the_check_would_see_it(tmp_path: Path) -> None:
    people = make_project(tmp_path / "p", texts=5, raters=1)
    people[0].stored[77] = ("delicate", 3)
    outcome = Outcome()
    check(tmp_path / "p", people, outcome)
    assert outcome.lost == 1
