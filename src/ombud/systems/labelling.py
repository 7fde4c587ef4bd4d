"""Labels from texts: a system reads what is said about each item, and its errors are measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.data.decisions import Decisions, Outcome
from ombud.data.exclusions import Exclusion
from ombud.data.frames import Column, Frame, read_table
from ombud.data.ids import Vocabulary
from ombud.data.label_errors import WITHDRAWN, LabelErrors, Transport
from ombud.data.labels import Labels, LabelState
from ombud.data.texts import Texts
from ombud.errors import AuditedSystemError, DataError, PlanError
from ombud.systems.base import Moderator
from ombud.systems.detectors.base import Detector

_FEWEST = 20


def labels_from_texts(
    items: Frame,
    systems: Mapping[str, Moderator],
    validation: Frame,
    *,
    transport: Transport = "error-rates",
) -> Labels:
    r"""Return labels of items that systems read off their texts, with their measured errors.

    A system's *yes* is not the truth. On validation texts its answers are compared with labels
    that people gave; from then on every share and every amplification (as a ratio of means) is
    corrected for its errors, and the interval holds three doubts: which users there are, how often
    the system is right, and which items it is wrong about. Other metrics take its answers as they
    are.

    Parameters
    ----------
    items
        Has `item` and `text`, such as a synopsis; an item whose text is missing stays unknown.
    systems
        For each label, the moderator or detector that looks for it.
    validation
        Has `label`, `text` and `present` (true or false): texts that people labelled, that no
        system was trained on, with and without the label, at least 20 for each.
    transport
        ``error-rates``: a system errs as often wherever an item stands; shares are corrected for
        it. Where validation texts are texts of items, an audit checks this by how often items are
        shown. ``calibration`` is refused: `ombud.data.label_errors.WITHDRAWN`.

    Returns
    -------
    States as the systems decided, `Labels.probability` as their errors say. Items that a system
    gave no decision for are unknown, and counted.

    Raises
    ------
    DataError
        With too few validation texts, or none that the system says yes (or no) to.
    PlanError
        When a detector was trained on validation texts.

    Examples
    --------
    >>> from ombud.systems.moderators import KeywordModerator
    >>> plots = {"item": [1, 2], "text": ["A murder at sea.", "A picnic."]}
    >>> said = ["a murder", "a walk"] * 20
    >>> known = {"label": ["violence"] * 40, "text": [f"{s} {i}" for i, s in enumerate(said)],
    ...          "present": [i % 2 == 0 or i % 19 == 0 for i in range(40)]}
    >>> labels = labels_from_texts(
    ...     plots, {"violence": KeywordModerator(terms=["murder"])}, known
    ... )
    >>> labels.states.ravel().tolist(), labels.probability().round(2).ravel().tolist()
    ([1, 0], [0.98, 0.07])
    """
    if not systems:
        raise PlanError("name a system for each label that is wanted")
    if transport != "error-rates":
        raise PlanError(WITHDRAWN)
    table = read_table(
        items, [Column("item", "id"), Column("text", "text", nullable=True)], "items"
    )
    if table["item"].n_unique() < table.height:
        raise DataError("items", ["column 'item' repeats an id; one text for each is expected"])
    known = read_table(
        validation,
        [Column("label", "category"), Column("text", "text"), Column("present", "flag")],
        "validation",
    )
    strange = sorted(set(known["label"].to_list()) - set(systems))
    if strange:
        raise DataError("validation", [f"no system looks for {', '.join(map(repr, strange))}"])
    named, rows = Vocabulary.encode(table["item"].to_arrow())
    place = np.empty(len(rows), dtype=np.int64)
    place[rows] = np.arange(len(rows))
    texts = table["text"][place.tolist()].to_list()
    names = tuple(sorted(systems))
    states = np.full((len(named), len(names)), LabelState.UNKNOWN, dtype=np.int8)
    said = np.full(states.shape, -1, dtype=np.int8)
    truth = np.full(states.shape, -1, dtype=np.int8)
    counts = np.zeros((2, 2, len(names)), dtype=np.int64)
    exclusions = []
    empty = sum(text is None for text in texts)
    if empty:
        exclusions.append(Exclusion("labels", "items", empty, "they have no text", len(named)))
    there = np.array([text is not None for text in texts])
    for column, name in enumerate(names):
        some = known.filter(pl.col("label") == name)
        present = some["present"].to_numpy().astype(bool)
        checked = some["text"].to_list()
        _check(name, systems[name], checked)
        here = _ask(systems[name], [text for text in texts if text is not None])
        past = _ask(systems[name], checked)
        states[there, column] = np.where(here.decided, here.outcomes, np.int8(LabelState.UNKNOWN))
        of_items, of_known = _classes(here), _classes(past)
        said[there, column] = of_items
        people = dict(zip(map(str.strip, checked), present.tolist(), strict=True))
        truth[:, column] = [-1 if x is None else int(people.get(x.strip(), -1)) for x in texts]
        for k in range(counts.shape[1]):
            counts[0, k, column] = int((present & (of_known == k)).sum())
            counts[1, k, column] = int((~present & (of_known == k)).sum())
        lost = int((of_items < 0).sum())
        if lost:
            reason = f"{systems[name].name} gave no decision about {name}"
            exclusions.append(Exclusion("labels", "items", lost, reason, int(there.sum())))
    errors = LabelErrors(said, counts[0], counts[1], transport, truth)
    who = ", ".join(dict.fromkeys(systems[name].name for name in names))
    rule = f"as {who} says of texts; errors measured on {known.height:,} texts ({transport})"
    return Labels(named, names, states, None, None, rule, tuple(exclusions), errors)


def _check(label: str, system: Moderator, texts: Sequence[str]) -> None:
    if len(texts) < _FEWEST:
        raise DataError(
            "validation",
            [f"{label} has {len(texts)} texts; at least {_FEWEST} are needed to measure errors"],
        )
    if isinstance(system, Detector):
        trained = system.seen(texts).get("training", 0)
        if trained:
            raise PlanError(
                f"{trained:,} of {len(texts):,} validation texts of {label} stand in the training "
                f"texts of {system.name}: errors on them say nothing; take other texts"
            )


def _ask(system: Moderator, texts: Sequence[str]) -> Decisions:
    column = np.array([*texts, None], dtype=object)[:-1]
    unknown = np.full(len(texts), -1, dtype=np.int8)
    found = system.moderate(Texts(np.arange(len(texts)), column, unknown))
    if len(found) != len(texts) or not np.array_equal(found.ids, np.arange(len(texts))):
        raise AuditedSystemError(
            f"{system.name} was asked about {len(texts):,} texts and answered {len(found):,}, or "
            "in another order"
        )
    return found


def _classes(found: Decisions) -> NDArray[np.int8]:
    said = (found.outcomes == Outcome.FLAGGED).astype(np.int8)
    return np.where(found.decided, said, np.int8(-1)).astype(np.int8)
