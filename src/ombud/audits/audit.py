"""One sentence of code: ``Audit(data, systems, metrics).run() -> Result``; and the same again.

`rescore` measures again from stored outputs, without asking any system.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from math import isclose
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from ombud import registry
from ombud.audits.analysis import Analysis
from ombud.audits.backends.base import Answers, Backend, Run
from ombud.audits.backends.memory import MemoryBackend, systems_for
from ombud.audits.backends.spark import SparkBackend
from ombud.audits.backends.stream import StreamBackend, refuse_whole
from ombud.audits.collect import REPEATS, System, SystemOutputs, check_repeats, repeated_plan
from ombud.audits.load import (
    load_metrics,
    load_system,
    load_whole,
    split_data,
    what_systems_are,
    with_groups,
)
from ombud.audits.plan import (
    AboutPlan,
    DataPlan,
    ExpectPlan,
    Plan,
    StatisticsPlan,
    build_named,
    old_names,
    refuse_unused,
)
from ombud.audits.presets import complete
from ombud.audits.provenance import check_provenance, input_hashes, now, read_integrity, versions
from ombud.audits.result import RESULT_SCHEMA, Result
from ombud.audits.run_folder import RunFolder, read_outputs, read_predictions
from ombud.audits.verify import require_unedited, verify
from ombud.data.dataset import Dataset, html_table, notebook_bar
from ombud.data.groups import Grouping
from ombud.data.recommendations import Recommendations
from ombud.data.tables import TABLES, write_table
from ombud.errors import PlanError, ResultError
from ombud.files import locked_folder, read_json
from ombud.metrics.base import Metric, spec_of
from ombud.metrics.engine.comparisons import check_measures, declare
from ombud.metrics.engine.estimate import correct
from ombud.metrics.engine.estimator import Settings
from ombud.metrics.engine.label_uncertainty import LABEL_DOUBT, label_doubt
from ombud.stats.estimate import Estimate
from ombud.systems.base import Moderator, Progress, Recommender, silent
from ombud.systems.own import as_system, name_of
from ombud.systems.quote import CostQuote
from ombud.systems.recorded import RecordedDecisions, RecordedRecommendations

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+-]*\Z")


@dataclass
class Audit:
    """What to audit, on which data, by which metrics.

    Parameters
    ----------
    data
        The tables; None where a plan's engine reads them from its files (`from_plan`).
    systems
        The recommenders or moderators to audit, live or recorded; in a mapping, by the name the
        report should use. A function of users and a length, or of texts, will do
        (`ombud.systems.OwnRecommender`, `ombud.systems.OwnModerator`).
    metrics
        What to measure: metrics, or their registered names, such as ``"share-gap"``.
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

    data: Dataset | None
    systems: Mapping[str, Any] | Sequence[Any]
    metrics: Sequence[Any]
    by: Grouping | Sequence[str] | None = None
    seed: int = 0
    sample: int | None = None
    statistics: StatisticsPlan = field(default_factory=StatisticsPlan)
    title: str = "Audit"
    plan: Plan | None = None
    analyses: Sequence[Analysis] = ()
    about: AboutPlan | Mapping[str, str] = field(default_factory=AboutPlan)
    expect: Mapping[str, ExpectPlan | Mapping[str, str]] = field(default_factory=dict)
    backend: Backend = field(init=False, repr=False)
    """Where it is computed."""

    def _repr_html_(self) -> str:
        """Return what a notebook shows: what is audited, and how it is measured."""
        about = {
            "Systems": ", ".join(self.systems),
            "Metrics": ", ".join(metric.title for metric in self.metrics),
            "Analyses": ", ".join(one.registered_name for one in self.analyses),
        }
        return html_table(self.title, about) + (self.data._repr_html_() if self.data else "")

    def __post_init__(self) -> None:
        if not isinstance(self.systems, Mapping):
            named = {name_of(system): system for system in self.systems}
            if len(named) < len(self.systems):
                raise PlanError("two systems have the same name; give them names in a mapping")
            self.systems = named
        if any(isinstance(one, str | Mapping) for one in self.metrics):
            specs = ({"name": m} if isinstance(m, str) else m for m in self.metrics)
            self.metrics = [
                load_metrics((dict(one),))[0] if isinstance(one, Mapping) else one for one in specs
            ]
        if self.data is None and self.plan is None:
            raise PlanError("an audit needs data, or a plan (Audit.from_plan)")
        self._declared()  # its faults come before any system is asked
        if not self.systems:
            raise PlanError("an audit needs at least one system")
        if not self.metrics and not self.analyses:
            raise PlanError("an audit needs at least one metric")
        bad = [name for name in self.systems if not _NAME.match(name)]
        if bad:
            raise PlanError(
                f"system names are letters, digits, spaces and ._+- (they name files); found {bad}"
            )
        if self.data is not None:
            self._in_memory(self.data)
        titles = [metric.title for metric in self.metrics]
        again = sorted({title for title in titles if titles.count(title) > 1})
        if again:
            raise PlanError(
                f"two metrics are called {', '.join(again)}, and a reader could not tell them "
                "apart; remove one"
            )
        measures = [metric.registered_name for metric in self.metrics]
        measures += [analysis.registered_name for analysis in self.analyses]
        check_measures(self.statistics.matters, measures)

    def _in_memory(self, data: Dataset) -> None:
        """Bring systems and groups into one form, and refuse what does not fit together."""
        assert isinstance(self.systems, Mapping)  # see __post_init__
        of = what_systems_are(self.metrics, data)
        self.systems = {name: as_system(name, one, of) for name, one in self.systems.items()}
        for metric in self.metrics:
            if not systems_for(metric, self.systems):
                raise PlanError(f"{metric.title} measures a {metric.of}; the audit has none")
        if self.by is not None and not isinstance(self.by, Grouping):
            self.data = data = with_groups(data, tuple(self.by))
        elif self.by is not None:
            # The groups belong to the data from here on, so they are stored with the result.
            kinds = {metric.of for metric in self.metrics}
            users = self.by if "recommender" in kinds else data.users
            texts = self.by if "moderator" in kinds else data.text_groups
            self.data = data = replace(data, users=users, text_groups=texts)
        # Ids that match nothing are refused here, before a system is asked and paid.
        _ = data.exclusions
        self.backend = MemoryBackend(self)

    @classmethod
    def from_plan(
        cls,
        plan: Plan,
        systems: Mapping[str, System] | None = None,
        *,
        frames: Mapping[str, Any] | None = None,
        session: Any = None,
    ) -> Self:
        """Build the audit that a plan describes, computed where its ``[engine]`` says.

        Parameters
        ----------
        plan
            What to audit; a preset that it names fills in what it leaves open.
        systems
            Systems to use instead of building those of the plan; in memory only.
        frames, session
            ``spark``: see `ombud.audits.backends.spark.SparkBackend`.
        """
        plan = complete(plan)
        if plan.engine.type == "memory":
            metrics, analyses = build_named(plan, systems=systems is None)
            check_repeats(plan)
            files = input_hashes(plan)
            whole = load_whole(plan, files, metrics)
            return cls._planned(plan, systems, metrics, analyses, files, whole)
        if plan.engine.type == "spark":
            SparkBackend.check()
        # What is named from the working directory must be found, hashed and stored as it is.
        plan = plan.relative_to(Path())
        metrics, _ = build_named(plan)
        refuse_whole(plan, metrics)
        made = cls(None, dict(plan.systems), metrics, plan=plan, **_stated(plan))
        if plan.engine.type == "spark":
            made.backend = SparkBackend(plan, tuple(metrics), frames or {}, session)
        else:
            made.backend = StreamBackend(plan, tuple(metrics))
        return made

    @classmethod
    def _planned(
        cls,
        plan: Plan,
        systems: Mapping[str, System] | None,
        metrics: Sequence[Metric],
        analyses: Sequence[Analysis],
        files: Mapping[str, str],
        whole: Dataset,
    ) -> Self:
        """Build the audit that a plan describes of data that is not split yet."""
        data = split_data(whole, plan)
        refuse_unused(plan, data)
        if systems is None:
            of = what_systems_are(metrics, data)
            systems = {n: load_system(n, s, of) for n, s in plan.systems.items()}
        more = {"plan": plan, "analyses": analyses, **_stated(plan)}
        made = cls(data, dict(systems), metrics, **more)
        assert isinstance(made.backend, MemoryBackend)  # it has data
        made.backend.files, made.backend.whole = files, whole if plan.repeat > 1 else None
        return made

    def repeated(self, number: int, systems: Mapping[str, System] | None) -> Self:
        """Return the audit of a further repeat: only its split and its systems are new."""
        assert self.plan is not None and isinstance(self.backend, MemoryBackend)
        files, whole = self.backend.files, self.backend.whole
        assert files is not None and whole is not None  # its plan asks for repeats
        plan = repeated_plan(self.plan, number)
        return self._planned(plan, systems, self.metrics, self.analyses, files, whole)

    @property
    def settings(self) -> Settings:
        """How uncertainty is computed."""
        return Settings(**self.statistics.model_dump(), seed=self.seed)

    def quote(self) -> dict[str, CostQuote]:
        """Return what asking each service would take and cost; asks nothing."""
        return self.backend.quote()

    def run(
        self,
        folder: Path | str | None = None,
        progress: Progress | None = None,
        notice: Callable[[str], None] | None = None,
        *,
        answers: Answers | None = None,
        repeats: Sequence[Answers] = (),
    ) -> Result:
        """Ask the systems, measure, and estimate.

        Parameters
        ----------
        folder
            Where to store the result. A run that was stopped goes on when it is started again
            with the same plan and folder. Default: in memory only.
        progress
            Called with (done, total, note) during long work. Default: a bar in a notebook, else
            nothing.
        notice
            Called with a sentence for each service before any is asked: how many requests, to
            where, what they would cost; of files that cannot be hashed; of keys with a new name.
        answers, repeats
            What each system answered before, in place of asking; and in further repeats.
        """
        if folder is None and self.backend.needs_folder:
            scratch = None if self.plan is None else self.plan.engine.scratch
            with TemporaryDirectory(dir=scratch) as passing:
                return replace(self.run(Path(passing) / "run", progress, notice), folder=None)
        started = now()
        if notice is not None and self.plan is not None:
            for old in old_names(self.plan):
                notice(old)
        self.backend.ready(notice)
        with nullcontext() if folder is None else locked_folder(Path(folder)):
            return self._run(folder, progress, notice, answers, repeats, started)

    def _run(
        self,
        folder: Path | str | None,
        progress: Progress | None,
        notice: Callable[[str], None] | None,
        answers: Answers | None,
        repeats: Sequence[Answers],
        started: str,
    ) -> Result:
        store = None if folder is None else self.open(Path(folder), notice)
        run = Run(store, progress or notebook_bar() or silent, notice, answers, repeats)
        measured = self.backend.measure(run)
        result = Result(
            plan=self._as_plan(),
            estimates=tuple(
                declare(self._doubted(list(measured.estimates)), self.statistics.matters)
            ),
            metrics=tuple(measured.metrics),
            exclusions=tuple(measured.exclusions),
            card=measured.card,
            tables=measured.tables,
            provenance=self._provenance(started),
            folder=None if folder is None else Path(folder),
        )
        result = in_families(result, registry.get("verdict", "families")(result))
        return result if store is None else store.finish(result)

    def _doubted(self, estimates: list[Estimate]) -> list[Estimate]:
        """Say of tests on a system's labels what its errors could do, where no metric has."""
        labels = None if self.data is None else self.data.labels
        if labels is None or labels.errors is None:
            return estimates
        withdrawn = labels.errors.transport == "calibration"
        why = "the labels are not corrected (the correction by calibration is withdrawn)"
        return [
            e.replace(details={**e.details, LABEL_DOUBT: why if withdrawn else label_doubt(e)})
            if e.label in labels.names and e.null is not None and e.value is not None
            and (withdrawn or LABEL_DOUBT not in e.details)
            else e
            for e in estimates
        ]  # fmt: skip

    def _provenance(self, started: str) -> dict[str, Any]:
        inputs, plan = self.backend.inputs(), self._as_plan()
        return {
            "schema_version": RESULT_SCHEMA,
            "started": started,
            "finished": now(),
            "seed": self.seed,
            "versions": versions(),
            "data": inputs.data,
            "parts": dict(inputs.parts),
            "inputs": dict(inputs.files),
            **({} if plan.engine.type == "memory" else {"engine": plan.engine.type}),
        }

    def _as_plan(self) -> Plan:
        if self.plan is not None:
            return self.plan
        assert isinstance(self.systems, Mapping) and self.data is not None  # no plan, no files
        systems = {name: {"type": type(s).__name__} for name, s in self.systems.items()}
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

    def open(self, folder: Path, notice: Callable[[str], None] | None = None) -> RunFolder:
        """Return the folder of a run, new or of a stopped run of the same audit."""
        if (folder / "provenance.json").exists():
            # A second run would hash edited answers and estimates as if the audit had made them.
            require_unedited(folder, ignore=("inputs", "reports"))
            edited = [c.name for c in verify(folder).select("changed") if c.kind == "reports"]
            if edited and notice is not None:
                notice(f"EDITED: {', '.join(edited)} changed since ombud wrote it; written anew")
        plan = self._as_plan().portable(folder)
        known = _without_pace(plan.model_dump(mode="json"))
        store = RunFolder(
            folder, {"plan": known, **self.backend.inputs().identity()}, plan.to_toml()
        )
        if self.data is not None and self.plan is None:
            store_data(self.data, folder)
        elif self.data is not None and plan.split:
            store_held_out(self.data, folder)
        return store


def _stated(plan: Plan) -> dict[str, Any]:
    """Return what a plan states beside data, systems and metrics."""
    return {
        name: getattr(plan, name)
        for name in ("seed", "sample", "statistics", "title", "about", "expect")
    }


def _without_pace(plan: dict[str, Any]) -> dict[str, Any]:
    """Return a plan's values without how fast services are asked: that makes no other run."""
    systems = {}
    for name, config in plan["systems"].items():
        systems[name] = {key: value for key, value in config.items() if key != "run"}
        if isinstance(config.get("run"), dict) and config["run"].get("repeats", 1) != 1:
            systems[name]["run"] = {"repeats": config["run"]["repeats"]}  # these are other answers
    return {**plan, "systems": systems}


# Data that came from memory is stored with the result, so that it can be measured again.


HELD_OUT = "held_out.parquet"
"""What a plan's split held out, in a result folder; all the rest was trained on."""


def data_plan(data: Dataset) -> DataPlan:
    """Return the part of a plan that names the stored tables."""
    told = {name: f"inputs/{name}.parquet" for name in TABLES if getattr(data, name) is not None}
    if data.labels is not None and data.labels.unlabeled == "no":
        told["unlabeled"] = "no"
    return DataPlan().model_copy(update=told)


def store_data(data: Dataset, folder: Path) -> None:
    """Store the tables of a data set in a result folder, unless they are there."""
    for name in TABLES:
        path = folder / "inputs" / f"{name}.parquet"
        if not path.exists():
            write_table(name, data, path)


def store_held_out(data: Dataset, folder: Path) -> None:
    """Store what was held out, so that others can measure on the same part."""
    if data.test is not None and not (folder / HELD_OUT).exists():
        write_table("test", data, folder / HELD_OUT)


def in_families(result: Result, families: Mapping[str, Sequence[Estimate]]) -> Result:
    """Return a result in which the comparisons of each family are corrected together.

    The engine corrects the numbers of one kind of one metric among themselves. What answers a
    question is often several such sets (all users, each group; each label), so a question declares
    its family, and its p-values are corrected once. Every count in a report is of that family.

    It must be done while the audit runs: what tests gave below the least p-value that replicates
    can tell (`Estimate.p_tail`) is not stored. Members without a number whose flags were too few
    to be tested count with a p-value of 1 (`ombud.metrics.engine.estimate.correct`).

    Parameters
    ----------
    result
        What an audit found.
    families
        For each question, by name, the estimates of `result` that answer it. One that answers two
        questions belongs to the first.

    Examples
    --------
    >>> from ombud.audits import Plan
    >>> about = dict(value=0.1, interval=(0.0, 0.2), method="BCa", n=99, null=0.0)
    >>> some = tuple(Estimate(metric=m, p_value=p, **about) for m, p in (("a", 0.02), ("b", 0.04)))
    >>> found = in_families(Result(Plan(), some), {"mine": some})
    >>> [(e.p_adjusted, e.correction, e.family) for e in found.estimates]
    [(0.04, 'benjamini-hochberg over 2', 'mine'), (0.04, 'benjamini-hochberg over 2', 'mine')]
    """
    made: dict[int, Estimate] = {}
    for name, members in families.items():
        own = [e for e in members if id(e) not in made]
        bare = [e.replace(p_adjusted=None, correction="", family=name) for e in own]
        together = correct(bare, result.plan.statistics.correction)
        made |= {id(e): new for e, new in zip(own, together, strict=True)}
    return replace(result, estimates=tuple(made.get(id(e), e) for e in result.estimates))


def rescore(
    folder: Path | str,
    *,
    plan: Plan | None = None,
    into: Path | str | None = None,
    progress: Progress | None = None,
) -> Result:
    """Compute the metrics of a result again.

    An audit in blocks stores no copy of what was recorded: it is made again from the files, which
    must be those of then.

    Parameters
    ----------
    folder
        A result folder, finished or with all its outputs stored.
    plan
        Take metrics, groups and statistics from this plan; default, the result's own. Data, its
        split, the seed, the engine and what was declared beforehand stay those of the result.
    into
        Write the new result to this folder; default, in memory only.
    progress
        Called with (done, total, note) during long work.
    """
    folder = Path(folder)
    stored = Plan.load(folder / "plan.toml")
    asked = stored
    if plan is not None:
        if plan.expect and plan.expect != stored.expect:
            raise PlanError(
                "the plan has another [expect] than the result, and what is expected is declared "
                "before systems are asked; judge a result by later limits with: "
                "ombud check RESULT --gate FILE"
            )
        fixed = ("data", "systems", "split", "seed", "repeat", "about", "expect", "engine")
        kept = {name: getattr(stored, name) for name in fixed}
        asked = plan.model_copy(update=kept)
    _check_unchanged(folder, stored)
    if stored.engine.type != "memory":
        return Audit.from_plan(asked).run(into, progress)
    answers = _answers(folder, tuple(stored.systems))
    systems: dict[str, Recommender | Moderator] = {
        name: RecordedRecommendations.from_frame(answer.outputs, name)
        if isinstance(answer.outputs, Recommendations)
        else RecordedDecisions.from_frame(answer.outputs, name)
        for name, answer in answers.items()
    }
    audit = Audit.from_plan(asked, systems)
    repeats = [
        _answers(folder / REPEATS / str(number), tuple(stored.systems))
        for number in range(2, stored.repeat + 1)
    ]
    return audit.run(into, progress, answers=answers, repeats=repeats)


def _check_unchanged(folder: Path, stored: Plan) -> None:
    """Refuse data files that are not what they were when the systems were asked."""
    # What an audit in blocks measures are the recorded files themselves.
    measured = ("data.",) if stored.engine.type == "memory" else ("data.", "systems.")
    before = read_json(folder / "run.json").get("files", {})
    if not isinstance(before, dict):
        raise ResultError(f"{folder / 'run.json'} is damaged: files must name files")
    after = input_hashes(stored)
    changed = [
        index
        for index, digest in before.items()
        if index.startswith(measured) and after.get(index) != digest
    ]
    if changed:
        raise ResultError(
            f"files have changed or gone since {folder} was made: {', '.join(changed)}; "
            "the stored answers belong to the old ones. Run the audit again: ombud run PLAN"
        )
    if not (folder / "provenance.json").exists():
        return  # it was never finished, and nothing is recorded
    provenance = read_json(folder / "provenance.json")
    check_provenance(folder / "provenance.json", provenance)
    answered = ("outputs/", "predictions/", f"{REPEATS}/")
    kept = [n for n in provenance.get("files", {}) if n.startswith(answered)]
    edited = read_integrity(folder, provenance, kept).changed
    if edited:
        raise ResultError(
            f"stored answers of {folder} were edited after the audit: {', '.join(edited[:3])}; "
            "measuring them would give numbers that no system gave. ombud verify says what changed"
        )


def _answers(folder: Path, systems: tuple[str, ...]) -> dict[str, SystemOutputs]:
    result: dict[str, SystemOutputs] = {}
    for name in systems:
        outputs = read_outputs(folder, name)
        if outputs is not None:
            result[name] = SystemOutputs(outputs, read_predictions(folder, name))
    if not result:
        raise ResultError(f"{folder} holds no outputs; run the audit first: ombud run PLAN")
    return result


def recompute(folder: Path | str, progress: Progress | None = None) -> tuple[str, ...]:
    """Measure the stored outputs again, and name the estimates that come out otherwise.

    The result's data must be within reach.

    Returns
    -------
    The stored estimates that are not those computed now, each on one line; empty when all agree
    to nine digits.
    """
    stored = Result.load(folder)
    again = rescore(folder, progress=progress)
    result = []
    for number in range(max(len(stored.estimates), len(again.estimates))):
        pair = [
            all_[number] if number < len(all_) else None
            for all_ in (stored.estimates, again.estimates)
        ]
        if None in pair or not _agree(*(e.to_dict() for e in pair if e is not None)):
            result.append(str(pair[0] or pair[1]))
    return tuple(result)


def _agree(one: Any, other: Any) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_agree(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_agree, one, other))
    if isinstance(one, float | int) and isinstance(other, float | int):
        return one == other or isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return bool(one == other)
