"""The counterfactual preset on MovieLens with warnings from TMDB keywords, few users."""

from __future__ import annotations

from pathlib import Path

import pytest

from ombud.audits import Audit, Plan
from ombud.questions.counterfactual.report import OVERLAP


@pytest.mark.slow
@pytest.mark.realdata
def test_movielens_with_keywords(realdata: Path) -> None:
    options = {
        "path": str(realdata / "movielens-small"),
        "keywords": str(realdata / "tmdb-keywords"),
        "absent": "no-if-any-keyword",
    }
    plan = Plan.from_dict(
        {
            "preset": "counterfactual",
            "seed": 1,
            "sample": 50,
            "data": {"source": "movielens-tmdb", "options": options},
            "systems": {
                "SVD": {"type": "svd", "factors": 16, "epochs": 20, "seed": 1},
                "User kNN": {"type": "user-knn"},
            },
            "options": {
                "parts": ["reach", "escape", "stability"], "users": 6, "targets": 40,
                "realistic": 30, "most_labels": 1, "at_risk": 5, "looked_at": 60,
                "escape_budget": 2, "random": 2, "retrained": 1, "moved": 5, "random_treatments": 3,
                "noise_runs": 2,
            },
            "statistics": {"replicates": 100},
        }
    )  # fmt: skip
    result = Audit.from_plan(plan).run()
    for system in ("SVD", "User kNN"):
        (share,) = (
            e
            for e in result.select("reach/availability/proved")
            if e.system == system and not e.group
        )
        # One edit moves few of nine thousand films into the first ten.
        assert share.value is not None and share.value < 0.2
        (most,) = (
            e for e in result.select("stability/largest", distance=OVERLAP) if e.system == system
        )
        (usual,) = (
            e
            for e in result.select("stability/typical/mean", distance=OVERLAP)
            if e.system == system
        )
        assert most.value > usual.value
    # The neighbours of a user are other users: somebody's leaving is seen, free of noise.
    (above,) = (
        e
        for e in result.select("stability/above-noise", distance=OVERLAP)
        if e.system == "User kNN"
    )
    assert above.details["deterministic"]
    assert above.interval[0] > 0
