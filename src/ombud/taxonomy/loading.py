"""Read and check taxonomy files."""

from __future__ import annotations

import tomllib
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

from ombud.errors import DataError
from ombud.taxonomy.model import Taxonomy, TaxonomyLabel
from ombud.taxonomy.resources import find_versioned, is_refused, spelling_key, versioned_keys

_TEXT = ("name", "title", "source", "licence")
_KEYS = {*_TEXT, "version", "published", "labels", "parents", "refused"}
_LABEL_KEYS = {"id", "title", "description", "parent", "aliases"}


def taxonomy_names() -> tuple[str, ...]:
    """Return the keys of all taxonomies that come with the package.

    Examples
    --------
    >>> taxonomy_names()
    ('delicate@1', 'delicate-coarse@1', 'identity@1', 'warnings-ao3@1', 'warnings-ddd@1')
    """
    return versioned_keys(".toml")


@cache
def load_taxonomy(key: str) -> Taxonomy:
    """Return a taxonomy that comes with the package.

    Parameters
    ----------
    key
        ``name@version``; a bare name means the newest version.

    Examples
    --------
    >>> load_taxonomy("delicate@1")["age"].title
    'Age'
    """
    full, file = find_versioned(key, ".toml", "taxonomy")
    return _parse(file.read_text(encoding="utf-8"), full)


@cache
def load_scale(key: str) -> Taxonomy:
    """Return a scale that comes with the package: labels in order, with no crosswalk.

    There are ``delicate-severity`` (of a term, most severe first), ``delicate-risk`` (of a text,
    0 to 5) and ``delicate-target`` (at whom a text is aimed).

    Parameters
    ----------
    key
        ``name@version``; a bare name means the newest version.

    Examples
    --------
    >>> load_scale("delicate-severity@1").ids[0]
    'highly-offensive'
    >>> load_scale("delicate-risk").ids
    ('0', '1', '2', '3', '4', '5')
    """
    full, file = find_versioned(key, ".toml", "scale", "scales")
    return _parse(file.read_text(encoding="utf-8"), full)


def read_taxonomy(path: str | PathLike[str]) -> Taxonomy:
    """Read a taxonomy of your own from a TOML file, with all its faults in one error.

    The file has ``name``, ``version``, ``title``, ``source``, ``licence``, a list ``labels`` of
    tables with ``id``, ``title`` and optionally ``description``, ``parent``, ``aliases``, and
    optionally ``parents`` of the same form.

    Parameters
    ----------
    path
        The file.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(str(file), [f"byte {error.start}: not UTF-8; save it as UTF-8"]) from None
    return _parse(text, str(file))


def _parse(text: str, source: str) -> Taxonomy:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(source, [f"not TOML ({error})"]) from None
    faults: list[str] = []
    faults += [
        f"unknown key {key!r}; known: {', '.join(sorted(_KEYS))}" for key in content.keys() - _KEYS
    ]
    for key in _TEXT:
        if not isinstance(content.get(key), str) or not content[key].strip():
            faults.append(f"{key}: found {content.get(key)!r}; expected a text that is not empty")
    version = content.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        faults.append(f"version: found {version!r}; expected a whole number from 1")
    published = content.get("published")
    if published is not None and (not isinstance(published, int) or published < 0):
        faults.append(f"published: found {published!r}; expected a count")
    parents = _labels(content.get("parents", []), "parents", faults)
    labels = _labels(content.get("labels", []), "labels", faults)
    if not labels:
        faults.append("labels: none found; expected at least one table with id and title")
    known = {label.id for label in parents}
    for position, label in enumerate(labels, start=1):
        if label.parent and label.parent not in known:
            faults.append(f"labels {position}: parent {label.parent!r} is not an id in parents")
    refused = _refused(content.get("refused", []), faults)
    spellings = frozenset(spelling for _, names in refused for spelling in names)
    for where, group in (("parents", parents), ("labels", labels)):
        for position, label in enumerate(group, start=1):
            names = (label.id, label.title, *label.aliases)
            if any(is_refused(name) or spelling_key(name) in spellings for name in names):
                faults.append(f"{where} {position}: a refused label; move it to refused")
    if faults:
        raise DataError(source, faults)
    return Taxonomy(
        name=content["name"],
        version=content["version"],
        title=content["title"],
        source=content["source"],
        licence=content["licence"],
        labels=labels,
        parents=parents,
        published=published,
        refused=tuple(id for id, _ in refused),
        refused_spellings=spellings,
    )


def _labels(rows: Any, where: str, faults: list[str]) -> tuple[TaxonomyLabel, ...]:
    if not isinstance(rows, list):
        faults.append(f"{where}: expected a list of tables")
        return ()
    labels: list[TaxonomyLabel] = []
    seen: dict[str, int] = {}
    spelt: dict[str, tuple[int, str]] = {}
    for position, row in enumerate(rows, start=1):
        index = f"{where} {position}"
        if not isinstance(row, dict):
            faults.append(f"{index}: expected a table with id and title")
            continue
        before = len(faults)
        faults += [f"{index}: unknown key {key!r}" for key in row.keys() - _LABEL_KEYS]
        for key in ("id", "title"):
            if not isinstance(row.get(key), str) or not row[key].strip():
                faults.append(f"{index}: {key} is missing or empty")
        for key in ("description", "parent"):
            if not isinstance(row.get(key, ""), str):
                faults.append(f"{index}: {key} is not a text")
        aliases = row.get("aliases", [])
        if not isinstance(aliases, list) or not all(isinstance(name, str) for name in aliases):
            faults.append(f"{index}: aliases is not a list of texts")
        if len(faults) > before:
            continue
        label = TaxonomyLabel(**{**row, "aliases": tuple(aliases)})
        if label.id in seen:
            faults.append(f"{index}: id {label.id!r} stands already at {where} {seen[label.id]}")
        seen.setdefault(label.id, position)
        for key in sorted({spelling_key(name) for name in (label.id, label.title, *label.aliases)}):
            first, id = spelt.setdefault(key, (position, label.id))
            if id != label.id:
                faults.append(f"{index}: spelling {key!r} also stands for {where} {first}")
        labels.append(label)
    return tuple(labels)


def _refused(rows: Any, faults: list[str]) -> list[tuple[str, frozenset[str]]]:
    result: list[tuple[str, frozenset[str]]] = []
    if not isinstance(rows, list):
        faults.append("refused: expected a list of tables with id and spellings")
        return result
    for position, row in enumerate(rows, start=1):
        names = row.get("spellings") if isinstance(row, dict) else None
        if (
            not isinstance(row, dict)
            or not isinstance(row.get("id"), str)
            or not isinstance(names, list)
            or not all(isinstance(name, str) for name in names)
        ):
            faults.append(f"refused {position}: expected a table with id and a list of spellings")
            continue
        result.append((row["id"], frozenset(spelling_key(name) for name in names)))
    return result


@cache
def _every_refused_spelling() -> frozenset[str]:
    return frozenset().union(*(load_taxonomy(key).refused_spellings for key in taxonomy_names()))


def refused_anywhere(name: str) -> bool:
    """Say whether any taxonomy of the package refuses a label, or the general list does.

    Examples
    --------
    >>> refused_anywhere("blood-gore")
    False
    """
    return is_refused(name) or spelling_key(name) in _every_refused_spelling()
