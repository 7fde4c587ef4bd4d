"""The tables of a data set as files: one way to read them, and one to write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from ombud.data.exclusions import Exclusion
from ombud.data.faults import readable
from ombud.data.frames import (
    Column,
    Frame,
    MappedFile,
    open_frame,
    read_table,
    unreadable_names,
    without_copies,
)
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.interactions import Interactions
from ombud.data.items import Items
from ombud.data.labels import MEASURED, Labels, LabelState, Unlabeled
from ombud.data.reading import PLAIN, Reading, noting
from ombud.data.texts import Texts
from ombud.errors import DataError, OmbudError, PlanError
from ombud.files import write_atomically, write_parquet
from ombud.registry import hint

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset

_BLOCK = 1 << 20


@dataclass(frozen=True)
class TableOptions:
    """How the tables of a data set are read."""

    # As in `Interactions.from_frame`.
    rating_scale: tuple[float, float] | None = None
    duplicates: Literal["error", "last", "mean", "median"] = "error"
    missing: Literal["error", "drop"] = "error"
    # What a pair of item and label means that no row mentions, as in `Labels.from_applied`.
    unlabeled: Unlabeled | None = None
    # As in `Labels.from_votes`.
    threshold: float = 0.75
    strict: bool = False
    rule: str = "as stored"  # The words for how stored label states came about
    # The attributes of users or texts to compare by; None for all that a file has.
    by: tuple[str, ...] | None = None
    # The attributes of items that are compared; of the other columns those are read that can be
    # one, since a system may ask for them. Empty: all columns must be attributes.
    by_item: tuple[str, ...] = ()
    # By table, then by ombud's name: the name of a column in the file.
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # By table: how its file is written, where detection should not decide.
    reading: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    unread: tuple[str, ...] = ()  # Columns of the interactions that nothing in the audit reads


def read_labels(path: Frame, options: TableOptions) -> Labels:
    """Read labels from a file in any of the three forms, told apart by its columns.

    `state` (as ombud stores them), `yes` and `no` (votes), or `present` or nothing more (applied).

    Raises
    ------
    DataError
        Also when the rows only say yes and nobody said what a missing row means.
    """
    columns = _columns(path)
    forms = [
        [c for c in form if c in columns] for form in (("state",), ("yes", "no"), ("present",))
    ]
    told = [" and ".join(form) for form in forms if form]
    if len(told) > 1 and "state" not in columns:  # what ombud stores has votes beside the states
        fault = f"it has {' as well as '.join(told)}, which say the same in two ways; remove one"
        raise DataError(_file_name(path), [fault])
    if "state" in columns:
        stored = Labels.from_states(path, rule=options.rule)
        return stored.with_unlabeled("no") if options.unlabeled == "no" else stored
    if "yes" in columns or "no" in columns:
        voted = Labels.from_votes(path, threshold=options.threshold, strict=options.strict)
        return voted.with_unlabeled("no") if options.unlabeled == "no" else voted
    given = {"threshold": options.threshold, "strict": options.strict}
    unused = [k for k, v in given.items() if v != getattr(TableOptions, k)]
    if unused:
        fault = f"{' and '.join(unused)} are about votes, and there is no column 'yes' or 'no'"
        raise DataError(_file_name(path), [fault])
    labels = Labels.from_applied(path, unlabeled=options.unlabeled)
    if options.unlabeled is None and not (labels.states == LabelState.NO).any():
        raise DataError(
            _file_name(path),
            [
                "every row says that a label applies, so the plan must state what a missing row "
                'means. Set [data] unlabeled = "no" if every item was looked at for every label, '
                'or unlabeled = "unknown" if a missing row says nothing: no share can then be '
                "computed, because no item is known not to carry a label"
            ],
        )
    return labels


def _file_name(path: Frame) -> str:
    file = path.path if isinstance(path, MappedFile) else path
    return Path(file).name if isinstance(file, str | Path) else "the table"


# Columns that tell the forms of a table apart.
_FORM_COLUMNS = ("state", "yes", "no", "present", "group", "set", "user", "id", *MEASURED)


def has_label_errors(paths: Mapping[str, str | Path], options: TableOptions) -> bool:
    """Return whether labels have the measured errors of a system; looks at their columns alone."""
    files = _mapped(paths, options)
    return "labels" in files and {"state", *MEASURED} <= set(_columns(files["labels"]))


def _columns(path: Frame) -> list[str]:
    lazy, name = open_frame(path, wanted=_FORM_COLUMNS)
    with readable(name):
        found = list(lazy.collect_schema().names())
    if faults := unreadable_names(found):
        raise DataError(name, faults)
    return found


def _is_unnamed(column: str) -> bool:
    """Whether a column is the index of a frame that was written along: pandas names it so."""
    return column.strip() in {"", "index"} or column.startswith(("Unnamed: ", "__index_level_"))


def _groups(path: Frame, unit: str, options: TableOptions) -> Grouping | None:
    columns = _columns(path)
    if options.by == ():
        return None
    if "group" in columns and "group" not in (options.by or ()):
        grouping = Grouping.from_members(path, unit=unit)
        if options.by:
            # Attributes of the other table; one that no table has is refused later.
            grouping = grouping.select([name for name in options.by if name in grouping.attributes])
        return grouping
    unnamed = [place for place, c in enumerate(columns, start=1) if _is_unnamed(c)]
    if unnamed and not options.by:
        fault = (
            f"column {unnamed[0]} has no name (an index that was written along?); name it, leave "
            "it out, or say by which columns to compare: by = [...]"
        )
        raise DataError(_file_name(path), [fault])
    by = options.by or tuple(c for c in columns if c != unit)
    if not by:
        raise DataError(_file_name(path), [f"there is no attribute beside {unit!r} to group by"])
    return Grouping.from_frame(path, unit=unit, by=by)


def _interactions(path: Frame, options: TableOptions) -> Interactions:
    read = Interactions.from_frame(
        path,
        rating_scale=options.rating_scale,
        duplicates=options.duplicates,
        missing=options.missing,
        unread=options.unread,
    )
    if options.rating_scale is not None and not read.explicit:
        fault = "rating_scale is given, and there is no column 'rating'"
        raise DataError(_file_name(path), [fault])
    return read


def _text_labels(path: Frame) -> pl.DataFrame:
    """Return which texts should be flagged: `id` and `label`, or votes, one row for each text."""
    flag = Column("label", "flag", required=False, nullable=True)
    votes = [Column(name, "count", required=False, low=0) for name in ("yes", "no")]
    table = read_table(path, [Column("id", "id"), flag, *votes])
    if "label" not in table.columns and not {"yes", "no"} <= set(table.columns):
        raise DataError(_file_name(path), ["it has no column 'label' that says yes or no"])
    table, _ = without_copies(table, "")
    again = table.filter(pl.col("id").is_duplicated())["id"]
    if len(again):
        fault = f"text {again[0]!r} has several rows that differ; if they are of several annotators"
        raise DataError(
            _file_name(path), [f"{fault}, set votes = true in [data.reading.text_labels]"]
        )
    return table


def _with_labels(texts: Texts | None, labels: pl.DataFrame, name: str) -> Texts:
    """Return texts with the labels that another file states."""
    if texts is None or (texts.truth >= 0).any():
        told = "there are no texts" if texts is None else "the texts have labels of their own"
        raise PlanError(f"[data] text_labels: {told}; remove text_labels")
    known, order = Vocabulary.encode(labels["id"].to_arrow())
    codes = known.codes(texts.ids)
    rows = np.append(np.argsort(order), -1)[codes]
    made: dict[str, Any] = {}
    for column in ("yes", "no"):
        if column in labels.columns:
            counts = np.append(labels[column].to_numpy(), 0).astype(np.int32)
            made[column] = counts[rows]
    if "label" in labels.columns:
        said = labels["label"].cast(pl.Int8).fill_null(-1).to_numpy()
        made["truth"] = np.append(said, np.int8(-1))[rows]
    else:
        yes, no = made["yes"], made["no"]
        made["truth"] = np.where(yes == no, -1, yes > no).astype(np.int8)
    lost, other = int((codes < 0).sum()), len(known) - len(np.unique(codes[codes >= 0]))
    if lost == len(texts):
        ids = f"{known.ids[0]!r}, and the texts {texts.ids[0]!r}"
        raise DataError(name, [f"no id of it is that of a text: it has ids such as {ids}. Name the "
                               "column with [data.columns.text_labels] id"])  # fmt: skip
    left_out = [
        Exclusion("texts", "texts", lost, f"{name} has no label for them", len(texts)),
        Exclusion(name, "texts", other, "they are not among the texts", len(known)),
    ]
    exclusions = (*texts.exclusions, *(one for one in left_out if one.count))
    return replace(texts, **made, exclusions=exclusions)


_READERS: dict[str, Callable[[Frame, TableOptions], Any]] = {
    "interactions": _interactions,
    "test": lambda path, o: Interactions.from_frame(path, rating_scale=o.rating_scale),
    "labels": read_labels,
    "items": lambda path, o: Items.from_frame(path, by=o.by_item, others=True),
    "users": lambda path, o: _groups(path, "user", o),
    "texts": lambda path, o: Texts.from_frame(path),
    "text_labels": lambda path, o: _text_labels(path),
    "text_groups": lambda path, o: _groups(path, "id", o),
}

TABLES = tuple(name for name in _READERS if name != "text_labels")
"""The tables that a data set can have, by the name of its file and of its field."""

COLUMNS: dict[str, tuple[str, ...]] = {
    "interactions": ("user", "item", "rating", "time", "set"),
    "test": ("user", "item", "rating", "time"),
    "labels": ("item", "label", "yes", "no", "present", "state"),
    "items": ("item",),
    "users": ("user", "group", "attribute"),
    "texts": ("text", "id", "label", "cluster", "family", "set"),
    "text_labels": ("id", "label"),
    "text_groups": ("id", "group", "attribute"),
}
"""The columns that each table can have; items, users and text groups have attributes besides."""

_OPEN = frozenset({"items", "users", "text_groups"})


def read_table_file(name: str, path: Frame, options: TableOptions | None = None) -> Any:
    """Read one table of a data set from a file."""
    return _READERS[name](path, options or TableOptions())


def read_tables(
    paths: Mapping[str, str | Path], options: TableOptions | None = None
) -> dict[str, Any]:
    """Read some tables; the faults of all files come in one error.

    `paths` are by the name of the table.
    """
    options = options or TableOptions()
    paths = _mapped(paths, options)
    with noting() as notes:
        tables = _read_all(paths, options)
    main = next((name for name in ("interactions", "texts", "labels") if name in tables), None)
    if main is not None and notes:
        table = tables[main]
        tables[main] = replace(table, exclusions=(*table.exclusions, *notes))
    return tables


def _read_all(paths: Mapping[str, Any], options: TableOptions) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    faults: list[str] = []
    for name in _READERS:
        if name not in paths:
            continue
        try:
            table = read_table_file(name, paths[name], options)
        except OmbudError as error:
            faults.append(str(error))
            continue
        if table is not None:
            tables[name] = table
    if faults:
        raise PlanError("\n".join(faults))
    if (labels := tables.pop("text_labels", None)) is not None:
        tables["texts"] = _with_labels(
            tables.get("texts"), labels, _file_name(paths["text_labels"])
        )
    if "test" in tables and "interactions" in tables:
        tables |= _over_all(tables["interactions"], tables["test"])
    if "interactions" in tables and _wants_sets(paths["interactions"], options):
        tables["users"] = _with_sets(paths["interactions"], tables.get("users"))
    return tables


def _mapped(paths: Mapping[str, str | Path], options: TableOptions) -> dict[str, Any]:
    """Return the files with what the plan says about their columns and form; refuse odd names."""
    faults = []
    for part, named in (("columns", options.columns), ("reading", options.reading)):
        for table in named:
            if table not in paths:
                known = hint(table, paths)
                faults.append(f"[data.{part}] names {table!r}, of which there is no file; {known}")
    for table, names in options.columns.items():
        known_columns = COLUMNS.get(table, ())
        for ours in names if table in paths else ():
            if ours not in known_columns and table not in _OPEN:
                told = hint(ours, known_columns)
                faults.append(f"[data.columns.{table}]: no column is called {ours!r}; {told}")
    readings = {}
    for table, values in options.reading.items():
        try:
            readings[table] = Reading.from_dict(values, f"[data.reading.{table}]")
        except PlanError as error:
            faults.append(str(error))
    if faults:
        raise PlanError("\n".join(faults))
    mapped: dict[str, Any] = dict(paths)
    for name in {*options.columns, *options.reading}:
        columns, reading = options.columns.get(name, {}), readings.get(name, PLAIN)
        if columns or reading != PLAIN:
            setting = f"[data.reading.{name}]"
            mapped[name] = MappedFile(paths[name], columns, reading=reading, setting=setting)
    return mapped


def _wants_sets(path: Frame, options: TableOptions) -> bool:
    by = options.by
    return "set" in _columns(path) and (by is None or "set" in by)


def _with_sets(path: Frame, users: Grouping | None) -> Grouping:
    """Return the groups of users with the data sets that their interactions come from."""
    table = read_table(path, [Column("user", "id"), Column("set", "category")])
    pairs = table.unique(maintain_order=True).select(
        "user", group=pl.concat_str(pl.lit("set="), "set"), attribute=pl.lit("set")
    )
    if users is not None:
        known = users.to_members("user")
        pairs = pl.concat([known, pairs.with_columns(pl.col("user").cast(known["user"].dtype))])
    return Grouping.from_members(pairs, unit="user")


def _over_all(train: Interactions, test: Interactions) -> dict[str, Interactions]:
    """Put both parts over the users and items of either."""
    users = Vocabulary.union({"interactions": train.users, "test": test.users})
    items = Vocabulary.union({"interactions": train.items, "test": test.items})
    return {"interactions": train.over(users, items), "test": test.over(users, items)}


def write_table(name: str, data: Dataset, path: Path) -> bool:
    """Write one table of a data set as Parquet, whole or not at all; False when it has none."""
    table = getattr(data, name)
    if table is None:
        return False
    if isinstance(table, Interactions):
        write_atomically(path, lambda part: _write_interactions(table, part))
    elif isinstance(table, Labels):
        write_atomically(path, lambda part: _write_labels(table, part))
    elif isinstance(table, Grouping):
        write_parquet(path, table.to_members("user" if name == "users" else "id"))
    else:
        write_parquet(path, table.to_frame())
    return True


def write_tables(data: Dataset, folder: Path) -> dict[str, Path]:
    """Write every table of a data set into a folder, and return the files by table."""
    paths = {name: folder / f"{name}.parquet" for name in TABLES}
    return {name: path for name, path in paths.items() if write_table(name, data, path)}


def _write_interactions(interactions: Interactions, path: Path) -> None:
    """Write user by user in blocks, so that no second copy of everything is made."""
    matrix = interactions.matrix
    users, items = interactions.users.arrow, interactions.items.arrow
    fields = [("user", users.type), ("item", items.type)]
    if interactions.explicit:
        fields.append(("rating", pa.float32()))
    if interactions.times is not None:
        fields.append(("time", pa.float64()))
    starts = matrix.indptr.astype(np.int64)
    with pq.ParquetWriter(path, pa.schema(fields), compression="zstd") as writer:
        for low in range(0, matrix.nnz, _BLOCK):
            high = min(low + _BLOCK, matrix.nnz)
            rows = np.searchsorted(starts, np.arange(low, high), side="right") - 1
            columns: list[Any] = [
                users.take(pa.array(rows)),
                items.take(pa.array(matrix.indices[low:high])),
            ]
            if interactions.explicit:
                columns.append(pa.array(matrix.data[low:high].astype(np.float32, copy=False)))
            if interactions.times is not None:
                columns.append(pa.array(interactions.times[low:high]))
            writer.write_table(pa.table(columns, schema=pa.schema(fields)))


def _write_labels(labels: Labels, path: Path) -> None:
    """Write the rows of `Labels.to_frame` in blocks, with label names as a dictionary."""
    if labels.errors is not None:  # a system's labels are of one catalogue, and fit in memory
        labels.to_frame().write_parquet(path)
        return
    names = pa.array(labels.names, type=pa.string())
    fields = [("item", labels.items.arrow.type), ("label", pa.string()), ("state", pa.int8())]
    votes = [(name, v) for name, v in (("yes", labels.yes), ("no", labels.no)) if v is not None]
    fields += [(name, pa.int32()) for name, _ in votes]
    height = max(1, _BLOCK // max(1, len(labels.names)))
    with pq.ParquetWriter(path, pa.schema(fields), compression="zstd") as writer:
        for low in range(0, len(labels.items), height):
            part = slice(low, low + height)
            states = labels.states[part]
            rows, places = np.nonzero(labels.rows_to_store(part))
            columns: list[Any] = [
                labels.items.arrow.take(pa.array(rows + low)),
                names.take(pa.array(places)),
                pa.array(states[rows, places]),
            ]
            columns += [pa.array(v[part][rows, places]) for _, v in votes]
            writer.write_table(pa.table(columns, schema=pa.schema(fields)))
