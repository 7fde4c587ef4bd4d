"""The suppression audit: whose acceptable speech does a moderator flag?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from ombud.audits.plan import Plan
from ombud.audits.presets import Options, Preset, Tagger
from ombud.data.dataset import Dataset
from ombud.data.frames import has_columns
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.questions.suppression.options import SuppressionOptions
from ombud.registry import preset
from ombud.text.tagging import (
    IdentityTagger,
    identity_groups,
    other_languages,
    stated_texts,
    terms_of,
    with_stated,
)


def _options(plan: Plan) -> SuppressionOptions:
    return SuppressionOptions(**plan.options)


def tag_texts(plan: Plan, data: Dataset) -> Dataset:
    """Return the data with the identity groups that its texts name.

    Groups that the data brings along stay, unless the plan asks for ``groups = "tagged"``; of
    several data sets, those whose sources state no groups are tagged.
    """
    options = _options(plan)
    data.need("texts", "preset 'suppression'")
    given = with_stated(data if options.groups == "given" else replace(data, text_groups=None))
    whole = not options.sub_identities and bool(stated_texts(given).all())
    if given.text_groups is not None and whole:
        return given
    texts: Texts = given.need("texts", "preset 'suppression'")
    texts = replace(texts, exclusions=(*texts.exclusions, *other_languages(texts)))
    given = replace(given, texts=texts)
    smallest = options.smallest_intersection if plan.intersections else None
    groups = identity_groups(
        given,
        terms_of(options.terms, options.path, options.mode),
        options.mode,
        smallest,
        punctuation=options.punctuation,
        sub_identities=options.sub_identities,
    )
    return replace(given, text_groups=groups)


@preset("suppression")
class SuppressionPreset(Preset):
    """Tag identities, and measure whose acceptable texts are flagged more than everyone's.

    The audit of *Identity-related Speech Suppression in Generative AI Content Moderation*, on any
    texts with true labels and any moderators. It fills in what the plan leaves open:

    - **groups**: the identity groups that texts name, by term lists, unless the data brings groups
      along. With ``intersections = true`` also pairs of groups that enough texts name.
    - **metrics**: false-positive rate; suppression (over all texts, and over texts outside the
      group), the largest and the pooled one; the same of median scores; the share of texts without
      a decision. Each also by family of texts, where there are several.
    - **analyses**: sizes of the data sets, tag counts by both ways of matching, how well tags agree
      with groups that a source states, the spread of scores; regressions, drift and a migration
      when asked for.

    Audits in blocks (``[engine]``) tag each text by itself, and measure what merges: rates,
    suppression and the share without a decision, of all families together, without the analyses.
    """

    options: ClassVar[type[Options]] = SuppressionOptions

    def complete(self, plan: Plan) -> Plan:
        """Return the plan with systems, metrics and analyses filled in."""
        options = _options(plan)
        if not plan.systems:
            raise PlanError("preset 'suppression': name the moderators under [systems]")
        filled: dict[str, Any] = {}
        in_blocks = plan.engine.type != "memory"
        if not plan.metrics:
            filled["metrics"] = _metrics(options, in_blocks)
        if not plan.analyses:
            voted = not in_blocks and has_columns(plan.data.texts, "yes", "no")
            filled["analyses"] = _analyses(options, voted, in_blocks)
        if plan.title == type(plan).model_fields["title"].default:
            filled["title"] = "Whose acceptable speech is flagged?"
        return plan.model_copy(update=filled)

    def prepare(self, plan: Plan, data: Dataset) -> Dataset:
        """Return the data with the identity groups that its texts name."""
        return tag_texts(plan, data)

    def tagger(self, plan: Plan) -> Tagger | None:
        """Return what tags texts one by one; None where the groups of the data stay."""
        options = _options(plan)
        if options.punctuation:
            raise PlanError("preset 'suppression': punctuation goes by data set, in memory only")
        if plan.data.text_groups is not None and options.groups == "given":
            if options.sub_identities:
                raise PlanError(
                    "preset 'suppression': sub_identities beside given groups are tagged in memory "
                    'only; leave them out, or set groups = "tagged"'
                )
            return None
        terms = terms_of(options.terms, options.path, options.mode)
        return IdentityTagger(terms, options.mode, options.sub_identities)


def _metrics(options: SuppressionOptions, in_blocks: bool = False) -> tuple[dict[str, Any], ...]:
    ratios = ("suppression", "worst-suppression", "pooled-suppression")
    both: dict[str, Any] = {} if in_blocks else {"families": True}
    other = {} if options.outcome == "flagged" else {"outcome": options.outcome}
    result: list[dict[str, Any]] = [
        {"name": name, **both, "events": options.events, **other} for name in ratios
    ]
    result.insert(1, result[0] | {"against": "outside"})
    result.append({"name": "false-positive-rate", **both, **other})
    # Medians do not merge: in blocks they are filled in, and refused, when someone asked for them.
    if options.scores and (not in_blocks or "scores" in options.model_fields_set):
        some = {"categories": list(options.categories)} if options.categories else {}
        result += [{"name": name, **both, "by": "scores", **some} for name in ratios[:2]]
        result.append({"name": "median-score", **both, **some})
    result.append({"name": "undecided-share"})
    if options.instability:
        result.append({"name": "decision-instability", **both})
    return tuple(result)


def _analyses(
    options: SuppressionOptions, voted: bool, in_blocks: bool = False
) -> tuple[dict[str, Any], ...]:
    listed: dict[str, Any] = {"terms": options.terms} if options.terms else {}
    listed |= {"path": options.path} if options.path else {}
    special = {"punctuation": options.punctuation} if options.punctuation else {}
    result: list[dict[str, Any]] = [
        {"name": "set-sizes"},
        {"name": "identity-tag-counts", **listed, **special},
        {"name": "tag-validation", **listed, "mode": options.mode},
        {
            "name": "suppression-counts",
            "outcome": options.outcome,
            "categories": options.categories,
        },
    ]
    if voted:
        result.append({"name": "rater-agreement"})
    if options.scores:
        result.append({"name": "score-spread"})
    if in_blocks:
        result = []  # those that were asked for follow, and are refused
    if options.regressions:
        names = ["flag-regression", *(["score-regression"] if options.scores else [])]
        how = {"mode": options.mode, "errors": options.errors}
        result += [{"name": name, **listed, **how} for name in names]
    if options.before:
        result.append({"name": "drift", "before": options.before, "after": options.after})
    if options.old:
        pair = {"old": options.old, "new": options.new, "match": options.match}
        result.append({"name": "migration", **pair})
    return tuple(result)
