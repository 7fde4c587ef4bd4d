"""What an audit asks of the place where it is computed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import cleandoc, getdoc
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from ombud.audits.collect import SystemOutputs
from ombud.audits.result import MetricInfo
from ombud.audits.run_folder import RunFolder
from ombud.data.card import Card
from ombud.data.exclusions import Exclusion
from ombud.metrics.base import Metric, key_of, spec_of
from ombud.stats.estimate import Estimate
from ombud.systems.base import Progress
from ombud.systems.quote import CostQuote

Notice = Callable[[str], None]
Answers = Mapping[str, SystemOutputs]


@dataclass(frozen=True)
class Inputs:
    """What is audited, as hashes: a stopped run resumes only if they are equal."""

    data: str  # of the content of all tables
    files: Mapping[str, str]  # of each file that the plan names, by the place that names it
    # Of each table, where they are in memory.
    parts: Mapping[str, str] = field(default_factory=dict)
    # Of what recorded systems hold, where that is in memory.
    records: Mapping[str, str] | None = None

    def identity(self) -> dict[str, Any]:
        """Return what a stored run is recognised by."""
        if self.records is None:
            return {"files": dict(self.files)}
        return {"data": self.data, "files": dict(self.files), "records": dict(self.records)}


@dataclass(frozen=True)
class Run:
    """One run: where it is stored, who is notified, and earlier answers."""

    store: RunFolder | None  # where each step is stored; None for a run in memory
    progress: Progress  # called with (done, total, note)
    # Called with a sentence that a person should read; None where nobody does.
    notice: Notice | None = None
    answers: Answers | None = None  # what each system answered; None to ask them
    repeats: Sequence[Answers] = ()  # the same of each further repeat


@dataclass(frozen=True, eq=False)
class Measured:
    """A result without who asked for it, when, and with which versions."""

    estimates: Sequence[Estimate]
    metrics: Sequence[MetricInfo]
    exclusions: Mapping[Exclusion, None]
    card: Card
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)


class Backend(Protocol):
    """Where an audit is computed."""

    needs_folder: bool
    """Whether a run must store its steps, if only for a while."""

    def ready(self, notice: Notice | None) -> None:
        """Find the faults that can be found before anything is stored."""
        ...

    def inputs(self) -> Inputs:
        """Return what is audited, as hashes; computed once."""
        ...

    def quote(self) -> dict[str, CostQuote]:
        """Return what asking each service would take and cost; asks nothing."""
        ...

    def measure(self, run: Run) -> Measured:
        """Ask or read, measure, and estimate."""
        ...


# From the documentation of a metric to what a report says of it.


_ITEM = re.compile(r"^- \*\*(?P<name>[^*]+)\*\*:\s*(?P<text>.*)$", re.DOTALL)


def describe_metric(documentation: str) -> dict[str, str]:
    """Return `summary`, `reading`, `undefined` and `limits` from a metric's docstring.

    The docstring has the form of all metrics: one sentence; formula; how to read it; a list of unit
    of resampling, *Undefined*, *Does not capture*; parameters.

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
