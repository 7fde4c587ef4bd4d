"""The question of plans without one: what differs, whatever was measured."""

from __future__ import annotations

from ombud.report.context import Context, Select
from ombud.report.numbers import DIFFERENCE, POINTS, RATIO, SCORE, SHARE, Scale
from ombud.report.question import Phrase, Question
from ombud.report.show import MARKS, Listing, Matrix, Part, part

_SHARES = frozenset({"share", "rate", "recall", "precision", "hit-rate", "coverage", "leak"})


def _is_share(name: str) -> bool:
    return any(word in _SHARES for word in name.split("-")) or name in _SHARES


def _scales(name: str, null: float | None) -> tuple[Scale, Scale]:
    """Return how the levels of a metric are printed, and their differences."""
    if null == 1:
        return SCORE, RATIO
    return (SHARE, POINTS) if _is_share(name) else (SCORE, DIFFERENCE)


def general_question(context: Context) -> Question | None:
    """Return a question over every comparison of a result; None where it holds no estimate."""
    family: dict[Select, Phrase] = {}
    for (key, role), found in context.by_key.items():
        # A comparison that no label allows is one that could not be made.
        tested = [
            e for e in found
            if e.null is not None or (role == "contrast" and e.reason_code == "no-labels")
        ]  # fmt: skip
        if not tested or role in {"spread", "systems"}:
            continue
        # A key is a metric's name, its arguments in parentheses, and what it is of after a slash.
        name = key.partition("(")[0].partition("/")[0]
        contrast = role == "contrast"
        if contrast and any(e.null is not None for e in context.by_key.get((key, "group"), ())):
            continue  # the group is compared with its own reference already
        levels, scale = _scales(name, tested[0].null)
        title = context.titles[key]
        than = "than others" if contrast else "than the reference"
        who = "{who}" if role != "overall" else "{what}"
        about = f"{title} for {who}" if any(e.label or e.group for e in found) else title
        family[Select(key, (role,), exact=True)] = Phrase(
            sentence=f"{{system}}: {about} is {{level}}, compared with {{other}}"
            f"{' for others' if contrast else ''}.",
            fallback=f"{{system}}: {about} is {{size}} {{more}} {than}."
            if scale.signed
            else f"{{system}}: {about} is {{size}}.",
            summary="{system} differ{s} ({objects})",
            object=about,
            what="{what}" if any(e.label for e in found) else title,
            compared=("{who}", "others") if contrast else ("this system", "reference"),
            scale=scale,
            levels_in=levels,
            harm="both",
        )
    if not context.by_key:
        return None
    return Question(
        name="general",
        asks="What differs?" if family else "What was measured?",
        family=family,
        systems="system",
        yes="show{s} a difference",
        possible="Could still differ by up to {bound}.",
        inspect="Inspect {systems} for {what}, and run the audit again after changes.",
        applies=lambda _: True,
    )


_TITLES = {"overall": "", "group": "By group. ", "contrast": "Each group compared with others. "}


def remaining(context: Context, shown: set[tuple[str, str]]) -> Part:
    """Return a section with measures that no section of a question shows, as far as there is room.

    The others are in the table of all numbers, which has every estimate.

    `shown` are keys and roles that other sections show.
    """
    shows: list[Matrix | Listing] = []
    room = _MOST_ESTIMATES
    for (key, role), found in context.by_key.items():
        if (key, role) in shown or len(found) > room:
            continue
        room -= len(found)
        select = Select(key, (role,), exact=True)
        name = key.partition("(")[0].partition("/")[0]
        levels, differences = _scales(name, found[0].null)
        title = context.titles[key]
        title = title[0].upper() + title[1:]
        if role in _TITLES:
            scale = levels if role != "contrast" and found[0].null is None else differences
            marks = f" {MARKS}" if any(e.null is not None for e in found) else ""
            rows = tuple(r for r in ("label", "group") if any(getattr(e, r) for e in found))
            shows.append(
                Matrix(
                    select, f"{title}. {_TITLES[role]}{marks}".strip(), scale,
                    rows=rows or ("label",), folded=bool(shown),
                )
            )  # fmt: skip
            continue
        pairs = role == "systems"
        what = "Two systems compared" if pairs else "Largest minus smallest group"
        columns = ("label", "system", "against" if pairs else "group", "value", "p", "n")
        shows.append(Listing(select, f"{title}. {what}.", differences, columns, folded=True))
    return part("All measures", *shows, appendix=bool(shown))


_MOST_ESTIMATES = 900
"""Estimates in the tables of a section that no question declares."""
