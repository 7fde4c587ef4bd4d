"""Ids of people in one form, so that two sources that write them differently still meet.

==================================================  =========================
as written                                          as compared
==================================================  =========================
``wikidata:http://www.wikidata.org/entity/Q692``    ``wikidata:Q692``
``openlibrary:/authors/OL118077A``                  ``openlibrary:OL118077A``
``lccn:n  79021164``                                ``lccn:n79021164``
``isni:0000 0001 2136 4821``                        ``isni:0000000121364821``
``viaf:96992551.0`` (a spreadsheet's number)        ``viaf:96992551``
==================================================  =========================
"""

from __future__ import annotations

import polars as pl


def normalised_ids(ids: pl.Expr) -> pl.Expr:
    """Return ids such as ``"viaf:96992551"`` in one form; missing where nothing is left.

    Parameters
    ----------
    ids
        A column of a scheme, a colon, and the id or an address that ends in it.

    Examples
    --------
    >>> frame = pl.DataFrame({"id": ["isni:0000 0001 2136 482x", "viaf:", "openlibrary:/a/OL1A"]})
    >>> frame.select(normalised_ids(pl.col("id"))).to_series().to_list()
    ['isni:000000012136482X', None, 'openlibrary:OL1A']
    """
    scheme = ids.str.extract(r"^([^:]+):", 1).str.to_lowercase()
    own = ids.str.extract(r"^[^:]+:(.*)$", 1).str.replace_all(r"\s", "")
    own = own.str.replace(r"/+$", "").str.replace(r"^(?:https?:/)?/.*/", "")
    own = own.str.replace(r"\.0$", "")
    # A dash is part of no id here but is written in ISNI, and in old numbers of the Library.
    own = pl.when(scheme.is_in(["isni", "lccn"])).then(own.str.replace_all("-", "")).otherwise(own)
    own = pl.when(scheme == "lccn").then(own.str.to_lowercase()).otherwise(own.str.to_uppercase())
    return pl.when(own.str.len_chars() > 0).then(pl.concat_str(scheme, own, separator=":"))
