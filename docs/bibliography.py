"""References as data: where they are cited, as Markdown and as BibTeX."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["bibtex", "cited", "cited_years", "load_references", "reference_page"]

_FILE = Path(__file__).with_name("references.toml")
_SECTION = re.compile(
    r"^( *)References\n\1-+\n(?P<text>(?:\1.*\n|\s*\n)*?)(?=\n\1\w[^\n]*\n\1-{3,}|\Z)", re.MULTILINE
)
_YEAR = re.compile(r"\((\d{4}[a-z]?)\)")
_WHERE = {"article": "journal", "inproceedings": "booktitle", "book": "publisher"}

Reference = Mapping[str, Any]


@cache
def load_references() -> dict[str, Reference]:
    """Return every reference by its key: the first author's surname and the year."""
    listed = tomllib.loads(_FILE.read_text(encoding="utf-8"))["reference"]
    found = {_key(one["authors"][0].split(",")[0], str(one["year"])): one for one in listed}
    if len(found) != len(listed):
        raise ValueError(f"{_FILE.name}: two references have one key")
    return dict(sorted(found.items()))


def _key(surname: str, year: str) -> str:
    plain = surname.lower().replace("ä", "a").replace("ö", "o").replace(" ", "-")
    return f"{plain}-{year}"


def _sections(docstring: str) -> list[re.Match[str]]:
    return list(_SECTION.finditer(docstring + "\n"))


def _keys(text: str) -> list[tuple[str, str]]:
    """Return key and year of each work that a section cites as "Surname ... (year)"."""
    found = []
    for part in text.split(";"):
        year, name = _YEAR.search(part), re.search(r"[^\W\d_][\w'-]*", part)
        if year is not None and name is not None:
            found.append((_key(name[0], year[1]), year[1]))
    return found


def cited(docstring: str) -> list[str]:
    """Return the keys of what the sections of references of a docstring cite.

    Raises
    ------
    ValueError
        If a section cites nothing in the form "Surname ... (year)".
    """
    keys = []
    for section in _sections(docstring):
        some = [key for key, _ in _keys(section["text"])]
        if not some:
            raise ValueError(f"no work is cited as 'Surname (year)' in: {section['text'].strip()}")
        keys += some
    return keys


def cited_years(docstring: str, link: Callable[[str, str], str]) -> str:
    """Return a docstring in which the year of each reference that is listed is a link."""

    def linked(section: re.Match[str]) -> str:
        text = section[0]
        for key, year in _keys(section["text"]):
            if key in load_references():
                text = text.replace(f"({year})", f"({link(key, year)})", 1)
        return text

    return _SECTION.sub(linked, docstring + "\n")[:-1]


def _said(one: Reference) -> str:
    names = [" ".join(reversed(name.split(", "))) for name in one["authors"]]
    who = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    where = f"*{one['where']}*" if one.get("where") else ""
    if one.get("volume"):
        where += f" {one['volume']}" + (f"({one['number']})" if one.get("number") else "")
    where += f", {one['pages'].replace('--', '–')}" if one.get("pages") else ""
    parts = [f"{who} ({one['year']}). {one['title']}.", where + "." if where else ""]
    if one.get("doi"):
        parts.append(f"[doi:{one['doi']}](https://doi.org/{_escaped(one['doi'])})")
    elif one.get("url"):
        parts.append(f"<{one['url']}>")
    return " ".join(filter(None, parts))


def _escaped(doi: str) -> str:
    return "".join(f"%{ord(c):02X}" if c in "<>();" else c for c in doi)


def reference_page(uses: Mapping[str, list[str]]) -> str:
    """Return the list of references, with what cites each.

    Parameters
    ----------
    uses
        For each key, the names of what cites it.
    """
    parts = [
        "# References\n",
        "What definitions and methods come from. The same as BibTeX: "
        "[references.bib](references.bib).\n",
    ]
    for key, one in load_references().items():
        parts += [f"({key})=", f"## {key}\n", _said(one)]
        if uses.get(key):
            parts.append("\nCited by " + ", ".join(f"`{name}`" for name in uses[key]) + ".")
        parts.append("")
    return "\n".join(parts)


def bibtex() -> str:
    """Return every reference as BibTeX."""
    entries = []
    for key, one in load_references().items():
        kind = one.get("kind", "article")
        fields = {
            "author": " and ".join(one["authors"]),
            "title": f"{{{one['title']}}}",
            "year": str(one["year"])[:4],
            _WHERE.get(kind, "howpublished"): one.get("where"),
        } | {name: one.get(name) for name in ("volume", "number", "pages", "doi", "url")}
        lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
        entries.append("\n".join([f"@{kind}{{{key},", *lines, "}"]))
    return "\n\n".join(entries) + "\n"
