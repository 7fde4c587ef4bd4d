"""The sample size that `ombud size` recommends has the power that was asked for.

The audits here are made another way than those of the command: whole audits of data, decisions and
groups, with flags drawn by this file.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtri
from typer.testing import CliRunner

from ombud.audits import Audit, Plan
from ombud.cli import app
from ombud.data.dataset import Dataset
from ombud.data.groups import Grouping
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.metrics import FalsePositiveRate
from ombud.questions.suppression.metrics import Suppression
from ombud.systems import RecordedDecisions
from ombud.worlds import size
from ombud.worlds.size import Needed


@dataclass(frozen=True)
class Case:
    """A plan, what is to be found, and what stands for it in the simulated audits."""

    metric: dict[str, Any]
    effect: float
    rate: float = 0.1
    groups: int = 2
    cluster_size: int = 1
    icc: float = 0.2
    power: float = 0.8
    statistics: dict[str, Any] | None = None

    def needed(self, audits: int) -> Needed:
        plan = Plan.from_dict(
            {"metrics": [self.metric], "statistics": self.statistics or {}}, "the plan"
        )
        found = size(
            plan, effect=self.effect, rate=self.rate, groups=self.groups, power=self.power,
            cluster_size=self.cluster_size, icc=self.icc, audits=audits,
        )  # fmt: skip
        return next(one for one in found if one.about == "a group against the rest")

    def rates(self) -> tuple[float, float]:
        """Return the rates of the group and of the others, as the documentation has them."""
        if self.metric["name"] == "false-positive-rate":
            return self.rate + self.effect, self.rate
        rest = self.groups - 1
        if self.metric.get("against") == "outside":
            other = self.groups * self.rate / (self.effect + rest)
            return self.effect * other, other
        own = self.effect * self.rate
        return own, (self.groups * self.rate - own) / rest

    def reached(self, n: int, audits: int) -> float:
        """Return the share of whole audits, with n texts in each group, that find the group."""
        rng = np.random.default_rng(n)
        options = {k: v for k, v in self.metric.items() if k != "name"}
        kind = FalsePositiveRate if self.metric["name"] == "false-positive-rate" else Suppression
        ids = np.arange(n * self.groups)
        names = np.repeat([f"g{k}" for k in range(self.groups)], n)
        frame = pl.DataFrame({"id": ids, "group": names})
        clusters = None
        if self.cluster_size > 1:
            clusters = (ids // self.cluster_size).astype(np.int32)
        words = np.array([f"text {i}" for i in ids], dtype=object)
        texts = Texts(ids, words, np.zeros(len(ids), dtype=np.int8), clusters)
        data = Dataset(texts=texts, text_groups=Grouping.from_members(frame, unit="id"))
        statistics = Plan.from_dict({"statistics": self.statistics or {}}, "the plan").statistics
        found = 0
        for seed in range(audits):
            flags = np.concatenate([self._flags(r, n, rng) for r in self._each(n)])
            system = RecordedDecisions(pl.DataFrame({"id": ids, "flagged": flags}), name="m")
            metric = kind(**options)
            audit = Audit(data, {"m": system}, [metric], seed=seed, statistics=statistics)
            (e,) = [
                e for e in audit.run().estimates
                if e.group == "g0" and e.kind != "level" and e.against
            ]  # fmt: skip
            p = e.p_adjusted if self.groups > 2 else e.p_value
            found += p is not None and p < 0.05
        return found / audits

    def _each(self, n: int) -> list[float]:
        own, other = self.rates()
        return [own, *[other] * (self.groups - 1)]

    def _flags(self, rate: float, n: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
        if self.cluster_size == 1:
            return rng.random(n) < rate
        # A text repeats the flag of its cluster with chance sqrt(icc): correlation icc.
        clusters = -(-n // self.cluster_size)
        shared = np.repeat(rng.random(clusters) < rate, self.cluster_size)[:n]
        return np.where(rng.random(n) < math.sqrt(self.icc), shared, rng.random(n) < rate)


GAP = {"name": "false-positive-rate"}
TO_ALL = {"name": "suppression"}
TO_OTHERS = {"name": "suppression", "against": "outside"}
HOLM = {"correction": "holm"}
CASES = {
    "gap of 5 points": Case(GAP, 0.05),
    "gap of 10 points": Case(GAP, 0.1),
    "gap of -5 points": Case(GAP, -0.05),
    "gap of 2 points at 2%": Case(GAP, 0.02, rate=0.02),
    "gap of 10 points at 40%": Case(GAP, 0.1, rate=0.4),
    "ratio to all 1.5": Case(TO_ALL, 1.5),
    "ratio to all 0.67": Case(TO_ALL, 0.67),
    "ratio to others 1.5": Case(TO_OTHERS, 1.5),
    "ratio to others 0.67": Case(TO_OTHERS, 0.67),
    "gap, clusters of 8": Case(GAP, 0.05, cluster_size=8),
    "ratio to others, clusters of 5": Case(TO_OTHERS, 1.8, cluster_size=5, icc=0.3),
    "gap, 9 groups": Case(GAP, 0.08, groups=9),
    "ratio to all, 12 groups, Holm": Case(TO_ALL, 1.6, groups=12, statistics=HOLM),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_recommended_size_has_the_power_that_was_asked_for(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    """1,000 audits, made another way than those of the command."""
    case = CASES[name]
    needed = case.needed(audits=400)
    assert needed.n is not None and needed.power is not None
    reached = case.reached(needed.n, int(os.environ.get("OMBUD_AUDITS", "1000")))
    record_property("row", f"| {name} | {needed.n:,} | {needed.power:.3f} | {reached:.3f} |")
    assert 0.76 <= reached <= 0.88


@pytest.mark.parametrize("name", ["gap of 10 points", "ratio to others 1.5"])
def test_the_power_is_about_right(name: str) -> None:
    """The short form: 100 audits have a standard error of 0.04."""
    needed = CASES[name].needed(audits=100)
    assert needed.n is not None and needed.power is not None
    assert 0.66 <= CASES[name].reached(needed.n, 100) <= 0.92


def test_a_gap_needs_about_what_the_closed_form_says() -> None:
    """Two independent rates of 15% and 10%: the textbook formula."""
    needed = CASES["gap of 5 points"].needed(audits=60)
    closed = (ndtri(0.975) + ndtri(0.8)) ** 2 * (0.15 * 0.85 + 0.1 * 0.9) / 0.05**2
    assert needed.n == pytest.approx(closed, rel=0.25)
    assert "15.000% flagged in one group and 10.000%" in needed.assumption


def test_more_power_and_smaller_effects_need_more() -> None:
    few = Case(TO_ALL, 1.6).needed(audits=60)
    more = Case(TO_ALL, 1.6, power=0.95).needed(audits=40)
    smaller = Case(TO_ALL, 1.4).needed(audits=40)
    assert few.n and more.n and smaller.n and few.n < more.n and few.n < smaller.n


def test_a_difference_between_users_is_simulated_too() -> None:
    plan = Plan(metrics=({"name": "share-gap", "k": 10},))
    (needed,) = [n for n in size(plan, effect=0.1, audits=40) if "against" in n.about]
    assert needed.n and needed.power is not None and needed.unit == "user"
    assert needed.power == pytest.approx(0.8, abs=0.15)


@pytest.mark.parametrize(
    ("metric", "effect", "said"),
    [
        (TO_ALL, 2.0, "a ratio of 2 is impossible at a rate of 0.1 with 2 groups"),
        (TO_ALL, 1.0, "a factor above 0 other than 1"),
        (TO_ALL, -1.0, "a factor above 0"),
        (TO_OTHERS, 1e9, ""),
        (GAP, 0.9, "a difference of 0.9 is impossible"),
        (GAP, -0.1, "0.0% of the group's texts"),
        (GAP, 5.0, "is impossible"),
        ({"name": "share-gap"}, 3.0, "no two units differ by 3"),
    ],
)
def test_impossible_effects_are_refused(metric: dict[str, Any], effect: float, said: str) -> None:
    with_rate = {"rate": 0.6} if metric == TO_OTHERS else {}
    with pytest.raises(PlanError, match="no group can differ by this effect") as raised:
        size(Plan.from_dict({"metrics": [metric]}, "the plan"), effect=effect, **with_rate)
    assert said in str(raised.value)


def test_the_command_simulates_and_refuses(tmp_path: Any) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('[[metrics]]\nname = "suppression"\n[statistics]\ncorrection = "none"\n')
    words = ["size", str(plan), "--effect", "1.6", "--audits", "30"]
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 0 and "of simulated audits of that size" in told.stdout
    refused = CliRunner().invoke(app, ["size", str(plan), "--effect", "7"])
    assert refused.exit_code == 2 and "impossible" in refused.output
    corrected = CliRunner().invoke(app, [*words, "--groups", "9"])
    assert corrected.exit_code == 2 and 'correction = "none"' in corrected.output
