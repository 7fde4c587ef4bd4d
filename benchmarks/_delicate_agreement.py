"""Krippendorff's alpha with a bootstrap on 100,000 ratings: ombud and `krippendorff`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["CASES", "agreement_krippendorff", "agreement_ombud", "ratings_of"]

SEED = 20261116
LEVELS = {"nominal": "nominal", "ordinal": "ordinal", "interval": "interval"}


def ratings_of(ratings: int) -> np.ndarray:
    """Texts x 3 raters of risks 0 to 5, with a true risk behind each text."""
    rng = np.random.default_rng(SEED)
    texts = ratings // 3
    true = rng.choice(6, p=[0.45, 0.12, 0.12, 0.13, 0.1, 0.08], size=texts)
    noisy = np.rint(true[:, None] + rng.normal(0, 0.9, (texts, 3)))
    return np.clip(noisy, 0, 5)


def agreement_ombud(options: Mapping[str, Any]) -> dict[str, Any]:
    """Every level of measurement, with its interval."""
    from ombud.stats.agreement import alpha_estimate

    values = ratings_of(options["ratings"])
    started = time.process_time()
    found = {
        level: alpha_estimate(
            values, level, rng=np.random.default_rng(1), replicates=options["replicates"]
        )
        for level in LEVELS
    }
    cpu = time.process_time() - started
    return {"cpu": cpu} | {
        f"{level}_{name}": value
        for level, e in found.items()
        for name, value in zip(
            ("value", "low", "high"), (e.value, *(e.interval or (None, None))), strict=True
        )
    }


def agreement_krippendorff(options: Mapping[str, Any]) -> dict[str, Any]:
    """The same with the package's quickest input, counts of values a text; texts are resampled."""
    import krippendorff

    values = ratings_of(options["ratings"])
    counts = np.stack([(values == r).sum(axis=1) for r in range(6)], axis=1)
    rng = np.random.default_rng(1)
    domain = list(range(6))
    found: dict[str, Any] = {}
    started = time.process_time()
    for level in LEVELS:
        found[f"{level}_value"] = krippendorff.alpha(
            value_counts=counts, value_domain=domain, level_of_measurement=level
        )
    once = time.process_time() - started
    draws: dict[str, list[float]] = {level: [] for level in LEVELS}
    started = time.process_time()
    for _ in range(options["peer_replicates"]):
        chosen = counts[rng.integers(len(counts), size=len(counts))]
        for level, some in draws.items():
            alpha = krippendorff.alpha(
                value_counts=chosen, value_domain=domain, level_of_measurement=level
            )
            some.append(float(alpha))
    measured = time.process_time() - started
    scale = options["replicates"] / options["peer_replicates"]
    for level, some in draws.items():
        found[f"{level}_low"], found[f"{level}_high"] = np.quantile(some, (0.025, 0.975)).tolist()
    return {"cpu": once + measured * scale, "measured": measured, "scale": scale} | found


CASES = {"agreement_ombud": agreement_ombud, "agreement_krippendorff": agreement_krippendorff}
