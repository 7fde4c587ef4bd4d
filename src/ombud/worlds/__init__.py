"""Simulated worlds with known truth, so that the audit itself can be audited."""

from ombud.worlds.large import write_interactions
from ombud.worlds.moderators import PlantedModerator
from ombud.worlds.presets import demo_world, large_world, ml1m_world, small_world
from ombud.worlds.recommenders import NeutralRecommender, PlantedRecommender
from ombud.worlds.size import Needed, size
from ombud.worlds.spec import Amplification, WorldSpec
from ombud.worlds.truth import ShareTruth, SuppressionTruth
from ombud.worlds.world import World, WorldTruth, build_world

__all__ = [
    "Amplification",
    "Needed",
    "NeutralRecommender",
    "PlantedModerator",
    "PlantedRecommender",
    "ShareTruth",
    "SuppressionTruth",
    "World",
    "WorldSpec",
    "WorldTruth",
    "build_world",
    "demo_world",
    "large_world",
    "ml1m_world",
    "size",
    "small_world",
    "write_interactions",
]
