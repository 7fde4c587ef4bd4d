"""How much data a plan needs: closed form, simulation, and what cannot be said."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ombud.audits import Audit, Plan, Result
from ombud.audits.plan import StatisticsPlan
from ombud.cli import app
from ombud.errors import PlanError
from ombud.metrics import ShareGap
from ombud.stats import Estimate
from ombud.stats.power import standard_error
from ombud.worlds import size, small_world
from ombud.worlds.size import Needed

GAP = Plan(metrics=({"name": "share-gap", "k": 10},))
RATE = Plan(metrics=({"name": "false-positive-rate"},))


def of(needed: tuple[Needed, ...], about: str) -> Needed:
    return next(one for one in needed if one.about == about)


@pytest.mark.parametrize("rate", [0.1, 0.4])
def test_a_share_needs_what_the_closed_form_says(rate: float) -> None:
    needed = of(size(RATE, half_width=0.03, rate=rate), "everyone")
    closed = 1.96**2 * rate * (1 - rate) / 0.03**2
    assert needed.n == pytest.approx(closed, rel=0.15) and needed.unit == "text"
    # Two groups of equal size: the variance of a difference is the sum of both.
    against = of(size(RATE, half_width=0.03, rate=rate), "a group against the rest")
    assert against.n == pytest.approx(2 * closed, rel=0.2)


def test_power_needs_what_the_closed_form_says() -> None:
    needed = of(size(RATE, effect=0.05, power=0.9, audits=0), "everyone")
    closed = ((1.96 + 1.2816) / 0.05) ** 2 * 0.1 * 0.9
    assert needed.n == pytest.approx(closed, rel=0.15)
    many = of(size(RATE, effect=0.05, power=0.9, comparisons=20, audits=0), "everyone")
    assert many.n == pytest.approx(((3.0233 + 1.2816) / 0.05) ** 2 * 0.1 * 0.9, rel=0.15)


def test_an_audit_of_that_size_has_the_width_that_was_asked_for() -> None:
    needed = of(size(GAP, half_width=0.02), "everyone")
    assert needed.n is not None
    world = small_world(seed=9, users=needed.n)
    few = StatisticsPlan(replicates=300)
    found = Audit(world.dataset, world.recommenders(), [ShareGap(k=10)], by=[], statistics=few)
    errors = [standard_error(e) for e in found.run().select(kind="level")]
    widths = sorted(1.96 * error for error in errors if error)
    assert widths[len(widths) // 2] == pytest.approx(0.02, rel=0.2)


def test_numbers_fall_with_the_root_of_the_units() -> None:
    wide, narrow = (of(size(GAP, half_width=h), "everyone").n for h in (0.04, 0.02))
    assert wide is not None and narrow is not None
    assert narrow == pytest.approx(4 * wide, abs=4)


def test_a_result_of_ones_own_is_scaled() -> None:
    e = Estimate(
        metric="share gap@10", value=0.1, interval=(0.06, 0.14), method="x", n=100, unit="user",
        system="ours",
    )  # fmt: skip
    (needed,) = size(GAP, half_width=0.02, pilot=Result(GAP, (e,)))
    assert (needed.n, needed.n_most, needed.unit) == (400, 400, "user")
    (nothing,) = size(RATE, half_width=0.02, pilot=Result(GAP, (e,)))
    assert nothing.n is None and "did not measure" in nothing.reason


def test_what_a_small_world_cannot_say_has_a_reason() -> None:
    (needed,) = size(Plan(metrics=({"name": "ndcg"},)), half_width=0.02)
    assert needed.n is None and needed.reason
    found = size(Plan(metrics=({"name": "suppression"},)), effect=1.5, audits=20)
    assert all(one.ratio and one.n and one.n_most and one.n_most >= one.n for one in found)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"half_width": 0.1, "effect": 0.1},
        {"half_width": 0},
        {"effect": math.inf},
        {"effect": 0.1, "power": 1.0},
        {"effect": 0.1, "comparisons": 0},
        {"half_width": 0.1, "rate": 0},
    ],
)
def test_what_makes_no_sense_is_refused(asked: dict[str, float]) -> None:
    with pytest.raises(PlanError):
        size(GAP, **asked)  # type: ignore[arg-type]


def test_the_command_says_it_without_any_data(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('[data]\ntexts = "not-there.csv"\n[[metrics]]\nname = "false-positive-rate"\n')
    told = CliRunner().invoke(app, ["size", str(plan), "--half-width", "0.03"])
    assert told.exit_code == 0 and "texts in each group" in told.stdout
    found = CliRunner().invoke(
        app, ["size", str(plan), "--effect", "0.1", "--audits", "20", "--json"]
    )
    assert json.loads(found.stdout)[0]["about"] == "everyone"
    assert CliRunner().invoke(app, ["size", str(plan)]).exit_code == 2
