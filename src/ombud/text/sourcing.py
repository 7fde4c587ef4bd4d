"""Candidates for annotation from a raw corpus: paragraphs with delicate terms, and controls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ombud.data.exclusions import Exclusion
from ombud.errors import DataError, PlanError
from ombud.files import (
    csv_text,
    read_json,
    read_parquet,
    sweep,
    write_json,
    write_parquet,
    write_text,
)
from ombud.taxonomy import load_dictionary
from ombud.taxonomy.dictionary import Dictionary
from ombud.text.dedup import NearDuplicates, content_keys
from ombud.text.documents import Columns, Damage, Documents, read_documents
from ombud.text.domains import DomainKinds
from ombud.text.matching import TermMatcher
from ombud.text.reservoir import Reservoir, water_fill

_Ints = NDArray[np.int64]
_EVERYWHERE = "everywhere"
_CONTROL = "control"
_HOST = r"^(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://)?(?:[^/?#@]*@)?([^/?#:]+)"


@dataclass(frozen=True, kw_only=True)
class Sourcing:
    """How candidates are chosen."""

    size: int = 10_000  # texts wanted in all
    # The share of them that must hold no term of the dictionary: only these show what the
    # dictionary misses.
    control: float = 0.1
    # Characters of a paragraph; others are excluded and counted.
    shortest: int = 40
    longest: int = 5_000
    # Similarity from which two paragraphs count as one; None for exact repetitions alone.
    near_duplicates: float | None = 0.8
    plurals: bool = True  # whether a term with ``s`` or ``es`` after it counts as well
    # ``"line"`` takes every line for a paragraph, ``"blank"`` what stands between blank lines,
    # ``"whole"`` the whole text; ``"auto"`` takes lines in web archives, else blank lines.
    paragraphs: Literal["auto", "line", "blank", "whole"] = "auto"
    language: str = ""  # Keep only documents whose language column says so; empty keeps all
    # Shares of train, validation and test; no page and no near duplicates in two of them.
    splits: dict[str, float] = field(
        default_factory=lambda: {"train": 0.8, "validation": 0.1, "test": 0.1}
    )
    seed: int = 0  # Chooses the sample

    def __post_init__(self) -> None:
        faults = []
        if self.size < 1:
            faults.append(f"size is {self.size}; at least one text is wanted")
        if not 0 <= self.control < 1:
            faults.append(f"control is {self.control}; a share from 0 to below 1 was expected")
        if not 0 < self.shortest <= self.longest:
            faults.append(f"shortest {self.shortest} and longest {self.longest} leave no room")
        if faults:
            raise PlanError("; ".join(faults))


@dataclass(frozen=True)
class Sourced:
    """What sourcing found."""

    # One row a text: `id`, `text`, `url`, `domain`, `kind`, `date`, `language`, `file`, `page`,
    # `topic`, `severity` (of its stratum), `topics` (all), `terms`, `control`, `weight` (distinct
    # paragraphs of the corpus that it stands for) and `split`.
    candidates: pl.DataFrame
    # Wanted against found by kind of site, topic and severity: `wanted`, `found` (paragraphs whose
    # strongest term is of that cell), `mentioned` (paragraphs with any such term), `distinct` (of
    # those found, repetitions once; estimated where there are many), `sampled`.
    table: pl.DataFrame
    exclusions: tuple[Exclusion, ...]  # what was excluded, and why
    damaged: dict[str, str]  # files that could not be read to their end, with the reason
    facts: dict[str, Any]  # counts of the whole run

    @property
    def shortfall(self) -> int:
        """How many of the texts wanted could not be found."""
        return int(self.facts["wanted"]) - self.candidates.height


@dataclass(slots=True)
class _Kept:
    text: str
    url: str | None
    domain: str | None
    date: str | None
    language: str | None
    file: str
    page: str
    terms: tuple[int, ...]


class _Collector:
    """One pass over the corpus."""

    def __init__(
        self,
        dictionary: Dictionary,
        settings: Sourcing,
        domains: DomainKinds | None,
        without: Collection[str],
    ) -> None:
        self.settings, self.domains, self.dictionary = settings, domains, dictionary
        self.kinds = list(domains.kinds) if domains else [_EVERYWHERE]
        self.topics, self.scale = list(dictionary.topics), list(dictionary.scale)
        topic = {name: code for code, name in enumerate(self.topics)}
        severity = {name: code for code, name in enumerate(self.scale)}
        self.topic_of = np.array([topic[t.topic] for t in dictionary.terms], dtype=np.int64)
        self.severity_of = np.array([severity[t.severity] for t in dictionary.terms], np.int64)
        self.matcher = TermMatcher(
            [term.text for term in dictionary.terms],
            suffixes=("", "s", "es") if settings.plurals else ("",),
        )
        # The last cell of every kind is the control.
        self.cells = len(self.topics) * len(self.scale) + 1
        self.without = {int(name, 16) for name in without}
        shape = (len(self.kinds), self.cells)
        self.found = np.zeros(shape, dtype=np.int64)
        self.mentioned = np.zeros(shape, dtype=np.int64)
        self.documents = self.paragraphs = self.characters = 0
        self.left: dict[tuple[str, str], int] = {}
        self.reservoirs = [self._reservoir(kind) for kind in self.kinds]

    def _quota(self, kind: str) -> tuple[int, int]:
        share = self.domains.share(kind) if self.domains else 1.0
        total = round(self.settings.size * share)
        control = round(total * self.settings.control)
        return total - control, control

    def _reservoir(self, kind: str) -> tuple[Reservoir[_Kept], Reservoir[_Kept]]:
        with_terms, control = self._quota(kind)
        # Twice the quota: near duplicates across strata are taken out at the end.
        threshold, seed = self.settings.near_duplicates, self.settings.seed
        return (
            Reservoir(self.cells - 1, 2 * with_terms + self.cells, threshold=threshold, seed=seed),
            Reservoir(1, 2 * control + 1, threshold=threshold, seed=seed),
        )

    def leave(self, what: str, reason: str, count: int) -> None:
        if count:
            self.left[what, reason] = self.left.get((what, reason), 0) + count

    def take(self, batch: Documents, file: str) -> None:
        """Take in a batch of documents."""
        pages = batch.frame.with_row_index("document", offset=self.documents)
        self.documents += pages.height
        pages = self._of_kinds(pages)
        if self.settings.language:
            kept = pages.filter(
                pl.col("language").is_null() | (pl.col("language") == self.settings.language)
            )
            self.leave("documents", "another language", pages.height - kept.height)
            pages = kept
        rows = self._split(pages, batch.lines)
        if not rows.height:
            return
        texts = rows["text"].to_list()
        self.paragraphs += len(texts)
        self.characters += int(rows["text"].str.len_chars().sum())
        self._sort_in(rows, texts, file)

    def _of_kinds(self, pages: pl.DataFrame) -> pl.DataFrame:
        host = pl.col("url").str.extract(_HOST).str.to_lowercase().str.strip_prefix("www.")
        pages = pages.with_columns(domain=host)
        if self.domains is None:
            return pages.with_columns(kind=pl.lit(0, pl.Int64))
        hosts = pages["domain"].unique().drop_nulls().to_list()
        kinds = {host: self.domains.kind_of(host) for host in hosts}
        codes = {host: self.kinds.index(kind) for host, kind in kinds.items() if kind is not None}
        listed = pages.with_columns(
            kind=pl.col("domain").replace_strict(codes, default=None, return_dtype=pl.Int64)
        ).filter(pl.col("kind").is_not_null())
        self.leave("documents", "their domain is not listed", pages.height - listed.height)
        return listed

    def _split(self, pages: pl.DataFrame, lines: bool) -> pl.DataFrame:
        how = self.settings.paragraphs
        if how == "auto":
            how = "line" if lines else "blank"
        text = pl.col("text")
        if how == "blank":
            text = text.str.replace_all(r"\r?\n[ \t\r]*\n\s*", "\x1e").str.split("\x1e")
        elif how == "line":
            text = text.str.split("\n")
        rows = pages.with_columns(text=text)
        if how != "whole":
            rows = rows.explode("text", empty_as_null=True, keep_nulls=True)
        rows = rows.with_columns(pl.col("text").str.strip_chars()).filter(pl.col("text") != "")
        length = pl.col("text").str.len_chars()
        short, long = rows.select(
            short=(length < self.settings.shortest).sum(),
            long=(length > self.settings.longest).sum(),
        ).row(0)
        reason = f"shorter than {self.settings.shortest} characters"
        self.leave("paragraphs", reason, int(short))
        reason = f"longer than {self.settings.longest:,} characters"
        self.leave("paragraphs", reason, int(long))
        return rows.filter(length.is_between(self.settings.shortest, self.settings.longest))

    def _sort_in(self, rows: pl.DataFrame, texts: list[str], file: str) -> None:
        """Count all paragraphs by cell, and offer those that could enter the sample."""
        keys = content_keys(texts, self.settings.seed)
        kinds = rows["kind"].to_numpy()
        matches = self.matcher.match(texts)
        at, term = matches.text_index, matches.term_index
        cell = self.topic_of[term] * len(self.scale) + self.severity_of[term]
        pair = np.unique(at * self.cells + cell)
        np.add.at(self.mentioned, (kinds[pair // self.cells], pair % self.cells), 1)
        strata = np.full(len(texts), self.cells - 1, dtype=np.int64)
        # The strongest term decides; between topics of one severity, chance.
        lot = (keys[at] ^ (self.topic_of[term].astype(np.uint64) << np.uint64(7))) * np.uint64(
            0x9E3779B97F4A7C15
        )
        order = np.lexsort((lot, self.severity_of[term], at))
        first = order[np.unique(at[order], return_index=True)[1]]
        strata[at[first]] = cell[first]
        np.add.at(self.found, (kinds, strata), 1)
        self.mentioned[:, -1] = self.found[:, -1]
        begins = np.searchsorted(at, np.arange(len(texts) + 1))
        for kind, (with_terms, controls) in enumerate(self.reservoirs):
            here = np.flatnonzero(kinds == kind)
            is_control = strata[here] == self.cells - 1
            for reservoir, part, shift in (
                (with_terms, here[~is_control], 0),
                (controls, here[is_control], self.cells - 1),
            ):
                chosen = part[reservoir.wanted(keys[part], strata[part] - shift)]
                if self.without:
                    new = np.array([int(key) not in self.without for key in keys[chosen]], bool)
                    self.leave("paragraphs", "they were in the pilot", int((~new).sum()))
                    chosen = chosen[new]
                if len(chosen):
                    payloads = _payloads(rows[chosen], term, begins, chosen, file)
                    kept = [payload.text for payload in payloads]
                    reservoir.offer(keys[chosen], strata[chosen] - shift, kept, payloads)

    def result(self, damage: Damage) -> Sourced:
        """Choose the sample, assign splits and make the table."""
        chosen, table = self._choose()
        candidates = _frame(chosen, self)
        exclusions = [
            Exclusion("sourcing", what, count, reason)
            for (what, reason), count in self.left.items()
        ]
        exclusions += [
            Exclusion("sourcing", what, count, "they cannot be read as they should")
            for what, count in damage.counts.items()
        ]
        near = sum(part.near_repeats for pair in self.reservoirs for part in pair)
        exact = sum(part.repeats for pair in self.reservoirs for part in pair)
        facts = {
            "wanted": self.settings.size,
            "sampled": candidates.height,
            "documents": self.documents,
            "paragraphs": self.paragraphs,
            "characters": self.characters,
            "paragraphs with a term": int(self.found[:, :-1].sum()),
            "read with replacement characters": dict(damage.mended),
            "repeats met in the sample": exact,
            "near repeats met in the sample": near,
            "dictionary": self.dictionary.name,
            "dictionary digest": self.dictionary.digest,
            "domains digest": self.domains.digest if self.domains else "",
            "settings": asdict(self.settings),
        }
        return Sourced(candidates, table, tuple(exclusions), dict(damage.files), facts)

    def _choose(self) -> tuple[list[tuple[int, int, float, int, _Kept]], pl.DataFrame]:
        seen = None
        if self.settings.near_duplicates is not None:
            seen = NearDuplicates(self.settings.near_duplicates, seed=self.settings.seed)
        lists: dict[tuple[int, int], list[tuple[int, _Kept]]] = {}
        distinct: dict[tuple[int, int], float] = {}
        for kind, (with_terms, controls) in enumerate(self.reservoirs):
            for cell in range(self.cells):
                pool, at = (controls, 0) if cell == self.cells - 1 else (with_terms, cell)
                lists[kind, cell] = pool.smallest(at)
                # An estimate: of few texts it may be more than there are.
                distinct[kind, cell] = min(pool.distinct(at), int(self.found[kind, cell]))
        lists = _without_repeats(lists, seen)
        chosen: list[tuple[int, int, float, int, _Kept]] = []
        rows = []
        for kind, name in enumerate(self.kinds):
            quota, control = self._quota(name)
            sizes = [len(lists[kind, cell]) for cell in range(self.cells - 1)]
            wanted = [*water_fill([quota] * (self.cells - 1), quota), control]
            given = [*water_fill(sizes, quota), min(control, len(lists[kind, self.cells - 1]))]
            for cell in range(self.cells):
                held = lists[kind, cell][: given[cell]]
                weight = distinct[kind, cell] / len(held) if held else 0.0
                chosen += [(kind, cell, weight, key, kept) for key, kept in held]
                topic, severity = divmod(cell, len(self.scale))
                control_row = cell == self.cells - 1
                rows.append(
                    {
                        "kind": name,
                        "topic": _CONTROL if control_row else self.topics[topic],
                        "severity": "" if control_row else self.scale[severity],
                        "wanted": wanted[cell],
                        "found": int(self.found[kind, cell]),
                        "mentioned": int(self.mentioned[kind, cell]),
                        "distinct": round(distinct[kind, cell]),
                        "sampled": len(held),
                    }
                )
        return chosen, pl.DataFrame(rows)


def _payloads(
    rows: pl.DataFrame, term: _Ints, begins: _Ints, chosen: _Ints, file: str
) -> list[_Kept]:
    payloads = []
    for index, row in zip(chosen.tolist(), rows.iter_rows(named=True), strict=True):
        page = row["url"] or f"{file}#{row['document']}"
        terms = tuple(term[begins[index] : begins[index + 1]].tolist())
        payloads.append(
            _Kept(
                row["text"],
                row["url"],
                row["domain"],
                row["date"],
                row["language"],
                file,
                page,
                terms,
            )
        )
    return payloads


def _without_repeats(
    lists: dict[tuple[int, int], list[tuple[int, _Kept]]], seen: NearDuplicates | None
) -> dict[tuple[int, int], list[tuple[int, _Kept]]]:
    """Take out what repeats a text of another stratum, the smaller key first."""
    rows = sorted(
        ((key, cell, kept) for cell, held in lists.items() for key, kept in held),
        key=lambda row: (row[0], row[1]),
    )
    keys: set[int] = set()
    left: dict[tuple[int, int], list[tuple[int, _Kept]]] = {cell: [] for cell in lists}
    once = [row for row in rows if not (row[0] in keys or keys.add(row[0]))]  # type: ignore[func-returns-value]
    repeats = seen.add([kept.text for _, _, kept in once]) if seen is not None else None
    for place, (key, cell, kept) in enumerate(once):
        if repeats is None or repeats[place] < 0:
            left[cell].append((key, kept))
    return left


def _frame(
    chosen: Sequence[tuple[int, int, float, int, _Kept]], collector: _Collector
) -> pl.DataFrame:
    terms = collector.dictionary.terms
    scale, settings = len(collector.scale), collector.settings
    rows = []
    for kind, cell, weight, key, kept in chosen:
        control = cell == collector.cells - 1
        topics = dict.fromkeys(terms[index].topic for index in kept.terms)
        rows.append(
            {
                "id": f"{key:016x}",
                "text": kept.text,
                "url": kept.url,
                "domain": kept.domain,
                "kind": collector.kinds[kind],
                "date": kept.date,
                "language": kept.language,
                "file": kept.file,
                "page": kept.page,
                "topic": None if control else collector.topics[cell // scale],
                "severity": None if control else collector.scale[cell % scale],
                "topics": sorted(topics),
                "terms": sorted({terms[index].text for index in kept.terms}),
                "control": control,
                "weight": weight,
            }
        )
    strings = ["id", "text", "url", "domain", "kind", "date", "language", "file", "page"]
    strings += ["topic", "severity"]
    schema: dict[str, Any] = dict.fromkeys(strings, pl.String)
    schema |= {
        "topics": pl.List(pl.String),
        "terms": pl.List(pl.String),
        "control": pl.Boolean,
        "weight": pl.Float64,
    }
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    # Near duplicates are gone by now, so pages alone must stay together.
    split = assign_splits(frame["page"].to_list(), shares=settings.splits, seed=settings.seed)
    return frame.with_columns(split=pl.Series(split, dtype=pl.String)).sort("id")


def source_texts(
    paths: Iterable[Path],
    *,
    dictionary: Dictionary | None = None,
    domains: DomainKinds | None = None,
    settings: Sourcing | None = None,
    columns: Columns | None = None,
    without: Collection[str] = (),
    progress: Callable[[int, int, str], None] | None = None,
) -> Sourced:
    """Choose candidates for annotation from files of texts, in one pass and bounded memory.

    Paragraphs that hold a term are sorted by kind of site, topic and severity of their strongest
    term, and as many are drawn from each as from the others where there are enough. A share is
    drawn from paragraphs without any term. The draw depends on texts and seed alone, not on the
    order of files.

    Parameters
    ----------
    paths
        Files: JSONL, CSV, TSV, Parquet, plain text, WARC or WET, also as gzip.
    dictionary
        Terms; by default the one that comes with ombud.
    domains
        Kinds of sites with quotas; other sites are left out. None takes every document.
    settings
        How to choose.
    columns
        The columns of tables.
    without
        Ids (of `Sourced.candidates`) never to choose again, such as those of the pilot.
    progress
        Called with bytes done, bytes in all, and the file.

    Raises
    ------
    DataError
        If the only file cannot be read at all, or no paragraph was found. Of several files, those
        that cannot be read are listed in `Sourced.damaged`.
    """
    files = [Path(path) for path in paths]
    if not files:
        raise DataError("sourcing", ["no files were given"])
    settings = settings or Sourcing()
    collector = _Collector(dictionary or load_dictionary(), settings, domains, without)
    damage = Damage()
    total = sum(file.stat().st_size for file in files if file.is_file())
    done = 0
    for file in files:
        try:
            for batch in read_documents(file, columns=columns, damage=damage):
                collector.take(batch, file.name)
                if progress is not None:
                    progress(done + batch.bytes_read, total, file.name)
        except DataError as error:
            if len(files) == 1:
                raise
            damage.files[file.name] = "; ".join(error.faults)  # the others are used
        done += file.stat().st_size if file.exists() else 0
    if not collector.paragraphs:
        faults = [f"{name}: {reason}" for name, reason in damage.files.items()]
        left = [f"{n:,} {what} left out: {why}" for (what, why), n in collector.left.items()]
        raise DataError("sourcing", ["no paragraph was found that could be used", *faults, *left])
    return collector.result(damage)


# Train, validation and test parts that share no page and no near duplicates.


def assign_splits(
    pages: Sequence[Any],
    *,
    shares: Mapping[str, float],
    repeats: Sequence[int] | NDArray[np.int64] | None = None,
    seed: int = 0,
) -> list[str]:
    """Return the part of every text, so that texts that belong together are in one part.

    Texts belong together when they are of one page, or when one nearly repeats the other, or by
    any chain of these. Each such group goes to a part by a hash of its smallest page and the seed:
    adding texts moves no other group, and shares are met on average, not exactly.

    `shares` add up to 1; `repeats` has for each text the index of one that it nearly repeats, or
    -1.

    Examples
    --------
    >>> parts = assign_splits(["a", "b", "a", "c"], shares={"train": 0.5, "test": 0.5})
    >>> parts[0] == parts[2]
    True
    """
    if not shares or any(share < 0 for share in shares.values()):
        raise PlanError("shares of splits must be zero or more, with at least one part")
    if abs(sum(shares.values()) - 1) > 1e-6:
        raise PlanError(f"shares of splits add up to {sum(shares.values()):g}; expected 1")
    if not len(pages):
        return []
    names = [str(page) for page in pages]
    order, codes = np.unique(np.array(names, dtype=object), return_inverse=True)
    edges_from, edges_to = codes, codes
    if repeats is not None:
        given = np.asarray(repeats, dtype=np.int64)
        linked = np.flatnonzero(given >= 0)
        edges_from = np.concatenate((codes, codes[linked]))
        edges_to = np.concatenate((codes, codes[given[linked]]))
    graph = sparse.coo_array(
        (np.ones(len(edges_from), dtype=np.int8), (edges_from, edges_to)),
        shape=(len(order), len(order)),
    )
    _, group = connected_components(graph, directed=False)
    # Pages are sorted, so the first of a group is its smallest.
    _, smallest = np.unique(group, return_index=True)
    edges = np.cumsum(list(shares.values()))[:-1]
    parts = list(shares)
    place = [_uniform(str(order[index]), seed) for index in smallest]
    of_group = np.searchsorted(edges, place, side="right")
    return [parts[of_group[group[code]]] for code in codes]


def _uniform(name: str, seed: int) -> float:
    key = f"{seed}\x1f{name}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "big") / 2**64


# The folder that sourcing writes: pilot first, then the main run.


_SEEN = ("dictionary digest", "domains digest")


def write_sourced(folder: Path, sourced: Sourced) -> None:
    """Write candidates, the table of wanted against found, and the facts of a run.

    The folder gets ``candidates.parquet``, ``wanted_found.csv`` and, last, ``sourced.json``: a
    folder that has the last is complete.
    """
    write_parquet(folder / "candidates.parquet", sourced.candidates)
    write_text(folder / "wanted_found.csv", csv_text(sourced.table))
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

    `dictionary` and `domains` are digests of those of the main run.

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
