"""Suites that a third party subclasses to prove that a component obeys its protocol.

A suite is a class whose tests pytest collects from a subclass::

    from ombud.testing import RecommenderContract

    class TestMine(RecommenderContract):
        def make(self, world):
            return Mine(factors=8).fit(world.interactions)

and assertions on results, for the tests of a system that is audited::

    from ombud.testing import assert_no_finding

    def test_our_lists_show_no_more_than_histories(result):
        assert_no_finding(result, 'metric == "share gap@10"', system="ours", direction="above")
"""

from ombud.testing.findings import assert_expected, assert_no_finding
from ombud.testing.metrics import MetricContract
from ombud.testing.moderators import ModeratorContract
from ombud.testing.recommenders import RecommenderContract

__all__ = [
    "MetricContract",
    "ModeratorContract",
    "RecommenderContract",
    "assert_expected",
    "assert_no_finding",
]
