from __future__ import annotations

import json

import pytest

from ombud.stats.estimate import Estimate

WHOLE = {"metric": "m", "value": 1.0, "interval": (0.5, 2.0), "method": "t", "n": 3}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"value": None, "interval": None}, "needs a reason"),
        ({"value": None, "reason": "why"}, "cannot have an interval"),
        ({"reason": "why"}, "beside a defined value"),
        ({"value": float("nan")}, "not finite"),
        ({"interval": None}, "method must start with 'none"),
        ({"interval": (2.0, 1.0)}, "not low to high"),
        ({"interval": (float("nan"), 1.0)}, "not low to high"),
        ({"level": 1.0}, "not between 0 and 1"),
        ({"n": -1}, "negative"),
    ],
)
def test_a_number_that_hides_something_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Estimate(**(WHOLE | changes))  # type: ignore[arg-type]


def test_it_survives_json_with_open_ends() -> None:
    e = Estimate(**(WHOLE | {"interval": (0.0, float("inf"))}))  # type: ignore[arg-type]
    assert Estimate.from_dict(json.loads(json.dumps(e.to_dict(), allow_nan=False))) == e


def test_null_is_excluded_only_when_it_lies_outside() -> None:
    e = Estimate(**WHOLE, null=1.0)  # type: ignore[arg-type]
    assert not e.excludes_null
    assert e.replace(null=2.5).excludes_null
    assert not e.replace(null=None).excludes_null
