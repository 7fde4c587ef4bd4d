"""The steps of a search for parameters: propose, try, write down, stop."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ombud import registry
from ombud.data.dataset import Dataset
from ombud.data.predictions import Predictions
from ombud.data.splits import Split
from ombud.errors import AuditedSystemError, DataError, PlanError, RegistryError
from ombud.rng import generator
from ombud.systems.base import Progress, Recommender
from ombud.tuning.spaces import Space
from ombud.tuning.trials import Trial, Trials

_BEST = 5
_RANKING = ("f1", "hit-rate", "mrr", "ndcg", "precision", "recall")
_ERRORS = ("mae", "rmse")
# More failures than this before any success: the fault is not in the parameters.
_HOPELESS = 5


@dataclass(frozen=True)
class Objective:
    """What is made as good as possible on the held-out part."""

    # ``rmse`` or ``mae`` (lower is better; a pair without a prediction counts as predicted by the
    # mean training rating, so that declining hard pairs does not pay), or ``recall@50``, ``mrr``,
    # ``ndcg@10``, ``precision@10``, ``f1@10``, ``hit-rate@10`` (higher is better; 10 places when
    # none are given).
    metric: str

    def __post_init__(self) -> None:
        name, k = self._parts()
        if (name in _ERRORS and k) or name not in _RANKING + _ERRORS or k == "0":
            names = ", ".join([*_ERRORS, *(f"{name}@k" for name in _RANKING)])
            raise PlanError(f"metric is {self.metric!r}; one of {names} was expected")

    def _parts(self) -> tuple[str, str]:
        result = re.fullmatch(r"([a-z0-9-]+?)(?:@(\d{1,4}))?", self.metric)
        return (result[1], result[2] or "") if result else ("", "")

    @property
    def lower_is_better(self) -> bool:
        """Whether the search goes down."""
        return self._parts()[0] in _ERRORS

    def measure(self, model: Recommender, parts: Split, users: Any) -> float:
        """Return the metric of a fitted model on the held-out interactions of some users."""
        name, k = self._parts()
        if name in _ERRORS:
            if not model.predicts_ratings:
                raise PlanError(f"{model.name} predicts no ratings; tune it on a metric of lists")
            answer = Predictions.of_held_out(parts.test, model.predict, users, model.name)
            mean = np.float32(parts.train.matrix.data.mean())
            filled = np.where(np.isnan(answer.predicted), mean, answer.predicted)
            metric: Any = registry.create("metric", name)
            outputs: Any = Predictions(answer.users, answer.items, filled, answer.actual)
        else:
            metric = registry.create("metric", name, {"k": int(k or 10), "no_list": "zero"})
            outputs = model.recommend(users, metric.depth)
        rows = metric.measure(outputs, Dataset(parts.train, test=parts.test))
        columns = [rows.columns[c][:, 0] for c in metric.statistic.columns]
        return float(metric.statistic.point(np.stack(columns, axis=1)))


def no_longer_improves(
    values: Sequence[float], *, lower_is_better: bool, window: int, tolerance: float
) -> bool:
    r"""Return whether the best five have improved too little over the last trials.

    With :math:`m_t` the mean of the best five of the first t values, the search may stop when
    :math:`|m_t - m_{t-w}| < \epsilon\,|m_{t-w}|` for a window of w values, of which there must be
    at least w + 5.

    `values` are those of all successful trials, in order.

    Examples
    --------
    >>> no_longer_improves([1.0] * 15, lower_is_better=True, window=10, tolerance=0.01)
    True
    >>> halving = [0.5**i for i in range(15)]
    >>> no_longer_improves(halving, lower_is_better=True, window=10, tolerance=0.01)
    False
    """
    if len(values) < window + _BEST:
        return False
    signed = np.asarray(values, dtype=np.float64) * (1 if lower_is_better else -1)
    now = np.sort(signed)[:_BEST].mean()
    before = np.sort(signed[:-window])[:_BEST].mean()
    gain = before - now
    return bool(gain <= 0 or gain < tolerance * abs(before))


@dataclass
class Search:
    """A search under way."""

    # What is searched, what for, where, and what is not searched.
    model: str
    objective: Objective
    space: Space
    fixed: dict[str, Any]
    # What to train and test on, and whom to measure.
    parts: Split
    users: Any
    seed: int  # the seed of the proposals
    trials: Trials  # the trials so far

    @property
    def done(self) -> list[Trial]:
        """The trials that succeeded."""
        return [trial for trial in self.trials.finished if trial.value is not None]

    def run(
        self,
        trials: int,
        seconds: float | None,
        window: int,
        tolerance: float,
        progress: Progress | None,
    ) -> str:
        """Try until there is a reason to stop, and return the reason."""
        while True:
            done = self.done
            values = [trial.value for trial in done if trial.value is not None]
            if no_longer_improves(
                values,
                lower_is_better=self.objective.lower_is_better,
                window=window,
                tolerance=tolerance,
            ):
                return (
                    f"the best five improved by less than {tolerance:.1%} over the last "
                    f"{window} trials"
                )
            if len(self.trials.finished) >= trials:
                return f"the budget of {trials} trials is used up"
            if seconds is not None and sum(t.seconds for t in self.trials.finished) >= seconds:
                return f"the budget of {seconds:g} seconds is used up"
            if not done and len(self.trials.finished) >= _HOPELESS:
                reasons = "; ".join(dict.fromkeys(t.reason for t in self.trials.finished))
                raise AuditedSystemError(
                    f"the first {len(self.trials.finished)} trials of {self.model} all failed: "
                    f"{reasons}"
                )
            trial = self._try()
            if progress is not None:
                progress(len(self.trials.finished), trials, self._note(trial))

    def _note(self, trial: Trial) -> str:
        what = trial.reason if trial.value is None else f"{trial.value:.5g}"
        best = f", best {self.best().value:.5g}" if self.done else ""
        return f"trial {trial.number}: {self.objective.metric} {what}{best}"

    def _try(self) -> Trial:
        number = str(len(self.trials.finished))
        seed = int(generator(self.seed, "tuning", number).integers(2**31))
        proposal = self.trials.propose(self.space, seed)
        started = time.perf_counter()
        value: float | None = None
        reason = ""
        try:
            made = registry.create(
                "recommender", self.model, self.fixed | dict(proposal.parameters)
            )
            if not isinstance(made, Recommender) or not made.trainable:
                raise PlanError(f"{self.model} is not trained by ombud, so it cannot be tuned")
            made.fit(self.parts.train)
            result = self.objective.measure(made, self.parts, self.users)
            if np.isfinite(result):
                value = result
            else:
                reason = "the metric is undefined"
        except (AuditedSystemError, DataError, RegistryError, ValueError) as error:
            reason = f"{type(error).__name__}: {error}"
        return self.trials.add(proposal, value, time.perf_counter() - started, reason)

    def best(self) -> Trial:
        """Return the best trial; of equal ones, the first."""
        sign = 1 if self.objective.lower_is_better else -1
        return min(self.done, key=lambda trial: (sign * (trial.value or 0.0), trial.number))
