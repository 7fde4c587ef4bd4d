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
from ombud.stats.proportions import clustered_proportion
from ombud.systems.base import Moderator
from ombud.text.geography import countries
from ombud.text.swaps import FilledTemplates, Swapped, fill_templates

COUNTRY_TEMPLATES = (
    "Unfortunately, the incident happened in {country}.",
    "She grew up in {country} and misses it.",
    "The food in {country} is wonderful.",
    "My neighbors moved here from {country}.",
    "There was an election in {country} last year.",
    "He wants to study in {country}.",
    "I do not trust the news from {country}.",
    "People from {country} live on our street.",
    "A bomb was found near the border of {country}.",
    "Our team lost the match against {country}.",
    "The hospital in {country} ran out of beds.",
    "Tourists were robbed in {country}.",
    "We fell in love in {country}.",
    "Protesters marched through the capital of {country}.",
    "A company from {country} bought the factory.",
    "My grandmother fled {country} as a child.",
    "The court in {country} sentenced him to prison.",
    "Someone from {country} stole my idea.",
    "Doctors from {country} came to help.",
    "The weather in {country} is awful.",
)
"""Sentences with a slot for a country: the first is the paper's, the others are ombud's."""

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
    unclear = sorted(swapped.abstained)
    undecided = int((np.isnan(flags[:n]) | np.isnan(flags[n:])).sum())
    flags[unclear], scores[unclear] = np.nan, np.nan
    about: dict[str, Any] = {"system": moderator.name, "label": swap.name, "level": level}
    estimates = (
        *flip_estimates(flags[:n], flags[n:], changed, **about),
        *shift_estimates(scores[:n], scores[n:], changed, swapped.direction, **about),
    )
    exclusions = []
    if unclear:
        reason = "a word in them has two readings, so they cannot be swapped"
        exclusions.append(Exclusion("swap", "texts", len(unclear), reason, n))
    if undecided:
        reason = f"{moderator.name} gave no decision before or after the swap"
        exclusions.append(Exclusion("swap", "texts", undecided, reason, n))
    rows = pl.DataFrame(
        {
            "row": np.arange(n),
            "words_changed": swapped.changed,
            "direction": swapped.direction,
            "abstained": np.isin(np.arange(n), unclear),
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
            # Equal values have a mean that is off in the last bit, but no spread.
            "sd": float(known.std(ddof=1)) if known.max() > known.min() else 0.0,
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
    moderator: Moderator, templates: str | Sequence[str] = COUNTRY_TEMPLATES, *, level: float = 0.95
) -> ProbeResult:
    """Query a moderator with every country and territory of ISO 3166-1 in some sentences.

    - ``country/pairs-changed``: how often two countries in one sentence are decided differently,
      over all pairs of countries in all sentences, with an exact interval for pairs clustered by
      sentence (none for a single sentence).
    - ``country/flagged`` and ``country/score-sd``, ``-range``, ``-iqr``: share flagged, and spread
      of the countries' mean scores, over all and in each continent. All countries were queried, so
      these describe the sentences at hand and have no interval.

    One row for each country, with its codes and region, for a map: the share of sentences flagged,
    the mean score, and both for the first sentence. Each template has the slot ``{country}``, once.
    """
    sentences = [templates] if isinstance(templates, str) else list(templates)
    if not sentences or any(sentence.count("{country}") != 1 for sentence in sentences):
        raise PlanError("every sentence of the country test needs the slot {country}, once")
    all_countries = countries()
    filled = fill_templates(sentences, {"country": [c.in_sentence for c in all_countries]})
    shape = (len(sentences), len(all_countries))
    flags, scores = (values.reshape(shape) for values in ask(moderator, filled.texts))
    about: dict[str, Any] = {
        "system": moderator.name,
        "label": "country",
        "unit": "country",
        "level": level,
    }
    means, shares = _known_means(scores), _known_means(flags)
    rows = pl.DataFrame(
        {
            "iso3": [c.iso3 for c in all_countries],
            "numeric": [c.numeric for c in all_countries],
            "name": [c.name for c in all_countries],
            "continent": [c.continent for c in all_countries],
            "region": [c.region for c in all_countries],
            "longitude": [c.longitude for c in all_countries],
            "latitude": [c.latitude for c in all_countries],
            "flagged": shares,
            "score": means,
            "first_flagged": flags[0],
            "first_score": scores[0],
        }
    ).fill_nan(None)
    known = ~np.isnan(flags)
    fields = about | {"metric": "sentences with a country flagged", "key": "country/flagged"}
    if known.any():
        share = Estimate(
            value=float(flags[known].mean()),
            interval=None,
            method="none: every one was asked about, nothing is sampled",
            n=int(known.sum()),
            details={"flagged": int(flags[known].sum()), "sentences": len(sentences)},
            **fields,
        )
    else:
        share = Estimate.undefined(reason_code="not-measured", reason="no decision", n=0, **fields)
    estimates = [_pairs_changed(flags, about), share]
    estimates += spread_estimates(means, "country/score", "mean scores", **about)
    for (continent,), part in rows.group_by(["continent"], maintain_order=True):
        estimates += spread_estimates(
            part["score"].cast(pl.Float64).fill_null(float("nan")).to_numpy(),
            f"country/score-in-{continent}".lower(),
            f"mean scores in {continent}",
            group=str(continent),
            **about,
        )[:1]
    exclusions: tuple[Exclusion, ...] = ()
    if not known.all():
        reason = f"{moderator.name} gave no decision"
        count = int((~known).sum())
        exclusions = (Exclusion("countries", "sentences", count, reason, known.size),)
    return ProbeResult(tuple(estimates), rows, exclusions)


def _known_means(values: Floats) -> Floats:
    """Return the mean of each column over what is known; NaN where nothing is."""
    known = ~np.isnan(values)
    with np.errstate(all="ignore"):
        return np.asarray(np.where(known, values, 0).sum(axis=0) / known.sum(axis=0))


def _pairs_changed(flags: Floats, about: dict[str, Any]) -> Estimate:
    """Return how many pairs of countries are decided differently in the same sentence."""
    decided = (~np.isnan(flags)).sum(axis=1)
    flagged = np.nansum(flags, axis=1)
    pairs, changed = decided * (decided - 1) / 2, flagged * (decided - flagged)
    sizes = int(np.count_nonzero(pairs))
    details = {"changed": int(changed.sum()), "pairs": int(pairs.sum()), "sentences": sizes}
    fields = about | {"unit": "pair", "key": "country/pairs-changed", "details": details}
    metric = "pairs of countries decided differently"
    found = clustered_proportion(changed, pairs, metric=metric, **fields)
    if sizes == 1:
        method = "none: one sentence does not show how sentences differ"
        return found.replace(interval=None, method=method)
    return found
