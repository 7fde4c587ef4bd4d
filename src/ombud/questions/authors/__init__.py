"""Authors: whose work is catalogued, read and recommended."""

from ombud.questions.authors.catalogue import CreatorCatalogue
from ombud.questions.authors.lists import CreatorLists
from ombud.questions.authors.metrics import BalanceGap, ListBalance
from ombud.questions.authors.options import AuthorsOptions
from ombud.questions.authors.preset import AuthorsPreset
from ombud.questions.authors.propagation import CreatorPropagation
from ombud.questions.authors.report import authors_question
from ombud.questions.authors.reranking import CreatorReranking
from ombud.questions.authors.tuning import CreatorTuning

__all__ = [
    "AuthorsOptions",
    "AuthorsPreset",
    "BalanceGap",
    "CreatorCatalogue",
    "CreatorLists",
    "CreatorPropagation",
    "CreatorReranking",
    "CreatorTuning",
    "ListBalance",
    "authors_question",
]
