"""Countries as they stand in a sentence, and the outlines to draw them."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from ombud.taxonomy.resources import parse_commented_csv


class Country(NamedTuple):
    """A country or territory of ISO 3166-1."""

    # Its codes; `numeric` is the id of its outline.
    iso2: str
    iso3: str
    numeric: str
    # Its common English name, without and with the article it takes after *in*.
    name: str
    in_sentence: str
    # Of the geoscheme of the United Nations.
    continent: str
    region: str
    # A point on it.
    longitude: float
    latitude: float
    outline: bool  # whether `world_outlines` has its outline; the others are drawn as points


@cache
def countries() -> tuple[Country, ...]:
    """Return all countries and territories of ISO 3166-1, by their two-letter codes.

    Examples
    --------
    >>> len(countries()), [c.in_sentence for c in countries() if c.iso2 == "NL"]
    (249, ['the Netherlands'])
    """
    text = files("ombud.text").joinpath("files", "countries@1.csv").read_text(encoding="utf-8")
    _, rows = parse_commented_csv(text, "countries@1", Country._fields)
    return tuple(
        Country(
            **{name: row[name] for name in Country._fields[:7]},
            longitude=float(row["longitude"]),
            latitude=float(row["latitude"]),
            outline=row["outline"] == "1",
        )
        for _, row in rows
    )


@cache
def world_outlines() -> dict[str, Any]:
    """Return outlines of countries as TopoJSON (object ``countries``, ids as in `Country.numeric`).

    Natural Earth at 1:110 million, which is in the public domain.

    Examples
    --------
    >>> len(world_outlines()["objects"]["countries"]["geometries"])
    177
    """
    text = files("ombud.text").joinpath("files", "world@1.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content
