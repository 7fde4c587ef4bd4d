"""Several sources of texts as one data set."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ombud import registry
from ombud.data.card import Card
from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.tables import read_table_file
from ombud.data.texts import Texts
from ombud.errors import DataError
from ombud.files import hash_file
from ombud.registry import source


@source("together")
@source("combined")
def combined(parts: list[dict[str, Any]]) -> Dataset:
    """Texts of several sources, such as traditional and generative ones, in one audit.

    Ids get the name of their source before them, and that name is the `set` of each text, so that
    results stand by set, by family and for all. Clusters stay within their source, and a text of a
    source without clusters is a cluster of its own. Groups that sources state are kept; a text of
    a source that does not state a group is outside it.

    Licence and known harms: those of the parts.

    Parameters
    ----------
    parts
        For each, a ``source`` and its arguments; with ``name`` it is called otherwise than its
        source, so that one source can stand twice, say with two parts of its texts; with
        ``groups``, a table of `id` and `group` (or what the source itself takes) says which groups
        its texts belong to. A text that
        stands in two parts of one source counts once, with the label of the first: a part whose
        texts all stand in an earlier one, under a second label definition, is refused.
    """
    if len(parts) < 2:
        raise DataError("combined", [f"{len(parts)} parts; two or more were expected"])
    result: list[Dataset] = []
    sources: list[str] = []
    for part in parts:
        options = dict(part)
        name = options.pop("source", None)
        if name is None:
            raise DataError("combined", [f"a part names no source: {sorted(options)}"])
        called = options.pop("name", None)
        table = None
        if "groups" not in signature(registry.get("source", str(name))).parameters:
            table = options.pop("groups", None)
        made = registry.create("source", str(name), options)
        if table is not None:
            made = _grouped(made, table)
        if called is not None:
            made = replace(made, card=made.card.model_copy(update={"name": str(called)}))
        if made.texts is None:
            raise DataError("combined", [f"source {name!r} has no texts"])
        result.append(made)
        sources.append(str(name))
    cards = [data.card for data in result]
    if len({card.name for card in cards}) < len(cards):
        raise DataError(
            "combined", ["two parts have the same name; ids would not differ (give one a name)"]
        )
    result = _each_text_once(result, sources)
    return Dataset(texts=_joined(result), text_groups=_groups(result), card=_card(cards))


def _grouped(data: Dataset, table: str | Path) -> Dataset:
    """Return a part with the groups of a table; ids of other texts are counted."""
    groups: Grouping = read_table_file("text_groups", table)
    texts: Texts = data.need("texts", "a table of groups")
    file = Path(table)
    card = data.card.model_copy(update={"hashes": {**data.card.hashes, file.name: hash_file(file)}})
    lost = int((Vocabulary(texts.ids).codes(groups.units.ids) < 0).sum())
    if lost:
        reason = "they are in the table of groups but are not among the texts"
        gone = Exclusion("groups", "texts", lost, reason, len(groups.units))
        texts = replace(texts, exclusions=(*texts.exclusions, gone))
    data = replace(data, texts=texts, text_groups=groups, card=card)
    _ = data.exclusions  # refuses a table of which no id is that of a text
    return data


def _each_text_once(parts: list[Dataset], sources: list[str]) -> list[Dataset]:
    """Return the parts without texts that an earlier part of the same source has.

    One source that stands twice with two label definitions has every text twice. Pooled, each
    would count double, so the first definition counts and a second one is refused.
    """
    kept: list[Dataset] = []
    first: dict[tuple[str, Any, str], str] = {}
    for data, source_name in zip(parts, sources, strict=True):
        texts, name = data.texts, data.card.name
        assert texts is not None  # every part was asked
        keys = [
            (source_name, one, text)
            for one, text in zip(texts.ids.tolist(), texts.texts.tolist(), strict=True)
        ]
        new = np.array([key not in first for key in keys], dtype=np.bool_)
        known = sorted({first[key] for key in keys if key in first})
        for key in keys:
            first.setdefault(key, name)
        if new.all():
            kept.append(data)
            continue
        reason = (
            f"{' and '.join(known)} has the same texts under another label definition; each text "
            "counts once, with the first definition"
        )
        if not new.any():
            fault = f"part {name!r} is refused: {reason}. Remove it, or audit it by itself; some "
            fault += 'sources read several types of labels at once (label = "all")'
            raise DataError("combined", [fault])
        gone = Exclusion(
            "texts", "texts", int((~new).sum()), reason, len(texts), "warning/second-definition"
        )
        some = Texts.from_frame(texts.to_frame().filter(pl.Series(new)), source=name)
        some = replace(some, exclusions=(*texts.exclusions, gone))
        kept.append(replace(data, texts=some))
    return kept


def _joined(found: list[Dataset]) -> Texts:
    frames, clusters = [], []
    clustered = any(data.texts is not None and data.texts.clusters is not None for data in found)
    exclusions: list[Exclusion] = []
    start = 0
    for data in found:
        texts = data.texts
        assert texts is not None  # every part was asked
        ids = [f"{data.card.name}:{one}" for one in texts.ids.tolist()]
        frame = texts.to_frame().drop("cluster", strict=False)
        of = pl.lit(data.card.name)
        named = of if texts.sets is None else pl.concat_str(of, pl.lit(": "), pl.col("set"))
        frame = frame.with_columns(named.alias("set"), id=pl.Series(ids))
        frames.append(frame)
        own = np.arange(len(texts)) if texts.clusters is None else texts.clusters
        clusters.append(own.astype(np.int64) + start)
        start = int(clusters[-1].max()) + 1
        exclusions += [replace(e, where=f"{data.card.name}: {e.where}") for e in texts.exclusions]
    table = pl.concat(frames, how="diagonal")
    # A part without votes has none for its texts: no rater of them is known.
    table = table.with_columns(pl.col(c).fill_null(0) for c in ("yes", "no") if c in table.columns)
    if clustered:
        table = table.with_columns(cluster=np.concatenate(clusters))
    read = Texts.from_frame(table, source="combined")
    return replace(read, exclusions=tuple(exclusions))


def _groups(parts: list[Dataset]) -> Grouping | None:
    """Return the groups that any part states, over the texts of all."""
    frames = [
        data.text_groups.to_members("id").with_columns(
            id=pl.concat_str(pl.lit(f"{data.card.name}:"), pl.col("id").cast(pl.String))
        )
        for data in parts
        if data.text_groups is not None
    ]
    there = [f"{d.card.name}:{one}" for d in parts if d.texts is not None for one in d.texts.ids]
    frames = [frame.filter(pl.col("id").is_in(there)) for frame in frames]
    return Grouping.from_members(pl.concat(frames), unit="id") if frames else None


def _card(cards: list[Card]) -> Card:
    def said(field: str) -> str:
        return " ".join(f"{c.name}: {getattr(c, field)}" for c in cards if getattr(c, field))

    return Card(
        name="combined",
        title="; ".join(card.title for card in cards),
        source=said("source"),
        licence=said("licence"),
        citation=said("citation"),
        known_harms=said("known_harms"),
        unknowns=said("unknowns"),
        hashes={f"{c.name}/{file}": value for c in cards for file, value in c.hashes.items()},
        facts={f"{c.name}_{key}": value for c in cards for key, value in c.facts.items()},
        dropped=tuple(f"{c.name}: {line}" for c in cards for line in c.dropped),
    )
