"""Attention-weighted rank fairness and expected exposure: by hand, by loops, and in general."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.data import Dataset, Recommendations
from ombud.data.interactions import Interactions
from ombud.data.items import Items
from ombud.errors import PlanError
from ombud.metrics.engine.estimate import estimate_metric
from ombud.metrics.engine.estimator import Settings
from ombud.questions.authors.metrics import RankFairness

WHO = {"a": "f", "b": "m", "c": "m", "d": None, "e": "f", "g": "m"}
EXPOSURE = [1 / math.log2(rank + 1) for rank in range(1, 7)]


def data() -> Dataset:
    rows = [(u, i) for u in ("u1", "u2") for i in WHO]
    frame = pl.DataFrame(rows, schema=["user", "item"], orient="row")
    table = pl.DataFrame({"item": list(WHO), "gender": list(WHO.values())})
    return Dataset(
        interactions=Interactions.from_frame(frame), items=Items.from_frame(table, by=["gender"])
    )


def lists(*own: list[str]) -> Recommendations:
    rows = [(f"u{n}", item, rank) for n, some in enumerate(own, 1)
            for rank, item in enumerate(some, 1)]  # fmt: skip
    return Recommendations.from_frame(
        pl.DataFrame(rows, schema=["user", "item", "rank"], orient="row")
    )


def test_hand_worked() -> None:
    """One woman, then a man: exposures 1 and 0.63; on the platform two of five are women."""
    second = 1 / math.log2(3)
    women = 1 / (1 + second)
    made = RankFairness(k=2, least=1).measure(lists(["a", "b"]), data())
    assert made.columns["value"][0, 0] == pytest.approx(1 - (women - 0.4))
    loss = RankFairness(k=2, least=1, loss="expected-exposure").measure(lists(["a", "b"]), data())
    assert loss.columns["value"][0, 0] == pytest.approx(2 * (women - 0.4) ** 2)
    even = RankFairness(k=2, least=1, target="even").measure(lists(["a", "b"]), data())
    assert even.columns["value"][0, 0] == pytest.approx(1 - (women - 0.5))
    alike = RankFairness(k=2, least=1, target="even", exposure=False)
    assert alike.measure(lists(["a", "b"]), data()).columns["value"][0, 0] == 1


@given(st.lists(st.permutations(list(WHO)), min_size=2, max_size=2), st.integers(1, 6))
def test_plain_loops_give_the_same(own: list[list[str]], k: int) -> None:
    for target in ("platform", "even", "profile"):
        for loss in ("awrf", "expected-exposure"):
            metric = RankFairness(k=k, least=1, target=target, loss=loss)  # type: ignore[arg-type]
            rows = metric.measure(lists(*own), data())
            for user, value in zip(rows.ids.tolist(), rows.columns["value"][:, 0], strict=True):
                shown = own[int(user[1:]) - 1][:k]
                sums = {"f": 0.0, "m": 0.0}
                for place, item in enumerate(shown):
                    if WHO[item]:
                        sums[WHO[item]] += EXPOSURE[place]
                whole = sum(sums.values())
                # Everyone has read everything, so profile and platform are the same here.
                wanted = {"f": 0.5, "m": 0.5} if target == "even" else {"f": 0.4, "m": 0.6}
                gaps = [sums[g] / whole - wanted[g] for g in sums]
                by_hand = 1 - sum(map(abs, gaps)) / 2 if loss == "awrf" else sum(
                    gap * gap for gap in gaps
                )  # fmt: skip
                assert value == pytest.approx(by_hand)
                assert -1e-12 <= value <= 2
                if loss == "awrf":
                    assert value <= 1 + 1e-12


def test_it_has_an_interval_and_is_refused_in_blocks() -> None:
    rng = np.random.default_rng(3)
    users = [list(rng.permutation(list(WHO))) for _ in range(40)]
    rows = [(f"u{n}", i) for n in range(1, 41) for i in WHO]
    frame = pl.DataFrame(rows, schema=["user", "item"], orient="row")
    own = Dataset(interactions=Interactions.from_frame(frame), items=data().items)
    metric = RankFairness(k=3, least=1)
    (e,) = estimate_metric(metric, {"s": metric.measure(lists(*users), own)}, None, Settings())
    assert e.interval is not None and e.interval[0] < e.value < e.interval[1]
    assert (
        metric.block_fault(()) and metric.title == "rank fairness@3, by exposure, target: platform"
    )
    with pytest.raises(PlanError, match="at least 1"):
        RankFairness(least=0)


@pytest.fixture(scope="module")
def peer() -> Any:
    """FairRankTune, a published implementation of group exposure."""
    pytest.importorskip("pandas", reason="pandas is not installed")
    return pytest.importorskip("FairRankTune", reason="FairRankTune is not installed")


@given(own=st.permutations(list("abcefghij")), k=st.integers(1, 9))
def test_exposures_are_those_of_fairranktune(peer: Any, own: list[str], k: int) -> None:
    """`EXP` gives a position the same exposure, 1 / log2(rank + 1); it is a mean over a group.

    Here both groups have four items, and `j` is of unknown identity. Its variance and its mean
    deviation are then, but for a factor, the loss of expected exposure and what rank fairness lacks
    from 1. (Its `AWRF` has geometric attention, which ombud does not offer.)
    """
    who = dict(zip("abcefghi", "ffmmffmm", strict=True))
    table = pl.DataFrame({"item": [*who, "j"], "gender": [*who.values(), None]})
    frame = pl.DataFrame([("u1", i) for i in table["item"]], schema=["user", "item"], orient="row")
    known = Dataset(
        interactions=Interactions.from_frame(frame), items=Items.from_frame(table, by=["gender"])
    )
    shown = peer.pd.DataFrame({"list": own[:k]})
    means = peer.EXP(shown, {**who, "j": "unknown"}, "Variance")[1]
    whole = 4 * (means["f"] + means["m"])
    fair = RankFairness(k=k, least=1).measure(lists(own), known).columns["value"]
    loss = RankFairness(k=k, least=1, loss="expected-exposure").measure(lists(own), known)
    if not whole:
        assert np.isnan(fair).all()
        return
    gap = abs(4 * means["f"] / whole - 0.5)
    assert fair[0, 0] == pytest.approx(1 - gap)
    assert loss.columns["value"][0, 0] == pytest.approx(2 * gap**2, abs=1e-12)
    if "j" not in own[:k]:
        deviation = peer.EXP(shown, who, "MeanAbsDev")[0]
        assert fair[0, 0] == pytest.approx(1 - 4 * deviation / whole)
        variance = peer.EXP(shown, who, "Variance")[0]
        expected = 2 * (4 / whole) ** 2 * variance
        assert loss.columns["value"][0, 0] == pytest.approx(expected, abs=1e-12)
