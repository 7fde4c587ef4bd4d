"""Reports: a result in words, pictures and tables."""

from ombud.report.blocks import Section
from ombud.report.report import FORMATS, Report
from ombud.report.terminal import summary_table

__all__ = ["FORMATS", "Report", "Section", "summary_table"]
