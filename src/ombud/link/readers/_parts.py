"""Rows of one key brought together, however many rows there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pyarrow.parquet as pq

_PARTS = 32


def by_key(blocks: Iterator[pl.DataFrame], key: str) -> Iterator[pl.DataFrame]:
    """Return the rows of all blocks in parts; all rows of a key are in one of them, in order.

    A single block is returned as it is; more are parted on disk, so that no more than a block, or
    a 32nd of all rows, is in memory.
    """
    start = [block for _, block in zip(range(2), blocks, strict=False)]
    if len(start) < 2:
        yield from start
        return
    with TemporaryDirectory(prefix="ombud-link-") as folder:
        files = [Path(folder) / f"{part}.parquet" for part in range(_PARTS)]
        schema = start[0].to_arrow(compat_level=pl.CompatLevel.oldest()).schema
        with ExitStack() as opened:
            writers = [opened.enter_context(pq.ParquetWriter(file, schema)) for file in files]
            for block in chain(start, blocks):
                part = block[key].hash(seed=0) % _PARTS
                for number, writer in enumerate(writers):
                    some = block.filter(part == number)
                    if some.height:
                        table = some.to_arrow(compat_level=pl.CompatLevel.oldest())
                        writer.write_table(table.cast(schema))
        for file in files:
            rows = pl.read_parquet(file)
            if rows.height:
                yield rows
