"""Everything that ombud itself registers; imported on the first look-up of a name."""

from importlib import import_module

for _module in (
    "ombud.data.sources",
    "ombud.audits.analyses",
    "ombud.audits.presets",
    "ombud.data.sources.texts",
    "ombud.interventions",
    "ombud.metrics",
    "ombud.metrics.suppression",
    "ombud.metrics.accuracy",
    "ombud.probes",
    "ombud.report.sections",
    "ombud.systems.moderators",
    "ombud.systems.recommenders",
    "ombud.systems.recommenders.adapters",
    "ombud.systems.recorded",
    "ombud.worlds.presets",
):
    import_module(_module)
