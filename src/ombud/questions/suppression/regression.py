"""Which properties of a text go with wrong flags and with high scores."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import chdtrc, fdtrc

from ombud.audits.analysis import Analysis, AnalysisResult, Context, decisions_in
from ombud.audits.presets import Options
from ombud.data.decisions import NO_DECISIONS, Decisions
from ombud.data.exclusions import Exclusion
from ombud.data.ids import Vocabulary
from ombud.errors import require
from ombud.metrics.engine.estimate import correct
from ombud.metrics.engine.text_rows import max_score, was_flagged
from ombud.questions.suppression.options import Errors, SuppressionOptions
from ombud.registry import analysis
from ombud.stats.estimate import Estimate
from ombud.text.identity import TagMode
from ombud.text.tagging import tags_of, terms_of

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.data.texts import Texts
    from ombud.metrics.engine.estimator import Settings


class _Regression(Options, Analysis):
    terms: str = SuppressionOptions.field("terms")
    path: Path | str = SuppressionOptions.field("path")
    mode: TagMode = SuppressionOptions.field("mode")
    errors: Errors = SuppressionOptions.field("errors")
    title: ClassVar[str]
    logistic: ClassVar[bool]

    def analyze(self, context: Context) -> AnalysisResult:
        """Return the coefficients of each system, as estimates and as a table."""
        data, outputs, settings = context.data, context.outputs, context.settings
        require("statsmodels", "regress")
        texts: Texts = data.need("texts", self.registered_name)
        columns = columns_of(data, self.terms, self.path, self.mode)
        estimates: list[Estimate] = []
        exclusions: list[Exclusion] = []
        rows: list[dict[str, Any]] = []
        fits: list[dict[str, Any]] = []
        for name, decisions in decisions_in(outputs, self.registered_name).items():
            outcome = self._outcome(_first(decisions, texts), texts)
            result, dropped, fit = _fitted(
                self, outcome, columns, texts, settings, name, decisions.lacks_decisions
            )
            estimates += result
            fits += [fit] if fit else []
            for column, reason in dropped:
                exclusions.append(
                    Exclusion(f"{name}: {self.title}", f"column ({column})", 1, reason)
                )
            errors = fit.pop("coefficients", {})
            rows += [_row(e) | errors.get(e.group, dict.fromkeys(MODEL)) for e in result]
        corrected = correct(estimates, settings.correction)
        tables = {self.registered_name: pl.DataFrame(rows, infer_schema_length=None)}
        if fits:
            tables[f"{self.registered_name}-fit"] = pl.DataFrame(fits, infer_schema_length=None)
        return AnalysisResult(tuple(corrected), tables, tuple(exclusions))

    def _outcome(self, decisions: Decisions, texts: Texts) -> NDArray[np.float64]:
        raise NotImplementedError


@analysis("flag-regression")
class FlagRegression(_Regression):
    r"""Odds that a flag matches the truth, by logistic regression on what a text is.

    .. math:: \operatorname{logit} P(\text{flag} = \text{label}) = \beta_0 + \sum_g \beta_g x_g

    Columns: the identity groups, whether a slur matched, family, word count. Odds ratios with
    intervals from cluster-robust errors (robust errors where texts stand alone), or with
    ``errors = "classical"`` from those of the paper, which take texts as independent. Families are
    compared with *traditional*, as in the paper, where there is one. Columns that
    follow from others or have too few texts are left out and named; when some column separates
    right from wrong completely there is no finite estimate, and that is said.

    - **Unit**: the text, or what texts share.
    - **Undefined**: with complete separation, or when every flag is right (or wrong).
    - **Does not capture**: causes; an odds ratio is conditional on the other columns, and mixes
      wrong flags with missed ones.
    """

    title: ClassVar[str] = "odds of a right flag"
    logistic: ClassVar[bool] = True

    def _outcome(self, decisions: Decisions, texts: Texts) -> NDArray[np.float64]:
        flagged = was_flagged(decisions)
        known = (texts.truth >= 0) & ~np.isnan(flagged)
        return np.where(known, flagged == texts.truth, np.nan)


@analysis("score-regression")
class ScoreRegression(_Regression):
    r"""Scores of texts that should not be flagged, by linear regression on what a text is.

    .. math:: E[\text{score} \mid \text{label} = 0] = \beta_0 + \sum_g \beta_g x_g

    Columns and errors as in `FlagRegression`.

    - **Unit**: the text, or what texts share.
    - **Undefined**: for systems without scores.
    - **Does not capture**: causes, or effects that are not additive; scores of two systems are not
      on one scale.
    """

    title: ClassVar[str] = "change of score"
    logistic: ClassVar[bool] = False

    def _outcome(self, decisions: Decisions, texts: Texts) -> NDArray[np.float64]:
        return np.where(texts.truth == 0, max_score(decisions, (), self.title), np.nan)


def _first(decisions: Decisions, texts: Texts) -> Decisions:
    """Return the first decision about each text, in the order of the texts."""
    rows = np.arange(len(decisions))
    if decisions.repeats is not None:
        rows = rows[decisions.repeats == 0]
    index = Vocabulary(decisions.ids[rows]).codes(texts.ids)
    chosen = rows[index]
    lost = index < 0
    return replace(
        decisions,
        ids=np.asarray(texts.ids),
        outcomes=np.where(lost, np.int8(3), decisions.outcomes[chosen]),
        scores=np.where(lost, np.float32("nan"), decisions.scores[chosen]),
        category_scores=None,
        categories=(),
        repeats=None,
    )


def _fitted(
    asked: _Regression,
    outcome: NDArray[np.float64],
    columns: Columns,
    texts: Texts,
    settings: Settings,
    system: str,
    lacks_decisions: bool,
) -> tuple[list[Estimate], list[tuple[str, str]], dict[str, Any]]:
    known = ~np.isnan(outcome)
    if not known.any():
        reason = "no text has an outcome" if asked.logistic else "the system gives no scores"
        code = "not-measured"
        if asked.logistic and lacks_decisions:
            code, reason = "no-decisions", NO_DECISIONS
        about: dict[str, Any] = {"system": system, "unit": "text", "level": settings.level}
        about["key"] = asked.registered_name
        return (
            [Estimate.undefined(reason_code=code, metric=asked.title, reason=reason, n=0, **about)],
            [],
            {},
        )
    used = independent(columns, known, settings.minimum)
    y = outcome[known]
    clusters = None if texts.clusters is None else texts.clusters[known]
    unit = "text" if clusters is None else "cluster"
    n = len(y) if clusters is None else len(np.unique(clusters))
    null = 1.0 if asked.logistic else 0.0
    about = {
        "metric": asked.title,
        "key": asked.registered_name,
        "system": system,
        "unit": unit,
        "level": settings.level,
        "n": n,
        "null": null,
    }
    kind: dict[str, Any] = {"kind": "ratio" if asked.logistic else "gap"}
    names = used.names[1:]
    reason = _unfit(y, n, len(used.names))
    fitted = None
    if not reason:
        fitted, reason = _fit(asked.logistic, y, used.values, clusters, asked.errors)
    if fitted is None:
        code = "too-few-units" if n <= len(used.names) else "not-estimable"
        return (
            [
                Estimate.undefined(
                    reason_code=code,
                    reason=reason,
                    group=name,
                    against="texts without it",
                    **about,
                    **kind,
                )
                for name in names
            ],
            list(used.dropped),
            {},
        )
    ends = np.asarray(fitted.conf_int(alpha=1 - settings.level))
    change = np.exp if asked.logistic else (lambda x: x)
    text = "cluster-robust" if clusters is not None else "robust (HC1)"
    text = text if asked.errors == "robust" else "classical"
    estimates = []
    for index, name in enumerate(names, start=1):
        low, high = (float(v) for v in change(ends[index]))
        estimates.append(
            Estimate(
                value=float(change(fitted.params[index])),
                interval=(low, high),
                method=f"{text} errors",
                group=name,
                against="one hundred words less" if "words" in name else "texts without it",
                p_value=float(fitted.pvalues[index]),
                **about,
                **kind,
            )
        )
    fit = _fit_facts(fitted, y, len(names), ends[0], logistic=asked.logistic)
    fit |= _joint_test(fitted, len(names), n, linear=not asked.logistic)
    classical = _classical(fitted, linear=not asked.logistic)
    columns_of_model = zip(("constant", *names), fitted.params, fitted.bse, classical, strict=True)
    fit["coefficients"] = {
        name: dict(zip(MODEL, map(float, numbers), strict=True))
        for name, *numbers in columns_of_model
    }
    fit["intercept_classical_error"] = float(classical[0])
    return estimates, list(used.dropped), {"system": system, "errors": text, **fit}


def _fit_facts(
    fitted: Any, y: NDArray[np.float64], width: int, ends: NDArray[np.float64], *, logistic: bool
) -> dict[str, Any]:
    """Return the intercept and how well the model fits, as publications give them.

    The intercept is on the scale of the model (log odds, or score).
    """
    n = len(y)
    facts: dict[str, Any] = {
        "observations": n,
        "columns": width,
        "intercept": float(fitted.params[0]),
        "intercept_low": float(ends[0]),
        "intercept_high": float(ends[1]),
        "intercept_error": float(fitted.bse[0]),
        "intercept_p": float(fitted.pvalues[0]),
        "log_likelihood": float(fitted.llf),
    }
    if logistic:
        return facts | {"r2": 1 - float(fitted.llf) / float(fitted.llnull)}
    rest = n - width - 1
    return facts | {
        "r2": float(fitted.rsquared),
        "adjusted_r2": float(fitted.rsquared_adj),
        "residual_error": float(np.sqrt(fitted.ssr / rest)) if rest > 0 else None,
    }


def _joint_test(fitted: Any, width: int, units: int, *, linear: bool) -> dict[str, Any]:
    r"""Return the test that no column matters: F (linear) or :math:`\chi^2` (logistic).

    With clusters it is the Wald test with the cluster-robust covariance, whose F has one degree of
    freedom less in the denominator than there are clusters; there is none with fewer clusters than
    columns. Otherwise it is the classical F, or the likelihood ratio.
    """
    clustered = fitted.cov_type == "cluster"
    rest = units - 1.0 if clustered else float(fitted.nobs) - width - 1
    name = "F" if linear else "likelihood ratio"
    value = None
    if clustered:
        name = "robust F" if linear else "robust Wald"
        slopes, covariance = np.asarray(fitted.params)[1:], np.asarray(fitted.cov_params())[1:, 1:]
        if 0 < width < units:
            value = float(slopes @ np.linalg.pinv(covariance) @ slopes) / (width if linear else 1)
    elif linear and width and rest > 0 and fitted.rsquared < 1:
        value = float(fitted.rsquared) / width / ((1 - float(fitted.rsquared)) / rest)
    elif not linear and width:
        value = 2 * (float(fitted.llf) - float(fitted.llnull))
    p = None
    if value is not None:
        p = float(fdtrc(width, rest, value)) if linear else float(chdtrc(width, value))
    degrees = rest if linear else width
    return {"test": name, "statistic": value, "degrees_of_freedom": degrees, "p": p}


MODEL = ("coefficient", "error", "classical_error")
"""What the table of a model has beside its estimates, on the scale of the model."""


def _classical(fitted: Any, *, linear: bool) -> NDArray[np.float64]:
    """Return the errors of coefficients if texts were independent and variances alike."""
    if linear:
        covariance = fitted.scale * np.asarray(fitted.normalized_cov_params)
    else:
        covariance = np.linalg.inv(-fitted.model.hessian(np.asarray(fitted.params)))
    return np.sqrt(np.diag(covariance))


def _unfit(y: NDArray[np.float64], n: int, width: int) -> str:
    if n <= width:
        return f"not enough data: {n} independent units for {width} coefficients"
    if np.ptp(y) == 0:
        return "all outcomes are the same"
    return ""


def _fit(
    logistic: bool,
    y: NDArray[np.float64],
    x: NDArray[np.float64],
    clusters: NDArray[np.int32] | None,
    errors: Errors,
) -> tuple[Any, str]:
    """Fit, or say why it cannot be done."""
    import statsmodels.api as sm
    from statsmodels.tools.sm_exceptions import PerfectSeparationError

    how: dict[str, Any] = {"cov_type": "HC1"}
    if clusters is not None:
        how = {"cov_type": "cluster", "cov_kwds": {"groups": clusters}}
    if errors == "classical":
        how = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if not logistic:
                return sm.OLS(y, x).fit(**how), ""
            fitted = sm.Logit(y, x).fit(disp=0, maxiter=100, **how)
        except PerfectSeparationError:
            return None, "complete separation: the columns tell right from wrong without error"
        except np.linalg.LinAlgError:
            return None, "the columns are too much alike to be told apart"
    if _separated(fitted):
        return None, (
            "complete separation: some column has right (or wrong) flags only, so that its odds "
            "ratio has no end"
        )
    return fitted, ""


def _separated(fitted: Any) -> bool:
    """Whether the likelihood rises without end along some coefficient."""
    diverged = not fitted.mle_retvals.get("converged", True)
    size = np.abs(np.asarray(fitted.params))
    return bool(diverged or size.max() > 15 or not np.isfinite(fitted.bse).all())


def _row(e: Estimate) -> dict[str, Any]:
    low, high = e.interval if e.interval is not None else (None, None)
    fields = {"system": e.system, "column": e.group, "value": e.value, "low": low, "high": high}
    return fields | {"p": e.p_value, "n": e.n, "reason": e.reason}


# What a regression on texts explains a decision by.


_SAME = 1e-8

REFERENCE = "traditional"
"""The family that others are compared with, as in the paper."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of a regression, without those that say nothing new."""

    # The columns, texts x columns; the first is the constant.
    names: tuple[str, ...]
    values: NDArray[np.float64]
    dropped: tuple[tuple[str, str], ...] = ()  # Columns that were excluded, and why


def columns_of(data: Dataset, terms: str, path: Path | str, mode: TagMode) -> Columns:
    """Return groups, `has_slur`, family and word count of every text.

    Word count is in hundreds, so that its effect is readable. Families are compared with
    *traditional*, or else with the first in alphabetical order.

    The data has texts; its groups are used where it has some, and tagged otherwise.
    """
    texts: Texts = data.need("texts", "a regression")
    tags = tags_of(data, terms_of(terms, path, mode), mode)
    names, columns = ["constant"], [np.ones(len(texts))]
    if data.text_groups is None:
        groups, members = tags.groups, tags.membership
    else:
        plain = [g for g, name in enumerate(data.text_groups.names) if " & " not in name]
        groups = tuple(data.text_groups.names[g] for g in plain)
        members = data.text_groups.aligned(texts.ids)[:, plain]
    names += groups
    columns += [column.astype(np.float64) for column in members.T]
    names.append("has slur")
    columns.append(tags.has_slur.astype(np.float64))
    if texts.families is not None:
        kinds = sorted({str(kind) for kind in texts.families}, key=lambda k: (k != REFERENCE, k))
        for kind in kinds[1:]:
            names.append(f"family: {kind}")
            columns.append((texts.families == kind).astype(np.float64))
    names.append("words (hundreds)")
    columns.append(np.array([len(str(text).split()) for text in texts.texts]) / 100)
    return Columns(tuple(names), np.column_stack(columns))


def independent(columns: Columns, rows: NDArray[np.bool_], least: int = 1) -> Columns:
    """Return the columns of some texts, without those that are constant or follow from others.

    `rows` are the texts that count. A yes-no column with fewer than `least` texts on a side is left
    out.
    """
    values = columns.values[rows]
    kept: list[int] = []
    dropped: list[tuple[str, str]] = list(columns.dropped)
    # Orthogonal parts of the columns kept so far; what is left of a new one must not vanish.
    basis: list[NDArray[np.float64]] = []
    for index, name in enumerate(columns.names):
        column = values[:, index]
        fault = _thin(column, least) if index else ""
        rest = column - sum((part * (part @ column) for part in basis), np.zeros(len(column)))
        if not fault and np.linalg.norm(rest) <= _SAME * max(1.0, float(np.linalg.norm(column))):
            fault = "it follows from the other columns (collinear)"
        if fault:
            dropped.append((name, fault))
            continue
        kept.append(index)
        basis.append(rest / np.linalg.norm(rest))
    return Columns(_chosen(columns.names, kept), values[:, kept], tuple(dropped))


def _chosen(names: Sequence[str], places: Sequence[int]) -> tuple[str, ...]:
    return tuple(names[index] for index in places)


def _thin(column: NDArray[np.float64], least: int) -> str:
    if not np.isin(column, (0.0, 1.0)).all():
        return ""
    count = int(min(column.sum(), len(column) - column.sum()))
    return f"not enough data: {count} texts on one side" if count < least else ""
