"""The part of an audit that a block of texts needs: measured anywhere, merged anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
import pyarrow as pa

from ombud.audits.backends.block_audit import BlockAudit, BlockTotals, Part, block_groups, in_block
from ombud.audits.presets import Tagger
from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions
from ombud.data.exclusions import Exclusion, near_identical
from ombud.data.ids import Vocabulary, hash_ids
from ombud.data.texts import Texts
from ombud.errors import DataError, PlanError
from ombud.metrics.engine.text_rows import NOTHING_ACCEPTABLE
from ombud.systems.recorded import decisions_about, unmatched_decisions


def decisions_table(system: str) -> str:
    """Return the name of the table that holds a system's decisions."""
    return f"decisions/{system}"


def tagged_members(tagger: Tagger, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return which groups some texts name: an id and a group in each row.

    Parameters
    ----------
    tagger
        What finds groups in texts.
    batch
        Has `id` and `text`.
    """
    frame = pl.from_arrow(batch.select(["id", "text"]))
    assert isinstance(frame, pl.DataFrame)  # a batch never becomes a series
    frame = frame.filter(pl.col("text").is_not_null())
    found = tagger.tag(frame["text"].to_list())
    rows, places = np.nonzero(found)
    names = pl.Series(tagger.names, dtype=pl.String)
    members = pl.DataFrame({"id": frame["id"].gather(rows), "group": names.gather(places)})
    table = members.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    schema = pa.schema([("id", table.schema.field("id").type), ("group", pa.large_string())])
    batches = table.cast(schema).to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=schema)


def with_clusters(frames: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Return rows of decisions and groups with the cluster of their text beside them.

    Parameters
    ----------
    frames
        Whole texts, by table: ``texts`` with `id` and `cluster`, the others with `id`. An id that
        is of no text is a cluster of its own.
    """
    known = frames["texts"].select("id", "cluster")
    if known["id"].is_duplicated().any():
        raise _repeated(known)
    result = {"texts": frames["texts"]}
    for name, frame in frames.items():
        if name == "texts":
            continue
        own = pl.Series("own", hash_ids(frame["id"].to_arrow()).view(np.int64), dtype=pl.Int64)
        joined = frame.join(known, on="id", how="left", maintain_order="left")
        result[name] = joined.with_columns(cluster=pl.col("cluster").fill_null(own))
    return result


def _repeated(texts: pl.DataFrame) -> DataError:
    again = texts.filter(pl.col("id").is_duplicated())["id"].unique(maintain_order=True)
    told = ", ".join(map(repr, again.head(3).to_list()))
    return DataError("texts", [f"column 'id' repeats an id, such as {told}"])


@dataclass(frozen=True, eq=False, kw_only=True)
class TextBlockAudit(BlockAudit):
    """What must be known to measure a block of texts.

    Parameters
    ----------
    thresholds
        By system: the score from which a text is flagged, where only scores are recorded.
    files
        By system: the name of its file in messages.
    is_clustered
        Whether texts share clusters.
    """

    thresholds: Mapping[str, float | None] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    is_clustered: bool = False

    def _part(self, frames: Mapping[str, pl.DataFrame], into: BlockTotals) -> Part | None:
        texts, keys = self._texts(frames["texts"], into)
        groups = None
        if self.groups is not None:
            groups = block_groups(frames["text_groups"], "id", self.groups, self.values)
            into.grouped(groups, texts.ids)
        said = {
            name: self._decisions(name, frames[decisions_table(name)], texts, into)
            for name in self.systems
        }
        if not len(texts):
            return None
        return Part(Dataset(texts=texts, text_groups=groups), said, groups, len(texts), keys)

    def _texts(
        self, frame: pl.DataFrame, into: BlockTotals
    ) -> tuple[Texts, tuple[Vocabulary, np.ndarray[tuple[int], np.dtype[np.uint64]]] | None]:
        """Return the texts of a block, and the keys of their clusters where they share some."""
        if frame["id"].is_duplicated().any():
            raise _repeated(frame)
        kept = frame.filter(pl.col("text"))
        into.counts["rows"] += frame.height
        into.counts["units"] += kept.height
        if not kept.height:
            ids = frame["id"].head(0).to_numpy()
            nothing = np.empty(0, dtype=object)
            return Texts(ids, nothing, np.empty(0, dtype=np.int8), is_part=True), None
        try:
            read = Texts.from_frame(kept.with_columns(text=pl.lit("")), source="texts")
        except DataError as error:
            raise in_block(error) from None
        into.counts["acceptable"] += int(np.count_nonzero(read.truth == 0))
        keys = None
        if self.is_clustered:
            keys = (Vocabulary(read.ids), kept["cluster"].to_numpy().view(np.uint64))
        return replace(read, is_part=True), keys

    def _decisions(
        self, system: str, frame: pl.DataFrame, texts: Texts, into: BlockTotals
    ) -> Decisions:
        if not frame.height:
            none = np.empty(0, dtype=np.int8)
            past = Decisions(frame["id"].to_numpy(), none, np.empty(0, dtype=np.float32))
        else:
            limit = self.thresholds.get(system)
            try:
                past = Decisions.from_frame(frame, threshold=limit, source=system)
            except DataError as error:
                raise in_block(error) from None
        said, strangers, lacking = decisions_about(past, texts)
        count = len(past) if past.repeats is None else len(np.unique(past.ids))
        into.recorded(system, strangers, count, lacking)
        return said

    def exclusions(self, totals: BlockTotals) -> tuple[Exclusion, ...]:
        """Return what was left out of the data, in the words of an audit in memory.

        Raises
        ------
        DataError, PlanError
            If the tables do not belong together, or nothing can be measured.
        """
        counts = totals.counts
        if not counts["units"]:
            raise DataError("texts", ["column 'text' is missing in every row"])
        if not counts["acceptable"]:
            raise PlanError(NOTHING_ACCEPTABLE)
        result = []
        gone = counts["rows"] - counts["units"]
        if gone:
            result.append(Exclusion("texts", "rows", gone, "they have no text", counts["rows"]))
        if self.groups is not None:
            result += near_identical("groups", self.groups.names)
            result += totals.unmatched_groups("text_groups", "texts", "are not among the texts")
        for system, (strangers, count, lacking) in totals.lists.items():
            if count and lacking == counts["units"]:
                fault = f"none of its {count:,} ids is that of a text"
                raise DataError(self.files.get(system, system), [fault])
            told = unmatched_decisions(
                self.files.get(system, system), strangers, count, lacking, counts["units"]
            )
            result += [replace(e, where=f"{system}: {e.where}", system=system) for e in told]
        return tuple(result)
