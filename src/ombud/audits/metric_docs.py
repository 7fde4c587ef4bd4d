"""From the documentation of a metric to what a report says of it."""

from __future__ import annotations

import re
from inspect import cleandoc, getdoc
from pathlib import Path

from ombud.audits.result import MetricInfo
from ombud.metrics.base import Metric, key_of, spec_of

_ITEM = re.compile(r"^- \*\*(?P<name>[^*]+)\*\*:\s*(?P<text>.*)$", re.DOTALL)


def describe_metric(documentation: str) -> dict[str, str]:
    """Return `summary`, `reading`, `undefined` and `limits` from a metric's docstring.

    Parameters
    ----------
    documentation
        A docstring in the form that all metrics have: one sentence; formula; how to read it; a
        list of unit of resampling, *Undefined*, *Does not capture*; parameters.

    Examples
    --------
    >>> said = describe_metric('''Share of a thing.
    ...
    ...     Above 0, there is more.
    ...
    ...     - **Undefined**: when nobody
    ...       is there.
    ...     - **Does not capture**: rank.
    ...     ''')
    >>> said["reading"], said["undefined"], said["limits"]
    ('Above 0, there is more.', 'when nobody is there.', 'rank.')
    """
    head = cleandoc(documentation).split("\nParameters\n---", 1)[0]
    head = head.split("\nReferences\n---", 1)[0]
    blocks = [block for block in re.split(r"\n\s*\n|\n(?=- \*\*)", head) if block.strip()]
    said = {"summary": "", "reading": "", "undefined": "", "limits": ""}
    reading = []
    for index, block in enumerate(blocks):
        item = _ITEM.match(block)
        if item is not None:
            field = {"Undefined": "undefined", "Does not capture": "limits"}.get(item["name"])
            if field is not None:
                said[field] = _plain(item["text"])
        elif index == 0:
            said["summary"] = _plain(block)
        elif not block.startswith((".. ", "- ", " ")) and "::" not in block:
            reading.append(_plain(block))
    said["reading"] = " ".join(reading)
    return said


def _plain(text: str) -> str:
    """Return reStructuredText as plain words on one line."""
    text = re.sub(r":[a-z:]+:`([^`]*)`", r"\1", text)
    return " ".join(re.sub(r"`+|\*\*|(?<!\w)\*(?=\w)|(?<=\w)\*(?!\w)", "", text).split())


def metric_info(metric: Metric, unit: str) -> MetricInfo:
    """Return what a result keeps of a metric, beside its numbers."""
    said = describe_metric(getdoc(type(metric)) or "")
    whole = " ".join(filter(None, (said["summary"], metric.variant)))
    said |= {"summary": metric.summary or whole}
    spec = spec_of(metric)
    given = {name: getattr(metric, name, None) for name in spec}
    # Of a file only its name: the folder is whose machine it is.
    files = {name: value.name for name, value in given.items() if isinstance(value, Path)}
    return MetricInfo(
        spec | files, metric.title, unit=unit, null=metric.null, key=key_of(metric), **said
    )
