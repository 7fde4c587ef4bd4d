"""The search for a model's parameters: seeded, with a budget, and able to go on after a kill."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ombud import registry
from ombud.audits.provenance import fingerprint_data
from ombud.data.dataset import Dataset
from ombud.data.ids import Ids
from ombud.data.interactions import Interactions
from ombud.data.splits import Split, split
from ombud.errors import AuditedSystemError, PlanError, require
from ombud.files import read_json, write_json
from ombud.rng import generator
from ombud.systems.base import Progress, Recommender
from ombud.tuning.search import Objective, Search
from ombud.tuning.spaces import space_for
from ombud.tuning.trials import Trials


@dataclass(frozen=True, eq=False)
class Tuned:
    """The outcome of a search.

    Parameters
    ----------
    model, metric
        What was searched, and what for.
    best
        The parameters with the best value, the fixed ones included; ready for a plan.
    value
        Their value on the held-out part. It is the best of many, so it flatters; measure the
        model again on data that the search has not seen.
    trials
        One row per trial: `number`, `value`, `seconds`, `reason` and the parameters.
    stopped_because
        Why the search ended, in words.
    """

    model: str
    metric: str
    best: dict[str, Any]
    value: float
    trials: pl.DataFrame
    stopped_because: str

    def recommender(self) -> Recommender:
        """Return an untrained recommender with the best parameters."""
        made: Recommender = registry.create("recommender", self.model, self.best)
        return made


def tune(
    model: str,
    interactions: Interactions,
    *,
    metric: str = "rmse",
    space: Mapping[str, Any] | None = None,
    fixed: Mapping[str, Any] | None = None,
    trials: int = 100,
    seconds: float | None = None,
    window: int = 20,
    tolerance: float = 0.01,
    holdout: Mapping[str, Any] | None = None,
    users: int | None = None,
    apart: Ids | None = None,
    folder: Path | str | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Tuned:
    """Search for a model's best parameters with Optuna's tree-structured Parzen estimator.

    Each trial's proposal depends on the seed and on the trials before it alone, so a search that
    was killed and goes on finds what it would have found without the kill.

    Parameters
    ----------
    model
        The registered name of a recommender.
    interactions
        What to train and test on; keep the final test data out of it.
    metric
        What to improve, see `ombud.tuning.search.Objective`.
    space
        Where to look, see `ombud.tuning.spaces.space_for`; default, the model's own space.
    fixed
        Parameters that are not searched.
    trials, seconds
        The budget: how many trials, and after how much time spent in trials no new one is
        begun; both count the trials of earlier runs in the same folder.
    window, tolerance
        Stop when the mean of the best five improved by less than the tolerance (0.01 is 1%)
        over the last `window` trials.
    holdout
        How to split (`method` and its options, see `ombud.data.splits.split`); default, 10% of
        each user's interactions.
    users
        Measure on a random sample of this many users; default, all with a held-out item.
    apart
        Users who are not measured on, such as those on whom the tuned model is evaluated later.
    folder
        Where trials are kept, in Optuna's storage; a search goes on from there. Default: in
        memory only.
    seed
        The seed of split, sample and search.
    progress
        Called with (done, total, note) after each trial.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> users, items = np.nonzero(rng.random((30, 20)) < 0.5)
    >>> data = Interactions.from_arrays(users, items, rng.integers(1, 6, len(users)))
    >>> found = tune("popular", data, metric="recall@5", trials=6)
    >>> len(found.trials), sorted(found.best), found.stopped_because
    (6, ['by', 'damping'], 'the budget of 6 trials is used up')
    """
    require("optuna", "tuning")
    if trials < 1 or window < 1 or (seconds is not None and seconds <= 0):
        raise PlanError("trials, window and seconds must be positive")
    objective = Objective(metric)
    chosen = space_for(model, space, interactions)
    fixed = dict(fixed or {})
    both = sorted(set(chosen) & set(fixed))
    if both:
        raise PlanError(f"{', '.join(both)}: in the search space and fixed; one of the two")
    how: dict[str, Any] = {"method": "per-user", "seed": seed} | dict(holdout or {})
    parts = split(interactions, **how)
    asked = _users(parts, users, apart, seed)
    identity = {
        "model": model,
        "metric": metric,
        "space": {name: asdict(part) for name, part in chosen.items()},
        "fixed": fixed,
        "holdout": how,
        "users": users,
        **({} if apart is None else {"apart": len(apart)}),
        "seed": seed,
        "data": fingerprint_data(Dataset(interactions))[0],
    }
    index = None if folder is None else Path(folder)
    lower = objective.lower_is_better
    with Trials(index, _plain(identity), lower_is_better=lower) as kept:
        search = Search(model, objective, chosen, fixed, parts, asked, seed, kept)
        stopped = search.run(trials, seconds, window, tolerance, progress)
    result = _result(search, stopped)
    if index is not None:
        found = {"model": model, "metric": metric, "best": result.best, "value": result.value}
        write_json(index / "tuned.json", _plain(found | {"stopped_because": stopped}))
    return result


def _result(search: Search, stopped: str) -> Tuned:
    if not search.done:
        reasons = "; ".join(dict.fromkeys(t.reason for t in search.trials.finished))
        raise AuditedSystemError(f"no trial of {search.model} succeeded: {reasons}")
    best = search.best()
    assert best.value is not None  # only successful trials are done
    rows = [
        {"number": t.number, "value": t.value, "seconds": t.seconds, "reason": t.reason}
        | dict(t.parameters)
        for t in search.trials.finished
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    result = search.fixed | dict(best.parameters)
    return Tuned(search.model, search.objective.metric, result, best.value, frame, stopped)


def _users(parts: Split, sample: int | None, apart: Ids | None, seed: int) -> Any:
    held = np.flatnonzero(np.diff(parts.test.matrix.indptr) > 0)
    if apart is not None:
        kept_apart = parts.test.users.codes(apart)
        held = np.setdiff1d(held, kept_apart[kept_apart >= 0])
        if not len(held):
            raise PlanError("every user with a held-out item is kept apart; nobody is left")
    if sample is not None and sample < len(held):
        held = np.sort(generator(seed, "tuning", "users").choice(held, sample, replace=False))
    return parts.test.users.take(held)


def _plain(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content as JSON would give it back, so that it can be compared."""
    made: dict[str, Any] = json.loads(json.dumps(content, default=str))
    return made


# The parameters that ``ombud tune`` found, for the systems of a plan.


def with_tuned(
    systems: Mapping[str, dict[str, Any]], folder: Path | str, who: str
) -> dict[str, dict[str, Any]]:
    """Return systems with the parameters that ``ombud tune`` found for their models.

    What systems state themselves stands. `folder` is where a search was kept, or a folder of such
    folders; `who` asks, in messages.

    Raises
    ------
    PlanError
        If there is no finished search, there are two for one model, or one is for no system.
    """
    root = Path(folder)
    found = {model: content["best"] for model, content in _searches(root, who).items()}
    used = {config.get("type") for config in systems.values()}
    unused = sorted(set(found) - used)
    if unused:
        raise PlanError(f"{who}: {root} has parameters of {', '.join(unused)}; no system is one")
    return {
        name: dict(found.get(str(config.get("type")), {})) | config
        for name, config in systems.items()
    }


def tuned_values(
    systems: Mapping[str, Mapping[str, Any]], folder: Path | str, who: str
) -> dict[str, tuple[str, float]]:
    """Return, for each system whose model was searched, the metric and its best value."""
    found = _searches(Path(folder), who)
    return {
        name: (str(own["metric"]), float(own["value"]))
        for name, config in systems.items()
        if (own := found.get(str(config.get("type")))) and {"metric", "value"} <= set(own)
    }


def _searches(root: Path, who: str) -> dict[str, Mapping[str, Any]]:
    """Return what finished searches of a folder wrote, by model."""
    files = sorted({root / "tuned.json", *root.glob("*/tuned.json")})
    found: dict[str, Mapping[str, Any]] = {}
    for file in (file for file in files if file.is_file()):
        content = read_json(file)
        model, best = content.get("model"), content.get("best")
        if not isinstance(model, str) or not isinstance(best, dict):
            raise PlanError(f"{who}: {file} is not what ombud tune writes")
        if model in found:
            raise PlanError(f"{who}: {root} holds two searches for {model}; keep one")
        found[model] = content
    if not found:
        raise PlanError(f"{who}: there is no finished search in {root} (no tuned.json)")
    return found
