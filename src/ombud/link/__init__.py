"""From raw records of libraries and ratings to items whose creators are resolved.

``build_links`` reads files, clusters records into books, finds their creators in authority records
and writes a table of items; ``LinkFolder`` reads that folder back and explains any item. The
modules below are internal, but for what stands here.
"""

from ombud.link.build import LinkOptions, build_links
from ombud.link.explain import LinkFolder

__all__ = ["LinkFolder", "LinkOptions", "build_links"]
