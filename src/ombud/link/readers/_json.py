"""Lines of JSON as columns; a line that is no JSON costs only itself."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from ombud.link.problems import Problems

__all__ = ["decode_lines"]


def decode_lines(
    lines: list[bytes], fields: dict[str, Any], source: str, problems: Problems
) -> pl.DataFrame:
    """Return some fields of JSON objects, one row a line that can be read.

    Parameters
    ----------
    lines
        One JSON object each.
    fields
        The fields wanted and their Polars types; others are not looked at.
    source, problems
        Where lines that are not JSON objects are counted.
    """
    schema = pl.Struct(fields)
    texts = pl.Series([line.decode("utf-8", "replace") for line in lines], dtype=pl.String)
    try:
        return texts.str.json_decode(schema).struct.unnest()
    except pl.exceptions.PolarsError:
        pass
    kept: list[Any] = []
    for text in texts:
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            problems.add(source, "a line that is not JSON", text[:60])
            continue
        if not isinstance(content, dict):
            problems.add(source, "a line that is no JSON object", text[:60])
            continue
        kept.append({name: _fitted(content.get(name), kind) for name, kind in fields.items()})
    return pl.DataFrame(kept, schema=fields)


def _fitted(value: Any, kind: Any) -> Any:
    """Return a value as its type wants it; None where it does not fit."""
    if value is None:
        return None
    if isinstance(kind, pl.List):
        values = value if isinstance(value, list) else [value]
        return [_fitted(v, kind.inner) for v in values]
    if isinstance(kind, pl.Struct):
        if not isinstance(value, dict):
            return None
        return {f.name: _fitted(value.get(f.name), f.dtype) for f in kind.fields}
    if kind == pl.String:
        return value if isinstance(value, str) else None if isinstance(value, dict) else str(value)
    try:
        return float(value) if kind.is_float() else int(value) if kind.is_integer() else value
    except (TypeError, ValueError):
        return None
