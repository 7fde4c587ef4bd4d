"""The filter against hand-worked cases, a plain second route, and the published code's passes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from ombud.data.kcore import CorePass, k_core
from ombud.data.sources._build import pseudonymous_order, take


def matrix(pairs: set[tuple[int, int]], users: int, items: int) -> sparse.csr_array:
    dense = np.zeros((users, items), dtype=np.int8)
    for user, item in pairs:
        dense[user, item] = 1
    return sparse.csr_array(dense)


def by_sets(
    pairs: set[tuple[int, int]], minimum: int, passes: int | None, permitted: set[int] | None
) -> tuple[set[tuple[int, int]], int]:
    """The published loop on Python sets: users, then items, pass by pass."""
    made = 0
    while passes is None or made < passes:
        before = set(pairs)
        users = {u for u, _ in pairs if sum(v == u for v, _ in pairs) >= minimum}
        pairs = {(u, i) for u, i in pairs if u in users}
        items = {i for _, i in pairs if sum(j == i for _, j in pairs) >= minimum}
        items = items if permitted is None else items & permitted
        pairs = {(u, i) for u, i in pairs if i in items}
        if pairs == before:
            break
        made += 1
    return pairs, made


def test_hand_worked() -> None:
    # Item 2 has one user; without it, user 2 has one item left.
    core = k_core(matrix({(0, 0), (0, 1), (1, 0), (1, 1), (2, 1), (2, 2)}, 3, 3), 2)
    assert core.passes == (CorePass(0, 1, 1), CorePass(1, 0, 1))
    assert core.users.tolist() == [True, True, False]
    assert core.items.tolist() == [True, True, False]
    assert core.complete
    words = [str(e) for e in core.exclusions()]
    assert words[0] == "filter, pass 1: 1 items excluded: fewer than 2 interactions"
    assert any("pass 2: 1 users" in line for line in words)


def test_one_pass_stops_short_of_the_fixed_point() -> None:
    core = k_core(matrix({(0, 0), (0, 1), (1, 0), (1, 1), (2, 1), (2, 2)}, 3, 3), 2, passes=1)
    assert core.users.tolist() == [True, True, True]
    assert not core.complete


def test_nothing_to_leave_out_takes_no_pass() -> None:
    core = k_core(sparse.csr_array(np.ones((3, 3), dtype=np.int8)), 3)
    assert core.passes == () and core.complete and core.users.all() and core.items.all()


def test_a_chain_unravels_from_its_end() -> None:
    # Every pass takes one link: as many passes as links, each of them cheap.
    length = 3000
    pairs = {(n, n) for n in range(length)} | {(n, n + 1) for n in range(length - 1)}
    rows, columns = np.array(sorted(pairs)).T
    chain = sparse.csr_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(length, length))
    core = k_core(chain, 2)
    assert not core.users.any() and not core.items.any()
    assert len(core.passes) >= length / 2
    assert sum(p.interactions for p in core.passes) == len(pairs)


@given(
    st.sets(st.tuples(st.integers(0, 11), st.integers(0, 8)), min_size=1),
    st.integers(1, 4),
    st.one_of(st.none(), st.integers(1, 4)),
    st.one_of(st.none(), st.sets(st.integers(0, 8))),
)
def test_same_as_plain_loops(
    pairs: set[tuple[int, int]], minimum: int, passes: int | None, allowed: set[int] | None
) -> None:
    permitted = None if allowed is None else np.isin(np.arange(9), list(allowed))
    whole = matrix(pairs, 12, 9)
    used = np.asarray(whole.sum(axis=1)).ravel() > 0
    items = np.asarray(whole.sum(axis=0)).ravel() > 0
    whole = sparse.csr_array(whole[used][:, items])
    names = np.flatnonzero(used), np.flatnonzero(items)
    core = k_core(
        whole, minimum, passes=passes, permitted=None if permitted is None else permitted[items]
    )
    kept, made = by_sets(set(pairs), minimum, passes, allowed)
    mine = {
        (int(names[0][u]), int(names[1][i]))
        for u, i in zip(*whole.nonzero(), strict=True)
        if core.users[u] and core.items[i]
    }
    assert mine == kept
    assert len(core.passes) == made
    lost = sum(p.interactions for p in core.passes) + core.outside_interactions
    assert lost == len(pairs) - len(kept)
    counts = [sum(u == v for v, _ in kept) for u, _ in kept]
    counts += [sum(i == j for _, j in kept) for _, i in kept]
    if core.complete:
        assert all(count >= minimum for count in counts)


def test_the_same_core_as_networkx_style_peeling(rng: np.random.Generator) -> None:
    dense = rng.random((200, 150)) < 0.02
    core = k_core(sparse.csr_array(dense.astype(np.int8)), 3)
    left = dense.copy()
    while True:
        weak = left.sum(axis=1) < 3, left.sum(axis=0) < 3
        after = left.copy()
        after[weak[0]] = False
        after[:, weak[1]] = False
        if (after == left).all():
            break
        left = after
    assert (dense & core.users[:, None] & core.items[None, :] == left).all()
    assert 0 < left.sum() < dense.sum()


def test_pseudonyms_are_a_random_order_of_those_who_stay() -> None:
    stays = np.arange(1000) % 3 > 0
    first, second = pseudonymous_order(stays), pseudonymous_order(stays)
    assert sorted(first.tolist()) == sorted(second.tolist()) == np.flatnonzero(stays).tolist()
    assert first.tolist() != second.tolist(), "two builds must not give the same pseudonyms"
    assert abs(np.corrcoef(first, np.arange(len(first)))[0, 1]) < 0.2


@pytest.mark.parametrize("block", [1, 7, 1 << 22])
def test_take_is_fancy_indexing(
    rng: np.random.Generator, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ombud.data.sources._build._BLOCK", block)
    dense = rng.integers(0, 6, (40, 30)) * (rng.random((40, 30)) < 0.3)
    whole = sparse.csr_array(dense.astype(np.float32))
    rows, columns = rng.permutation(40)[:25], rng.random(30) < 0.5
    taken = take(whole, rows, columns)
    assert (taken.toarray() == dense[rows][:, columns]).all()
    assert taken.has_sorted_indices and taken.data.dtype == np.float32
