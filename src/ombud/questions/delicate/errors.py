"""What a detector gets wrong: by group, and by the words that stand out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from ombud.stats import Estimate, benjamini_hochberg, proportion
from ombud.text.folding import fold

__all__ = ["error_rates", "standout_terms"]

_WORD = re.compile(r"\w{2,}")


def error_rates(
    flags: ArrayLike, truth: ArrayLike, groups: Mapping[str, ArrayLike], **about: Any
) -> tuple[Estimate, ...]:
    """Estimate, for each group, the share of delicate texts missed and of others flagged.

    Wilson intervals; unit: the text; groups may overlap. Undefined where a group has no texts of
    that kind. It does not say why: `standout_terms` gives a hint.

    Parameters
    ----------
    flags, truth
        Decisions and labels; NaN (and -1) are left out.
    groups
        Name and members (Boolean) of each: topics, severities, lengths, sources, explicitness.
    about
        Fields of the estimates.

    Examples
    --------
    >>> found = error_rates([0, 1, 1], [1, 1, 0], {"health": [True, True, False]})
    >>> found[0].key, found[0].value, found[1].reason
    ('delicate/missed', 0.5, 'no such text in the group')
    """
    flagged = np.asarray(flags, dtype=np.float64)
    labels = np.asarray(truth, dtype=np.float64)
    known = ~np.isnan(flagged) & ~np.isnan(labels) & (labels >= 0)
    result = []
    for name, members in groups.items():
        inside = known & np.asarray(members, dtype=bool)
        for key, words, label, wrong in (
            ("missed", "delicate texts missed", 1, 0),
            ("flagged-in-error", "other texts flagged", 0, 1),
        ):
            part = inside & (labels == label)
            n = int(part.sum())
            fields = {
                "metric": words,
                "key": f"delicate/{key}",
                "group": name,
                "unit": "text",
            } | about
            if not n:
                reason = "no such text in the group"
                result.append(Estimate.undefined(reason=reason, n=0, **fields))
            else:
                result.append(proportion(int((flagged[part] == wrong).sum()), n, **fields))
    return tuple(result)


def standout_terms(
    texts: Sequence[str],
    inside: ArrayLike,
    *,
    smallest: int = 5,
    prior: float = 1000.0,
    level: float = 0.05,
) -> pl.DataFrame:
    r"""Return the words that are commoner in some texts (errors) than in the others.

    Log-odds ratio with an informative Dirichlet prior: with counts :math:`y` of a word in the two
    parts, sizes :math:`n`, and prior counts :math:`a` (the word's share of both parts times
    `prior`),

    .. math:: \delta = \log\frac{y_1 + a}{n_1 + a_0 - y_1 - a} -
              \log\frac{y_2 + a}{n_2 + a_0 - y_2 - a},
              \quad \sigma^2 = \frac{1}{y_1 + a} + \frac{1}{y_2 + a}

    A word is counted once a text. p-values are two-sided normal, corrected by Benjamini and
    Hochberg over all words tried. Words stand for what the texts are about, not for causes; texts
    by one author inflate them.

    Parameters
    ----------
    texts
        The texts.
    inside
        Which of them to look at, such as the texts missed.
    smallest
        A word must stand in so many texts.
    prior
        The weight of the prior, in words.
    level
        False discovery rate of those marked in `stands_out`.

    Returns
    -------
    polars.DataFrame
        `term`, `inside`, `outside` (texts), `log_odds`, `z`, `p_adjusted`, `stands_out`; strongest
        first. Terms may offend: mask them before showing.

    References
    ----------
    Monroe, Colaresi and Quinn (2008), Fightin' words, Political Analysis 16, 372-403.
    """
    member = np.asarray(inside, dtype=bool)
    if len(member) != len(texts):
        raise ValueError(f"{len(texts)} texts and {len(member)} marks; expected as many")
    counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for text, mark in zip(texts, member.tolist(), strict=True):
        counts[0 if mark else 1].update(set(_WORD.findall(fold(text))))
    terms = [t for t, n in (counts[0] + counts[1]).items() if n >= smallest]
    schema = {
        "term": pl.String,
        "inside": pl.Int64,
        "outside": pl.Int64,
        "log_odds": pl.Float64,
        "z": pl.Float64,
        "p_adjusted": pl.Float64,
        "stands_out": pl.Boolean,
    }
    if not terms or not member.any() or member.all():
        return pl.DataFrame(schema=schema)
    y1 = np.array([counts[0][term] for term in terms], dtype=np.float64)
    y2 = np.array([counts[1][term] for term in terms], dtype=np.float64)
    n1, n2 = float(sum(counts[0].values())), float(sum(counts[1].values()))
    a: NDArray[np.float64] = prior * (y1 + y2) / (n1 + n2)
    odds = np.log((y1 + a) / (n1 + prior - y1 - a)) - np.log((y2 + a) / (n2 + prior - y2 - a))
    z = odds / np.sqrt(1 / (y1 + a) + 1 / (y2 + a))
    adjusted = benjamini_hochberg(2 * ndtr(-np.abs(z)))
    frame = pl.DataFrame(
        {
            "term": terms,
            "inside": y1.astype(np.int64),
            "outside": y2.astype(np.int64),
            "log_odds": odds,
            "z": z,
            "p_adjusted": adjusted,
            "stands_out": (adjusted < level) & (z > 0),
        },
        schema=schema,
    )
    return frame.sort("z", "term", descending=[True, False])
