"""The tables of the speech-suppression paper in their own form, over one data set or several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from math import erfc, sqrt
from typing import Any

import polars as pl

from ombud.questions.suppression.regression import MODEL as _MODEL
from ombud.report.charts import Dot, lanes
from ombud.report.context import Context, Select
from ombud.report.display import joined, shorten
from ombud.report.model import Block, Cell, Chart, Text
from ombud.report.numbers import COUNT, RATIO, Scale, p_text
from ombud.report.show import BlockTable, Entry, Notes, value_cell
from ombud.stats.estimate import Estimate

COUNTS = "suppression-counts"
_WORDS = Scale(places=1)
_PARTS = {"traditional": "Traditional", "generative-ai": "GenAI"}
_BY = {"flags": "flag", "scores": "score"}
_NUMBERS = {"flags": "#FP", "scores": "#TN"}
_FEW = "\u2020"
_STARS = ((0.01, "***"), (0.05, "**"), (0.1, "*"))


@cache
def _published() -> Mapping[str, Mapping[str, float]]:
    """Return the published size, length and tags of each data set."""
    file = files("ombud.questions.suppression") / "files" / "published-sizes.csv"
    rows = pl.read_csv(file.read_bytes(), comment_prefix="#").to_dicts()
    return {row.pop("set"): row for row in rows}


def _name(context: Context, row: Mapping[str, Any]) -> str:
    """Return the name under which a data set may be published."""
    return context.result.card.name if row["kind"] == "all" else str(row["name"])


def _counts_of(context: Context, row: Mapping[str, Any]) -> Iterable[tuple[str, float, Any]]:
    """Yield the title of each count of a data set, the count, and the published one or None."""
    published = _published().get(_name(context, row), {})
    yield "Total items", row["texts"], published.get("texts")
    for key in row:
        if key.startswith("group: "):
            group = key.removeprefix("group: ")
            yield str(context.names.group(group)), row[key], published.get(group)


def _sizes(context: Context, notes: Notes) -> Iterable[Entry]:
    del notes
    rows = context.rows("set-sizes")
    several = any(row["kind"] == "set" for row in rows)
    for row in sorted(rows, key=lambda row: row["kind"] == "family"):
        if row["kind"] == "all" and several:
            continue
        at = _at(context, row["kind"], row["name"])
        for title, count, known in _counts_of(context, row):
            small = "" if known is None else f"published {known:,.0f}"
            yield Entry({**at, "column": title}, Cell(f"{count:,}", small, value=count))
            if title == "Total items" and row["mean_words"] is not None:
                words = _published().get(_name(context, row), {}).get("mean_words")
                small = "" if words is None else f"published {words:,.0f}"
                made = Cell(_WORDS.number(row["mean_words"]), small, value=row["mean_words"])
                yield Entry({**at, "column": "Avg. len. (words)"}, made)


def _at(context: Context, kind: str, name: str) -> dict[str, str]:
    """Return the row of a part of the texts; a study names the row of all of them."""
    if kind == "all":
        return {} if context.set else {"set": "All texts"}
    return {"set": _PARTS.get(name, name)}


def refused(context: Context) -> Text | None:
    """Say what prompts that ombud does not store change in published numbers."""
    lost = [e for e in context.result.exclusions if "content that ombud refuses" in e.reason]
    if not lost:
        return None
    rows = {_name(context, row): row for row in context.rows("set-sizes")}
    counts = _counts_of(context, rows["openai-1680"]) if "openai-1680" in rows else ()
    said = [f"{t} {n:,} instead of {k:,.0f}" for t, n, k in counts if k is not None and k != n]
    count, of = sum(e.count for e in lost), sum(e.of or 0 for e in lost)
    differs = f" Published counts differ: {joined(said)}." if said else ""
    return (
        f"{count:,} of {of:,} prompts are content that ombud does not store.{differs} They are "
        "acceptable texts under other types of label, so the rows of this data set in Tables 11 "
        "and 12, and the totals that include it, cannot be matched.",
    )


def _service(context: Context, row: Mapping[str, Any], every: Iterable[tuple[str, str]]) -> str:
    """Return a system, with what is measured where it has flags and scores."""
    name = str(context.names.system(row["system"]))
    both = {by for system, by in every if system == row["system"]}
    return f"{name} {_BY[row['by']]}" if len(both) > 1 else name


def _counted(context: Context) -> Iterable[tuple[dict[str, Any], str, list[dict[str, Any]]]]:
    """Yield each system and part of the texts, its service, and its rows of groups."""
    parts: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in context.rows(COUNTS):
        parts.setdefault((row["system"], row["by"], row["label"]), []).append(row)
    every = [(system, by) for system, by, _ in parts]
    for rows in parts.values():
        yield rows[0], _service(context, rows[0], every), [row for row in rows if row["group"]]


def _is_ranked(row: Mapping[str, Any]) -> bool:
    return row["ratio"] is not None and not {"/", "&"} & set(row["group"])


def _largest(rows: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the group with the largest ratio; like the paper's, whatever its size."""
    return max(filter(_is_ranked, rows), key=lambda row: row["ratio"], default=None)


def _number(row: Mapping[str, Any]) -> float:
    return float(row["flagged"] if row["by"] == "flags" else row["texts"])


def _ratio_cell(row: Mapping[str, Any], context: Context) -> Cell:
    """Return a ratio in the paper's two digits, marked where ombud itself would give none."""
    if row["ratio"] is None:
        return Cell("undefined")
    least = int(context.result.plan.options.get("events", 5))
    few = row["by"] == "flags" and _number(row) < least
    return Cell(f"{row['ratio']:.2f}{_FEW if few else ''}", value=row["ratio"])


def _family(row: Mapping[str, Any], context: Context) -> str | None:
    """Return the column of a part in Table 4; None for other parts."""
    if "labeled" in row["label"]:
        return None
    if row["part"] == "all":
        families = any(r["part"] == "family" for r in context.rows(COUNTS, system=row["system"]))
        return None if families else "All texts"
    return _PARTS.get(row["name"], row["name"]) if row["part"] == "family" else None


_WORST = {by: Select("worst-suppression", ("overall",), {"by": by}) for by in _BY}


def _table_4(context: Context, notes: Notes) -> Iterable[Entry]:
    worst: dict[tuple[str, str, str], Estimate] = {
        (e.system, by, e.label): e for by, select in _WORST.items() for e in context.find(select)
    }
    for part, service, rows in _counted(context):
        family, largest = _family(part, context), _largest(rows)
        if family is None or largest is None:
            continue
        at = {"service": service, "family": family}
        yield Entry(at | {"statistic": "Supp."}, _ratio_cell(largest, context))
        group = str(context.names.group(largest["group"]))
        yield Entry(at | {"statistic": "Identity"}, Cell(shorten(group, 40)))
        e = worst.get((part["system"], part["by"], part["label"]))
        if e is not None:
            yield Entry(at | {"statistic": "Ranked, with CI"}, value_cell(e, RATIO, notes))
            named = str(context.names.group(e.details["group"])) if e.value is not None else ""
            yield Entry(at | {"statistic": "Identity (ranked)"}, Cell(shorten(named, 40)))


def _table_11(context: Context, by: str) -> Iterable[Entry]:
    sets = any(row["part"] == "set" for row in context.rows(COUNTS))
    for part, service, rows in sorted(
        _counted(context), key=lambda one: one[0]["part"] == "family"
    ):
        largest = _largest(rows)
        if part["by"] != by or largest is None or (part["part"] == "all" and sets):
            continue
        at = _at(context, part["part"], part["name"]) | {"service": service, "type": part["type"]}
        yield Entry(at | {"statistic": "Supp."}, _ratio_cell(largest, context))
        group = str(context.names.group(largest["group"]))
        yield Entry(at | {"statistic": "Identity"}, Cell(shorten(group, 40)))
        number = _number(largest)
        yield Entry(at | {"statistic": _NUMBERS[by]}, Cell(COUNT.number(number), value=number))


def _by_group(context: Context, notes: Notes) -> Iterable[Entry]:
    del notes
    for part, service, rows in _counted(context):
        if (family := _family(part, context)) is None:
            continue
        for row in rows:
            if row["texts"]:
                at = {"family": family, "group": str(context.names.group(row["group"]))}
                at |= {"service": service}
                yield Entry(at | {"statistic": "Supp."}, _ratio_cell(row, context))
                number = _number(row)
                made = Cell(COUNT.number(number), value=number)
                yield Entry(at | {"statistic": _NUMBERS[row["by"]]}, made)


_COEFFICIENT = Scale(places=3)
_FIT = {
    "observations": ("Observations", COUNT),
    "log_likelihood": ("Log likelihood", _COEFFICIENT),
    "r2": ("R\u00b2", _COEFFICIENT),
    "adjusted_r2": ("Adjusted R\u00b2", _COEFFICIENT),
    "residual_error": ("Residual std. error", _COEFFICIENT),
    "statistic": ("Test of all terms", _COEFFICIENT),
}


def _stars(p: float | None) -> str:
    return next((stars for least, stars in _STARS if p is not None and p < least), "")


def _regression(context: Context, name: str) -> Iterable[Entry]:
    fits = {row["system"]: row for row in context.rows(f"{name}-fit")}
    terms = [
        (row["system"], str(context.names.group(row["column"])), *(row[c] for c in _MODEL))
        for row in context.rows(name)
        if row["system"] in fits and row["coefficient"] is not None
    ]
    for system, fit in fits.items():
        errors = fit["intercept_error"], fit["intercept_classical_error"]
        terms.append((system, "intercept", fit["intercept"], *errors))
    for system, term, value, error, classical in terms:
        stars = _stars(erfc(abs(value / classical) / sqrt(2)))
        beside = f"{classical:.3f}"
        if fits[system]["errors"] != "classical":
            beside += f"; {fits[system]['errors']} {error:.3f}"
        made = Cell(f"{_COEFFICIENT.number(value)}{stars}", beside, value=value)
        yield Entry({"service": str(context.names.system(system)), "term": term}, made)
    for system, fit in fits.items():
        at = {"service": str(context.names.system(system))}
        for column, (title, scale) in _FIT.items():
            if (value := fit.get(column)) is not None:
                small = ""
                if column == "statistic":
                    small = f"{fit['test']}, {fit['degrees_of_freedom']:,.0f} df, p "
                    small += p_text(fit["p"])
                made = Cell(scale.number(value), small, value=value)
                yield Entry(at | {"term": title}, made)


def figure_1(context: Context) -> Iterable[Block]:
    """Yield a panel for each service: suppression of every group, by family of texts."""
    panels = []
    for by in ("scores", "flags"):
        ratios = Select("suppression", ("contrast",), {"by": by, "against": "all"})
        found = context.find(ratios)
        order = list(dict.fromkeys(e.group for e in found))
        families = {e.label for e in found if e.value is not None} & set(_PARTS)
        shown = [e for e in found if e.value is not None and e.label in (families or {""})]
        shown = [e for e in shown if not {"/", "&"} & set(e.group)]
        systems = list(dict.fromkeys(e.system for e in shown))
        shown.sort(key=lambda e: (order.index(e.group), e.label))
        for system in systems:
            rows: dict[str, list[Dot]] = {}
            for e in shown:
                if e.system == system:
                    value = e.value or 0.0
                    dot = Dot(_PARTS.get(e.label, "all texts"), value, 0.0, e.interval)
                    rows.setdefault(str(context.names.group(e.group)), []).append(dot)
            most = max(dot.x for dots in rows.values() for dot in dots)
            name = f"{context.names.system(system)} ({_BY[by]}s)"
            axis = (f"{name}, ratio to all", 0.0, max(2.0, 1.5 * most))
            panels.append(lanes(name, rows, axis))
    if panels:
        caption = (
            "Figure 1 of Proebsting et al.: suppression of each group by flags and by median "
            "scores, with confidence intervals, for traditional and generative-AI texts. 1 is "
            "equal. Groups with too few flags are not drawn."
        )
        title = "Suppression of each group"
        yield Chart("suppression-figure-1", title, caption, title, tuple(panels))


_MARKED = (
    f" Marked {_FEW}: fewer flagged texts than ombud asks for, so it gives no ratio and does not "
    "rank the group."
)
_ERRORS = (
    "In brackets: the classical standard error, which the stars are of, as in the paper (* p < .1, "
    "** p < .05, *** p < .01), and the error of the report's other tables. Words are in hundreds."
)


def _table(
    numbers: str, words: str, rows: str, columns: str, entries: Any, *, folded: bool = True
) -> BlockTable:
    return BlockTable(
        f"suppression-{numbers.lower().replace(' ', '-')}",
        f"{numbers.replace('-', ' and ')} of Proebsting et al.: {words}",
        rows=tuple(rows.split()),
        columns=tuple(columns.split()),
        entries=entries,
        titles=_TITLES,
        folded=folded,
    )


_TITLES = {
    "set": "Dataset",
    "type": "Score type",
    "service": "API",
    "group": "Identity group",
    "family": "Texts",
    "term": "Term",
}
TABLES = (
    _table(
        "Tables 1-2",
        "texts, mean words, and texts of each identity group. Published numbers in brackets.",
        "set",
        "column",
        _sizes,
        folded=False,
    ),
    _table(
        "Table 4",
        "the largest suppression, and whose it is. Beside it, the largest of the groups with "
        "enough flagged texts, with a confidence interval that allows for having chosen the "
        "largest." + _MARKED,
        "service",
        "set family statistic",
        _table_4,
        folded=False,
    ),
    _table(
        "Table 11",
        "the largest suppression by flags in each data set and by each type of label, whose it is, "
        "and that group\u2019s false positives." + _MARKED,
        "set type",
        "service statistic",
        lambda context, _: _table_11(context, "flags"),
    ),
    _table(
        "Table 12",
        "the largest suppression by median score in each data set and by each type of label, whose "
        "it is, and that group\u2019s true negatives.",
        "set type",
        "service statistic",
        lambda context, _: _table_11(context, "scores"),
    ),
    _table(
        "Tables 13-14",
        "suppression of every group by each service, with its true negatives (scores) or false "
        "positives (flags)." + _MARKED,
        "set family group",
        "service statistic",
        _by_group,
    ),
    _table(
        "Table 15",
        "logistic regression of correct flags, in log odds. " + _ERRORS,
        "term",
        "set service",
        lambda context, _: _regression(context, "flag-regression"),
    ),
    _table(
        "Table 16",
        "linear regression of the scores of acceptable texts. " + _ERRORS,
        "term",
        "set service",
        lambda context, _: _regression(context, "score-regression"),
    ),
)
