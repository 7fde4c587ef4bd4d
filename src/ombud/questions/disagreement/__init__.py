"""Disagreement: which labels people dispute, and what becomes of audits where raters agree."""
