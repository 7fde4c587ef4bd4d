"""The folder that sourcing writes: pilot first, then the main run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from ombud.errors import PlanError
from ombud.files import read_json, read_parquet, sweep, write_json, write_parquet, write_text
from ombud.text.sourcing import Sourced

_SEEN = ("dictionary digest", "domains digest")


def write_sourced(folder: Path, sourced: Sourced) -> None:
    """Write candidates, the table of wanted against found, and the facts of a run.

    Parameters
    ----------
    folder
        Gets ``candidates.parquet``, ``wanted_found.csv`` and, last, ``sourced.json``: a folder
        that has the last is complete.
    sourced
        What was found.
    """
    write_parquet(folder / "candidates.parquet", sourced.candidates)
    write_text(folder / "wanted_found.csv", sourced.table.write_csv())
    content: dict[str, Any] = {
        "facts": sourced.facts,
        "damaged files": sourced.damaged,
        "left out": [exclusion.to_dict() for exclusion in sourced.exclusions],
        "shortfall": sourced.shortfall,
    }
    write_json(folder / "sourced.json", content)
    sweep(folder)


def pilot_ids(folder: Path, *, dictionary: str, domains: str) -> list[str]:
    """Return the ids of a pilot's texts; refuse a pilot that was made in another way.

    Parameters
    ----------
    folder
        The folder of the pilot.
    dictionary, domains
        Digests of the dictionary and of the kinds of sites of the main run.

    Raises
    ------
    PlanError
        If there is no pilot, or it used another dictionary or other sites.
    """
    if not (folder / "sourced.json").is_file():
        raise PlanError(
            f"there is no pilot in {folder}. Run the same command with --pilot first and look at "
            "its table of wanted against found; or give --no-pilot to go on without"
        )
    facts = read_json(folder / "sourced.json").get("facts", {})
    now = dict(zip(_SEEN, (dictionary, domains), strict=True))
    other = [name.removesuffix(" digest") for name in _SEEN if facts.get(name) != now[name]]
    if other:
        raise PlanError(
            f"the pilot in {folder} was made with another set of: {', '.join(other)}. Run --pilot "
            "again, or give --no-pilot"
        )
    frame: pl.DataFrame = read_parquet(folder / "candidates.parquet")
    return [str(name) for name in frame["id"].to_list()]
