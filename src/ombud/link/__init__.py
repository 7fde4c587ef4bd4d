"""From raw records of libraries and ratings to items whose creators are resolved.

``build_links`` reads files, clusters records into books, finds their creators in authority records
and writes a table of items; ``LinkFolder`` reads that folder back and explains any item. The
modules below are internal, but for what stands here.
"""

from ombud.link.build import LinkOptions, build_links
from ombud.link.clusters import Clusterer, Clusters, bipartite_components, splitting_isbns
from ombud.link.explain import Explanation, LinkFolder
from ombud.link.isbn import extract_isbns, isbn_key, isbn_text
from ombud.link.marc import MarcRecord, read_marc
from ombud.link.names import name_variants
from ombud.link.problems import Problems
from ombud.link.readers import READERS, Batch, Reader, ReaderOptions
from ombud.link.resolution import OUTCOMES, UNLINKED
from ombud.link.vocabulary import IdentityMapping, read_mapping

__all__ = [
    "OUTCOMES",
    "READERS",
    "UNLINKED",
    "Batch",
    "Clusterer",
    "Clusters",
    "Explanation",
    "IdentityMapping",
    "LinkFolder",
    "LinkOptions",
    "MarcRecord",
    "Problems",
    "Reader",
    "ReaderOptions",
    "bipartite_components",
    "build_links",
    "extract_isbns",
    "isbn_key",
    "isbn_text",
    "name_variants",
    "read_mapping",
    "read_marc",
    "splitting_isbns",
]
