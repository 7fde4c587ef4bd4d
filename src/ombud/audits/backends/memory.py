"""Audits in memory: live and recorded systems, every metric, analyses and repeats."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.audits.analysis import Context
from ombud.audits.backends.base import Answers, Inputs, Measured, Notice, Run, metric_info
from ombud.audits.collect import REPEATS, OutputCollector, System
from ombud.audits.provenance import fingerprint_data, fingerprint_system, input_hashes
from ombud.audits.run_folder import RunFolder
from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.items import LABEL
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics.base import Metric, Outputs, Rows, key_of
from ombud.metrics.engine.estimate import estimate_metric
from ombud.metrics.engine.item_groups import measure_by_item
from ombud.metrics.engine.list_depth import with_list_depth
from ombud.metrics.engine.paired import different_units
from ombud.rng import generator
from ombud.stats.estimate import Estimate
from ombud.stats.statistics import Floats
from ombud.systems.base import Moderator, Progress, Recommender
from ombud.systems.quote import CostQuote
from ombud.systems.recommenders.kernels.compiling import telling

if TYPE_CHECKING:
    from ombud.audits.audit import Audit


def systems_for(metric: Metric, systems: Mapping[str, System]) -> list[str]:
    """Return the systems that a metric measures."""
    wanted = Recommender if metric.of == "recommender" else Moderator
    result = [name for name, system in systems.items() if isinstance(system, wanted)]
    # A metric may be about some systems only, such as those with an avoid list.
    named = metric.systems
    if named and not set(named) <= set(result):
        unknown = ", ".join(sorted(set(named) - set(result)))
        raise PlanError(f"{metric.title} names {unknown}; the systems are {', '.join(result)}")
    return [name for name in result if name in named] if named else result


@dataclass
class MemoryBackend:
    """An audit whose tables are in memory."""

    audit: Audit  # what to audit
    # Hashes of the files that the plan names, where they are known.
    files: Mapping[str, str] | None = None
    whole: Dataset | None = None  # the data before the split, where repeats split it again
    needs_folder = False
    _seen_places: dict[str, tuple[Outputs, NDArray[np.bool_]]] = field(default_factory=dict)

    @property
    def data(self) -> Dataset:
        """The tables."""
        assert self.audit.data is not None  # it would be another backend's
        return self.audit.data

    @property
    def systems(self) -> Mapping[str, System]:
        """The systems, by name."""
        assert isinstance(self.audit.systems, Mapping)  # the audit has named them
        return self.audit.systems

    def ready(self, notice: Notice | None) -> None:
        """Do nothing: what is in memory has been checked on the way in."""

    def inputs(self) -> Inputs:
        """Return what is audited, as hashes."""
        return self._inputs

    @cached_property
    def _inputs(self) -> Inputs:
        plan, files = self.audit.plan, self.files
        if files is None:
            files = {} if plan is None else input_hashes(plan)
        whole, parts = fingerprint_data(self.data)
        return Inputs(
            whole,
            files,
            parts,
            {name: fingerprint_system(system) for name, system in self.systems.items()},
        )

    def quote(self) -> dict[str, CostQuote]:
        """Return what asking each service would take and cost; asks nothing."""
        asking = self.collector(Run(None, lambda done, total, note: None))
        quotes = {name: asking.quote(name, system) for name, system in self.systems.items()}
        return {name: quote for name, quote in quotes.items() if quote is not None}

    def measure(self, run: Run) -> Measured:
        """Ask the systems unless that was done before, measure, and estimate."""
        with telling(run.progress):
            answers = self._answers(run, run.answers)
            others = []
            for number, other in self._repeats(run):
                given = run.repeats[number - 2] if run.answers is not None else None
                store = None
                if run.store is not None:
                    store = other.audit.open(run.store.path / REPEATS / str(number))
                others.append(
                    (other, other._answers(replace(run, store=store, notice=None), given))
                )
            return self.score(answers, run.store, run.progress, others)

    def _answers(self, run: Run, given: Answers | None) -> Answers:
        """Return what the systems answer, and store it."""
        if given is None:
            asking = self.collector(run)
            if run.notice is not None:
                asking.announce(self.systems)
            return {name: asking.ask(name, system) for name, system in self.systems.items()}
        for name, answer in given.items() if run.store is not None else ():
            assert run.store is not None  # see above
            run.store.store_outputs(name, answer.outputs)
            if answer.predictions is not None:
                run.store.store_predictions(name, answer.predictions)
        return given

    def score(
        self,
        answers: Answers,
        store: RunFolder | None,
        progress: Progress,
        others: Sequence[tuple[MemoryBackend, Answers]] = (),
    ) -> Measured:
        """Measure and estimate from answers that are already there; `others` are repeats."""
        data, metrics, settings = self.data, self.audit.metrics, self.audit.settings
        estimates: list[Estimate] = []
        exclusions = dict.fromkeys(data.exclusions)
        for name, answer in answers.items():
            exclusions |= dict.fromkeys(_about_system(name, answer.outputs.exclusions))
        infos = []
        tables: dict[str, pl.DataFrame] = {}
        if store is not None:
            store.store_groups(data.users, data.text_groups)
        for number, metric in enumerate(metrics):
            progress(number, len(metrics), f"Measuring {metric.title}")
            rows = self._measure(metric, answers)
            for name, measured in rows.items():
                exclusions |= dict.fromkeys(_about_system(name, measured.exclusions))
                if store is not None:
                    store.store_rows(number, name, measured)
            again = [other._measure(metric, said) for other, said in others]
            groups = data.users if metric.of == "recommender" else data.text_groups
            found = estimate_metric(metric, rows, groups, settings, again)
            estimates += found
            exclusions |= dict.fromkeys(different_units(found))
            infos.append(metric_info(metric, next(iter(rows.values())).unit))
            tables |= spread_tables(metric, rows)
        progress(len(metrics), len(metrics), "Measured")
        context = Context(
            data,
            {name: answer.outputs for name, answer in answers.items()},
            settings,
            self.systems,
            progress,
            None if store is None else store.path,
        )
        for analysis in self.audit.analyses:
            progress(0, 1, f"Analysis: {analysis.registered_name}")
            result = analysis.analyze(context)
            estimates += result.estimates
            exclusions |= dict.fromkeys(result.exclusions)
            tables |= result.tables
        return Measured(estimates, infos, exclusions, data.card, tables)

    def _repeats(self, run: Run) -> Iterator[tuple[int, MemoryBackend]]:
        """Yield the audits of further repeats, and their numbers from 2 on."""
        plan = self.audit.plan
        for number in range(1, 1 if plan is None else plan.repeat):
            systems = None if run.answers is None else self.systems
            other = self.audit.repeated(number, systems).backend
            assert isinstance(other, MemoryBackend)  # repeats are made in memory only
            yield number + 1, other

    def _measure(self, metric: Metric, answers: Answers) -> dict[str, Rows]:
        rows = {}
        for name in systems_for(metric, self.systems):
            read: Outputs | None = answers[name].outputs
            if metric.reads == "predictions":
                read = answers[name].predictions
            if read is not None:
                measured = self._measure_one(metric, read)
                seen = self._seen(name, read)
                rows[name] = with_list_depth(metric, measured, read, self.data, seen)
        if not rows:
            raise PlanError(f"{metric.title} reads predicted ratings; no system gives them")
        return rows

    def _seen(self, name: str, outputs: Outputs) -> NDArray[np.bool_] | None:
        """Return which places hold what the user had met; computed once a system."""
        if not isinstance(outputs, Recommendations) or self.data.interactions is None:
            return None
        known = self._seen_places.get(name)
        if known is None or known[0] is not outputs:
            known = (outputs, outputs.seen_in(self.data.interactions))
            self._seen_places[name] = known
        return known[1]

    def _measure_one(self, metric: Metric, outputs: Outputs) -> Rows:
        data = self.data
        by = () if self.audit.plan is None else self.audit.plan.by_item
        if metric.of != "recommender" or not by or data.items is None:
            return metric.measure(outputs, data)
        groups = data.items.grouping([name for name in by if name != LABEL])
        if LABEL in by and data.labels is not None:
            groups = data.items.crossed(groups, data.labels)
        return measure_by_item(metric, outputs, data, groups)

    def collector(self, run: Run) -> OutputCollector:
        """Return what asks the systems, and how deep."""
        metrics, analyses = self.audit.metrics, self.audit.analyses
        depths = [metric.depth for metric in metrics] + [one.depth for one in analyses]
        recommends = any(isinstance(system, Recommender) for system in self.systems.values())
        made = OutputCollector(
            data=self.data,
            users=self._users() if recommends else np.empty(0),
            depth=max(depths, default=0),
            predictions=any(metric.reads == "predictions" for metric in metrics),
            trained=any(analysis.asks_systems for analysis in analyses),
            thresholds=tuple(n for analysis in analyses for n in analysis.chooses_thresholds),
            store=run.store,
            progress=run.progress,
        )
        return made if run.notice is None else replace(made, notice=run.notice)

    def _users(self) -> NDArray[Any]:
        if self.data.interactions is None:
            raise PlanError("a recommender is audited, but the data has no interactions")
        users = self.data.interactions.users.ids
        if self.data.audited is not None:
            users = np.asarray(self.data.audited)
        sample = self.audit.sample
        if sample is None or sample >= len(users):
            return users
        chosen = generator(self.audit.seed, "sample").choice(len(users), sample, replace=False)
        return users[np.sort(chosen)]


def _about_system(name: str, exclusions: Sequence[Exclusion]) -> list[Exclusion]:
    return [replace(e, where=f"{name}: {e.where}", system=name) for e in exclusions]


# How units are spread around a number, in few enough rows to be stored and drawn.


_BINS = 40
_CUT = 0.98
_STEPS = (1, 2, 2.5, 5, 10)


def bin_edges(values: Floats, bins: int = _BINS) -> Floats:
    """Return equal bins with round edges, one of them 0, up to where 98% of the values lie.

    What lies beyond belongs to a last bin without an end.

    The values are finite, and there is at least one; bins are about so many at most.

    Examples
    --------
    >>> bin_edges(np.array([-1.0, 0.2, 0.9]), bins=4).tolist()
    [-1.0, -0.5, 0.0, 0.5, 1.0]
    """
    low, high = float(values.min()), float(np.quantile(values, _CUT))
    low, high = min(low, 0.0), max(high, 0.0)
    if high <= low:
        high = low + 1.0
    rough = (high - low) / bins
    size = 10.0 ** np.floor(np.log10(rough))
    step = next(size * s for s in _STEPS if size * s >= rough * (1 - 1e-9))
    first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
    return np.asarray(np.arange(first, max(last, first + 1) + 1) * step, dtype=np.float64)


def spread_tables(metric: Metric, rows: Mapping[str, Rows]) -> dict[str, pl.DataFrame]:
    """Return how many units lie in each bin, by label and system, if the metric asks for it.

    Such a metric has one column, ``value``. The bins of a label
    are the same for all systems; ``to`` is missing where the last bin has no end.
    """
    if not metric.spread or not rows:
        return {}
    labels = next(iter(rows.values())).labels
    parts = [_label(w, label, rows) for w, label in enumerate(labels)]
    parts = [part for part in parts if part is not None]
    if not parts:
        return {}
    table = pl.concat([part for part in parts if part is not None])
    names = pl.lit(metric.title).alias("metric"), pl.lit(key_of(metric)).alias("key")
    table = table.select(*names, pl.all())
    name = re.sub(r"[^a-z0-9]+", "-", metric.title.lower()).strip("-")
    return {f"spread-{name}": table}


def _label(w: int, label: str, rows: Mapping[str, Rows]) -> pl.DataFrame | None:
    values = {name: r.columns["value"][:, w] for name, r in rows.items()}
    values = {name: v[np.isfinite(v)] for name, v in values.items()}
    pooled = np.concatenate(list(values.values()))
    if not len(pooled):
        return None
    edges = bin_edges(pooled)
    n = len(edges)
    parts = []
    for name, some in values.items():
        # Binary fractions just below a round edge belong above it.
        index = np.searchsorted(edges, some + 1e-9, side="right") - 1
        units = np.bincount(np.clip(index, 0, n - 1), minlength=n)
        parts.append(
            pl.DataFrame(
                {
                    "label": [label] * n,
                    "system": [name] * n,
                    "from": edges,
                    "to": [*edges[1:].tolist(), None],
                    "units": units,
                    "share": units / max(len(some), 1),
                }
            )
        )
    return pl.concat(parts)
