"""The answer in words: both directions, with uncertainty, and never more than was found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ombud.report.blocks import Bullets, Name, Paragraph, Part, Strong, paragraph
from ombud.report.display import count, joined, plural
from ombud.report.findings import EstimateSet, by_sign, reading
from ombud.report.format import decimals_for, estimate_text, number_text
from ombud.stats.estimate import Estimate

_NAMED = 3
_LISTED = 4


def headline(families: Sequence[EstimateSet]) -> Paragraph:
    """Return the first sentence of the answer, over all comparisons of the report."""
    every = [e for family in families for e in family.estimates]
    tested = [e for e in every if reading(e) not in {"untested", "undefined"}]
    undefined = sum(e.value is None for e in every)
    parts: list[Part]
    if tested:
        parts = _tested(tested)
    else:
        parts = [
            "This report describes: nothing in it was tested against a value that would mean "
            "\u201cno difference\u201d."
        ]
    without = sum(reading(e) == "untested" and e.null is not None for e in every)
    if tested and without:
        verb = "has" if without == 1 else "have"
        parts.append(f" {without:,} more {verb} no interval and could not be tested.")
    if undefined:
        verb = "is" if undefined == 1 else "are"
        parts.append(f" {count(undefined, 'number')} {verb} not defined; the reasons are given.")
    return paragraph(*parts)


def _tested(tested: Sequence[Estimate]) -> list[Part]:
    stand = sum(reading(e) in {"above", "below"} for e in tested)
    only_before = sum(reading(e).endswith("uncorrected") for e in tested)
    corrected = any(e.correction for e in tested)
    after = " after correction for many comparisons" if corrected else ""
    parts: list[Part]
    if stand and len(tested) == 1:
        parts = [Strong("The one comparison made"), " shows a difference."]
    elif stand:
        verb = "shows" if stand == 1 else "show"
        parts = [Strong(f"{stand:,} of {count(len(tested), 'comparison')}")]
        parts.append(f" {verb} a difference that remains{after}.")
    else:
        where = "the one comparison made" if len(tested) == 1 else f"{len(tested):,} comparisons"
        parts = [Strong("We found no sign of a difference"), f" in {where}{after}."]
    small = sum(reading(e) == "small" for e in tested)
    if small:
        verb = "differs" if small == 1 else "differ"
        parts.append(
            f" {small:,} more {verb}, but not surely by more than was declared to matter: their "
            "intervals do not lie wholly beyond it."
        )
    if only_before:
        verb = "shows" if only_before == 1 else "show"
        parts.append(
            f" {only_before:,} more {verb} one only before the correction and should not be read "
            "as a finding."
        )
    if not corrected and len(tested) > 1:
        parts.append(" No correction for many comparisons was made: some will differ by chance.")
    if len(tested) > stand + only_before:
        parts.append(
            " Where no sign was found, the intervals say how large a difference could still be."
        )
    return parts


def answer_of(family: EstimateSet) -> tuple[Paragraph | Bullets, ...]:
    """Return the answer that one family of estimates gives.

    Levels of everyone give one sentence for each system; contrasts give a sentence with counts in
    both directions, and the largest that remain. Levels of groups are left to figures and tables:
    their contrasts are the answer.
    """
    if family.kind == "overall":
        items = (_overall(family.of(system=system)) for system in family.systems)
        return (Bullets(tuple(items)),)
    if family.kind == "group":
        return ()
    lead, largest = _contrasts(family)
    return (lead, Bullets(largest)) if largest else (lead,)


def sentences_of(family: EstimateSet) -> list[str]:
    """Return the same answer as plain sentences."""
    said: list[str] = []
    for block in answer_of(family):
        items = block.items if isinstance(block, Bullets) else (block,)
        said += [item.plain for item in items]
    return said


def _overall(family: EstimateSet) -> Paragraph:
    system = family.estimates[0].system
    head: list[Part] = [Name(system), ": "] if system else []
    estimates = family.estimates
    defined = [e for e in estimates if e.value is not None]
    word = "label" if any(family.labels) else "number"
    if not any(family.labels) and len(estimates) == 1:
        return paragraph(*head, *_single(estimates[0]))
    if not defined:
        said = f"not defined for any of {count(len(estimates), word)} {_because(estimates)}."
        return paragraph(*head, said)
    if all(e.null is None for e in defined):
        return paragraph(*head, *_extremes(defined), *_undefined(estimates))
    return paragraph(*head, *_directions(estimates, word), *_undefined(estimates))


def _single(estimate: Estimate) -> list[Part]:
    if estimate.value is None:
        return [f"{estimate_text(estimate)}."]
    null = _null(estimate)
    verdict = {
        "above": f", above {null}",
        "below": f", below {null}",
        "above uncorrected": f", above {null} only before correction",
        "below uncorrected": f", below {null} only before correction",
        "small": f", not {null}, but not surely further from it than matters",
        "no sign": f", no clear sign of a difference from {null} in either direction",
    }.get(reading(estimate), "")
    return [f"{_size(estimate)} ({count(estimate.n, estimate.unit)}){verdict}."]


def _extremes(defined: Sequence[Estimate]) -> list[Part]:
    ordered = sorted(defined, key=lambda e: e.value or 0.0)
    high, low = ordered[-1], ordered[0]
    if len(ordered) == 1:
        return ["for ", *_label_words(high), "."]
    return [
        "highest for ",
        *_label_words(high, True),
        ", lowest for ",
        *_label_words(low, True),
        ".",
    ]


def _directions(estimates: Sequence[Estimate], word: str) -> list[Part]:
    """Return what stands in each direction, what fell to the correction, what shows no sign."""
    signs = by_sign(estimates)
    tested = [
        e for sign, some in signs.items() if sign not in {"undefined", "untested"} for e in some
    ]
    if not tested:
        defined = signs["untested"]  # each of their sizes says why it has no interval
        return [*_extremes(defined), f" Tested for none of {count(len(defined), word)}."]
    above, below = signs.get("above", ()), signs.get("below", ())
    null = _null(tested[0])
    parts: list[Part] = []
    if not above and not below:
        parts.append(f"above {null} for none of {count(len(tested), word)}, below {null} for none.")
    else:
        parts.append(f"above {null} for {_of(len(above), len(tested), word)}")
        parts += [" (", *_listed(above), ")"] if above else []
        parts.append(f"; below {null} for {len(below):,}" if below else f"; below {null} for none")
        parts += [" (", *_listed(below), ")"] if below else []
        parts.append(".")
    fallen = (*signs.get("above uncorrected", ()), *signs.get("below uncorrected", ()))
    if fallen:
        parts += [" Only before correction: ", *_names(fallen), "."]
    small = signs.get("small", ())
    if small:
        parts.append(f" Different, but not surely by what matters: {len(small):,}.")
    unclear = signs.get("no sign", ())
    if unclear:
        parts.append(f" No clear sign in either direction for {len(unclear):,}{_room(unclear)}.")
    if signs.get("untested"):
        parts.append(f" Without a test: {len(signs['untested']):,}.")
    return parts


def _of(some: int, total: int, word: str) -> str:
    return f"{some or 'none'} of {count(total, word)}"


def _contrasts(family: EstimateSet) -> tuple[Paragraph, tuple[Paragraph, ...]]:
    signs = by_sign(family.estimates)
    against = list(dict.fromkeys(e.against for e in family.estimates))
    groups = family.kind == "group contrast"
    head: list[Part] = [Strong("Between groups" if groups else "Between systems")]
    if groups and len(against) == 1:
        head.append(f", each against {against[0]}")
    above, below = signs.get("above", ()), signs.get("below", ())
    total = len(family.estimates)
    head.append(
        f": {count(total, 'comparison')}. Higher in {len(above) or 'none'}, "
        f"lower in {len(below) or 'none'}"
    )
    fallen = len(signs.get("above uncorrected", ())) + len(signs.get("below uncorrected", ()))
    head.append(f", one or the other only before correction in {fallen:,}" if fallen else "")
    small = len(signs.get("small", ()))
    head.append(f"; different, but not surely by what matters, in {small:,}" if small else "")
    unclear = signs.get("no sign", ())
    if unclear:
        head.append(f"; no clear sign in either direction in {len(unclear):,}{_room(unclear)}")
    untested = signs.get("untested", ())
    if untested:
        head.append(f"; not tested, for want of an interval, in {len(untested):,}")
    undefined = signs.get("undefined", ())
    if undefined:
        head.append(f"; not defined in {len(undefined):,} {_because(undefined)}")
    head.append(".")
    # Half of the places for each direction, so that neither hides the other.
    shares = [above[: max(_LISTED // 2, _LISTED - len(below))]]
    shares.append(below[: max(_LISTED // 2, _LISTED - len(above))])
    largest = [e for some in shares for e in some]
    if len(above) + len(below) > len(largest):
        head.append(" The largest in each direction:")
    describe = _group_words if groups else _system_words
    return paragraph(*head), tuple(paragraph(*describe(e)) for e in largest)


def _room(unclear: Sequence[Estimate]) -> str:
    """Say how large a difference could still be where no sign was found."""
    bounded = [e for e in unclear if e.interval is not None]
    if not bounded:
        return ""
    widest = max(abs(end - (e.null or 0.0)) for e in bounded for end in e.interval or ())
    if math.isinf(widest):
        return " (some could differ by any amount)"
    size = number_text(widest, min(decimals_for(e) for e in bounded))
    null = _null(bounded[0])
    if null == "0":
        return f" (there, differences as large as {size} are not ruled out)"
    return f" (there, values as far as {size} from {null} are not ruled out)"


def _null(estimate: Estimate) -> str:
    null = estimate.null or 0.0
    return number_text(null, 0 if float(null).is_integer() else 2)


def _undefined(estimates: Iterable[Estimate]) -> tuple[str, ...]:
    some = [e for e in estimates if e.value is None]
    return (f" Not defined for {len(some):,} {_because(some)}.",) if some else ()


def _because(estimates: Iterable[Estimate]) -> str:
    return f"({'; '.join(reasons(e for e in estimates if e.value is None))})"


def reasons(undefined: Iterable[Estimate], most: int = 3) -> list[str]:
    """Return the different reasons why estimates are undefined, the most frequent first."""
    tally: dict[str, int] = {}
    for estimate in undefined:
        tally[estimate.reason] = tally.get(estimate.reason, 0) + 1
    ordered = sorted(tally, key=lambda reason: -tally[reason])
    if len(ordered) <= most:
        return ordered
    rest = len(ordered) - most + 1
    return [*ordered[: most - 1], f"{rest:,} other reasons, given in the tables"]


def _few(some: Sequence[Estimate]) -> Sequence[Estimate]:
    return some if len(some) <= _NAMED + 1 else some[:_NAMED]


def _listed(some: Sequence[Estimate]) -> list[Part]:
    parts: list[Part] = []
    for index, estimate in enumerate(_few(some)):
        parts += ["; " if index else "", *_label_words(estimate, len(some) > 1)]
    rest = len(some) - len(_few(some))
    return [*parts, f"; and {rest:,} more"] if rest else parts


def _names(some: Sequence[Estimate]) -> list[Part]:
    parts: list[Part] = []
    for index, estimate in enumerate(_few(some)):
        parts += [", " if index else "", Name(estimate.label or "all together")]
    rest = len(some) - len(_few(some))
    return [*parts, f" and {rest:,} more"] if rest else parts


def _label_words(estimate: Estimate, named: bool = False) -> tuple[Part, ...]:
    if not estimate.label and not named:
        return (_size(estimate),)
    return (Name(estimate.label or "all together"), f" {_size(estimate)}")


def _size(estimate: Estimate) -> str:
    return estimate_text(estimate, signed=estimate.null == 0)


def _group_words(estimate: Estimate) -> tuple[Part, ...]:
    return (*_in_words(estimate.group, estimate.system, estimate.label), f": {_size(estimate)}")


def _system_words(estimate: Estimate) -> tuple[Part, ...]:
    about = _in_words(estimate.label)
    return (
        Name(estimate.system),
        " against ",
        Name(estimate.against),
        *((", ", *about) if about else ()),
        f": {_size(estimate)}",
    )


def _in_words(*names: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    for name in names:
        if name:
            parts += [", ", Name(name)] if parts else [Name(name)]
    return tuple(parts)


def support(estimates: Iterable[Estimate]) -> str:
    """Return how many independent units stand behind some estimates.

    Examples
    --------
    >>> e = Estimate(metric="m", value=1.0, interval=(0, 2), method="x", n=1200, unit="user")
    >>> support([e, e.replace(n=900)])
    '900 to 1,200 users'
    """
    some = [e for e in estimates if e.value is not None]
    kinds = []
    for unit in dict.fromkeys(e.unit for e in some):
        sizes = [e.n for e in some if e.unit == unit]
        low, high = min(sizes), max(sizes)
        kinds.append(count(high, unit) if low == high else f"{low:,} to {high:,} {plural(unit)}")
    return joined(kinds)
