"""Tables, checked: interactions, labels, texts, groups, and what systems answered."""

from ombud.data.card import Card
from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions, Outcome
from ombud.data.exclusions import Exclusion
from ombud.data.frames import Column, MappedFile, read_table
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.interactions import Interactions
from ombud.data.items import Items
from ombud.data.labels import Labels, LabelState
from ombud.data.reading import Reading
from ombud.data.recommendations import Recommendations
from ombud.data.tables import write_table
from ombud.data.texts import Texts

__all__ = [
    "Card",
    "Column",
    "Dataset",
    "Decisions",
    "Exclusion",
    "Grouping",
    "Interactions",
    "Items",
    "LabelState",
    "Labels",
    "MappedFile",
    "Outcome",
    "Reading",
    "Recommendations",
    "Texts",
    "Vocabulary",
    "read_table",
    "write_table",
]
