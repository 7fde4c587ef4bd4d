"""A result is a folder: plan, outputs, per-unit rows, estimates, provenance.

::

    plan.toml                    what was asked
    outputs/<system>.parquet     what each system answered
    predictions/<system>.parquet     its predictions of held-out ratings, if asked for
    rows/<metric>/<system>.parquet   what was measured on each unit
    groups/<unit>.parquet        who belongs to which group
    estimates.json               every number of the report, with its uncertainty
    verdict.json                 the answer to each question, in words and as data
    provenance.json              versions, seeds, hashes (of all the above too), times; written last
    inputs/*.parquet             the data, when it did not come from files

Nothing in the folder is ever executed: it is read as TOML, JSON and Parquet.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self, TypeVar, get_type_hints

import polars as pl
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from ombud import registry
from ombud.audits.plan import Plan
from ombud.audits.provenance import DEEPEST, Integrity, check_provenance, is_deeper, read_integrity
from ombud.audits.verify import Verification, verify
from ombud.data.card import Card
from ombud.data.exclusions import Exclusion
from ombud.errors import MissingExtraError, PlanError, ResultError
from ombud.files import csv_text, inside, read_json, read_parquet, write_atomically, write_parquet
from ombud.stats.estimate import Estimate
from ombud.stats.power import smallest_effect

RESULT_SCHEMA = 1
"""The version of the folder's form that this ombud writes, and the newest it reads."""


@dataclass(frozen=True)
class MetricInfo:
    """What a report needs to know of a metric, without its code.

    Parameters
    ----------
    spec
        Registered name and options.
    title
        The name as printed.
    key
        The key of its estimates.
    summary
        One sentence: what it is.
    unit
        What is resampled.
    null
        The value that means "nothing found", or None.
    reading
        What it means to be above or below, in words.
    undefined
        When there is no number.
    limits
        What it does not capture.
    """

    spec: dict[str, Any]
    title: str
    summary: str = ""
    unit: str = "row"
    null: float | None = None
    reading: str = ""
    undefined: str = ""
    limits: str = ""
    key: str = ""


class Estimates(tuple[Estimate, ...]):
    """Some estimates of a result, in its order."""

    __slots__ = ()

    def by(self, *fields: str) -> dict[tuple[Any, ...], Estimates]:
        """Return them by the values of some fields, such as ``by("system", "label")``."""
        found: dict[tuple[Any, ...], list[Estimate]] = {}
        for e in self:
            found.setdefault(tuple(getattr(e, name) for name in fields), []).append(e)
        return {values: Estimates(some) for values, some in found.items()}


@dataclass(frozen=True, eq=False)
class Result:
    """Everything an audit found, and how.

    Parameters
    ----------
    plan
        What was asked.
    estimates
        Every number, with its uncertainty.
    metrics
        What was measured.
    exclusions
        What was left out, and why.
    provenance
        Versions, seeds, hashes, times.
    card
        What is known about the data.
    tables
        Further tables by name (columns as plain lists), made by presets.
    folder
        Where it is stored, or None.
    integrity
        Whether the files it was read from are those that the audit wrote; None if it was not read.
    verdict
        What ``verdict.json`` holds; None where nothing is stored, as in results of older versions:
        `verdicts` then computes it.
    """

    plan: Plan
    estimates: tuple[Estimate, ...]
    metrics: tuple[MetricInfo, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    card: Card = field(default_factory=lambda: Card(name="unnamed"))
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    folder: Path | None = None
    integrity: Integrity | None = None
    verdict: Mapping[str, Any] | None = None

    @property
    def systems(self) -> tuple[str, ...]:
        """The audited systems, in the order of the plan."""
        return tuple(dict.fromkeys(e.system for e in self.estimates if e.system))

    @cached_property
    def _by_key(self) -> dict[str, list[int]]:
        """Where the estimates of each key stand; those of older results go by their title."""
        found: dict[str, list[int]] = {}
        for place, e in enumerate(self.estimates):
            found.setdefault(e.key or e.metric, []).append(place)
        return found

    @cached_property
    def _by_name(self) -> dict[str, list[MetricInfo]]:
        found: dict[str, list[MetricInfo]] = {}
        for info in self.metrics:
            found.setdefault(str(info.spec.get("name", "")), []).append(info)
        return found

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of everything that was measured, in order."""
        return tuple(self._by_key)

    def select(
        self,
        key: str | Collection[str] | None = None,
        *,
        metric: str | None = None,
        kind: str | None = None,
        system: str | None = None,
        group: str | None = None,
        label: str | None = None,
        against: str | None = None,
        **details: object,
    ) -> Estimates:
        """Return the estimates that are as asked, in order.

        Parameters
        ----------
        key
            The key of a metric or analysis, or several; found in an index that is built once.
        metric
            The metric as printed; keys are better, since titles are wording.
        kind, system, group, label, against
            Fields of the estimate; empty means all users, all content and so on, None anything.
        details
            What its details must hold.
        """
        found: Collection[Estimate] = self.estimates
        if key is not None:
            keys = (key,) if isinstance(key, str) else set(key)
            places = [place for one in keys for place in self._by_key.get(one, ())]
            found = [self.estimates[place] for place in sorted(places)]
        asked = {
            "metric": metric,
            "kind": kind,
            "system": system,
            "group": group,
            "label": label,
            "against": against,
        }
        asked = {name: value for name, value in asked.items() if value is not None}
        return Estimates(
            e
            for e in found
            if all(getattr(e, name) == value for name, value in asked.items())
            and all(e.details.get(name) == value for name, value in details.items())
        )

    def one(self, key: str | Collection[str], **where: Any) -> Estimate | None:
        """Return the first estimate that `select` finds, or None."""
        return next(iter(self.select(key, **where)), None)

    def infos(self, name: str, **options: object) -> tuple[MetricInfo, ...]:
        """Return the metrics of a registered name whose options are as asked.

        Examples
        --------
        >>> from ombud.audits import Plan
        >>> info = MetricInfo({"name": "recall", "k": 50}, "recall@50")
        >>> [one.title for one in Result(Plan(), (), (info,)).infos("recall", k=50)]
        ['recall@50']
        """
        return tuple(
            info
            for info in self._by_name.get(name, ())
            if all(info.spec.get(option) == value for option, value in options.items())
        )

    @cached_property
    def verdicts(self) -> tuple[Mapping[str, Any], ...]:
        """The verdict of each question as plain values, as stored or else computed now."""
        found = self.verdict
        if found is None:
            found = registry.get("verdict", "ombud")(self)
        return tuple(found["verdicts"])

    @property
    def answers(self) -> tuple[str, ...]:
        """The answer to each question: yes, no clear evidence, mixed or cannot tell."""
        return tuple(str(one["answer"]) for one in self.verdicts)

    def to_frame(self) -> pl.DataFrame:
        """Return one row per estimate."""
        rows = [e.to_dict() for e in self.estimates]
        for row in rows:
            ends = row.pop("interval") or [None, None]
            row["low"], row["high"] = (None if end is None else float(end) for end in ends)
        rows = [{name: row[name] for name in ("value", "low", "high")} | row for row in rows]
        return pl.DataFrame(rows, infer_schema_length=None)

    def table(self) -> pl.DataFrame:
        """Return the levels of everyone as a small table: value, low and high first."""
        names = ("value", "low", "high", "system", "label", "metric", "n", "unit")
        levels = [e for e in self.estimates if e.kind == "level" and not e.group]
        rows = [
            dict(
                zip(
                    names,
                    (
                        e.value,
                        *(e.interval or (None, None)),
                        e.system,
                        e.label,
                        e.metric,
                        e.n,
                        e.unit,
                    ),
                    strict=True,
                )
            )
            for e in levels
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_wide(self) -> pl.DataFrame:
        """Return one row per measure, label and group, and four columns per system.

        The columns are ``SYSTEM value``, ``SYSTEM low``, ``SYSTEM high`` and ``SYSTEM n``; values
        that are not defined are missing. Numbers of no system, such as facts about the data, stand
        under ``value`` and so on.
        """
        rows: dict[tuple[str, ...], dict[str, Any]] = {}
        for e in self.estimates:
            about = ("metric", "key", "kind", "label", "group", "against")
            index = tuple(str(getattr(e, name)) for name in about)
            row = rows.setdefault(index, dict(zip(about, index, strict=True)))
            head = f"{e.system} " if e.system else ""
            low, high = e.interval if e.interval is not None else (None, None)
            row |= {f"{head}value": e.value, f"{head}low": low, f"{head}high": high}
            row[f"{head}n"] = e.n
        return pl.DataFrame(list(rows.values()), infer_schema_length=None)

    def to_polars(self) -> pl.DataFrame:
        """Return one row per estimate, as a Polars frame."""
        return self.to_frame()

    def to_pandas(self) -> Any:
        """Return one row per estimate, as a pandas frame.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        if find_spec("pandas") is None:
            raise MissingExtraError("to_pandas needs pandas; install it with: pip install pandas")
        import pandas  # type: ignore[import-untyped,unused-ignore]

        return pandas.DataFrame(self.to_frame().to_dict(as_series=False))

    def to_tidy(self) -> pl.DataFrame:
        """Return one row per estimate in plain columns, details too; see `TIDY_COLUMNS`."""
        return tidy_frame(self.estimates)

    def to_parquet(self, path: Path | str) -> Path:
        """Write `to_tidy` as Parquet, whole or not at all, and return where."""
        path = Path(path)
        write_parquet(path, self.to_tidy())
        return path

    def to_table(self, path: Path | str) -> Path:
        """Write `to_tidy` as Parquet, CSV or JSON lines, by the ending of the file."""
        path = Path(path)
        frame = self.to_tidy()
        writers: dict[str, Callable[[Path], None]] = {
            ".parquet": lambda part: frame.write_parquet(part, compression="zstd"),
            ".csv": lambda part: _write_bytes(part, csv_text(frame).encode()),
            ".jsonl": lambda part: frame.write_ndjson(part),
        }
        if path.suffix not in writers:
            raise PlanError(
                f"{path} ends in {path.suffix or 'nothing'}; expected one of {', '.join(writers)}"
            )
        write_atomically(path, writers[path.suffix])
        return path

    def __repr__(self) -> str:
        metrics = ", ".join(info.title for info in self.metrics[:3])
        more = f" and {len(self.metrics) - 3} more" if len(self.metrics) > 3 else ""
        systems = ", ".join(self.systems[:5]) + (", ..." if len(self.systems) > 5 else "")
        return (
            f"Result({len(self.estimates):,} estimates of {metrics or 'no metric'}{more}; "
            f"systems: {systems or 'none'})"
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the verdicts and the first levels, names as plain text."""
        verdicts = "".join(
            f"<p><b>{escape(str(one.get('headline') or one['answer'])[:400])}</b></p>"
            for one in self.verdicts
        )
        levels = [e for e in self.estimates if e.kind == "level" and not e.group]
        cells = [(e.metric, e.system, e.label, e.value, e.interval, e.reason) for e in levels]
        rows = "".join(
            f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in (*names, number))}</tr>"
            for *names, number in (
                (metric[:80], system[:80], label[:80], _number(value, interval, reason[:120]))
                for metric, system, label, value, interval, reason in cells[:_SHOWN]
            )
        )
        rest = len(self.estimates) - min(_SHOWN, len(levels))
        more = f"<p>{rest:,} more estimates: to_polars(), or the report.</p>" if rest else ""
        return (
            f"<p>{escape(self.plan.title[:200])}</p>{verdicts}<table><thead><tr><th>Measure</th>"
            f"<th>System</th><th>Label</th><th>Value and interval</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>{more}"
        )

    def verify(self) -> Verification:
        """Hash everything that the result consists of again; see `ombud.audits.verify.verify`.

        Raises
        ------
        ResultError
            If the result is not stored, or holds no hashes.
        """
        if self.folder is None:
            raise ResultError("only a stored result can be verified; give run() a folder")
        return verify(self.folder)

    def to_dict(self) -> dict[str, Any]:
        """Return what `estimates.json` holds."""
        return {
            "schema_version": RESULT_SCHEMA,
            "estimates": [e.to_dict() for e in self.estimates],
            "metrics": [vars(info) for info in self.metrics],
            "exclusions": [e.to_dict() for e in self.exclusions],
            "card": self.card.model_dump(mode="json"),
            "tables": sorted(self.tables),
        }

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Read a finished result. Nothing from the folder is executed.

        Raises
        ------
        ResultError
            If the folder is not a finished result, is damaged, or was written by a newer ombud.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise ResultError(f"there is no result folder {folder}")
        if not (folder / "provenance.json").exists():
            if sets := sorted(one.parent.name for one in folder.glob("*/provenance.json")):
                raise ResultError(
                    f"{folder} is the folder of a study; name the result of one of its data sets, "
                    f"such as {folder / sets[0]}"
                )
            raise ResultError(
                f"{folder} is not a finished result (it has no provenance.json). "
                "If a run was stopped, start it again with the same plan and folder: it goes on."
            )
        provenance = read_json(folder / "provenance.json")
        content = read_json(folder / "estimates.json")
        for name, result in (("provenance", provenance), ("estimates", content)):
            _check_version(folder / f"{name}.json", result)
        check_provenance(folder / "provenance.json", provenance)
        try:
            read = [
                "estimates.json",
                "plan.toml",
                *(f"tables/{n}.parquet" for n in content["tables"]),
            ]
            verdict = None
            if (folder / "verdict.json").exists():
                read.append("verdict.json")
                verdict = _checked_verdict(folder / "verdict.json")
            return cls(
                plan=Plan.load(folder / "plan.toml"),
                estimates=tuple(_checked(Estimate.from_dict(e)) for e in content["estimates"]),
                metrics=tuple(_checked(MetricInfo(**info)) for info in content["metrics"]),
                exclusions=tuple(_checked(Exclusion(**e)) for e in content["exclusions"]),
                provenance=provenance,
                card=Card.model_validate(content["card"]),
                tables={
                    name: read_parquet(inside(folder, "tables", f"{name}.parquet"))
                    for name in content["tables"]
                },
                folder=folder,
                integrity=read_integrity(folder, provenance, read),
                verdict=verdict,
            )
        except (KeyError, OSError, RecursionError, TypeError, ValueError) as error:
            raise ResultError(f"{folder / 'estimates.json'} is damaged: {error}") from None


_SHOWN = 10
"""Rows that a notebook shows."""


def _checked_verdict(path: Path) -> dict[str, Any]:
    """Return what ``verdict.json`` holds; refuse what has not its form."""
    content = read_json(path)
    _check_version(path, content)
    found = content.get("verdicts")
    whole = isinstance(found, list) and all(
        isinstance(one, dict) and isinstance(one.get("answer"), str) for one in found
    )
    if not whole:
        raise ResultError(f"{path} is damaged: verdicts must be a list, each with an answer")
    return content


def _number(value: float | None, interval: tuple[float, float] | None, reason: str) -> str:
    if value is None:
        return f"not defined: {reason}"
    ends = "" if interval is None else f" [{interval[0]:.4g}, {interval[1]:.4g}]"
    return f"{value:.4g}{ends}"


def _check_version(path: Path, content: Mapping[str, Any]) -> None:
    version = content.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise ResultError(f"{path} has no schema_version; it was not written by ombud")
    if version > RESULT_SCHEMA:
        raise ResultError(
            f"{path} has schema version {version}; this ombud reads up to {RESULT_SCHEMA}. "
            "Install a newer ombud: pip install --upgrade ombud"
        )


_T = TypeVar("_T", Estimate, MetricInfo, Exclusion)


def _form(kind: type) -> type[BaseModel]:
    hints = get_type_hints(kind)
    # Ends of an interval may be infinite, and are numbers already when an estimate exists.
    fields: dict[str, Any] = {k: (hint, ...) for k, hint in hints.items() if k != "interval"}
    strict = ConfigDict(strict=True, allow_inf_nan=False, extra="ignore")
    return create_model(kind.__name__, __config__=strict, **fields)


_FORMS = {kind.__name__: _form(kind) for kind in (Estimate, MetricInfo, Exclusion)}


def _checked(record: _T) -> _T:
    """Return a record read from a file; refuse fields that are not of their type, by name."""
    form = _FORMS[type(record).__name__]
    try:
        form.model_validate({name: getattr(record, name) for name in form.model_fields})
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ValueError(f"{type(record).__name__}: {faults}") from None
    for name in ("p_value", "p_adjusted"):
        p = getattr(record, name, None)
        if p is not None and not 0 <= p <= 1:
            raise ValueError(f"{type(record).__name__}: {name}: {p:g} is no probability")
    if is_deeper(getattr(record, "spec", None), DEEPEST):
        raise ValueError(f"a spec is nested more than {DEEPEST} deep")
    return record


# Every estimate as one row with plain columns, for other programs.


_DETAILS = "details."

TIDY_COLUMNS: dict[str, tuple[type[pl.DataType], str]] = {
    "key": (pl.String, "What is measured, for programs: stable where `metric` is wording."),
    "metric": (pl.String, "The metric as printed."),
    "kind": (pl.String, "`level`, `gap` (a difference) or `ratio`."),
    "system": (pl.String, "The audited system; empty for all."),
    "label": (pl.String, "The content label; empty for all."),
    "group": (pl.String, "The group of users or texts; empty for all."),
    "against": (pl.String, "What a gap or a ratio is compared with."),
    "value": (pl.Float64, "The number; missing when it is undefined."),
    "low": (pl.Float64, "The lower end of the interval; missing without one."),
    "high": (pl.Float64, "The upper end."),
    "level": (pl.Float64, "The coverage that the interval aims at."),
    "method": (pl.String, "How the interval was made, or why there is none."),
    "n": (pl.Int64, "How many independent units stand behind the number."),
    "unit": (pl.String, "What those units are."),
    "null": (pl.Float64, "The value that would mean no difference, where there is one."),
    "p_value": (pl.Float64, "The two-sided p-value of `null`."),
    "p_adjusted": (pl.Float64, "The same after correction for many comparisons."),
    "correction": (pl.String, "The correction, and the size of its family."),
    "family": (pl.String, "The question whose comparisons it is one of; empty for all others."),
    "smallest_effect": (pl.Float64, "What would have been found with a chance of 80%."),
    "undefined_replicates": (pl.Int64, "In how many replicates the number did not exist."),
    "events": (pl.Int64, "How many events it rests on, where the metric counts them."),
    "reason": (pl.String, "Why there is no number."),
    "reason_code": (pl.String, "The same as a code; see `ombud.stats.estimate.REASONS`."),
    "note": (pl.String, "What a reader must know beside the number."),
}
"""The columns that every table of estimates has, with their type and meaning.

What an estimate is made of (`Estimate.details`) follows in columns that begin with ``details.``:
numbers, truth values and words as they are, lists and tables as JSON.
"""


def tidy_frame(estimates: Sequence[Estimate]) -> pl.DataFrame:
    """Return one row an estimate, in plain columns: `TIDY_COLUMNS`, then ``details.*``.

    Examples
    --------
    >>> e = Estimate(
    ...     metric="share@10", value=0.25, interval=(0.2, 0.3), method="wilson", n=99,
    ...     details={"history": 0.2},
    ... )
    >>> tidy_frame([e]).select("metric", "low", "details.history").rows()
    [('share@10', 0.2, 0.2)]
    """
    rows = [_row(estimate) for estimate in estimates]
    fixed = [
        pl.Series(name, [row[name] for row in rows], dtype=dtype)
        for name, (dtype, _) in TIDY_COLUMNS.items()
    ]
    names = sorted({name for estimate in estimates for name in estimate.details})
    found = [
        _column(f"{_DETAILS}{name}", [estimate.details.get(name) for estimate in estimates])
        for name in names
    ]
    return pl.DataFrame([*fixed, *found])


def _row(estimate: Estimate) -> Mapping[str, Any]:
    low, high = estimate.interval if estimate.interval is not None else (None, None)
    own = {name: getattr(estimate, name, None) for name in TIDY_COLUMNS}
    return own | {"low": low, "high": high, "smallest_effect": smallest_effect(estimate)}


def _column(name: str, values: Sequence[Any]) -> pl.Series:
    """Return values as one column of their own type, or of JSON where they have none in common."""
    given = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in given):
        return pl.Series(name, values, dtype=pl.Boolean)
    numbers = not any(isinstance(value, bool) for value in given)
    if numbers and all(isinstance(v, int) and -(2**63) <= v < 2**63 for v in given):
        return pl.Series(name, values, dtype=pl.Int64)
    if numbers and all(isinstance(value, int | float) for value in given):
        return pl.Series(name, values, dtype=pl.Float64, strict=False)
    if all(isinstance(value, str) for value in given):
        return pl.Series(name, values, dtype=pl.String)
    told = [None if v is None else json.dumps(v, sort_keys=True, default=str) for v in values]
    return pl.Series(name, told, dtype=pl.String)


def _write_bytes(part: Path, content: bytes) -> None:
    part.write_bytes(content)
