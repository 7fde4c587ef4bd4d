"""From comparisons to a verdict.

======================================================================  =====================
What the comparisons of a system show                                   Its status
======================================================================  =====================
none could be made (too little data), or errors of a system that gave
the labels could reverse or hide one                                    cannot tell
significant harm, but a plausible rate among unlabeled items would
reverse the direction of all of it (tipping point), or errors of a
system that gave the labels could                                       cannot tell
significant harm on at least 10 events                                  yes
significant harm on fewer events only                                   no clear evidence,
                                                                        with an early sign
otherwise                                                               no clear evidence
======================================================================  =====================

======================================================================  =====================
Statuses of the systems                                                 Verdict
======================================================================  =====================
at least one yes (and, where both directions count, no opposite ones)   yes
yes in opposite directions, about the same content or group             mixed
none yes; a significant harm that could be reversed                     cannot tell
all cannot tell                                                         cannot tell
otherwise                                                               no clear evidence
======================================================================  =====================

Reference systems (random, popularity) are shown but decide nothing, unless nothing else was
audited. *Harm* is the direction that a question declares. A declared smallest effect that matters
demotes smaller differences, and is the only way to a green mark: every comparison of the system is
shown to be below it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ombud import registry
from ombud.audits.result import Result
from ombud.metrics.engine.comparisons import MATTERS
from ombud.metrics.engine.label_uncertainty import LABEL_DOUBT, rates_of
from ombud.metrics.engine.signs import nearest_end
from ombud.report.context import Context, Select, role_of
from ombud.report.display import count, joined, plural, shorten
from ombud.report.findings import Case, finding_of, stories
from ombud.report.general import general_question
from ombud.report.model import (
    VERDICT_SCHEMA,
    Answer,
    Family,
    Finding,
    Mark,
    Name,
    Status,
    Strong,
    SystemStatus,
    Text,
    Verdict,
    is_early,
    plain,
    status_of,
)
from ombud.report.numbers import apart, correction_name, percent
from ombud.report.question import Question, fill, questions
from ombud.stats.estimate import Estimate
from ombud.stats.power import smallest_effect

_WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_MOST_OBJECTS = 3
_MOST_SYSTEMS = 3
_MOST_NAMED = 12
HARM: dict[str, frozenset[Status]] = {
    "more": frozenset({"increase"}),
    "less": frozenset({"decrease"}),
    "both": frozenset({"increase", "decrease"}),
}
"""Which statuses are findings, by the direction that counts."""


def verdicts_of(result: Result) -> tuple[Verdict, ...]:
    """Return the verdict of each question that a result answers, that of its preset first."""
    context = Context.of(result)
    return tuple(verdict_of(question, context) for question in questions_of(context))


def questions_of(context: Context) -> Sequence[Question]:
    """Return the questions that have a verdict; without any, what comparisons say in general."""
    found = [q for q in questions(context) if q.members(context) or q.lead(context)]
    if found:
        return found
    general = general_question(context)
    return () if general is None else (general,)


@registry.verdict("ombud")
def stored_verdict(result: Result) -> dict[str, Any]:
    """Return what ``verdict.json`` holds: the verdict of each question as plain values.

    ``brief`` sums up the first in little space. It is the first key of the file, so that lists of
    results need not read the rest.
    """
    verdicts = verdicts_of(result)
    made = {"brief": _in_brief(verdicts[0]) if verdicts else {}, "schema_version": VERDICT_SCHEMA}
    return made | {"verdicts": [verdict.to_dict() for verdict in verdicts]}


def _in_brief(verdict: Verdict) -> dict[str, Any]:
    lead = next(iter((*verdict.findings, *verdict.early)), None)
    return {
        "answer": verdict.answer,
        "question": shorten(verdict.question, 300),
        "headline": shorten(plain(verdict.headline), 400),
        "finding": "" if lead is None else shorten(plain(lead.sentence), 400),
        "systems": [shorten(s.name, 40) for s in verdict.systems[:_MOST_NAMED]],
    }


@registry.verdict("families")
def declared_families(result: Result) -> dict[str, list[Estimate]]:
    """Return the comparisons of each question, which are corrected together."""
    context = Context.of(result)
    return {
        question.name: [e for some in question.members(context).values() for e in some]
        for question in questions(context)
    }


def verdict_of(question: Question, context: Context) -> Verdict:
    """Return the verdict of a question on a result."""
    groups = question.comparisons(context)
    phrases = {id(e): question.family[s] for s, some in groups.items() for e in some}
    every = tuple(e for some in groups.values() for e in some)
    harmful = [e for e in every if status_of(e) in HARM[phrases[id(e)].harm]]
    consists = _describe(groups, context.result.plan.statistics.correction)
    directions = frozenset(phrase.harm for phrase in phrases.values())
    reversible = tuple(sorted(filter(is_reversible, harmful), key=nearest_end, reverse=True))
    culprit = _culprit(reversible).capitalize()
    family = Family(every, len(harmful), directions, consists, len(reversible), culprit)
    words = question.words(context)
    case = Case(question, context, family, phrases, words, reversible=reversible)
    firm = [finding_of(e, case) for e in harmful if not is_reversible(e)]
    findings, early = (
        stories([f for f in firm if is_early(f.estimate) == few], case) for few in (False, True)
    )
    case = replace(case, findings=findings, early=early)
    named = [s for s in context.result.systems if case.of(s)]
    named = named or ([""] if any(not e.system for e in every) else [])
    references = references_of(named, context)
    statuses = [_status(s, case, s in references) for s in named]
    systems = tuple(sorted(statuses, key=lambda s: _order(s, findings)))
    # What a reference does is in its line and in the tables.
    audited_only = (f for f in findings if f.estimate.system not in references)
    findings = tuple(replace(f, anchor=f"finding-{i}") for i, f in enumerate(audited_only, 1))
    case = replace(case, findings=findings)
    audited = [s for s in systems if not s.reference]
    answer, rule = _answer(audited, case)
    lead = question.lead(context)
    title, preset = context.result.plan.title, context.result.plan.preset
    further = bool(preset) and question.name.startswith(f"{preset}-")
    return Verdict(
        name=question.name,
        # The plan's title asks what its preset asks; a further question has its own words.
        question=question.asks if further or title in {"", "Audit"} else title,
        answer=answer,
        rule=rule,
        # Levels alone, with nothing to compare, are stated and not judged.
        headline=(*lead, *(_headline(answer, rule, audited, case) if every or not lead else ())),
        systems=systems,
        findings=findings,
        early=early,
        family=family,
        sure=_sure(answer, case),
        changes=_changes(case),
        following=_following(answer, audited, case),
        effects=_effects(case),
        in_short=tuple(t for say in question.in_short if (t := say(context)) is not None),
    )


def references_of(systems: Sequence[str], context: Context) -> frozenset[str]:
    """Return the baselines among some systems; none where nothing else was audited."""
    found = frozenset(filter(context.is_reference, systems))
    return frozenset() if len(found) == len(systems) else found


def _order(status: SystemStatus, findings: Sequence[Finding]) -> tuple[bool, int, int]:
    """Return where a system is in the summary: findings by size first, references last."""
    marks = ("finding", "early sign", "unknown", "none", "below limit")
    place = next((i for i, f in enumerate(findings) if f.estimate.system == status.system), 0)
    return status.reference, marks.index(status.mark), place


def is_reversible(e: Estimate) -> bool:
    """Return whether plausible labels, or errors of a system's labels, would reverse it."""
    if e.details.get(LABEL_DOUBT):
        return True
    return e.tipping is not None and e.tipping.reverses and e.tipping.decides


def _culprit(some: Sequence[Estimate]) -> str:
    """Return what could reverse some comparisons."""
    doubted = [bool(e.details.get(LABEL_DOUBT)) for e in some]
    if not any(doubted):
        return "unlabeled items"
    return "errors of the labels" if all(doubted) else "unlabeled items or errors of the labels"


def _status(system: str, case: Case, reference: bool) -> SystemStatus:
    """Return the answer for a system; see the table at the top of this file."""
    here = case.of(system)
    name = str(case.context.names.system(system)) if system else "All systems"

    def shown(answer: Answer, mark: Mark, *text: Any, some: Sequence[Finding] = ()) -> SystemStatus:
        lead, more = (some[0], len(some) - 1) if some else (None, 0)
        return SystemStatus(system, name, answer, mark, text, lead, more, reference)

    tested = [e for e in here if status_of(e) != "not tested"]
    own, hints = (
        [f for f in some if f.estimate.system == system] for some in (case.findings, case.early)
    )
    if own:
        return shown("yes", "finding", *own[0].unnamed, some=own)
    # A measure that no label allows is not answered by another one that needs no labels.
    unlabeled = [
        e for e in here if all(o.reason_code == "no-labels" for o in here if o.key == e.key)
    ]
    if unlabeled or not tested:
        unsure = "no comparison has a confidence interval"
        why = next((e.reason for e in unlabeled or here if e.reason), unsure)
        return shown("cannot tell", "unknown", f"{why[0].upper()}{why[1:]}.")
    if any(e.system == system for e in case.reversible):
        lost = [e for e in case.reversible if e.system == system]
        why = f"Cannot tell: {_culprit(lost)} could reverse the direction."
        return shown("cannot tell", "unknown", why)
    if any(e.details.get(LABEL_DOUBT) for e in tested):
        why = "Cannot tell: errors of the labels could reverse or hide a difference."
        return shown("cannot tell", "unknown", why)
    no: Answer = "no clear evidence"
    if hints:
        return shown(no, "early sign", *hints[0].unnamed, some=hints)
    if (limit := _limit(tested, case)) is not None:
        small = f"Below the smallest effect that matters, which the plan declares: {limit}."
        return shown(no, "below limit", small)
    still = _possible(tested, case)
    where = "" if len(tested) == len(here) else " in what could be compared"
    return shown(no, "none", "No clear difference." if still else f"No sign of it{where}.", *still)


def _limit(tested: Sequence[Estimate], case: Case) -> str | None:
    """Return the declared smallest effect, where every comparison is shown to be below it."""
    for e in tested:
        size, null = e.details.get(MATTERS), e.null or 0.0
        if size is None or e.interval is None:
            return None
        low, high = e.interval
        top, bottom = (1 + size, 1 / (1 + size)) if null == 1 else (null + size, null - size)
        harm = case.phrase(e).harm
        if (harm != "less" and high > top) or (harm != "more" and low < bottom):
            return None
    first = max(tested, key=lambda e: e.details[MATTERS])
    scale, size = case.phrase(first).scale, first.details[MATTERS]
    return scale.prose(1 + size if first.null == 1 else size).removeprefix("+")


def _possible(tested: Sequence[Estimate], case: Case) -> Text:
    """Return the largest harm consistent with the data, of each measure: for all, for a group."""
    measures: dict[str, list[Estimate]] = {}
    for e in tested:
        measures.setdefault(case.phrase(e).possible or case.question.possible, []).append(e)
    everyone, said = str(case.context.names.group("")), []
    for template, some in measures.items():
        whole = [e for e in some if role_of(e) == "overall"]
        groups = [e for e in some if role_of(e) != "overall"]
        bounds = [(_bound(whole, case), everyone), (_bound(groups, case), "a group")]
        parts = [f"{b} for {who}" if whole and groups else b for b, who in bounds if b]
        if parts:
            said += [" ", *fill(template, bound=" and ".join(parts), **case.words)]
    return tuple(said)


def _bound(some: Sequence[Estimate], case: Case) -> str:
    ends = []
    for e in some:
        if e.interval is None:
            continue
        low, high = e.interval
        harm, null = case.phrase(e).harm, e.null or 0.0
        ends += [(high, e)] if harm != "less" and high > null else []
        ends += [(low, e)] if harm != "more" and low < null else []
    if not ends:
        return ""
    end, e = max(ends, key=lambda pair: abs(pair[0] - (pair[1].null or 0.0)))
    phrase = case.phrase(e)
    if not phrase.scale.signed:
        return phrase.scale.prose(end)
    which = {"more": " higher", "less": " lower", "both": ""}[phrase.harm]
    return phrase.scale.prose(abs(end)).removeprefix("+") + which


def _answer(systems: Sequence[SystemStatus], case: Case) -> tuple[Answer, str]:
    """Return the verdict and its rule; see the table at the top of this file."""
    yes = {s.system for s in systems if s.answer == "yes"}
    # Shares add up to one: more by men and less by women is one direction.
    own = (f for f in case.findings if f.estimate.system in yes)
    ways = {((f.estimate.key, f.estimate.label, f.estimate.group), f.status) for f in own}
    if any({(about, "increase"), (about, "decrease")} <= ways for about, _ in ways):
        return "mixed", "There are significant differences in both directions."
    if yes:
        return "yes", "At least one comparison is significant in a direction that counts."
    if any(e.system in {s.system for s in systems} for e in case.reversible):
        who = _culprit(case.reversible).capitalize()
        return "cannot tell", f"{who} could reverse every significant difference."
    if any(e.details.get(LABEL_DOUBT) for s in systems for e in case.of(s.system)) and all(
        s.answer == "cannot tell" for s in systems
    ):
        return "cannot tell", "Errors of the labels could reverse or hide a difference."
    if not case.family.estimates:
        return "cannot tell", "The plan declares nothing to compare."
    if not systems or all(s.answer == "cannot tell" for s in systems):
        return "cannot tell", "No comparison could be made."
    return "no clear evidence", "No comparison is significant in a direction that counts."


class _Deed(NamedTuple):
    """What systems do: in a clause, in a verb, and to whom or what."""

    summary: str
    than: str
    yes: str
    objects: tuple[str, ...]


def _headline(answer: Answer, rule: str, systems: Sequence[SystemStatus], case: Case) -> Text:
    """Answer in one or two sentences that are true whatever the title of the plan asks."""
    if answer == "cannot tell":
        return (Strong("Cannot tell."), f" {rule}")
    question, every = case.question, len(systems)
    kinds = plural(question.systems)
    only: Text = ()
    if every == 1:
        name = case.context.names.system(systems[0].system)
        only = (name if name.text else Strong(f"this {question.systems}"),)
    if answer == "no clear evidence":
        who = f"any of the {_word(every)} {kinds}" if every > 2 else f"either {question.systems}"
        # A measure that could not be tested is not named.
        tested = [e for e in case.family.estimates if status_of(e) != "not tested"]
        verbs = {case.phrase(e).yes or question.yes for e in tested}
        does = Strong(f" {_verb(verbs.pop() if len(verbs) == 1 else question.yes, 1, case)}.")
        signs = sum(s.mark == "early sign" for s in systems)
        hint = "is an early sign" if signs == 1 else f"are early signs in {_word(signs)} of them"
        no = (Strong("No clear evidence that "), *(only or (Strong(who),)), does)
        return (*no, f" There {hint}.") if signs else no
    harmful = [s for s in systems if s.answer == "yes"]
    # Systems that do the same are named together.
    alike: dict[_Deed, list[Name]] = {}
    for status in harmful:
        for deed in _deeds(status.system, case):
            alike.setdefault(deed, []).append(case.context.names.system(status.system))
    some = len(harmful)
    if some == every:
        who = f"{'Both' if every == 2 else f'All {_word(every)}'} {kinds}"
    else:
        who = f"{_word(some).capitalize()} of the {_word(every)} {kinds}"
    deeds = list(alike.items())
    if len(deeds) == 1:
        names = () if some == every else (", ", *_listed(deeds[0][1]), ",")
        said = _clause(only or (Strong(who), *names), some, deeds[0][0], case)
        return (*said, f"{deeds[0][0].than}.")
    yes = {deed.yes for deed in alike}
    common = yes.pop() if len(yes) == 1 else question.yes
    parts: list[Any] = [*(only or (Strong(who),)), Strong(f" {_verb(common, some, case)}.")]
    if len(deeds) > _MOST_SYSTEMS or sum(len(d.objects) for d in alike) > _MOST_NAMED:
        (deed, named) = deeds[0]
        parts.append(" Most of all,")
        deeds = [(deed._replace(objects=deed.objects[:1]), named)]
    for deed, named in deeds:
        # A lead that fits every deed says nothing of what each is compared with.
        than = "" if common == deed.yes else deed.than
        parts += [" ", *_clause(_listed(named), len(named), deed, case), f"{than}."]
    return tuple(parts)


def _word(number: int) -> str:
    return _WORDS[number] if number < len(_WORDS) else f"{number:,}"


def _listed(names: Sequence[Name]) -> Text:
    """Return names as a list in words."""
    parts: list[Any] = []
    for place, name in enumerate(names):
        parts += [" and " if place == len(names) - 1 else ", "] if place else []
        parts.append(name)
    return tuple(parts)


def _deeds(system: str, case: Case) -> list[_Deed]:
    """Return what a system does, one deed for each summary that its findings have."""
    objects: dict[tuple[str, str, str], dict[str, None]] = {}
    for finding in case.findings:
        if finding.estimate.system == system:
            phrase = case.phrase(finding.estimate)
            does = (phrase.summary, phrase.than, phrase.yes or case.question.yes)
            about = objects.setdefault(does, {})
            about[plain(finding.object)] = None
    return [_Deed(*does, tuple(about)) for does, about in objects.items()]


def clause(systems: Sequence[Name], summary: str, objects: Sequence[str], case: Case) -> Text:
    """Return a clause about systems that do the same."""
    return _clause(_listed(systems), len(systems), _Deed(summary, "", "", tuple(objects)), case)


def _clause(subject: Text, number: int, deed: _Deed, case: Case) -> Text:
    objects = list(deed.objects)
    if len(objects) > _MOST_OBJECTS:
        objects[_MOST_OBJECTS - 1 :] = [f"{len(objects) - _MOST_OBJECTS + 1} others"]
    return fill(deed.summary, system=subject, objects=joined(objects), **case.forms(number))


def _verb(yes: str, number: int, case: Case) -> str:
    return plain(fill(yes, **case.forms(number)))


def _sure(answer: Answer, case: Case) -> Text:
    """Say how sure the answer is, in words."""
    tested = count(case.family.tested, "comparison")
    if answer in {"yes", "mixed"}:
        every = "both comparisons made" if case.family.tested == 2 else f"all {tested} made"
        found = [f.estimate for f in case.findings]
        ps = [e.p_value if e.p_adjusted is None else e.p_adjusted for e in found]
        very = "Very unlikely" if all(p is not None and p < 0.001 for p in ps) else "Unlikely"
        corrected = any(e.correction for e in found)
        allowing = f", even allowing for {every}" if corrected and case.family.tested > 1 else ""
        return (f"{very} to be chance{allowing}. A difference is not a cause.",)
    if answer == "cannot tell":
        return (_undecided(case),)
    hint = " Early signs rest on fewer than 10 events." if case.early else ""
    return (
        f"In {tested}, no difference is clearly beyond chance. That is not proof of equality."
        f"{hint}",
    )


def _undecided(case: Case) -> str:
    if case.reversible:
        significant = f"{len(case.reversible)} of {count(case.family.tested, 'comparison')}"
        verb = "is" if len(case.reversible) == 1 else "are"
        return (
            f"Among labeled items, {significant} {verb} significant, but "
            f"{_culprit(case.reversible)} could reverse the direction."
        )
    text = case.family.sentence if case.family.estimates else "The audit measured levels only."
    levels = (e for e in case.context.result.estimates if e.kind == "level" and not e.group)
    reason = next((f" The {e.metric} is undefined: {e.reason}." for e in levels if e.reason), "")
    return text if case.family.tested else f"{text}{reason}"


def _changes(case: Case) -> tuple[Text, ...]:
    """Return what could change the answer: tipping points, then what the question says."""
    made: list[Text] = []
    leading: Sequence[Estimate] = [f.estimate for f in case.findings] or case.reversible
    leading = leading or [e for e in case.family.estimates if e.details.get(LABEL_DOUBT)]
    if first := next((e for e in leading if e.tipping is not None), None):
        made.append(_tipping(first, case))
    if first := next((e for e in leading if "label_errors" in e.details), None):
        made.append(_label_errors(first, case))
    if first := next((e for e in leading if e.details.get(LABEL_DOUBT)), None):
        made.append((f"A system gave the labels: {first.details[LABEL_DOUBT]}.",))
    reasons = dict.fromkeys(e.details["no_tipping"] for e in leading if "no_tipping" in e.details)
    for reason in reasons:
        contrasts = (
            "How far unlabeled items could change a comparison was not computed, because "
            f"{reason}; such a finding is not withdrawn because of them."
        )
        made.append((contrasts,))
    made += [text for make in case.question.changes if (text := make(case.context)) is not None]
    return tuple(made)


def _tipping(e: Estimate, case: Case) -> Text:
    """Say what unlabeled items would have to be like to reverse a finding."""
    point = e.tipping
    assert point is not None  # the caller has looked
    parts: list[str] = []
    for rate, where in (
        (point.recommended, "unlabeled recommended items"),
        (point.history, "unlabeled items in histories"),
    ):
        if rate is not None:
            than = "less" if rate < point.assumed else "more"
            as_labeled = "" if parts else " as among labeled ones"
            parts.append(f"{than} than {rate:.2g} times as frequent among {where}{as_labeled}")
    names = case.context.names
    about: list[Any] = [names.system(e.system)]
    about += [" and ", names.label(e.label)] if e.label else []
    about += [" (", names.group(e.group), ")"] if e.group else []
    counts = "Only labeled items count" if point.decides else "Unlabeled items count as no. Labeled"
    counted = (
        f" {counts}: {percent(point.labeled_recommended)} of recommended items and "
        f"{percent(point.labeled_history)} of items in histories."
    )
    if not parts:
        return ("Unlabeled items cannot reverse the result for ", *about, ".", counted)
    if_so = f" would reverse if the label were {', or '.join(parts)}."
    return ("The result for ", *about, if_so, counted)


def _label_errors(e: Estimate, case: Case) -> Text:
    """Return how often the labels are wrong, by how often items are shown, and in the group."""
    cells = [(f"the {name} third", cell) for name, cell in e.details["label_errors"].items()]
    if here := e.details.get("label_errors_here"):
        cells.append((f"items shown to {case.context.names.members(e.group)}", here))
    parts = []
    for name, cell in cells:
        rates = []
        for word, share in zip(("found", "falsely found"), rates_of(cell), strict=True):
            if share[0] == share[0]:
                ends = f"{percent(share[1])} to {percent(share[2])}"
                rates.append(f"{word} {percent(share[0])} (95% CI {ends})")
        parts.append(
            f"{name}, {count(sum(cell), 'validation text')}: {' and '.join(rates) or 'none'}"
        )
    label = case.context.names.label(e.label)
    return (
        f"How often the system that gave the labels is right about {label}: {'; '.join(parts)}.",
    )


def _following(answer: Answer, systems: Sequence[SystemStatus], case: Case) -> Text:
    """Say what to do next, by rule: inspect, collect, or label."""
    declared = case.context.result.plan.statistics.matters
    limit = "" if declared is not None else " The plan does not say which difference would matter."
    if answer in {"yes", "mixed"}:
        names = [s.name for s in systems if s.answer == "yes"]
        what = list(dict.fromkeys(plain(f.what) for f in case.findings))
        shown = what if len(what) <= _MOST_OBJECTS else [*what[: _MOST_OBJECTS - 1], "others"]
        some = names if len(names) <= _MOST_SYSTEMS else [f"these {len(names)} systems"]
        inspect = case.question.inspect
        return (*fill(inspect, systems=joined(some), what=joined(shown), **case.words), limit)
    if answer == "cannot tell" and case.reversible:
        if all(e.details.get(LABEL_DOUBT) for e in case.reversible):
            return (
                "Have people label more items, at least 30 of each third by how often items are "
                "recommended, and give their texts as validation texts.",
            )
        known = min(e.tipping.labeled_recommended for e in case.reversible if e.tipping)
        return (
            f"Label more items: {percent(known)} of recommended items have a label now. Start "
            "with those recommended most.",
        )
    if answer == "cannot tell" and not case.family.estimates:
        return ("Name groups to compare (by) or declare a limit ([expect]), and run it again.",)
    if answer == "cannot tell":
        codes = {e.reason_code for e in case.family.estimates}
        lacking = "Collect more data"
        if "no-labels" in codes:
            lacking = "Add labels, or state what a missing one means ([data] unlabeled)"
        elif not any(code.startswith("too-few") for code in codes):
            lacking = "Change what the reason names"
        return (f"{lacking}, then run the audit again.",)
    return (_sample_needed(case),)


def _sample_needed(case: Case) -> str:
    """Say which effect would have been found, and what it takes to find the declared one."""
    tested = [e for e in case.family.estimates if e.interval is not None]
    sizes = [(size, e) for e in tested if (size := smallest_effect(e)) is not None]
    if not sizes:
        return "Collect more data, then run the audit again."
    size, e = sorted(sizes, key=lambda pair: pair[0])[len(sizes) // 2]
    scale = case.phrase(e).scale
    wanted = e.details.get(MATTERS)
    if wanted is None:
        shown = f"a difference of {scale.prose(size).removeprefix('+')}"
        shown = f"a ratio of {scale.number(size)}" if scale.log else shown
        return (
            f"Half of the comparisons would have shown {shown} in 80% of audits. Declare the "
            "smallest effect that matters ([statistics] matters) to learn how much data it takes."
        )
    target, now = (float(wanted), size - 1 if e.null == 1 else size)
    if now <= target:
        return "The data suffice for the smallest effect that matters; re-run when systems change."
    needed = int(e.n * (now / target) ** 2)
    shown = scale.prose(1 + target if e.null == 1 else target).removeprefix("+")
    return f"To detect {shown} in most comparisons, collect about {count(needed, e.unit)}."


def _effects(case: Case) -> tuple[Text, ...]:
    """Say what each reranker changed, and what it cost in recall, where both were audited."""
    plan, context = case.context.result.plan.systems, case.context
    made: list[Text] = []
    for name, spec in plan.items():
        inner = spec.get("inner")
        base = next((n for n, other in plan.items() if n != name and other == inner), None)
        if inner is None or base is None:
            continue
        pairs = {(e.key, e.label, e.group): e for e in case.of(base)}
        both = [(pairs[k], e) for e in case.of(name) if (k := (e.key, e.label, e.group)) in pairs]
        changed = [(a, b) for a, b in both if a.value is not None and b.value is not None]
        changed = [(a, b) for a, b in changed if a.label] or changed
        if not changed:
            continue
        before, after = max(changed, key=lambda pair: _level(pair[0], case) - _level(pair[1], case))
        shown = tuple(_level_text(e, case) for e in (before, after))
        if shown[0] == shown[1]:
            phrase = case.phrase(before)
            scale = phrase.scale if phrase.levels(before)[0] is None else phrase.levels_in
            shown = apart(_level(before, case), _level(after, case), scale)
        text = f": {' to '.join(shown)}{_recall(context, base, name)}."
        what = context.names.label(before.label) if before.label else context.names.group("")
        made.append(("With ", context.names.system(name), ", ", what, text))
    return tuple(made)


def _level(e: Estimate, case: Case) -> float:
    level, _ = case.phrase(e).levels(e)
    return (e.value or 0.0) if level is None else level


def _level_text(e: Estimate, case: Case) -> str:
    """Return a level as a finding prints it, or the value where it is compared with no other."""
    shown = finding_of(e, case)
    return shown.levels[0].text if shown.levels else case.phrase(e).scale.prose(e.value or 0.0)


def _recall(context: Context, base: str, name: str) -> str:
    found = {
        e.system: e for e in context.find(Select("recall", ("overall",))) if e.value is not None
    }
    if base not in found or name not in found:
        return ""
    return f"; recall {found[base].value:.3f} to {found[name].value:.3f}"


def _describe(groups: Mapping[Select, Sequence[Estimate]], correction: str) -> str:
    """Say what the family consists of: "36 comparisons (12 labels × 3 systems) and ..."."""
    parts, every = [], [e for some in groups.values() for e in some]
    for found in groups.values():
        sizes = [
            count(len(values), word)
            for word, values in (
                ("label", {e.label for e in found} - {""}),
                ("group", {e.group for e in found} - {""}),
                ("system", {e.system for e in found} - {""}),
            )
            if values
        ]
        about = f" ({' × '.join(sizes)})" if sizes else ""
        parts.append(f"{count(len(found), 'comparison')}{about}")
    if corrected := [e for e in every if e.correction]:
        how = " together" if all(e.family for e in corrected) else ""
        parts[-1] += f", corrected{how} by {correction_name(correction)}"
    made = joined(parts)
    if few := sum(bool(e.details.get("few_events")) for e in every):
        made += f"; {few} of those without enough data count there as not significant"
    if alone := sum(status_of(e) != "not tested" and e.p_value is None for e in every):
        verb = "has" if alone == 1 else "have"
        made += f"; {alone} {verb} no p-value, so that the confidence interval decides"
    return made
