"""Detectors: models that say how delicate a text is, trained here, saved without pickle."""

from ombud.systems.detectors.base import Detector
from ombud.systems.detectors.embeddings import EmbeddingDetector
from ombud.systems.detectors.heads import Head
from ombud.systems.detectors.ngrams import NgramDetector
from ombud.systems.detectors.saved import load_detector
from ombud.systems.detectors.scoring import score_files
from ombud.systems.detectors.transformer import TransformerDetector

__all__ = [
    "Detector",
    "EmbeddingDetector",
    "Head",
    "NgramDetector",
    "TransformerDetector",
    "load_detector",
    "score_files",
]
