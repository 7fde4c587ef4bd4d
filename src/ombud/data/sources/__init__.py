"""Published data sets: how each is read, and what everyone should know about it.

One file each; a file in here is found by being here.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

__all__: list[str] = []

for _module in iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)
