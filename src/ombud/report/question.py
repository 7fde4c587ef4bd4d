"""What a question declares: the comparisons that answer it, how they are phrased, what to show.

A question holds no loops over estimates and builds no tables. It names what it needs (`Select`),
gives sentences as templates (`Phrase`), and lists its sections (`show.py`). It is registered with
``@ombud.registry.question("name")`` on a function that returns it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Literal, TypeAlias

from ombud import registry
from ombud.audits.result import Result
from ombud.report.context import Context, Select
from ombud.report.model import Text
from ombud.report.numbers import POINTS, SHARE, Scale, percent
from ombud.report.show import Part
from ombud.stats.estimate import Estimate

Levels: TypeAlias = Callable[[Estimate], tuple[float | None, float | None]]
Harm: TypeAlias = Literal["more", "less", "both"]


def unlabeled_texts(context: Context) -> Text | None:
    """Say how many texts have no label, where they are a tenth or more."""
    facts = context.result.card.facts
    texts, unknown = facts.get("texts"), facts.get("label_unknown")
    if not (isinstance(texts, int) and isinstance(unknown, int) and 0 < texts <= 10 * unknown):
        return None
    return (f"{percent(unknown / texts)} of texts have no label.",)


def stored_levels(e: Estimate) -> tuple[float | None, float | None]:
    """Return the two levels that the engine stores with every comparison."""
    return e.details.get("level"), e.details.get("other_level")


@dataclass(frozen=True)
class Phrase:
    """How the findings of one metric and role are put into words.

    Templates have slots: ``{system}``, ``{what}`` (the label), ``{who}`` (members of the group),
    ``{group}``, ``{level}`` and ``{other}`` (both levels), ``{counts}`` (" (83 of 321)"),
    ``{size}`` (the difference), ``{more}`` ("more" or "less"), ``{note}`` (what `note` returns).
    A `summary` has ``{s}`` behind its verb, which is empty after several systems.
    Slots hold names and numbers, never templates, so a hostile name stays a name.
    """

    sentence: str  # The finding in full
    summary: str  # All findings of a system in a clause, with the slot ``{objects}``
    # What one finding adds to that sentence: "violence to all users"; empty where it says it all.
    object: str
    than: str = ""  # Closes a summary that has no lead before it: " than users read"
    fallback: str = ""  # The sentence where the result does not store both levels, if another
    # Content and people, for a line of the summary.
    what: str = "{what}"
    who: str = "{who}"
    compared: tuple[str, str] = ("{who}", "others")  # What the two levels are, for a chart
    # What a system with such findings does, as in `Question`, where it is more specific.
    yes: str = ""
    evidence: str = ""  # Follows the number: "more often than all acceptable texts"
    levels: Levels = stored_levels  # Both levels of an estimate, or None
    # How the estimate and its levels are printed.
    scale: Scale = POINTS
    levels_in: Scale = SHARE
    harm: Harm = "more"  # Which direction is a finding
    # Which of the estimates are in the family; a tautology is not.
    keep: Callable[[Estimate], bool] = lambda _: True
    # The value that means no harm, for shares that the metric does not test.
    null: float | None = None
    # Replaces `Question.possible` where measures of a family differ.
    possible: str = ""
    # Which group a finding is about: those of a system about the same one are one finding.
    story: Callable[[Estimate, Context], str] = lambda e, _: e.group
    # A further slot, computed from the estimate.
    note: Callable[[Estimate, Context], str] = lambda *_: ""

    def tested(self, e: Estimate) -> Estimate:
        """Return an estimate as it is tested: against `null`, where the metric has none."""
        return e if self.null is None or e.null is not None else e.replace(null=self.null)


@dataclass(frozen=True)
class Question:
    """Everything that the report of one question needs."""

    name: str  # That of the preset
    asks: str  # The question in one line; used where a plan has no title of its own
    family: Mapping[Select, Phrase]  # The comparisons that answer it, each with its phrase
    systems: str  # What is audited, in the singular: "moderator"
    # What a system with findings does: follows "two of the three moderators", and "no clear
    # evidence that". As in a `Phrase.summary`, ``{s}`` is empty after several systems.
    yes: str
    possible: str  # Said of a system without findings: "Recall could still be {bound}."
    # Sentences about what could change the answer.
    changes: tuple[Callable[[Context], Text | None], ...] = ()
    # What to do about findings, with the slots ``{systems}`` and ``{what}``.
    inspect: str = "Inspect {systems} for {what}, change what causes it, and run the audit again."
    # Further slots of the templates, where options of the plan change the words.
    words: Callable[[Context], Mapping[str, str]] = lambda _: {}
    # Sentences for the first screen, each about one of the question's main results.
    in_short: tuple[Callable[[Context], Text | None], ...] = ()
    # Opens the headline whatever the answer is: levels that have no harmful direction.
    lead: Callable[[Context], Text] = lambda _: ()
    sections: tuple[Part, ...] = ()  # What the report shows below the findings
    # Whether a result is about this question; default, when the family is not empty.
    applies: Callable[[Context], bool] | None = None
    # Returns what tells whether a comparison is true by definition; such are in no family.
    tautologies: Callable[[Result], Callable[[Estimate], bool]] | None = None

    def holds(self, context: Context) -> bool:
        """Return whether a result holds the comparisons of this question."""
        return bool(context.find(*self.family)) if self.applies is None else self.applies(context)

    def comparisons(self, context: Context) -> dict[Select, tuple[Estimate, ...]]:
        """Return the family: the estimates of each select that has any."""
        return {
            select: tuple(self.family[select].tested(e) for e in some)
            for select, some in self.members(context).items()
        }

    def members(self, context: Context) -> dict[Select, tuple[Estimate, ...]]:
        """Return the estimates of the result that are in the family, as they are stored."""
        known = self.tautologies(context.result) if self.tautologies else lambda _: False
        found = {
            select: tuple(e for e in context.find(select) if phrase.keep(e) and not known(e))
            for select, phrase in self.family.items()
        }
        return {select: some for select, some in found.items() if some}


def fill(template: str, **slots: object) -> Text:
    """Return a template with its slots filled; what stands in a slot is not read as a template.

    Examples
    --------
    >>> from ombud.report.model import Name
    >>> fill("{system} does.", system=Name("{what}"))
    (Name(text='{what}'), ' does.')
    """
    parts: list[object] = []
    for literal, slot, _, _ in Formatter().parse(template):
        parts += [literal] if literal else []
        if slot is not None:
            value = slots[slot]
            parts += value if isinstance(value, tuple) else [value]
    return tuple(parts)  # type: ignore[arg-type]


def questions(context: Context) -> Sequence[Question]:
    """Return the registered questions that a result answers, that of its preset first."""
    preset = context.result.plan.preset
    names = sorted(registry.names("question"), key=lambda name: (name != preset, name))
    factories = {name: registry.get("question", name) for name in names}
    present = [key for key, _ in context.by_key]
    made: list[Question] = [
        factory()
        for name, factory in factories.items()
        if name == preset
        or not (keys := registry.question_keys(name))
        or any(key.startswith(keys) for key in present)
    ]
    return [question for question in made if question.holds(context)]
