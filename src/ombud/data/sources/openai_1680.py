"""Prompts that OpenAI published with eight labels, many of them missing."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl

from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.faults import first_rows
from ombud.data.sources.labelled import HATE_HARMS, file_in, text_dataset
from ombud.errors import DataError
from ombud.registry import source
from ombud.taxonomy.resources import is_refused

CATEGORIES = ("H", "H2", "HR", "S", "SH", "V", "V2")
"""Hate, hate with threats, harassment, sexual, self-harm, violence, graphic violence."""

_REFUSED = "S3"

_TYPES = {
    "H": "hate",
    "H2": "hate/threatening",
    "HR": "harassment",
    "S": "sexual",
    "SH": "self-harm",
    "V": "violence",
    "V2": "violence/graphic",
}


@source("openai-1680")
def openai_1680(
    path: str | Path,
    *,
    missing: Literal["unknown", "acceptable"] = "unknown",
    label: Literal["any", "H", "H2", "HR", "S", "SH", "V", "V2", "all"] = "any",
) -> Dataset:
    """Prompts that OpenAI labelled in up to eight categories (Markov et al. 2023).

    A prompt should be flagged when some category says so. Rows of the eighth category, which is
    about minors, are dropped and counted, and the category is not read otherwise.

    Licence: MIT. Known harms: hate, sexual and violent content, self-harm.

    Parameters
    ----------
    path
        ``samples-1680.jsonl`` (or ``.jsonl.gz``), or its folder: `prompt` and one key for each
        category that was labelled, 0 or 1.
    missing
        What a prompt is when no label says 1 and some are missing: ``unknown``, or
        ``acceptable``, as the speech-suppression paper has it.
    label
        What makes a prompt one that should be flagged: some category, or one alone (hate,
        hate with threats, harassment, sexual, self-harm, violence, graphic violence); ``all``
        measures some category (which counts for all texts) and each alone, with each text once.
    """
    chosen = CATEGORIES if label in ("any", "all") else (label,)
    types = (
        {"overall": CATEGORIES} | {_TYPES[c]: (c,) for c in CATEGORIES} if label == "all" else {}
    )
    file = file_in(path, "samples-1680.jsonl", "samples-1680.jsonl.gz")
    rows: list[dict[str, Any]] = []
    refused = total = 0
    wrong: list[int] = []
    for number, row in _rows(file):
        total += 1
        if row is None:
            wrong.append(number)
        elif any(_is_one(v) for k, v in row.items() if k == _REFUSED or is_refused(k)):
            refused += 1
        else:
            given = {"id": number, "text": row["prompt"], "label": _flag(row, chosen, missing)}
            typed = {f"label:{name}": _flag(row, some, missing) for name, some in types.items()}
            rows.append(given | typed)
    if wrong:
        where = first_rows(wrong, len(wrong))
        raise DataError(file.name, [f"no JSON object with a text 'prompt' in {where}"])
    dropped = []
    if refused:
        reason = "content that ombud refuses to store"
        dropped.append(Exclusion("texts", "prompts", refused, reason, total))
    labels = dict.fromkeys(["label", *(f"label:{name}" for name in types)], pl.Boolean)
    return text_dataset(
        pl.DataFrame(rows, schema={"id": pl.Int64, "text": pl.String, **labels}),
        family="generative-ai",
        files=[file],
        exclusions=dropped,
        name="openai-1680",
        title="Prompts with moderation labels by OpenAI"
        + ("" if label in ("any", "all") else f", {label}"),
        source="github.com/openai/moderation-api-release",
        licence="MIT",
        citation="Markov et al. (2023), A Holistic Approach to Undesired Content Detection in the "
        "Real World, AAAI.",
        known_harms=f"{HATE_HARMS} Also sexual and violent content, and self-harm.",
        unknowns=f"A prompt without a label that says 1 and with labels missing is {missing}.",
    )


def _rows(file: Path) -> list[tuple[int, dict[str, Any] | None]]:
    result: list[tuple[int, dict[str, Any] | None]] = []
    with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line.decode("utf-8", "replace"))
            except json.JSONDecodeError:
                row = None
            whole = isinstance(row, dict) and isinstance(row.get("prompt"), str)
            result.append((number, row if whole else None))
    return result


def _flag(row: dict[str, Any], categories: Sequence[str], missing: str) -> bool | None:
    """Return whether some category says that a prompt should be flagged; None where unknown."""
    labels = [_bit(row.get(category)) for category in categories]
    if 1 in labels:
        return True
    return False if missing == "acceptable" or None not in labels else None


def _is_one(value: Any) -> bool:
    return _bit(value) == 1


def _bit(value: Any) -> int | None:
    """Return 0 or 1; None where nobody labelled."""
    return int(value) if value in (0, 1, "0", "1", 0.0, 1.0) else None
