"""Warnings, delicate topics, identity groups and their terms, as versioned data files.

Every taxonomy is a file in ``files/``, named ``name@version``; a version never changes once
released. Crosswalks between taxonomies are files too, in ``files/crosswalks/``.
"""

from __future__ import annotations

from ombud.taxonomy.dictionary import load_dictionary
from ombud.taxonomy.model import Taxonomy, load_taxonomy, taxonomy_names, taxonomy_page
from ombud.taxonomy.terms import TermList, load_terms, term_list_names

__all__ = [
    "Taxonomy",
    "TermList",
    "load_dictionary",
    "load_taxonomy",
    "load_terms",
    "taxonomy_names",
    "taxonomy_page",
    "term_list_names",
]
