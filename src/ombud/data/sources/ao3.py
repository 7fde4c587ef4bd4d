"""AO3: kudos on fan fiction, with the warnings of the Webis Trigger Warning Corpus."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from ombud.data.card import Card
from ombud.data.card_facts import filter_facts, history_facts, label_facts
from ombud.data.csv_columns import open_columns
from ombud.data.dataset import Dataset, read_folder
from ombud.data.exclusions import Exclusion
from ombud.data.faults import readable
from ombud.data.ids import Vocabulary
from ombud.data.interactions import Interactions
from ombud.data.items import Items
from ombud.data.labels import Labels
from ombud.data.sources._build import Filter, filtered_interactions, history_matrix
from ombud.data.sources.published_figures import beside_published
from ombud.errors import DataError
from ombud.files import hash_file
from ombud.registry import source
from ombud.taxonomy import load_taxonomy

_NOT_LABELS = {"", "work_id", "n_hits", "n_kudos", "n_users", "users", "warnings_fine_open"}
_HARMS = (
    "Who likes which fan fiction is sensitive. Kudos are public at the source, so anyone can match "
    "a pseudonymous history with the public lists: pseudonyms are not anonymity. Do not publish "
    "rows. Names of warnings describe distressing content."
)


def _read_sensitivity(
    path: Path, scratch: Path | None
) -> tuple[pl.DataFrame, tuple[str, ...], tuple[Exclusion, ...]]:
    """Return works with hits, kudos and one column for each warning, named by label id."""
    taxonomy = load_taxonomy("warnings-ao3@1")
    if not path.is_file():
        raise DataError(path.name, [f"there is no file {path}"])
    with readable(path.name):
        header = pl.scan_csv(path, infer_schema=False).collect_schema().names()
    others = [name for name in header if name not in _NOT_LABELS and not name.startswith("Unnamed")]
    others = [name for name in others if not name.startswith("column_")]
    refused = [name for name in others if taxonomy.is_refused(name)]
    resolved = {name: taxonomy.resolve(name) for name in others if name not in refused}
    strange = sorted(name for name, label in resolved.items() if label not in taxonomy.ids)
    labels = {label: name for name, label in resolved.items() if label in taxonomy.ids}
    absent = [label for label in taxonomy.ids if label not in labels]
    if absent:
        faults = [f"no column for the warning {label!r}" for label in absent]
        raise DataError(path.name, [*faults, "the 36 warnings of warnings-ao3@1 were expected"])
    wanted: dict[str, tuple[str | int, object]] = {"work_id": ("work_id", pl.Int64)}
    wanted |= {name: (name, pl.Float64) for name in ("n_hits", "n_kudos") if name in header}
    wanted |= {label: (labels[label], pl.Int8) for label in taxonomy.ids}
    with open_columns(path, wanted, scratch=scratch) as columns:
        table = pl.DataFrame([columns.column(name) for name in wanted])
    ranges = table.select(pl.col(taxonomy.ids).is_between(0, 1).all()).row(0)
    faults = [
        f"column {labels[label]!r} holds values other than 0 and 1"
        for label, good in zip(taxonomy.ids, ranges, strict=True)
        if not good
    ]
    if table["work_id"].n_unique() < table.height:
        faults.append("column 'work_id' repeats an id; one row for each work was expected")
    if faults:
        raise DataError(path.name, faults)
    dropped = []
    if refused:
        reason = "labels that ombud refuses to store"
        dropped.append(Exclusion("labels", "columns", len(refused), reason, len(others)))
    if strange:
        reason = f"not warnings of {taxonomy.key}: {', '.join(strange[:5])}"
        dropped.append(Exclusion("labels", "columns", len(strange), reason, len(others)))
    return table.sort("work_id"), taxonomy.ids, tuple(dropped)


def build_ao3(
    sensitivity: str | Path,
    interactions: str | Path,
    *,
    keep: Filter | None = None,
    scratch: Path | None = None,
    rng: np.random.Generator | None = None,
) -> Dataset:
    """Build AO3 from the two published tables.

    Parameters
    ----------
    sensitivity
        ``ao3_sensitivity_table.csv``: `work_id`, `n_hits`, `n_kudos`, and a column of 0 and 1 for
        each of 36 warnings. The columns `users` and `warnings_fine_open` are not read.
    interactions
        ``ao3_interaction_table.csv``: `user_id`, `work_id`. User ids may be numbers or names; they
        are replaced by random pseudonyms and written nowhere.
    keep
        How to filter; default, at least 3 interactions to the fixed point.
    scratch
        Where large temporary files go (they hold the user ids while the build runs).
    rng
        For tests; by default nobody can repeat the pseudonyms.
    """
    paths = Path(sensitivity), Path(interactions)
    table, names, dropped = _read_sensitivity(paths[0], scratch)
    wanted: dict[str, tuple[str | int, object]] = {
        "user": ("user_id", None),
        "item": ("work_id", pl.Int64),
    }
    with open_columns(paths[1], wanted, scratch=scratch) as columns:
        people, users = columns.encode("user")
        shape_users = len(people)
        del people  # the names are needed no longer
        works, items = columns.encode("item")
    matrix, merged = history_matrix(users, items, None, (shape_users, len(works)), paths[1].name)
    del users, items
    listed = Vocabulary(table["work_id"].to_arrow())
    rows = listed.codes(works.arrow)
    history, core = filtered_interactions(
        matrix,
        works,
        keep or Filter(),
        permitted=rows >= 0,
        outside="they are not in the sensitivity table",
        merged=merged,
        rng=rng,
    )
    del matrix
    unread = len(listed) - int(np.count_nonzero(rows >= 0))
    if unread:
        reason = "they are in the sensitivity table but have no kudos"
        dropped += (Exclusion("labels", "works", unread, reason, len(listed)),)
    kept = table[listed.codes(history.items.arrow)]
    states = kept.select(names).to_numpy().astype(np.int8, copy=False)
    labels = Labels(
        history.items,
        names,
        np.ascontiguousarray(states),
        None,
        None,
        "as applied; absent counts as no",
        dropped,
    )
    facts = history_facts(history, "work") | label_facts(labels) | filter_facts(core)
    facts["mean_interactions"] = facts["mean_interactions_per_work"]
    for column, name in (("n_hits", "mean_hits"), ("n_kudos", "mean_kudos")):
        if column in kept.columns:
            facts[name] = float(kept[column].to_numpy().mean())
    card = Card(
        name="ao3",
        title="AO3: kudos on fan fiction with content warnings",
        source="Archive of Our Own, collected by Kovacs, Kazemian, Chee and Dean "
        "(huggingface.co/datasets/sdeangroup/NavigatingSensitivity); warnings of the Webis Trigger "
        "Warning Corpus",
        licence="The terms that the publishers state; see the page of the data set.",
        citation="Amelia Kovacs, Kimia Kazemian, Jerry Chee and Sarah Dean, Datasets for "
        "Navigating Sensitive Topics in Recommendation Systems. Matti Wiegmann et al., Trigger "
        "Warning Assignment as a Multi-Label Document Classification Problem, ACL 2023.",
        known_harms=_HARMS,
        unknowns="A warning that is not applied counts as 'no', as in the paper; authors may have "
        "left warnings out, so shares of warnings are lower bounds.",
        hashes={path.name: hash_file(path) for path in paths},
        facts=facts | beside_published(facts, "AO3"),
        dropped=tuple(str(e) for e in (*history.exclusions, *labels.exclusions)),
    )
    return Dataset(interactions=history, labels=labels, items=_numbers(kept, history), card=card)


def _numbers(kept: pl.DataFrame, history: Interactions) -> Items | None:
    """Return hits and kudos of each work, where the table has them."""
    columns = {"n_hits": "hits", "n_kudos": "kudos"}
    found = {new: kept[old] for old, new in columns.items() if old in kept.columns}
    if not found:
        return None
    whole = {
        name: series.cast(pl.Int64, strict=False).cast(pl.String).to_numpy().astype(object)
        for name, series in found.items()
    }
    status = {
        name: np.where(series.is_not_null().to_numpy(), "known", "unknown").astype(object)
        for name, series in found.items()
    }
    return Items(history.items, whole, status)


@source("ao3")
def ao3(path: str | Path) -> Dataset:
    """AO3 kudos and warnings, built before with ``ombud data build ao3``.

    Implicit feedback: a user gave kudos to a work, or nothing is known. Each work has 36 warnings,
    present or absent. Pseudonyms were drawn once, at the build.

    Licence: the terms that the publishers state. Known harms: who likes what is sensitive, and
    kudos are public at the source, so pseudonyms are not anonymity.

    Parameters
    ----------
    path
        The folder that the build wrote.
    """
    return read_folder(path, "ao3")
