"""Winogender: sentences about occupations that differ in a pronoun alone."""

from __future__ import annotations

import csv
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import stdtrit

from ombud.data.exclusions import Exclusion
from ombud.errors import DataError
from ombud.probes.swaps import ProbeResult, ask
from ombud.stats import Estimate
from ombud.stats.paired import mcnemar
from ombud.stats.proportions import clustered_proportion
from ombud.systems.base import Moderator

_GENDERS = ("male", "female", "neutral")
_BANDS = ((0.0, 25.0), (25.0, 50.0), (50.0, 75.0), (75.0, 100.01))


class Winogender(NamedTuple):
    """Triplets of sentences."""

    sentences: NDArray[np.object_]  # Triplets x 3: male, female, neutral
    occupation: list[str]  # the occupation of each triplet
    # Per cent of women in the occupation (United States, Bureau of Labor Statistics); NaN where it
    # is not known.
    female_share: NDArray[np.float64]


def read_winogender(folder: str | PathLike[str]) -> Winogender:
    """Read the published ``all_sentences.tsv`` and, if it is there, ``occupations-stats.tsv``.

    They are those of github.com/rudinger/winogender-schemas (MIT).

    References
    ----------
    Rudinger, Naradowsky, Leonard and Van Durme (2018), Gender bias in coreference resolution.
    """
    place = Path(folder)
    file = place / "all_sentences.tsv"
    if not file.is_file():
        raise DataError(str(place), ["there is no all_sentences.tsv; give the published folder"])
    found: dict[str, dict[str, str]] = {}
    faults = []
    with file.open(encoding="utf-8", newline="") as source:
        for number, row in enumerate(csv.DictReader(source, delimiter="\t"), start=2):
            name = (row.get("sentid") or "").removesuffix(".txt")
            triplet, _, gender = name.rpartition(".")
            if gender not in _GENDERS or not triplet or not row.get("sentence"):
                faults.append(f"row {number}: {name!r} is no id of a sentence, or has no sentence")
            else:
                found.setdefault(triplet, {})[gender] = row["sentence"]
    faults += [f"{t}: lacks a sentence" for t, s in found.items() if len(s) != 3]
    if faults or not found:
        raise DataError(str(file), faults[:20] or ["no sentences"])
    shares: dict[str, float] = {}
    stats = place / "occupations-stats.tsv"
    if stats.is_file():
        with stats.open(encoding="utf-8", newline="") as source:
            for row in csv.DictReader(source, delimiter="\t"):
                shares[row["occupation"]] = float(row["bls_pct_female"])
    occupation = [triplet.split(".")[0] for triplet in found]
    return Winogender(
        np.array([[s[g] for g in _GENDERS] for s in found.values()], dtype=object),
        occupation,
        np.array([shares.get(name, np.nan) for name in occupation]),
    )


def winogender_probe(
    moderator: Moderator, sentences: Winogender, *, level: float = 0.95
) -> ProbeResult:
    """Ask a moderator about triplets that differ in a pronoun alone.

    A triplet fails when its three decisions are not equal. Also: flips and score shifts for each
    pair of genders, failures by the share of women in the occupation, and the correlation of
    decision and of score with gender (female 1, male 0; neutral sentences are not used). Unit: the
    triplet. Triplets of one occupation are alike, so all intervals count occupations: exact ones
    for clustered units (`clustered_proportion`), t intervals of sums by occupation, and for the
    correlation a jackknife over occupations. A correlation is undefined when nothing varies.
    """
    triplets = len(sentences.sentences)
    flags, scores = ask(moderator, [str(text) for text in sentences.sentences.ravel()])
    table, points = flags.reshape(triplets, 3), scores.reshape(triplets, 3)
    about: dict[str, Any] = {
        "system": moderator.name,
        "label": "winogender",
        "unit": "triplet",
        "level": level,
    }
    jobs = np.unique(np.array(sentences.occupation), return_inverse=True)[1]
    whole: NDArray[np.bool_] = np.asarray(~np.isnan(table).any(axis=1))
    fails: NDArray[np.bool_] = np.asarray(
        whole & (np.nan_to_num(table).min(axis=1) != np.nan_to_num(table).max(axis=1))
    )

    def share(events: NDArray[np.bool_], units: NDArray[np.bool_], **fields: Any) -> Estimate:
        n_c = np.bincount(jobs[units])
        e_c = np.bincount(jobs[units], events[units])
        details = {"fails": int(events[units].sum()), "occupations": int((n_c > 0).sum())}
        details |= fields.pop("details", {})
        return clustered_proportion(e_c, n_c, details=details, **about | fields)

    estimates = [
        share(
            fails,
            whole,
            metric="triplets not decided alike",
            key="winogender/fails",
            details={"sentences flagged": int(np.nansum(table))},
        )
    ]
    for one, two in ((0, 1), (0, 2), (1, 2)):
        pair = {"group": _GENDERS[two], "against": _GENDERS[one]}
        names = f"{_GENDERS[one]}-{_GENDERS[two]}"
        both = ~np.isnan(table[:, one]) & ~np.isnan(table[:, two])
        flips = both & np.not_equal(table[:, one], table[:, two])
        up = int((flips & (table[:, two] == 1)).sum())
        total = int(flips.sum())
        counts: dict[str, float] = {"flips": total, "to flagged": up, "to allowed": total - up}
        counts["mcnemar mid-p"] = float(mcnemar(up, total - up))
        estimates.append(
            share(
                flips,
                both,
                metric="decisions flipped, of triplets",
                key=f"winogender/flips-{names}",
                details=counts,
                **pair,
            )
        )
        gap = points[:, two] - points[:, one]
        fields = about | pair | {"key": f"winogender/shift-{names}", "metric": "score shift"}
        estimates.append(_mean_by_cluster(gap, jobs, fields))
    for low, high in _BANDS:
        here = whole & (sentences.female_share >= low) & (sentences.female_share < high)
        words = f"{low:g} to {min(high, 100):g}% women"
        metric, key = "triplets not decided alike", f"winogender/fails-{low:g}"
        estimates.append(share(fails, here, metric=metric, key=key, group=words))
    gender = np.repeat([0.0, 1.0], triplets)
    twice = np.concatenate((jobs, jobs))
    for key, words, values in (
        ("decision", "decision", np.concatenate((table[:, 0], table[:, 1]))),
        ("score", "score", np.concatenate((points[:, 0], points[:, 1]))),
    ):
        fields = about | {"key": f"winogender/correlation-{key}"}
        estimates.append(_correlation(gender, values, twice, words, fields))
    exclusions: tuple[Exclusion, ...] = ()
    if not whole.all():
        reason = f"{moderator.name} gave no decision for one of the three"
        exclusions = (Exclusion("winogender", "triplets", int((~whole).sum()), reason, triplets),)
    rows = pl.DataFrame(
        {
            "occupation": sentences.occupation,
            "female_share": sentences.female_share,
            **{f"flagged_{name}": table[:, k] for k, name in enumerate(_GENDERS)},
            **{f"score_{name}": points[:, k] for k, name in enumerate(_GENDERS)},
        }
    ).fill_nan(None)
    return ProbeResult(tuple(estimates), rows, exclusions)


def _mean_by_cluster(
    values: NDArray[np.float64], clusters: NDArray[np.int64], fields: dict[str, Any]
) -> Estimate:
    """Return a mean with the t interval of its sums by cluster."""
    known = ~np.isnan(values)
    if not known.any():
        reason = "the moderator gives no scores"
        return Estimate.undefined(reason_code="not-measured", reason=reason, n=0, **fields)
    y, place = values[known], np.unique(clusters[known], return_inverse=True)[1]
    groups, n = int(place.max()) + 1, len(y)
    mean = float(y.mean())
    spread = float(np.sum(np.bincount(place, y - mean) ** 2))
    if groups < 2 or not spread > 0:
        method = "none: all occupations have the same mean, which is not certainty"
        return Estimate(value=mean, interval=None, method=method, n=n, **fields)
    error = np.sqrt(spread * groups / (groups - 1)) / n
    half = float(stdtrit(groups - 1, (1 + fields["level"]) / 2)) * error
    ends = (mean - half, mean + half)
    return Estimate(value=mean, interval=ends, method="t, clustered", n=n, null=0.0, **fields)


def _correlation(
    gender: NDArray[np.float64],
    values: NDArray[np.float64],
    clusters: NDArray[np.int64],
    words: str,
    fields: dict[str, Any],
) -> Estimate:
    known = ~np.isnan(values)
    fields = fields | {"unit": "sentence", "metric": f"correlation of {words} and gender"}
    n = int(known.sum())
    x, y, place = gender[known], values[known], clusters[known]
    if n < 4 or y.std() == 0 or x.std() == 0:
        reason = "the moderator gives none" if n < 4 else f"every {words} is the same"
        return Estimate.undefined(
            reason_code="not-measured" if n < 4 else "no-variation", reason=reason, n=n, **fields
        )
    # Sums without each occupation give every leave-one-out correlation at once.
    sums = np.array([np.bincount(place, part) for part in (np.ones(n), x, y, x * x, y * y, x * y)])
    whole = sums.sum(axis=1, keepdims=True)
    used = sums[0] > 0
    r = float(_pearson(whole)[0])
    left = _pearson((whole - sums)[:, used])
    groups = int(used.sum())
    if groups < 3 or np.isnan(left).any():
        reason = "none: too few occupations vary"
        return Estimate(value=r, interval=None, method=reason, n=n, null=0.0, **fields)
    # Fisher's transformation; capped, since two equal columns have no spread left.
    z = np.arctanh(np.clip(left, -0.999999, 0.999999))
    error = float(np.sqrt((groups - 1) / groups * np.sum((z - z.mean()) ** 2)))
    if not error > 1e-12:
        reason = "none: every occupation shows the same, which is not certainty"
        return Estimate(value=r, interval=None, method=reason, n=n, null=0.0, **fields)
    half = float(stdtrit(groups - 1, (1 + fields["level"]) / 2)) * error
    middle = float(np.arctanh(np.clip(r, -0.999999, 0.999999)))
    interval = (float(np.tanh(middle - half)), float(np.tanh(middle + half)))
    method = "Fisher z, jackknife over occupations"
    return Estimate(value=r, interval=interval, method=method, n=n, null=0.0, **fields)


def _pearson(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    n, x, y, xx, yy, xy = sums
    with np.errstate(all="ignore"):
        found = (n * xy - x * y) / np.sqrt((n * xx - x * x) * (n * yy - y * y))
    return np.asarray(found)
