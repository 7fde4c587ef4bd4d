"""The warnings experiment in words."""

from __future__ import annotations

from ombud.audits.result import Result
from ombud.questions.warnings.lookup import (
    amplification_infos,
    at_systems,
    chief_accuracy,
    chief_amplification,
    contrast,
    leak_infos,
    level,
    lists_lost,
    overall,
    unknown_ranges,
)
from ombud.report.blocks import Bullets, Name, Note, Paragraph, Part, Strong, paragraph
from ombud.report.display import count
from ombud.report.findings import by_sign, reading
from ombud.report.format import estimate_text, number_text
from ombud.stats.estimate import Estimate

_NAMED = 1
_MANY = 0.1


def system_words(result: Result) -> Bullets | None:
    """Return one item for each system: more or less of the labels than in users' histories."""
    info = chief_amplification(result)
    if info is None:
        return None
    items = []
    for system in at_systems(result, info):
        e = level(result, info, system)
        if e is not None:
            head = (Name(system), ": lists hold ", *_size(e), ". ")
            items.append(paragraph(*head, *_labels(result, system)))
    return Bullets(tuple(items))


def _size(e: Estimate) -> list[Part]:
    if e.value is None:
        return [estimate_text(e)]
    sign = reading(e)
    if sign not in {"above", "below"}:
        return [Strong("about as much"), f" as histories ({percent_text(e)})"]
    word = "more" if sign == "above" else "less"
    return [Strong(f"{abs(e.value):.0%} {word}"), f" than histories ({percent_text(e)})"]


def percent_text(e: Estimate) -> str:
    """Return an amplification in percent, with its interval."""
    if e.value is None:
        return estimate_text(e)
    places = 1 if abs(e.value) < 1 else 0
    value = f"{number_text(100 * e.value, places, signed=True)}%"
    if e.interval is None:
        return f"{value}, without an interval"
    low, high = (number_text(100 * end, places, signed=True) for end in e.interval)
    return f"{value} [{low}%, {high}%]"


def _labels(result: Result, system: str) -> list[Part]:
    """Return how many labels are amplified and how many reduced, with the largest."""
    infos = amplification_infos(result, "amplification")
    info = infos.get("ratio-of-means") or infos.get("mean")
    family = None if info is None else overall(result, info)
    if info is None or family is None:
        return []
    signs = by_sign(family.of(system=system).estimates)
    above, below = signs.get("above", ()), signs.get("below", ())
    rest = sum(len(some) for sign, some in signs.items() if sign not in {"above", "below"})
    verb = "is" if len(above) == 1 else "are"
    parts: list[Part] = [
        f"Of {count(len(above) + len(below) + rest, 'label')}, {len(above)} {verb} shown more"
    ]
    parts += _largest(above)
    parts += [f", {len(below)} less", *_largest(below)]
    parts.append(f", {rest} neither clearly." if rest else ".")
    return parts


def _largest(some: tuple[Estimate, ...]) -> list[Part]:
    parts: list[Part] = []
    for index, e in enumerate(some[:_NAMED]):
        parts += [", " if index else " (surest: ", Name(e.label), f" {percent_text(e)}"]
    return [*parts, ")"] if parts else []


def care(result: Result) -> Note | None:
    """Return how to read the numbers where the choice of the form decides what they say."""
    infos = amplification_infos(result, "amplification-user")
    if "mean" not in infos:
        return None
    found = [level(result, infos["mean"], s) for s in at_systems(result, infos["mean"])]
    told = [(e.details.get("smoothed_histories"), e.details.get("pairs")) for e in found if e]
    shares = [some / of for some, of in told if some is not None and of]
    lines = []
    if shares and max(shares) >= _MANY:
        lines.append(
            f"For {max(shares):.0%} of all pairs of user and label, the history holds nothing with "
            "the label, and the share it is compared with comes from the smoothing alone. Such a "
            "pair is \u2212100% when the list holds nothing either, and can be very large when it "
            "holds one item. The mean and the median are mostly made of them; the ratio of means "
            "is not."
        )
    lines += [text for text in (_bounds(result), _places(result)) if text is not None]
    if not lines:
        return None
    return Note(tuple(paragraph(line) for line in lines), "Before reading the numbers")


def _bounds(result: Result) -> str | None:
    ranges = unknown_ranges(result)
    if not ranges:
        return None
    # One system at a time: what lies between two systems is no uncertainty of either.
    widest = max(ranges, key=lambda system: ranges[system][1] - ranges[system][0])
    low, high = (f"{number_text(100 * end, 0, signed=True)}%" for end in ranges[widest])
    most = " (the widest; the table has each)" if len(ranges) > 1 else ""
    return (
        "Unknown labels: the numbers count them as the measures say. If they could be anything, "
        f"the ratio of means of {widest} could lie anywhere from {low} to {high}{most}."
    )


def _places(result: Result) -> str | None:
    """Return which systems give lists that are shorter than the measures look."""
    info = chief_amplification(result)
    if info is None:
        return None
    found = [e for s in at_systems(result, info) if (e := level(result, info, s)) is not None]
    cut = [e for e in found if e.details.get("shorter_lists")]
    if not cut:
        return None
    wanted = cut[0].details["places_looked_at"]
    told = [f"{e.system} (longest: {e.details['longest_list']:,})" for e in cut]
    return (
        f"The measures look at {wanted:,} places; lists are shorter though there were items left: "
        f"{'; '.join(told)}. Shares are of the places that are there."
    )


def remedy_words(result: Result, system: str, base: str) -> Paragraph:
    """Return what a remedy changed, on the same users as the system it was put around."""
    parts: list[Part] = [Name(system), " against ", Name(base), ": "]
    info = chief_amplification(result)
    e = None if info is None else contrast(result, info, system, base)
    if info is not None and e is not None:
        parts.append(f"{info.title} changes by {estimate_text(e, signed=True)}")
    accuracy = chief_accuracy(result)
    e = None if accuracy is None else contrast(result, accuracy, base, system)
    if accuracy is not None and e is not None:
        if e.value is None:
            parts.append(f"; {accuracy.title}: {estimate_text(e)}")
        else:
            clear = e.excludes_null if e.interval is not None else False
            whole = level(result, accuracy, base)
            of = f" of {estimate_text(whole)}" if whole is not None else ""
            verb = "lost" if e.value > 0 else "gained" if e.value < 0 else "unchanged"
            size = estimate_text(e if e.value >= 0 else _mirrored(e))
            parts += ["; ", Strong(f"{accuracy.title} {verb}: {size}"), of]
            parts.append(", paired over the same users" if e.interval is not None else "")
            parts.append("" if clear else "; no clear sign of a change")
    for info in leak_infos(result):
        if e := level(result, info, system):
            parts.append(f"; {info.title}: {_leak(e)}")
    return paragraph(*parts, _lost(result, system), ".")


def _leak(e: Estimate) -> str:
    """Return how many places carry what is avoided, counted where the counts are known."""
    leaks, places, unknown = (e.details.get(name) for name in ("leaks", "places", "unknown"))
    if leaks is None or places is None:
        return estimate_text(e)
    text = f"{leaks:,} of {places:,} places carry what is avoided"
    return f"{text}; of {unknown:,} it is not known" if unknown else text


def _lost(result: Result, system: str) -> str:
    lost = lists_lost(result, system)
    if lost is None:
        return ""
    shortened, emptied = lost
    if not shortened and not emptied:
        return "; no list was shortened or emptied"
    verb = "was" if shortened == 1 else "were"
    text = f"; {count(shortened, 'list')} {verb} shortened, {emptied:,} emptied"
    accuracy = chief_accuracy(result)
    if emptied and accuracy is not None and accuracy.spec.get("no_list") == "zero":
        text += " (an empty list counts as zero accuracy)"
    return text


def _mirrored(e: Estimate) -> Estimate:
    assert e.value is not None  # only numbers are mirrored
    ends = None if e.interval is None else (-e.interval[1], -e.interval[0])
    return e.replace(value=-e.value, interval=ends)
