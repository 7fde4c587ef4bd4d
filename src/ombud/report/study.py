"""A study: the results of several data sets in one report, with one verdict across them.

A study has no tables of its own. Each question says which of its tables have the form of a paper
(`ombud.report.show.BlockTable`): a study shows those over all data sets, the charts of each data
set beside each other on shared axes, and the comparisons of the question with one column for each
data set. Everything else is in the report of each data set, which the study links.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import polars as pl
import polars.selectors as columns

from ombud.audits.gate import Expectation
from ombud.audits.result import Result
from ombud.errors import PlanError
from ombud.report.charts import Panel, side_by_side
from ombud.report.context import Context
from ombud.report.display import count, joined, shorten
from ombud.report.findings import Case, finding_of
from ombud.report.model import (
    Answer,
    Block,
    Cell,
    Chart,
    Column,
    Family,
    Mark,
    Name,
    Page,
    Section,
    Strong,
    SystemStatus,
    Table,
    Text,
    Verdict,
    is_early,
    plain,
    status_of,
)
from ombud.report.numbers import largest
from ombud.report.page import every_number, facts_of, notices_of
from ombud.report.question import Phrase, Question, fill
from ombud.report.report import Report
from ombud.report.show import BlockTable, Notes, Part, value_cell
from ombud.report.verdict import (
    HARM,
    clause,
    is_reversible,
    questions_of,
    references_of,
    verdict_of,
)
from ombud.stats.estimate import Estimate

_MOST_CLAUSES = 4
_ONLY = (
    "Each data set is corrected for multiple testing by itself. That a difference is significant "
    "in one data set only does not show that the data sets differ: the others may have too little "
    "data."
)
_MARKS: dict[Answer, Mark] = {
    "yes": "finding", "mixed": "finding", "cannot tell": "unknown", "no clear evidence": "none",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Study(Report):
    """The report of several results: made as any other, about all of them.

    Parameters
    ----------
    sets
        The results by the name of their data set, in the order in which they are shown.
    title
        The title; default, that of the plans where they have the same.
    """

    sets: Mapping[str, Result] = field(default_factory=dict)
    title: str = ""
    to: Path | None = None  # The folder of the file, from which links lead to the other reports

    @classmethod
    def of(
        cls, results: Sequence[Result], names: Sequence[str] = (), title: str = "", **more: Any
    ) -> Study:
        """Return the study of several results.

        Parameters
        ----------
        results
            What audits found, one for each data set (and kind of feedback).
        names
            A name for each; default, what its plan says that its data is, else its folder's name.
        title
            The title of the report.
        **more
            As in `Report`: `public`.
        """
        if len(results) < 2:
            raise PlanError("a study needs at least two results; one has a report of its own")
        if names and len(names) != len(results):
            raise PlanError(f"there are {len(results)} results and {len(names)} names for them")
        named = [n.strip() for n in names] or [_name(r, i) for i, r in enumerate(results, 1)]
        if not names and len(set(named)) < len(named):
            named = [_name(r, i, stated=False) for i, r in enumerate(results, 1)]
        again = sorted({n for n in named if named.count(n) > 1 or not n})
        if again:
            said = joined(repr(shorten(n, 60)) for n in again)
            raise PlanError(f"two results are called {said}; give each a name of its own (--names)")
        return cls(results[0], sets=dict(zip(named, results, strict=True)), title=title, **more)

    @cached_property
    def expected(self) -> tuple[Expectation, ...]:
        """The declared limits of every data set, judged."""
        return tuple(one for _, one in self._declared)

    @cached_property
    def _declared(self) -> list[tuple[str, Expectation]]:
        return [(name, one) for name, r in self.sets.items() for one in Report(r).expected]

    @cached_property
    def page(self) -> Page:
        """Everything that the report says, as data."""
        contexts = [Context.of(result, name) for name, result in self.sets.items()]
        asked: dict[str, dict[str, Question]] = {}
        for context in contexts:
            for question in questions_of(context):
                asked.setdefault(question.name, {})[context.set] = question
        compared = [_Compared.of([c for c in contexts if c.set in q], q) for q in asked.values()]
        limits = [(one.state, f"{n}: {one.said} ({one.why})") for n, one in self._declared]
        said = {n: r.integrity.said for n, r in self.sets.items() if r.integrity is not None}
        version = facts_of(contexts[0]).get("version", "")
        sections = [self._of_each(contexts, compared)]
        sections += [section for one in compared for section in one.sections()]
        sections.sort(key=lambda section: section.appendix)
        page = Page(
            self._heading,
            tuple(filter(None, (count(len(contexts), "data set"), version))),
            tuple(one.verdict(self._heading if not i else "") for i, one in enumerate(compared)),
            [replace(s, name=f"{s.name}-{i}") for i, s in enumerate(sections, 1)],
            _numbers(contexts),
            [f"{name}: {text}" for name, text in said.items() if text],
            [f"{c.set}: {notice}" for c in contexts for notice in notices_of(c)],
            limits,
        )
        return page.for_everyone() if self.public else page

    @property
    def _heading(self) -> str:
        titles = [*{r.plan.title.removesuffix(f": {n}") for n, r in self.sets.items()}]
        own = titles[0] if len(titles) == 1 and titles[0] not in {"", "Audit"} else ""
        return self.title or own or f"Study of {joined(self.sets)}"

    def _of_each(self, contexts: Sequence[Context], compared: Sequence[_Compared]) -> Section:
        """Return a table of the data sets, each with its answer and a link to its own report."""
        rows = []
        for context in contexts:
            facts, link = facts_of(context), self._link(context.result)
            answers = [one.verdicts[context.set].answer for one in compared if
                       context.set in one.verdicts]  # fmt: skip
            told = (", ".join(answers), facts.get("units", ""), facts.get("day", ""))
            rows.append((Cell(shorten(context.set, 80), link=link), *map(Cell, told)))
        heads = tuple(map(Column, ("Data set", "Answer", "Size", "Finished")))
        caption = "The data sets of this study. The name of a set leads to its own report."
        table = Table("study-sets", caption, heads, tuple(rows))
        return Section("study", "Data sets", (table,))

    def _link(self, result: Result) -> str:
        """Return a link to the report of a result; empty where it has none."""
        report = None if result.folder is None else result.folder / "report.html"
        if report is None or not report.is_file():
            return ""
        here = None if self.to is None else self.to.resolve()
        if here is not None and report.resolve().is_relative_to(here):
            return f"./{quote(report.resolve().relative_to(here).as_posix())}"
        return report.resolve().as_uri()  # it lies elsewhere, and may not travel along

    def json(self) -> str:
        """Return every estimate with its data set, and the verdicts across sets, as JSON."""
        content = {
            "title": self._heading,
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
            "sets": {name: json.loads(Report(r).json()) for name, r in self.sets.items()},
        }
        return json.dumps(content, indent=1, allow_nan=False, sort_keys=True) + "\n"

    def save(self, path: Path | str, formats: Iterable[str] | None = None) -> tuple[Path, ...]:
        """Write the study, with links to the reports of its data sets; see `Report.save`."""
        file = Path(path)
        folder = file.parent if file.suffix and not file.is_dir() and formats is None else file
        return replace(self, to=folder)._save(file, formats)

    def _wide(self) -> pl.DataFrame:
        frames = [
            r.to_wide().select(pl.lit(name).alias("set"), pl.all()) for name, r in self.sets.items()
        ]
        return pl.concat(frames, how="diagonal_relaxed").with_columns(columns.string())


def _name(result: Result, place: int, *, stated: bool = True) -> str:
    """Return a name for the data of a result."""
    own = result.plan.about.data if stated else None
    folder = "" if result.folder is None else result.folder.resolve().name
    return own or folder.removesuffix(".result") or f"set {place}"


def _numbers(contexts: Sequence[Context]) -> Table:
    """Return every estimate of every data set as a row."""
    tables = [every_number(context) for context in contexts]
    rows = (
        (Cell(c.set), *row) for c, table in zip(contexts, tables, strict=True) for row in table.rows
    )
    heads = (Column("Data set"), *tables[0].columns)
    return Table("all-numbers", "Every estimate of this study.", heads, tuple(rows))


class _Row(NamedTuple):
    """One comparison: what it is about, in words, so that data sets can share it."""

    measure: str
    system: str
    what: str


@dataclass(frozen=True)
class _Compared:
    """The comparisons of one question over the data sets that answer it."""

    contexts: tuple[Context, ...]
    questions: Mapping[str, Question]
    verdicts: Mapping[str, Verdict]
    cases: Mapping[str, Case]
    # The comparisons by what they are about, and then by data set.
    rows: Mapping[_Row, Mapping[str, Estimate]]

    @classmethod
    def of(cls, contexts: Sequence[Context], asked: Mapping[str, Question]) -> _Compared:
        rows: dict[_Row, dict[str, Estimate]] = {}
        cases = {}
        for context in contexts:
            question, names = asked[context.set], context.names
            groups = question.comparisons(context)
            phrases = {id(e): question.family[s] for s, some in groups.items() for e in some}
            every = tuple(e for some in groups.values() for e in some)
            family = Family(every, 0, frozenset(p.harm for p in phrases.values()))
            words = question.words(context)
            cases[context.set] = Case(question, context, family, phrases, words)
            for e in every:
                about = [str(names.label(e.label))] if e.label else []
                about += [str(names.members(e.group))] if e.group else []
                row = _Row(
                    context.titles.get(e.key, e.metric),
                    str(names.system(e.system)) if e.system else "all systems",
                    ", ".join(about) or str(names.label("")),
                )
                rows.setdefault(row, {})[context.set] = e
        verdicts = {c.set: verdict_of(asked[c.set], c) for c in contexts}
        return cls(tuple(contexts), asked, verdicts, cases, rows)

    @property
    def names(self) -> list[str]:
        """The data sets."""
        return [context.set for context in self.contexts]

    def harmful(self, row: _Row) -> dict[str, str]:
        """Return the data sets in which a comparison is a finding, each with its direction."""
        found = {}
        for name, e in self.rows[row].items():
            if self._points(name, e) and not is_reversible(e) and not is_early(e):
                found[name] = str(status_of(e))
        return found

    def _points(self, name: str, e: Estimate) -> bool:
        """Return whether a comparison is significant in a direction that counts."""
        return status_of(e) in HARM[self.cases[name].phrase(e).harm]

    def where(self, row: _Row) -> str:
        """Say in which data sets a comparison is a finding: "in both", "in BookCrossing only"."""
        found = self.harmful(row)
        tested = [n for n, e in self.rows[row].items() if status_of(e) != "not tested"]
        missing = [name for name in self.names if name not in tested]
        if len(set(found.values())) > 1:
            ways = {
                way: [n for n, status in found.items() if status == way]
                for way in dict.fromkeys(found.values())
            }
            return "; ".join(f"{way} in {joined(some)}" for way, some in ways.items() if some)
        if len(found) == len(self.names):
            return _in_all(len(found))
        said = []
        if found:
            said = [f"in {joined(found)}{' only' if len(found) < len(tested) else ''}"]
        elif tested:
            said = ["in neither" if len(self.names) == 2 and not missing else "in none"]
        doubtful = [
            (n, e) for n, e in self.rows[row].items() if n not in found and self._points(n, e)
        ]
        reversible = [n for n, e in doubtful if is_reversible(e)]
        early = [n for n, e in doubtful if not is_reversible(e)]
        for some, what in (
            (reversible, "unlabeled items could reverse"),
            (early, "early sign in"),
            (missing, "not compared in"),
        ):
            said += [f"{what} {joined(some)}"] if some else []
        return "; ".join(said)

    def verdict(self, title: str) -> Verdict:
        """Return the one verdict across the data sets."""
        first = next(iter(self.questions.values()))
        about = [row for row in self.rows if self._counts(row)]
        found = {row: self.harmful(row) for row in about}
        found = {row: ways for row, ways in found.items() if ways}
        answers = [self.verdicts[name].answer for name in self.names]
        answer: Answer = "no clear evidence"
        rule = "No comparison is significant in a direction that counts, in any data set."
        if any(len(set(ways.values())) > 1 for ways in found.values()) or "mixed" in answers:
            answer, rule = "mixed", "The same comparison has opposite directions."
        elif found:
            answer = "yes"
            rule = "At least one comparison is significant in at least one data set."
        elif all(one == "cannot tell" for one in answers):
            answer, rule = "cannot tell", "No data set gives an answer."
        systems = tuple(
            SystemStatus(name, name, v.answer, _MARKS[v.answer], v.headline)
            for name, v in self.verdicts.items()
        )
        every = tuple(e for some in self.rows.values() for e in some.values())
        harm = frozenset(p.harm for case in self.cases.values() for p in case.phrases.values())
        family = Family(every, sum(map(len, found.values())), harm)
        both = sum(len(ways) == len(self.names) for ways in found.values())
        shared = sum(
            all(n in some and status_of(some[n]) != "not tested" for n in self.names)
            for row in about
            if (some := self.rows[row])
        )
        everywhere = f"{_in_all(len(self.names))} data sets"
        sure: Text = (
            f"{count(shared, 'comparison')} could be made {everywhere}, of which {both} "
            f"{'is' if both == 1 else 'are'} significant {_in_all(len(self.names))}. In all, "
            f"{len(found)} {'is' if len(found) == 1 else 'are'} significant in at least one. "
            f"{_ONLY}",
        )
        return Verdict(
            first.name, title or first.asks, answer, rule, self._headline(answer, found, first),
            systems, (), (), family, sure, (),
            ("Read the report of each data set: it has what could change its answer.",),
            in_short=tuple(
                ((Strong(f"{name}: "), *text)) for name, v in self.verdicts.items()
                for text in v.in_short
            ),
            per="Data set",
        )  # fmt: skip

    def _counts(self, row: _Row) -> bool:
        """Return whether a comparison is about an audited system, and no baseline, somewhere."""
        for name, e in self.rows[row].items():
            context = self.cases[name].context
            systems = [s for s in context.result.systems if self.cases[name].of(s)]
            if e.system not in references_of(systems, context):
                return True
        return False

    def _headline(
        self, answer: Answer, found: Mapping[_Row, Mapping[str, str]], question: Question
    ) -> Text:
        if answer == "cannot tell":
            return (Strong("Cannot tell"), f" in any of the {len(self.names)} data sets.")
        if not found:
            does = plain(fill(question.yes, **next(iter(self.cases.values())).forms(1)))
            of = "either" if len(self.names) == 2 else f"any of the {len(self.names)}"
            what = "data set" if len(self.names) == 2 else "data sets"
            no = Strong(f"No clear evidence in {of} {what}")
            return (no, f" that a {question.systems} {does}.")
        deeds: dict[tuple[str, str, str], dict[str, dict[str, None]]] = {}
        said: list[Text] = []
        for row, ways in found.items():
            name = next(iter(ways))
            e, case = self.rows[row][name], self.cases[name]
            if len(set(ways.values())) > 1:
                told, turned = finding_of(e, case), Strong("In opposite directions")
                about = plain((*told.what, ", ", *told.who) if e.group else told.what)
                said.append((turned, ": ", Name(row.system), f", {about}: {self.where(row)}."))
                continue
            phrase: Phrase = case.phrase(e)
            where, *others = self.where(row).split("; ")
            where += f" ({'; '.join(others)})" if others else ""
            about = plain(finding_of(e, case).object)
            by_system = deeds.setdefault((where, phrase.summary, phrase.than), {})
            by_system.setdefault(row.system, {})[about] = None
        whole = _in_all(len(self.names))
        for (where, summary, than), systems in sorted(
            deeds.items(), key=lambda d: d[0][0] != whole
        ):
            lead = f"{where[0].upper()}{where[1:]}{' data sets' if where == whole else ''}"
            # Systems that do the same are named together.
            alike: dict[tuple[str, ...], list[Name]] = {}
            for system, objects in systems.items():
                alike.setdefault(tuple(objects), []).append(Name(system))
            case = next(iter(self.cases.values()))
            for about_what, names in alike.items():
                said.append(
                    (Strong(lead), ", ", *clause(names, summary, about_what, case), f"{than}.")
                )
        rest = len(said) - _MOST_CLAUSES
        shown = said[:_MOST_CLAUSES]
        shown += [(f"The table has {count(rest, 'more pattern')}.",)] if rest > 0 else []
        return tuple(part for text in shown for part in (" ", *text))[1:]

    # -- Sections.

    def sections(self) -> Iterable[Section]:
        """Return the comparisons across data sets, then every part of the question."""
        tables = tuple(self._across())
        if tables:
            yield Section("across", "Across data sets", tables)
        parts: dict[str, list[tuple[Context, Part]]] = {}
        for context in self.contexts:
            for one in self.questions[context.set].sections:
                title = one.title if isinstance(one.title, str) else one.title(context)
                parts.setdefault(title, []).append((context, one))
        for title, members in parts.items():
            blocks = tuple(_shared(members))
            if blocks:
                # A table that all data sets share is what the study is for.
                shared = any(isinstance(block, Table) for block in blocks)
                yield Section("part", title, blocks, members[0][1].appendix and not shared)

    def _across(self) -> Iterable[Block]:
        """Show every comparison of the question, one column for each data set."""
        measures = dict.fromkeys(row.measure for row in self.rows)
        for number, measure in enumerate(measures, 1):
            rows = [row for row in self.rows if row.measure == measure]
            rows.sort(key=lambda row: (-len(self.harmful(row)), not self._counts(row)))
            every = [(self.cases[n].phrase(e).scale, e) for r in rows for n, e in
                     self.rows[r].items()]  # fmt: skip
            scale, notes = every[0][0], Notes()
            most = largest(scale.distance(e) for _, e in every)
            body = tuple(
                (
                    Cell(shorten(row.system, 60)),
                    Cell(shorten(row.what, 60)),
                    *(value_cell(self.rows[row].get(n), scale, notes, most) for n in self.names),
                    Cell(self.where(row)),
                )
                for row in rows
            )
            titles = (Column("System"), Column("What"), *(Column(n, True) for n in self.names))
            caption = (
                f"{measure[0].upper()}{measure[1:]}, by data set, and where it is statistically "
                "significant after correction in a direction that counts."
            )
            yield Table(
                f"study-{number}-{next(iter(self.questions.values())).name}", caption,
                (*titles, Column("Significant")), body, scale.name, notes.lines,
                folded=number > 1,
            )  # fmt: skip


def _in_all(number: int) -> str:
    return "in both" if number == 2 else f"in all {number}"


def _shared(members: Sequence[tuple[Context, Part]]) -> Iterable[Block]:
    """Return the tables of a part over all data sets, and its charts side by side."""
    charts: dict[str, dict[str, Chart]] = {}
    first = {name: show for _, part in members for name, show in _tables(part)}
    for name, table in first.items():
        yield from table.of([c for c, part in members if name in dict(_tables(part))])
    for context, part in members:
        for block in (b for show in part.shows for b in show.blocks(context)):
            if isinstance(block, Chart):
                charts.setdefault(block.name, {})[context.set] = block
    for some in charts.values():
        chart = next(iter(some.values()))
        if all(isinstance(p, Panel) for one in some.values() for p in one.panels):
            panels = side_by_side({name: one.panels for name, one in some.items()})
            yield replace(chart, panels=panels)
            continue
        for number, (name, one) in enumerate(some.items(), 1):
            yield replace(one, name=f"{one.name}-{number}", title=f"{name}: {one.title}")


def _tables(part: Part) -> list[tuple[str, BlockTable]]:
    return [(show.name, show) for show in part.shows if isinstance(show, BlockTable)]
