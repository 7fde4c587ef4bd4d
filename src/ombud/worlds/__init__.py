"""Simulated worlds with known truth, so that the audit itself can be audited."""

from ombud.worlds.moderators import PlantedModerator
from ombud.worlds.presets import demo_world, large_world, small_world
from ombud.worlds.recommenders import NeutralRecommender, PlantedRecommender
from ombud.worlds.size import size
from ombud.worlds.spec import WorldSpec
from ombud.worlds.world import World, build_world

__all__ = [
    "NeutralRecommender",
    "PlantedModerator",
    "PlantedRecommender",
    "World",
    "WorldSpec",
    "build_world",
    "demo_world",
    "large_world",
    "size",
    "small_world",
]
