"""Everything that ombud itself registers; imported on the first look-up of a name."""

from importlib import import_module

from ombud.questions import register_questions

for _module in (
    "ombud.data.sources",
    "ombud.link.sources",
    "ombud.metrics",
    "ombud.probes",
    "ombud.report.sections",
    "ombud.systems.detectors",
    "ombud.systems.moderators",
    "ombud.systems.recommenders",
    "ombud.systems.recommenders.adapters",
    "ombud.systems.recorded",
    "ombud.systems.rerankers",
    "ombud.worlds.presets",
):
    import_module(_module)
register_questions()
