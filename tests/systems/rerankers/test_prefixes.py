"""FA*IR: minimums by simulation and by hand, lists by a plain loop, and the peers' own answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from ombud.data.ids import Vocabulary
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.systems.rerankers.prefixes import (
    _refused,
    choose_by_prefix,
    prefix_minimums,
    with_minimums,
)


def plain(codes: list[int], identity: int, minimums: list[int]) -> list[int]:
    """The algorithm of the paper, one list at a time."""
    own = [i for i, code in enumerate(codes) if code == identity]
    others = [i for i, code in enumerate(codes) if code not in (identity, -2)]
    found: list[int] = []
    held = 0
    for least in minimums:
        take_own = bool(own) and (held < least or not others or own[0] < others[0])
        if not own and not others:
            break
        found.append((own if take_own else others).pop(0))
        held += take_own
    return found + [-1] * (len(minimums) - len(found))


@given(
    codes=st.lists(st.integers(-2, 2), min_size=1, max_size=25),
    n=st.integers(1, 12),
    share=st.floats(0.05, 0.95),
)
def test_lists_are_those_of_a_plain_loop(codes: list[int], n: int, share: float) -> None:
    minimums = prefix_minimums(n, share)
    found = choose_by_prefix(np.array([codes, codes[::-1]]), 1, minimums)
    assert found.tolist() == [plain(c, 1, minimums.tolist()) for c in (codes, codes[::-1])]


@pytest.mark.parametrize(
    ("n", "share", "alpha"), [(20, 0.25, 0.1), (50, 0.5, 0.1), (40, 0.4, 0.05)]
)
def test_chance_falls_below_the_minimums_about_as_often_as_said(
    n: int, share: float, alpha: float
) -> None:
    minimums = prefix_minimums(n, share, alpha)
    assert np.all(np.diff(minimums) >= 0) and np.all(np.diff(minimums) <= 1)
    held = np.cumsum(np.random.default_rng(1).random((20_000, n)) < share, axis=1)
    refused = float((held < minimums).any(axis=1).mean())
    assert refused == pytest.approx(_refused(minimums, share), abs=0.01)
    assert 0.4 * alpha < refused < alpha + 0.01
    # Without the correction more would be refused.
    assert _refused(binom.ppf(alpha, np.arange(1, n + 1), share).astype(int), share) > alpha


def test_lists_with_too_few_candidates_are_counted() -> None:
    rows = [("1", item, rank + 1) for rank, item in enumerate("abcdefghij")]
    lists = Recommendations.from_frame(
        pl.DataFrame(rows, schema=["user", "item", "rank"], orient="row")
    )
    items = Vocabulary(np.array(list("abcdefghij")))
    codes = np.array([0] * 9 + [1])
    minimums = prefix_minimums(10, 0.5)
    assert minimums[-1] >= 2
    found = with_minimums(lists, items, codes, 1, 0.5, 10)
    assert [e.count for e in found.exclusions] == [1]
    place = int(np.flatnonzero(minimums)[0])
    assert "".join(found.catalogue.ids[found.items[0]])[place] == "j"


@pytest.mark.parametrize(("n", "share", "alpha"), [(0, 0.5, 0.1), (5, 0.0, 0.1), (5, 0.5, 1.0)])
def test_what_cannot_be_is_refused(n: int, share: float, alpha: float) -> None:
    with pytest.raises(PlanError, match="between 0 and 1"):
        prefix_minimums(n, share, alpha)


CASES = [(20, 0.25), (50, 0.5), (100, 0.4)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("n", "share"), CASES)
def test_lists_are_those_of_lenskit(n: int, share: float) -> None:
    fair = pytest.importorskip("lenskit.reranking.fair", reason="the extra peers is not installed")
    from lenskit.data import DatasetBuilder, ItemList

    rng = np.random.default_rng(n)
    own = rng.random(400) < 0.15
    builder = DatasetBuilder()
    builder.add_entities("item", np.arange(400))
    builder.add_scalar_attribute("item", "protected", np.arange(400), own)
    theirs = fair.FAIRReranker(n=n, p=share)
    theirs.train(builder.build())
    rankings = np.stack([rng.permutation(400)[:200] for _ in range(20)])
    ours = choose_by_prefix(own[rankings].astype(int), 1, np.asarray(theirs.m_list_))
    for ranking, order in zip(rankings, ours, strict=True):
        asked = ItemList(item_ids=ranking, ordered=True)
        assert theirs(asked).ids().tolist() == ranking[order].tolist()
    # Their search ends beside a step, on either side of it; ours on the side that keeps alpha.
    assert np.abs(prefix_minimums(n, share) - theirs.m_list_).max() <= 1


@dataclass
class Doc:
    """What fairsearchcore ranks."""

    id: int
    score: float
    is_protected: bool


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("n", "share"), CASES)
def test_lists_are_those_of_fairsearchcore(n: int, share: float) -> None:
    core = pytest.importorskip("fairsearchcore", reason="fairsearchcore is not installed")
    rng = np.random.default_rng(n)
    table = core.Fair(n, share, 0.1).create_unadjusted_mtable()
    own = rng.random((20, 200)) < 0.15
    ours = choose_by_prefix(own.astype(int), 1, np.asarray(table, dtype=int))
    for flags, order in zip(own, ours, strict=True):
        docs = [Doc(i, -i, bool(flag)) for i, flag in enumerate(flags)]
        ranked = core.Fair(n, share, 0.1)._re_rank_unadjusted(docs)
        assert [doc.id for doc in ranked] == order.tolist()
    assert table == binom.ppf(0.1, np.arange(1, n + 1), share).astype(int).tolist()
