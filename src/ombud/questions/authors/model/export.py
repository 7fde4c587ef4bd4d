"""Draws for ArviZ."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from ombud.errors import require
from ombud.questions.authors.model.fits import ProfileFit, PropagationFit


def to_arviz(fit: ProfileFit | PropagationFit, *, rng: np.random.Generator | None = None) -> Any:
    """Return the draws as ArviZ holds them: a DataTree, or InferenceData before ArviZ 1.

    The four independent sets of draws become chains; within each, draws are resampled by their
    weights, so that all count the same. Groups: ``posterior`` and ``observed_data``.

    Parameters
    ----------
    fit
        One that converged.
    rng
        Source of randomness for the resampling.
    """
    posterior = fit.posterior
    if find_spec("arviz_base") is None:
        require("arviz", "bayes")
    rng = np.random.default_rng(0) if rng is None else rng
    chains = []
    for one in np.unique(posterior.sets):
        rows = np.flatnonzero(posterior.sets == one)
        weights = posterior.weights[rows]
        steps = (np.arange(len(rows)) + rng.random()) / len(rows)
        picked = np.searchsorted(np.cumsum(weights) / weights.sum(), steps)
        chains.append(rng.permutation(rows[np.minimum(picked, len(rows) - 1)]))
    index = np.stack(chains)
    names = {"mean": posterior.mean, "spread": posterior.spread}
    observed: dict[str, Any] = {"count": fit.counts.count, "known": fit.counts.known}
    dims = {"count": ["user"], "known": ["user"]}
    coords: dict[str, Any] = {"user": np.arange(len(fit.counts.count))}
    if fit.counts.systems:
        names |= {
            "intercept": posterior.intercept,
            "slope": posterior.slope,
            "residual": posterior.residual,
        }
        observed |= {"list_count": fit.counts.list_count, "list_known": fit.counts.list_known}
        dims |= {name: ["system"] for name in ("intercept", "slope", "residual")}
        dims |= {name: ["user", "system"] for name in ("list_count", "list_known")}
        coords["system"] = list(fit.counts.names)
    draws = {name: values[index] for name, values in names.items()}
    groups = {"posterior": draws, "observed_data": observed}
    if find_spec("arviz_base") is not None:
        from arviz_base import from_dict

        return from_dict(groups, coords=coords, dims=dims)
    import arviz

    return arviz.from_dict(**groups, coords=coords, dims=dims)
