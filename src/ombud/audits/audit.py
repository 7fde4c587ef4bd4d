"""One sentence of code: ``Audit(data, systems, metrics).run() -> Result``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.audits.analyses import (
    Analysis,
    ListAnalysis,
    LiveSystems,
    SystemAnalysis,
    is_long,
)
from ombud.audits.collect import OutputCollector, System, SystemOutputs
from ombud.audits.faults import check_names
from ombud.audits.histograms import spread_tables
from ombud.audits.inputs import data_plan, store_data, store_held_out
from ombud.audits.load import load_analyses, load_data, load_metrics, load_system, what_systems_are
from ombud.audits.metric_docs import metric_info
from ombud.audits.plan import AboutPlan, ExpectPlan, Plan, StatisticsPlan
from ombud.audits.presets import complete
from ombud.audits.provenance import (
    fingerprint_data,
    fingerprint_parts,
    fingerprint_system,
    input_hashes,
    now,
    versions,
)
from ombud.audits.repeats import REPEATS, check_repeats, repeated_plan
from ombud.audits.result import RESULT_SCHEMA, Result
from ombud.audits.run_folder import RunFolder
from ombud.audits.unused import refuse_unused
from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.groups import Grouping
from ombud.data.items import LABEL
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics.base import Metric, Outputs, Rows, spec_of
from ombud.metrics.engine import Settings, estimate_metric
from ombud.metrics.item_groups import measure_by_item
from ombud.metrics.list_depth import with_list_depth
from ombud.metrics.matters import check_measures, declare
from ombud.registry import hint
from ombud.rng import generator
from ombud.stats.estimate import Estimate
from ombud.systems.base import Moderator, Progress, Recommender
from ombud.systems.own import as_system, name_of
from ombud.systems.quote import CostQuote
from ombud.systems.recommenders.kernels.compiling import telling

__all__ = ["Audit"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+-]*\Z")


def _silent(done: int, total: int, note: str) -> None:
    """Show nothing."""


@dataclass
class Audit:
    """What to audit, on which data, by which metrics.

    Parameters
    ----------
    data
        The tables.
    systems
        The recommenders or moderators to audit, live or recorded; in a mapping, by the name the
        report should use. A function of users and a length, or of texts, will do
        (`ombud.systems.OwnRecommender`, `ombud.systems.OwnModerator`).
    metrics
        What to measure.
    by
        Groups of users (or of texts), or the names of the data's attributes to compare by;
        default, all groups of the data. An empty list compares none.
    seed
        The seed of everything random.
    sample
        Audit a random sample of this many users; default, all with a history.
    statistics
        How uncertainty is computed.
    title
        The title of the report.
    plan
        The plan it was built from, if any.
    analyses
        What to compute beside the metrics: from data and answers, or by asking the systems more.
    about
        Who audits whom, and what for: the fields of `ombud.audits.AboutPlan`.
    expect
        By name, limits that are declared beforehand: the fields of `ombud.audits.ExpectPlan`.

    Examples
    --------
    >>> from ombud.worlds import small_world
    >>> from ombud.metrics import ShareGap
    >>> world = small_world(seed=1)
    >>> result = Audit(world.dataset, world.recommenders(), [ShareGap(k=10)]).run()
    >>> len(result.estimates) > 0
    True
    """

    data: Dataset
    systems: Mapping[str, Any] | Sequence[Any]
    metrics: Sequence[Metric]
    by: Grouping | Sequence[str] | None = None
    seed: int = 0
    sample: int | None = None
    statistics: StatisticsPlan = field(default_factory=StatisticsPlan)
    title: str = "Audit"
    plan: Plan | None = None
    analyses: Sequence[Analysis | SystemAnalysis] = ()
    about: AboutPlan | Mapping[str, str] = field(default_factory=AboutPlan)
    expect: Mapping[str, ExpectPlan | Mapping[str, str]] = field(default_factory=dict)
    _seen_places: dict[str, tuple[Outputs, NDArray[np.bool_]]] = field(
        default_factory=dict, init=False, repr=False
    )

    def __post_init__(self) -> None:
        if not isinstance(self.systems, Mapping):
            named = {name_of(system): system for system in self.systems}
            if len(named) < len(self.systems):
                raise PlanError("two systems have the same name; give them names in a mapping")
            self.systems = named
        self._declared()  # its faults come before any system is asked
        if not self.systems:
            raise PlanError("an audit needs at least one system")
        if not self.metrics:
            raise PlanError("an audit needs at least one metric")
        of = what_systems_are(self.metrics, self.data)
        self.systems = {name: as_system(name, one, of) for name, one in self.systems.items()}
        bad = [name for name in self.systems if not _NAME.match(name)]
        if bad:
            raise PlanError(
                f"system names are letters, digits, spaces and ._+- (they name files); found {bad}"
            )
        for metric in self.metrics:
            if not self._systems_for(metric):
                raise PlanError(f"{metric.title} measures a {metric.of}; the audit has none")
        titles = [metric.title for metric in self.metrics]
        again = sorted({title for title in titles if titles.count(title) > 1})
        if again:
            raise PlanError(
                f"two metrics are called {', '.join(again)}, and a reader could not tell them "
                "apart; remove one"
            )
        measures = [*self.metrics, *self.analyses]
        check_measures(self.statistics.matters, [one.registered_name for one in measures])
        if self.by is not None and not isinstance(self.by, Grouping):
            self.data = _selected(self.data, tuple(self.by))
        elif self.by is not None:
            # The groups belong to the data from here on, so they are stored with the result.
            kinds = {metric.of for metric in self.metrics}
            users = self.by if "recommender" in kinds else self.data.users
            texts = self.by if "moderator" in kinds else self.data.text_groups
            self.data = replace(self.data, users=users, text_groups=texts)
        # Ids that match nothing are refused here, before a system is asked and paid.
        _ = self.data.exclusions

    @classmethod
    def from_plan(cls, plan: Plan, systems: Mapping[str, System] | None = None) -> Self:
        """Build the audit that a plan describes.

        Parameters
        ----------
        plan
            What to audit; a preset that it names fills in what it leaves open.
        systems
            Systems to use instead of building those of the plan.
        """
        if plan.engine.type != "memory":
            raise PlanError(
                f'the plan has [engine] type = "{plan.engine.type}", and this audit is made in '
                "memory; run it with `ombud run`, or `ombud.audits.engines.audit_of(plan).run(...)`"
            )
        plan = complete(plan)
        check_names(plan, systems=systems is None)
        check_repeats(plan)
        data = load_data(plan)
        refuse_unused(plan, data)
        metrics = load_metrics(plan.metrics)
        if systems is None:
            of = what_systems_are(metrics, data)
            systems = {name: load_system(name, one, of) for name, one in plan.systems.items()}
        return cls(
            data,
            systems,
            metrics,
            seed=plan.seed,
            sample=plan.sample,
            statistics=plan.statistics,
            title=plan.title,
            plan=plan,
            analyses=load_analyses(plan.analyses),
            about=plan.about,
            expect=plan.expect,
        )

    def quote(self) -> dict[str, CostQuote]:
        """Return what asking each service would take and cost; asks nothing."""
        asking = self._asking(None, _silent)
        quotes = {name: asking.quote(name, system) for name, system in self._named().items()}
        return {name: quote for name, quote in quotes.items() if quote is not None}

    def run(
        self,
        folder: Path | str | None = None,
        progress: Progress | None = None,
        notice: Callable[[str], None] | None = None,
    ) -> Result:
        """Ask the systems, measure, and estimate.

        Parameters
        ----------
        folder
            Where to store the result. A run that was stopped goes on when it is started again
            with the same plan and folder. Default: in memory only.
        progress
            Called with (done, total, note) during long work.
        notice
            Called with a sentence for each service before any is asked: how many requests, to
            where, what they would cost.
        """
        started = now()
        progress = progress or _silent
        store = None if folder is None else self._open(Path(folder))
        asking = self._asking(store, progress)
        if notice is not None:
            asking = replace(asking, notice=notice)
            asking.announce(self._named())
        with telling(progress):
            answers = {name: asking.ask(name, system) for name, system in self._named().items()}
            others = []
            for number, other in self._repeats():
                where = None if folder is None else Path(folder) / REPEATS / str(number)
                again = other._asking(None if where is None else other._open(where), progress)
                theirs = {name: again.ask(name, s) for name, s in other._named().items()}
                others.append((other, theirs))
            result = self.score(answers, store, progress, others)
        result = self._signed(result, started, None if folder is None else Path(folder))
        if store is not None:
            result = store.finish(result)
        return result

    def rescored(
        self,
        answers: Mapping[str, SystemOutputs],
        folder: Path | None = None,
        progress: Progress | None = None,
        repeats: Sequence[Mapping[str, SystemOutputs]] = (),
    ) -> Result:
        """Measure answers that are already there, and store the result if a folder is given.

        Parameters
        ----------
        answers
            What each system answered.
        folder
            Where to store the result; default, in memory only.
        progress
            Called with (done, total, note).
        repeats
            What systems answered in further repeats, where the plan has `repeat`.
        """
        started = now()
        others = [
            (other, again)
            for (_, other), again in zip(self._repeats(self._named()), repeats, strict=True)
        ]
        store = None if folder is None else self._open(folder)
        if store is not None:
            for name, answer in answers.items():
                store.store_outputs(name, answer.outputs)
                if answer.predictions is not None:
                    store.store_predictions(name, answer.predictions)
            for number, (other, again) in enumerate(others, 2):
                part = other._open(store.path / REPEATS / str(number))
                for name, answer in again.items():
                    part.store_outputs(name, answer.outputs)
                    if answer.predictions is not None:
                        part.store_predictions(name, answer.predictions)
        result = self._signed(self.score(answers, store, progress, others), started, folder)
        if store is not None:
            result = store.finish(result)
        return result

    def score(
        self,
        answers: Mapping[str, SystemOutputs],
        store: RunFolder | None = None,
        progress: Progress | None = None,
        others: Sequence[tuple[Audit, Mapping[str, SystemOutputs]]] = (),
    ) -> Result:
        """Measure and estimate from answers that are already there; `others` are repeats."""
        progress = progress or _silent
        estimates: list[Estimate] = []
        exclusions = dict.fromkeys(self.data.exclusions)
        for name, answer in answers.items():
            exclusions |= dict.fromkeys(_about_system(name, answer.outputs.exclusions))
        infos = []
        tables: dict[str, pl.DataFrame] = {}
        if store is not None:
            store.store_groups(self.data.users, self.data.text_groups)
        for number, metric in enumerate(self.metrics):
            progress(number, len(self.metrics), f"measuring {metric.title}")
            rows = self._measure(metric, answers)
            for name, measured in rows.items():
                exclusions |= dict.fromkeys(_about_system(name, measured.exclusions))
                if store is not None:
                    store.store_rows(number, name, measured)
            again = [other._measure(metric, said) for other, said in others]
            groups = self._groups(metric)
            estimates += estimate_metric(metric, rows, groups, self._settings(), again)
            infos.append(metric_info(metric, next(iter(rows.values())).unit))
            tables |= spread_tables(metric, rows)
        progress(len(self.metrics), len(self.metrics), "measured")
        for analysis in self.analyses:
            progress(0, 1, f"analysing {analysis.registered_name}")
            said = {name: answer.outputs for name, answer in answers.items()}
            if isinstance(analysis, SystemAnalysis):
                folder = None if store is None else store.path
                live = LiveSystems(self._named(), said, progress, folder)
                result = analysis.analyse_systems(self.data, live, self._settings())
            elif is_long(analysis):
                result = analysis.analyse(self.data, said, self._settings(), progress=progress)
            else:
                result = analysis.analyse(self.data, said, self._settings())
            estimates += result.estimates
            exclusions |= dict.fromkeys(result.exclusions)
            tables |= result.tables
        return Result(
            plan=self._as_plan(),
            estimates=tuple(declare(estimates, self.statistics.matters)),
            metrics=tuple(infos),
            exclusions=tuple(exclusions),
            card=self.data.card,
            tables=tables,
        )

    def _repeats(self, systems: Mapping[str, System] | None = None) -> Iterator[tuple[int, Audit]]:
        """Yield the audits of further repeats, and their numbers from 2 on."""
        for number in range(1, 1 if self.plan is None else self.plan.repeat):
            assert self.plan is not None  # or there is no repeat
            yield number + 1, Audit.from_plan(repeated_plan(self.plan, number), systems)

    def _measure(self, metric: Metric, answers: Mapping[str, SystemOutputs]) -> dict[str, Rows]:
        rows = {}
        for name in self._systems_for(metric):
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
        by = () if self.plan is None else self.plan.by_item
        if metric.of != "recommender" or not by or self.data.items is None:
            return metric.measure(outputs, self.data)
        groups = self.data.items.grouping([name for name in by if name != LABEL])
        if LABEL in by and self.data.labels is not None:
            groups = self.data.items.crossed(groups, self.data.labels)
        return measure_by_item(metric, outputs, self.data, groups)

    def _asking(self, store: RunFolder | None, progress: Progress) -> OutputCollector:
        recommends = any(isinstance(system, Recommender) for system in self._named().values())
        return OutputCollector(
            data=self.data,
            users=self._users() if recommends else np.empty(0),
            depth=max(self._depths(), default=0),
            predictions=any(metric.reads == "predictions" for metric in self.metrics),
            trained=any(isinstance(analysis, SystemAnalysis) for analysis in self.analyses),
            store=store,
            progress=progress,
        )

    def _depths(self) -> Iterator[int]:
        yield from (metric.depth for metric in self.metrics)
        for analysis in self.analyses:
            if isinstance(analysis, ListAnalysis):
                yield analysis.depth

    def _named(self) -> Mapping[str, System]:
        assert isinstance(self.systems, Mapping)  # __post_init__ has seen to it
        return self.systems

    def _settings(self) -> Settings:
        return Settings(**self.statistics.model_dump(), seed=self.seed)

    def _systems_for(self, metric: Metric) -> list[str]:
        wanted = Recommender if metric.of == "recommender" else Moderator
        result = [name for name, system in self._named().items() if isinstance(system, wanted)]
        # A metric may be about some systems only, such as those with an avoid list.
        named = metric.systems
        if named and not set(named) <= set(result):
            unknown = ", ".join(sorted(set(named) - set(result)))
            raise PlanError(f"{metric.title} names {unknown}; the systems are {', '.join(result)}")
        return [name for name in result if name in named] if named else result

    def _groups(self, metric: Metric) -> Grouping | None:
        return self.data.users if metric.of == "recommender" else self.data.text_groups

    def _as_plan(self) -> Plan:
        if self.plan is not None:
            return self.plan
        systems = {name: {"type": type(s).__name__} for name, s in self._named().items()}
        return Plan(
            title=self.title,
            about=self._declared().about,
            expect=self._declared().expect,
            seed=self.seed,
            sample=self.sample,
            data=data_plan(self.data),
            systems=systems,
            metrics=tuple(spec_of(metric) for metric in self.metrics),
            analyses=tuple(spec_of(analysis) for analysis in self.analyses),
            statistics=self.statistics,
        )

    def _declared(self) -> Plan:
        """Return what was declared beforehand, checked."""
        about = self.about if isinstance(self.about, AboutPlan) else dict(self.about)
        expect = {
            name: one if isinstance(one, ExpectPlan) else dict(one)
            for name, one in self.expect.items()
        }
        return Plan.from_dict({"about": about, "expect": expect}, "the audit")

    @cached_property
    def _fingerprint(self) -> str:
        return fingerprint_data(self.data)

    def _open(self, folder: Path) -> RunFolder:
        plan = self._as_plan()
        identity = {
            "plan": _without_pace(plan.portable(folder).model_dump(mode="json")),
            "data": self._fingerprint,
            "files": {} if self.plan is None else input_hashes(self.plan),
            "records": {name: fingerprint_system(s) for name, s in self._named().items()},
        }
        store = RunFolder(folder, identity, plan.portable(folder).to_toml())
        if self.plan is None:
            store_data(self.data, folder)
        elif plan.split:
            store_held_out(self.data, folder)
        return store

    def _users(self) -> NDArray[Any]:
        if self.data.interactions is None:
            raise PlanError("a recommender is audited, but the data has no interactions")
        users = self.data.interactions.users.ids
        if self.data.audited is not None:
            users = np.asarray(self.data.audited)
        if self.sample is None or self.sample >= len(users):
            return users
        chosen = generator(self.seed, "sample").choice(len(users), self.sample, replace=False)
        return users[np.sort(chosen)]

    def _signed(self, result: Result, started: str, folder: Path | None) -> Result:
        provenance = {
            "schema_version": RESULT_SCHEMA,
            "started": started,
            "finished": now(),
            "seed": self.seed,
            "versions": versions(),
            "data": self._fingerprint,
            "parts": fingerprint_parts(self.data),
            "inputs": {} if self.plan is None else input_hashes(self.plan),
        }
        return Result(**{**vars(result), "provenance": provenance, "folder": folder})


def _selected(data: Dataset, by: tuple[str, ...]) -> Dataset:
    """Return the data with the groups of some attributes alone."""
    tables = {"users": data.users, "text_groups": data.text_groups}
    known = [a for groups in tables.values() if groups is not None for a in groups.attributes]
    missing = [name for name in by if name not in known]
    if missing:
        told = ", ".join(map(repr, missing))
        raise PlanError(f"by names {told}; {hint(missing[0], dict.fromkeys(known))}")
    chosen: dict[str, Grouping | None] = {}
    for name, groups in tables.items():
        wanted = [] if groups is None else [a for a in by if a in groups.attributes]
        chosen[name] = None if groups is None or not wanted else groups.select(wanted)
    return replace(data, users=chosen["users"], text_groups=chosen["text_groups"])


def _without_pace(plan: dict[str, Any]) -> dict[str, Any]:
    """Return a plan's values without how fast services are asked: that makes no other run."""
    systems = {}
    for name, config in plan["systems"].items():
        systems[name] = {key: value for key, value in config.items() if key != "run"}
        if isinstance(config.get("run"), dict) and config["run"].get("repeats", 1) != 1:
            systems[name]["run"] = {"repeats": config["run"]["repeats"]}  # these are other answers
    return {**plan, "systems": systems}


def _about_system(name: str, exclusions: Sequence[Exclusion]) -> list[Exclusion]:
    return [replace(e, where=f"{name}: {e.where}", system=name) for e in exclusions]
