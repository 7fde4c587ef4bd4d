"""Numbers that meet: in every preset, levels and difference agree as printed, from one estimate.

Each preset is in a world with effects and in one without; with every option in `make test-all`,
which adds the golden plans of presets. What is checked is the data behind each phrase: findings,
folded findings, lines of the summary, cards.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from ombud import registry
from ombud.audits import Result
from ombud.report import Report
from ombud.report.card import SystemCard
from ombud.report.context import role_of
from ombud.report.model import Finding, Table, Verdict, is_early, plain, status_of
from ombud.stats.power import smallest_effect

PRESETS = ("warnings", "suppression", "authors", "delicate", "counterfactual")
QUIET = tuple(f"{name} without effects" for name in PRESETS)


EVERY = [
    *(f"{name} with every option" for name in PRESETS),
    *(f"{name}, with every option" for name in QUIET),
    *(
        f"{plan} (golden)"
        for plan in ("warnings-explicit", "warnings-implicit", "warnings-rolled-up", "suppression",
                     "suppression-repeated", "suppression-stated", "suppression-published",
                     "authors", "authors-three", "authors-both", "delicate", "delicate-voted",
                     "counterfactual", "counterfactual-ratings")
    ),
]  # fmt: skip
WORLDS = [*PRESETS, *QUIET, "plain", *(pytest.param(w, marks=pytest.mark.slow) for w in EVERY)]


@pytest.fixture(scope="module", params=WORLDS)
def report(request: pytest.FixtureRequest, preset_result: Callable[[str], Result]) -> Report:
    return Report(preset_result(request.param))


def phrases(verdict: Verdict) -> list[Finding]:
    """Every finding that is put into words: open, early, folded, or leading a line."""
    found = [*verdict.findings, *verdict.early]
    found += [one for finding in found for one in finding.related]
    return found + [s.lead for s in verdict.systems if s.lead is not None]


def test_levels_and_differences_agree_as_printed(
    report: Report, numbers_meet: Callable[[str, str, str], bool]
) -> None:
    for finding in (f for verdict in report.verdicts for f in phrases(verdict)):
        e, sentence = finding.estimate, plain(finding.sentence)
        assert e.value is not None
        if not finding.size:
            assert is_early(e) and not re.search(r"\d%", sentence), sentence
            continue
        assert finding.size in plain((*finding.sentence, " ", *finding.evidence))
        assert finding.difference in plain(finding.evidence)
        if not finding.levels:
            shares = re.compile(r"[\d.]+%")
            assert set(shares.findall(sentence)) <= set(shares.findall(finding.size))
            continue
        level, other = finding.levels
        assert level.text in sentence and other.text in sentence
        assert numbers_meet(level.text, other.text, finding.size), (sentence, finding.size)
        # From one estimate.
        values = level.value, other.value
        made = {"times": values[0] / (values[1] or 1), "points": values[0] - values[1]}
        relative = made["times"] - 1 if "%" in finding.size else made["points"]
        expected = next((v for word, v in made.items() if word in finding.size), relative)
        assert expected == pytest.approx(e.value, rel=1e-6, abs=1e-9), sentence
        # Shares are printed in percent, counts per 100 items; scores as they are.
        for one in finding.levels:
            shown = float(re.sub(r"under |%| per.*|,", "", one.text).replace("\u2212", "-"))
            factor = 100 if re.search("%|per 100", one.text) else 1
            unit = 10.0 ** -len(re.sub(r"%| per.*", "", one.text).partition(".")[2])
            assert abs(shown - factor * one.value) <= unit * (1 if "under" in one.text else 0.501)


def test_summary_card_and_stored_verdict_hold_the_same_findings(report: Report) -> None:
    made = [verdict.to_dict() for verdict in report.verdicts]
    assert json.loads(json.dumps(list(report.result.verdicts), allow_nan=False)) == json.loads(
        json.dumps(made)
    )
    card = {entry.name: entry for entry in SystemCard.of([report.result]).entries}
    for verdict in report.verdicts:
        leading = [f.estimate for f in (*verdict.findings, *verdict.early)]
        for status in verdict.systems:
            if status.lead is not None:
                assert status.lead.estimate in leading or status.reference
                assert status.lead.estimate.system == status.system
        entry = card[verdict.name]
        assert entry.answer == verdict.answer and entry.headline == verdict.headline
        assert entry.finding is None or entry.finding.estimate in leading


COUNTED = re.compile(
    r"(\d[\d,]*)(?: of (\d[\d,]*))? (?:more )?comparisons?\b|; (\d+) (?:of those|has|have) "
)


def test_every_count_is_of_the_family(report: Report) -> None:
    correction = report.result.plan.statistics.correction
    counts: set[int] = set()
    for verdict in report.verdicts:
        family, told = verdict.family, verdict.to_dict()["comparisons"]
        assert told["harmful"] <= told["tested"] <= len(family.estimates)
        members = {id(e) for e in family.estimates}
        assert all(id(f.estimate) in members for f in phrases(verdict))
        used = {e.correction for e in family.estimates if e.correction}
        if verdict.name != "general" and correction != "none":
            assert len(used) <= 1, used
        counts |= {told["tested"], told["harmful"], told["not_tested"], len(family.estimates)}
        counts |= {family.number("too small")}
        keys = [(e.key, role_of(e)) for e in family.estimates]
        counts |= {keys.count(key) for key in keys}
        # What is counted as harm is listed, or said to be reversible; baselines are in tables.
        listed = [*verdict.findings, *verdict.early]
        listed += [one for finding in listed for one in finding.related]
        if not any(s.reference for s in verdict.systems):
            assert len(listed) + family.reversible == family.harmful
        told_so = f"could reverse {family.reversible} of these" in family.sentence
        assert told_so == bool(family.reversible)
        apart = [e for e in family.estimates if e.p_value is None]
        counts |= {sum(bool(e.details.get("few_events")) for e in apart)}
        counts |= {sum(status_of(e) != "not tested" for e in apart)}
    card = SystemCard.of([report.result])
    page = re.sub(r"<(script|style|svg).*?</\1>|<[^>]*>", " ", report.html() + card.html(),
                  flags=re.DOTALL)  # fmt: skip
    everywhere = [report.markdown(), *report.lines(most=24), card.markdown(), page]
    everywhere.append(json.dumps([verdict.to_dict() for verdict in report.verdicts]))
    for text in everywhere:
        numbers = COUNTED.findall(text)
        assert {int(n.replace(",", "")) for each in numbers for n in each if n} <= counts
        # What a correction is over is the family, which is counted once.
        assert not re.search(r"(Hochberg|Holm|hochberg|holm) over \d", text)
    # The table of detectable effects counts those with an interval.
    (method,) = (s for s in report.sections if s.title == "Method")
    tables = [b for b in method.blocks if isinstance(b, Table) and b.name == "power"]
    bounded = [e for v in report.verdicts for e in v.family.estimates if smallest_effect(e)]
    assert sum(row[2].value or 0 for t in tables for row in t.rows) == len(bounded)


def test_baselines_never_lead_and_early_signs_are_no_headline(report: Report) -> None:
    card = {entry.name: entry for entry in SystemCard.of([report.result]).entries}
    for verdict in report.verdicts:
        references = {s.system for s in verdict.systems if s.reference}
        audited = {s.system for s in verdict.systems} - references
        assert audited or not verdict.systems
        order = [s.reference for s in verdict.systems]
        assert order == sorted(order)
        decided = {f.estimate.system for f in verdict.findings} & audited
        assert (verdict.answer in {"yes", "mixed"}) == bool(decided)
        led = [card[verdict.name].finding, *verdict.findings[:1]]
        assert all(f is None or f.estimate.system in audited for f in led)
        named = [s.name for s in verdict.systems if s.reference]
        assert not any(name in plain(verdict.headline) for name in named)
        assert all(is_early(f.estimate) for f in verdict.early)
        assert not any(is_early(f.estimate) for f in verdict.findings)
        assert not any(is_early(o.estimate) for f in verdict.findings for o in f.related)


def test_the_verdict_is_short_and_plain(report: Report) -> None:
    assert len(report.lines()) <= 24
    for verdict in report.verdicts:
        for word in ("places", "of every 100", "interval", "clear after correction"):
            assert word not in plain(verdict.headline)


def test_the_report_reads_well(report: Report, reads_well: Callable[[Result], None]) -> None:
    reads_well(report.result)


def test_the_worlds_hold_what_the_tests_are_about(preset_result: Callable[[str], Result]) -> None:
    """Effects, none, an early sign, a baseline with a difference: else nothing is tested."""
    made = {name: Report(preset_result(name)).verdicts[0] for name in (*PRESETS, *QUIET)}
    assert all(made[name].findings for name in PRESETS if name != "counterfactual")
    assert not any(made[name].answer == "yes" for name in QUIET)
    assert any(verdict.early for verdict in made.values())
    references = [s for verdict in made.values() for s in verdict.systems if s.reference]
    assert any(s.mark == "finding" for s in references)


# They name systems behind HTTP, whose findings have the phrases of systems in the plan.
ELSEWHERE = {"services", "sandbox"}


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_the_worlds_set_every_option(preset: str, preset_result: Callable[[str], Result]) -> None:
    worlds = [world for world in EVERY if world.startswith(preset)]
    used = set().union(*(preset_result(world).plan.options for world in worlds))
    assert set(registry.get("preset", preset).options.model_fields) - used <= ELSEWHERE
