"""A taxonomy: labels, their parents, and where they come from."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal, cast, get_args

from ombud.errors import DataError, OmbudError, RegistryError
from ombud.files import read_utf8
from ombud.taxonomy.resources import (
    data_folder,
    find_versioned,
    is_refused,
    parse_commented_csv,
    spelling_key,
    versioned_keys,
)

Relation = Literal["exact", "broader", "narrower", "related"]
"""Of the target, seen from the source: the same, wider, narrower, or often found together."""

_INVERSE: dict[Relation, Relation] = {
    "exact": "exact",
    "broader": "narrower",
    "narrower": "broader",
    "related": "related",
}


@dataclass(frozen=True, slots=True)
class Crosswalk:
    """Which labels of one taxonomy correspond to which of another.

    Examples
    --------
    >>> walk = Crosswalk("a@1", "b@1", (("dog", "animal", "broader"),))
    >>> walk.inverted().rows
    (('animal', 'dog', 'narrower'),)
    """

    # Keys of the two taxonomies.
    source: str
    target: str
    # ``(source label, target label, relation)``; the relation says what the target is, seen from
    # the source: ``"broader"`` means that a thing with the source label has the target too.
    rows: tuple[tuple[str, str, Relation], ...] = field(repr=False)
    made_by: str = ""  # Who judged the correspondences

    def inverted(self) -> Crosswalk:
        """Return the same correspondences read from the other side."""
        rows = tuple((there, here, _INVERSE[relation]) for here, there, relation in self.rows)
        return Crosswalk(self.target, self.source, rows, self.made_by)


@cache
def load_crosswalk(source: str, target: str) -> Crosswalk:
    """Return the crosswalk between two taxonomies that comes with the package.

    Parameters
    ----------
    source, target
        Keys, ``name@version``. The file is found in either direction and turned round if need be.

    Examples
    --------
    >>> load_crosswalk("delicate@1", "warnings-ao3@1").source
    'delicate@1'
    """
    folder = data_folder().joinpath("crosswalks")
    for here, there in ((source, target), (target, source)):
        file = folder.joinpath(f"{here}--{there}.csv")
        if file.is_file():
            walk = _parse_crosswalk(file.read_text(encoding="utf-8"), file.name)
            return walk if here == source else walk.inverted()
    known = sorted(entry.name.removesuffix(".csv") for entry in folder.iterdir())
    raise RegistryError(
        f"no crosswalk joins {source} and {target}. There are: {', '.join(known)}. "
        f"Read one of your own with read_crosswalk and pass it as crosswalk="
    )


def read_crosswalk(path: str | PathLike[str]) -> Crosswalk:
    """Read a crosswalk from a CSV file, with all its faults in one error.

    The file starts with the lines ``# from: name@version`` and ``# to: name@version``; its columns
    are ``source``, ``target`` and ``relation``. Labels are checked against the taxonomies where
    they come with the package.

    Parameters
    ----------
    path
        The file.
    """
    file = Path(path)
    return _parse_crosswalk(read_utf8(file), str(file))


def _parse_crosswalk(text: str, place: str) -> Crosswalk:
    meta, numbered = parse_commented_csv(text, place, ("source", "target", "relation"))
    faults = [
        f"no line '# {key}: name@version' on top: add it"
        for key in ("from", "to")
        if not meta.get(key)
    ]
    ids: list[set[str] | None] = []
    for key in ("from", "to"):
        try:
            taxonomy = load_taxonomy(meta.get(key, ""))
            ids.append({*taxonomy.ids, *taxonomy.parent_ids})
        except OmbudError:
            ids.append(None)
    rows: list[tuple[str, str, Relation]] = []
    seen: set[tuple[str, str]] = set()
    for number, row in numbered:
        pair = (row["source"], row["target"])
        for name, known, key in zip(pair, ids, ("from", "to"), strict=True):
            if known is not None and name not in known:
                faults.append(f"row {number}: {name!r} is not a label of {meta[key]}")
        if row["relation"] not in get_args(Relation):
            expected = ", ".join(get_args(Relation))
            faults.append(f"row {number}: relation {row['relation']!r}; expected {expected}")
        if pair in seen:
            faults.append(f"row {number}: the pair {pair[0]!r}, {pair[1]!r} stands already above")
        seen.add(pair)
        rows.append((*pair, cast(Relation, row["relation"])))
    if faults:
        raise DataError(place, faults)
    return Crosswalk(meta["from"], meta["to"], tuple(rows), meta.get("source", ""))


@dataclass(frozen=True, slots=True)
class TaxonomyLabel:
    """One label."""

    id: str  # Short stable name; what data files and results carry
    title: str  # What a reader sees
    description: str = ""  # One sentence; empty where the source gives none
    parent: str = ""  # Id of the coarser label among the taxonomy's `parents`; empty at the top
    noun: str = ""  # How a sentence names these people; empty where the title serves
    aliases: tuple[str, ...] = ()  # Other spellings in use at the source


@dataclass(frozen=True)
class Taxonomy:
    """A versioned list of labels.

    Parameters
    ----------
    name, version
        Together the key, ``name@version``. A version never changes once released.
    title
        What a reader sees.
    source, licence
        Where the labels come from, and on what terms.
    labels
        The labels that items, texts or terms carry.
    parents
        Coarser labels that `labels` point to; a name space of its own.
    published
        How many labels the source has, refused ones counted; None if not stated.
    refused
        Ids of labels of the source that are never stored or shown. Their spellings are known to
        `is_refused`, so that a loader can drop and count rows.

    Examples
    --------
    >>> from ombud.taxonomy import load_taxonomy
    >>> ao3 = load_taxonomy("warnings-ao3@1")
    >>> len(ao3.labels), ao3["blood-gore"].parent, ao3.resolve("Blood and Gore")
    (36, 'medical', 'blood-gore')
    """

    name: str
    version: int
    title: str
    source: str
    licence: str
    labels: tuple[TaxonomyLabel, ...] = field(repr=False)
    parents: tuple[TaxonomyLabel, ...] = field(default=(), repr=False)
    published: int | None = None
    refused: tuple[str, ...] = field(default=(), repr=False)
    refused_spellings: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def key(self) -> str:
        """``name@version``."""
        return f"{self.name}@{self.version}"

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Ids of `labels`, in order."""
        return tuple(label.id for label in self.labels)

    @cached_property
    def parent_ids(self) -> tuple[str, ...]:
        """Ids of `parents`, in order."""
        return tuple(label.id for label in self.parents)

    @cached_property
    def _by_id(self) -> dict[str, TaxonomyLabel]:
        return {label.id: label for label in (*self.parents, *self.labels)}

    @cached_property
    def _by_spelling(self) -> dict[str, str]:
        keys: dict[str, str] = {}
        for labels in (self.labels, self.parents):
            for label in labels:
                for name in (label.id, label.title, *label.aliases):
                    keys.setdefault(spelling_key(name), label.id)
        return keys

    def __getitem__(self, id: str) -> TaxonomyLabel:
        """Return a label, or else a parent, by id."""
        try:
            return self._by_id[id]
        except KeyError:
            raise RegistryError(
                f"{self.key} has no label {id!r}; its ids are in .ids and .parent_ids, and "
                f".resolve() finds other spellings"
            ) from None

    def __contains__(self, id: object) -> bool:
        return id in self._by_id

    def children(self, parent: str) -> tuple[TaxonomyLabel, ...]:
        """Return the labels below a parent, in order."""
        if parent not in self.parent_ids:
            raise RegistryError(
                f"{self.key} has no parent {parent!r}: {', '.join(self.parent_ids)}"
            )
        return tuple(label for label in self.labels if label.parent == parent)

    def to_parents(self) -> Mapping[str, str]:
        """Return the parent of every label (fine to coarse); labels at the top are left out."""
        return {label.id: label.parent for label in self.labels if label.parent}

    def resolve(self, spelling: str) -> str | None:
        """Return the id that a spelling stands for, or None if it is unknown or refused."""
        if self.is_refused(spelling):
            return None
        return self._by_spelling.get(spelling_key(spelling))

    def is_refused(self, spelling: str) -> bool:
        """Say whether rows with this label must be dropped and counted."""
        return spelling_key(spelling) in self.refused_spellings or is_refused(spelling)

    def map_to(
        self,
        other: Taxonomy | str,
        *,
        relations: Sequence[Relation] = ("exact", "broader", "narrower", "related"),
        crosswalk: Crosswalk | None = None,
    ) -> Mapping[str, tuple[str, ...]]:
        """Return, for every label here, the labels of another taxonomy that correspond.

        Parameters
        ----------
        other
            The other taxonomy, or its key.
        relations
            Which relations count. ``("exact", "broader")`` are those where a thing with the label
            here also has the label there.
        crosswalk
            A crosswalk of your own; by default the one that comes with the package, read in
            either direction.

        Returns
        -------
        Mapping
            Every id of `labels` and `parents`; an empty tuple where nothing corresponds.

        Examples
        --------
        >>> from ombud.taxonomy import load_taxonomy
        >>> load_taxonomy("warnings-ddd@1").map_to("warnings-ao3@1")["torture"]
        ('violence',)
        """
        key = other if isinstance(other, str) else other.key
        walk = crosswalk if crosswalk is not None else load_crosswalk(self.key, key)
        if (walk.source, walk.target) != (self.key, key):
            walk = walk.inverted()
        if (walk.source, walk.target) != (self.key, key):
            raise RegistryError(
                f"the crosswalk joins {walk.source} and {walk.target}, not {self.key} and {key}"
            )
        result: dict[str, list[str]] = {id: [] for id in self._by_id}
        for source, target, relation in walk.rows:
            if relation in relations:
                result[source].append(target)
        return {id: tuple(targets) for id, targets in result.items()}


# A page of documentation for each taxonomy, written from its file.


def taxonomy_page(taxonomy: Taxonomy) -> str:
    """Return a Markdown page: source, licence, counts, and every label by parent.

    Refused labels are counted and not named.

    Parameters
    ----------
    taxonomy
        The taxonomy.

    Examples
    --------
    >>> from ombud.taxonomy import load_taxonomy
    >>> print(taxonomy_page(load_taxonomy("delicate@1")).splitlines()[2][:18])
    Key: `delicate@1`.
    """
    count = f"{len(taxonomy.labels)} labels"
    if taxonomy.parents:
        count += f" under {len(taxonomy.parents)} parents"
    if taxonomy.published is not None:
        hidden = taxonomy.published - len(taxonomy.labels)
        count += f", of {taxonomy.published} published"
        if hidden:
            count += f" ({hidden} refused: rows that carry it are dropped and counted)"
    lines = [
        f"# {taxonomy.title}",
        "",
        f"Key: `{taxonomy.key}`. {count}.",
        "",
        f"Source: {taxonomy.source}",
        "",
        f"Licence: {taxonomy.licence}",
    ]
    for parent in taxonomy.parents:
        lines += ["", f"## {parent.title} (`{parent.id}`)"]
        if parent.description:
            lines += ["", parent.description]
        lines += _table(taxonomy.children(parent.id))
    top = [label for label in taxonomy.labels if not label.parent]
    if top:
        lines += _table(top)
    return "\n".join(lines) + "\n"


def _table(labels: Sequence[TaxonomyLabel]) -> list[str]:
    rows = [
        "| "
        + " | ".join(_cell(text) for text in (f"`{label.id}`", label.title, label.description))
        + " |"
        for label in labels
    ]
    return ["", "| id | title | description |", "|---|---|---|", *rows]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


# Read and check taxonomy files.


_TEXT = ("name", "title", "source", "licence")
_KEYS = {*_TEXT, "version", "published", "labels", "parents", "refused"}
_LABEL_KEYS = {"id", "title", "description", "parent", "noun", "aliases"}


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
    return _parse(read_utf8(file), str(file))


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
        for key in ("description", "parent", "noun"):
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
