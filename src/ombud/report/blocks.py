"""What a report consists of, whatever it is written as: HTML, Markdown, LaTeX or JSON.

Nothing here is markup. Text is plain; what is strong or a name from the data is said by type, and
each writer escapes in its own way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeAlias

from ombud.report.display import drawable, shorten, visible

Tone: TypeAlias = Literal["", "above", "below", "maybe", "none", "undefined"]
"""How a cell is marked, beside its words: never by colour alone."""


@dataclass(frozen=True)
class Strong:
    """Words that stand out."""

    text: str


@dataclass(frozen=True)
class Name:
    """A name that came from data; its writing direction stays its own, and long ones are cut."""

    text: str

    @property
    def shown(self) -> str:
        """The name, visible and short enough for a sentence."""
        return shorten(self.text, 80)


Part: TypeAlias = str | Strong | Name


@dataclass(frozen=True)
class Paragraph:
    """Running text."""

    parts: tuple[Part, ...]

    @property
    def plain(self) -> str:
        """The text alone."""
        return "".join(_plain(part) for part in self.parts)


def _plain(part: Part) -> str:
    if isinstance(part, Name):
        return part.shown
    return visible(part if isinstance(part, str) else part.text)


def paragraph(*parts: Part) -> Paragraph:
    """Return a paragraph of parts.

    Examples
    --------
    >>> paragraph("On ", Name("violence"), ", ", Strong("nothing"), ".").plain
    'On violence, nothing.'
    """
    return Paragraph(parts)


@dataclass(frozen=True)
class Bullets:
    """A list of short paragraphs."""

    items: tuple[Paragraph, ...]


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    title
        Its heading.
    align
        Where its cells stand.
    header
        Whether its cells name their rows.
    """

    title: str
    align: Literal["left", "right"] = "left"
    header: bool = False


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Parameters
    ----------
    text
        Plain text.
    tone
        How it is marked.
    value
        The number that the text shows, by which rows can be sorted; None for words.
    """

    text: str
    tone: Tone = ""
    value: float | None = None

    @classmethod
    def number(cls, value: float, text: str = "") -> Self:
        """Return a cell that shows a number, a count if nothing else is said."""
        return cls(text or f"{value:,}", value=float(value))


@dataclass(frozen=True)
class Table:
    """Rows under columns, with a caption.

    Parameters
    ----------
    name
        Lower-case words joined by hyphens; unique in the report.
    columns, rows
        Each row has one cell for each column.
    caption
        What the table shows.
    notes
        Below the table, one sentence each.
    folded
        Whether it is left to the appendix; the report then has a link in its place.
    """

    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str
    notes: tuple[str, ...] = ()
    folded: bool = False

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"table {self.name!r}: a row has {len(row)} cells; {len(self.columns)} expected"
                )

    def cut(self, most: int) -> Table:
        """Return the first rows only."""
        if len(self.rows) <= most + 2:  # nothing is cut for the sake of a row or two
            return self
        return replace(self, rows=self.rows[:most])


@dataclass(frozen=True, eq=False)
class Figure:
    """A picture with words.

    Parameters
    ----------
    name
        Lower-case words joined by hyphens; also the name of its files.
    spec
        Vega-Lite, with its data inside and without colours: the theme brings them.
    title, caption
        Above and below the picture.
    alt
        What it shows, for those who do not see it.
    table
        The name of the table that has the same numbers.
    """

    name: str
    spec: dict[str, Any]
    title: str
    caption: str
    alt: str
    table: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "spec", _names_as_data(self.spec))


def _names_as_data(part: Any) -> Any:
    """Return a specification in which an order of names is the domain of a scale.

    Titles are made drawable.

    From ``"sort": names``, Vega-Lite makes an expression with the names in it, and Vega stumbles
    over a name such as ``constructor`` there, which every object of JavaScript has. In a domain
    names are data.
    """
    if isinstance(part, list):
        return [_names_as_data(one) for one in part]
    if not isinstance(part, dict):
        return part
    made = {key: v if key == "values" else _names_as_data(v) for key, v in part.items()}
    made |= {key: drawable(v) for key in ("title", "text") if isinstance(v := made.get(key), str)}
    for channel in {"x", "y", "xOffset", "yOffset", "color", "shape"} & made.keys():
        place = made[channel]
        if isinstance(place, dict) and isinstance(place.get("sort"), list):
            scale = {"domain": place["sort"], **(place.get("scale") or {})}
            made[channel] = {**place, "sort": None, "scale": scale}
    return made


@dataclass(frozen=True)
class Definitions:
    """Terms and what they mean."""

    items: tuple[tuple[str, Paragraph], ...]


@dataclass(frozen=True)
class Note:
    """Something the reader must not miss."""

    blocks: tuple[Paragraph | Bullets, ...]
    title: str = ""


@dataclass(frozen=True)
class Section:
    """A part of the report under a heading; sections nest.

    Parameters
    ----------
    title
        The heading.
    blocks
        The content.
    order
        Where the section stands among those of the report: lower is earlier. The built-in
        sections stand at 100, 200, ..., 1000, so that others can stand between them.
    name
        The anchor; set from the registered name.
    shows
        Keys of the metrics whose values over all units, and whose differences between systems,
        this section tells: the general comparisons and figures leave them out. (Groups compared
        by these metrics are still told there.)
    withholds
        Keys of metrics that the general comparisons and figures leave out altogether, groups
        too: because this section tells all of them, or because they are no answer to anything,
        such as bounds. The appendix has their numbers all the same.
    place
        ``report``, or ``appendix`` for what a reader looks up rather than reads.
    """

    title: str
    blocks: tuple[Block, ...]
    order: int = 550
    name: str = ""
    shows: frozenset[str] = frozenset()
    withholds: frozenset[str] = frozenset()
    place: Literal["report", "appendix"] = "report"


Block: TypeAlias = (
    "Paragraph | Bullets | Table | Figure | Definitions | Note | Section"  # a section may nest
)


def _walk(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        if isinstance(block, Section):
            yield from _walk(block.blocks)


def figures_in(blocks: Iterable[Block]) -> tuple[Figure, ...]:
    """Return all figures, in order."""
    return tuple(block for block in _walk(blocks) if isinstance(block, Figure))


def tables_in(blocks: Iterable[Block]) -> tuple[Table, ...]:
    """Return all tables, in order."""
    return tuple(block for block in _walk(blocks) if isinstance(block, Table))
