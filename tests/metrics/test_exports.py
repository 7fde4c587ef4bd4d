"""Every metric that a plan can name can be imported from one place."""

from __future__ import annotations

import pytest

import ombud.metrics
from ombud import registry


def test_metrics_of_questions_are_found_by_the_name_of_their_class() -> None:
    from ombud.metrics import Suppression, WorstSuppression

    assert Suppression is registry.get("metric", "suppression")
    assert WorstSuppression is registry.get("metric", "worst-suppression")
    for name in registry.names("metric"):
        made = registry.get("metric", name)
        assert getattr(ombud.metrics, made.__name__) is made


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = ombud.metrics.Nothing
