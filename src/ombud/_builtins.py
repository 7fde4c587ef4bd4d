"""Everything that ombud itself registers; imported on the first look-up of a name.

A file in one of these folders is found by being there, as a plugin's module is by its entry point.
"""

from importlib import import_module
from itertools import chain
from pkgutil import iter_modules, walk_packages

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
)

import_module("ombud.report.verdict")
_found = [iter_modules(import_module(f).__path__, f"{f}.") for f in _FOLDERS]
# A question is a folder: what it registers is in any module of it.
_found.append(walk_packages(import_module("ombud.questions").__path__, "ombud.questions."))
for _module in chain.from_iterable(_found):
    if not _module.name.rpartition(".")[2].startswith("_"):
        import_module(_module.name)
