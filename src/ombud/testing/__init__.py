"""Suites that a third party subclasses to prove that a component obeys its protocol.

A suite is a class whose tests pytest collects from a subclass::

    from ombud.testing import RecommenderContract

    class TestMine(RecommenderContract):
        def make(self, world):
            return Mine(factors=8).fit(world.interactions)
"""

from ombud.testing.metrics import MetricContract
from ombud.testing.moderators import ModeratorContract
from ombud.testing.recommenders import RecommenderContract

__all__ = ["MetricContract", "ModeratorContract", "RecommenderContract"]
