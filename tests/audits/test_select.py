"""A result finds its estimates in an index."""

from __future__ import annotations

from ombud.audits import MetricInfo, Plan, Result
from ombud.stats import Estimate


def _of(key: str, system: str, group: str = "", **more: object) -> Estimate:
    title = "title" if key else "old title"
    made = Estimate(metric=title, value=0.5, interval=(0.4, 0.6), method="BCa", n=20, key=key)
    return made.replace(system=system, group=group, **more)


RESULT = Result(
    Plan(),
    (
        _of("recall", "a"),
        _of("ndcg", "a"),
        _of("recall", "b", details={"edits": 3}),
        _of("recall", "a", "women", kind="gap", against="men"),
        _of("", "a"),
    ),
    (MetricInfo({"name": "recall", "k": 50}, "recall@50", key="recall(k=50)"),),
)


def test_select_finds_by_key_in_the_order_of_the_result() -> None:
    assert list(RESULT.select(["ndcg", "recall"])) == list(RESULT.estimates[:4])
    assert RESULT.select("nothing") == ()
    assert list(RESULT.select()) == list(RESULT.estimates)


def test_a_result_without_keys_is_found_by_title() -> None:
    assert list(RESULT.select("old title")) == [RESULT.estimates[4]]
    assert RESULT.keys == ("recall", "ndcg", "old title")


def test_select_asks_fields_and_details() -> None:
    assert list(RESULT.select("recall", system="a", group="")) == [RESULT.estimates[0]]
    assert list(RESULT.select(kind="gap", against="men")) == [RESULT.estimates[3]]
    assert list(RESULT.select("recall", edits=3)) == [RESULT.estimates[2]]


def test_one_is_the_first_or_none() -> None:
    assert RESULT.one("recall", system="b") == RESULT.estimates[2]
    assert RESULT.one("recall", system="c") is None


def test_estimates_by_fields() -> None:
    found = RESULT.select("recall").by("system", "group")
    assert {key: len(some) for key, some in found.items()} == {
        ("a", ""): 1,
        ("b", ""): 1,
        ("a", "women"): 1,
    }


def test_infos_by_name_and_options() -> None:
    assert [i.title for i in RESULT.infos("recall", k=50)] == ["recall@50"]
    assert not RESULT.infos("recall", k=10)
    assert not RESULT.infos("ndcg")
