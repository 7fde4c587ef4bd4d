"""The compiled outcomes of the speech-suppression paper: texts, identities, labels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from ombud.data.dataset import Dataset
from ombud.data.frames import numbered
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.sources.labelled import HATE_HARMS, file_in, read_csv, text_dataset
from ombud.errors import DataError
from ombud.registry import source
from ombud.taxonomy.terms import ATTRIBUTES, load_terms

OUTCOMES: Mapping[str, Mapping[str, str]] = {
    "openai": {"flagged": "openAI_flag", "score": "openAI_score"},
    "anthropic": {"flagged": "anthropic_flag"},
    "llama-guard": {"flagged": "llama_guard_flag"},
    "perspective": {"score": "jigsaw_score"},
    "google": {"score": "google_score"},
}
"""Where the file has the outcomes of each system, for ``columns`` of a recorded moderator."""

_FAMILIES = {"genai": "generative-ai", "traditional": "traditional"}


@source("speech-suppression")
def speech_suppression(
    path: str | Path,
    *,
    label: str = "true_label",
    identities: Literal["groups", "sub-identities"] = "groups",
) -> Dataset:
    """The authors' compiled file, for the published outcomes of five moderators (Proebsting 2025).

    One row for each text: its data set, whether it is *GenAI* or *Traditional*, the true label, the
    tagged identities and what each moderator answered. The answers are read by a recorded
    moderator of the same file, with the columns of `OUTCOMES`::

        [systems.openai]
        type = "recorded"
        path = "genAI_combined.csv"
        columns = { id = "index", flagged = "openAI_flag", score = "openAI_score" }

    Groups are those of the file, so they are what the published code tagged.

    Licence: none is stated. Known harms: hate speech and slurs.

    Parameters
    ----------
    path
        The compiled CSV file, with `index`, `text`, `dataset_name`, `data_type`, `Big_identity` and
        the label.
    label
        The column that says what should be flagged: ``true_label``, or a type of harm such as
        ``insult`` or ``H``; rows where it is missing are unknown. ``PG score`` and ``PG-13 score``
        say what is appropriate, so they count the other way round.
    identities
        Whether `Big_identity` or `Sub_Identities` makes the groups.
    """
    file = file_in(path, "genAI_combined.csv", "traditional_combined.csv")
    column = "Big_identity" if identities == "groups" else "Sub_Identities"
    needed = ("index", "text", "dataset_name", "data_type", column, label)
    table = read_csv(file, needed)
    marks = table[label].cast(pl.String).str.to_lowercase().str.strip_chars()
    yes, no = marks.is_in(["1", "1.0", "true"]), marks.is_in(["0", "0.0", "false"])
    if label.lower().startswith("pg"):
        yes, no = no, yes
    if not (yes.any() or no.any()):
        raise DataError(file.name, [f"column {label!r} has no 0, 1, true or false"])
    truth = pl.select(pl.when(yes).then(True).when(no).then(False)).to_series().alias("label")
    family = (
        table["data_type"]
        .cast(pl.String)
        .str.to_lowercase()
        .replace_strict(_FAMILIES, default="other")
    )
    sets = table["dataset_name"].cast(pl.String).fill_null("unnamed")
    if "subset_name" in table.columns:
        subset = table["subset_name"].cast(pl.String).fill_null("-")
        parts = zip(sets.to_list(), subset.to_list(), strict=True)
        sets = pl.Series([a if b in ("-", "") else f"{a}: {b}" for a, b in parts])
    made = table.select(pl.col("index", "text").cast(pl.String)).rename({"index": "id"})
    # As a recorded moderator reads the same column.
    made = numbered(made, ["id"]).with_columns(truth, family.alias("family"), sets.alias("set"))
    return text_dataset(
        made,
        family="traditional",
        files=[file],
        groups=_groups(table[column], made["id"], sub=identities == "sub-identities"),
        name="speech-suppression",
        title="Compiled texts and outcomes of the speech-suppression paper",
        source="github.com/genAIaudits/speech-suppression",
        licence="not stated",
        citation="Proebsting, Anigboro, Crawford, Metaxa and Friedler (2025), Identity-related "
        "Speech Suppression in Generative AI Content Moderation, EAAMO.",
        known_harms=HATE_HARMS,
        unknowns=f"A text without a value of {label} is unknown.",
    )


def _groups(named: pl.Series, ids: pl.Series, *, sub: bool) -> Grouping | None:
    """Return the groups of lists such as ``women;lgbt-related``."""
    lists = named.cast(pl.String).fill_null("").str.to_lowercase().str.split(";").to_list()
    cleaned = [[_group(one) for one in some if one.strip()] for some in lists]
    found = {group for some in cleaned for group in some} - {"none"}
    if not found:
        return None
    order = load_terms("terms-identity@1").groups
    names = tuple(sorted(found) if sub else [g for g in order if g in found])
    names += tuple(sorted(found - set(names)))
    members = np.zeros((len(cleaned), len(names)), dtype=bool)
    place = {name: index for index, name in enumerate(names)}
    for row, some in enumerate(cleaned):
        for group in some:
            if group in place:
                members[row, place[group]] = True
    attributes = tuple(ATTRIBUTES.get(name, name) for name in names)
    return Grouping(Vocabulary(ids.to_numpy()), names, members, attributes)


def _group(name: str) -> str:
    name = name.strip()
    return "lgbt" if name == "lgbt-related" else name
