"""One declared family of comparisons per question, with one correction.

The engine corrects the numbers of one kind of one metric among themselves. What answers a question
is often several such sets (all users, each group; each label), so a question declares its family,
and its p-values are corrected once, together. Every count in a report is of that family.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ombud.audits.result import Result
from ombud.metrics.engine.estimate import correct
from ombud.stats.estimate import Estimate


def in_families(result: Result, families: Mapping[str, Sequence[Estimate]]) -> Result:
    """Return a result in which the comparisons of each family are corrected together.

    It must be done while the audit runs: what tests gave below the least p-value that replicates
    can tell (`Estimate.p_tail`) is not stored. Members without a number whose flags were too few
    to be tested count with a p-value of 1 (`ombud.metrics.engine.estimate.correct`).

    Parameters
    ----------
    result
        What an audit found.
    families
        For each question, by name, the estimates of `result` that answer it. One that answers two
        questions belongs to the first.

    Examples
    --------
    >>> from ombud.audits import Plan
    >>> about = dict(value=0.1, interval=(0.0, 0.2), method="BCa", n=99, null=0.0)
    >>> some = tuple(Estimate(metric=m, p_value=p, **about) for m, p in (("a", 0.02), ("b", 0.04)))
    >>> found = in_families(Result(Plan(), some), {"mine": some})
    >>> [(e.p_adjusted, e.correction, e.family) for e in found.estimates]
    [(0.04, 'benjamini-hochberg over 2', 'mine'), (0.04, 'benjamini-hochberg over 2', 'mine')]
    """
    made: dict[int, Estimate] = {}
    for name, members in families.items():
        own = [e for e in members if id(e) not in made]
        bare = [e.replace(p_adjusted=None, correction="", family=name) for e in own]
        together = correct(bare, result.plan.statistics.correction)
        made |= {id(e): new for e, new in zip(own, together, strict=True)}
    return replace(result, estimates=tuple(made.get(id(e), e) for e in result.estimates))
