"""From the outputs of a model to probabilities of risk classes, and from these to a decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ombud.errors import PlanError, require

HeadKind = Literal["multiclass", "ordinal", "binary"]
Rule = Literal["threshold", "argmax"]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    r"""What the outputs of a model mean.

    Parameters
    ----------
    kind
        ``"multiclass"``: one output for each class, softmax. ``"ordinal"``: one output for each
        step, :math:`P(r \ge k)`, k = 1 ... classes - 1 (Cheng 2007). ``"binary"``: one output.
    classes
        How many classes there are: 6 for risk 0 to 5, 2 for a plain yes or no.
    cut
        The first class that counts as delicate: 3 for risk, 1 for yes or no.

    References
    ----------
    Cheng, Wang and Pollastri (2008), A neural network approach to ordinal regression.

    Examples
    --------
    >>> head = Head(kind="multiclass", classes=6, cut=3)
    >>> head.outputs, head.score(np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])).tolist()
    (6, [0.5])
    """

    kind: HeadKind = "multiclass"
    classes: int = 6
    cut: int = 3

    def __post_init__(self) -> None:
        if self.kind not in ("multiclass", "ordinal", "binary"):
            raise PlanError(f"head {self.kind!r} is not one of multiclass, ordinal, binary")
        if self.classes < 2 or not 0 < self.cut < self.classes:
            raise PlanError(
                f"{self.classes} classes with the cut at {self.cut}: there must be at least two, "
                "and the cut between the first and the last"
            )

    @property
    def outputs(self) -> int:
        """How many outputs a model of this head has."""
        return {"multiclass": self.classes, "ordinal": self.classes - 1, "binary": 1}[self.kind]

    def probabilities(self, outputs: NDArray[Any]) -> Floats | None:
        """Return texts x classes; None for a binary head of more than two classes.

        The steps of an ordinal head are made non-increasing first.
        """
        values = _matrix(outputs, self.outputs)
        if self.kind == "multiclass":
            shifted = np.exp(values - values.max(axis=1, keepdims=True))
            return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))
        if self.kind == "ordinal":
            steps = self._steps(values)
            edges = np.column_stack((np.ones(len(steps)), steps, np.zeros(len(steps))))
            return np.asarray(edges[:, :-1] - edges[:, 1:])
        if self.classes == 2:
            yes = _sigmoid(values[:, 0])
            return np.column_stack((1 - yes, yes))
        return None

    def _steps(self, values: Floats) -> Floats:
        return np.asarray(np.minimum.accumulate(_sigmoid(values), axis=1))

    def score(self, outputs: NDArray[Any]) -> Floats:
        """Return the probability that a text is delicate: of the classes from the cut on."""
        values = _matrix(outputs, self.outputs)
        if self.kind == "binary":
            return _sigmoid(values[:, 0])
        if self.kind == "ordinal":
            return self._steps(values)[:, self.cut - 1]
        chances = self.probabilities(values)
        assert chances is not None
        return np.asarray(chances[:, self.cut :].sum(axis=1))

    def predicted(self, outputs: NDArray[Any]) -> NDArray[np.int64] | None:
        """Return the class of each text, the most probable one; None where there are no classes.

        For an ordinal head, the number of steps with a probability above one half.
        """
        values = _matrix(outputs, self.outputs)
        if self.kind == "ordinal":
            return np.asarray((self._steps(values) > 0.5).sum(axis=1), dtype=np.int64)
        chances = self.probabilities(values)
        return None if chances is None else np.asarray(chances.argmax(axis=1), dtype=np.int64)

    def decide(self, outputs: NDArray[Any], rule: Rule, threshold: float) -> NDArray[np.bool_]:
        """Return which texts are delicate.

        Parameters
        ----------
        outputs
            Of the model.
        rule
            ``"threshold"``: the score is strictly above the threshold, as in the released model of
            the paper. ``"argmax"``: the most probable class lies from the cut on, as in its text.
        threshold
            For the first rule.
        """
        if rule == "threshold":
            return np.asarray(self.score(outputs) > threshold)
        classes = self.predicted(outputs)
        if classes is None:
            return np.asarray(self.score(outputs) > 0.5)
        return np.asarray(classes >= self.cut)

    def targets(self, ratings: NDArray[Any]) -> NDArray[np.int64]:
        """Return what each output should say: a class, or 0 and 1 for each step."""
        classes = np.asarray(ratings, dtype=np.int64)
        if len(classes) and (classes.min() < 0 or classes.max() >= self.classes):
            raise PlanError(
                f"ratings run from {classes.min()} to {classes.max()}; "
                f"expected 0 to {self.classes - 1}"
            )
        if self.kind == "multiclass":
            return classes
        if self.kind == "ordinal":
            return (classes[:, None] >= np.arange(1, self.classes)).astype(np.int64)
        return (classes >= self.cut).astype(np.int64)


def _matrix(outputs: NDArray[Any], columns: int) -> Floats:
    values = np.asarray(outputs, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != columns:
        raise ValueError(f"outputs have shape {values.shape}; expected {columns} columns")
    return values


def _sigmoid(values: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * values)))


@dataclass(frozen=True, slots=True)
class LinearHead:
    """A linear model on features: outputs = features x weights + intercept."""

    weights: NDArray[np.float32]  # Features x outputs
    intercept: NDArray[np.float32]  # one value for each output


def fit_linear(
    features: Any,
    ratings: NDArray[Any],
    head: Head,
    *,
    strength: float,
    seed: int = 0,
    balanced: bool = False,
) -> LinearHead:
    """Fit logistic regressions of one head to features.

    Parameters
    ----------
    features
        Texts x features, sparse or dense.
    ratings
        The class of each text.
    head
        The kind of head. The steps of an ordinal head are fitted one by one.
    strength
        Inverse of the L2 penalty (scikit-learn's C).
    seed
        Of the solver.
    balanced
        Whether each class counts alike, however rare it is.
    """
    require("sklearn", "detectors")
    from sklearn.linear_model import LogisticRegression

    targets = head.targets(ratings)
    columns = targets if targets.ndim == 2 else targets[:, None]
    for column in range(columns.shape[1]):
        if len(np.unique(columns[:, column])) < 2:
            raise PlanError(
                "the training texts are all on one side"
                + (f" of step {column + 1}" if head.kind == "ordinal" else "")
                + "; nothing can be learnt from them"
            )
    options: dict[str, Any] = {"C": strength, "max_iter": 1000, "random_state": seed}
    options |= {"class_weight": "balanced"} if balanced else {}
    if head.kind == "multiclass":
        model = LogisticRegression(**options)
        model.fit(features, targets)
        weights = np.zeros((features.shape[1], head.classes), dtype=np.float32)
        intercept = np.full(head.classes, -np.inf, dtype=np.float32)
        present = np.asarray(model.classes_)
        if len(present) == 2:
            # One output there; half of it for each class gives the same probabilities.
            weights[:, present] = np.column_stack((-model.coef_[0], model.coef_[0])) / 2
            intercept[present] = np.array([-1.0, 1.0]) * model.intercept_[0] / 2
        else:
            weights[:, present] = model.coef_.T
            intercept[present] = model.intercept_
        # A class that no text has gets no probability; a finite number survives any file.
        return LinearHead(weights, np.maximum(intercept, np.float32(-1e4)))
    parts = []
    for column in range(columns.shape[1]):
        model = LogisticRegression(**options)
        model.fit(features, columns[:, column])
        parts.append((model.coef_[0], model.intercept_[0]))
    return LinearHead(
        np.column_stack([coef for coef, _ in parts]).astype(np.float32),
        np.array([value for _, value in parts], dtype=np.float32),
    )


@dataclass(frozen=True, slots=True)
class Calibration:
    """A rising curve from a score to a probability, fitted on validation texts.

    Examples
    --------
    >>> Calibration("isotonic", (0.2, 0.6), (0.1, 0.9)).apply(np.array([0.0, 0.4, 1.0])).round(9)
    array([0.1, 0.5, 0.9])
    """

    kind: Literal["platt", "isotonic"]
    # Platt: slope and intercept on the log odds of the score. Isotonic: scores, and the probability
    # at each; straight lines between.
    x: tuple[float, ...]
    y: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", tuple(map(float, self.x)))
        object.__setattr__(self, "y", tuple(map(float, self.y)))
        known = self.kind in ("platt", "isotonic") and len(self.x) == len(self.y) > 0
        rising = known and all(np.diff(self.x) >= 0) and all(np.diff(self.y) >= 0)
        slope = self.kind != "platt" or (known and len(self.x) == 1 and self.x[0] > 0)
        if not (known and rising and slope and np.isfinite((*self.x, *self.y)).all()):
            raise ValueError("the calibration is not a rising curve")

    def apply(self, scores: NDArray[Any]) -> Floats:
        """Return probabilities; NaN stays."""
        values = np.asarray(scores, dtype=np.float64)
        if self.kind == "platt":
            return _sigmoid(self.x[0] * _log_odds(values) + self.y[0])
        return np.asarray(np.interp(values, self.x, self.y))


def _log_odds(scores: Floats) -> Floats:
    inside = np.clip(scores, 1e-9, 1 - 1e-9)
    return np.asarray(np.log(inside) - np.log1p(-inside))


def fit_calibration(
    scores: NDArray[Any], truth: NDArray[Any], kind: Literal["platt", "isotonic"]
) -> Calibration:
    """Fit a calibration to scores of validation texts and whether they are delicate.

    Platt's targets are drawn in from 0 and 1, as in his paper, so that few texts do not make
    certainty. To be called with validation texts, never with training or test texts.

    References
    ----------
    Lin, Lin and Weng (2007), A note on Platt's probabilistic outputs for support vector machines,
    Machine Learning 68; Zadrozny and Elkan (2002), Transforming classifier scores into accurate
    multiclass probability estimates, KDD.
    """
    values, labels = np.asarray(scores, dtype=np.float64), np.asarray(truth, dtype=bool)
    if not labels.any() or labels.all():
        raise PlanError("calibration needs validation texts of both kinds, delicate and not")
    if kind == "isotonic":
        from sklearn.isotonic import IsotonicRegression

        model = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(values, labels)
        return Calibration("isotonic", tuple(model.X_thresholds_), tuple(model.y_thresholds_))
    from scipy.optimize import minimize

    yes, no = int(labels.sum()), int((~labels).sum())
    target = np.where(labels, (yes + 1) / (yes + 2), 1 / (no + 2))
    odds = _log_odds(values)

    def loss(at: Floats) -> tuple[float, Floats]:
        logit = np.exp(at[0]) * odds + at[1]
        gap = _sigmoid(logit) - target
        slope = float(np.sum(gap * odds) * np.exp(at[0]))
        return float(np.sum(np.logaddexp(0, logit) - target * logit)), np.array([slope, gap.sum()])

    found = minimize(loss, np.zeros(2), jac=True, method="BFGS").x
    return Calibration("platt", (float(np.exp(found[0])),), (float(found[1]),))


def best_threshold(
    scores: NDArray[Any], truth: NDArray[Any], weights: NDArray[Any] | None = None
) -> tuple[float, float]:
    """Return the threshold with the best F1, to be used strictly (score > threshold), and that F1.

    All thresholds between two neighbouring scores decide alike; the middle is returned. Of equal
    F1 the highest threshold counts. To be called with validation texts, never with test texts.

    `weights` say how often each text counts; None counts all once.

    Examples
    --------
    >>> best_threshold(np.array([0.1, 0.4, 0.6, 0.9]), np.array([0, 0, 1, 1]))
    (0.5, 1.0)
    """
    values = np.asarray(scores, dtype=np.float64)
    labels = np.asarray(truth, dtype=bool)
    if weights is not None:
        drawn = np.flatnonzero(weights)
        values, labels, weights = values[drawn], labels[drawn], np.asarray(weights)[drawn]
    if not labels.any() or labels.all():
        raise PlanError("a threshold needs validation texts of both kinds, delicate and not")
    order = np.argsort(-values, kind="stable")
    ranked = values[order]
    counts = np.ones(len(order)) if weights is None else weights[order]
    hits, flagged = np.cumsum(counts * labels[order]), np.cumsum(counts)
    # Flagging the first k is possible only where the score changes after k.
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))
    f1 = 2 * hits[last] / (flagged[last] + hits[-1])
    best = int(np.argmax(f1))
    at = int(last[best])
    below = ranked[at + 1] if at + 1 < len(ranked) else ranked[at] - 1e-6
    return float((ranked[at] + below) / 2), float(f1[best])
