"""The warnings preset with labels that a detector gave: from files to report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import Result
from typer.testing import CliRunner

from ombud.audits import Audit, Plan
from ombud.cli import app
from ombud.data.dataset import Dataset
from ombud.data.tables import write_table
from ombud.errors import PlanError
from ombud.questions.warnings.preset import has_measured_labels
from ombud.report.report import Report
from ombud.systems.detectors import Head, NgramDetector
from ombud.worlds import small_world


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


LOUD, QUIET = ("a murder", "a shooting", "a brutal fight"), ("a wedding", "a walk", "a lost cat")


def synopses(violent: np.ndarray, rng: np.random.Generator) -> list[str]:
    """Four in five violent films sound violent, and one in ten of the others."""
    loud = rng.random(len(violent)) < np.where(violent, 0.8, 0.1)
    return [f"Film {i}: {rng.choice(LOUD if x else QUIET)} changes a town."
            for i, x in enumerate(loud)]  # fmt: skip


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("measured")
    world = small_world(seed=4, users=300, items=400)
    data, rng = world.dataset, np.random.default_rng(12)
    assert data.labels is not None and data.interactions is not None
    items = data.interactions.items.ids
    violent = world.truth.catalogue.true_labels[:, data.labels.names.index("violence")]
    plots = synopses(violent, rng)
    pl.DataFrame({"item": items, "text": plots}).write_csv(folder / "plots.csv")
    sample = rng.choice(len(items), 150, replace=False)
    known = {"label": ["violence"] * 150, "text": [plots[i] for i in sample]}
    pl.DataFrame(known | {"present": violent[sample]}).write_csv(folder / "watched.csv")
    more = rng.random(300) < 0.5
    texts = [f"Story {i}: {rng.choice(LOUD if x else QUIET)} at sea." for i, x in enumerate(more)]
    NgramDetector(head=Head(kind="binary", classes=2, cut=1), name="reader").fit(
        texts, more.astype(int)
    ).save(folder / "reader")
    write_table("interactions", data, folder / "ratings.parquet")
    write_table(
        "labels", Dataset(labels=data.labels.select(("violence",))), folder / "true.parquet"
    )
    words = ["text", "label", folder / "plots.csv", "--detector", f"violence={folder}/reader"]
    words += ["--validation", folder / "watched.csv", "--to", folder / "labels.parquet"]
    done = run(*words)
    assert done.exit_code == 0, done.output
    assert "errors measured on 150 texts" in done.output
    return folder


def plan(folder: Path, labels: str, more: str = "") -> Plan:
    file = folder / "plan.toml"
    file.write_text(
        f'preset = "warnings"\n[options]\nk = 10\ntrained = ["Random", "TopPop"]\n{more}\n'
        f'[data]\ninteractions = "ratings.parquet"\nlabels = "{labels}"\n'
        "[statistics]\nreplicates = 200\n"
    )
    return Plan.load(file)


def test_error_rates_are_carried_from_a_plan_into_the_interval(project: Path) -> None:
    assert has_measured_labels(plan(project, "labels.parquet"))
    assert not has_measured_labels(plan(project, "true.parquet"))
    result = Audit.from_plan(plan(project, "labels.parquet")).run()
    amplified = [i.key for i in result.metrics if i.key.startswith("amplification")]
    assert len(amplified) == 2 and all("form=ratio-of-means" in key for key in amplified)
    at = {e.system: e for e in result.estimates if e.key.startswith("amplification(")
          and e.kind == "level" and e.label == "violence" and not e.group}  # fmt: skip
    # The same labels taken at their word: as sure of the detector as of the users.
    word = pl.read_parquet(project / "labels.parquet").select("item", "label", "state")
    word.write_parquet(project / "word.parquet")
    more = 'forms = ["ratio-of-means"]\nbounds = false'
    naive = Audit.from_plan(plan(project, "word.parquet", more)).run()
    plain = {e.system: e for e in naive.estimates if e.key.startswith("amplification(")
             and e.kind == "level" and e.label == "violence" and not e.group}  # fmt: skip
    assert set(at) == set(plain) == {"Random", "TopPop"}
    for name, e in at.items():
        wide, narrow = (x.interval[1] - x.interval[0] for x in (e, plain[name]))
        assert wide > narrow
    assert "its errors were measured on 150 texts" in Report(result).html()


def test_forms_that_cannot_be_corrected_are_refused_when_asked_for(project: Path) -> None:
    audit = Audit.from_plan(plan(project, "labels.parquet", 'forms = ["mean"]'))
    with pytest.raises(PlanError, match="ratio-of-means"):
        audit.run()


def test_labels_without_a_folder_are_refused(project: Path) -> None:
    common = ["text", "label", project / "plots.csv", "--validation", project / "watched.csv",
              "--to", project / "x.parquet"]  # fmt: skip
    for given, words in ((["violence"], "LABEL=FOLDER"), ([f"a={project}/reader"] * 2, "twice"),
                         ([f"a={project}"], "holds no detector")):  # fmt: skip
        options = [part for one in given for part in ("--detector", one)]
        done = run(*common, *options)
        assert done.exit_code != 0 and words in done.output
    assert not (project / "x.parquet").exists()
