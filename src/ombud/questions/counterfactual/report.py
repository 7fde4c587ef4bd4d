"""Counterfactual: what could people be shown if they, or other people's data, were different?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

from ombud.probes import Jaccard
from ombud.probes.summaries import STATUS
from ombud.probes.training import ListChange
from ombud.registry import question
from ombud.report import charts
from ombud.report.context import Context, Role, Select
from ombud.report.display import count, joined, shorten
from ombud.report.model import Block, Cell, Chart, Column, Heading, Prose, Table, Text
from ombud.report.numbers import COUNT, DIFFERENCE, POINTS, SHARE, Scale
from ombud.report.question import Phrase, Question
from ombud.report.show import (
    Custom,
    Frame,
    Grid,
    Listing,
    Matrix,
    Measure,
    Say,
    Stored,
    part,
    under,
)
from ombud.stats.estimate import Estimate

OVERLAP = ListChange(Jaccard()).name
"""The distance between lists that leads the stability search."""

_LISTS = "counterfactual-lists"
_MOST_PANELS = 3
_MOST_LED = 3
_MOST_ITEMS = 3
_SHOWN_ITEMS = 5
_ITEMS = Scale(places=1)
_DISTANCE = Scale(places=2)

# -- What was measured, by key.

ROOTS = (
    "consistency",
    "reach",
    "asked-reach",
    "retrained-reach",
    "over-categorisation",
    "escape",
    "asked-escape",
    "drift-in",
    "asked-drift-in",
    "stability",
    "attainable",
)
EVERYTHING = under(*(f"{root}/" for root in ROOTS))


def _key(name: str, *roles: Role) -> Select:
    return Select(name, roles, exact=True)


REACH = _key("reach/popularity-gap")
STUCK = _key("escape/beyond")
MOVED = _key("stability/above-noise")
AVAILABLE = _key("reach/availability/proved", "overall")
BY_GROUP = _key("reach/availability/proved", "group")
AGENCY = _key("reach/agency/proved", "group")
SETS = _key("reach/set/proved")
LABELS = _key("reach/label/availability/proved")
TOLD, SHUT = _key("over-categorisation/told"), _key("over-categorisation/shut")
REACHED = (
    Measure("Proved", AVAILABLE),
    Measure("Not ruled out", _key("reach/availability/possible", "overall")),
    Measure("Items per person", _key("reach/agency/proved", "overall"), _ITEMS),
    Measure("Less popular", REACH, POINTS),
    Measure("Through lists alone", _key("asked-reach/availability/proved", "overall")),
    Measure("Retrained", _key("reach/holds-retrained")),
)
UNCHANGED = (
    Measure("Same as recorded", _key("consistency/same")),
    Measure("Overlap with recorded lists", _key("consistency/overlap")),
    Measure("Same when queried twice", _key("consistency/asked-twice")),
)
CHANCE = Scale(places=5)


def _retrained(key: str) -> Select:
    return _key(f"retrained-reach/{key}", "overall")


DEFINITION = (
    Measure("Today", _retrained("today"), CHANCE),
    Measure("Best, retrained", _retrained("best"), CHANCE),
    Measure("Today, median", _retrained("today/median"), CHANCE),
    Measure("Best, median", _retrained("best/median"), CHANCE),
    Measure("Log-lift, median", _retrained("log-lift/median"), Scale(places=2)),
    Measure("0 today, reached", _retrained("new")),
    Measure("Rated, best", _key("retrained-reach/rated/best"), CHANCE),
    Measure("Could be shown", _retrained("could-be-shown")),
    Measure("Proved", _retrained("status/proved")),
    Measure("Searched", _retrained("status/searched")),
    Measure("Undecided", _retrained("status/undecided")),
    Measure("Above noise", _retrained("above-noise")),
)
RETRAINED = (
    Measure("Proved", _retrained("availability/proved")),
    Measure("Not ruled out", _retrained("availability/possible")),
    Measure("Items per person", _retrained("agency/proved"), _ITEMS),
    Measure("Less popular", _key("retrained-reach/popularity-gap"), POINTS),
)
LIFT = _key("retrained-reach/log-lift/median", "group")
BEST = _key("retrained-reach/best", "group")
DIVERSITY = (
    Measure("Observed", _key("attainable/observed")),
    Measure("Attainable", _key("attainable/attainable")),
    Measure("Attainable minus observed", _key("attainable/gap"), DIFFERENCE),
    Measure("With a broad history", _key("attainable/broad-history")),
    Measure("Narrow lists that can be left", _key("attainable/narrow-left"), SHARE),
)
STABILITY = under("stability/")
_NOISE = {"seed": "other seed", "pass": "more passes", "repeat": "repeat"}

_CONCERNS = {
    "reach": (
        "Reach: availability of items, agency of people",
        "autonomy; little reach is a sign that people are sorted into boxes",
        "whether anybody wants these items, or would make these edits",
    ),
    "escape": (
        "Escape: edits until a label leaves the list",
        "inappropriate content; autonomy",
        "harm done by an item; whether people know which edits to make",
    ),
    "drift-in": (
        "Drift-in: edits until a label enters the list",
        "inappropriate content",
        "how often people make these edits",
    ),
    "attainable": (
        "Attainable diversity of a list",
        "autonomy: a narrow list that stays narrow points to the system",
        "whether somebody wants a broader list; similarity of content",
    ),
    "stability": (
        "Stability: change of lists by other people\u2019s data",
        "autonomy; non-comparative fairness (arbitrariness)",
        "whether a changed list is worse; attacks by many people at once",
    ),
}
_SOURCES = {
    "own": "The person\u2019s own history",
    "others": "Other people\u2019s data",
    "algorithm": "The algorithm",
    "chance": "Chance",
}


def _parts(context: Context) -> frozenset[str]:
    """Return which parts a result holds: ``reach``, ``escape``, ``stability`` and so on."""
    roots = {key.partition("/")[0] for key, _ in context.by_key}
    return frozenset(r.removeprefix("asked-").removeprefix("retrained-") for r in roots & {*ROOTS})


def _budget(e: Estimate, word: str = "edit") -> str:
    return count(int(e.details.get("budget", 0)), word)


# -- What was changed.


def _scope(context: Context) -> Text:
    """Say what the two policies are, and which edits were permitted where not all were."""
    plan = context.result.plan
    options = next((a for a in plan.analyses if a.get("name") == "counterfactual"), {})
    limits = []
    if options.get("realistic"):
        positions = count(int(options["realistic"]), "position")
        limits.append(
            f"only to items that a person has rated, or is shown in the first {positions}"
        )
    if options.get("kinds"):
        limits.append(f"only to {joined([str(kind) for kind in options['kinds']])}")
    if options.get("editable"):
        limits.append(f"only to {count(len(options['editable']), 'item')} that the plan names")
    permitted = f" Edits of a person\u2019s own history: {joined(limits)}." if limits else ""
    return (
        "Two policies, never mixed: \u201cfrozen\u201d, the deployed model receives the new "
        "history; \u201cretrained\u201d, the model is trained again on the changed data. Where "
        "not everything could be proved, a share is a range: from what was observed to what was "
        "not ruled out."
        f"{permitted}",
    )


def _definition(found: Sequence[Estimate]) -> str:
    """Return the caption of Definition 1: what a probability is, and how it is known."""
    about = found[0].details
    how = {
        "softmax": "drawn first, in proportion to exp(beta score)",
        "list": f"among the first {about['k']}",
        "first": "the first item",
    }[str(about["drawing"])]
    said = [
        f"Probability that an item a user has not rated is {how}: today, and at best after "
        f"{_budget(found[0])} of that user\u2019s history and retraining; means over users and "
        "items unless named a median, "
        f"with {found[0].level:.0%} confidence intervals."
    ]
    systems = {e.system: e.details for e in found}
    betas = [f"{name} {d['beta']:g}" for name, d in systems.items() if d["beta"] is not None]
    if betas:
        said.append(f"Beta: {', '.join(betas)}.")
    seeded = [f"{name} over {d['seeds']} seeds" for name, d in systems.items() if d["seeds"] > 1]
    if seeded:
        said.append(f"Means of trainings: {', '.join(seeded)}.")
    trained = [
        f"{name} {d['witnesses_agree']} of {d['witnesses_trained']}"
        for name, d in systems.items() if d["witnesses_trained"]
    ]  # fmt: skip
    if trained:
        said.append(f"Edits found whose retraining agrees with the update: {', '.join(trained)}.")
    loose = [name for name, d in systems.items() if not d["stratified"]]
    if loose:
        said.append(f"Users are not sampled by activity: {', '.join(loose)}.")
    said.append(
        "Proved: no permitted edit gives more (to 1e-6). Searched: an edit that gives more than "
        "today was found, and others could give more still. Undecided: none was found and none is "
        "excluded. Could be shown: at best at least the probability of today\u2019s last item of "
        "the list. Rated: the user\u2019s own items, of which the rating is taken back. An item "
        "is never rated to reach it."
    )
    return " ".join(said)


def _lead(context: Context) -> Text:
    """State the probability today and at best after retraining, of each system."""
    outside = {
        word: {e.system: e for e in context.find(_retrained(f"outside/{word}"))}
        for word in ("today", "best")
    }
    shares = {
        word: {e.system: e.value or 0.0 for e in context.find(_retrained(f"status/{word}"))}
        for word in STATUS
    }
    found: list[Any] = []
    for system, best in outside["best"].items():
        now = outside["today"].get(system)
        if best.value is None or now is None or now.value is None:
            continue
        budget = int(best.details["budget"])
        edits = "one changed rating" if budget == 1 else f"up to {budget:,} changed ratings"
        ends = ""
        if best.details["values"] == "ends" and not shares["proved"].get(system):
            ends = " to the lowest or highest value"
        known = joined([
            f"{shares[word][system]:.0%} {word}"
            for word in STATUS if shares[word].get(system, 0) > 0
        ])  # fmt: skip
        name = context.names.system(system)
        where = "an item outside the list" if not found else "such an item"
        lead = f"After {edits}{ends} and retraining, " if not found else ""
        found += [
            lead, name, f" recommends {where} with probability {best.value:.2g} on "
            f"average at best; today {now.value:.2g} ({known}). ",
        ]  # fmt: skip
        if len(found) >= 3 * _MOST_LED:
            break
    return tuple(part for part in found if part != "")


def _dependencies(context: Context) -> Iterable[Block]:
    """Draw what a recommendation depends on, with what the audit changed marked."""
    parts = _parts(context)
    changed = {"others"} if "stability" in parts else set()
    changed |= {"own"} if parts - {"stability", "consistency"} else set()
    changed |= {"chance"} if context.find(_key("stability/noise/largest")) else set()
    drawn = []
    for place, (key, words) in enumerate(_SOURCES.items()):
        y = 2 + 38 * place
        kind, width = ("s0", 3) if key in changed else ("null", 1)
        look = f'class="{kind}" style="fill:none;stroke-dasharray:none;stroke-width:{width}"'
        text = escape(f"{words} (changed)" if key in changed else words)
        drawn.append(f'<path d="M236 {y + 15}L280 76" {look}/>')
        drawn.append(f'<rect x="2" y="{y}" width="234" height="30" rx="4" {look}/>')
        drawn.append(f'<text x="119" y="{y + 19}" text-anchor="middle">{text}</text>')
    look = 'class="null" style="fill:none;stroke-dasharray:none"'
    drawn.append(f'<rect x="280" y="61" width="98" height="30" rx="4" {look}/>')
    drawn.append('<text x="329" y="80" text-anchor="middle">What is shown</text>')
    some = ", ".join(_SOURCES[key].lower() for key in _SOURCES if key in changed) or "nothing"
    alt = (
        "Four boxes lead to what is shown: the person\u2019s own history, other people\u2019s "
        f"data, the algorithm and chance. Changed in this audit: {some}."
    )
    panel = (
        f'<svg viewBox="0 0 380 150" style="max-width:475px" role="img" '
        f'aria-label="{escape(alt)}">{"".join(drawn)}</svg>'
    )
    title = "What a recommendation depends on"
    caption = "This audit reports what is shown after the parts with a thick outline change."
    yield Chart("counterfactual-dependency", title, caption, alt, (panel,))


def _concerns(context: Context) -> Iterable[Block]:
    """Return which concern each measure addresses."""
    parts = _parts(context)
    rows = [tuple(map(Cell, words)) for name, words in _CONCERNS.items() if name in parts]
    none = ("Not measured", "privacy, opacity and wider social effects", "all of them")
    columns = (Column("Measure"), Column("About"), Column("Not shown"))
    caption = "Which of six concerns about recommenders each measure addresses."
    rows.append(tuple(map(Cell, none)))
    yield Table("counterfactual-concerns", caption, columns, tuple(rows))


# -- Escape and drift-in.


def _curves(direction: str, title: str) -> Callable[[Context], Iterable[Block]]:
    """Return what draws the share of people who are through by so many edits, by label."""

    def blocks(context: Context) -> Iterable[Block]:
        found = [e for e in context.find(_key(f"{direction}/share", "overall")) if e.details]
        found = [e for e in found if e.value is not None and "edits" in e.details]
        labels = list(dict.fromkeys(e.label for e in found))
        systems = list(dict.fromkeys(e.system for e in found))[: charts.MOST]
        if not found:
            return
        panels = []
        most = max(int(e.details["edits"]) for e in found)
        for label in labels[:_MOST_PANELS]:
            marks: list[charts.Line | charts.Dot] = []
            for place, system in enumerate(systems):
                name = str(context.names.system(system))
                aside = 0.05 * (place - (len(systems) - 1) / 2)
                own = [e for e in found if (e.system, e.label) == (system, label)]
                at = [(int(e.details["edits"]) + aside, e.value or 0.0, e) for e in own]
                marks.append(charts.Line(name, [(x, y) for x, y, _ in at]))
                marks += [
                    charts.Dot(
                        name, x, y, y_span=e.interval,
                        said=f"{name}, by {count(int(e.details['edits']), 'edit')}: "
                        f"{SHARE.number(y)}",
                    )
                    for x, y, e in at
                ]  # fmt: skip
            shown = str(context.names.label(label))
            panels.append(
                charts.plane(
                    shown, marks, x=("edits", 0.0, max(most, 3) + 0.5), y=("share", 0.0, 1.0)
                )
            )
        rest = len(labels) - len(panels)
        more = f" {count(rest, 'label')} {'is' if rest == 1 else 'are'} not drawn." if rest else ""
        caption = (
            f"Share of people at risk, model frozen; {found[0].level:.0%} confidence intervals. "
            f"People who need more edits than permitted stay in the denominator.{more}"
        )
        yield Chart(f"counterfactual-{direction}-curves", title, caption, title, tuple(panels))

    return blocks


def _shares(direction: str, title: str) -> Callable[[Context], Iterable[Block]]:
    """Return what tabulates the same: everyone, then groups."""

    def blocks(context: Context) -> Iterable[Block]:
        share = f"{direction}/share"
        found = context.find(_key(share))
        edits = sorted({int(e.details["edits"]) for e in found if "edits" in e.details}) or [1]

        def by_edits(n: int) -> Callable[[Estimate], bool]:
            # Without anybody at risk there is one estimate, and no number of edits.
            return lambda e: e.details.get("edits", edits[0]) == n

        def columns(role: Role) -> tuple[Measure, ...]:
            made = [
                Measure(f"By {count(n, 'edit')}", _key(share, role), keep=by_edits(n))
                for n in edits
            ]
            return (*made, Measure("Edits for half", _key(f"{direction}/median", role), COUNT))

        further = (
            Measure("Rest kept", _key(f"{direction}/kept")),
            Measure("Random edits", _key(f"{direction}/random")),
            Measure("Retrained", _key(f"{direction}/holds-retrained")),
            Measure("Through lists alone", _key(f"asked-{direction}/share")),
        )
        yield from Grid(
            (*columns("overall"), *further),
            f"{title}, of those at risk, by number of edits (model frozen). Rest kept: unlabeled "
            "items that stay in the list. Random edits: how often as many random edits do the "
            "same. Retrained: share of the edits found that work after retraining.",
            SHARE,
            rows=("system", "label"),
            name=f"counterfactual-{direction}",
            folded=direction != "escape",
        ).blocks(context)
        yield from Grid(
            columns("group"),
            f"{title}, by group of people.",
            SHARE,
            rows=("system", "label", "group"),
            name=f"counterfactual-{direction}-groups",
            folded=True,
        ).blocks(context)

    return blocks


# -- Stability.


def _stability(context: Context) -> Iterable[Block]:
    """Return how far each treatment of other people moves lists, beside retraining noise."""
    found = context.find(*STABILITY(context))
    for kind in dict.fromkeys(str(e.details["treatment"]) for e in found):
        yield from _treatment(context, kind, [e for e in found if e.details["treatment"] == kind])


def _treatment(context: Context, kind: str, found: Sequence[Estimate]) -> Iterable[Block]:
    name = f"counterfactual-stability-{kind}"

    def led(noise: str = "") -> Callable[[Estimate], bool]:
        wanted = {"treatment": kind, "distance": OVERLAP, "noise": noise}
        return lambda e: all(e.details.get(k, "") == v for k, v in wanted.items())

    grid = [
        Measure("Most found", _key("stability/largest"), keep=led()),
        Measure("Random, mean", _key("stability/typical/mean"), keep=led()),
    ]
    for noise, words in _NOISE.items():
        floor = Measure(f"Noise: {words}", _key("stability/noise/largest"), keep=led(noise))
        grid += [floor, Measure(f"Above: {words}", MOVED, keep=led(noise))]
    alone = Measure("First item changed", _key("stability/unfairness"), SHARE,
                    lambda e: e.details["treatment"] == kind)  # fmt: skip
    grid.append(alone)
    yield from _lanes(context, [e for e in found if e.details["distance"] == OVERLAP], kind, name)
    yield from Grid(
        tuple(grid),
        f"Change of lists ({OVERLAP}) with {_budget(found[0], 'other user')} {kind}, model "
        "retrained. Noise: the largest change in as many trainings on unchanged data. Above: the "
        "most found beyond it. First item changed: share of users, by one removal.",
        _DISTANCE,
        name=name,
    ).blocks(context)
    shown = {id(e) for e in found for m in grid if m.select.metric == e.key and m.keep(e)}
    yield from Listing(
        STABILITY,
        f"Further measures of stability, with other users {kind}.",
        _DISTANCE,
        ("metric", "system", "group", "value", "p", "n"),
        keep=lambda e: e.details["treatment"] == kind and id(e) not in shown,
        name=f"{name}-further",
        folded=True,
    ).blocks(context)


def _lanes(context: Context, found: Sequence[Estimate], kind: str, name: str) -> Iterable[Block]:
    """Draw how far other people's data move lists, beside what retraining alone does."""
    words = {
        "stability/largest": "the most found",
        "stability/typical/mean": "random users",
        "stability/noise/largest": "noise",
    }
    rows: dict[str, list[charts.Dot]] = {}
    for e in found:
        if e.key in words and e.value is not None:
            noise = _NOISE.get(str(e.details.get("noise")))
            series = words[e.key] if noise is None else f"noise: {noise}"
            system = str(context.names.system(e.system))
            said = f"{system}, {series}: {_DISTANCE.number(e.value)}"
            rows.setdefault(system, []).append(
                charts.Dot(series, e.value, 0.0, x_span=e.interval, said=said)
            )
    if not rows:
        return
    about = found[0]
    title = f"How much of the first {about.details['n']} changes with other people\u2019s data"
    axis = ("1 - Jaccard: 0 same list, 1 no item in common", 0.0, 1.0)
    caption = (
        f"{_budget(about, 'other user')} {kind}, model retrained; {about.level:.0%} confidence "
        "intervals over users. A system without noise marks trains to the same model every time."
    )
    alt = f"{title}, by system: the most found, random users, and retraining noise."
    yield Chart(f"{name}-chart", title, caption, alt, (charts.lanes(alt, rows, axis),))


# -- Pages for people, who are numbers of this audit.


def _people(context: Context) -> tuple[list[int], list[str]]:
    """Return the people and the systems that the report has pages for."""
    rows = context.rows(_LISTS)
    return sorted({r["person"] for r in rows}), list(dict.fromkeys(r["system"] for r in rows))


def _changes(context: Context, system: str, person: int) -> Iterable[tuple[str, str, str]]:
    """Return what would change one person's list, by which edits, and how that is known."""
    about: dict[str, Any] = {"system": system, "person": person}
    for row in context.rows("counterfactual-ways", **about):
        out, budget = row["direction"] == "escape", count(row["budget"], "edit")
        if row["cost"] == 0:
            continue  # the list is as wanted without any edit
        here = f" ({count(row['before'], 'item')} now)" if out else ""
        label = str(context.names.label(row["label"]))
        edits = {
            "beyond the budget": f"none found within {budget}",
            "none exists": f"proved: none within {budget}",
        }.get(row["outcome"], row["edits"])
        stay = row["kept"] is not None and out
        more = f"; {row['kept']:.0%} of the other items stay" if stay else ""
        what = f"{label} {'leaves' if out else 'enters'} the list{here}"
        yield shorten(what, 80), edits, f"{row['policy']}{more}"
    rows = context.rows("counterfactual-reach", **about)
    retrained = [r for r in rows if r["policy"] == "retrained"]
    likely = sorted((r for r in retrained if r["edits"]), key=lambda r: r["today"] - r["best"])
    for row in likely[:_MOST_ITEMS]:
        chances = f"{row['today']:.2g} today, {row['best']:.2g} at best"
        what = f"{shorten(row['item'], 50)} is recommended with probability {chances}"
        yield what, row["edits"], f"retrained, {row['status']}"
    if retrained:
        tally = [(sum(r["status"] == w for r in retrained), w) for w in STATUS]
        said = f"of {count(len(retrained), 'item')} tested, the best probability of "
        said += joined([f"{number:,} is {word}" for number, word in tally if number])
        yield said, f"any {count(retrained[0]['budget'], 'edit')}", "retrained"
    rows = [r for r in rows if r["policy"] == "frozen"]
    for row in [r for r in rows if r["reachable"] == "yes" and r["edits"]][:_MOST_ITEMS]:
        rank = row["rank_today"]
        now = "now without a score" if rank is None else f"now at position {rank:,}"
        yield f"{shorten(row['item'], 50)} enters the list ({now})", row["edits"], row["policy"]
    if rows:
        number = {w: sum(r["reachable"] == w for r in rows) for w in ("no", "undecided")}
        said = f"of {count(len(rows), 'item')} tested, {number['no']:,} cannot enter the list"
        said += f"; {number['undecided']:,} undecided" if number["undecided"] else ""
        budget = count(rows[0]["budget"], "edit")
        yield said, f"any {budget}", f"{rows[0]['policy']}, all tried or bounded"
    for row in context.rows("counterfactual-others", **about):
        what = f"another user {row['treatment']}: {row['distance']:.2f} of the list ({OVERLAP})"
        noise = "" if row["noise"] is None else f"; retraining alone up to {row['noise']:.2f}"
        known = f"{row['policy']}, {'exact' if row['exact'] else 'at least'}{noise}"
        yield what, "none of their own", known


def _page(context: Context, person: int, systems: Iterable[str]) -> Iterable[Block]:
    columns = (Column("Change"), Column("Edits"), Column("How it is known"))
    every = _people(context)[1]
    for system in systems:
        rows = tuple(tuple(map(Cell, row)) for row in _changes(context, system, person))
        if not rows:
            continue
        shown = [r["item"] for r in context.rows(_LISTS, system=system, person=person)]
        items = joined([shorten(item, 40) for item in shown[:_SHOWN_ITEMS]])
        more = len(shown) - _SHOWN_ITEMS
        rest = f", and {count(more, 'more item')}" if more > 0 else ""
        yield Prose(((context.names.system(system), f" shows now: {items}{rest}."),))
        name = f"counterfactual-person-{person}-{every.index(system) + 1}"
        who = str(context.names.system(system))
        yield Table(
            name, f"What would change the list of person {person}, {shorten(who, 60)}.",
            columns, rows,
        )  # fmt: skip


def _first_person(context: Context) -> Iterable[Block]:
    """Say what would change one person's list, by the first system."""
    people, systems = _people(context)
    blocks = list(_page(context, people[0], systems[:1])) if people else []
    if not blocks:
        return
    rest = [count(len(systems) - 1, "more system")] if len(systems) > 1 else []
    rest += [count(len(people) - 1, "more person")] if len(people) > 1 else []
    more = f" The appendix has {joined(rest)}." if rest else ""
    said = "People are identified by audit-specific numbers; this one was drawn at random."
    yield Prose(((said + more,),))
    yield from blocks


def _other_people(context: Context) -> Iterable[Block]:
    """Say what would change the lists of all people of the report, by every system."""
    people, systems = _people(context)
    for person in people:
        blocks = list(_page(context, person, systems[1:] if person == people[0] else systems))
        if blocks:
            yield Heading(f"Person {person}")
            yield from blocks


# -- Everything else.


_APART = {"escape", "drift-in", "stability", "asked-escape", "asked-drift-in"}


def _further(context: Context) -> Iterable[Block]:
    """Return a matrix of each measure that no other section shows."""
    shown = {
        (s.metric, role)
        for s in (AVAILABLE, BY_GROUP, AGENCY, SETS, LABELS, TOLD, SHUT, MOVED,
                  LIFT, BEST,
                  *(m.select for m in (*REACHED, *DEFINITION, *UNCHANGED, *RETRAINED, *DIVERSITY)))
        for role in s.roles or ("overall", "group", "systems")
    }  # fmt: skip
    for (key, role), found in context.by_key.items():
        root = key.partition("/")[0]
        if root not in {*ROOTS} - _APART or (key, role) in shown:
            continue
        title = context.titles[key]
        by = {"group": " By group.", "overall": ""}.get(role, " Difference.")
        scale = SHARE if "availability" in key or "/set/" in key else _ITEMS
        rows = tuple(r for r in ("label", "group") if any(getattr(e, r) for e in found))
        yield from Matrix(
            _key(key, role), f"{title[0].upper()}{title[1:]}.{by}", scale, rows or ("label",),
            folded=True, ordered=True,
        ).blocks(context)  # fmt: skip


_COST: Frame = {
    "system": ("System", None),
    "part": ("Part", None),
    "users": ("Users", COUNT),
    "questions": ("Lists requested", COUNT),
    "trainings": ("Trainings", COUNT),
}
_WAYS = {
    "escape": "People who got a label out of their list",
    "drift-in": "People into whose list a label came",
}

SECTIONS = (
    part(
        "What was changed, and what it addresses",
        Custom(_dependencies),
        Say((_scope,)),
        Custom(_concerns),
    ),
    part(
        "What people could be shown",
        Grid(
            DEFINITION,
            _definition,
            SHARE,
            name="counterfactual-definition",
        ),
        Matrix(
            LIFT,
            "Median log-lift (log of best probability over today\u2019s) after retraining, by "
            "popularity of the items (decile 10 is the most popular) and by group of people.",
            Scale(places=2), rows=("group",), ordered=True,
        ),
        Matrix(
            BEST,
            "Mean best probability after retraining, by popularity of the items and by group of "
            "people.", CHANCE, rows=("group",), ordered=True, folded=True,
        ),
        Grid(
            REACHED,
            lambda found: f"Share of items that {_budget(found[0])} of a person\u2019s own "
            f"history can bring into the first {found[0].details['k']}, model frozen, with "
            f"{found[0].level:.0%} confidence intervals. Less popular: that half of the items "
            "minus the other, in percentage points. Retrained: share of the edits found that work "
            "after retraining.",
            SHARE,
            name="counterfactual-reach-table",
        ),
        Grid(
            UNCHANGED, "Lists before any edit (model frozen).", SHARE,
            name="counterfactual-consistency", folded=True,
        ),
        Matrix(
            SETS, "Share of people who can bring any item of a set into their list (proved).",
            SHARE, rows=("label",),
        ),
        Grid(
            RETRAINED,
            lambda found: f"Share of items that {_budget(found[0])} can bring into the first "
            f"{found[0].details['k']}, model retrained. Proved: an edit that was evaluated exactly "
            "or trained for brings them in. Less popular: that half of the items minus the "
            "other, in percentage points.",
            SHARE,
            name="counterfactual-retrained",
        ),
        Matrix(
            BY_GROUP,
            "Share of items proved reachable, by popularity of the items (decile 10 is the most "
            "popular) and by group of people.",
            SHARE,
            rows=("group",),
            ordered=True,
        ),
        Matrix(
            LABELS, "Share of items proved reachable, by label of the item.", SHARE,
            rows=("label",), folded=True,
        ),
        Matrix(
            AGENCY, "Number of items that a person can reach, of each decile of popularity, and by "
            "group of people.", _ITEMS, rows=("group",), folded=True, ordered=True,
        ),
        Grid(
            DIVERSITY,
            "Diversity of lists now, after edits of a person\u2019s own history, and with the "
            "history of somebody of broad taste and the same activity (model frozen).",
            _DISTANCE,
            name="counterfactual-diversity",
            folded=True,
        ),
        Listing(
            TOLD,
            "People grouped by what they can reach: how well an attribute predicts the group "
            "(Cram\u00e9r\u2019s V, 0 not at all, 1 fully; tested by permutation).",
            _DISTANCE,
            ("system", "group", "value", "p", "n"),
            "Cram\u00e9r\u2019s V",
            folded=True,
        ),
        Matrix(
            SHUT, "Share of items that nobody in such a group can reach.", SHARE, rows=("group",),
            folded=True, ordered=True,
        ),
    ),
    part(
        "How hard a label is to get away from",
        Custom(_curves("escape", _WAYS["escape"])),
        *(Custom(_shares(name, title), under(f"{name}/")) for name, title in _WAYS.items()),
    ),
    part(
        "What other people\u2019s data change",
        Custom(_stability, STABILITY),
    ),
    part("What would change one person\u2019s list", Custom(_first_person)),
    part("What would change other lists", Custom(_other_people), appendix=True),
    part("Further measures of reach", Custom(_further, EVERYTHING), appendix=True),
    part(
        "Cost of the audit",
        Stored("counterfactual-cost", "What the audit requested of each system.", _COST),
        appendix=True,
    ),
)  # fmt: skip


# -- The question.


def _others(e: Estimate, context: Context) -> str:
    verb, _, how = str(e.details.get("treatment", "changed")).partition("-")
    doing = {"removed": "removing", "planted": "adding", "replaced": "replacing"}
    number = int(e.details.get("budget", 0))
    which = "the other user" if number == 1 else f"the {number:,} other users"
    return f"{doing.get(verb, 'changing')} {which} found to matter most{f' ({how})' if how else ''}"


def _search(context: Context) -> Text:
    return (
        "More edits, a better search, other labels or retraining could change it: what the search "
        "did not find may still be reachable.",
    )


@question("counterfactual", *ROOTS)
def counterfactual_question() -> Question:
    """Declare what people cannot reach, and whose data move lists."""
    return Question(
        name="counterfactual",
        asks="What could people be shown if they acted differently?",
        family={
            STUCK: Phrase(
                sentence="{system}: {note} of the users whose list contains {what} cannot get it "
                "out of their list by edits of their own history.",
                summary="{system} keep{s} {objects} in the lists of users who try to avoid it",
                object="{what}",
                yes="keep{s} labels in the lists of users who try to avoid them",
                levels=lambda e: (None, None),
                scale=SHARE,
                harm="more",
                null=0.0,
                possible="Up to {bound} of users could be unable to escape a label.",
                note=lambda e, _: f"within {_budget(e)}, {SHARE.prose(e.value or 0.0)}",
            ),
            MOVED: Phrase(
                sentence="{system}: {note} changes a list by {size} beyond retraining noise "
                "(Jaccard distance, from the same list to no item in common).",
                summary="{system} change{s} lists when other users\u2019 data change",
                object="",
                yes="change{s} lists when other users\u2019 data change",
                what="other users\u2019 data",
                levels=lambda e: (None, None),
                scale=SHARE,
                harm="more",
                keep=lambda e: e.details.get("distance") == OVERLAP,
                possible="Lists could still change by up to {bound} beyond retraining noise.",
                note=_others,
            ),
        },
        systems="recommender",
        yes="keep{s} labels in lists, or let{s} other users\u2019 data change them",
        possible="The difference could still be up to {bound}.",
        changes=(_search,),
        inspect="Inspect the treatment of {what} in {systems}, and run the audit again after "
        "changes.",
        lead=_lead,
        sections=SECTIONS,
        applies=lambda context: bool(_parts(context)),
    )
