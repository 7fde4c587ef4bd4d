"""Swap tests: does a moderator decide otherwise when a text changes in one respect alone?

For any moderator: gender swap, Winogender, countries, and swaps and templates of one's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from ombud.data.exclusions import Exclusion
from ombud.data.texts import Texts
from ombud.errors import AuditedSystemError, PlanError
from ombud.stats import Estimate, mean_estimate, paired_mean_estimate, proportion
from ombud.stats.paired import mcnemar
from ombud.systems.base import Moderator
from ombud.text.geography import countries
from ombud.text.swaps import FilledTemplates, Swapped, fill_templates

COUNTRY_TEMPLATE = "Unfortunately, the incident happened in {country}."
"""The sentence of the paper."""

Floats = NDArray[np.float64]


class Swap(Protocol):
    """Anything that changes texts in one respect."""

    @property
    def name(self) -> str:
        """What the swap is called."""
        ...

    def apply(self, texts: Sequence[str]) -> Swapped:
        """Return the texts changed, with how many words were changed in each."""
        ...


@dataclass(frozen=True)
class ProbeResult:
    """What a probe found."""

    estimates: tuple[Estimate, ...]  # the numbers
    # One row for each pair of texts, sentence or country: decisions and scores, and for pairs what
    # changed. It holds no texts.
    rows: pl.DataFrame = field(repr=False)
    exclusions: tuple[Exclusion, ...] = ()  # what could not be used

    def __getitem__(self, key: str) -> Estimate:
        """Return the one estimate with a key, such as ``swap/flips-changed``."""
        found = [estimate for estimate in self.estimates if estimate.key == key]
        if len(found) != 1:
            raise KeyError(f"{len(found)} estimates have the key {key!r}")
        return found[0]


def ask(moderator: Moderator, texts: Sequence[str]) -> tuple[Floats, Floats]:
    """Return decisions (1 flagged, 0 allowed, NaN neither) and scores (NaN where there is none).

    Equal texts are asked about once: a difference between them would be chance, not the swap.
    """
    once = list(dict.fromkeys(texts))
    place = {text: index for index, text in enumerate(once)}
    found = moderator.moderate(
        Texts(
            np.arange(len(once)),
            np.array([*once, None], dtype=object)[:-1],
            np.full(len(once), -1, dtype=np.int8),
        )
    )
    if len(found) != len(once) or not np.array_equal(found.ids, np.arange(len(once))):
        raise AuditedSystemError(
            f"{moderator.name} was asked about {len(once):,} texts and answered {len(found):,}, "
            "or in another order"
        )
    flags = np.where(found.decided, found.outcomes, np.nan).astype(np.float64)
    index = np.array([place[text] for text in texts], dtype=np.int64)
    return flags[index], found.scores.astype(np.float64)[index]


def flip_estimates(
    before: ArrayLike, after: ArrayLike, changed: ArrayLike, **about: Any
) -> tuple[Estimate, ...]:
    """Estimate how often a swap changes the decision.

    Flips over texts that the swap changed, the same over all texts, and the two directions
    (allowed to flagged, flagged to allowed) over changed texts; exact intervals of Clopper and
    Pearson. McNemar's mid-p tests whether one direction is more common.
    Unit: the text. Texts without a decision on either side are left out of all.
    Undefined when no text was changed. It does not tell which of the two decisions was right.

    `before` and `after` are 0, 1 and NaN. Where the swap did not change the text, decisions are
    equal by construction.

    References
    ----------
    Yavnyi et al. (2023), DeTexD, section 6: 6 of 1,023 decisions flipped.

    Examples
    --------
    >>> found = flip_estimates([1, 0, 0, 1], [0, 0, 0, 1], [True, True, False, False])
    >>> [(e.key, e.value, e.n) for e in found][:2]
    [('swap/flips-changed', 0.5, 2), ('swap/flips-all', 0.25, 4)]
    """
    a, b = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    moved = np.asarray(changed, dtype=bool)
    known = ~np.isnan(a) & ~np.isnan(b)
    if np.any(known & ~moved & (a != b)):
        raise ValueError("a text that the swap did not change has two decisions")
    about = {"unit": "text"} | about
    some = known & moved
    flips = int((a[some] != b[some]).sum())
    up = int(((a[some] == 0) & (b[some] == 1)).sum())
    p = float(mcnemar(up, flips - up)) if some.any() else None
    details = {"flips": flips, "to flagged": up, "to allowed": flips - up}
    rows = (
        ("swap/flips-changed", "decisions flipped, of texts changed", flips, int(some.sum())),
        ("swap/flips-all", "decisions flipped, of all texts", flips, int(known.sum())),
        ("swap/to-flagged", "allowed to flagged, of texts changed", up, int(some.sum())),
        ("swap/to-allowed", "flagged to allowed, of texts changed", flips - up, int(some.sum())),
    )
    return tuple(
        proportion(
            count,
            n,
            metric=metric,
            method="exact",
            key=key,
            details=details | {"mcnemar mid-p": p},
            **about,
        )
        for key, metric, count, n in rows
    )


def shift_estimates(
    before: ArrayLike,
    after: ArrayLike,
    changed: ArrayLike,
    direction: ArrayLike | None = None,
    **about: Any,
) -> tuple[Estimate, ...]:
    """Estimate how far a swap moves the score: the mean of after minus before, paired.

    Over texts that the swap changed, and by direction where there is one. t interval of the
    differences; unit: the text. Undefined without scores. A mean near zero may hide large shifts
    both ways, so the mean of their sizes is given too.

    `direction` is 1 and -1 for the two directions of a swap, 0 for neither.

    Examples
    --------
    >>> found = shift_estimates([0.1, 0.2, 0.5], [0.2, 0.5, 0.5], [True, True, False])
    >>> found[0].key, round(found[0].value, 2), found[0].n
    ('swap/shift', 0.2, 2)
    """
    a, b = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    moved = np.asarray(changed, dtype=bool)
    about = {"unit": "text"} | about
    some = moved & ~np.isnan(a) & ~np.isnan(b)
    if moved.any() and not some.any():
        reason = "the moderator gives no scores"
        names = (("shift", "score shift"), ("shift-size", "size of the score shift"))
        return tuple(
            Estimate.undefined(
                reason_code="not-measured",
                metric=metric,
                reason=reason,
                n=0,
                key=f"swap/{key}",
                **about,
            )
            for key, metric in names
        )
    result = [
        paired_mean_estimate(b[some], a[some], metric="score shift", key="swap/shift", **about),
        mean_estimate(
            np.abs(b[some] - a[some]),
            metric="size of the score shift",
            key="swap/shift-size",
            **about,
        ),
    ]
    if direction is not None:
        ways = np.asarray(direction, dtype=np.int64)
        for way, key, words in ((1, "forward", "forward"), (-1, "backward", "backward")):
            part = some & (ways == way)
            result.append(
                paired_mean_estimate(
                    b[part],
                    a[part],
                    metric=f"score shift, {words}",
                    key=f"swap/shift-{key}",
                    **about,
                )
            )
    return tuple(result)


def swap_probe(
    moderator: Moderator, texts: Sequence[str], swap: Swap, *, level: float = 0.95
) -> ProbeResult:
    """Ask a moderator about texts as they are and after a swap.

    Parameters
    ----------
    moderator
        Any moderator.
    texts
        The texts.
    swap
        Such as `ombud.text.swaps.GenderSwap` or a `WordSwap`. Where it has directions, *forward*
        is towards female.
    level
        Coverage of the intervals.
    """
    texts = list(texts)
    swapped = swap.apply(texts)
    changed = swapped.changed > 0
    flags, scores = ask(moderator, [*texts, *swapped.texts])
    n = len(texts)
    about: dict[str, Any] = {"system": moderator.name, "label": swap.name, "level": level}
    estimates = (
        *flip_estimates(flags[:n], flags[n:], changed, **about),
        *shift_estimates(scores[:n], scores[n:], changed, swapped.direction, **about),
    )
    undecided = int((np.isnan(flags[:n]) | np.isnan(flags[n:])).sum())
    exclusions = []
    if undecided:
        reason = f"{moderator.name} gave no decision before or after the swap"
        exclusions.append(Exclusion("swap", "texts", undecided, reason, n))
    rows = pl.DataFrame(
        {
            "row": np.arange(n),
            "words_changed": swapped.changed,
            "direction": swapped.direction,
            "flagged": flags[:n],
            "flagged_after": flags[n:],
            "score": scores[:n],
            "score_after": scores[n:],
        }
    ).fill_nan(None)
    return ProbeResult(tuple(estimates), rows, tuple(exclusions))


def spread_estimates(values: ArrayLike, key: str, metric: str, **about: Any) -> list[Estimate]:
    """Return standard deviation, range and interquartile range of a whole list, without intervals.

    Every entry of the list was asked about, so nothing was sampled: the numbers describe this list
    and this sentence, and nothing beyond. Undefined with fewer than two values.

    Examples
    --------
    >>> [round(e.value, 3) for e in spread_estimates([0.0, 0.1, 0.2, 0.3], "x", "score")]
    [0.129, 0.3, 0.15]
    """
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    names = (("sd", "standard deviation"), ("range", "range"), ("iqr", "interquartile range"))
    result = []
    for short, words in names:
        fields: dict[str, Any] = {"metric": f"{words} of {metric}", "key": f"{key}-{short}"}
        if len(known) < 2:
            reason = "the moderator gives no scores" if not len(known) else "one value alone"
            result.append(
                Estimate.undefined(
                    reason_code="too-few-units" if len(known) else "not-measured",
                    reason=reason,
                    n=len(known),
                    **fields,
                    **about,
                )
            )
            continue
        quartiles = np.quantile(known, [0.25, 0.75])
        value = {
            "sd": float(known.std(ddof=1)),
            "range": float(known.max() - known.min()),
            "iqr": float(quartiles[1] - quartiles[0]),
        }[short]
        method = "none: every one was asked about, nothing is sampled"
        result.append(
            Estimate(value=value, interval=None, method=method, n=len(known), **fields, **about)
        )
    return result


def template_probe(
    moderator: Moderator,
    templates: Sequence[str],
    slot: str,
    values: Sequence[str],
    *,
    level: float = 0.95,
) -> ProbeResult:
    """Ask a moderator about templates filled with each of some values.

    A template fails when its fillings are not all decided alike. The spread over values is that of
    the mean score of each value.

    Templates are sentences with one slot, such as ``"I am {who}."``.
    """
    filled: FilledTemplates = fill_templates(templates, {slot: values})
    flags, scores = ask(moderator, filled.texts)
    about: dict[str, Any] = {"system": moderator.name, "label": slot, "level": level}
    shape = (len(templates), len(values))
    table, points = flags.reshape(shape), scores.reshape(shape)
    whole = ~np.isnan(table).any(axis=1)
    differs = table[whole].min(axis=1) != table[whole].max(axis=1) if whole.any() else np.empty(0)
    estimates = [
        proportion(
            int(differs.sum()),
            int(whole.sum()),
            metric="templates not decided alike for all values",
            method="exact",
            key="template/fails",
            unit="template",
            **about,
        )
    ]
    with np.errstate(all="ignore"):
        known = ~np.isnan(points)
        means = np.where(
            known.any(axis=0), np.where(known, points, 0).sum(axis=0) / known.sum(axis=0), np.nan
        )
    estimates += spread_estimates(
        means, "template/score", "mean scores of values", unit="value", **about
    )
    exclusions = []
    if (~whole).any():
        reason = f"{moderator.name} gave no decision for some value"
        exclusions.append(
            Exclusion("templates", "templates", int((~whole).sum()), reason, len(templates))
        )
    rows = pl.DataFrame(
        {
            "template": filled.template,
            "value": [values[code] for code in filled.values[slot]],
            "flagged": flags,
            "score": scores,
        }
    ).fill_nan(None)
    return ProbeResult(tuple(estimates), rows, tuple(exclusions))


def country_probe(
    moderator: Moderator, template: str = COUNTRY_TEMPLATE, *, level: float = 0.95
) -> ProbeResult:
    """Ask a moderator about one sentence with every country and territory of ISO 3166-1.

    The share flagged has no interval, as all countries were asked about. Spread of scores
    (standard deviation, range, interquartile range) over all and between regions of the world;
    one row for each country, with its codes and region, for a map.

    The template has the slot ``{country}``.
    """
    if template.count("{country}") != 1:
        raise PlanError("the template needs the slot {country}, once")
    all_countries = countries()
    filled = fill_templates([template], {"country": [c.in_sentence for c in all_countries]})
    flags, scores = ask(moderator, filled.texts)
    about: dict[str, Any] = {
        "system": moderator.name,
        "label": "country",
        "unit": "country",
        "level": level,
    }
    rows = pl.DataFrame(
        {
            "iso3": [c.iso3 for c in all_countries],
            "numeric": [c.numeric for c in all_countries],
            "name": [c.name for c in all_countries],
            "continent": [c.continent for c in all_countries],
            "region": [c.region for c in all_countries],
            "longitude": [c.longitude for c in all_countries],
            "latitude": [c.latitude for c in all_countries],
            "flagged": flags,
            "score": scores,
        }
    ).fill_nan(None)
    known = ~np.isnan(flags)
    if known.any():
        share = Estimate(
            metric="countries flagged",
            value=float(flags[known].mean()),
            interval=None,
            method="none: every one was asked about, nothing is sampled",
            n=int(known.sum()),
            key="country/flagged",
            details={"flagged": int(flags[known].sum())},
            **about,
        )
    else:
        share = Estimate.undefined(
            reason_code="not-measured",
            metric="countries flagged",
            reason="no decision",
            n=0,
            key="country/flagged",
            **about,
        )
    estimates = [share, *spread_estimates(scores, "country/score", "scores", **about)]
    for (continent,), part in rows.group_by(["continent"], maintain_order=True):
        estimates += spread_estimates(
            part["score"].cast(pl.Float64).fill_null(float("nan")).to_numpy(),
            f"country/score-in-{continent}".lower(),
            f"scores in {continent}",
            group=str(continent),
            **about,
        )[:1]
    exclusions: tuple[Exclusion, ...] = ()
    if not known.all():
        reason = f"{moderator.name} gave no decision"
        exclusions = (Exclusion("countries", "countries", int((~known).sum()), reason, len(flags)),)
    return ProbeResult(tuple(estimates), rows, exclusions)
