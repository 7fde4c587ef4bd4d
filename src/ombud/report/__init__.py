"""Reports: a result in words, charts and tables, the verdict first.

Names are imported when they are first used: the command line needs `ombud.report.display` alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ombud.report.gate import to_junit as to_junit
    from ombud.report.model import Verdict as Verdict
    from ombud.report.packing import pack as pack
    from ombud.report.report import FORMATS as FORMATS
    from ombud.report.report import Report as Report
    from ombud.report.show import part as part

_HOMES = {
    "FORMATS": "report",
    "Report": "report",
    "Verdict": "model",
    "pack": "packing",
    "part": "show",
    "to_junit": "gate",
}

__all__ = ["FORMATS", "Report", "Verdict", "pack", "part", "to_junit"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ombud.report' has no attribute {name!r}")
    return getattr(import_module(f"ombud.report.{home}"), name)


def __dir__() -> list[str]:
    return __all__
