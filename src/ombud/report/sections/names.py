"""Names of figures and tables, safe as file names and anchors."""

from __future__ import annotations

import re

from ombud.audits.result import Result

__all__ = ["slug"]


def slug(result: Result, metric: str) -> str:
    """Return a short ASCII name for a metric, unique in the result."""
    titles = list(dict.fromkeys([m.title for m in result.metrics]))
    titles += [e for e in dict.fromkeys(e.metric for e in result.estimates) if e not in titles]
    text = [re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40] for title in titles]
    index = titles.index(metric)
    base = text[index] or "metric"
    return f"{base}-{index + 1}" if text.count(text[index]) > 1 or not text[index] else base
