"""The answer page, read aloud: plural, direction, few data, and nothing found."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from ombud.audits.expectations import Expectation, State
from ombud.audits.plan import AboutPlan, ExpectPlan, Plan
from ombud.audits.result import MetricInfo, Result
from ombud.data.card import Card
from ombud.report import Report
from ombud.report.answer import MOST_WORDS, Answer, Finding, by_nearest_end
from ombud.report.blocks import paragraph
from ombud.report.expected import first_expected
from ombud.stats.estimate import Estimate

RATIO = MetricInfo(
    {"name": "suppression", "by": "flags", "against": "all"}, "suppression", key="suppression"
)
AMPLIFICATION = MetricInfo(
    {"name": "amplification-user", "form": "ratio-of-means", "unknown": "no"},
    "user amplification@100 (ratio-of-means)",
    key="amplification-user(form=ratio-of-means)",
)
GAP = MetricInfo({"name": "share-gap", "k": 10}, "share gap@10", null=0.0, key="share-gap")
RATE = MetricInfo({"name": "false-positive-rate"}, "false-positive rate", key="false-positive-rate")
NDCG = MetricInfo({"name": "ndcg", "k": 10}, "nDCG@10", key="ndcg")


def number(info: MetricInfo, value: float | None, half: float, **about: Any) -> Estimate:
    fields: dict[str, Any] = {"metric": info.title, "key": info.key, "unit": "user"} | about
    if value is None:
        return Estimate.undefined(reason="not enough data: 3 texts", n=3, **fields)
    p = None if fields.get("null") is None else 0.5
    if p is not None and abs(value - fields["null"]) > half:
        p = 0.001
    tested = {} if p is None else {"p_value": p, "p_adjusted": p, "correction": "holm over 3"}
    ends = (value - half, value + half)
    return Estimate(value=value, interval=ends, method="x", n=97, **tested, **fields)


def ratio(value: float | None, events: int = 47, texts: int = 97, **about: Any) -> Estimate:
    counts = {"events": events, "texts": texts, "other_events": 60, "other_texts": 1000}
    fixed = {"system": "ours", "group": "lgbt", "kind": "ratio", "null": 1.0}
    half = 0.0 if value is None else value / 4
    return number(RATIO, value, half, **(fixed | {"details": counts} | about))


def lists(value: float | None, system: str = "SVD", **about: Any) -> Estimate:
    held = {"list": 0.01 * (1 + (value or 0)), "history": 0.01, "labels": 40}
    fixed = {"system": system, "null": 0.0, "details": held}
    return number(AMPLIFICATION, value, 0.1, **(fixed | about))


def gap(value: float | None, **about: Any) -> Estimate:
    fixed = {"system": "SVD", "label": "knives", "null": 0.0, "details": {"history": 0.12}}
    return number(GAP, value, 0.02, **(fixed | about))


def rate(events: int, value: float, group: str = "women") -> Estimate:
    counts = {"events": events, "texts": 100, "other_events": 80, "other_texts": 1000}
    fixed = {"system": "glin", "kind": "gap", "null": 0.0, "against": "texts outside the group"}
    return number(RATE, value, 0.02, group=group, details=counts, **fixed)


def level(value: float | None, system: str = "SVD") -> Estimate:
    return number(NDCG, value, 0.02, system=system)


def answer(info: MetricInfo, *estimates: Estimate, card: Card | None = None) -> Answer:
    result = Result(Plan(title="Ours"), estimates, (info,), card=card or Card(name="ours"))
    (found,) = Report(result).answers
    return found


def lines(found: Answer) -> list[str]:
    shown, _ = found.shown()
    return [one.said.plain for one in shown] or [found.said.plain]


@pytest.mark.parametrize(
    ("estimates", "said", "sure"),
    [
        (
            [ratio(8.0)],
            ["ours flagged 47 of 97 acceptable texts about LGBT, against 6 of every 100 overall "
             "(8 times as often; 6.0 to 10.0)."],
            "The one comparison is clear at 95%.",
        ),
        (
            [ratio(16.0, 97), ratio(2.0, 1, group="men"), ratio(0.5, 0, group="women")],
            ["ours flagged all 97 acceptable texts about LGBT, against 6 of every 100 overall "
             "(16 times as often; 12.0 to 20.0).",
             "ours flagged 1 of 97 acceptable texts about Men, against 6 of every 100 overall "
             "(twice as often; 1.5 to 2.5)."],
            "3 of 3 comparisons are clear at 95% after correction: 2 more and 1 less.",
        ),
        (
            [ratio(1.1), ratio(1.2, group="men"), ratio(None, group="women")],
            ["No group's acceptable texts are clearly flagged more by ours. Up to 1.5 times as "
             "often is not ruled out (Men)."],
            "None of 2 comparisons is clear at 95% after correction. 1 had too little data.",
        ),
        (
            [ratio(1.1), ratio(0.5, group="men")],
            ["No group's acceptable texts are clearly flagged more by ours; 1 is flagged less. Up "
             "to 1.4 times as often is not ruled out (LGBT)."],
            "1 of 2 comparisons is clear at 95% after correction.",
        ),
        (
            [ratio(None), ratio(None, group="men")],
            ["There is too little data to say: none of 2 comparisons could be made."],
            "Nothing could be tested.",
        ),
        (
            [ratio(None)],
            ["There is too little data to say: the one comparison could not be made."],
            "Nothing could be tested.",
        ),
    ],
    ids=["one", "both ways", "nothing", "less only", "few", "one without data"],
)  # fmt: skip
def test_whose_speech(estimates: list[Estimate], said: list[str], sure: str) -> None:
    found = answer(RATIO, *estimates)
    assert found.question == "Whose acceptable speech is flagged more?"
    assert lines(found) == said
    assert found.how_sure.plain == sure


@pytest.mark.parametrize(
    ("estimates", "said", "sure"),
    [
        (
            [lists(0.35)],
            ["SVD: 54 warnings in 100 places; people's own histories have 40 (35% more, +25% to "
             "+45%)."],
            "The one comparison is clear at 95%.",
        ),
        (
            [lists(0.35), lists(-0.5, "ALS"), lists(0.05, "Random"), lists(None, "TopPop")],
            ["ALS: 20 warnings in 100 places; people's own histories have 40 (50% less, \u221260% "
             "to \u221240%).",
             "SVD: 54 warnings in 100 places; people's own histories have 40 (35% more, +25% to "
             "+45%)."],
            "2 of 3 comparisons are clear at 95% after correction: 1 more and 1 less. 1 had too "
            "little data.",
        ),
        (
            [lists(2.6, details={}), lists(-0.2, "ALS", details={})],
            ["SVD's lists hold 3.6 times as much as people's own histories (+250% to +270%).",
             "ALS's lists hold 20% less than people's own histories (\u221230% to \u221210%)."],
            "2 of 2 comparisons are clear at 95% after correction: 1 more and 1 less.",
        ),
        (
            [lists(0.05), lists(-0.04, "ALS")],
            ["No clear difference: the lists of 2 systems do not clearly hold more or less than "
             "histories; below \u221214% or above +15% is ruled out for each."],
            "None of 2 comparisons is clear at 95% after correction.",
        ),
        (
            [lists(0.05)],
            ["No clear difference: the lists of SVD do not clearly hold more or less than "
             "histories; from \u22125% to +15% is not ruled out."],
            "The one comparison is not clear at 95%.",
        ),
        (
            [lists(None)],
            ["There is too little data to say: the one comparison could not be made."],
            "Nothing could be tested.",
        ),
    ],
    ids=["more", "both ways", "without counts", "nothing", "nothing, one system", "few"],
)  # fmt: skip
def test_more_than_histories(estimates: list[Estimate], said: list[str], sure: str) -> None:
    found = answer(AMPLIFICATION, *estimates)
    assert lines(found) == said
    assert found.how_sure.plain == sure


REST = {"group": "age=18", "kind": "gap", "against": "everyone else", "details": {}}


@pytest.mark.parametrize(
    ("info", "estimates", "said"),
    [
        (
            GAP,
            [gap(0.07)],
            ["SVD, knives: 7 more of every 100 places than in the same people's histories, which "
             "have 12 of every 100 (95% interval +5.0 to +9.0 of 100)."],
        ),
        (
            GAP,
            [gap(-0.07), gap(0.05, **REST)],
            ["SVD, knives: 7 fewer of every 100 places than in the same people's histories, which "
             "have 12 of every 100 (95% interval \u22129.0 to \u22125.0 of 100).",
             "SVD, age=18, knives: 5 more of every 100 places than everyone else (95% interval "
             "+3.0 to +7.0 of 100)."],
        ),
        (
            GAP,
            [gap(0.01), gap(0.0, label="")],
            ["No clear difference was found. The widest interval is that of SVD, knives: 0.010 "
             "[\u22120.010, 0.030]."],
        ),
        (
            GAP,
            [gap(None)],
            ["There is too little data to say: the one comparison could not be made."],
        ),
        (
            NDCG,
            [level(0.5), level(0.2, "ALS")],
            ["nDCG@10: SVD 0.500 [0.480, 0.520]; lowest, ALS 0.200 [0.180, 0.220]. Nothing was "
             "tested against a value that means no difference."],
        ),
        (
            RATE,
            [rate(20, 0.12), rate(0, -0.08, group="men")],
            ["glin, Women: 20 of 100 acceptable texts flagged, against 8 of every 100 texts "
             "outside the group.",
             "glin, Men: none of 100 acceptable texts flagged, against 8 of every 100 texts "
             "outside the group."],
        ),
        (NDCG, [level(None)], ["nDCG@10 is not defined on this data."]),
    ],
    ids=["more", "fewer, and a group", "nothing", "few", "nothing to test", "rates", "not defined"],
)  # fmt: skip
def test_a_plan_without_a_question(
    info: MetricInfo, estimates: list[Estimate], said: list[str]
) -> None:
    assert lines(answer(info, *estimates)) == said


def test_findings_are_ordered_by_the_end_nearest_to_no_effect() -> None:
    noisy = lists(9.0, "noisy").replace(interval=(0.2, 40.0))
    sure = lists(0.6, "sure")
    found = [Finding(paragraph(e.system), e) for e in (noisy, sure)]
    assert [one.said.plain for one in by_nearest_end(found)] == ["sure", "noisy"]


def test_large_unknown_shares_are_said() -> None:
    card = Card(name="x", facts={"texts": 1000, "label_unknown": 400})
    found = answer(RATIO, ratio(8.0), card=card)
    assert found.unknown is not None
    assert found.unknown.plain == "40 of every 100 texts have no label."
    few = Card(name="x", facts={"texts": 1000, "label_unknown": 40})
    assert answer(RATIO, ratio(8.0), card=few).unknown is None
    density = Estimate(
        metric="warning density",
        key="distribution/label-density",
        value=0.01,
        interval=None,
        method="none: counted",
        n=5,
        details={"unknown_share": 0.995},
    )
    found = answer(AMPLIFICATION, lists(0.35), density)
    assert found.unknown is not None
    assert found.unknown.plain == ("99.5 of every 100 item-label pairs; counted as \u201cno\u201d.")


def test_a_long_answer_shows_what_fits_and_counts_the_rest() -> None:
    names = [f"a group with quite a long name number {i}" for i in range(30)]
    many = [ratio(3.0 + i, group=name) for i, name in enumerate(names)]
    found = answer(RATIO, *many)
    shown, more = found.shown(MOST_WORDS)
    assert len(shown) + more == 30
    assert 1 <= len(shown) <= 3
    assert shown[0].estimate.value == 32.0
    assert len(found.shown(10)[0]) == 1  # the most certain is never left out


def test_what_was_expected_stands_on_the_first_screen() -> None:
    result = Result(Plan(title="Ours"), (ratio(8.0),), (RATIO,))
    gate = (Expectation("not met", "no group above 2"), Expectation("undecided", "few refusals"))
    html = Report(result, gate).html(interactive=False)
    assert '<span class="gate not-met">not met</span> no group above 2' in html
    assert html.index("undecided</span> few refusals") < html.index("<nav")


def test_the_answer_of_the_preset_comes_first() -> None:
    estimates = (ratio(8.0), lists(0.35))
    for preset in ("suppression", "warnings"):
        plan = Plan(title="Ours", preset=preset)
        answers = Report(Result(plan, estimates, (RATIO, AMPLIFICATION))).answers
        assert [a.name for a in answers][0] == preset
        assert len(answers) == 2


def first_screen(html: str) -> list[str]:
    """The words that stand before the list of contents."""
    shown = html[html.index("<header>") : html.index("<nav")]
    inline = re.sub(r"</?(?:a|bdi|span|strong)\b[^>]*>", "", shown)
    return re.sub(r"<[^>]+>", " ", inline).split()


@pytest.mark.parametrize("limits", [1, 3, 12])
def test_the_first_screen_keeps_to_its_words_with_limits_on_it(
    ordinary: Result, limits: int
) -> None:
    states: tuple[State, ...] = ("met", "not met", "undecided")
    gate = tuple(
        Expectation(states[i % 3], f"number {i} stays below what was agreed") for i in range(limits)
    )
    words = first_screen(Report(ordinary, gate).html(interactive=False))
    assert len(words) <= MOST_WORDS
    told = " ".join(words)
    assert re.search("[14] not met", told) or ("not met number 1" in told) or limits == 1
    assert "Expected" in told


def test_limits_are_named_where_there_is_room_and_counted_where_not() -> None:
    gate = [Expectation("met", f"a{i}") for i in range(3)] + [Expectation("not met", "b c")]
    shown, rest = first_expected(gate, room=20)
    assert [one.said for one in shown] == ["b c", "a0", "a1"] and rest == "1 more met"
    shown, rest = first_expected(gate, room=7)
    assert [one.said for one in shown] == ["b c"] and rest == "3 more met"
    shown, rest = first_expected(gate, room=6)
    assert [one.said for one in shown] == ["b c"] and rest == "3 more"
    long = [Expectation("met", "a"), Expectation("not met", "so much said of it")]
    assert first_expected(long, room=6) == ((), "1 not met and 1 met")
    assert first_expected(gate, room=0) == ((), "1 not met, of 4")
    assert first_expected([], room=9) == ((), "")


def test_who_audits_whom_is_in_the_report_and_limits_have_their_reasons() -> None:
    about = AboutPlan(auditor="Ada", audited="Films <Ltd>", system_version="2.1", purpose="Review.")
    limit = ExpectPlan(limit="value <= 1.5", where='kind == "ratio"', reason="Agreed & written.")
    plan = Plan(title="Ours", about=about, expect={"no group above 1.5": limit})
    report = Report(Result(plan, (ratio(8.0), ratio(None, group="x")), (RATIO,)))
    text = report.markdown()
    for said in ("Films", "2.1", "Review.", "no group above 1.5", "Agreed", "1 beyond it"):
        assert said in text
    html = report.html(interactive=False)
    assert "Films &lt;Ltd&gt;" in html and "Agreed &amp; written." in html
    assert [one["state"] for one in json.loads(report.json())["expected"]] == ["not met"]
