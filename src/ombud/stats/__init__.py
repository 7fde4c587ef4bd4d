"""Statistics on plain arrays; needs numpy and scipy alone."""

from ombud.stats.agreement import (
    Measurement,
    alpha_estimate,
    alpha_sample,
    codes,
    krippendorff_alpha,
)
from ombud.stats.bootstrap import estimate, resample
from ombud.stats.crossed import CrossedReplicates, resample_crossed
from ombud.stats.effects import Effect, cliffs_delta, welch
from ombud.stats.estimate import Estimate, Kind
from ombud.stats.extremes import MOST_LOST, Extreme, largest_ratio
from ombud.stats.intervals import Interval, Intervals, Method, intervals_of_draws
from ombud.stats.kappa import Weights, cohen_kappa, kappa_error, kappa_estimate, kappa_sample
from ombud.stats.losses import FEWEST_HITS, relative_loss
from ombud.stats.means import (
    Located,
    mean_estimate,
    mean_interval,
    median_estimate,
    median_interval,
)
from ombud.stats.multiplicity import Correction, adjust, benjamini_hochberg, holm
from ombud.stats.paired import (
    PairedCounts,
    mcnemar,
    paired_counts,
    paired_mean_estimate,
    paired_mean_interval,
    paired_proportion_estimate,
    paired_proportion_interval,
)
from ombud.stats.patterns import resample_patterns
from ombud.stats.permutation import (
    NO,
    UNKNOWN,
    YES,
    LabelTests,
    SignTests,
    label_tests,
    sign_flip_test,
)
from ombud.stats.pooling import Pooled, partially_pool
from ombud.stats.proportions import (
    Bounds,
    exact,
    exact_difference,
    fisher,
    proportion,
    wilson,
)
from ombud.stats.ranks import RankReplicates, resample_medians
from ombud.stats.ratios import (
    Against,
    Ratios,
    rate_ratio,
    rate_ratio_estimate,
    ratio_of_means,
    ratio_of_means_estimate,
)
from ombud.stats.replicates import Contrast, How, Replicates, ResampledStatistic, Sample, Test
from ombud.stats.statistics import (
    Custom,
    Floats,
    Mean,
    Median,
    OfSums,
    Quantile,
    RatioOfSums,
    Statistic,
    WeightedMean,
    as_rows,
)

__all__ = [
    "FEWEST_HITS",
    "MOST_LOST",
    "NO",
    "UNKNOWN",
    "YES",
    "Against",
    "Bounds",
    "Contrast",
    "Correction",
    "CrossedReplicates",
    "Custom",
    "Effect",
    "Estimate",
    "Extreme",
    "Floats",
    "How",
    "Interval",
    "Intervals",
    "Kind",
    "LabelTests",
    "Located",
    "Mean",
    "Measurement",
    "Median",
    "Method",
    "OfSums",
    "PairedCounts",
    "Pooled",
    "Quantile",
    "RankReplicates",
    "RatioOfSums",
    "Ratios",
    "Replicates",
    "ResampledStatistic",
    "Sample",
    "SignTests",
    "Statistic",
    "Test",
    "WeightedMean",
    "Weights",
    "adjust",
    "alpha_estimate",
    "alpha_sample",
    "as_rows",
    "benjamini_hochberg",
    "cliffs_delta",
    "codes",
    "cohen_kappa",
    "estimate",
    "exact",
    "exact_difference",
    "fisher",
    "holm",
    "intervals_of_draws",
    "kappa_error",
    "kappa_estimate",
    "kappa_sample",
    "krippendorff_alpha",
    "label_tests",
    "largest_ratio",
    "mcnemar",
    "mean_estimate",
    "mean_interval",
    "median_estimate",
    "median_interval",
    "paired_counts",
    "paired_mean_estimate",
    "paired_mean_interval",
    "paired_proportion_estimate",
    "paired_proportion_interval",
    "partially_pool",
    "proportion",
    "rate_ratio",
    "rate_ratio_estimate",
    "ratio_of_means",
    "ratio_of_means_estimate",
    "relative_loss",
    "resample",
    "resample_crossed",
    "resample_medians",
    "resample_patterns",
    "sign_flip_test",
    "welch",
    "wilson",
]
