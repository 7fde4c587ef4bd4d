"""The delicate-text audit: how well do detectors find it, where do they fail, what sways them?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ombud.audits.plan import Plan
from ombud.audits.presets import Options, Preset
from ombud.data.dataset import Dataset
from ombud.data.frames import has_columns
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.questions.delicate.metrics import labelled_texts
from ombud.questions.delicate.options import DelicateOptions, GroupKind, dictionary_of
from ombud.questions.delicate.ratings import HIGHEST_RISK, read_ratings
from ombud.registry import preset
from ombud.taxonomy.dictionary import Dictionary
from ombud.taxonomy.model import load_crosswalk
from ombud.text.folding import detect_languages
from ombud.text.matching import TermMatcher, as_texts
from ombud.text.tagging import other_languages

LENGTHS = ((-1, 50, "up to 50 words"), (50, 200, "51 to 200 words"), (200, None, "over 200 words"))
"""Bands of length, in words: above the first, up to the second."""

Members = dict[str, NDArray[np.bool_]]


def text_groups(
    texts: Texts,
    kinds: Sequence[GroupKind],
    dictionary: Dictionary,
    risk: NDArray[np.int8] | None = None,
) -> Grouping:
    """Return the groups of texts that are not empty.

    A text counts in each of its topics; texts without any term are a group of their own.

    `risk` is the risk class of each text, -1 where there is none.
    """
    members: dict[GroupKind, Members] = {}
    if {"topic", "coarse-topic", "severity", "explicit"} & set(kinds):
        members |= _by_terms(texts, dictionary)
    words = np.array([len(text.split()) for text in as_texts(texts.texts)])
    members["length"] = {
        name: (words > low) & (words <= (np.inf if high is None else high))
        for low, high, name in LENGTHS
    }
    columns_of: tuple[tuple[GroupKind, NDArray[np.object_] | None], ...] = (
        ("source", texts.families), ("set", texts.sets), ("language", texts.languages),
    )  # fmt: skip
    for column_kind, column in columns_of:
        if column is not None:
            named = sorted({str(name) for name in column if name is not None})
            members[column_kind] = {name: column == name for name in named}
    if risk is not None:
        members["risk"] = {str(k): risk == k for k in range(HIGHEST_RISK + 1)}
    names, attributes, columns = [], [], []
    for kind in kinds:
        for name, inside in members.get(kind, {}).items():
            if inside.any():
                names.append(f"{kind}={name}")
                attributes.append(str(kind))
                columns.append(np.asarray(inside, dtype=bool))
    table = np.array(columns, dtype=bool).T.reshape(len(texts), len(names))
    return Grouping(Vocabulary(np.asarray(texts.ids)), tuple(names), table, tuple(attributes))


def _by_terms(texts: Texts, dictionary: Dictionary) -> dict[GroupKind, Members]:
    """Return groups by topic, coarse topic, severity and explicitness."""
    terms = dictionary.terms
    found = TermMatcher([term.text for term in terms], suffixes=("", "s", "es")).match(
        as_texts(texts.texts)
    )
    none = ~np.isin(np.arange(len(texts)), found.text_index)

    def group(values: Sequence[str], order: Sequence[str]) -> Members:
        code = {name: k for k, name in enumerate(order)}
        of = np.array([code.get(value, -1) for value in values], dtype=np.int64)[found.term_index]
        table = np.zeros((len(texts), len(order)), dtype=bool)
        table[found.text_index[of >= 0], of[of >= 0]] = True
        return {name: table[:, k] for k, name in enumerate(order)}

    topics = group([term.topic for term in terms], dictionary.topics)
    coarse: Members = {}
    nobody = np.zeros(len(texts), dtype=bool)
    for fine, broad, relation in load_crosswalk("delicate@1", "delicate-coarse@1").rows:
        if fine in topics and relation in ("exact", "broader"):
            coarse[broad] = coarse.get(broad, nobody) | topics[fine]
    return {
        "topic": topics | {"no term": none},
        "coarse-topic": coarse | {"no term": none},
        "severity": group([term.severity for term in terms], dictionary.scale),
        "explicit": {"a term": ~none, "no term": none},
    }


_CARE = (
    "Delicate texts may hurt those who read them. Use beyond research needs your own legal and "
    "privacy check."
)


@preset("delicate")
class DelicatePreset(Preset):
    """Measure how well detectors find delicate texts, where they fail, and what sways them.

    The evaluation of *DeTexD: A Benchmark Dataset for Delicate Text Detection*, on any labelled
    texts and any moderators. It fills in what the plan leaves open:

    - **labels**: texts without any label get that of their raters (`ratings`): delicate when most
      rate 3 or more.
    - **groups**: by topic, severity, explicitness, length, source, set, language and risk, where
      the data tells them. Groups that the data brings along stay.
    - **metrics**: F1, precision, recall, accuracy, share flagged, false-positive rate.
    - **analyses**: comparison of detectors (counts, ROC areas, tuned thresholds marked #, paired
      tests), precision at other base rates, stability under repeats, terms that stand out among
      errors, long texts cut and in windows, texts that a detector has seen before, the three labels
      and agreement of raters, and bias tests; with votes beside the texts, rates where raters agree
      and against soft labels; with the files for it, several labels against each other, heads and
      rules of detectors, and published figures.
    """

    options: ClassVar[type[Options]] = DelicateOptions

    def complete(self, plan: Plan) -> Plan:
        """Return the plan with metrics and analyses filled in."""
        options = DelicateOptions(**plan.options)
        if not plan.systems:
            raise PlanError("preset 'delicate': name the detectors or moderators under [systems]")
        filled: dict[str, Any] = {}
        if not plan.metrics:
            names = ("f1", "precision", "recall", "accuracy")
            filled["metrics"] = (
                *({"name": f"detection-{name}"} for name in names),
                {"name": "flag-share"},
                {"name": "false-positive-rate"},
            )
        if not plan.analyses:
            voted = has_columns(plan.data.texts, "yes", "no")
            filled["analyses"] = _analyses(options) + ({"name": "rater-agreement"},) * voted
        if plan.title == type(plan).model_fields["title"].default:
            filled["title"] = "Which delicate texts are found, and which are missed?"
        return plan.model_copy(update=filled)

    def prepare(self, plan: Plan, data: Dataset) -> Dataset:
        """Return the data with labels from ratings where it has none, and groups of texts."""
        options = DelicateOptions(**plan.options)
        texts: Texts = data.need("texts", "preset 'delicate'")
        risk = None
        if options.ratings:
            labels = read_ratings(options.ratings, texts).labels
            risk = labels.risk
            if not np.any(texts.truth >= 0):
                texts = replace(texts, truth=labels.delicate.astype(np.int8))
        if options.language == "detect" and texts.languages is None:
            texts = replace(texts, languages=detect_languages(as_texts(texts.texts)))
        texts = replace(texts, exclusions=(*texts.exclusions, *other_languages(texts)))
        data = replace(data, texts=texts)
        labelled_texts(data, "preset 'delicate'")
        words = dictionary_of(options.dictionary, options.path)
        kinds = [kind for kind in options.groups if plan.by is None or kind in plan.by]
        groups = text_groups(texts, kinds, words, risk)
        harms = f"{data.card.known_harms} {_CARE}".strip()
        card = data.card.model_copy(update={"known_harms": harms})
        return replace(data, text_groups=_joined(data.text_groups, groups), card=card)


def _joined(given: Grouping | None, added: Grouping) -> Grouping:
    """Return both sets of groups over the same texts; what the data brings along comes first."""
    if given is None:
        return added
    new = [k for k, name in enumerate(added.names) if name not in given.names]
    return Grouping(
        added.units,
        (*given.names, *(added.names[k] for k in new)),
        np.column_stack([given.aligned(added.units.ids), added.members[:, new]]),
        (*given.attributes, *(added.attributes[k] for k in new)),
    )


def _analyses(options: DelicateOptions) -> tuple[dict[str, Any], ...]:
    listed: dict[str, Any] = {"dictionary": options.dictionary}
    listed |= {"path": str(options.path)} if options.path else {}
    result: list[dict[str, Any]] = [
        {"name": "detector-comparison"},
        {"name": "base-rates", "rates": list(options.base_rates)},
        {"name": "decision-stability"},
        {"name": "error-terms", "show": options.show_terms, "examples": options.examples, **listed},
        {"name": "seen-texts"},
        {"name": "long-texts"},
        {"name": "function-pass-rates"},
    ]
    if options.ratings:
        result.append({"name": "rating-labels", "ratings": str(options.ratings)})
    if options.notions:
        result.append({"name": "label-cross-table", "labels": str(options.notions)})
    if options.train:
        heads: dict[str, Any] = {"train": str(options.train), "model": options.model}
        heads |= {"against_bias": list(options.against_bias)} if options.against_bias else {}
        heads |= {"ratings": str(options.ratings)} if options.ratings else {}
        heads |= {"base": str(options.base), "updates": options.updates} if options.base else {}
        result.append({"name": "head-comparison", **heads})
    if options.published:
        result.append({"name": "published-figures"})
    if options.published_file:
        result.append({"name": "published-figures", "figures": str(options.published_file)})
    if options.bias != "none":
        tests: dict[str, Any] = {"ask": options.bias, "most": options.swapped_texts}
        tests |= {"sentence": options.sentence} if options.sentence else {}
        paths = {"winogender": options.winogender, "swap": options.swap}
        tests |= {name: str(path) for name, path in paths.items() if path}
        if options.templates or options.values:
            tests |= {"templates": list(options.templates), "values": list(options.values)}
        result.append({"name": "bias-tests", **tests})
    return tuple(result)
