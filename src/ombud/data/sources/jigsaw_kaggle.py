"""Comments with toxicity and identities as crowd workers saw them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.sources.labelled import HATE_HARMS, file_in, read_csv, text_dataset
from ombud.errors import DataError
from ombud.registry import source

IDENTITY_COLUMNS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("race", "non-white"): ("asian", "black", "latino", "other_race_or_ethnicity"),
    ("race", "white"): ("white",),
    ("gender", "men"): ("male",),
    ("gender", "women"): ("female",),
    ("religion", "christian"): ("christian",),
    ("religion", "non-christian"): (
        "atheist", "buddhist", "hindu", "jewish", "muslim", "other_religion",
    ),
    ("sexuality", "lgbt"): (
        "bisexual", "homosexual_gay_or_lesbian", "other_gender", "other_sexual_orientation",
        "transgender",
    ),
    ("sexuality", "straight"): ("heterosexual",),
    ("disability", "disability"): (
        "intellectual_or_learning_disability", "other_disability", "physical_disability",
        "psychiatric_or_mental_illness",
    ),
}  # fmt: skip
"""For each attribute and group, the columns of the data set that stand for it."""


LabelType = Literal[
    "toxicity",
    "severe_toxicity",
    "obscene",
    "sexual_explicit",
    "identity_attack",
    "insult",
    "threat",
    "any",
    "all",
]
TYPES = ("severe_toxicity", "obscene", "sexual_explicit", "identity_attack", "insult", "threat")
"""The six types of harm, beside overall toxicity."""


@source("jigsaw-kaggle")
def jigsaw_kaggle(
    path: str | Path, *, threshold: float = 0.5, label: LabelType = "toxicity"
) -> Dataset:
    """Comments of Civil Comments that were labelled for identities by people (Borkan et al. 2019).

    Comments that nobody labelled for identities are left out and counted. The groups of the data
    are those labels, not tags by term lists.

    Licence: CC0 (comments), as Kaggle's competition states. Known harms: toxic comments and slurs.

    Parameters
    ----------
    path
        ``all_data.csv``, ``train.csv``, or their folder: `comment_text`, `toxicity` or `target`,
        and the identity columns.
    threshold
        From which share of annotators a comment is toxic, or names an identity.
    label
        What makes a comment one that should be flagged: ``toxicity``, or one of the six types of
        harm (`severe_toxicity`, `obscene`, `sexual_explicit`, `identity_attack`, `insult`,
        `threat`); ``any`` for some of all seven; ``all`` measures overall toxicity (which counts
        for all texts) and each type, with each text once.
    """
    if not 0 < threshold <= 1:
        raise DataError("jigsaw-kaggle", [f"threshold is {threshold}; expected above 0, up to 1"])
    file = file_in(path, "all_data.csv", "train.csv")
    known = [column for columns in IDENTITY_COLUMNS.values() for column in columns]
    table = read_csv(file, ("id", "comment_text", *known))
    toxicity = next((name for name in ("toxicity", "target") if name in table.columns), None)
    if toxicity is None:
        raise DataError(file.name, ["neither column 'toxicity' nor 'target' is there"])
    kinds: dict[str, list[str]] = {"toxicity": [toxicity], "any": [toxicity, *TYPES]}
    asked = kinds.get(label, [label])
    typed = {f"label:{name}": name for name in TYPES} if label == "all" else {}
    if label == "all":
        asked, typed = [toxicity], {"label:overall": toxicity} | typed
    missing = [name for name in (*asked, *typed.values()) if name not in table.columns]
    if missing:
        types = ", ".join(("toxicity", *TYPES, "any"))
        fault = f"label {label!r} needs the column {missing[0]!r}, which is not there"
        raise DataError(file.name, [f"{fault}; known labels: {types}"])
    wanted = list(dict.fromkeys([toxicity, *asked, *typed.values(), *known]))
    numbers = table.select(pl.col(wanted).cast(pl.Float64, strict=False))
    labelled = numbers.select(pl.any_horizontal(pl.col(known).is_not_null())).to_series()
    dropped = []
    if not labelled.all():
        reason = "nobody labelled them for identities"
        count = int((~labelled).sum())
        dropped.append(Exclusion("texts", "comments", count, reason, table.height))
    table, numbers = table.filter(labelled), numbers.filter(labelled)
    members = np.column_stack(
        [
            numbers.select(
                pl.any_horizontal(pl.col(columns).fill_null(0.0) >= threshold)
            ).to_series()
            for columns in IDENTITY_COLUMNS.values()
        ]
    )
    groups = Grouping(
        Vocabulary(table["id"].to_numpy()),
        tuple(group for _, group in IDENTITY_COLUMNS),
        members,
        tuple(attribute for attribute, _ in IDENTITY_COLUMNS),
    )
    return text_dataset(
        table.select(
            "id",
            pl.col("comment_text").alias("text"),
            numbers.select(pl.any_horizontal(pl.col(asked) >= threshold))
            .to_series()
            .alias("label"),
            *(numbers[column].ge(threshold).alias(name) for name, column in typed.items()),
        ),
        family="traditional",
        files=[file],
        exclusions=dropped,
        groups=groups,
        name="jigsaw-kaggle",
        title="Civil Comments with identities labelled by people"
        + ("" if label in ("toxicity", "all") else f", {label}"),
        source="kaggle.com/c/jigsaw-unintended-bias-in-toxicity-classification",
        licence="CC0 (comments); the competition's rules",
        citation="Borkan, Dixon, Sorensen, Thain and Vasserman (2019), Nuanced Metrics for "
        "Measuring Unintended Bias with Real Data, WWW Companion.",
        known_harms=HATE_HARMS,
        unknowns=f"Toxic, and in a group, from {threshold:g} of the annotators on; a missing "
        "toxicity is unknown; an identity nobody was asked about counts as not named.",
    )
