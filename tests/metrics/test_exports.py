"""Every metric that a plan can name can be imported from one place."""

from __future__ import annotations

import pytest

import ombud.metrics
from ombud import registry


def test_metrics_of_questions_are_found_by_the_name_of_their_class() -> None:
    from ombud.metrics import Suppression, WorstSuppression

    assert Suppression is registry.get("metric", "suppression")
    assert WorstSuppression is registry.get("metric", "worst-suppression")
    made = [registry.get("metric", name) for name in registry.names("metric")]
    names = [one.__name__ for one in made]
    for one in made:
        if names.count(one.__name__) == 1:
            assert getattr(ombud.metrics, one.__name__) is one


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = ombud.metrics.Nothing
