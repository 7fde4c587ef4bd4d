"""What a report shows of a plan and of single users and texts: no paths, user ids or slurs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any

import polars as pl

from ombud.audits.plan import Plan, change_paths
from ombud.audits.result import Result
from ombud.errors import OmbudError
from ombud.files import inside, read_parquet
from ombud.metrics.engine.estimator import ATTRIBUTE_GAP
from ombud.report.display import count, shorten
from ombud.report.model import Finding, Verdict
from ombud.report.numbers import POINTS
from ombud.stats.estimate import Estimate
from ombud.taxonomy.dictionary import load_dictionary
from ombud.text.folding import mask
from ombud.text.matching import TermMatcher

MOST_EXAMPLES = 5
"""Users or texts that a finding shows."""

_ITEMS = 10
_LONGEST = 300


def merged_groups(result: Result) -> Result:
    """Return a result in which small groups of users are one line, as reports show it.

    That few people are of a group is told with their number by *not enough data*; who they are may
    follow from it. Groups of texts, items and creators stay listed, as does everything where the
    plan says ``small_groups = "listed"``. A group of which any estimate of a metric has too few
    users is merged in all of that metric that have.
    """
    statistics = result.plan.statistics
    if statistics.small_groups == "listed":
        return result
    large = {
        (e.key or e.metric, e.group): e.n
        for e in result.estimates
        if e.group and e.kind == "level" and e.n >= statistics.minimum
    }
    few = f"fewer than {statistics.minimum} people"
    small: dict[tuple[str, ...], dict[str, int]] = {}
    every = []
    for e in result.estimates:
        if _is_small_group(e) and (own := large.get((e.key or e.metric, e.group))) is not None:
            # The group is large, and those that it is compared with are few.
            reason = f"not enough data: it would be compared with {few}"
            e = e.replace(n=own, reason=reason, note="", details={})
        every.append(e)
        if not _is_small_group(e) or e.n >= statistics.minimum:
            continue
        groups = small.setdefault(_line_of(e), {})
        groups[e.group] = max(groups.get(e.group, 0), e.n)
    if not small:
        return replace(result, estimates=tuple(every))
    estimates: list[Estimate] = []
    seen: set[tuple[str, ...]] = set()
    for e in every:
        if not _is_small_group(e) or e.n >= statistics.minimum:
            estimates.append(e)
            continue
        row = (*_line_of(e), e.system, e.label)
        if row in seen:
            continue
        seen.add(row)
        groups = small[_line_of(e)]
        name = f"{count(len(groups), 'group')} with {few}, {count(sum(groups.values()), 'user')}"
        reason = f"not enough data: {name}"
        estimates.append(
            e.replace(group=name, reason=reason, n=sum(groups.values()), note="", details={})
        )
    return replace(result, estimates=tuple(estimates))


def _is_small_group(e: Estimate) -> bool:
    own = e.reason_code == "too-few-units" and e.unit == "user"
    return own and bool(e.group) and not e.key.endswith(ATTRIBUTE_GAP)


def _line_of(e: Estimate) -> tuple[str, ...]:
    return (e.key or e.metric, e.kind, "against" if e.against else "")


def shown_plan(plan: Plan) -> dict[str, Any]:
    """Return the plan's values with file names in place of paths, and counts in place of terms.

    A report is sent to others; where files lay says nothing to them, and can say too much. The
    hashes in the provenance tell which files they were. A list of terms may be one of slurs: the
    report gives its length, and the SHA-256 of the sorted terms joined by line feeds. The run's
    own ``plan.toml`` and ``run.json`` hold the terms, for without them it could not be repeated.

    Examples
    --------
    >>> from ombud.audits.plan import DataPlan
    >>> shown_plan(Plan(data=DataPlan(labels="/home/me/secret/labels.csv")))["data"]["labels"]
    'labels.csv'
    >>> shown_plan(Plan(systems={"k": {"terms": ["a", "b"]}}))["systems"]["k"]["terms"]
    '2 terms, SHA-256 7e18f737311b2dc3\u2026'
    """
    return _shown(change_paths(plan, file_name).model_dump(mode="json", exclude_none=True))


def _shown(part: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _value(key, value) for key, value in part.items()}


def _value(key: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return _shown(value)
    if not isinstance(value, list | tuple):
        return value
    if key == "terms":
        joined = "\n".join(sorted(str(term) for term in value))
        digest = sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{len(value):,} terms, SHA-256 {digest[:16]}\u2026"
    return [_shown(one) if isinstance(one, Mapping) else one for one in value]


def file_name(path: str) -> str:
    """Return the name of a file without its folders, as either kind of system writes them."""
    return PureWindowsPath(path).name if "\\" in path else PurePath(path).name


def with_evidence(verdict: Verdict, result: Result) -> Verdict:
    """Return a verdict whose findings show what is behind them, where the result stores it."""
    made = (replace(f, examples=examples_of(f, result)) for f in verdict.findings)
    return replace(verdict, findings=tuple(made))


def examples_of(finding: Finding, result: Result) -> tuple[str, ...]:
    """Return at most five users or texts that show a finding most clearly.

    Users are numbered from 1, with their recommended items. Texts are masked, or their
    ids where the result does not store texts. A folder that holds something else gives nothing.
    """
    e = finding.estimate
    places = [i for i, info in enumerate(result.metrics) if (info.key or info.title) == e.key]
    if result.folder is None or len(places) != 1:
        return ()
    try:
        of_users = result.metrics[places[0]].unit == "user"
        found = _clearest(e, result.folder, places[0], finding.status == "increase", of_users)
        if found is None:
            return ()
        show = _users if of_users else _texts
        return tuple(show(found, e, result, result.folder))
    except (OmbudError, OSError, pl.exceptions.PolarsError):  # not what a run writes
        return ()


def _clearest(
    e: Estimate, folder: Path, metric: int, more: bool, of_users: bool
) -> pl.DataFrame | None:
    """Return the units of a finding with the largest effect: id and value.

    None where no unit has a value of its own: those of a ratio of sums have two.
    """
    rows = read_parquet(inside(folder, "rows", f"{metric:02d}", f"{e.system}.parquet"))
    if (weight := f"weight|{e.label}") in rows.columns:
        rows = rows.filter(pl.col(weight) > 0)
    if f"value|{e.label}" not in rows.columns:
        return None
    rows = rows.select(pl.col("unit").cast(pl.String), value=f"value|{e.label}").drop_nulls()
    if e.group:
        of = "user" if (folder / "groups" / "user.parquet").exists() else "text"
        groups = read_parquet(inside(folder, "groups", f"{of}.parquet"))
        members = groups.filter(pl.col("group") == e.group)[of].cast(pl.String)
        rows = rows.filter(pl.col("unit").is_in(members.implode()))
    # Users have differences; texts are flagged (1) or not (0).
    less = pl.col("value") < 0 if of_users else pl.col("value") <= 0
    clear = rows.filter(pl.col("value") > 0 if more else less)
    ordered = clear.sort("value", descending=more, maintain_order=True)
    return ordered.head(MOST_EXAMPLES) if ordered.height else None


def _users(found: pl.DataFrame, e: Estimate, result: Result, folder: Path) -> Sequence[str]:
    lists = read_parquet(inside(folder, "outputs", f"{e.system}.parquet"))
    lists = lists.select(pl.col("user").cast(pl.String), "items")
    items = dict(lists.filter(pl.col("user").is_in(found["unit"].implode())).iter_rows())
    return [
        f"User {place} ({POINTS.prose(value)}): "
        + ", ".join(shorten(str(item), 40) for item in list(items.get(unit) or [])[:_ITEMS])
        for place, (unit, value) in enumerate(found.iter_rows(), 1)
    ]


def _texts(found: pl.DataFrame, e: Estimate, result: Result, folder: Path) -> Sequence[str]:
    ids = found["unit"].to_list()
    stored = result.tables.get("error-examples")
    path = inside(folder, "inputs", "texts.parquet")
    if stored is None and path.exists():
        stored = read_parquet(path)
    texts: dict[str, str] = {}
    if stored is not None and {"id", "text"} <= set(stored.columns):
        texts = dict(stored.select(pl.col("id").cast(pl.String), "text").iter_rows())
    masked = masked_texts([shorten(texts.get(one, ""), _LONGEST) for one in ids])
    return [text or f"Text {shorten(one, 40)}" for one, text in zip(ids, masked, strict=True)]


def masked_texts(texts: Sequence[str]) -> list[str]:
    """Return texts with every term of the three worse severities masked.

    Examples
    --------
    >>> masked_texts(["A quiet day."])
    ['A quiet day.']
    """
    if not any(texts):
        return list(texts)
    found = _harsh().match(list(texts), spans=True)
    assert found.start is not None and found.end is not None  # spans were asked for
    spans: list[list[tuple[int, int]]] = [[] for _ in texts]
    for row, start, end in zip(found.text_index, found.start, found.end, strict=True):
        spans[int(row)].append((int(start), int(end)))
    return [mask(text, some) for text, some in zip(texts, spans, strict=True)]


@lru_cache(maxsize=1)
def _harsh() -> TermMatcher:
    terms = load_dictionary("delicate@1")
    harsh = set(terms.scale[:3])
    words = [term.text for term in terms.terms if term.severity in harsh]
    return TermMatcher(words, suffixes=("", "s", "es"))
