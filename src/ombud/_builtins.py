"""Everything that ombud itself registers; imported on the first look-up of a name.

A file in one of these folders is found by being there, as a plugin's module is by its entry point.
"""

from importlib import import_module
from pkgutil import iter_modules

_FOLDERS = (
    "ombud.data.sources",
    "ombud.link",
    "ombud.metrics",
    "ombud.metrics.accuracy",
    "ombud.probes",
    "ombud.systems",
    "ombud.systems.detectors",
    "ombud.systems.moderators",
    "ombud.systems.recommenders",
    "ombud.systems.recommenders.adapters",
    "ombud.systems.rerankers",
    "ombud.worlds",
    "ombud.questions",
)

import_module("ombud.report.verdict")
for _folder in _FOLDERS:
    for _module in iter_modules(import_module(_folder).__path__, f"{_folder}."):
        if not _module.name.rpartition(".")[2].startswith("_"):
            import_module(_module.name)
