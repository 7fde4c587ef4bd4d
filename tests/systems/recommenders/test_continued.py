from __future__ import annotations

import numpy as np
import pytest

from ombud.data.ids import Vocabulary
from ombud.data.interactions import Interactions
from ombud.errors import AuditedSystemError
from ombud.systems.recommenders import BPR, SVD, ExplicitALS, ImplicitALS


def ratings(seed: int = 0) -> Interactions:
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random((40, 25)) < 0.4)
    taste = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 25))
    stars = np.clip(np.round(3 + taste[users, items]), 1, 5)
    return Interactions.from_arrays(users, items, stars, rating_scale=(1, 5))


MODELS = [
    (ExplicitALS(factors=3, iterations=4, threads=1), "iterations"),
    (ImplicitALS(factors=3, iterations=4, threads=1), "iterations"),
    (SVD(factors=3, epochs=4, threads=1), "epochs"),
]


@pytest.mark.parametrize(("model", "length"), MODELS, ids=lambda x: getattr(x, "name", x))
def test_continuing_equals_training_longer(model, length) -> None:
    from dataclasses import replace

    data = ratings()
    short = replace(model).fit(data)
    before = short.item_factors.copy()
    longer = replace(model, **{length: 7}).fit(data)
    continued = short.continued(data, 3)
    np.testing.assert_array_equal(continued.item_factors, longer.item_factors)
    np.testing.assert_array_equal(continued.user_factors, longer.user_factors)
    np.testing.assert_array_equal(short.item_factors, before)
    assert (
        continued.recommend([0, 1], 3).items.tolist() == longer.recommend([0, 1], 3).items.tolist()
    )


def test_more_users_start_from_their_history_folded_in() -> None:
    data = ratings()
    less = Interactions.from_frame(data.to_frame().filter(data.to_frame()["user"] < 38))
    less = less.over(less.users, data.items)
    # One factor and a firm penalty, so that there is one solution to end in.
    model = ExplicitALS(factors=1, iterations=30, regularization=0.2, solver="cholesky").fit(less)
    more = model.continued(data, 30)
    cold = ExplicitALS(factors=1, iterations=99, regularization=0.2, solver="cholesky").fit(data)
    assert more.user_factors.shape == (40, 1)
    users = np.arange(40)
    np.testing.assert_allclose(
        more.score(users, np.arange(25)), cold.score(users, np.arange(25)), atol=0.01
    )


def test_what_cannot_be_continued_says_so() -> None:
    data = ratings()
    model = ExplicitALS(factors=3, iterations=2).fit(data)
    fewer = Interactions.from_frame(data.to_frame().filter(data.to_frame()["user"] < 10))
    with pytest.raises(AuditedSystemError, match="must keep their rows"):
        model.continued(fewer, 1)
    other = data.over(data.users, Vocabulary(np.arange(26)))
    with pytest.raises(AuditedSystemError, match="items must be the same"):
        model.continued(other, 1)
    with pytest.raises(ValueError, match="at least 1"):
        model.continued(data, 0)
    with pytest.raises(AuditedSystemError, match="fit it again"):
        BPR(factors=3, epochs=1).fit(data).continued(data, 1)
