"""The analysis: a polarized system, and fits that fail, never end an audit."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from ombud.audits.analysis import Context
from ombud.data.dataset import Dataset
from ombud.data.interactions import Interactions
from ombud.data.items import Items
from ombud.data.recommendations import Recommendations
from ombud.errors import DataError
from ombud.metrics.engine.estimator import Settings
from ombud.questions.authors import propagation
from ombud.questions.authors.propagation import CreatorPropagation


def world(users: int = 40, items: int = 200) -> Context:
    """Readers with a taste; lists of one system follow it, those of the other are all of one."""
    rng = np.random.default_rng(2)
    woman = np.arange(items) % 2 == 1
    rows: list[tuple[int, int]] = []
    lists: dict[str, list[tuple[int, int, int]]] = {"follows": [], "polar": []}
    for user, taste in enumerate(rng.beta(2, 2, users)):
        weight = np.where(woman, taste, 1 - taste)
        picked = rng.choice(items, 40, replace=False, p=weight / weight.sum())
        rows += [(user, int(item)) for item in picked[:20]]
        lists["follows"] += [(user, int(i), rank + 1) for rank, i in enumerate(picked[20:])]
        alike = np.flatnonzero(woman == (taste > 0.5))[:20]
        lists["polar"] += [(user, int(i), rank + 1) for rank, i in enumerate(alike)]
    table = pl.DataFrame({"item": np.arange(items), "who": np.where(woman, "f", "m")})
    data = Dataset(
        Interactions.from_arrays(*map(list, zip(*rows, strict=True))), items=Items.from_frame(table)
    )
    frames = {
        name: pl.DataFrame(some, schema=["user", "item", "rank"], orient="row")
        for name, some in lists.items()
    }
    outputs = {name: Recommendations.from_frame(frame) for name, frame in frames.items()}
    return Context(data, outputs, Settings())


def test_a_polarized_system_has_its_own_reason() -> None:
    found = CreatorPropagation(k=20).analyze(world())
    slopes = {e.system: e for e in found.estimates if e.key == "propagation/slope"}
    assert slopes["follows"].is_defined
    assert "none of the 40 lists holds both identities" in slopes["polar"].reason
    fits = found.tables["creator-propagation-fits"]
    refused = dict(zip(fits["fit"], fits["refused"], strict=True))
    assert refused["joint fit"] == "" and "none of the 40" in refused["fit of polar alone"]
    assert set(found.tables["creator-propagation-curves"]["system"]) == {"follows"}
    assert set(found.tables["creator-propagation-points"]["system"]) == {"follows", "polar"}


@pytest.mark.parametrize(
    "error", [DataError("counts", ["bad"]), np.linalg.LinAlgError("singular"), OverflowError("far")]
)
def test_a_fit_that_fails_does_not_end_the_audit(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(propagation, "fit_propagation", fails)
    found = CreatorPropagation(k=20).analyze(world(users=25))
    (slope,) = [e for e in found.estimates if e.key == "propagation/slope"]
    assert slope.reason.startswith("the fit failed:")
    assert str(error) in slope.reason
    assert found.tables["creator-propagation-fits"].is_empty()


def test_too_few_users_are_the_reason() -> None:
    found = CreatorPropagation(k=20).analyze(world(users=5))
    (slope,) = found.estimates
    assert slope.reason == "not enough data: 5 users; 20 are needed"
