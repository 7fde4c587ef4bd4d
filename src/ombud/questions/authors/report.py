"""Authors: whose work do recommendations show, compared with what users read?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ombud.questions.authors.reranking import LOSS, TUNED
from ombud.questions.authors.shares import ALL_CREATORS, ORDER, PIPELINE, STAGE
from ombud.registry import question
from ombud.report import charts
from ombud.report.context import Context, Select
from ombud.report.display import count, joined, shorten
from ombud.report.model import Block, Cell, Chart, Column, Prose, Strong, Table, Text, plain
from ombud.report.names import PEOPLE
from ombud.report.numbers import COUNT, POINTS, RATIO, RELATIVE, SCORE, SHARE, Scale, percent
from ombud.report.question import Phrase, Question
from ombud.report.show import (
    MARKS,
    Alert,
    BlockTable,
    Custom,
    Detail,
    Entry,
    Listing,
    Matrix,
    Notes,
    Say,
    Stored,
    estimate_table,
    part,
    stored_cell,
    value_cell,
)
from ombud.stats.estimate import Estimate

_LARGE = 0.1
_BOOKS = frozenset({"bookcrossing", "goodbooks-10k", "linked"})
_MOST = 5
_STAGES = {
    "catalogue": "catalog",
    "platform": "items on the platform",
    "interactions": "interactions",
    "profiles": "users\u2019 profiles",
}
_OUTCOMES = {
    "no_book": "no book record",
    "no_author": "no author named",
    "no_authority": "no authority record",
    "unknown": "no identity in record",
    "ambiguous": "sources disagree",
}
_REST = ("ambiguous", "unknown", "unlinked")

# -- What was measured, by name.

GAPS = Select("balance-gap", ("overall",), {"exposure": False})
GROUP_GAPS = Select("balance-gap", ("group",), {"exposure": False})
OTHER_GAPS = Select("balance-gap", ("contrast", "spread", "systems"), {"exposure": False})
SEEN_GAPS = Select("balance-gap", ("overall", "group"), {"exposure": True})
OTHER_SEEN_GAPS = Select("balance-gap", ("contrast", "spread", "systems"), {"exposure": True})
SHARES = Select("list-balance", ("overall", "group"), {"exposure": False})
OTHER_SHARES = Select("list-balance", ("contrast", "spread", "systems"), {"exposure": False})
SEEN_SHARES = Select("list-balance", ("overall", "group"), {"exposure": True})
OTHER_SEEN_SHARES = Select("list-balance", ("contrast", "spread", "systems"), {"exposure": True})
STEPS = Select(PIPELINE, exact=True)
EVERY_CREATOR = Select(ALL_CREATORS, exact=True)
KNOWN = Select("creator-catalogue/known-share", exact=True)
_ITEM = "creator-catalogue/interactions-per-item"
PER_ITEM, ITEM_RATIO, ITEM_DELTA = (
    Select(f"{_ITEM}{end}", exact=True) for end in ("", "-ratio", "-delta")
)
LOSSES = Select(LOSS, exact=True)
MRR = Select("creator-reranking/mrr", exact=True)
AT_TUNING = Select(TUNED, exact=True)
SLOPE = Select("propagation/slope", exact=True)
_FITTED = ("intercept", "balance-for-an-even-profile", "residual-sd", "mean-log-odds", "spread",
           "share-of-an-average-profile")  # fmt: skip
_FURTHER = ("propagation-placebo", "propagation-mix", "propagation-genre")
FITTED = tuple(Select(f"propagation/{name}", exact=True) for name in _FITTED)
FURTHER = tuple(Select(f"{fit}/{name}", exact=True) for fit in _FURTHER for name in _FITTED)
FURTHER_SLOPES = tuple(Select(f"{fit}/slope", exact=True) for fit in _FURTHER)


def attribute(context: Context) -> str:
    """Return the attribute that was studied, in a word."""
    known = next(iter(context.find(KNOWN)), None)
    if known is not None:
        return str(known.details["attribute"])
    return str(context.result.plan.options.get("attribute") or "identity")


def _inferred(context: Context) -> bool:
    said = context.result.plan.options.get("inferred") is True
    return said or context.result.card.facts.get("inferred_identities") == "yes"


def _sourced(context: Context, caption: str) -> str:
    """Return the caption of a chart, with how identities are known where they were inferred."""
    return f"{caption} Identities were inferred, not recorded." if _inferred(context) else caption


def _steps(context: Context, *stages: str) -> list[Estimate]:
    """Return the shares of some stages, or of all, from the catalog on."""
    found = [e for e in context.find(STEPS) if e.details.get(STAGE) in (stages or ORDER)]
    return sorted(found, key=lambda e: ORDER.index(str(e.details[STAGE])))


def _told(context: Context) -> list[str]:
    """Return the less frequent of two identities, or all of more than two."""
    if gaps := context.find(GAPS):
        return list(dict.fromkeys(e.label for e in gaps))
    found = sorted(_steps(context, "platform"), key=lambda e: (-(e.value or 0.0), e.label))
    names = [e.label for e in found]
    return names[-1:] if len(names) == 2 else names


def _name(context: Context, label: str) -> str:
    return shorten(str(context.names.label(label)), 40)


def _people(e: Estimate, context: Context) -> str:
    """Return the creators of an identity in a noun: "women", "Spanish authors"."""
    return _noun(e.label, context)


def _noun(label: str, context: Context) -> str:
    name = _name(context, label)
    if attribute(context).endswith(("gender", "sex")):
        name = PEOPLE.get(name.lower(), name)
    return name if name in PEOPLE.values() else f"{name} authors"


def _works(context: Context) -> str:
    """Return what items are called: "books"."""
    stated = str(context.result.plan.options.get("noun") or "")
    return shorten(stated, 40) or (
        "books" if context.result.plan.data.source in _BOOKS else "works"
    )


def _stage(e: Estimate, context: Context) -> str:
    stage, strategy = str(e.details.get(STAGE)), e.details.get("strategy")
    if stage == "baseline":
        return f"one list for everyone: {e.group}"
    system = shorten(str(context.names.system(e.system)), 40)
    return _STAGES.get(stage) or (f"{system}, {strategy}" if strategy else f"lists of {system}")


# -- Sentences.


def _unknown(context: Context) -> Text | None:
    """Say how many recommendations are by creators whose identity is not known."""
    lists = _steps(context, "lists")
    known = sum(int(e.details.get("known_places") or 0) for e in lists)
    whole = sum(int(e.details.get("places") or 0) for e in lists)
    if not whole or 1 - known / whole < _LARGE:
        return None
    share = percent(1 - known / whole)
    return (f"The {attribute(context)} of the author is unknown for {share} of recommendations.",)


def _genre(context: Context) -> Text:
    how = " Identities were inferred, not recorded." if _inferred(context) else ""
    text = "Authors whose identity is unknown could change it, and genre may explain part of it."
    return (f"{text}{how}",)


def _how_much_known(context: Context) -> Text | None:
    known = {e.group: e.value or 0.0 for e in context.find(KNOWN)}
    if not {"items", "interactions"} <= known.keys():
        return None
    return (
        f"The {attribute(context)} is known for ",
        Strong(f"{percent(known['items'])} of items"),
        f" and {percent(known['interactions'])} of interactions.",
    )


def _bounds(context: Context) -> Text | None:
    """Say between what the share on the platform lies, whatever is unknown."""
    parts: list[str] = []
    for e in _steps(context, "platform"):
        low, high = e.details.get("lowest"), e.details.get("highest")
        if e.label in _told(context)[:_MOST] and low is not None and high is not None:
            parts.append(f"{_people(e, context)} {percent(low)} to {percent(high)}")
    if not parts:
        return None
    return (
        f"Whatever the unknown {attribute(context)} of other items is, the share on the platform "
        f"lies between these bounds: {'; '.join(parts)}.",
    )


def _unmet(context: Context) -> Text | None:
    """Say which identities are cataloged and have no item on the platform."""
    met = {e.label for e in _steps(context, "platform")}
    unmet = [e for e in _steps(context, "catalogue") if e.label not in met]
    if not unmet:
        return None
    said = [f"{_people(e, context)} ({percent(e.value or 0.0)})" for e in unmet[:_MOST]]
    more = [count(len(unmet) - _MOST, "other identity")] if len(unmet) > _MOST else []
    return (f"In the catalog, but with no item on the platform: {joined([*said, *more])}.",)


def _flagged(context: Context) -> Sequence[Text]:
    """Warn of items that may hold several works."""
    rows = context.rows("creator-resolution")
    if not sum(row.get("flagged_items") or 0 for row in rows):
        return ()
    items, every, pairs, whole = (
        sum(row[name] or 0 for row in rows)
        for name in ("flagged_items", "items", "flagged_interactions", "interactions")
    )
    return (
        (
            f"{items:,} of {every:,} items ({percent(pairs / whole)} of interactions) combine "
            f"editions with several first authors. Their {attribute(context)} may belong to a "
            "different book.",
        ),
    )


def _limits(context: Context) -> Sequence[Text]:
    inferred = "Identities were inferred, for example from first names. Some are wrong."
    return (
        *(((inferred,),) if _inferred(context) else ()),
        ("These shares describe what is there. They do not say what should be, or why.",),
        ("Catalogers and list makers recorded the identities, not always the authors themselves. "
         "Popular items are covered better than others.",),
    )  # fmt: skip


def _slopes_said(context: Context) -> Iterable[Block]:
    """Say for each system how lists vary with profiles; those without a slope stand together."""
    lines: list[Text] = []
    without: dict[tuple[str, str], list[str]] = {}
    for e in context.find(SLOPE):
        who = context.names.system(e.system) if e.system else "All systems"
        people = _people(e, context)
        if e.value is None or e.interval is None:
            without.setdefault((people, e.reason), []).append(plain((who,)))
            continue
        misfit = (e.details.get("misfit") or {}).get("describes") is False
        but = " A straight line does not describe these lists." if misfit else ""
        said = f" (slope {SCORE.number(e.value)}, {SCORE.interval(e)}).{but}"
        varies = Strong(_varies(e.interval))
        lines.append((who, f": in the share of works by {people}, lists ", varies, said))
    alike: dict[str, dict[str, str]] = {}
    for (people, reason), systems in without.items():
        alike.setdefault(joined(systems), {})[people] = f"{reason[:1].upper()}{reason[1:]}"
    for named, some in alike.items():
        why = dict.fromkeys(some.values())
        said = why.popitem()[0] if len(why) == 1 else "The table below says why"
        lines.append((f"{named}: no slope for works by {joined(some)}. {said}.",))
    yield Prose(tuple(lines[: charts.MOST]), bullets=True)


def _varies(interval: tuple[float, float]) -> str:
    low, high = interval
    if low <= 0 <= high:
        return "do not clearly vary with profiles"
    if high < 0:
        return "move in the opposite direction to profiles"
    if low > 1:
        return "are more extreme than profiles"
    return "vary less than profiles" if high < 1 else "vary about as much as profiles"


def _refused(context: Context) -> Text | None:
    """Say which of the further fits gave no numbers."""
    rows = context.rows("creator-propagation-fits")
    rows = [row for row in rows if row["refused"] and row["within"]]
    names = list(dict.fromkeys(shorten(row["within"], 60) for row in rows))
    return (f"These fits have no estimates: {joined(names)}.",) if names else None


def _model(context: Context) -> Text | None:
    if not context.find(SLOPE):
        return None
    return (
        "With slope 1 and intercept 0, lists vary as much as profiles. Below 1 they vary less; "
        "above 1 they are more extreme. The model does not say why.",
    )


# The first screen: share, slope and cost, in one sentence each.


def _ends(context: Context, found: Sequence[Estimate], scale: Scale) -> str:
    """Return a value with its system, or the lowest and the highest of several systems."""
    ordered = sorted(found, key=lambda e: e.value or 0.0)
    ends = {e.system: scale.number(e.value or 0.0) for e in (ordered[0], ordered[-1])}
    return " to ".join(f"{shown} ({_of(context, system)})" for system, shown in ends.items())


def _share_in_short(context: Context) -> Text | None:
    first = _told(context)[:1]
    lists = [e for e in context.find(SHARES) if [e.label] == first and not e.group and e.value]
    own = [e for e in _steps(context, "profiles") if [e.label] == first and e.value is not None]
    lists = [e for e in lists if not context.is_reference(e.system)] or lists
    if not lists or not own:
        return None
    people = f"{_works(context)} by {_people(own[0], context)}"
    return (
        f"Of recommendations with a known author, {_ends(context, lists, PERCENT)} are {people}; "
        f"in users\u2019 profiles, {percent(own[0].value or 0.0)} are.",
    )


def _slope_in_short(context: Context) -> Text | None:
    found = [
        e for e in context.find(SLOPE) if e.value is not None and e.label in _told(context)[:1]
    ]
    if not found:
        return None
    people = f"{_works(context)} by {_people(found[0], context)}"
    return (
        f"As profiles vary in the share of {people}, lists follow with a slope of "
        f"{_ends(context, found, SCORE)}: 1 is as much as profiles, 0 not at all.",
    )


def _cost_in_short(context: Context) -> Text | None:
    found = [
        e.replace(value=-e.value, interval=e.interval and (-e.interval[1], -e.interval[0]))
        for e in context.find(LOSSES)
        if e.value is not None and e.details.get("strategy") == "GreedyEQ"
    ]
    if not found:
        return None
    change = _ends(context, found, replace(PERCENT, signed=True))
    clear = any(e.interval and not e.interval[0] <= 0 <= e.interval[1] for e in found)
    doubt = "" if clear else "; every confidence interval includes no change"
    return (f"Balancing each list (GreedyEQ) changes accuracy (MRR) by {change}{doubt}.",)


# -- Tables and charts of this study alone.


def _from_catalog(context: Context) -> Iterable[Block]:
    """Show the share of each identity that is told, from the catalog to reranked lists."""
    names = _told(context)[: charts.MOST]
    steps = [e for e in _steps(context) if e.label in names]
    if any(e.value is not None for e in steps):
        shown = [
            e.replace(group=_stage(e, context), system="", label=_people(e, context)) for e in steps
        ]
        caption = (
            f"Share of each identity among items of known {attribute(context)}, from the catalog "
            "to the lists, with confidence intervals."
        )
        yield estimate_table(
            shown, context, name="authors-pipeline", caption=_sourced(context, caption),
            rows=("group",), columns="label", scale=SHARE, ordered=True,
        )  # fmt: skip


def _rows(context: Context, name: str) -> list[dict[str, Any]]:
    """Return the rows of a stored table about the identity that is told first."""
    names = _told(context)
    return context.rows(name, identity=names[0]) if names else []


def _of(context: Context, system: str) -> str:
    return str(context.names.system(system)) if system else "users\u2019 profiles"


def _chart(
    name: str, title: str, caption: str, make: Callable[[Context, str], Sequence[str]]
) -> Custom:
    """Declare a chart about the identity that is told first."""

    def blocks(context: Context) -> Iterable[Block]:
        told = _told(context)
        who = f"{_works(context)} by {_noun(told[0], context)}" if told else ""
        panels = tuple(make(context, who)) if told else ()
        if panels:
            shown = title.format(who=who)
            yield Chart(name, shown, _sourced(context, caption), shown, panels)

    return Custom(blocks)


def _bins(context: Context, who: str) -> Sequence[str]:
    rows = _rows(context, "creator-balance-bins")
    lines = []
    for system in dict.fromkeys(row["system"] for row in rows):
        own = [row for row in rows if row["system"] == system]
        users = sum(row["users"] for row in own)
        if users:
            steps = [(row["from"], row["users"] / users) for row in own]
            lines.append(charts.Line(_of(context, system), [*steps, (1.0, 0.0)], steps=True))
    if not lines:
        return ()
    most = max(y for line in lines for _, y in line.points)
    x = (f"share of {who} among known items", 0.0, 1.0)
    said = f"Users by share of {who}"
    return [charts.plane("", lines, x=x, y=("share of users", 0.0, most), said=said)]


def _coverage(context: Context, who: str) -> Sequence[str]:
    del who
    rows = context.rows("creator-coverage")
    if not rows:
        return ()
    outcomes = list(dict.fromkeys(row["outcome"] for row in rows))
    order = [o for o in outcomes if o not in _REST] + [o for o in _REST if o in outcomes]
    named = {o: _OUTCOMES.get(o) or _name(context, o) for o in order}
    columns: dict[float, dict[str, float]] = {}
    for row in rows:
        columns.setdefault(row["percentile"], {})[row["outcome"]] = row["items"]
    shown = [
        (at, {named[o]: found.get(o, 0) / sum(found.values()) for o in order})
        for at, found in sorted(columns.items())
        if sum(found.values())
    ]
    x = "popularity of the item, percentile"
    return [charts.stacked("What is known about items", shown, x, "share of items")]


def _curves(context: Context, who: str) -> Sequence[str]:
    curves, points = (
        [row for row in _rows(context, f"creator-propagation-{name}") if not row["within"]]
        for name in ("curves", "points")
    )
    panels = []
    for system in list(dict.fromkeys(row["system"] for row in curves))[: charts.MOST]:
        name = _of(context, system)
        own = [row for row in curves if row["system"] == system]
        marks: list[charts.Line | charts.Dot] = [
            charts.Line(
                name,
                [(row["profile"], row["mean"]) for row in own],
                [(row["profile"], row["low"], row["high"]) for row in own],
            )
        ]
        marks += [
            charts.Dot(name, row["profile"], row["list"], said=count(row["users"], "user"))
            for row in points
            if row["system"] == system
        ]
        x, y = ((f"share in the {what}", 0.0, 1.0) for what in ("profile", "list"))
        said = f"{name}: {who} in lists, by their share in the profile"
        panels.append(charts.plane(name, marks, x=x, y=y, said=said, equal=True))
    return panels


def _each_user(context: Context) -> Iterable[Block]:
    """Draw every user's share in the profile and in the list, where the plan asks for it."""
    rows = [row for row in _rows(context, "creator-propagation-users") if not row["within"]]
    panels = []
    for system in list(dict.fromkeys(row["system"] for row in rows))[: charts.MOST]:
        own = [(row["profile"], row["list"]) for row in rows if row["system"] == system]
        x, y = ((f"share in the {what}", 0.0, 1.0) for what in ("profile", "list"))
        cloud = charts.Line("users", own, cloud=True)
        name = _of(context, system)
        panels.append(charts.plane(name, [cloud], x=x, y=y, equal=True))
    if panels:
        title = f"Each user: {_works(context)} by {_noun(_told(context)[0], context)}"
        caption = (
            "Figures 11 and 12: a dot for each user, y / n. Privacy: who knows a user\u2019s "
            "profile can find its dot. A public report does not have this figure."
        )
        caption = _sourced(context, caption)
        yield Chart("authors-users", title, caption, title, tuple(panels), single_users=True)


def _densities(context: Context, who: str) -> Sequence[str]:
    rows = _rows(context, "creator-propagation-densities")
    panels = []
    for system in list(dict.fromkeys(row["system"] for row in rows))[: charts.MOST + 1]:
        own = [row for row in rows if row["system"] == system]
        lines = [
            charts.Line(kind, [(r["share"], r["density"]) for r in own if r["kind"] == kind])
            for kind in dict.fromkeys(row["kind"] for row in own)
        ]
        # A tendency without any noise may be one sharp peak, beside which nothing else is seen.
        seen = [r["density"] for r in own if r["kind"] != "smoothed"]
        most = min(2 * max(seen, default=1.0), max(r["density"] for r in own))
        x = (f"share of {who}", 0.0, 1.0)
        panels.append(
            charts.plane(_of(context, system), lines, x=x, y=("density", 0.0, max(most, 0.1)))
        )
    return panels


def _slopes(context: Context, who: str) -> Sequence[str]:
    first = _told(context)[0]
    slopes = {e.system: e for e in context.find(SLOPE) if e.label == first}
    dots = []
    for e in context.find(FITTED[0]):
        slope = slopes.get(e.system)
        if e.label != first or slope is None or slope.value is None or e.value is None:
            continue
        said = f"{_of(context, e.system)}: slope {slope.value:.3f}, intercept {e.value:.3f}"
        dots.append(
            charts.Dot(
                _of(context, e.system), slope.value, e.value, slope.interval, e.interval, said
            )
        )
    if not dots:
        return ()
    axes = []
    for ends in (
        [1.0, *(end for dot in dots for end in dot.x_span or (dot.x,))],
        [0.0, *(end for dot in dots for end in dot.y_span or (dot.y,))],
    ):
        room = 0.05 * (max(ends) - min(ends))
        axes.append((min(ends) - room, max(ends) + room))
    title = f"Slope and intercept: {who}"
    x, y = ("slope", *axes[0]), ("intercept", *axes[1])
    return [charts.plane("", dots, x=x, y=y, nulls=(1.0, 0.0), said=title)]


def _misfits(context: Context) -> Iterable[Block]:
    """Show how far observed shares are from predicted ones, for profiles and every system."""
    profiles = [e for e in context.find(FITTED[4]) if e.group == "profile fit"]
    found = [
        (e, e.details["misfit"])
        for e in (*profiles, *context.find(SLOPE))
        if e.details.get("misfit")
    ]
    if not found:
        return
    titles = {
        "distance": "Distance", "p_value": "p", "at_zero": "At 0, observed",
        "predicted_at_zero": "predicted", "at_one": "At 1, observed",
        "predicted_at_one": "predicted",
    }  # fmt: skip
    rows = tuple(
        (Cell(shorten(_of(context, e.system), 60)), Cell(_name(context, e.label)))
        + tuple(Cell(SCORE.number(m[name]), value=m[name]) for name in titles)
        + (Cell(f"{m['n']:,}", value=m["n"]),)
        for e, m in found
    )
    columns = (Column("Of"), Column("Identity"), *(Column(t, True) for t in titles.values()),
               Column("Users", True))  # fmt: skip
    caption = (
        "How well the model describes profiles and lists. Distance: Kolmogorov-Smirnov, between "
        "observed and predicted shares. p: the share of data sets simulated from the model with at "
        "least this distance; below 0.01, the model does not describe the data. Then the shares of "
        "users at 0 and at 1."
    )
    yield Table("authors-misfits", caption, columns, rows)


def _profile(e: Estimate) -> float | None:
    return e.details.get("profile")


def _resolution(columns: Sequence[str]) -> Mapping[str, tuple[str, Scale | None]]:
    flagged: dict[str, tuple[str, Scale | None]] = {"flagged_items": ("Flagged items", COUNT)}
    return {
        "outcome": ("Outcome", None),
        "items": ("Items", COUNT),
        "items_share": ("of all items", SHARE),
        "interactions": ("Interactions", COUNT),
        "interactions_share": ("of all interactions", SHARE),
    } | (flagged if "flagged_items" in columns else {})


def _fits(columns: Sequence[str]) -> Mapping[str, tuple[str, Scale | None]]:
    named: dict[str, tuple[str, Scale | None]] = {
        "fit": ("Fit", None),
        "within": ("Among", None),
        "identity": ("Identity", None),
        "users": ("Users", COUNT),
        "largest_rhat": ("Largest R-hat", Scale(places=4)),
        "smallest_ess": ("Smallest ESS, bulk", COUNT),
        "smallest_tail_ess": ("tail", COUNT),
        "khat": ("k-hat", Scale()),
        "error_nats": ("Error, nats", SCORE),
        "refused": ("Refused", None),
    }
    return {name: title for name, title in named.items() if name in columns}


# -- The tables of Ekstrand and Kluver in their own form, over one data set or several.

_KINDS = {"explicit": "Explicit", "implicit": "Implicit"}
_SHORT = {"most popular": "Popular", "best rated": "Avg. Rating"}
_SUFFIX = {"explicit": "-E", "implicit": "-I"}


def _feedback(context: Context, system: str = "") -> str:
    """Return which feedback a system was trained on; empty where nothing says so."""
    stated = context.result.plan.options.get("feedback")
    if stated in _KINDS:
        return _KINDS[stated]
    plan = context.result.plan.systems
    for config in [plan.get(system, {})] if stated == "both" else plan.values():
        if config.get("ignore_ratings") or config.get("type") in {"implicit-als", "bpr"}:
            return _KINDS["implicit"]
        if stated == "both" or config.get("type") == "explicit-als":
            return _KINDS["explicit"]
    return ""


def _trained(context: Context, system: str) -> dict[str, str]:
    """Return the data set, feedback and algorithm of a system: "BX", "Explicit", "ALS"."""
    feedback, name = _feedback(context, system), _of(context, system)
    own = context.set
    for word, suffix in _SUFFIX.items():
        own = own.removesuffix(suffix) if feedback == _KINDS[word] else own
        name = name.removesuffix(f" {word}")
    return {"set": own, "feedback": feedback, "algorithm": shorten(name, 40)}


def _about(context: Context, identity: str) -> dict[str, str]:
    """Return the axis of an identity, where the study tells of several."""
    return {"identity": _name(context, identity)} if len(_told(context)) > 1 else {}


def _sizes(context: Context, _: Notes) -> Iterable[Entry]:
    scales = {"users": COUNT, "items": COUNT, "pairs": COUNT, "density": Scale(
        factor=100, places=4, suffix="%")}  # fmt: skip
    for row in context.rows("creator-data"):
        for name, scale in scales.items():
            yield Entry({"column": name.capitalize()}, stored_cell(row[name], name, scale, context))


_RESULTS = {"no_book": "No Bk", "no_author": "No Auth", "no_authority": "No VIAF",
            "unknown": "Unknown", "ambiguous": "Ambig."}  # fmt: skip


def _coverages(context: Context, _: Notes) -> Iterable[Entry]:
    rows = sorted(context.rows("creator-resolution"), key=lambda row: row["known"])
    order = [*_RESULTS, *(row["outcome"] for row in rows if row["outcome"] not in _RESULTS)]
    for row in sorted(rows, key=lambda row: order.index(row["outcome"])):
        head = _RESULTS.get(row["outcome"]) or _name(context, row["outcome"])
        cell = Cell(PERCENT.number(row["items_share"]), value=row["items_share"])
        yield Entry({"column": head}, cell)


PERCENT = Scale(factor=100, places=1, suffix="%")


def _corpus(context: Context, _: Notes) -> Iterable[Entry]:
    """Return what Table 3 has: shares of items and of ratings whose creator is known."""
    known = [row for row in context.rows("creator-resolution") if row["known"]]
    # One order of columns, whichever identity a data set has more of.
    known.sort(key=lambda row: (row["outcome"] not in _told(context), row["outcome"]))
    for kind, head in (("items", "Items"), ("interactions", "Ratings")):
        whole = sum(row[kind] for row in known)
        for row in known if whole else []:
            share = row[kind] / whole
            at = {"kind": head, "identity": _name(context, row["outcome"])}
            yield Entry(at, Cell(PERCENT.number(share), value=share))


def _activity(context: Context, notes: Notes) -> Iterable[Entry]:
    """Return what Table 4 has: interactions per item by identity, mean and median."""
    found = sorted(context.find(PER_ITEM), key=lambda e: (e.label not in _told(context), e.label))
    for e in found:
        at, median = {"identity": _name(context, e.label)}, e.details.get("median")
        yield Entry(at | {"statistic": "mean"}, value_cell(e, Scale(places=2), notes))
        if median is not None:
            cell = Cell(Scale(places=1).number(median), value=median)
            yield Entry(at | {"statistic": "median"}, cell)


def _profiles(context: Context, notes: Notes) -> Iterable[Entry]:
    """Return what Table 6 says of profiles: as observed, and by the model."""
    for identity in _told(context):
        rows = context.rows("creator-propagation-predicted", identity=identity, system="")
        seen = {row["kind"]: row for row in rows}
        fitted = {
            e.key.rpartition("/")[2]: e
            for e in context.find(*FITTED)
            if e.label == identity and e.group == "profile fit"
        }
        mu, sigma = fitted.get("mean-log-odds"), fitted.get("spread")
        cells: dict[str, Cell] = {}
        if "observed" in seen:
            cells |= {"Obs. y/n": _number(seen["observed"]["mean"])}
            cells |= {"Std. Dev.": _number(seen["observed"]["sd"])}
        cells |= {"\u03bc": value_cell(mu, Scale(), notes)} if mu else {}
        cells |= {"\u03c3": value_cell(sigma, Scale(), notes)} if sigma else {}
        if "smoothed" in seen:
            cells |= {"E[\u03b8\u2032] (post.)": _number(seen["smoothed"]["mean"])}
            cells |= {"Std. Dev. (post.)": _number(seen["smoothed"]["sd"])}
        for statistic, cell in cells.items():
            yield Entry({"statistic": statistic, **_about(context, identity)}, cell)


def _number(value: float) -> Cell:
    return Cell(SCORE.number(value), value=value)


def _reach(context: Context, _: Notes) -> Iterable[Entry]:
    heads = {"recommendations": ("Recs", COUNT), "distinct": ("Dist.", COUNT),
             "distinct_share": ("% Dist", PERCENT)}  # fmt: skip
    for row in context.rows("creator-list-coverage"):
        for column, (head, scale) in heads.items():
            cell = stored_cell(row[column], column, scale, context)
            yield Entry(_trained(context, row["system"]) | {"column": head}, cell)


def _balances(context: Context, notes: Notes) -> Iterable[Entry]:
    """Return mean and standard deviation of each system's lists, and the lists for everyone."""
    for e in _steps(context, "baseline", "lists"):
        if e.label not in _told(context):
            continue
        at = _trained(context, e.system) | _about(context, e.label)
        if e.details.get(STAGE) == "baseline":
            at["algorithm"] = _SHORT.get(e.group, e.group)
        if e.value is None:
            yield Entry(at, value_cell(e, SCORE, notes))
            continue
        sd = e.details.get("sd")
        ends = SCORE.ends(e) or f"{e.details.get('count')} of {e.details.get('of')} known"
        text = SCORE.number(e.value) + (f" / {SCORE.number(sd)}" if sd is not None else "")
        yield Entry(at, Cell(text, ends, value=e.value))


def _costs(context: Context, notes: Notes) -> Iterable[Entry]:
    for e in context.find(LOSSES):
        at = _trained(context, e.system) | {"strategy": str(e.details.get("strategy", e.group))}
        few = e.details.get("on_few_hits")
        if e.value is not None or few is None:
            cell = value_cell(e, PERCENT, notes)
        else:
            hits = count(e.details["hits_before"], "hit")
            mark = notes.letter("Fewer than 50 hits: printed as in the paper, used in no sentence")
            cell = Cell(f"{PERCENT.number(few)} {mark}", hits, "not tested", few)
        yield Entry(at, cell)


def _from_candidates(contexts: Sequence[Context]) -> str:
    found = {row["candidates"] for c in contexts for row in c.rows("creator-reranking")}
    ends = " to ".join(f"{n:,}" for n in sorted({min(found), max(found)})) if found else "no"
    return (
        "Table 10: relative loss of MRR by balancing; below 0 a gain. Strategies choose from the "
        f"top {ends} items of each ranking (the paper: the whole ranking; candidates = "
        "\u201call\u201d)."
    )


def _about_whom(text: str) -> Callable[[Sequence[Context]], str]:
    """Return a caption that names the identity whose shares a table has, where it is one."""

    def caption(contexts: Sequence[Context]) -> str:
        c, told = contexts[0], _told(contexts[0])
        who = f"{_works(c)} by {_noun(told[0], c)}" if len(told) == 1 else "each identity"
        return _sourced(c, text.format(who=who))

    return caption


_TRAINED = {"set": "Data set", "feedback": "Feedback", "algorithm": "Algorithm"}
TABLES = (
    BlockTable("authors-table-1", "Table 1: interaction data.", ("set",), ("column",), _sizes,
               {"set": "Data set"}),
    BlockTable("authors-table-2", "Table 2: what is known about the creators of items, in percent "
               "of items.", ("set",), ("column",), _coverages, {"set": "Data set"}),
    BlockTable("authors-table-3", "Table 3: items and ratings whose creator is known, by identity.",
               ("set",), ("kind", "identity"), _corpus, {"set": "Data set"}),
    BlockTable("authors-table-4", "Table 4: interactions per item by identity, with confidence "
               "intervals of means.", ("set",), ("identity", "statistic"), _activity,
               {"set": "Data set"}),
    BlockTable("authors-table-6", _about_whom(
               "Table 6: profiles, shares of {who}. Observed shares of users, and the profile fit: "
               "mean \u03bc and standard deviation \u03c3 of the log odds with 95% "
               "intervals, and the expected share \u03b8\u2032 of a new user."),
               ("identity", "statistic"), ("set",), _profiles, {"statistic": ""}),
    BlockTable("authors-tables-7-8", "Tables 7 and 8: how much lists cover, with the share of "
               "recommendations that are distinct items.", ("feedback", "algorithm"),
               ("set", "column"), _reach, _TRAINED),
    BlockTable("authors-table-9", _about_whom(
               "Table 9: share of {who} in lists, mean / standard deviation over users. One list "
               "for everyone has no standard deviation; the paper prints it once for both kinds of "
               "feedback."),
               ("identity", "feedback", "algorithm"), ("set",), _balances, _TRAINED),
    BlockTable("authors-table-10", _from_candidates,
               ("set", "feedback", "algorithm"), ("strategy",), _costs, _TRAINED),
)  # fmt: skip


REACH: dict[str, tuple[str, Scale | None]] = {
    "system": ("System", None),
    "users": ("Users", COUNT),
    "without": ("Without a list", COUNT),
    "short": ("Short lists", COUNT),
    "recommendations": ("Recommendations", COUNT),
    "distinct": ("Distinct items", COUNT),
    "distinct_share": ("Distinct share", SHARE),
    "known_share": ("Known authors", SHARE),
}
PREDICTED: dict[str, tuple[str, Scale | None]] = {
    "identity": ("Identity", None),
    "system": ("System", None),
    "kind": ("Kind", None),
    "mean": ("Mean share", SCORE),
    "sd": ("SD", SCORE),
}
RERANKED: dict[str, tuple[str, Scale | None]] = {
    "system": ("System", None),
    "strategy": ("Strategy", None),
    "candidates": ("Candidates", COUNT),
    "short": ("Short lists", COUNT),
}
HITS = (Detail("Hits before", "hits_before"), Detail("Hits after", "hits_after"))
SPREAD = (
    Detail("SD over users", "sd", SCORE),
    Detail("By exposure", "exposure_mean", SCORE),
    Detail("Lowest", "lowest", SCORE),
    Detail("Highest", "highest", SCORE),
    Detail("Count", "count"),
    Detail("of known", "of"),
)
ANYTHING = ("metric", "system", "label", "group", "against", "value", "p", "n")

SECTIONS = (
    part(
        "Lists compared with profiles",
        Matrix(
            GAPS,
            "Share of recommendations with a known author minus the share in the same users\u2019 "
            f"profiles. {MARKS}",
            POINTS,
            reference=("Profiles", _profile),
        ),
        Matrix(SHARES, "Share of recommendations with a known author.", SHARE, folded=True),
        Matrix(GROUP_GAPS, "The same difference within groups of users.", POINTS, folded=True),
        Listing(
            (OTHER_GAPS, OTHER_SHARES),
            "Groups of users and systems compared.",
            POINTS,
            ANYTHING,
            folded=True,
            name="authors-contrasts",
        ),
        Matrix(
            SEEN_GAPS,
            "The same difference with positions weighted by exposure: higher positions count more.",
            POINTS,
            folded=True,
        ),
        Matrix(SEEN_SHARES, "Shares of lists weighted by exposure.", SHARE, folded=True),
        Listing(
            (OTHER_SEEN_GAPS, OTHER_SEEN_SHARES),
            "Groups of users and systems compared, weighted by exposure.",
            POINTS,
            ANYTHING,
            folded=True,
            name="authors-exposure-contrasts",
        ),
        Alert("What this cannot say", _limits),
    ),
    part(
        "From the catalog to the lists",
        Say((_how_much_known, _bounds, _unmet)),
        Custom(_from_catalog),
        Listing(
            STEPS,
            "Every share of the pipeline, with its spread over users and with bounds for unknown "
            "identities.",
            SHARE,
            (Detail("Stage", STAGE, None), Detail("Strategy", "strategy", None), "system", "group",
             "label", "value", *SPREAD, "n"),
            folded=True,
            name="authors-pipeline-details",
        ),
        Listing(
            EVERY_CREATOR,
            "Shares with all creators of an item counted, not only the first.",
            SHARE,
            (Detail("Stage", STAGE, None), "system", "label", "value", *SPREAD, "n"),
            folded=True,
        ),
        Listing(
            PER_ITEM,
            "Interactions per item, by identity.",
            Scale(places=1),
            ("label", "value", Detail("Median", "median", Scale(places=1)), "n"),
            "Mean",
        ),
        Listing(
            ITEM_RATIO,
            "Interactions per item, relative to items of other known identities.",
            RATIO,
            ("label", "value", "p", "n"),
            "Ratio",
            folded=True,
        ),
        Listing(
            ITEM_DELTA,
            "Cliff\u2019s delta of interactions per item: above 0, items of the identity have "
            "more.",
            SCORE,
            ("label", "value", "p", "n"),
            folded=True,
        ),
    ),
    part(
        "What is known about items",
        Alert("Items that may hold several works", _flagged),
        _chart(
            "authors-coverage",
            "What is known, by popularity",
            "Items by number of interactions, the least popular on the left. Unlinked: no book, "
            "author or record.",
            _coverage,
        ),
        Stored("creator-resolution", "What is known about items, and about interactions with "
               "them.", _resolution, words=_OUTCOMES),
        Listing(
            KNOWN, "Share whose identity is known.", SHARE, ("group", "value", "n"), folded=True
        ),
    ),
    part(
        "Profiles and lists",
        _chart(
            "authors-bins",
            "Distribution over users: {who}",
            "Users in steps of 0.05. A narrow peak means that users get much the same mix.",
            _bins,
        ),
        Stored("creator-list-coverage", "How many distinct items lists contain, for the sampled "
               "users.", REACH),
    ),
    part(
        "How lists follow profiles",
        Custom(_slopes_said),
        Say((_model, _refused)),
        _chart(
            "authors-curves",
            "How lists follow profiles: {who}",
            "Line and band: the fitted mean with its 95% interval. Dots: means of users by tenths "
            "of their profile. Dashed: lists equal to profiles.",
            _curves,
        ),
        Custom(_each_user),
        Listing(
            SLOPE,
            "Slopes by system, with 95% posterior intervals.",
            SCORE,
            ("system", "label", "value", Detail("P(slope > 1)", "above_one", Scale()), "n"),
            "Slope",
        ),
        Listing(
            FITTED,
            "All other estimates of the model.",
            SCORE,
            ("metric", "system", "label", "group", "value", "n"),
            folded=True,
        ),
        Listing(
            FURTHER_SLOPES,
            "Further slopes: for a placebo attribute made from a hash of item ids, with each "
            "user\u2019s mix of genres held fixed, and among items of one genre.",
            SCORE,
            ("metric", "system", "label", "group", "value",
             Detail("P(slope > 1)", "above_one", Scale()), "n"),
            "Slope",
            folded=True,
        ),
        Listing(
            FURTHER,
            "All other estimates of the further fits.",
            SCORE,
            ("metric", "system", "label", "group", "value", "n"),
            folded=True,
        ),
        Stored(
            "creator-propagation-fits",
            "Diagnostics of each fit; one that did not converge has no estimates. Draws are "
            "weighted, not a chain, so k-hat replaces the count of divergences.",
            _fits,
            folded=True,
        ),
    ),
    part(
        "What reranking costs",
        Matrix(
            LOSSES,
            "Change of MRR after reranking, paired over users, by strategy. Above 0 is a loss.",
            RELATIVE,
            rows=("group",),
        ),
        Listing(
            LOSSES,
            "The same with the hits behind it.",
            RELATIVE,
            ("system", "group", "value", *HITS, "n"),
            "Loss of MRR",
            folded=True,
            name="authors-losses",
        ),
        Listing(
            MRR,
            "Accuracy by strategy.",
            SCORE,
            ("system", "group", "value", Detail("Hits", "hits"), "n"),
            "MRR",
            folded=True,
        ),
        Listing(
            AT_TUNING,
            "Accuracy at tuning: the best of many trials, on other users. It is too high for new "
            "users.",
            SCORE,
            ("system", Detail("Measure", "metric", None), "value"),
            folded=True,
        ),
        Stored("creator-reranking", "Candidates and short lists.", RERANKED, folded=True),
    ),
    part("Tables of the published study", *TABLES, appendix=True),
    part(
        "Predicted shares",
        _chart(
            "authors-densities",
            "Observed and predicted shares: {who}",
            "Densities of observed shares, of shares predicted for new users, and of predicted "
            "shares without the noise of short profiles or lists (smoothed; sharp peaks are cut "
            "off).",
            _densities,
        ),
        Stored("creator-propagation-predicted", "Observed shares, shares predicted for 10,000 new "
               "users, and smoothed shares.", PREDICTED),
        Custom(_misfits),
        _chart(
            "authors-slope-intercept",
            "Slopes and intercepts: {who}",
            "95% posterior intervals. Dashed: slope 1 and intercept 0, lists that vary as much as "
            "profiles.",
            _slopes,
        ),
        appendix=True,
    ),
)  # fmt: skip


@question("authors", "balance-gap")
def authors_question() -> Question:
    """Declare whose work lists show more or less than users' own profiles."""
    return Question(
        name="authors",
        asks="Whose work is recommended more or less than users read it?",
        family={
            GAPS: Phrase(
                sentence="{system} recommends {works} by {note} {more} often than users read them: "
                "{level} of recommendations with a known author, compared with {other} of the "
                "{works} in the same users\u2019 profiles.",
                fallback="{system} recommends {works} by {note} {more} often than users read them.",
                summary="{system} recommend{s} {objects}",
                object="{fewer} {works} by {note}",
                than=" than users read",
                what="{works} by {note}",
                note=_people,
                compared=("recommendations", "users\u2019 profiles"),
                scale=POINTS,
                harm="both",
            )
        },
        systems="recommender",
        yes="recommend{s} some authors more or less often than users read them",
        possible="A share could still differ by up to {bound} from that in profiles.",
        words=lambda context: {"works": _works(context)},
        in_short=(_share_in_short, _slope_in_short, _cost_in_short),
        changes=(_unknown, _genre),
        inspect="Compare the recommended {what} with those in the catalog, and run the audit again "
        "after changes.",
        sections=SECTIONS,
    )
