"""Statistics on plain arrays; needs numpy and scipy alone."""

from ombud.stats.estimate import Estimate, Kind

__all__ = ["Estimate", "Kind"]
