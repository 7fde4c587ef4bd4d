"""Detectors: models that say how delicate a text is, trained here, saved without pickle."""

from ombud.systems.detectors.base import Detector, Scores
from ombud.systems.detectors.embeddings import EmbeddingDetector
from ombud.systems.detectors.heads import Head, best_threshold, f1_score
from ombud.systems.detectors.ngrams import NgramDetector
from ombud.systems.detectors.saved import SavedDetector, detector_in, load_detector
from ombud.systems.detectors.scoring import ScoredFiles, score_files
from ombud.systems.detectors.training_texts import (
    TrainingTexts,
    with_other_countries,
    with_swapped_copies,
)
from ombud.systems.detectors.transformer import Recipe, TransformerDetector

__all__ = [
    "Detector",
    "EmbeddingDetector",
    "Head",
    "NgramDetector",
    "Recipe",
    "SavedDetector",
    "ScoredFiles",
    "Scores",
    "TrainingTexts",
    "TransformerDetector",
    "best_threshold",
    "detector_in",
    "f1_score",
    "load_detector",
    "score_files",
    "with_other_countries",
    "with_swapped_copies",
]
