from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from ombud.data.interactions import Interactions
from ombud.probes.influence import masked, predict, sharpness
from ombud.probes.models import influence_of
from ombud.probes.others import SWAP_KINDS, OtherUsers, swapped
from ombud.systems.recommenders import (
    BPR,
    EASE,
    SVD,
    ExplicitALS,
    ImplicitALS,
    ItemKNN,
    Popular,
    UserKNN,
)

WHOLE = os.environ.get("OMBUD_SLOW", "") not in {"", "0"}


def ratings(users: int = 60, items: int = 30, seed: int = 0) -> Interactions:
    rng = np.random.default_rng(seed)
    taste = rng.normal(size=(users, 3)) @ rng.normal(size=(3, items))
    seen = rng.random((users, items)) < 0.35
    seen[:, 0] |= ~seen.any(axis=1)
    rows, columns = np.nonzero(seen)
    noise = rng.normal(scale=0.4, size=len(rows))
    stars = np.clip(np.round(2 * (3 + taste[rows, columns] + noise)) / 2, 0.5, 5)
    return Interactions.from_arrays(rows, columns, stars, rating_scale=(0.5, 5))


def implicit(users: int = 60, items: int = 30, seed: int = 0) -> Interactions:
    frame = ratings(users, items, seed).to_frame()
    return Interactions.from_arrays(frame["user"].to_numpy(), frame["item"].to_numpy())


EXACT = [
    (EASE(regularization=5.0), ratings),
    (EASE(regularization=5.0), implicit),
    (UserKNN(neighbours=4, threads=1), ratings),
    (UserKNN(neighbours=4, threads=1), implicit),
    (UserKNN(neighbours=None, min_neighbours=2, threads=1), ratings),
    (ItemKNN(neighbours=4, stored=8, threads=1), ratings),
    # Without ratings many similarities tie, and rounding decides at the end of a list.
    (ItemKNN(neighbours=None, stored=50, threads=1), implicit),
    (ItemKNN(neighbours=None, stored=50, threads=1), ratings),
    (Popular(by="count"), implicit),
    (Popular(by="mean"), ratings),
    (Popular(by="damped-mean"), ratings),
]


@pytest.mark.parametrize(
    ("model", "make"), EXACT, ids=[f"{m.name}-{d.__name__}-{n}" for n, (m, d) in enumerate(EXACT)]
)
@pytest.mark.parametrize("kind", SWAP_KINDS)
@pytest.mark.parametrize("budget", [1, 3])
def test_closed_forms_are_what_training_gives(model, make, kind, budget) -> None:
    data = make()
    trained = replace(model).fit(data)
    influence = influence_of(trained)
    assert influence is not None
    assert influence.exact
    targets = [3, 17]
    ids = data.items.ids
    space = OtherUsers(data, kind, budget)
    for target in targets:
        now = influence.today(target)
        np.testing.assert_allclose(now, trained.score([target], ids)[0], rtol=2e-4, atol=2e-4)
        swaps = space.draw(6 if WHOLE else 3, np.random.default_rng(1), target=target)
        found = influence.prepare(swaps).scores(target)
        for swap, scores in zip(swaps, found, strict=True):
            again = replace(model).fit(swapped(data, swap, slots=space.slots))
            wanted = again.score([target], ids)[0]
            np.testing.assert_allclose(scores, wanted, rtol=2e-4, atol=2e-4)


def half_steps(model: ExplicitALS, data: Interactions, target: int, swap, slots: int) -> np.ndarray:
    """Solve the items, then the target, by plain normal equations on the swapped data."""
    after = swapped(data, swap, slots=slots)
    matrix = after.matrix.tocoo()
    mean = matrix.data.mean(dtype=float)
    count = np.bincount(matrix.col, minlength=data.n_items)
    offset = np.bincount(matrix.col, weights=matrix.data - mean, minlength=data.n_items)
    offset = mean + offset / (count + model.damping)
    users = np.zeros((after.n_users, model.factors))
    users[: data.n_users] = model.user_factors
    bias = np.bincount(matrix.row, weights=matrix.data - offset[matrix.col], minlength=len(users))
    bias /= np.bincount(matrix.row, minlength=len(users)) + model.damping
    for place, row in enumerate(swap.rows):
        history = swap.histories[[place]]
        if history.nnz:
            users[row] = model.fold_in(history)[0]
    items = np.zeros((data.n_items, model.factors))
    for i in range(data.n_items):
        mine = matrix.col == i
        x = users[matrix.row[mine]]
        rest = matrix.data[mine] - offset[i] - bias[matrix.row[mine]]
        ridge = model.regularization * mine.sum() * np.eye(model.factors)
        if mine.any():
            items[i] = np.linalg.solve(x.T @ x + ridge, x.T @ rest)
    mine = matrix.row == target
    own, values = matrix.col[mine], matrix.data[mine]
    rest = values - offset[own]
    own_bias = rest.sum() / (len(rest) + model.damping)
    q = items[own]
    ridge = model.regularization * len(own) * np.eye(model.factors)
    p = np.linalg.solve(q.T @ q + ridge, q.T @ (rest - own_bias))
    return offset + own_bias + items @ p


@pytest.mark.parametrize("kind", SWAP_KINDS)
@pytest.mark.parametrize("budget", [1, 2])
def test_explicit_als_takes_one_step(kind, budget) -> None:
    """The change of scores is that of the two half-steps, up to terms of second order."""
    data = ratings(users=150)
    model = ExplicitALS(factors=3, iterations=60, solver="cholesky", regularization=0.05).fit(data)
    influence = influence_of(model)
    space = OtherUsers(data, kind, budget)
    swaps = space.draw(12, np.random.default_rng(2), target=5)
    today = influence.today(5)
    found = influence.prepare(swaps).scores(5) - today
    wanted = np.array([half_steps(model, data, 5, s, space.slots) for s in swaps]) - today
    assert np.corrcoef(found.ravel(), wanted.ravel())[0, 1] > 0.99
    np.testing.assert_allclose(found, wanted, atol=0.1 * np.abs(wanted).max())


@pytest.mark.parametrize(
    ("model", "make", "least"),
    [
        (ExplicitALS(factors=3, iterations=40, solver="cholesky", threads=1), ratings, 0.8),
        (ImplicitALS(factors=4, iterations=40, solver="cholesky", alpha=5.0), implicit, 0.8),
        (SVD(factors=3, epochs=60, learning_rate=0.02, threads=1), ratings, 0.7),
    ],
    ids=["explicit-als", "implicit-als", "svd"],
)  # fmt: skip
def test_one_step_ranks_as_training_from_where_the_model_stands(model, make, least) -> None:
    data = make(users=120)
    trained = replace(model).fit(data)
    influence = influence_of(trained)
    assert not influence.exact
    space = OtherUsers(data, "removed")
    swaps = space.draw(40, np.random.default_rng(3))
    targets = [2, 9, 30, 77]
    told: list[tuple[int, int]] = []
    predicted = predict(
        influence, data, targets, swaps, beta=4.0, progress=lambda i, of, _: told.append((i, of))
    ).moved
    assert told == [(40 * n, 160) for n in (1, 2, 3, 4)], "each target moves the bar"
    control = trained.continued(data, 8)
    wanted = np.full(predicted.shape, np.nan)
    for s, swap in enumerate(swaps):
        again = trained.continued(swapped(data, swap), 8)
        for t, j in enumerate(targets):
            if swap.touches(j):
                continue
            both = [
                masked(m.score([j], data.items.ids), data, j).astype(float)
                for m in (control, again)
            ]
            weights = [np.nan_to_num(np.exp(4 * (b - np.nanmax(b)))) for b in both]
            a, b = (w / w.sum() for w in weights)
            wanted[s, t] = 0.5 * np.abs(a - b).sum()
    np.testing.assert_array_equal(np.isnan(predicted), np.isnan(wanted))
    known = ~np.isnan(wanted)
    assert spearmanr(predicted[known], wanted[known]).statistic > least


def test_a_model_without_a_formula_has_none() -> None:
    assert influence_of(BPR(factors=3, epochs=1).fit(implicit())) is None


def test_an_item_that_loses_its_last_user_has_no_score() -> None:
    data = Interactions.from_arrays(
        [0, 0, 1, 1, 2, 2, 2], [0, 1, 0, 1, 1, 2, 0], [4, 3, 5, 2, 3, 5, 4.0]
    )
    swap = OtherUsers(data, "removed").removals()[2]
    for model in (
        ExplicitALS(factors=1, iterations=3),
        ImplicitALS(factors=1, iterations=3),
        EASE(regularization=1.0),
        Popular(by="mean"),
        UserKNN(),
        ItemKNN(),
    ):
        influence = influence_of(model.fit(data))
        assert np.isnan(influence.prepare([swap]).scores(0)[0, 2])


def test_predicted_lists_of_an_exact_formula_are_those_of_training() -> None:
    data = ratings()
    model = EASE(regularization=5.0)
    influence = influence_of(model.fit(data))
    swaps = OtherUsers(data, "removed").removals()
    found = predict(influence, data, [4, 8], swaps, n=5, lists=True)
    for number in (0, 20, 59):
        again = replace(model).fit(swapped(data, swaps[number]))
        wanted = again.recommend([4, 8], 5).items
        np.testing.assert_array_equal(found.lists[number], wanted)
    assert np.isnan(found.moved[4, 0])
    assert np.isnan(found.moved[8, 1])
    np.testing.assert_array_equal(found.today, model.recommend([4, 8], 5).items)


def test_sharpness_puts_the_list_apart(rng) -> None:
    scores = rng.normal(size=(50, 200)) * 3
    beta = sharpness(scores, 10)
    best = np.sort(scores, axis=1)[:, -10:].mean(axis=1) - scores.mean(axis=1)
    assert beta * np.median(best) == pytest.approx(6.0)
    assert sharpness(np.full((2, 3), np.nan), 2) == 1.0
    assert sharpness(np.ones((2, 3)), 2) == 1.0
