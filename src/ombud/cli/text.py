"""Texts: candidates for annotation from a corpus, scores of files, labels of items."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

import typer

from ombud.cli.console import JsonOption, console, print_json, progress_bar, reports_errors, say
from ombud.errors import DataError, PlanError

app = typer.Typer(
    help="Find delicate texts in a corpus, train detectors, score texts, and label items by them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
@reports_errors
def source(
    files: Annotated[
        list[Path],
        typer.Argument(help="JSONL, CSV, TSV, Parquet, text, WARC or WET files, also as gzip."),
    ],
    to: Annotated[Path, typer.Option("--to", help="The folder to write.")],
    size: Annotated[int, typer.Option(min=1, help="Texts wanted in all.")] = 10_000,
    pilot: Annotated[
        bool, typer.Option("--pilot", help="A first sample, written to the folder's 'pilot'.")
    ] = False,
    pilot_size: Annotated[int, typer.Option(min=1, help="Texts of the pilot.")] = 500,
    no_pilot: Annotated[
        bool, typer.Option("--no-pilot", help="Go on without a pilot, against advice.")
    ] = False,
    domains: Annotated[
        Path | None,
        typer.Option(
            help="TOML file: kinds of sites, their domains and quotas; or sites@1, ombud's list."
        ),
    ] = None,
    dictionary: Annotated[
        Path | None, typer.Option(help="CSV file of terms that extends ombud's dictionary.")
    ] = None,
    only: Annotated[
        bool, typer.Option("--only", help="Use the terms of --dictionary alone.")
    ] = False,
    control: Annotated[float, typer.Option(help="The share of texts without any term.")] = 0.1,
    near: Annotated[
        float, typer.Option(help="Similarity of near duplicates; 0 finds exact ones alone.")
    ] = 0.8,
    shortest: Annotated[int, typer.Option(help="Fewest characters of a paragraph.")] = 40,
    longest: Annotated[int, typer.Option(help="Most characters of a paragraph.")] = 5_000,
    language: Annotated[str, typer.Option(help="Keep documents of this language alone.")] = "",
    splits: Annotated[
        str, typer.Option(help="Parts of the sample and their shares.")
    ] = "train=0.8,validation=0.1,test=0.1",
    text_column: Annotated[str, typer.Option(help="The column of texts in a table.")] = "text",
    url_column: Annotated[str, typer.Option(help="The column of addresses.")] = "url",
    seed: Annotated[int, typer.Option(min=0, help="Chooses the sample.")] = 0,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop when a file cannot be read to its end.")
    ] = False,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Choose texts for annotation from a corpus: stratified, without duplicates, with controls.

    \b
    Example:
      ombud text source crawl/*.wet.gz --domains sites.toml --to candidates --pilot
      ombud text source crawl/*.wet.gz --domains sites.toml --to candidates
    """
    from ombud.taxonomy import load_dictionary
    from ombud.taxonomy.dictionary import read_dictionary
    from ombud.text.documents import Columns
    from ombud.text.domains import read_domains
    from ombud.text.sourcing import Sourcing, pilot_ids, source_texts, write_sourced

    if only and dictionary is None:
        raise PlanError("--only needs --dictionary")
    words = load_dictionary()
    if dictionary is not None:
        own = read_dictionary(dictionary)
        words = own if only else words.extended(own)
    sites = read_domains(domains) if domains is not None else None
    folder = to / "pilot" if pilot else to
    if (folder / "sourced.json").exists():
        raise PlanError(f"{folder} holds a finished run; choose another folder")
    without: list[str] = []
    if not pilot and not no_pilot:
        digest = sites.digest if sites else ""
        without = pilot_ids(to / "pilot", dictionary=words.digest, domains=digest)
    settings = Sourcing(
        size=pilot_size if pilot else size,
        control=control,
        shortest=shortest,
        longest=longest,
        near_duplicates=near or None,
        language=language,
        splits=_shares(splits),
        seed=seed,
    )
    with progress_bar() as show:
        found = source_texts(
            files,
            dictionary=words,
            domains=sites,
            settings=settings,
            columns=Columns(text=text_column, url=url_column),
            without=without,
            progress=show,
        )
    if strict and found.damaged:
        faults = [f"{name}: {reason}" for name, reason in found.damaged.items()]
        raise DataError("sourcing", [*faults, "nothing was written, because of --strict"])
    write_sourced(folder, found)
    if as_json:
        print_json(
            {
                "folder": str(folder),
                "facts": found.facts,
                "damaged": found.damaged,
                "left_out": [exclusion.to_dict() for exclusion in found.exclusions],
                "table": found.table.to_dicts(),
            }
        )
        return
    for name, reason in found.damaged.items():
        say(f"DAMAGED {name}: {reason}")
    if found.shortfall > 0:
        say(f"{found.shortfall:,} of {settings.size:,} texts wanted were not found")
    from rich.table import Table
    from rich.text import Text

    # Without kinds of sites their column says nothing, and the others fit into a terminal.
    cells = ["topic", "severity", "wanted", "found", "distinct", "sampled"]
    table = Table(box=None)
    for cell in (cells := cells if sites is None else ["kind", *cells]):
        table.add_column(cell, overflow="fold")
    for row in found.table.filter(found.table["mentioned"] > 0).iter_rows(named=True):
        table.add_row(*(Text(str(row[cell])) for cell in cells))
    console.print(table)
    for exclusion in found.exclusions:
        say(f"  {exclusion}")
    _say_mended(found.facts["read with replacement characters"])
    say(f"{found.candidates.height:,} texts in {folder / 'candidates.parquet'}")


def _shares(splits: str) -> dict[str, float]:
    """Read parts and their shares: train=0.8,test=0.2."""
    found: dict[str, float] = {}
    for one in splits.split(","):
        name, equals, share = (word.strip() for word in one.partition("="))
        try:
            value = float(share)
        except ValueError:
            value = float("nan")
        if not name or not equals or name in found or not 0 <= value <= 1:
            raise PlanError(
                f"--splits {splits}: {one.strip()!r} is not a part and its share, such as train=0.8"
            )
        found[name] = value
    return found


def _say_mended(mended: Mapping[str, int]) -> None:
    for what, count in mended.items():
        say(f"  used with replacement characters: {count:,} {what}")


@app.command()
@reports_errors
def train(
    texts: Annotated[
        Path,
        typer.Argument(
            help="A table with text and risk (0 to 5), label (true or false) or annotator_1, "
            "annotator_2 ...; or the folder of an annotation project."
        ),
    ],
    to: Annotated[Path, typer.Option("--to", help="The folder of the detector; new or empty.")],
    model: Annotated[
        str, typer.Option(help="embeddings (package wordllama), minilm (needs torch), or ngrams.")
    ] = "embeddings",
    recipe: Annotated[
        str, typer.Option(help="'published': fine-tune a transformer as the DeTexD paper does.")
    ] = "",
    base: Annotated[
        Path | None,
        typer.Option(help="The folder of the checkpoint to fine-tune, such as RoBERTa base."),
    ] = None,
    head: Annotated[
        str, typer.Option(help="For risks: multiclass, ordinal or binary.")
    ] = "multiclass",
    calibration: Annotated[
        str, typer.Option(help="How scores become probabilities: platt, isotonic or none.")
    ] = "platt",
    test: Annotated[
        Path | None, typer.Option(help="A table of test texts; default, a part of the texts.")
    ] = None,
    validation_share: Annotated[
        float, typer.Option(help="The share of texts that tune and calibrate.")
    ] = 0.15,
    test_share: Annotated[float, typer.Option(help="The share of texts to test on.")] = 0.15,
    near: Annotated[
        float, typer.Option(help="Similarity from which texts of two parts are duplicates.")
    ] = 0.8,
    updates: Annotated[int, typer.Option(min=1, help="Steps of the published recipe.")] = 2_000,
    seed: Annotated[int, typer.Option(min=0, help="Of the split and of training.")] = 0,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Train a detector, calibrate its probabilities, and test it on texts held out.

    Texts of the training part that nearly repeat a held-out text are dropped and counted. The
    folder also gets a reliability diagram. An interrupted training of a transformer resumes.

    \b
    Examples:
      ombud text train labels.parquet --to my-detector
      ombud text train project --to my-detector --model ngrams
      ombud text train ratings.csv --to my-detector --recipe published --base roberta-base
    """
    from ombud.app.project import Project
    from ombud.app.tables import labels_table
    from ombud.systems.detectors import TransformerDetector
    from ombud.systems.detectors.heads import HeadKind
    from ombud.systems.detectors.training import (
        TrainedModel,
        head_for,
        make_detector,
        read_labeled,
        train_detector,
    )
    from ombud.systems.detectors.transformer import Recipe

    faults = [
        f"--{name} {value!r} is not one of {', '.join(known)}"
        for name, value, known in (
            ("model", model, get_args(TrainedModel)[:-1]),
            ("recipe", recipe, ("published", "")),
            ("head", head, get_args(HeadKind)),
            ("calibration", calibration, ("platt", "isotonic", "none")),
        )
        if value not in known
    ]
    if recipe and (base is None or not base.is_dir()):
        faults.append("--recipe published needs --base, the folder of a checkpoint on this machine")
    if base is not None and not recipe:
        faults.append("--base is for --recipe published")
    if to.exists() and any(to.iterdir()):
        faults.append(f"{to} is not empty; choose a new folder")
    if faults:
        raise PlanError("; ".join(faults))
    table: Any = texts
    if texts.is_dir():
        if not Project.holds_one(texts):
            raise PlanError(f"{texts} is neither a table nor an annotation project")
        with Project(texts) as project:
            settings = project.settings
            table = project.store.read(lambda db: labels_table(db, settings))
            table = table.select("text", "risk")
    data = read_labeled(
        table, test=test, shares=(validation_share, test_share), near=near, seed=seed
    )
    made = head_for(data, cast(HeadKind, head))
    detector: Any = make_detector(cast(TrainedModel, model), made, seed=seed)
    work = to.with_name(f"{to.name}.training")
    if recipe:
        if not data.graded:
            raise PlanError("the published recipe learns risks from 0 to 5; these texts have none")
        steps = Recipe(updates=updates, seed=seed)
        detector = TransformerDetector(head=made, base=str(base), recipe=steps)
    with progress_bar() as show:
        found = train_detector(
            data,
            detector,
            folder=work,
            probabilities=cast(Literal["platt", "isotonic", "none"], calibration),
            progress=show,
        )
    found.detector.save(to)
    (to / "reliability.svg").write_text(_reliability(found.reliability), encoding="utf-8")
    shutil.rmtree(work, ignore_errors=True)
    if as_json:
        left = [str(one) for one in found.exclusions]
        sizes = {part: len(some) for part, some in data.texts.items()}
        print_json({"to": str(to), "detector": found.detector.version, "texts": sizes,
                    "tried": list(found.tried), "test": found.test, "left_out": left,
                    "reliability": list(found.reliability)})  # fmt: skip
        return
    for exclusion in found.exclusions:
        say(f"  {exclusion}")
    say(", ".join(f"{len(some):,} {part} texts" for part, some in data.texts.items()))
    result = found.test
    if result["part"] == "validation":
        say("no text is left to test on: these figures are of the validation texts, so too good")
    for name in ("precision", "recall", "f1"):
        if result[name] is not None:
            low, high = result[f"{name} interval"]
            say(f"{name}: {result[name]:.3f} (95% CI {low:.3f} to {high:.3f})")
    say(f"calibration error: {result['calibration error']:.3f} "
        f"({result['calibration error before calibration']:.3f} before calibration)")  # fmt: skip
    say(f"threshold: {found.detector.version}, {found.detector.calibrated}")
    say(f"detector in {to}, with a reliability diagram in {to / 'reliability.svg'}")


def _reliability(rows: Sequence[Mapping[str, float]]) -> str:
    from ombud.report import charts

    line = charts.Line(
        "held-out texts",
        [(row["predicted"], row["share"]) for row in rows],
        [(row["predicted"], row["low"], row["high"]) for row in rows],
    )
    return charts.plane(
        "Reliability: texts that are delicate, by predicted probability (band: 95% CI)",
        [line],
        x=("predicted probability", 0.0, 1.0),
        y=("share that is delicate", 0.0, 1.0),
        equal=True,
    )


@app.command()
@reports_errors
def score(
    files: Annotated[
        list[Path],
        typer.Argument(help="JSONL, CSV, TSV, Parquet, text, WARC or WET files, also as gzip."),
    ],
    detector: Annotated[Path, typer.Option("--detector", help="The folder of a saved detector.")],
    to: Annotated[Path, typer.Option("--to", help="The Parquet file to write.")],
    text_column: Annotated[str, typer.Option(help="The column of texts in a table.")] = "text",
    id_column: Annotated[str, typer.Option(help="The column of names of texts.")] = "id",
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Score every text of some files with a detector.

    In plain text files, what stands between blank lines is a text.

    \b
    Example:
      ombud text score comments.parquet --detector my-detector --to scores.parquet
    """
    from ombud.systems.detectors import load_detector, score_files
    from ombud.text.documents import Columns

    model = load_detector(detector)
    with progress_bar() as show:
        columns = Columns(text=text_column, id=id_column)
        found = score_files(model, files, to, columns=columns, progress=show)
    if as_json:
        print_json(asdict(found) | {"to": str(to), "detector": model.version})
        return
    for name, reason in found.damaged.items():
        say(f"DAMAGED {name}: {reason}")
    for exclusion in found.exclusions:
        say(f"  {exclusion}")
    _say_mended(found.mended)
    say(f"{found.flagged:,} of {found.texts:,} texts are delicate by {model.version}")
    if model.rule == "threshold":
        say(f"threshold: {model.calibrated or 'not calibrated'}")
    if found.long:
        say(
            f"{found.long:,} texts were longer than the model's window and read in windows "
            f"({model.long_texts}); cut, {found.cut_differs:,} of them would be decided otherwise"
        )
    say(f"scores in {to}")


@app.command()
@reports_errors
def label(
    items: Annotated[
        Path, typer.Argument(help="CSV, TSV, Parquet or JSONL file with item and text.")
    ],
    detector: Annotated[
        list[str], typer.Option("--detector", help="LABEL=FOLDER: a label, and the detector of it.")
    ],
    validation: Annotated[
        Path, typer.Option(help="File with label, text and present: texts that people labelled.")
    ],
    to: Annotated[Path, typer.Option("--to", help="The Parquet file of labels to write.")],
    calibration: Annotated[
        bool,
        typer.Option(
            "--calibration", help="Withdrawn, and refused: it pulled differences towards none."
        ),
    ] = False,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Label items by their texts, with the error rates of the detectors measured.

    The file can stand as `labels` in a plan: shares and amplification are corrected for the errors,
    and their intervals carry them.

    \b
    Example:
      ombud text label synopses.csv --detector violence=my-detector \\
        --validation watched.csv --to labels.parquet
    """
    from ombud.data.dataset import Dataset
    from ombud.data.label_errors import WITHDRAWN
    from ombud.data.tables import write_table
    from ombud.systems.detectors import load_detector
    from ombud.systems.labelling import labels_from_texts

    if calibration:
        raise PlanError(WITHDRAWN)
    systems = {}
    for given in detector:
        name, equals, folder = given.partition("=")
        if not equals or not name or not folder:
            raise PlanError(f"--detector {given}: LABEL=FOLDER was expected")
        if name in systems:
            raise PlanError(f"--detector names {name} twice")
        systems[name] = load_detector(folder)
    labels = labels_from_texts(str(items), systems, str(validation))
    to.parent.mkdir(parents=True, exist_ok=True)
    write_table("labels", Dataset(labels=labels), to)
    if as_json:
        counts = labels.counts().to_dicts()
        left = [str(exclusion) for exclusion in labels.exclusions]
        print_json({"to": str(to), "rule": labels.rule, "labels": counts, "left_out": left})
        return
    for exclusion in labels.exclusions:
        say(f"  {exclusion}")
    for row in labels.counts().to_dicts():
        say(f"{row['label']}: yes {row['yes']:,}, no {row['no']:,}, unknown {row['unknown']:,}")
    say(labels.rule)
    say(f"labels in {to}")
