"""Warnings, delicate topics, identity groups and their terms, as versioned data files.

Every taxonomy is a file in ``files/``, named ``name@version``; a version never changes once
released. Crosswalks between taxonomies are files too, in ``files/crosswalks/``.
"""

from __future__ import annotations

from ombud.taxonomy.crosswalk import Crosswalk, Relation, load_crosswalk, read_crosswalk
from ombud.taxonomy.dictionary import (
    Dictionary,
    DictionaryTerm,
    dictionary_names,
    load_dictionary,
    read_dictionary,
)
from ombud.taxonomy.loading import (
    load_scale,
    load_taxonomy,
    read_taxonomy,
    refused_anywhere,
    taxonomy_names,
)
from ombud.taxonomy.model import Taxonomy, TaxonomyLabel, taxonomy_page
from ombud.taxonomy.resources import is_refused, spelling_key
from ombud.taxonomy.terms import Term, TermList, load_terms, read_terms, term_list_names

__all__ = [
    "Crosswalk",
    "Dictionary",
    "DictionaryTerm",
    "Relation",
    "Taxonomy",
    "TaxonomyLabel",
    "Term",
    "TermList",
    "dictionary_names",
    "is_refused",
    "load_crosswalk",
    "load_dictionary",
    "load_scale",
    "load_taxonomy",
    "load_terms",
    "read_crosswalk",
    "read_dictionary",
    "read_taxonomy",
    "read_terms",
    "refused_anywhere",
    "spelling_key",
    "taxonomy_names",
    "taxonomy_page",
    "term_list_names",
]
