"""Readers of library records, author lists and ratings, by the names that ``--read`` takes."""

from __future__ import annotations

from ombud.link.readers.base import Reader
from ombud.link.readers.bookdata import read_bookdata
from ombud.link.readers.library import read_library, read_openlibrary, read_viaf
from ombud.link.readers.people import read_author_lists, read_people, read_wikidata
from ombud.link.readers.platforms import (
    read_amazon,
    read_bookcrossing,
    read_goodbooks,
    read_goodreads,
)

READERS: dict[str, Reader] = {
    name: Reader(name, (read.__doc__ or "").split("\n", 1)[0], read)
    for name, read in {
        "marc": read_library,
        "viaf": read_viaf,
        "openlibrary": read_openlibrary,
        "wikidata": read_wikidata,
        "author-lists": read_author_lists,
        "people": read_people,
        "bookcrossing": read_bookcrossing,
        "amazon": read_amazon,
        "goodreads": read_goodreads,
        "goodbooks": read_goodbooks,
        "bookdata": read_bookdata,
    }.items()
}
"""Every format that can be read."""
