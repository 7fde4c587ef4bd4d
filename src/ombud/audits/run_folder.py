"""The folder of a run: each step is stored when it is done, and a killed run goes on from there."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from ombud import registry
from ombud.audits.provenance import file_hashes
from ombud.audits.result import RESULT_SCHEMA, Result
from ombud.data.decisions import Decisions
from ombud.data.exclusions import Exclusion
from ombud.data.groups import Grouping
from ombud.data.predictions import Predictions
from ombud.data.recommendations import Recommendations
from ombud.errors import ResultError
from ombud.files import (
    inside,
    is_leftover,
    read_json,
    read_parquet,
    sweep,
    write_json,
    write_parquet,
    write_text,
)
from ombud.metrics.base import Outputs, Rows


def read_outputs(folder: Path, system: str) -> Outputs | None:
    """Return what a system answered, as stored in a result folder; None if nothing is stored."""
    path = inside(folder, "outputs", f"{system}.parquet")
    if not path.exists():
        return None
    frame = read_parquet(path)
    outputs: Outputs
    if "items" in frame.columns:
        outputs = _read_lists(path, frame)
    else:
        outputs = Decisions.from_frame(frame, source=str(path))
    left_out = _read_exclusions(inside(folder, "outputs", f"{system}.json"))
    return replace(outputs, exclusions=left_out)


def _read_lists(path: Path, frame: pl.DataFrame) -> Recommendations:
    try:
        return Recommendations.from_lists(frame)
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        raise ResultError(f"{path} is damaged: {error}") from None


def _read_exclusions(path: Path) -> tuple[Exclusion, ...]:
    try:
        return tuple(Exclusion(**e) for e in read_json(path)["exclusions"])
    except (KeyError, TypeError) as error:
        raise ResultError(f"{path} is damaged: {error}") from None


def read_predictions(folder: Path, system: str) -> Predictions | None:
    """Return what a system predicted, as stored in a result folder; None if nothing is stored."""
    path = inside(folder, "predictions", f"{system}.parquet")
    return Predictions.from_frame(read_parquet(path)) if path.exists() else None


def read_groups(folder: Path, of: Literal["user", "text"]) -> Grouping | None:
    """Return the groups of users or texts, as stored in a result folder; None without any."""
    path = inside(folder, "groups", f"{of}.parquet")
    return Grouping.from_members(read_parquet(path), unit=of) if path.exists() else None


class RunFolder:
    """Stores the steps of one run.

    ``run.json`` and ``plan.toml`` hold the plan as it is, terms of a keyword moderator included:
    without them the run could not be repeated. Reports show their number and hash instead.

    The folder is made if need be; one that holds a run with another fingerprint is refused. The
    plan is TOML text.
    """

    def __init__(self, path: Path, fingerprint: Mapping[str, Any], plan: str) -> None:
        self.path = path
        marker = path / "run.json"
        if marker.exists():
            result = {k: v for k, v in read_json(marker).items() if k != "schema_version"}
            differing = sorted(k for k in fingerprint if result.get(k) != fingerprint[k])
            if differing:
                raise ResultError(
                    f"{path} holds another run (different: {', '.join(differing)}). "
                    "Choose another folder, or delete this one."
                )
        elif path.exists() and not all(is_leftover(p, marker.name) for p in path.iterdir()):
            raise ResultError(f"{path} is not empty and holds no run; choose another folder")
        write_json(marker, {**fingerprint, "schema_version": RESULT_SCHEMA})
        write_text(path / "plan.toml", plan)

    def outputs(self, system: str) -> Outputs | None:
        """Return the stored answers of a system, or None."""
        return read_outputs(self.path, system)

    def store_outputs(self, system: str, outputs: Outputs) -> None:
        """Store all answers of a system with what it left out, and forget its parts."""
        left_out = inside(self.path, "outputs", f"{system}.json")
        write_json(left_out, {"exclusions": [e.to_dict() for e in outputs.exclusions]})
        frame = outputs.to_lists() if isinstance(outputs, Recommendations) else outputs.to_frame()
        write_parquet(inside(self.path, "outputs", f"{system}.parquet"), frame)
        for part in self._parts(system):
            part.unlink()
            part.with_suffix(".json").unlink(missing_ok=True)

    def predictions(self, system: str) -> Predictions | None:
        """Return the stored predictions of a system, or None."""
        return read_predictions(self.path, system)

    def store_predictions(self, system: str, predictions: Predictions) -> None:
        """Store the predictions of a system."""
        path = inside(self.path, "predictions", f"{system}.parquet")
        write_parquet(path, predictions.to_frame())

    def part(self, system: str, number: int, ask: Callable[[], Recommendations]) -> Recommendations:
        """Return one stored part of a system's answers, asking for it when it is not there."""
        path = inside(self.path, "outputs", "parts", f"{system}-{number:06d}.parquet")
        if path.exists():
            left_out = _read_exclusions(path.with_suffix(".json"))
            return replace(_read_lists(path, read_parquet(path)), exclusions=left_out)
        answer = ask()
        told = {"exclusions": [e.to_dict() for e in answer.exclusions]}
        write_json(path.with_suffix(".json"), told)
        write_parquet(path, answer.to_lists())
        return answer

    def _parts(self, system: str) -> list[Path]:
        return sorted((self.path / "outputs" / "parts").glob(f"{system}-??????.parquet"))

    def store_rows(self, metric: int, system: str, rows: Rows) -> None:
        """Store what a metric measured on a system."""
        path = inside(self.path, "rows", f"{metric:02d}", f"{system}.parquet")
        write_parquet(path, rows.to_frame())

    def store_groups(self, users: Grouping | None, texts: Grouping | None) -> None:
        """Store who belongs to which group, so that results can be compared by group."""
        for name, groups in (("user", users), ("text", texts)):
            if groups is not None:
                path = inside(self.path, "groups", f"{name}.parquet")
                write_parquet(path, groups.to_members(name))

    def finish(self, result: Result) -> Result:
        """Store estimates and tables, and the provenance last: then the result is complete.

        Returns
        -------
        The result with the hashes of its files in its provenance.
        """
        for name, table in result.tables.items():
            write_parquet(inside(self.path, "tables", f"{name}.parquet"), table)
        write_json(self.path / "estimates.json", result.to_dict())
        verdict = registry.get("verdict", "ombud")(result)
        write_json(self.path / "verdict.json", verdict)
        # What runs that were killed had begun, or had not come to forget.
        shutil.rmtree(self.path / "outputs" / "parts", ignore_errors=True)
        sweep(self.path)
        provenance = {**result.provenance, "files": file_hashes(self.path)}
        write_json(self.path / "provenance.json", provenance)
        return replace(result, provenance=provenance, verdict=verdict)
