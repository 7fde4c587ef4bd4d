"""From a plan to the data, systems and metrics it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from ombud import registry
from ombud.audits.plan import DataPlan, Plan, build_all
from ombud.audits.presets import prepared
from ombud.data.card import Card
from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.frames import MappedFile, flat, open_frame
from ombud.data.groups import Grouping
from ombud.data.items import LABEL, LABEL_WORDS
from ombud.data.reading import Reading
from ombud.data.splits import split
from ombud.data.tables import TABLES, TableOptions, read_tables
from ombud.errors import DataError, OmbudError, PlanError, RegistryError
from ombud.files import hash_file
from ombud.metrics.base import Metric
from ombud.registry import hint
from ombud.systems.base import Moderator, Recommender
from ombud.systems.own import trained_copy


def load_data(
    plan: Plan, hashes: Mapping[str, str] | None = None, metrics: Sequence[Metric] | None = None
) -> Dataset:
    """Read the data that a plan names, let its preset prepare it, and split it if it says so.

    The faults of all files come in one error.

    Parameters
    ----------
    plan
        What to read.
    hashes
        Hashes of files that are known, as `ombud.audits.provenance.input_hashes` gives them.
    metrics
        The metrics of the plan, where they are built already.
    """
    return split_data(load_whole(plan, hashes, metrics), plan)


def load_whole(
    plan: Plan, hashes: Mapping[str, str] | None = None, metrics: Sequence[Metric] | None = None
) -> Dataset:
    """Return what `load_data` does before it splits the data."""
    return _by_item(prepared(plan, _crossed(_load(plan, hashes or {}, metrics), plan)), plan)


def split_data(data: Dataset, plan: Plan) -> Dataset:
    """Return the data split as a plan says; the data itself if it says nothing."""
    if not plan.split:
        return data
    if data.interactions is None:
        raise PlanError("the plan has a [split], but the data has no interactions")
    if data.test is not None:
        raise PlanError("the data is split already; remove [split] from the plan")
    cut = split(data.interactions, **({"seed": plan.seed} | plan.split))
    train = replace(cut.train, exclusions=(*cut.train.exclusions, *cut.exclusions))
    return replace(data, interactions=train, test=cut.test)


def _load(plan: Plan, hashes: Mapping[str, str], metrics: Sequence[Metric] | None) -> Dataset:
    if plan.data.source is not None:
        _check_only_source(plan)
        kind = "source" if plan.data.source in registry.names("source") else "world"
        made = registry.create(kind, plan.data.source, plan.data.options)
        data = made if isinstance(made, Dataset) else made.dataset
        if not isinstance(data, Dataset):
            raise PlanError(f"{kind} {plan.data.source!r} did not give a data set")
        if plan.data.unlabeled == "no" and data.labels is not None:
            data = replace(data, labels=data.labels.with_unlabeled("no"))
        if plan.data.text_groups is not None:
            data = _with_own_groups(data, plan, hashes)
        return with_groups(data, plan.by)
    return _load_files(plan, hashes, metrics)


_GROUPS = "text_groups"


def _with_own_groups(data: Dataset, plan: Plan, hashes: Mapping[str, str]) -> Dataset:
    """Return the data of a source with the groups of a table.

    Of several data sets, those of which the table names no text keep the groups of their sources.
    """
    path = plan.data.text_groups
    if data.texts is None or path is None:
        raise PlanError(f"source {plan.data.source!r} has no texts that text_groups could group")
    columns, reading = plan.data.columns, plan.data.reading
    options = TableOptions(by=plan.by, columns=columns, reading=reading)
    groups = read_tables({_GROUPS: path}, options).get(_GROUPS)
    if groups is None:
        raise PlanError("by = [] compares no groups, but [data] names text_groups")
    sets, stated = data.texts.sets, data.text_groups
    if stated is not None and sets is not None:
        ids = np.asarray(data.texts.ids)
        covered = np.unique(sets[groups.units.codes(ids) >= 0].astype(str))
        others = stated.to_members("id").filter(
            pl.col("id").is_in(ids[~np.isin(sets.astype(str), covered)].tolist())
        )
        frames = [groups.to_members("id"), others]
        groups = Grouping.from_members(pl.concat(frames), unit="id") if len(others) else groups
    hashed = {Path(path).name: hashes.get(f"data.{_GROUPS}") or hash_file(Path(path))}
    card = data.card.model_copy(update={"hashes": {**data.card.hashes, **hashed}})
    data = replace(data, text_groups=groups, card=card)
    _check_matches(data, plan.data)
    return data


def _check_only_source(plan: Plan) -> None:
    """Refuse files and reading options beside a source: they would not be used."""
    # A stored plan states every default too: those are no wish of anyone.
    plain = DataPlan()
    given = sorted(
        name
        for name in type(plan.data).model_fields
        if name not in {"source", "options", "unlabeled", "text_groups"}
        and getattr(plan.data, name) != getattr(plain, name)
        and not (name in {"columns", "reading"} and set(getattr(plan.data, name)) <= {_GROUPS})
    )
    if given:
        raise PlanError(
            f"[data] names the source {plan.data.source!r}, and beside it {', '.join(given)}, "
            "which a source does not use; name the files without a source, or only the source"
        )


def with_groups(data: Dataset, by: Sequence[str] | None) -> Dataset:
    """Return the data with the groups of some attributes alone; with all of them for None."""
    tables = {"users": data.users, "text_groups": data.text_groups}
    known = [a for groups in tables.values() if groups is not None for a in groups.attributes]
    missing = [name for name in by or () if name not in known]
    if missing:
        attributes = ", ".join(dict.fromkeys(known)) or "none"
        raise PlanError(f"by names {', '.join(missing)}; the data has the attributes {attributes}")
    chosen: dict[str, Grouping | None] = {}
    for name, groups in tables.items():
        own = () if groups is None else groups.attributes
        wanted = own if by is None else [a for a in by if a in own]
        chosen[name] = groups.select(wanted) if groups is not None and wanted else None
    return replace(data, users=chosen["users"], text_groups=chosen["text_groups"])


def _crossed(data: Dataset, plan: Plan) -> Dataset:
    """Return the data with pairs of groups too, where the plan asks for intersections."""
    if not plan.intersections:
        return data
    users, texts = (
        None if groups is None else groups.with_intersections()
        for groups in (data.users, data.text_groups)
    )
    return replace(data, users=users, text_groups=texts)


def _load_files(plan: Plan, known: Mapping[str, str], metrics: Sequence[Metric] | None) -> Dataset:
    asked = plan.data
    paths = {
        name: path
        for name in (*TABLES, "text_labels")
        if (path := getattr(asked, name)) is not None
    }
    options = TableOptions(
        rating_scale=asked.rating_scale,
        duplicates=asked.duplicates,
        missing=asked.missing,
        unlabeled=asked.unlabeled,
        threshold=asked.threshold,
        strict=asked.strict,
        by=plan.by,
        by_item=tuple(name for name in plan.by_item if name != LABEL),
        columns=asked.columns,
        reading=asked.reading,
        unread=_unread(plan, metrics),
    )
    tables = read_tables(paths, options)
    if "test" in tables and "interactions" not in tables:
        raise PlanError("the plan names held-out interactions, but none to train on")
    if not tables:
        raise PlanError("the plan names no data; give [data] a source, or interactions or texts")
    unused = [name for name in ("users", "text_groups") if name in paths and name not in tables]
    if unused:
        raise PlanError(f"by = [] compares no groups, but [data] names {', '.join(unused)}")
    unknowns = tables["labels"].rule if "labels" in tables else ""
    hashes = {
        Path(path).name: known.get(f"data.{name}") or hash_file(Path(path))
        for name, path in paths.items()
    }
    changed = _changed_forms(plan)
    main = "interactions" if "interactions" in tables else "texts" if "texts" in tables else ""
    if main and changed:
        table = tables[main]
        tables[main] = replace(table, exclusions=(*table.exclusions, *changed))
    card = Card(name="files", title=", ".join(hashes), hashes=hashes, unknowns=unknowns)
    data = Dataset(**tables, card=card)
    _check_matches(data, asked)
    return data


def _changed_forms(plan: Plan) -> list[Exclusion]:
    """Return in what files differ from those that the plan was written for."""
    found = []
    for table, before in plan.data.form.items():
        path = getattr(plan.data, table, None)
        if path is None or not before:
            continue
        reading = plan.data.reading.get(table, {})
        plain = {k: v for k, v in reading.items() if k in {"separator", "encoding", "names"}}
        file = MappedFile(path, reading=Reading.from_dict(plain, f"[data.reading.{table}]"))
        now = flat(open_frame(file)[0]).collect_schema().names()
        new = [name for name in now if name not in before]
        gone = [name for name in before if name not in now]
        parts = [f"new columns: {', '.join(new)}"] if new else []
        parts += [f"missing columns: {', '.join(gone)}"] if gone else []
        if parts:
            text = f"it differs from the file that the plan was written for ({'; '.join(parts)})"
            found.append(Exclusion(Path(path).name, "", 0, text, key="warning/changed-form"))
    return found


def _may_be_trained(kind: str) -> bool:
    factory = registry.get("recommender", kind)
    return not (isinstance(factory, type) and issubclass(factory, Recommender)) or factory.trainable


def _unread(plan: Plan, metrics: Sequence[Metric] | None) -> tuple[str, ...]:
    """Return the columns of the interactions that nothing in a plan reads."""
    if plan.preset or plan.analyses or plan.split:
        return ()
    known = registry.names("recommender")
    kinds = [str(config.get("type")) for config in plan.systems.values()]
    if any(kind not in known or _may_be_trained(kind) for kind in kinds):
        return ()
    if metrics is None:
        try:
            metrics = load_metrics(plan.metrics)
        except OmbudError:  # the error comes when metrics are loaded
            return ()
    rated = plan.data.rating_scale is not None or plan.data.duplicates in {"mean", "median"}
    rated |= any(metric.reads_ratings for metric in metrics)
    return (*(() if rated else ("rating",)), *(() if plan.data.duplicates == "last" else ("time",)))


def _check_matches(data: Dataset, asked: DataPlan) -> None:
    """Refuse tables whose ids match nothing, by the name of the file."""
    try:
        _ = data.exclusions
    except DataError as error:
        groups = asked.text_groups if data.texts is not None else asked.users
        files = {"groups": groups, "labels": asked.labels, "items": asked.items}
        path = files.get(error.source)
        raise DataError(error.source if path is None else Path(path).name, error.faults) from None


def _by_item(data: Dataset, plan: Plan) -> Dataset:
    """Return the data with the groups of items that a plan measures by among its labels."""
    if not plan.by_item:
        return data
    if data.items is None:
        raise PlanError("by_item names attributes of items; the data has no table of items")
    if LABEL in plan.by_item and data.labels is None:
        raise PlanError("by_item crosses items with labels; the data has no labels")
    taken = [name for name in LABEL_WORDS if name in data.items.attributes]
    if LABEL in plan.by_item and taken:
        raise PlanError(
            "by_item crosses items with labels, and the items have a column "
            f"{taken[0]!r}; rename it"
        )
    return replace(data, labels=data.items.as_labels(plan.by_item, data.labels))


def load_system(
    name: str, config: dict[str, Any], of: Literal["recommender", "moderator"] | None = None
) -> Recommender | Moderator:
    """Build a system from its part of a plan.

    Parameters
    ----------
    name
        The name that the plan gives it.
    config
        Its type and arguments.
    of
        Which of the two it is when its type names a recommender and a moderator, such as
        ``http`` and ``recorded``: `what_systems_are` reads that from the plan. The plan's own
        ``moderates`` goes before it.
    """
    options = dict(config)
    kind = options.pop("type", None)
    known = sorted({*registry.names("recommender"), *registry.names("moderator")})
    if kind is None:
        raise PlanError(f"system {name!r} has no type; one of {', '.join(known)}")
    both = [part for part in ("recommender", "moderator") if kind in registry.names(part)]
    if not both:
        raise RegistryError(
            f"system {name!r}: no recommender or moderator is called {kind!r}; {hint(kind, known)}"
        )
    moderates = options.pop("moderates", None)
    if moderates is not None and not isinstance(moderates, bool):
        raise PlanError(f"system {name!r}: moderates is {moderates!r}; expected true or false")
    if moderates is not None:
        of = "moderator" if moderates else "recommender"
    elif len(both) == 1:
        of = "moderator" if both == ["moderator"] else "recommender"
    if of is None:
        raise PlanError(
            f"system {name!r}: {kind!r} may be a recommender or a moderator, and neither the "
            "metrics nor the data of the plan tell which; add moderates = true or false"
        )
    if of == "moderator" and "name" in signature(registry.get(of, kind)).parameters:
        options.setdefault("name", name)  # messages then use the name that the plan uses
    known_options = signature(registry.get(of, kind)).parameters
    for given, wanted in (("url", "base_url"), ("base_url", "url")):
        # One key for the address of any service; `base_url` is the older name.
        if given in options and given not in known_options and wanted in known_options:
            if wanted in options:
                raise PlanError(f"system {name!r}: url and base_url are the same; remove one")
            options[wanted] = options.pop(given)
    train = options.pop("fit", False) if "fit" not in known_options else False
    if not isinstance(train, bool):
        raise PlanError(f"system {name!r}: fit is {train!r}; expected true or false")
    made: Recommender | Moderator = registry.create(of, kind, options)
    return trained_copy(name, made) if train else made


def what_systems_are(
    metrics: Sequence[Metric], data: Dataset
) -> Literal["recommender", "moderator"] | None:
    """Return what the systems of a plan are, by its metrics, else by its data; None if unclear."""
    kinds = {metric.of for metric in metrics}
    if len(kinds) == 1:
        return kinds.pop()
    if (data.interactions is None) == (data.texts is None):
        return None
    return "moderator" if data.interactions is None else "recommender"


def load_metrics(specs: tuple[dict[str, Any], ...]) -> tuple[Metric, ...]:
    """Build metrics from their part of a plan; all faults in one error."""
    faults: list[str] = []
    metrics = build_all("metric", specs, faults)
    if faults:
        raise PlanError("\n".join(faults))
    return metrics
