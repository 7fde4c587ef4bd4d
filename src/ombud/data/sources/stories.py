"""Tables of film plots and episode synopses, made of local exports of TMDB, Wikipedia and IMDb."""

from __future__ import annotations

import bz2
import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import unescape
from pathlib import Path
from typing import IO, Any
from xml.etree.ElementTree import ParseError, iterparse

import polars as pl

from ombud.data.card import Card
from ombud.data.exclusions import Exclusion
from ombud.data.faults import need_columns
from ombud.data.frames import open_frame
from ombud.data.sources.identity_lists import title_key, year_in
from ombud.data.sources.synopses import ABOVE, BUILT, PG_13
from ombud.errors import DataError
from ombud.files import hash_file, remove_leftovers, write_folder

Progress = Callable[[int, int, str], None]
"""Called with (done, total, note); a total of 0 is unknown."""

_PLOT = r"plot(?: summary)?|synopsis|plot synopsis|story|storyline|summary"
_HEADING = re.compile(r"^(={2,6})\s*(.*?)\s*\1\s*$", re.MULTILINE)
_MOST = 1 << 28


def silent(done: int, total: int, note: str) -> None:
    """Report no progress."""


def _open(path: Path) -> IO[bytes]:
    kinds: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
    opened: IO[bytes] = kinds.get(path.suffix, open)(path, "rb")
    return opened


def json_objects(path: str | Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file or folder: one a file, one a line, or lists of them.

    Files end in ``.json`` or ``.jsonl``, perhaps with ``.gz`` or ``.bz2``.
    """
    given = Path(path)
    pattern = re.compile(r"\.(json|jsonl|ndjson)(\.gz|\.bz2)?$")
    files = [given]
    if given.is_dir():
        files = sorted(file for file in given.rglob("*") if pattern.search(file.name))
    if not files or not files[0].is_file():
        raise DataError(str(given), ["there are no JSON files"])
    for file in files:
        with _open(file) as stream:
            try:
                start = stream.read(_MOST + 1) if ".json" in file.suffixes[-2:] else b""
                whole = json.loads(start) if 0 < len(start) <= _MOST else None
            except (ValueError, EOFError, OSError, RecursionError):
                whole = None
        if whole is not None:
            some = whole if isinstance(whole, list) else [whole]
            yield from (one for one in some if isinstance(one, dict))
            continue
        with _open(file) as stream:
            for number, line in enumerate(stream, start=1):
                if not line.strip():
                    continue
                try:
                    one = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise DataError(file.name, [f"line {number} is not JSON: {error}"]) from None
                if isinstance(one, dict):
                    yield one


def wiki_pages(path: str | Path) -> Iterator[tuple[str, str]]:
    """Yield title and text of every page of a Wikipedia dump or export, or of JSON lines.

    A dump is ``.xml``, ``.xml.bz2`` or ``.xml.gz``; JSON objects have `title`, and `text` or a
    `plot`.
    """
    given = Path(path)
    if given.is_dir() or ".xml" not in given.suffixes:
        for one in json_objects(given):
            text = one.get("text") or one.get("plot")
            if isinstance(one.get("title"), str) and isinstance(text, str):
                yield one["title"], text if one.get("text") else f"== Plot ==\n{text}"
        return
    if not given.is_file():
        raise DataError(str(given), ["there is no such file"])
    title = text = ""
    try:
        with _open(given) as stream:
            parsed = iterparse(stream, ("start", "end"))
            _, root = next(parsed)
            for event, element in parsed:
                if event == "start":
                    continue
                kind = element.tag.rpartition("}")[2]
                if kind == "title":
                    title = element.text or ""
                elif kind == "text":
                    text = element.text or ""
                elif kind == "page":
                    yield title, text
                    title = text = ""
                    root.clear()
    except (ParseError, EOFError, OSError, StopIteration) as error:
        raise DataError(given.name, [f"it is no Wikipedia export, or is cut: {error}"]) from None


def plain_text(wikitext: str) -> str:
    """Return wikitext as plain text: no templates, tables, references, files and markup.

    Examples
    --------
    >>> plain_text("'''Ann''' meets [[Bo (film)|Bo]]<ref>x</ref>.{{cite|{{a}}}} [[File:a.png|b]]")
    'Ann meets Bo.'
    """
    text = re.sub(r"<!--.*?-->|<ref[^>/]*/>|<ref.*?</ref>", "", wikitext, flags=re.DOTALL)
    for pair in (r"\{\{[^{}]*\}\}", r"\{\|[^{]*?\|\}"):
        before = ""
        while before != text:
            before, text = text, re.sub(pair, "", text, flags=re.DOTALL)
    text = re.sub(
        r"\[\[(?:File|Image|Category):(?:[^\[\]]|\[\[[^\]]*\]\])*\]\]", "", text, flags=re.I
    )
    text = re.sub(r"\[\[(?:[^|\]]*\|)?([^\]]*)\]\]", r"\1", text)
    text = re.sub(r"\[https?://\S+ ?([^\]]*)\]", r"\1", text)
    text = unescape(re.sub(r"<[^>]+>|'{2,}|^[*#:;]+\s*", "", text, flags=re.MULTILINE))
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def plot_of(wikitext: str) -> str:
    r"""Return the text of the section that tells the plot; empty where there is none.

    Examples
    --------
    >>> plot_of("Intro\n== Plot ==\nA boat.\n=== End ===\nIt sinks.\n== Cast ==\nx")
    'A boat.\nIt sinks.'
    """
    headings = list(_HEADING.finditer(wikitext))
    for place, heading in enumerate(headings):
        if re.fullmatch(_PLOT, plain_text(heading[2]), re.IGNORECASE):
            depth = len(heading[1])
            rest = (h.start() for h in headings[place + 1 :] if len(h[1]) <= depth)
            section = wikitext[heading.end() : next(rest, len(wikitext))]
            return plain_text(_HEADING.sub("", section))
    return ""


def episodes_of(title: str, wikitext: str) -> dict[int, str]:
    r"""Return the summaries of a page's first season, by the number of the episode.

    They are those of templates ``Episode list``; on a page of several seasons, those below the
    heading *Season 1* (or *Series 1*).

    Examples
    --------
    >>> page = "== Season 1 ==\n{{Episode list|EpisodeNumber=1|ShortSummary=A [[cat]].}}"
    >>> episodes_of("List of X episodes", page + "\n== Season 2 ==\n" + page[16:])
    {1: 'A cat.'}
    """
    first = r"(?:season|series)\s*(?:1|one)\b"
    seasons = [h for h in _HEADING.finditer(wikitext) if re.match(r"(season|series)\s", h[2], re.I)]
    part = wikitext
    if seasons and not re.search(first, title, re.IGNORECASE):
        start = next((i for i, h in enumerate(seasons) if re.match(first, h[2], re.I)), None)
        if start is None:
            return {}
        end = seasons[start + 1].start() if start + 1 < len(seasons) else len(wikitext)
        part = wikitext[seasons[start].end() : end]
    else:
        number = re.search(r"(?:season|series)\s*(\d+)", title, re.IGNORECASE)
        if number is not None and int(number[1]) != 1:
            return {}
    found: dict[int, str] = {}
    for template in _templates(part, "episode list"):
        fields = _fields(template)
        place = fields.get("episodenumber2") or fields.get("episodenumber") or ""
        summary = plain_text(fields.get("shortsummary", ""))
        if (digits := re.match(r"\s*(\d+)", place)) and summary:
            found.setdefault(int(digits[1]), summary)
    return found


def _templates(text: str, name: str) -> Iterator[str]:
    """Yield the insides of templates of a name, which may hold others."""
    for start in re.finditer(r"\{\{\s*" + name + r"[^|{}]*\|", text, re.IGNORECASE):
        depth, place = 1, start.end()
        for brace in re.finditer(r"\{\{|\}\}", text[start.end() :]):
            depth += 1 if brace[0] == "{{" else -1
            if not depth:
                place = start.end() + brace.start()
                yield text[start.end() : place]
                break


def _fields(template: str) -> dict[str, str]:
    # A bar inside a link or an inner template ends no field.
    parts = re.split(r"\|(?![^\[\]]*\]\])(?![^{}]*\}\})", template)
    pairs = (part.partition("=") for part in parts if "=" in part)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


class _Steps:
    """What every step of a selection leaves out."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.exclusions: list[Exclusion] = []

    def count(self, what: str, lost: int, reason: str, of: int) -> None:
        """Count titles that are left out."""
        if lost:
            self.exclusions.append(Exclusion(self.name, what, lost, reason, of))

    def keep(self, rows: list[Any], what: str, tests: Mapping[str, Callable[[Any], Any]]) -> Any:
        """Return the rows that pass all tests; those that do not are counted with the reason."""
        for reason, test in tests.items():
            kept = [row for row in rows if test(row)]
            self.count(what, len(rows) - len(kept), reason, len(rows))
            rows = kept
        return rows


def _chosen(
    replies: list[Any], ids: str | Path | None, top: int, steps: _Steps, what: str, part: str
) -> Any:
    """Return the replies of the most popular titles in English that the United States had.

    `part` is what of a reply lists countries.
    """
    popular = {r["id"]: float(r.get("popularity") or 0) for r in replies}
    if ids is not None:
        known = (one for one in json_objects(ids) if isinstance(one.get("id"), int))
        popular = {one["id"]: float(one.get("popularity") or 0) for one in known}
    wanted = sorted(popular, key=lambda one: (-popular[one], one))
    rank = {one: place for place, one in enumerate(wanted[:top] if top else wanted)}
    there = {r["id"]: r for r in replies}
    repeated, absent = len(replies) - len(there), sum(one not in there for one in rank)
    steps.count(what, repeated, "another reply is about the same title", len(replies))
    steps.count(what, absent, "there is no reply about them", len(rank))
    tests: dict[str, Callable[[Any], Any]] = {
        "they are not among the most popular": lambda r: r["id"] in rank,
        "they are for adults only": lambda r: not r.get("adult"),
        "their language is not English": lambda r: r.get("original_language") == "en",
        "they were not released in the United States": lambda r: (
            any(_american(r, part)) or "US" in (r.get("origin_country") or [])
        ),
    }
    some = steps.keep(list(there.values()), what, tests)
    return sorted(some, key=lambda r: rank[r["id"]])


def _american(reply: Mapping[str, Any], part: str) -> Iterator[Mapping[str, Any]]:
    countries = (reply.get(part) or {}).get("results") or []
    return (country for country in countries if country.get("iso_3166_1") == "US")


def _certificate(reply: Mapping[str, Any], part: str) -> str:
    """Return the age rating in the United States; empty where there is none."""
    for country in _american(reply, part):
        for one in country.get("release_dates") or [{"certification": country.get("rating")}]:
            if mark := str(one.get("certification") or "").strip().upper():
                return mark
    return ""


_RATED: dict[str, Callable[[Any], Any]] = {
    "they have no age rating of the United States that says what is acceptable": lambda row: (
        row["rating"] in {*PG_13, *ABOVE}
    )
}


def build_movie_plots(
    tmdb: str | Path,
    wikipedia: str | Path,
    *,
    ids: str | Path | None = None,
    top: int = 0,
    progress: Progress = silent,
) -> tuple[pl.DataFrame, Card]:
    """Return plots of films in English that were released and rated in the United States.

    Parameters
    ----------
    tmdb
        Replies of TMDB's ``/movie/ID?append_to_response=release_dates``.
    wikipedia
        A dump or export of Wikipedia, or JSON lines with `title` and `text`.
    ids
        TMDB's daily file of ids, whose popularity says which films are the most popular; without
        it, the popularity in the replies does.
    top
        How many of the most popular films to take before all else; 0 for all.
    progress
        Called with (done, total, note).
    """
    steps = _Steps("movie-plots")
    replies = [r for r in json_objects(tmdb) if isinstance(r.get("id"), int) and r.get("title")]
    if not replies:
        raise DataError(str(tmdb), ["it holds no replies about films (with id and title)"])
    some = _chosen(replies, ids, top, steps, "films", "release_dates")
    for r in some:
        r |= {"year": year_in(r.get("release_date")), "rating": _certificate(r, "release_dates")}
    rows = steps.keep(some, "films", _RATED)
    keys = {title_key(row["title"]) for row in rows}
    pages: dict[str, list[tuple[int | None, bool, str]]] = {}
    for title, text in _watched(wikipedia, progress):
        key, kind = title_key(title), re.search(r"\(([^()]*)\)$", title)
        named = kind is not None and re.search("film|movie", kind[1], re.IGNORECASE) is not None
        wrong = "{{" in text and not re.search(r"\{\{\s*infobox film", text, re.IGNORECASE)
        if key in keys and (named or kind is None) and not wrong:
            year = year_in(kind[1] if kind else "")
            pages.setdefault(key, []).append((year, named, plot_of(text)))
    for row in rows:
        found = pages.get(title_key(row["title"]), [])
        fitting = [page for page in found if page[0] in (None, row["year"])]
        # The page of this year before "(film)", and that before the bare title.
        fitting.sort(key=lambda page: (page[0] is None, not page[1]))
        row["plot"] = fitting[0][2] if fitting else None
    tests: dict[str, Callable[[Any], Any]] = {
        "Wikipedia has no page of their title and year": lambda row: row["plot"] is not None,
        "their page has no section about the plot": lambda row: row["plot"],
    }
    rows = steps.keep(rows, "films", tests)
    table = _table(rows, ("id", "title", "year", "rating", "plot"), str(tmdb))
    return table, _card("Film plots with age ratings", table, steps, tmdb, wikipedia)


def build_tv_synopses(
    tmdb: str | Path,
    wikipedia: str | Path | None = None,
    imdb: str | Path | None = None,
    *,
    ids: str | Path | None = None,
    top: int = 0,
    progress: Progress = silent,
) -> tuple[pl.DataFrame, Card]:
    """Return synopses of the first season of series in English, in three lengths.

    Short ones are TMDB's overviews, medium ones the episode lists of Wikipedia, long ones those of
    IMDb's users. The age rating is the one that the table of IMDb states, else TMDB's.

    Parameters
    ----------
    tmdb
        Replies of TMDB's ``/tv/ID?append_to_response=content_ratings`` and ``/tv/ID/season/1`` (or
        of the first with ``season/1`` appended).
    wikipedia
        As in `build_movie_plots`; medium synopses need it.
    imdb
        A table with `show`, `episode` (its number in the first season), `synopsis`, and perhaps
        `year`, `season` and `rating`; long synopses need it.
    ids, top, progress
        As in `build_movie_plots`.
    """
    steps = _Steps("tv-synopses")
    shows: list[dict[str, Any]] = []
    seasons: dict[int, list[dict[str, Any]]] = {}
    for reply in json_objects(tmdb):
        first = reply.get("season/1") or reply
        listed = first.get("episodes") or []
        if first is not reply and listed:
            seasons[reply["id"]] = listed
        elif listed and first.get("season_number") == 1 and listed[0].get("show_id"):
            seasons[listed[0]["show_id"]] = listed
        if reply.get("name") and "original_language" in reply and isinstance(reply.get("id"), int):
            shows.append(reply)
    if not shows:
        raise DataError(str(tmdb), ["it holds no replies about series (with id, name, language)"])
    some = _chosen(shows, ids, top, steps, "series", "content_ratings")
    reason = "there is no reply about their first season"
    some = steps.keep(some, "series", {reason: lambda r: r["id"] in seasons})
    keys = {title_key(r["name"]) for r in some}
    medium = {} if wikipedia is None else _medium(wikipedia, keys, progress)
    long, ratings = ({}, {}) if imdb is None else _imdb(imdb, keys, steps)
    rows: list[dict[str, Any]] = []
    for reply in some:
        key, year = title_key(reply["name"]), year_in(reply.get("first_air_date"))
        for episode in seasons[reply["id"]]:
            number = int(episode.get("episode_number") or 0)
            own = [(key, year, number), (key, None, number)]
            row = {"id": f"{reply['id']}-{number}", "show": reply["id"], "title": reply["name"]}
            row |= {"year": year, "short": plain_text(str(episode.get("overview") or ""))}
            row["rating"] = next((ratings[one] for one in own if one in ratings), "")
            row["rating"] = row["rating"] or _certificate(reply, "content_ratings")
            row["medium"] = medium.get(key, {}).get(number, "")
            row["long"] = next((long[one] for one in own if one in long), "")
            rows.append(row)
    reason = "they have no synopsis"
    tests = {**_RATED, reason: lambda row: row["short"] or row["medium"] or row["long"]}
    rows = steps.keep(rows, "episodes", tests)
    columns = ("id", "show", "title", "year", "rating", "short", "medium", "long")
    table = _table(rows, columns, str(tmdb))
    inputs = [one for one in (tmdb, wikipedia, imdb) if one is not None]
    return table, _card("Synopses of episodes with age ratings", table, steps, *inputs)


def _watched(wikipedia: str | Path, progress: Progress) -> Iterator[tuple[str, str]]:
    """Yield the pages of Wikipedia, with progress."""
    for place, page in enumerate(wiki_pages(wikipedia)):
        if place % 1000 == 0:
            progress(place, 0, "pages of Wikipedia")
        yield page


def _medium(wikipedia: str | Path, keys: set[str], progress: Progress) -> dict[str, dict[int, str]]:
    """Return the summaries of first seasons, by show and episode."""
    found: dict[str, dict[int, str]] = {}
    for title, text in _watched(wikipedia, progress):
        name = re.sub(r"^List of (.*?)(?: \([^()]*\))? episodes$", r"\1", title)
        name = re.sub(r",? (?:season|series) \d+$", "", name, flags=re.IGNORECASE)
        key = title_key(re.sub(r" \((?:[^()]*(?:season|series) \d+)\)$", "", name))
        if key in keys:
            for number, summary in episodes_of(title, text).items():
                found.setdefault(key, {}).setdefault(number, summary)
    return found


_Episodes = dict[tuple[str, int | None, int], str]


def _imdb(path: str | Path, keys: set[str], steps: _Steps) -> tuple[_Episodes, _Episodes]:
    """Return long synopses and age ratings, by show, year and episode of the first season."""
    table: pl.DataFrame = open_frame(Path(path))[0].collect(backend="polars").to_native()
    need_columns(Path(path).name, dict.fromkeys(("show", "episode", "synopsis"), ""), table.columns)
    rows = table.select(pl.all().cast(pl.String, strict=False).fill_null("")).to_dicts()
    tests: dict[str, Callable[[Any], Any]] = {
        "they are of another season": lambda row: re.fullmatch(
            r"0*1(\.0)?|", row.get("season", "")
        ),
        "no series has their title": lambda row: title_key(row["show"]) in keys,
    }
    long: _Episodes = {}
    ratings: _Episodes = {}
    for row in steps.keep(rows, "rows of IMDb", tests):
        if number := re.match(r"\s*(\d+)", row["episode"]):
            place = (title_key(row["show"]), year_in(row.get("year")), int(number[1]))
            if row["synopsis"].strip():
                long.setdefault(place, plain_text(row["synopsis"]))
            if mark := row.get("rating", "").strip():
                ratings.setdefault(place, mark.upper())
    return long, ratings


def _table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], source: str) -> pl.DataFrame:
    if not rows:
        raise DataError(source, ["no title is left; each step's exclusions say why"])
    kinds = {c: pl.Int64 if c == "year" else pl.String for c in columns}
    cells = [[row[c] if c == "year" else str(row[c]) for c in columns] for row in rows]
    return pl.DataFrame(cells, schema=kinds, orient="row")


def _card(title: str, table: pl.DataFrame, steps: _Steps, *inputs: str | Path) -> Card:
    facts: dict[str, int | float | str] = {"rows": table.height}
    for column in ("plot", "short", "medium", "long"):
        if column in table.columns:
            words = [len(text.split()) for text in table[column] if text]
            facts[f"{column}_texts"] = len(words)
            facts[f"{column}_mean_words"] = round(sum(words) / max(len(words), 1), 1)
    return Card(
        name=steps.name,
        title=title,
        source="themoviedb.org, en.wikipedia.org, imdb.com (your exports)",
        licence="Wikipedia: CC BY-SA; TMDB and IMDb: their terms, for your own use",
        citation="Section 4.1 of Proebsting et al. (2025), Identity-related Speech Suppression in "
        "Generative AI Content Moderation.",
        known_harms="Descriptions of violence, abuse and drugs.",
        hashes={Path(one).name: hash_file(Path(one)) for one in inputs if Path(one).is_file()},
        facts=facts,
        dropped=tuple(map(str, steps.exclusions)),
    )


def write_built(table: pl.DataFrame, card: Card, folder: Path, *, replace: bool = False) -> Path:
    """Write a table of synopses and its card as a folder, which source `synopses` reads."""
    remove_leftovers(folder)
    if folder.exists() and not replace:
        raise DataError(str(folder), ["it exists; choose another folder, or give --replace"])

    def write(part: Path) -> None:
        table.write_csv(part / BUILT)
        (part / "card.json").write_text(card.model_dump_json(indent=1) + "\n", encoding="utf-8")

    write_folder(folder, write)
    return folder
