"""A taxonomy: labels, their parents, and where they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from ombud.errors import RegistryError
from ombud.taxonomy.resources import is_refused, spelling_key

if TYPE_CHECKING:
    from ombud.taxonomy.crosswalk import Crosswalk, Relation


@dataclass(frozen=True, slots=True)
class TaxonomyLabel:
    """One label.

    Parameters
    ----------
    id
        Short stable name; what data files and results carry.
    title
        What a reader sees.
    description
        One sentence; empty where the source gives none.
    parent
        Id of the coarser label among the taxonomy's `parents`; empty at the top.
    aliases
        Other spellings in use at the source.
    """

    id: str
    title: str
    description: str = ""
    parent: str = ""
    aliases: tuple[str, ...] = ()


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
        from ombud.taxonomy.crosswalk import load_crosswalk

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
