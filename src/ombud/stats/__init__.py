"""Statistics on plain arrays; needs numpy and scipy alone."""

from ombud.stats.agreement import cohen_kappa, krippendorff_alpha
from ombud.stats.bootstrap.replicates import Sample
from ombud.stats.bootstrap.resample import estimate, resample
from ombud.stats.estimate import Estimate
from ombud.stats.means import mean_estimate
from ombud.stats.multiplicity import adjust, benjamini_hochberg, holm
from ombud.stats.paired import paired_mean_estimate, paired_proportion_estimate
from ombud.stats.power import smallest_effect, units_for_power
from ombud.stats.proportions import proportion
from ombud.stats.statistics import (
    Custom,
    Mean,
    Median,
    Quantile,
    RatioOfSums,
    Statistic,
    WeightedMean,
)

__all__ = [
    "Custom",
    "Estimate",
    "Mean",
    "Median",
    "Quantile",
    "RatioOfSums",
    "Sample",
    "Statistic",
    "WeightedMean",
    "adjust",
    "benjamini_hochberg",
    "cohen_kappa",
    "estimate",
    "holm",
    "krippendorff_alpha",
    "mean_estimate",
    "paired_mean_estimate",
    "paired_proportion_estimate",
    "proportion",
    "resample",
    "smallest_effect",
    "units_for_power",
]
