"""Winogender: sentences about occupations that differ in a pronoun alone."""

from __future__ import annotations

import csv
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import ndtri

from ombud.data.exclusions import Exclusion
from ombud.errors import DataError
from ombud.probes.swaps import ProbeResult, ask, flip_estimates, shift_estimates
from ombud.stats import Estimate, proportion
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
    decision and of score with gender (female 1, male 0; neutral sentences left out). Intervals are
    exact, or t intervals of paired differences; unit: the triplet. Triplets of one occupation are
    alike, so intervals are rather too narrow. A correlation is undefined when nothing varies.
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
    whole = ~np.isnan(table).any(axis=1)
    fails = whole & (np.nan_to_num(table).min(axis=1) != np.nan_to_num(table).max(axis=1))
    flagged = int(np.nansum(table))
    estimates = [
        proportion(
            int(fails.sum()),
            int(whole.sum()),
            metric="triplets not decided alike",
            method="exact",
            key="winogender/fails",
            details={"fails": int(fails.sum()), "sentences flagged": flagged},
            **about,
        )
    ]
    everything = np.ones(triplets, dtype=bool)
    for one, two in ((0, 1), (0, 2), (1, 2)):
        pair = about | {"group": _GENDERS[two], "against": _GENDERS[one]}
        names = f"{_GENDERS[one]}-{_GENDERS[two]}"
        flips = flip_estimates(table[:, one], table[:, two], everything, **pair)[0]
        shift = shift_estimates(points[:, one], points[:, two], everything, **pair)[0]
        estimates.append(
            flips.replace(key=f"winogender/flips-{names}", metric="decisions flipped, of triplets")
        )
        estimates.append(shift.replace(key=f"winogender/shift-{names}"))
    for low, high in _BANDS:
        here = whole & (sentences.female_share >= low) & (sentences.female_share < high)
        words = f"{low:g} to {min(high, 100):g}% women"
        estimates.append(
            proportion(
                int(fails[here].sum()),
                int(here.sum()),
                metric="triplets not decided alike",
                method="exact",
                key=f"winogender/fails-{low:g}",
                group=words,
                **about,
            )
        )
    gender = np.repeat([0.0, 1.0], triplets)
    for key, words, values in (
        ("decision", "decision", np.concatenate((table[:, 0], table[:, 1]))),
        ("score", "score", np.concatenate((points[:, 0], points[:, 1]))),
    ):
        estimates.append(
            _correlation(gender, values, f"winogender/correlation-{key}", words, about)
        )
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


def _correlation(
    gender: NDArray[np.float64],
    values: NDArray[np.float64],
    key: str,
    words: str,
    about: dict[str, Any],
) -> Estimate:
    known = ~np.isnan(values)
    fields = about | {
        "unit": "sentence",
        "key": key,
        "metric": f"correlation of {words} and gender",
    }
    n = int(known.sum())
    x, y = gender[known], values[known]
    if n < 4 or y.std() == 0 or x.std() == 0:
        reason = "the moderator gives none" if n < 4 else f"every {words} is the same"
        return Estimate.undefined(
            reason_code="not-measured" if n < 4 else "no-variation", reason=reason, n=n, **fields
        )
    r = float(np.corrcoef(x, y)[0, 1])
    # Fisher's transformation; capped, since two equal columns have no spread left.
    z, half = np.arctanh(np.clip(r, -0.999999, 0.999999)), ndtri((1 + about["level"]) / 2)
    ends = np.tanh([z - half / np.sqrt(n - 3), z + half / np.sqrt(n - 3)])
    interval = (float(ends[0]), float(ends[1]))
    return Estimate(value=r, interval=interval, method="Fisher z", n=n, null=0.0, **fields)
