"""Disagreement: which labels people dispute, and what becomes of audits where raters agree."""

from ombud.questions.disagreement.labels import LabelDisagreement
from ombud.questions.disagreement.section import label_disagreement_section, rater_agreement_section
from ombud.questions.disagreement.texts import RaterAgreement

__all__ = [
    "LabelDisagreement",
    "RaterAgreement",
    "label_disagreement_section",
    "rater_agreement_section",
]
