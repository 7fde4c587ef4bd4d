"""Names of figures and tables, safe as file names and anchors."""

from __future__ import annotations

import re

from ombud.audits.result import MetricInfo, Result
from ombud.report.findings import key_of_estimate, key_of_metric


def slug(result: Result, metric: MetricInfo) -> str:
    """Return a short ASCII name for a metric, unique in the result."""
    keys = [key_of_metric(info) for info in result.metrics]
    keys = list(dict.fromkeys([*keys, *(key_of_estimate(e) for e in result.estimates)]))
    text = [re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-")[:40].strip("-") for key in keys]
    index = keys.index(key_of_metric(metric))
    base = text[index] or "metric"
    return f"{base}-{index + 1}" if text.count(text[index]) > 1 or not text[index] else base
