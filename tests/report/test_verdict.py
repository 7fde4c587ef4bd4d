"""Verdicts by rule, one count everywhere, numbers that meet, hostile names inert."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ombud.audits.plan import AboutPlan, DisplayPlan, Plan
from ombud.audits.result import MetricInfo, Result
from ombud.data.card import Card
from ombud.data.exclusions import Exclusion
from ombud.questions.counterfactual.report import OVERLAP
from ombud.report import Report
from ombud.report.context import Context
from ombud.report.html import to_html
from ombud.report.markdown import to_markdown
from ombud.report.model import Prose, Table, Verdict, plain
from ombud.report.numbers import POINTS
from ombud.report.page import build_page, facts_of
from ombud.report.show import estimate_table
from ombud.report.terminal import terminal_lines
from ombud.report.verdict import verdicts_of
from ombud.stats.estimate import Estimate, TippingPoint

SPEC = {"name": "suppression", "by": "flags", "against": "all", "outcome": "flagged"}
RATIOS = MetricInfo(SPEC, "suppression", null=1.0, key="suppression")
GAPS = MetricInfo({"name": "share-gap", "k": 10}, "share gap@10", null=0.0, key="share-gap")
AMOUNTS = MetricInfo(
    {"name": "balance-gap", "exposure": False}, "balance gap", null=0.0, key="balance-gap"
)


def ratio(value: float | None, group: str, system: str = "one", **about: Any) -> Estimate:
    fields: dict[str, Any] = {
        "metric": "suppression", "key": "suppression", "kind": "ratio", "against": "all texts",
        "unit": "text", "system": system, "group": group, "null": 1.0, **about,
    }  # fmt: skip
    if value is None:
        fields |= {"reason_code": "too-few-units"}
        return Estimate.undefined(reason="not enough data: 3 texts", n=3, **fields)
    p = 0.0001 if value > 1.5 or value < 0.6 else 0.5
    details = {"events": 10.0 * value, "texts": 100, "other_events": 100.0, "other_texts": 1000}
    fields["details"] = details | fields.get("details", {})
    return Estimate(
        value=value, interval=(0.8 * value, 1.25 * value), method="x", n=100, p_value=p,
        p_adjusted=p, correction="holm over 2", **fields,
    )  # fmt: skip


def gap(value: float, label: str = "gore", system: str = "one", group: str = "", **about: Any):  # type: ignore[no-untyped-def]
    p = 0.0001 if abs(value) > 0.02 else 0.5
    fields: dict[str, Any] = {
        "metric": "share gap@10", "key": "share-gap", "unit": "user", "system": system,
        "label": label, "group": group, "null": 0.0, "details": {"history": 0.1546},
    }  # fmt: skip
    return Estimate(
        value=value, interval=(value - 0.015, value + 0.015), method="x", n=200, p_value=p,
        p_adjusted=p, correction="holm over 2", **(fields | about),
    )  # fmt: skip


def result(*estimates: Estimate, title: str = "Whose speech is flagged?", **plan: Any) -> Result:
    return Result(Plan(title=title, **plan), estimates, (RATIOS, GAPS, AMOUNTS))


def verdict(*estimates: Estimate, **plan: Any) -> Verdict:
    return verdicts_of(result(*estimates, **plan))[0]


REVERSED = TippingPoint(
    recommended=0.9, history=1.1, labeled_recommended=0.4, labeled_history=0.5, reverses=True
)


@pytest.mark.parametrize(
    ("estimates", "answer"),
    [
        ([ratio(2.5, "women"), ratio(1.0, "men")], "yes"),
        ([ratio(1.1, "women"), ratio(0.5, "men")], "no clear evidence"),
        ([ratio(1.1, "women"), ratio(None, "men")], "no clear evidence"),
        ([ratio(None, "women"), ratio(None, "men")], "cannot tell"),
        ([ratio(2.5, "women"), ratio(None, "women", "two")], "yes"),
        ([ratio(2.5, "women", events=9)], "no clear evidence"),
        ([ratio(2.5, "women", events=10)], "yes"),
        ([ratio(2.5, "women", tipping=REVERSED)], "cannot tell"),
        ([ratio(2.5, "women", tipping=REVERSED), ratio(2.5, "men")], "yes"),
        ([gap(0.07), gap(-0.07, system="two")], "yes"),
        ([gap(-0.07)], "no clear evidence"),
    ],
)
def test_rules(estimates: list[Estimate], answer: str) -> None:
    made = verdict(*estimates)
    assert made.answer == answer
    assert bool(made.findings) == (answer == "yes")


def both_ways(value: float, system: str) -> Estimate:
    return gap(value, "women", system, metric="b", key="balance-gap", details={"profile": 0.4})


@pytest.mark.parametrize(
    ("values", "answer"),
    [((0.1, 0.1), "yes"), ((0.1, -0.1), "mixed"), ((-0.1, -0.1), "yes"), ((0.0, 0.0), None)],
)
def test_opposite_directions_are_mixed_where_both_count(
    values: tuple[float, float], answer: str | None
) -> None:
    made = verdict(both_ways(values[0], "one"), both_ways(values[1], "two"))
    assert made.answer == (answer or "no clear evidence")


def test_more_by_some_and_less_by_others_is_one_direction() -> None:
    rest = gap(-0.1, "men", "one", metric="b", key="balance-gap", details={"profile": 0.6})
    assert verdict(both_ways(0.1, "one"), rest).answer == "yes"


MORE = "flags acceptable texts about"
LONG = "x" * 120


@pytest.mark.parametrize(
    ("estimates", "headline"),
    [
        ([ratio(2.5, "women")], f"one {MORE} women more often than acceptable texts overall."),
        (
            [ratio(2.5, "women"), ratio(1.0, "women", "two")],
            f"One of the two moderators, one, {MORE} women more often than acceptable texts "
            "overall.",
        ),
        (
            [ratio(2.5, "women", name) for name in ("a", "b", "c")],
            "All three moderators flag acceptable texts about women more often than acceptable "
            "texts overall.",
        ),
        (
            [ratio(2.6, "women"), ratio(2.5, "men", "two"), ratio(1.0, "men", "three")],
            "Two of the three moderators flag acceptable texts about some groups more often than "
            f"acceptable texts overall. one {MORE} women more often. two {MORE} men more often.",
        ),
        (
            [ratio(3 - i / 10, f"g{i}", f"s{i}") for i in range(5)],
            "All five moderators flag acceptable texts about some groups more often than "
            f"acceptable texts overall. Most of all, s0 {MORE} g0 more often.",
        ),
        (
            [ratio(3 - i / 10, f"g{i}") for i in range(5)],
            f"one {MORE} g0, g1 and 3 others more often than acceptable texts overall.",
        ),
        (
            [ratio(1.0, "women")],
            f"No clear evidence that one {MORE} some groups more often than acceptable texts "
            "overall.",
        ),
        (
            [ratio(1.0, "women"), ratio(1.0, "women", "two")],
            f"No clear evidence that either moderator {MORE} some groups more often than "
            "acceptable texts overall.",
        ),
        (
            [ratio(2.5, "women", name, events=7) for name in ("a", "b", "c")],
            f"No clear evidence that any of the three moderators {MORE} some groups more often "
            "than acceptable texts overall. There are early signs in three of them.",
        ),
        ([ratio(None, "women")], "Cannot tell. No comparison could be made."),
        (
            [ratio(2.5, "women", LONG)],
            f"{'x' * 53}\u2026{'x' * 26} {MORE} women more often than acceptable texts overall.",
        ),
        (
            [gap(0.07, group="gender=f"), gap(0.0)],
            "one shows more gore to women than their own histories contain.",
        ),
        (
            [both_ways(0.1, "one"), both_ways(-0.1, "two")],
            "Both recommenders recommend some authors more or less often than users read them. "
            "one recommends more works by women. two recommends fewer works by women.",
        ),
    ],
)
def test_headlines_are_grammatical_and_do_not_depend_on_the_title(
    estimates: list[Estimate], headline: str
) -> None:
    for title in ("Are these systems fair?", "Do they treat people alike?", "Audit", "Q3"):
        assert plain(verdict(*estimates, title=title).headline) == headline


def test_baselines_alone_are_audited_and_a_system_without_a_name_is_this_one() -> None:
    base = {"one": {"type": "random"}, "two": {"type": "popular"}}
    made = verdict(gap(0.07), gap(0.07, system="two"), systems=base)
    text = "Both recommenders show more gore to all users than their own histories contain."
    assert plain(made.headline) == text
    assert plain(verdict(gap(0.0, system="")).headline).startswith(
        "No clear evidence that this recommender shows more of some content"
    )


def test_a_line_beside_the_name_of_a_system_does_not_repeat_it() -> None:
    made = verdict(ratio(2.5, "women", "flags"), ratio(2.5, "men", events=4, system="few"))
    lines = {s.system: plain(s.sentence) for s in made.systems}
    assert lines["flags"].startswith("Flags 25.0% of acceptable texts mentioning women (25 of 100)")
    hint = "lag acceptable texts about men more often than acceptable texts overall."
    assert lines["few"] == f"May f{hint}"
    assert plain(made.early[0].sentence) == f"few may f{hint}"
    sentence = plain(made.findings[0].sentence)
    assert sentence == f"flags f{lines['flags'][1:]}"


def test_a_declared_rule_without_consequence_reverses_nothing() -> None:
    declared = replace(REVERSED, decides=False)
    assert verdict(gap(0.07, tipping=declared)).answer == "yes"


def test_without_possible_harm_a_system_has_no_sign_of_it() -> None:
    below = ratio(0.5, "women")  # the whole interval is below 1
    for some, sentence in (
        ([below], "No sign of it."),
        ([below, ratio(None, "men")], "No sign of it in what could be compared."),
    ):
        (status,) = verdict(*some).systems
        assert (status.answer, plain(status.sentence)) == ("no clear evidence", sentence)


SHARES = st.one_of(st.floats(0, 1), st.floats(1e-6, 1e-3), st.sampled_from([0.0, 1.0]))


@given(level=SHARES, other=SHARES, width=st.floats(1e-4, 0.2), points=st.booleans())
def test_a_reader_can_check_every_sentence(
    level: float, other: float, width: float, points: bool,
    numbers_meet: Callable[[str, str, str], bool],
) -> None:  # fmt: skip
    """Shares of 0, of 1 and far below 0.1%, ratios near 1 and in the thousands, small sizes."""
    assume(level - other > 1e-6 and (points or other >= 1e-6))
    value = level - other if points else level / other
    about = {"interval": (value - width * value, value + width * value), "p_adjusted": 1e-4}
    counts = {"events": level * 1e7, "texts": 10**7, "other_events": other * 1e7,
              "other_texts": 10**7}  # fmt: skip
    e = gap(value, details={"history": other}) if points else ratio(2.0, "women", details=counts)
    e = e.replace(value=value, p_value=1e-4, **about)
    (finding,) = verdict(e).findings
    said = plain(finding.sentence).partition(" (others")[0]
    texts = re.findall(r"(?:under )?[\d.,]*\d%", said)
    assert len(texts) == 2 and numbers_meet(*texts, plain(finding.evidence)), (said, finding)
    # The interval does not look like no effect, and holds the printed size.
    low, high = (
        float(end.replace(",", ""))
        for end in re.findall(r"CI ([\d.,]*\d)(?: to )([\d.,]*\d)", finding.difference)[0]
    )
    size = float(re.findall(r"[\d.,]*\d", finding.size)[0].replace(",", ""))
    if width < 0.9 and (points or value * (1 - width) > 1):
        assert (low > 0 if points else low != 1) and low <= size * 1.06 and size <= high * 1.06


def test_emphasis_is_markdown() -> None:
    some = [ratio(v, g, s) for s, v, g in (("a", 3.0, "women"), ("b", 2.5, "men"))]
    answer = to_markdown(build_page(result(*some))).splitlines()[2]
    assert answer.startswith("**Both moderators** **flag acceptable texts about some groups")
    assert "****" not in answer


def test_the_tipping_point_is_that_of_the_first_finding() -> None:
    firm = replace(REVERSED, recommended=0.1, history=None, reverses=False)
    fragile = replace(REVERSED, recommended=0.45, history=None, reverses=False)
    made = verdict(gap(0.07, "violence", tipping=firm), gap(0.03, "torture", tipping=fragile))
    first = plain(made.changes[0])
    assert plain(made.findings[0].what) == "violence" and "violence" in plain(made.headline)
    assert "one and violence would reverse" in first and "0.1 times" in first


def test_comparisons_without_a_tipping_point_are_named() -> None:
    declared = replace(REVERSED, decides=False)
    why = {"no_tipping": "the systems measured different users"}
    some = verdict(ratio(2.5, "women", tipping=declared), ratio(2.5, "men", details=why))
    every = verdict(*(ratio(2.5, group, tipping=declared) for group in ("women", "men")))
    for made, named in ((some, True), (every, False)):
        said = " ".join(plain(text) for text in made.changes)
        assert "the label were less than" in said
        assert ("not computed, because the systems measured different users" in said) == named


def test_a_point_below_what_is_assumed_reverses_below_it() -> None:
    """Of two groups, either side can work in either direction."""
    turned = replace(REVERSED, recommended=1.4, history=0.6, decides=False)
    made = verdict(gap(0.07, tipping=turned))
    said = plain(made.changes[0])
    assert "label were more than 1.4 times" in said and "or less than 0.6 times" in said


def test_reference_systems_never_lead() -> None:
    systems = {"base": {"type": "random"}, "ours": {"type": "svd"}}
    made = verdict(gap(0.5, system="base"), gap(0.0, system="ours"), systems=systems)
    assert made.answer == "no clear evidence"
    assert [s.system for s in made.systems] == ["ours", "base"]
    made = verdict(gap(0.5, system="base"), gap(0.07, system="ours"), systems=systems)
    assert [f.estimate.system for f in made.findings] == ["ours"]
    base = next(s for s in made.systems if s.reference)
    assert base.mark == "finding" and base.lead is not None  # shown in its line alone
    alone = verdict(gap(0.5, system="base"), systems={"base": {"type": "random"}})
    assert alone.answer == "yes"


def test_early_signs_are_no_headline_and_few_events_no_number() -> None:
    made = verdict(gap(0.07, events=7), gap(0.08, "blood", events=4))
    assert not made.findings and len(made.early) == 2
    shown = [plain(f.sentence) + plain(f.evidence) for f in made.early]
    assert any("22.5%" in text for text in shown)
    assert any("4 events" in text and "%" not in text for text in shown)


def test_green_needs_a_declared_limit() -> None:
    assert verdict(gap(0.0)).systems[0].mark == "none"
    declared = {"history": 0.15, "matters": 0.05}
    assert verdict(gap(0.0, details=declared)).systems[0].mark == "below limit"
    near = {"history": 0.15, "matters": 0.01}
    assert verdict(gap(0.0, details=near)).systems[0].mark == "none"


def test_systems_without_data_are_told_apart_from_those_without_findings() -> None:
    some = [ratio(2.5, "women"), ratio(1.0, "women", "two"), ratio(None, "women", "three")]
    statuses = {s.system: s.answer for s in verdict(*some).systems}
    assert statuses == {"one": "yes", "two": "no clear evidence", "three": "cannot tell"}


def test_a_group_and_the_average_that_it_drives_are_one_finding() -> None:
    made = verdict(gap(0.07), gap(0.2, group="age=18-24"), gap(0.0, group="age=25-34"))
    (finding,) = made.findings
    assert finding.estimate.group == "age=18-24" and len(finding.related) == 1
    assert "No other age group" in plain(finding.evidence)
    everywhere = verdict(gap(0.07), gap(0.2, group="age=18-24"), gap(0.1, group="age=25-34"))
    assert [f.estimate.group for f in everywhere.findings] == [""]


def test_each_group_is_a_story_and_only_harm_counts() -> None:

    def recall(value: float, group: str) -> Estimate:
        levels = {"level": 0.6 + value, "other_level": 0.6}
        about = {"kind": "gap", "against": "texts outside the group", "unit": "text"}
        key = "detection-recall"
        return gap(value, "", group=group, metric="recall", key=key, details=levels, **about)

    groups = (recall(-0.3, "topic=age"), recall(-0.2, "topic=politics"), recall(0.2, "topic=law"))
    made = verdict(*groups)
    assert (made.family.tested, made.family.harmful) == (3, 2)
    assert "2 of 3 comparisons show a significant decrease" in made.family.sentence
    assert [f.estimate.group for f in made.findings] == ["topic=age", "topic=politics"]
    assert not any(f.related for f in made.findings)


def test_a_headline_names_no_measure_that_could_not_be_tested() -> None:
    about = {"key": "reach/popularity-gap", "metric": "reach", "against": "popular items"}
    reach = ratio(None, "items of popularity decile 1").replace(**about, kind="gap", label="")
    moved = {"key": "stability/above-noise", "details": {"distance": OVERLAP}}
    noise = gap(0.0, "", metric="lists changed beyond noise", **moved)
    found = {plain(verdict(*some).headline) for some in ((noise, reach), (noise,))}
    assert len(found) == 1 and "when other users" in found.pop()


def test_contrasts_with_others_are_no_findings() -> None:
    contrast = gap(0.2, group="age=18-24", kind="gap", against="others")
    made = verdict(gap(0.0), contrast)
    assert made.family.tested == 1 and not made.findings


def test_without_a_question_contrasts_count_where_groups_have_no_reference() -> None:
    def recall(group: str, **about: Any) -> Estimate:
        return gap(0.2, "", group=group, key="recall", metric="recall", **about)

    contrast = recall("age=18-24", kind="gap", against="others")
    alone = verdict(recall("age=18-24", null=None), contrast)
    assert alone.name == "general" and alone.family.estimates == (contrast,)
    referred = recall("age=18-24")
    assert verdict(referred, contrast).family.estimates == (referred,)


def test_the_same_verdict_and_count_everywhere() -> None:
    page = build_page(result(ratio(2.5, "women"), ratio(1.0, "men"), ratio(None, "lgbt")))
    assert page.verdict is not None
    told = json.loads(json.dumps(page.verdict.to_dict()))
    assert told["comparisons"] | {"tested": 2, "harmful": 1, "not_tested": 1} == told["comparisons"]
    lines = " ".join(" ".join(terminal_lines(page)).split())
    headline = plain(page.verdict.headline)
    text = re.sub("<[^>]*>", "", to_html(page))
    assert headline in text and headline in lines
    assert headline in to_markdown(page).replace("*", "")
    assert "both comparisons made" in text and "both comparisons made" in lines


def test_terminal_output_is_at_most_25_lines_and_names_findings() -> None:
    many = [ratio(2.5 + i / 10, f"group {i}", f"system {j}") for i in range(20) for j in range(5)]
    page = build_page(result(*many))
    assert len(terminal_lines(page)) <= 24
    assert any("more findings in the report" in line for line in terminal_lines(page))
    # Systems without a finding are listed only as far as there is room for what follows them.
    systems = [ratio(1.0, "women", f"a system with a long name {j} " * 4) for j in range(9)]
    for most in range(8, 25):
        lines = terminal_lines(build_page(result(*systems)), most=most)
        assert len(lines) <= most and any(line.startswith("Next: ") for line in lines)


def test_hostile_names_stay_names() -> None:
    name = "<b>{what}\u202e</b>"
    page = build_page(result(ratio(2.5, f"identity={name}", name), ratio(1.0, "men", name)))
    html = to_html(page)
    assert "<b>{what}" not in html and "\u202e" not in html
    assert "&lt;b&gt;{what}⟨U+202E⟩&lt;/b&gt;" in html


def test_display_names_of_the_plan_win() -> None:
    display = DisplayPlan(
        systems={"one": "Our feed"},
        labels={"gore": "bloody scenes"},
        groups={"age=18-24": "students"},
    )
    made = verdict(gap(0.07, group="age=18-24"), display=display)
    sentence = plain(made.findings[0].sentence)
    assert all(name in sentence for name in ("Our feed", "bloody scenes", "students"))
    assert made.to_dict()["findings"][0]["system"] == "one"


def test_silent_plans_are_told() -> None:
    page = build_page(result(gap(0.07)))
    assert "auditor: not stated" in page.facts and "data period: not stated" in page.facts
    about = AboutPlan(auditor="Ada", period="May 2026", data="simulated data")
    page = build_page(result(gap(0.07), about=about))
    assert {"Made by Ada", "data period: May 2026", "simulated data"} <= set(page.facts)


def test_a_reranker_is_compared_with_what_it_reranks() -> None:
    base = {"type": "svd"}
    systems = {"SVD": base, "SVD with list": {"type": "avoid-list", "inner": base}}
    made = verdict(gap(0.07, system="SVD"), gap(-0.14, system="SVD with list"), systems=systems)
    (text,) = map(plain, made.effects)
    assert text == "With SVD with list, gore: 22.5% to 1.5%."
    made = verdict(gap(0.07, system="SVD"), gap(0.06998, system="SVD with list"), systems=systems)
    (text,) = map(plain, made.effects)
    assert text == "With SVD with list, gore: 22.460% to 22.458%."


def test_few_tables_of_values_are_open_before_the_appendix() -> None:
    kinds = [gap(0.07, key=f"kind-{n}", metric=f"kind {n}") for n in range(8)]
    info = tuple(MetricInfo({"name": e.key}, e.metric, key=e.key) for e in kinds)
    page = build_page(replace(result(*kinds), metrics=info))
    tables = [b for s in page.sections if not s.appendix for b in s.blocks if isinstance(b, Table)]
    values = [t for t in tables if any(c.small for row in t.rows for c in row)]
    assert len(values) == 8 and 1 <= sum(not t.folded for t in values) <= 5


def test_what_was_excluded_has_display_names() -> None:
    gone = (
        Exclusion("one: texts", "texts", 5, "no decision", 9, system="one"),
        Exclusion("escape, gore", "users", 1, "nobody is at risk", system="one"),
        Exclusion("labels", "items", 7, "no keyword", 9),
    )
    display = DisplayPlan(systems={"one": "Model A"}, labels={"gore": "blood and gore"})
    card = Card(name="files", dropped=("labels: 7 of 9 items excluded: no keyword", "older"))
    made = replace(result(gap(0.07), display=display), exclusions=gone, card=card)
    (data,) = (s for s in build_page(made).sections if s.title == "Data")
    (table,) = (b for b in data.blocks if isinstance(b, Table))
    assert [[c.text for c in row[:3]] for row in table.rows] == [
        ["Model A: escape, blood and gore", "1 user", ""],
        ["labels", "7 items", "9"],
        ["Model A: texts", "5 texts", "9"],
    ]
    # What was excluded is said once.
    (prepared,) = (b for b in data.blocks if isinstance(b, Prose) and len(b.paragraphs) > 1)
    assert list(map(plain, prepared.paragraphs[1:])) == ["older"]


def test_a_table_about_one_label_names_it() -> None:
    named, unnamed = gap(0.07), gap(0.07, label="", group="age=18-24")
    for e, title, row in ((named, "Content", "gore"), (unnamed, "Group", "ages 18 to 24")):
        table = estimate_table(
            [e], Context.of(result(e)), name="t", caption="", rows=("label", "group"), scale=POINTS
        )
        assert (table.columns[0].title, table.rows[0][0].text) == (title, row)


def test_method_names_what_was_resampled() -> None:
    some = (gap(0.07), ratio(2.5, "women").replace(unit="cluster"))
    (method,) = (s for s in build_page(result(*some)).sections if s.title == "Method")
    said = " ".join(plain(t) for b in method.blocks if isinstance(b, Prose) for t in b.paragraphs)
    assert "bootstrap replicates over users and clusters of related texts;" in said


def test_the_users_of_an_audit_are_those_of_all_its_parts() -> None:
    moved = gap(0.07, key="stability/above-noise", family="counterfactual").replace(n=10)
    reach = gap(0.07, key="reach/gap", unit="target", family="counterfactual").replace(n=12)
    people = gap(0.0, key="reach/agency/proved").replace(n=30)
    other = gap(0.0, key="coverage").replace(n=500)
    facts = facts_of(Context.of(result(moved, reach, people, other)))
    assert facts["units"] == "30 users"


def test_levels_that_are_of_another_estimate_are_not_printed() -> None:
    made = verdict(gap(0.07, details={"history": None}))
    assert not made.findings[0].levels
    assert "%" not in plain(made.findings[0].sentence)


def test_a_stored_verdict_is_what_the_report_says(tmp_path: Any) -> None:
    from ombud.audits import Audit
    from ombud.metrics import ShareGap
    from ombud.worlds import small_world

    world = small_world(seed=1)
    made = Audit(world.dataset, world.recommenders(), [ShareGap(k=10)]).run(tmp_path / "r")
    stored = Result.load(tmp_path / "r")
    assert stored.verdict == json.loads((tmp_path / "r" / "verdict.json").read_text())
    assert "verdict.json" in stored.provenance["files"]
    told = json.loads(json.dumps([v.to_dict() for v in Report(made).verdicts]))
    assert list(stored.verdicts) == told
    (tmp_path / "r" / "verdict.json").unlink()
    older = Result.load(tmp_path / "r")
    assert older.verdict is None
    assert json.loads(json.dumps(list(older.verdicts))) == told
    assert not (tmp_path / "r" / "verdict.json").exists()


def test_an_open_interval_can_be_stored() -> None:
    """JSON has no infinity; an open end is a word, as in ``estimates.json``."""
    e = ratio(2.5, "women").replace(interval=(1.9, float("inf")))
    told = json.dumps(verdict(e, ratio(1.0, "men")).to_dict(), allow_nan=False)
    assert '"inf"' in told


def test_a_part_of_an_identity_is_no_second_story() -> None:
    found = verdict(ratio(3.0, "women"), ratio(2.5, "women/female"))
    assert len(found.findings) == 1 and len(found.findings[0].related) == 1
    assert "women and women" not in plain(found.headline)


def test_the_summary_counts_who_is_compared() -> None:
    compared = gap(0.07, family="exposure", group="age=18-24")
    other = gap(0.0).replace(key="reach", n=5000, group="items of popularity decile 1")
    facts = build_page(result(compared, other)).facts
    assert {"200 users", "1 group"} <= set(facts)


def test_a_limitation_ends_with_one_period() -> None:
    made = replace(result(gap(0.07)), card=Card(name="x", unknowns="Half are unknown."))
    assert "Missing labels: Half are unknown.\n" in to_markdown(build_page(made)) + "\n"
