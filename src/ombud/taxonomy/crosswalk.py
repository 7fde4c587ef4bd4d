"""Correspondences between two taxonomies."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Literal, cast, get_args

from ombud.errors import DataError, OmbudError, RegistryError
from ombud.taxonomy.loading import load_taxonomy
from ombud.taxonomy.resources import data_folder, parse_commented_csv

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

    Parameters
    ----------
    source, target
        Keys of the two taxonomies.
    rows
        ``(source label, target label, relation)``; the relation says what the target is, seen
        from the source: ``"broader"`` means that a thing with the source label has the target too.
    made_by
        Who judged the correspondences.

    Examples
    --------
    >>> walk = Crosswalk("a@1", "b@1", (("dog", "animal", "broader"),))
    >>> walk.inverted().rows
    (('animal', 'dog', 'narrower'),)
    """

    source: str
    target: str
    rows: tuple[tuple[str, str, Relation], ...] = field(repr=False)
    made_by: str = ""

    def inverted(self) -> Crosswalk:
        """Return the same correspondences read from the other side."""
        rows = tuple((there, here, _INVERSE[relation]) for here, there, relation in self.rows)
        return Crosswalk(self.target, self.source, rows, self.made_by)

    def then(self, other: Crosswalk) -> Crosswalk:
        """Return the correspondences of this crosswalk carried on by another.

        Exact keeps the other relation, broader of broader is broader, narrower of narrower is
        narrower; everything else is only related. Where several ways lead from one label to
        another, the strongest relation counts, in the order of `Relation`.

        Parameters
        ----------
        other
            A crosswalk that begins where this one ends.

        Examples
        --------
        >>> pets = Crosswalk("a@1", "b@1", (("poodle", "dog", "broader"),))
        >>> pets.then(Crosswalk("b@1", "c@1", (("dog", "animal", "broader"),))).rows
        (('poodle', 'animal', 'broader'),)
        """
        if other.source != self.target:
            raise RegistryError(
                f"a crosswalk to {self.target} cannot be carried on by one from {other.source}"
            )
        order = get_args(Relation)
        onward: dict[str, list[tuple[str, Relation]]] = {}
        for middle, there, relation in other.rows:
            onward.setdefault(middle, []).append((there, relation))
        joined: dict[tuple[str, str], Relation] = {}
        for here, middle, first in self.rows:
            for there, second in onward.get(middle, ()):
                relation = _joined(first, second)
                known = joined.get((here, there))
                if known is None or order.index(relation) < order.index(known):
                    joined[here, there] = relation
        rows = tuple((here, there, relation) for (here, there), relation in joined.items())
        makers = tuple(dict.fromkeys(made for made in (self.made_by, other.made_by) if made))
        return Crosswalk(self.source, other.target, rows, "; ".join(makers))


def _joined(first: Relation, second: Relation) -> Relation:
    if first == "exact":
        return second
    return first if second in ("exact", first) else "related"


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
            walk = _parse(file.read_text(encoding="utf-8"), file.name)
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
    return _parse(file.read_text(encoding="utf-8"), str(file))


def _parse(text: str, place: str) -> Crosswalk:
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
