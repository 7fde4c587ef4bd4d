"""Lines of JSON as columns; a line that is no JSON costs only itself."""

from __future__ import annotations

import json
import re
from typing import Any

import polars as pl

from ombud.link.problems import Problems


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
        Where lines that are not JSON objects, and fields of another type, are counted.

    Returns
    -------
    polars.DataFrame
        A field of another type is null; where a number was expected, NaN, so that it can be told
        from one that is not there.
    """
    texts = pl.Series([line.decode("utf-8", "replace") for line in lines], dtype=pl.String)
    found = None if _has_truth(texts, fields) else _decoded_at_once(texts, fields)
    if found is not None:
        return found
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
        row: dict[str, Any] = {}
        for name, kind in fields.items():
            odd: list[Any] = []
            row[name] = _fitted(content.get(name), kind, odd)
            if odd:
                reason = "a field of another type than expected (not used)"
                problems.add(source, reason, f"{name}: {odd[0]!r:.60}")
        kept.append(row)
    return pl.DataFrame(kept, schema=fields)


def _has_truth(texts: pl.Series, fields: dict[str, Any]) -> bool:
    """Return whether a number is true or false, which Polars takes for 1 and 0."""
    names = "|".join(re.escape(name) for name, kind in fields.items() if kind == pl.Float64)
    return bool(names) and texts.str.contains(rf'"(?:{names})"\s*:\s*(?:true|false)').any()


def _decoded_at_once(texts: pl.Series, fields: dict[str, Any]) -> pl.DataFrame | None:
    """Return all lines, or None where one of them is no object or a field does not fit."""
    try:
        rows = texts.str.json_decode(pl.Struct(fields))
    except pl.exceptions.PolarsError:
        return None
    # A line that is no more than ``null`` is decoded too.
    return None if rows.null_count() else rows.struct.unnest()


def _fitted(value: Any, kind: Any, odd: list[Any]) -> Any:
    """Return a value as its type wants it; what does not fit is added to `odd`."""
    if value is None:
        return None
    if isinstance(kind, pl.List):
        values = value if isinstance(value, list) else [value]
        return [_fitted(v, kind.inner, odd) for v in values]
    if isinstance(kind, pl.Struct) and isinstance(value, dict):
        return {f.name: _fitted(value.get(f.name), f.dtype, odd) for f in kind.fields}
    if kind == pl.String and not isinstance(value, list | dict):
        return value if isinstance(value, str) else json.dumps(value)
    if kind == pl.Float64:
        return _number(value, odd)
    odd.append(value)
    return None


def _number(value: Any, odd: list[Any]) -> float | None:
    if isinstance(value, str) and not value.strip():
        return None
    try:
        if not isinstance(value, bool):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    odd.append(value)
    return float("nan")
