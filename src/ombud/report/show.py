"""What a section shows, declared: a matrix, a listing, a stored table, a chart, or a sentence.

Each item names the estimates or the stored table it needs and says how to lay them out. An item
without data yields nothing, and a section without items is not in the report.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

from ombud.metrics.engine.signs import weight
from ombud.report import charts
from ombud.report.context import ROLES, Context, Select
from ombud.report.display import count, shorten
from ombud.report.model import Block, Cell, Chart, Column, Prose, Section, Table, Text, status_of
from ombud.report.names import value_title
from ombud.report.numbers import COUNT, SHARE, Scale, largest, p_text
from ombud.stats.estimate import Estimate

MARKS = (
    "With confidence intervals. Shaded, with \u25b2 or \u25bc: statistically significant after "
    "correction."
)
"""Closes the caption of a matrix."""

Title: TypeAlias = str | Callable[[Context], str]
Caption: TypeAlias = str | Callable[[Sequence[Estimate]], str]


class Show(Protocol):
    """Something that a section shows."""

    def blocks(self, context: Context) -> Iterable[Block]:
        """Return what there is to show of a result; nothing where it holds no data for it."""
        ...


@dataclass(frozen=True)
class Part:
    """A section, declared: its title and what it shows."""

    title: Title
    shows: tuple[Show, ...]
    appendix: bool = False

    def made(self, context: Context) -> Iterable[Section]:
        """Return the section, unless the result holds nothing for it; prose may have no text."""
        made = (block for show in self.shows for block in show.blocks(context))
        blocks = tuple(b for b in made if not isinstance(b, Prose) or b.paragraphs)
        title = _worded(self.title, context)
        if blocks:
            yield Section(_slug(title), title, blocks, self.appendix)

    def claims(self, context: Context) -> set[tuple[str, str]]:
        """Return which estimates its tables show, by key and role."""
        found: set[tuple[str, str]] = set()
        for show in self.shows:
            if isinstance(show, Matrix | Listing | Grid | BlockTable | Custom):
                for select in _selects(show.select, context):
                    if (key := context.key(select)) is not None and select.label is None:
                        found |= {(key, role) for role in select.roles or ROLES}
        return found


Chosen: TypeAlias = Select | tuple[Select, ...] | Callable[[Context], tuple[Select, ...]]
"""What an item shows: one select or several; a function where keys depend on the data."""


def _selects(chosen: Chosen, context: Context) -> tuple[Select, ...]:
    if isinstance(chosen, Select):
        return (chosen,)
    return chosen if isinstance(chosen, tuple) else chosen(context)


def under(*prefixes: str) -> Callable[[Context], tuple[Select, ...]]:
    """Return what selects every estimate whose key begins so."""

    def selects(context: Context) -> tuple[Select, ...]:
        keys = dict.fromkeys(key for key, _ in context.by_key if key.startswith(prefixes))
        return tuple(Select(key, exact=True) for key in keys)

    return selects


def part(title: Title, *shows: Show, appendix: bool = False) -> Part:
    """Declare a section."""
    return Part(title, shows, appendix)


def _slug(*words: str) -> str:
    """Return a name that is safe as an anchor and as a file name."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")


def _name_of(select: Select) -> str:
    return _slug(select.metric, *map(str, select.options.values()), *select.roles)


def _worded(words: str | Callable[[Any], str], about: Any) -> str:
    return words if isinstance(words, str) else words(about)


def _named(field: str, e: Estimate, context: Context) -> str:
    """Return the display name of one of the keys of an estimate."""
    names = context.names
    by_field = {"label": names.label, "system": names.system, "group": names.group}
    shown = by_field.get(field, names.system)(getattr(e, field))
    return str(shown).removeprefix("set=")


class Notes(dict[str, str]):
    """Reasons why cells are empty, each with a letter."""

    def letter(self, reason: str) -> str:
        """Return the letter of a reason, a new one for a new reason."""
        return self.setdefault(reason, f"({chr(97 + len(self) % 26)})")

    @property
    def lines(self) -> tuple[str, ...]:
        """The reasons, to stand below the table."""
        return tuple(f"{letter} {reason}." for reason, letter in self.items())


def value_cell(
    e: Estimate | None,
    scale: Scale,
    notes: Notes,
    most: float = 1.0,
    axis: charts.Axis | None = None,
) -> Cell:
    """Return a value with its confidence interval, shaded by its size where it is significant."""
    if e is None:
        return Cell("not measured", status="not tested")
    if e.value is None:
        what = "not enough data" if e.reason_code.startswith("too-few") else "undefined"
        if e.details.get("few_events"):  # both counts say why
            counts = f"{e.details['events']:,.6g} of {e.details['texts']:,}"
            return Cell(what, counts, "not tested")
        return Cell(what, notes.letter(e.reason[0].upper() + e.reason[1:]), "not tested")
    ends = scale.ends(e) or notes.letter(f"No interval: {e.method.removeprefix('none: ')}")
    status = "" if e.null is None else status_of(e)
    chart = ""
    if axis is not None:
        low, high = e.interval or (e.value, e.value)
        chart = charts.strip(low, e.value, high, e.null, axis, hint=e.excludes_null)
    return Cell(scale.number(e.value), ends, status, e.value, scale.distance(e) / most, chart)


def estimate_table(
    estimates: Sequence[Estimate],
    context: Context,
    *,
    name: str,
    caption: str,
    rows: Sequence[str] = ("group",),
    columns: str = "system",
    scale: Scale,
    reference: tuple[str, Callable[[Estimate], float | None]] | None = None,
    folded: bool = False,
    ordered: bool = False,
    title: str = "",
    less_is_harm: bool = False,
) -> Table:
    """Return estimates as a matrix: one row for each value of `rows`, one column of `columns`.

    Rows are sorted by the smallest effect consistent with the data, as findings are, unless they
    are `ordered`; where `less_is_harm`, those with a significant decrease come first. Cells have
    charts on one axis, where there is room. `reference` adds a column with the level that the
    differences are measured from; `title` is that of the first column.
    """
    at = {(tuple(getattr(e, r) for r in rows), getattr(e, columns)): e for e in estimates}
    heads = sorted(dict.fromkeys(column for _, column in at), key=context.is_reference)
    by_row: dict[tuple[str, ...], list[Estimate]] = {}
    for (row, _), e in at.items():
        by_row.setdefault(row, []).append(e)
    shown = [r for r in rows if len({getattr(e, r) for e in estimates}) > 1]
    shown = shown or [r for r in rows if getattr(estimates[0], r)] or list(rows[-1:])
    most = largest(scale.distance(e) for e in estimates)
    order = list(by_row)
    if not ordered:
        order.sort(
            key=lambda row: max(
                (less_is_harm and status_of(e) == "decrease", *weight(e)) for e in by_row[row]
            ),
            reverse=True,
        )
    first = {getattr(e, columns): e for e in estimates}
    titles = [Column(title or _FIELDS[r]) for r in shown]
    titles += [Column(reference[0], numeric=True)] if reference else []
    charted = not folded and len(heads) <= _MOST_CHARTS and len(by_row) <= _MOST_ROWS
    axis = _axis(estimates, scale) if charted else None
    ticks = () if axis is None else axis.labels
    titles += [Column(_named(columns, first[h], context), True, ticks) for h in heads]
    body, notes = [], Notes()
    for row in order:
        one = by_row[row][0]
        cells = [Cell(shorten(_named(r, one, context), 60)) for r in shown]
        if reference:
            level = reference[1](one)
            cells.append(Cell("" if level is None else SHARE.number(level), value=level))
        cells += [value_cell(at.get((row, head)), scale, notes, most, axis) for head in heads]
        body.append(tuple(cells))
    # Groups of one name with the same numbers, such as texts without a term, are one row.
    rows_shown = tuple(dict.fromkeys(body))
    return Table(
        name, caption, tuple(titles), rows_shown, scale.name, notes.lines, folded, less_is_harm
    )


def _axis(estimates: Sequence[Estimate], scale: Scale) -> charts.Axis | None:
    """Return the axis that all charts of a matrix share, in percent of a column."""
    ends = [v for e in estimates if e.value is not None for v in (e.interval or (e.value,))]
    null = next((e.null for e in estimates if e.null is not None), None)
    return charts.Axis.over(ends, null, 0, 100, scale) if ends else None


_MOST_CHARTS = 3
"""With more columns a matrix has numbers and shading alone."""

_MOST_ROWS = 40
"""With more rows too: the page stays small, and its axis would be out of sight."""

_FIELDS = {"group": "Group", "label": "Content", "system": "System", "against": "Compared with",
           "metric": "Measure"}  # fmt: skip


@dataclass(frozen=True)
class Matrix:
    """Labels or groups by systems, with confidence intervals and shading."""

    select: Select
    caption: Caption
    scale: Scale
    rows: tuple[str, ...] = ("label", "group")
    reference: tuple[str, Callable[[Estimate], float | None]] | None = None
    folded: bool = False
    keep: Callable[[Estimate], bool] = lambda _: True
    name: str = ""
    ordered: bool = False
    less_is_harm: bool = False

    def blocks(self, context: Context) -> Iterable[Block]:
        """Return the table."""
        if found := [e for e in context.find(self.select) if self.keep(e)]:
            yield estimate_table(
                found, context, name=self.name or _name_of(self.select),
                caption=_worded(self.caption, found), rows=self.rows, scale=self.scale,
                reference=self.reference, folded=self.folded, ordered=self.ordered,
                less_is_harm=self.less_is_harm,
            )  # fmt: skip


@dataclass(frozen=True)
class Detail:
    """A column of a listing that shows one of the details of an estimate."""

    title: str
    name: str
    scale: Scale | None = COUNT


@dataclass(frozen=True)
class Listing:
    """One row for each estimate."""

    select: Chosen
    caption: Caption
    scale: Scale
    # Fields of an estimate (``system``, ``label``, ``group``, ``metric``), `Detail`, or ``value``,
    # ``p`` (corrected, where there is a correction) and ``n``.
    columns: tuple[str | Detail, ...]
    value: str = "Estimate"  # The title of the column with the value and its confidence interval
    keep: Callable[[Estimate], bool] = lambda _: True
    name: str = ""
    folded: bool = False

    def blocks(self, context: Context) -> Iterable[Block]:
        """Return the table."""
        selects = _selects(self.select, context)
        found = [e for e in context.find(*selects) if self.keep(e)]
        if not found:
            return
        caption = _worded(self.caption, found)
        notes, most = Notes(), largest(self.scale.distance(e) for e in found)
        values = [value_cell(e, self.scale, notes, most) for e in found]
        # A label that is always "all texts" is no column.
        shown = [c for c in self.columns if c != "label" or any(e.label for e in found)]
        rows = tuple(
            tuple(v if c == "value" else self._cell(c, e, context) for c in shown)
            for e, v in zip(found, values, strict=True)
        )
        columns = tuple(self._column(c) for c in shown)
        name = self.name or _name_of(selects[0])
        yield Table(name, caption, columns, rows, self.scale.name, notes.lines, self.folded)

    def _column(self, column: str | Detail) -> Column:
        if isinstance(column, Detail):
            return Column(column.title, numeric=column.scale is not None)
        title = {"value": self.value, "p": "p (corrected)", "n": "Sample"}
        return Column((title | _FIELDS)[column], numeric=column in {"value", "p", "n"})

    def _cell(self, column: str | Detail, e: Estimate, context: Context) -> Cell:
        if isinstance(column, Detail):
            return stored_cell(e.details.get(column.name), column.name, column.scale, context)
        if column == "p":
            p = e.p_value if e.p_adjusted is None else e.p_adjusted
            return Cell(p_text(p), value=p)
        if column == "n":
            return Cell(count(e.n, e.unit) if e.unit else f"{e.n:,}", value=float(e.n))
        if column == "metric":
            return Cell(context.names.in_words(e.metric))
        return Cell(_named(column, e, context))


Frame: TypeAlias = Mapping[str, tuple[str, Scale | None]]


@dataclass(frozen=True)
class Stored:
    """A table that an analysis stored, with titles and number formats for its columns.

    `columns` maps a column to its title and scale; None as the scale means text. A function of
    the stored column names serves tables whose columns depend on the data. `words` says what to
    print in place of some texts.
    """

    table: str
    caption: str
    columns: Frame | Callable[[Sequence[str]], Frame]
    folded: bool = False
    words: Mapping[str, str] = field(default_factory=dict, hash=False)

    def blocks(self, context: Context) -> Iterable[Block]:
        """Return the table."""
        found = context.rows(self.table)
        if not found:
            return
        columns = self.columns if isinstance(self.columns, Mapping) else self.columns([*found[0]])
        titles = tuple(Column(title, scale is not None) for title, scale in columns.values())
        rows = tuple(
            tuple(
                stored_cell(self._said(row[c]), c, scale, context)
                for c, (_, scale) in columns.items()
            )
            for row in found
        )
        yield Table(f"{self.table}-table", self.caption, titles, rows, folded=self.folded)

    def _said(self, value: Any) -> Any:
        return self.words.get(value, value) if isinstance(value, str) else value


def stored_cell(value: Any, column: str, scale: Scale | None, context: Context) -> Cell:
    """Return a value of a stored table as its column shows it."""
    if value is None:
        return Cell("")
    if scale is not None:
        return Cell(scale.number(value), value=float(value))
    if column == "topics":
        return Cell(", ".join(value_title("topic", topic) for topic in value.split(", ")))
    names = context.names
    named = dict.fromkeys(("label", "identity", "outcome"), names.label)
    named |= {"group": names.group, "system": names.system}
    return Cell(shorten(str(named.get(column, str)(value)), 60))


@dataclass(frozen=True)
class Spread:
    """Quantiles of a stored table as lines, one panel for each system."""

    table: str
    title: str
    caption: str
    axis: str
    scale: Scale

    def blocks(self, context: Context) -> Iterable[Block]:
        """Return the chart."""
        systems: dict[str, dict[str, tuple[float, ...]]] = {}
        for row in context.rows(self.table):
            system, group = context.names.system(row["system"]), context.names.group(row["group"])
            quantiles = tuple(value for column, value in row.items() if column.startswith("q"))
            systems.setdefault(str(system), {})[str(group)] = quantiles
        if systems:
            panels = charts.spread(systems, self.scale, self.axis)
            yield Chart(f"{self.table}-chart", self.title, self.caption, self.title, panels)


@dataclass(frozen=True)
class Say:
    """Sentences; a function returns None where there is nothing to say."""

    sentences: tuple[Callable[[Context], Text | None], ...]

    def blocks(self, context: Context) -> Iterable[Block]:
        """Return the paragraphs."""
        made = (sentence(context) for sentence in self.sentences)
        yield Prose(tuple(text for text in made if text))


@dataclass(frozen=True)
class Alert:
    """Sentences that a reader must not miss."""

    title: str
    sentences: Callable[[Context], Sequence[Text]]

    def blocks(self, context: Context) -> Iterable[Block]:
        """Return the paragraphs under their title."""
        yield Prose(tuple(self.sentences(context)), self.title)


class Measure(NamedTuple):
    """A column of a grid: its title, what it shows, and its scale where that is not the grid's."""

    title: str
    select: Select
    scale: Scale | None = None
    keep: Callable[[Estimate], bool] = lambda _: True


@dataclass(frozen=True)
class Grid:
    """One row for each system, one column for each measure."""

    columns: tuple[Measure | tuple[str, Select], ...]  # The measures, or title and select of each
    caption: Caption
    scale: Scale
    rows: tuple[str, ...] = ("system",)  # The fields that name a row
    keep: Callable[[Estimate], bool] = lambda _: True  # Which estimates are shown
    name: str = ""
    folded: bool = False

    @property
    def select(self) -> tuple[Select, ...]:
        """What it shows."""
        return tuple(column[1] for column in self.columns)

    def blocks(self, context: Context) -> Iterable[Block]:
        """Return the table."""
        found: dict[Measure, dict[tuple[str, ...], Estimate]] = {}
        for column in self.columns:
            measure = column if isinstance(column, Measure) else Measure(*column)
            some = [e for e in context.find(measure.select) if self.keep(e) and measure.keep(e)]
            if some:
                found[measure] = {tuple(getattr(e, r) for r in self.rows): e for e in some}
        named = {row: e for at in found.values() for row, e in at.items()}
        if not named:
            return
        notes = Notes()
        body = tuple(
            (
                *(Cell(shorten(_named(r, e, context), 60)) for r in self.rows),
                *(value_cell(at.get(row), m.scale or self.scale, notes) for m, at in found.items()),
            )
            for row, e in named.items()
        )
        heads = [Column(_FIELDS[r]) for r in self.rows] + [Column(m.title, True) for m in found]
        caption = _worded(self.caption, [e for at in found.values() for e in at.values()])
        name = self.name or _name_of(self.select[0])
        yield Table(name, caption, tuple(heads), body, self.scale.name, notes.lines, self.folded)


class Entry(NamedTuple):
    """A cell of a `BlockTable` and its place: by axis, what stands there, in words."""

    at: Mapping[str, str]
    cell: Cell


@dataclass(frozen=True)
class BlockTable:
    """A table in the form of a paper, over one data set or over all of a study.

    To declare one among the `shows` of a `Part` is all it takes: the report of a result shows it
    for that result, and a study of several results shows one table of all of them.

    `entries` returns the cells of one result, each with its place on every axis in words
    (``Entry({"system": "SVD", "measure": "Recall", "k": "@10"}, cell)``; `value_cell` makes a cell
    of an estimate). `rows` names the axes that together name a row, `columns` those that name a
    column, outermost first: all but the last head a block of columns. Rows and columns are in the
    order in which the results first have them, sorted by the outermost axis first.

    The axis ``set`` is the data set. A study fills it in (`Context.set`), unless an entry has it:
    a result may hold several sets of its own. Two results that would fill the same cell are told
    apart by their names. In the report of one result nothing fills it in, and an axis that no entry
    has is not shown. So ``columns=("set", "statistic")`` gives a block for each data set, and
    ``rows=("set", "system")`` a row for each system of each set.
    """

    name: str
    caption: str | Callable[[Sequence[Context]], str]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    entries: Callable[[Context, Notes], Iterable[Entry]]
    # The title of a column of row names, by axis, where it is not the axis itself.
    titles: Mapping[str, str] = field(default_factory=dict, hash=False)
    select: Chosen = ()  # Which estimates it shows
    folded: bool = False

    def blocks(self, context: Context) -> Iterable[Block]:
        """Return the table of one result."""
        return self.of([context])

    def of(self, contexts: Sequence[Context]) -> Iterable[Block]:
        """Return the table of several results, each with the name of its data set."""
        notes = Notes()
        cells: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[Context, Cell]] = {}
        seen: dict[str, dict[str, int]] = {axis: {} for axis in (*self.rows, *self.columns)}
        for context in contexts:
            for entry in self.entries(context, notes):
                at = {"set": context.set, **entry.at}
                if cells.get(self._place(at), (context,))[0] is not context:
                    at["set"] = f"{context.set}: {at['set']}"
                for axis, places in seen.items():
                    places.setdefault(at.get(axis, ""), len(places))
                cells[self._place(at)] = context, entry.cell
        if not cells:
            return
        rows = _ordered([row for row, _ in cells], [seen[axis] for axis in self.rows])
        columns = _ordered([column for _, column in cells], [seen[a] for a in self.columns])
        shown = [i for i, axis in enumerate(self.rows) if any(seen[axis])]
        heads = [Column(self.titles.get(self.rows[i], self.rows[i].capitalize())) for i in shown]
        for column in columns:
            *block, last = filter(None, column) if any(column) else ("Value",)
            numeric = any(c.value is not None for (_, at), (_, c) in cells.items() if at == column)
            heads.append(Column(last, numeric, block=", ".join(block)))
        body = tuple(
            (
                *(Cell(shorten(row[i], 60)) for i in shown),
                *(cells[row, c][1] if (row, c) in cells else Cell("\u2014") for c in columns),
            )
            for row in rows
        )
        caption = _worded(self.caption, contexts)
        yield Table(self.name, caption, tuple(heads), body, notes=notes.lines, folded=self.folded)

    def _place(self, at: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        row, column = (tuple(at.get(a, "") for a in axes) for axes in (self.rows, self.columns))
        return row, column


def _ordered(
    keys: Iterable[tuple[str, ...]], order: Sequence[Mapping[str, int]]
) -> list[tuple[str, ...]]:
    """Return different keys in the order of their parts, the first part first."""
    return sorted(
        dict.fromkeys(keys), key=lambda key: [at[v] for at, v in zip(order, key, strict=True)]
    )


@dataclass(frozen=True)
class Custom:
    """What a function makes of a result, where no other item fits; `select` is what it shows."""

    make: Callable[[Context], Iterable[Block]]
    select: Chosen = ()

    def blocks(self, context: Context) -> Iterable[Block]:
        """Return what the function makes."""
        return self.make(context)
