"""What to audit, as a file: everything a run needs; and all its faults at once."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Self, TypeVar, Union, cast, get_args, get_origin

import tomli_w
from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    field_validator,
    model_validator,
)

from ombud import registry
from ombud.audits.analysis import Analysis
from ombud.audits.condition import Condition
from ombud.data.dataset import Dataset
from ombud.data.items import LABEL, LABEL_WORDS
from ombud.data.labels import Unlabeled
from ombud.data.lake import is_remote
from ombud.data.tables import TABLES
from ombud.errors import OmbudError, PlanError
from ombud.files import read_plain
from ombud.metrics.base import Metric

PLAN_SCHEMA = 1
"""The version of the plan's form that this ombud writes, and the newest it reads."""


_Size = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Matters = _Size | dict[str, _Size] | None
"""The smallest difference that matters: one size, or one for each named measure."""

_LONGEST_NAME = 80


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class AboutPlan(_Strict):
    """Who audits whom, and what for; shown in the report and its appendix, and packed."""

    auditor: str | None = Field(default=None, max_length=200)
    """Who makes the audit."""
    audited: str | None = Field(default=None, max_length=200)
    """Whose system it is about: the audited party."""
    system_version: str | None = Field(default=None, max_length=200)
    """Which version of the system."""
    period: str | None = Field(default=None, max_length=200)
    """The time that the data is from."""
    data: str | None = Field(default=None, max_length=200)
    """What the data is, in a few words, such as "simulated data"."""
    purpose: str | None = Field(default=None, max_length=1000)
    """What the audit is for."""
    contact: str | None = Field(default=None, max_length=200)
    """Whom to ask about it."""


class DisplayPlan(_Strict):
    """What readers see in place of keys: ``[display.groups] "age=18-24" = "students"``."""

    systems: dict[str, str] = Field(default_factory=dict)
    """By the name of a system: its display name."""
    labels: dict[str, str] = Field(default_factory=dict)
    """By label: its display name."""
    groups: dict[str, str] = Field(default_factory=dict)
    """By group, such as ``age=18-24``: who is in it, as a plural noun."""


class ExpectPlan(_Strict):
    """A limit that is declared before anything is measured, and the reason for it.

    Conditions are those of `ombud check`: names of an estimate's fields, numbers, quoted words.
    The limit is *met* when it holds in the whole interval of every estimate that `where` is about,
    *not met* when the whole interval of one lies beyond it, and else *undecided*.
    """

    limit: str
    """What must hold, such as ``value <= 0.05``; `value` stands for its whole interval."""
    where: str = ""
    """Which estimates; those that name no `kind` are levels only. Default, every level."""
    reason: str = Field(min_length=1, max_length=1000)
    """Why this limit."""

    @field_validator("limit", "where")
    @classmethod
    def _is_condition(cls, text: str, info: Any) -> str:
        if text or info.field_name == "limit":
            try:
                Condition(text)
            except PlanError as error:
                raise ValueError(str(error)) from None
        return text


class DataPlan(_Strict):
    """Where the data is: files in the standard form, or a registered source."""

    source: str | None = None
    """A registered source or world (``ombud data list``) instead of files."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the source."""
    interactions: str | None = None
    """File with `user`, `item` and optionally `rating`, `time`, `set` (the data set of a row)."""
    rating_scale: tuple[float, float] | None = None
    """Lowest and highest permitted rating."""
    duplicates: Literal["error", "last", "mean", "median"] = "error"
    """What to do when a user has an item more than once."""
    missing: Literal["error", "drop"] = "error"
    """What to do with rows whose rating is missing."""
    test: str | None = None
    """File of held-out interactions, when they were split beforehand."""
    labels: str | None = None
    """File with `item`, `label` and votes (`yes`, `no`), or `present`, or nothing more."""
    unlabeled: Unlabeled | None = Field(
        default=None, validation_alias=AliasChoices("unlabeled", "absent")
    )
    """What a pair of item and label without a row means, of every item that occurs anywhere."""
    threshold: float = Field(default=0.75, gt=0.5, le=1, strict=True)
    """For votes: the share of votes that makes a state known."""
    strict: bool = Field(default=False, strict=True)
    """For votes: whether the share must exceed the threshold rather than reach it."""
    items: str | None = None
    """File with `item`, one column per attribute, and optionally `<attribute>_status`."""
    users: str | None = None
    """File with `user` and one column per attribute."""
    texts: str | None = None
    """File with `text` and optionally `id`, `label`, `cluster`, `family`; votes as `yes`, `no`."""
    text_labels: str | None = None
    """File with `id` and `label` of the texts, if their own file has none."""
    text_groups: str | None = None
    """File with `id` and a column per attribute of the texts, or in long form `id` and `group`."""
    columns: dict[str, dict[str, str]] = Field(default_factory=dict)
    """``[data.columns.TABLE]``: by the name above, the column's name in the file of that table."""
    reading: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """``[data.reading.TABLE]``: how its file is written (`separator`, `decimal`, `dates`, ...)."""
    form: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """By table, the columns its file had when the plan was written: the result names changes."""

    _old_names: tuple[str, ...] = PrivateAttr(default=())

    @model_validator(mode="wrap")
    @classmethod
    def _renamed(cls, content: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Remember that `absent`, the older name of `unlabeled`, was used."""
        old = isinstance(content, Mapping) and "absent" in content
        if old and content.get("unlabeled", content["absent"]) != content["absent"]:
            raise ValueError("absent is the older name of unlabeled, and both differ; remove it")
        made = handler(content)
        if old:
            made._old_names = ("absent",)
        return made

    def __eq__(self, other: object) -> bool:
        # Which name was used for a value does not make another plan.
        return isinstance(other, DataPlan) and self.model_dump() == other.model_dump()

    @property
    def old_names(self) -> tuple[str, ...]:
        """The keys that were given under an older name."""
        return self._old_names

    @field_validator("rating_scale")
    @classmethod
    def _rising(cls, scale: tuple[float, float] | None) -> tuple[float, float] | None:
        if scale is not None and scale[0] >= scale[1]:
            raise ValueError(f"the lowest rating, {scale[0]:g}, is not below the highest")
        return scale


class UnlabeledPlan(_Strict):
    """How often unlabeled items plausibly carry a label, relative to labeled items."""

    lowest: float = Field(gt=0, le=1, strict=True)
    """The least ratio of the two rates."""
    highest: float = Field(ge=1, strict=True)
    """The greatest ratio."""
    reason: str = Field(min_length=1, max_length=1000)
    """Why this range."""


class StatisticsPlan(_Strict):
    """How uncertainty is computed."""

    level: float = Field(default=0.95, gt=0, lt=1, strict=True)
    """Coverage of the intervals."""
    replicates: int = Field(default=2000, ge=100, le=100_000, strict=True)
    """Bootstrap replicates."""
    interval: Literal["bca", "percentile", "expanded"] = "bca"
    """How intervals are made from replicates; bca gives way to expanded below 50 units."""
    correction: Literal["benjamini-hochberg", "holm", "none"] = "benjamini-hochberg"
    """Correction for many comparisons."""
    minimum: int = Field(default=10, ge=2, strict=True)
    """With fewer units there is no number, but the words "not enough data"."""
    small_groups: Literal["merged", "listed"] = "merged"
    """Whether reports merge groups of fewer users than ``minimum`` into one line, or list them."""
    matters: Matters = None
    """The smallest difference that matters; of all measures, or by the name of each."""
    unlabeled: UnlabeledPlan | None = None
    """Another range than 0.5 to 2: how often unlabeled items carry a label, relative to others."""


class EnginePlan(_Strict):
    """Where the audit is computed: in memory, from blocks on disk, or on a Spark cluster."""

    type: Literal["memory", "stream", "spark"] = "memory"
    """``stream``: Parquet larger than memory, in blocks. ``spark``: blocks on a cluster."""
    blocks: int | None = Field(default=None, ge=1, le=1_000_000, strict=True)
    """Into how many blocks users or texts are sorted; default, by the number of rows."""
    scratch: str | None = None
    """Folder for the blocks; default, within the result, where they are deleted at the end."""
    rows: bool = Field(default=True, strict=True)
    """``stream``: whether what was measured on each unit is stored, a part for each block."""
    master: str | None = None
    """``spark``: the address of the cluster; default, what Spark's own configuration says."""
    options: dict[str, str] = Field(default_factory=dict)
    """``spark``: options of the session, such as ``"spark.executor.memory" = "8g"``."""


class _Expecting(_Strict):
    """What has ``[expect]``: a plan, or the file of a gate."""

    schema_version: int = Field(default=PLAN_SCHEMA, ge=1, strict=True)
    expect: dict[str, ExpectPlan] = Field(default_factory=dict)

    @field_validator("expect", mode="before")
    @classmethod
    def _is_named(cls, expect: Any) -> Any:
        if isinstance(expect, dict) and not all(
            isinstance(e, dict | ExpectPlan) for e in expect.values()
        ):
            raise ValueError(
                'give each limit a name: [expect."a few words"] with limit, where and reason'
            )
        return expect

    @field_validator("expect")
    @classmethod
    def _has_short_names(cls, expect: dict[str, ExpectPlan]) -> dict[str, ExpectPlan]:
        for name in expect:
            if not name.strip() or len(name) > _LONGEST_NAME:
                raise ValueError(
                    f"{name!r} stands on the first screen of the report: 1 to {_LONGEST_NAME} "
                    "characters, please; the reason may be longer"
                )
        return expect


class Plan(_Expecting):
    """What to audit: data, systems, metrics and groups.

    A plan is a TOML file; paths in it are relative to the file. ``ombud run PLAN`` runs it.
    """

    schema_version: int = Field(default=PLAN_SCHEMA, ge=1, strict=True)
    """The version of this form."""
    title: str = Field(default="Audit", max_length=1000)
    """The title of the report."""
    about: AboutPlan = AboutPlan()
    """Who audits whom, and what for."""
    expect: dict[str, ExpectPlan] = Field(default_factory=dict)
    """By name (a few words, for the report's first screen): a `limit` and its `reason`."""
    display: DisplayPlan = DisplayPlan()
    """Names that the report shows in place of keys."""
    preset: str | None = None
    """A registered preset that fills in what the plan leaves open."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of the preset."""
    seed: int = Field(default=0, ge=0, strict=True)
    """The seed of everything random."""
    repeat: int = Field(default=1, ge=1, le=100, strict=True)
    """Make the audit so often, with other splits (or folds) and seeds; intervals cover that too."""
    sample: int | None = Field(default=None, ge=1, strict=True)
    """Audit a random sample of this many users; default, all."""
    data: DataPlan = DataPlan()
    """Where the data is."""
    split: dict[str, Any] = Field(default_factory=dict)
    """Hold interactions out for accuracy: a `method` and its options. Empty: nothing held out."""
    systems: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """By name: a `type` (a registered recommender or moderator) and its arguments."""
    metrics: tuple[dict[str, Any], ...] = ()
    """Each a `name` (a registered metric) and its options."""
    analyses: tuple[dict[str, Any], ...] = ()
    """Each a `name` (a registered analysis) and its options."""
    by: tuple[str, ...] | None = None
    """Attributes to compare groups by; all that the data has by default, `[]` for none."""
    by_item: tuple[str, ...] = ()
    """Attributes of items to measure by; `label` (or `warning`) crosses them with labels."""
    intersections: bool = Field(default=False, strict=True)
    """Whether pairs of attributes make groups too."""
    statistics: StatisticsPlan = StatisticsPlan()
    """How uncertainty is computed."""
    engine: EnginePlan = EnginePlan()
    """Where it is computed."""

    @field_validator("by_item")
    @classmethod
    def _one_word(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(LABEL if name in LABEL_WORDS else name for name in names)

    @field_validator("by", "by_item")
    @classmethod
    def _named_once(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        again = sorted({name for name in names or () if (names or ()).count(name) > 1})
        if again:
            raise ValueError(f"{', '.join(again)} is named twice")
        return names

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a plan from a TOML file; all its faults come in one error."""
        path = Path(path)
        content = read_toml(path, "plan")
        if "sets" in content:
            raise PlanError(
                f"{path} is the plan of a study of several data sets ([sets]); ombud run runs it"
            )
        return cls.from_dict(content, str(path)).relative_to(path.parent)

    @classmethod
    def from_dict(cls, content: dict[str, Any], source: str = "the plan") -> Self:
        """Check plain values and return the plan; all faults in one error."""
        return checked(cls, content, source)

    def relative_to(self, folder: Path) -> Self:
        """Return the plan with its paths made absolute from a folder."""
        return cast(Self, absolute_paths(self, folder))

    def portable(self, folder: Path) -> Self:
        """Return the plan with paths relative to a folder, and no home folder in them."""
        return cast(Self, portable_paths(self, folder))

    def to_toml(self) -> str:
        """Return the plan as TOML text."""
        if found := numbers_that_are_none(self.model_dump()):
            told = ", ".join(f"{place} is {value}" for place, value in found.items())
            raise PlanError(f"a plan holds finite numbers; {told}")
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))


_SET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,79}\Z")


def load_study(path: Path | str) -> dict[str, Plan]:
    """Read a plan of one data set or several: the plan of each, by its name.

    A plan with tables ``[sets.NAME]`` is a study. Each of them holds what is different for that
    data set (``[sets.NAME.data]``, ``[sets.NAME.options]``, ...); tables are merged with those of
    the plan, anything else replaces what the plan says. A plan without such tables has the name
    "".
    """
    path = Path(path)
    content = read_toml(path, "plan")
    if "sets" not in content:
        return {"": Plan.from_dict(content, str(path)).relative_to(path.parent)}
    sets = content.pop("sets")
    if not isinstance(sets, dict) or not all(isinstance(one, dict) for one in sets.values()):
        raise PlanError(f"{path}: give each data set a table of its own, as in [sets.BookCrossing]")
    if not 2 <= len(sets) <= 50:
        raise PlanError(
            f"{path}: [sets] has {len(sets)} data set{'s' if len(sets) != 1 else ''}; a study has "
            "2 to 50"
        )
    wrong = [name for name in sets if not _SET_NAME.match(name)]
    if wrong:
        raise PlanError(
            f"{path}: names of data sets are letters, digits, spaces and ._+- (they name folders); "
            f"found {[name[:80] for name in wrong]}"
        )
    plans, faults = {}, []
    for name, own in sets.items():
        whole = _merged(content, own)
        if "title" in content and "title" not in own:
            whole["title"] = f"{content['title']}: {name}"
        about = whole.get("about", {})
        if isinstance(about, dict) and "data" not in own.get("about", {}):
            whole["about"] = {**about, "data": name}
        try:
            plan = Plan.from_dict(whole, f"{path} with [sets.{name}]")
            plans[name] = plan.relative_to(path.parent)
        except PlanError as error:
            faults.append(str(error))
    if faults:
        raise PlanError("\n".join(faults))
    return plans


def _merged(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return values in which nested tables are merged and anything else is replaced."""
    made = dict(common)
    for key, value in own.items():
        both = isinstance(value, Mapping) and isinstance(made.get(key), Mapping)
        made[key] = _merged(made[key], value) if both else value
    return made


class GateFile(_Expecting):
    """Limits in a file of their own: ``ombud check RESULT --gate FILE``."""

    schema_version: int = Field(default=PLAN_SCHEMA, ge=1, strict=True)
    """The version of this form."""
    expect: dict[str, ExpectPlan] = Field(min_length=1)
    """As in a plan."""


_M = TypeVar("_M", bound=BaseModel)


_LARGEST = 1 << 24
"""Bytes of a plan or a gate."""


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """Read a TOML file that a person wrote, with an error that says what it should be."""
    try:
        return tomllib.loads(read_plain(path, _LARGEST).decode("utf-8").replace("\r\n", "\n"))
    except FileNotFoundError:
        raise PlanError(f"there is no {what} {path}") from None
    except (ValueError, RecursionError) as error:  # also bytes that are not UTF-8
        raise PlanError(f"{path} is not TOML: {error}") from None
    except OSError as error:
        raise PlanError(f"{path} cannot be read as a {what}: {error.strerror}") from None


def checked(form: type[_M], content: dict[str, Any], source: str) -> _M:
    """Return the values of a form that is a plan or a part of one; all faults in one error."""
    version = content.get("schema_version", PLAN_SCHEMA)
    if isinstance(version, int) and version > PLAN_SCHEMA:
        raise PlanError(
            f"{source} has schema version {version}; this ombud reads up to {PLAN_SCHEMA}. "
            "Install a newer ombud: pip install --upgrade ombud"
        )
    found = numbers_that_are_none(content)
    faults = [
        f"{place}: {value} is no number that can be computed with" for place, value in found.items()
    ]
    try:
        made = form.model_validate(content)
    except ValidationError as error:
        faults += [f for f in form_faults(form, error) if f.partition(": ")[0] not in found]
    if faults:
        count = f"{len(faults)} fault{'s' if len(faults) != 1 else ''}"
        raise PlanError("\n".join([f"{source}: {count}", *(f"  - {f}" for f in faults)]))
    return made


# Which values of a plan are paths: those whose argument is typed as one.


Change = Callable[[str], str]


def _is_path(hint: Any) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return any(_is_path(part) for part in get_args(hint) if part is not NoneType)
    return isinstance(hint, type) and issubclass(hint, Path)


def _is_file(value: object) -> bool:
    # A mapping or a list of terms may also be named: "tmdb-to-ao3@1" is no file.
    return isinstance(value, str) and value != "" and not ("@" in value and not Path(value).suffix)


def _changed(kinds: tuple[str, ...], name: object, part: Mapping[str, Any], change: Change) -> Any:
    """Return the arguments of a registered thing with its paths changed, however deep."""
    hints: dict[str, Any] = {}
    for kind in kinds:
        try:
            hints = registry.argument_types(kind, str(name))
            break
        except OmbudError:  # the fault is told when the thing is built
            continue
    return {key: _value(hints.get(key), value, change) for key, value in part.items()}


def _value(hint: Any, value: Any, change: Change) -> Any:
    if isinstance(value, Mapping):
        if "source" in value and "type" not in value:  # a part of several sources
            return _changed(("source",), value["source"], value, change)
        named = value.get("type", value.get("name"))
        return _changed(("recommender", "moderator"), named, value, change)
    if isinstance(value, list | tuple):
        return [_value(None, one, change) if isinstance(one, Mapping) else one for one in value]
    return change(value) if _is_path(hint) and _is_file(value) else value


def change_paths(plan: Plan, change: Change) -> Plan:
    """Return the plan with every path in it changed."""
    given = {name: getattr(plan.data, name) for name in (*TABLES, "text_labels")}
    tables = {name: change(path) for name, path in given.items() if path is not None}
    options = _changed(("source", "world"), plan.data.source, plan.data.options, change)
    data = plan.data.model_copy(update={**tables, "options": options})
    systems = {
        name: _changed(("recommender", "moderator"), config.get("type"), config, change)
        for name, config in plan.systems.items()
    }
    return plan.model_copy(
        update={
            "data": data,
            "systems": systems,
            "metrics": _specs("metric", plan.metrics, change),
            "analyses": _specs("analysis", plan.analyses, change),
            "options": _changed(("preset",), plan.preset, plan.options, change),
        }
    )


def _specs(
    kind: str, specs: tuple[dict[str, Any], ...], change: Change
) -> tuple[dict[str, Any], ...]:
    return tuple(_changed((kind,), spec.get("name"), spec, change) for spec in specs)


def absolute_paths(plan: Plan, folder: Path) -> Plan:
    """Return the plan with its paths made absolute from a folder; ``~`` is the reader's home."""

    def absolute(path: str) -> str:
        if is_remote(path):
            return path
        try:
            return str((folder / Path(path).expanduser()).resolve())
        except (OSError, RuntimeError, ValueError) as error:  # no such home; a NUL in the name
            raise PlanError(f"{path[:80]!r} cannot be a path: {error}") from None

    return change_paths(plan, absolute)


def portable_paths(plan: Plan, folder: Path) -> Plan:
    """Return the plan with paths relative to a folder, without the home folder of its writer.

    What lies beside the folder is named from there, so both can be moved together; what lies
    elsewhere under the home folder begins with ``~``.
    """
    here, home = folder.resolve(), Path.home().resolve()

    def portable(path: str) -> str:
        file = Path(path)
        if not file.is_absolute():
            return path
        shared = Path(os.path.commonpath([here, file]))
        if shared != Path(shared.anchor) and shared not in (home, *home.parents):
            return Path(os.path.relpath(file, here)).as_posix()
        return f"~/{file.relative_to(home).as_posix()}" if file.is_relative_to(home) else path

    return change_paths(plan, portable)


# What is wrong with the form of a plan, each fault with what was probably meant.


def form_faults(model: type[BaseModel], error: ValidationError) -> list[str]:
    """Return one line for each fault in the form of a plan."""
    lines = []
    for one in error.errors():
        where = [str(part) for part in one["loc"]]
        if one["type"] == "extra_forbidden":
            lines.append(_unknown_key(model, where))
        else:
            said = one["msg"].removeprefix("Value error, ")
            lines.append(f"{'.'.join(where) or 'plan'}: {said}")
    return lines


def numbers_that_are_none(content: Any) -> dict[str, float]:
    """Return every ``inf`` and ``nan`` in nested values, however deep, by its place."""
    found: dict[str, float] = {}
    waiting: list[tuple[tuple[str, ...], Any]] = [((), content)]
    while waiting:
        place, part = waiting.pop()
        if isinstance(part, float) and not isfinite(part):
            found[".".join(place)] = part
        elif isinstance(part, dict):
            waiting += [((*place, str(key)), value) for key, value in part.items()]
        elif isinstance(part, list | tuple):
            waiting += [((*place, str(at)), value) for at, value in enumerate(part)]
    return dict(reversed(found.items()))


def _unknown_key(model: type[BaseModel], where: list[str]) -> str:
    *path, key = where
    inside: Any = model
    named = False
    for part in path:
        if named:  # the part is a name that the plan gives, such as that of an expectation
            named = False
            continue
        field = getattr(inside, "model_fields", {}).get(part)
        inside = None if field is None else _model(field.annotation)
        named = field is not None and get_origin(field.annotation) is dict
    known = list(getattr(inside, "model_fields", {}))
    place = f"[{'.'.join(path)}]" if path else "the plan"
    near = get_close_matches(key, known, n=1)
    meant = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}"
    return f"{place} has no key {key!r}; {meant}"


def _model(annotation: Any) -> Any:
    return next(
        (a for a in (annotation, *get_args(annotation)) if hasattr(a, "model_fields")), None
    )


def build_named(
    plan: Plan, systems: bool = True
) -> tuple[tuple[Metric, ...], tuple[Analysis, ...]]:
    """Return the metrics and analyses that a plan names; one error for all that is not there.

    The plan is completed by its preset. Systems that are given, and not built from the plan, have
    no name there to look up.
    """
    faults: list[str] = []
    if plan.data.source is not None:
        _look_up(faults, ("source", "world"), plan.data.source, "[data] source")
    kinds = _kinds_of_systems(plan)
    for name, config in plan.systems.items() if systems else ():
        if "type" in config:
            _look_up(faults, kinds, config["type"], f"system {name!r}")
    metrics = build_all("metric", plan.metrics, faults)
    analyses = build_all("analysis", plan.analyses, faults)
    if len(faults) == 1:
        raise PlanError(faults[0])
    if faults:
        lines = "".join(f"\n  - {fault}" for fault in faults)
        raise PlanError(f"the plan: {len(faults)} faults{lines}")
    return metrics, analyses


def build_all(kind: str, specs: Iterable[Mapping[str, Any]], faults: list[str]) -> tuple[Any, ...]:
    """Return all that some specs name, of one kind; those that cannot be built go to the faults."""
    made = []
    for spec in specs:
        options = dict(spec)
        name = options.pop("name", None)
        if name is None:
            faults.append(f"{'an' if kind == 'analysis' else 'a'} {kind} has no name: {spec}")
            continue
        try:
            made.append(registry.create(kind, name, options))
        except OmbudError as error:
            faults.append(str(error))
    return tuple(made)


def _kinds_of_systems(plan: Plan) -> tuple[str, ...]:
    """Return what the systems of a plan can be, by what its metrics measure."""
    both = ("recommender", "moderator")
    known = registry.names("metric")
    metrics: list[Any] = [
        registry.get("metric", spec["name"]) for spec in plan.metrics if spec.get("name") in known
    ]
    wanted = {metric.of for metric in metrics}
    return tuple(kind for kind in both if kind in wanted) or both


def _look_up(faults: list[str], kinds: tuple[str, ...], name: object, where: str) -> None:
    known = sorted({one for kind in kinds for one in registry.names(kind)})
    every = {"recommender", "moderator"} if set(kinds) <= {"recommender", "moderator"} else kinds
    if not any(name in registry.names(kind) for kind in every):
        what = " or ".join(kinds)
        faults.append(f"{where}: no {what} is called {name!r}; {registry.hint(name, known)}")


# What was given and would not be used: refused, or said at the top.


_NEEDS = {
    "rating_scale": "interactions",
    "duplicates": "interactions",
    "missing": "interactions",
    "unlabeled": "labels",
    "threshold": "labels",
    "strict": "labels",
}
"""Which table each reading option is about."""


def refuse_unused(plan: Plan, data: Dataset) -> None:
    """Refuse keys of a plan that nothing would look at; all of them in one error.

    Values that are the default say nothing, so they are no fault.
    """
    faults = []
    for key, table in _NEEDS.items():
        default = DataPlan.model_fields[key].default
        unread = plan.data.source is None and getattr(plan.data, table) is None
        if unread and getattr(plan.data, key) != default:
            faults.append(f"data.{key} says how {table} are read; the plan names no {table}")
    if plan.sample is not None and data.interactions is None:
        faults.append("sample takes some of the users; the data has no interactions")
    known = [g for groups in (data.users, data.text_groups) if groups for g in groups.attributes]
    if plan.intersections and not known:
        faults.append("intersections pairs groups; the data has none")
    if plan.preset is None:
        missing = [name for name in plan.by or () if name not in known]
        if missing:
            attributes = ", ".join(dict.fromkeys(known)) or "none"
            faults.append(
                f"by names {', '.join(missing)}; the data has the attributes {attributes}"
            )
    faults += engine_faults(plan)
    if faults:
        raise PlanError("\n".join(faults))


def old_names(plan: Plan) -> list[str]:
    """Return a notice for each key of a plan that has a new name."""
    new = 'unlabeled = "no" or "unknown" under [data]'
    found = [f"[data] {name}" for name in plan.data.old_names]
    if plan.preset is not None and "unknown" in plan.options:
        found.append("[options] unknown")
    if plan.data.source is not None and "absent" in plan.data.options:
        found.append("[data.options] absent")
        new = 'unlabeled = "no" or "unknown" in the same place'
    return [f"{name} is an older name; write {new}" for name in found]


_ENGINES = {
    "blocks": ("stream", "spark"),
    "scratch": ("stream",),
    "rows": ("stream",),
    "master": ("spark",),
    "options": ("spark",),
}
"""Which engines read each key of ``[engine]``."""


def engine_faults(plan: Plan) -> list[str]:
    """Return the keys of ``[engine]`` that its type does not read."""
    plain = EnginePlan()
    return [
        f'engine.{key} is read by type = "{engines[0]}"; the type is "{plan.engine.type}"'
        for key, engines in _ENGINES.items()
        if plan.engine.type not in engines and getattr(plan.engine, key) != getattr(plain, key)
    ]
