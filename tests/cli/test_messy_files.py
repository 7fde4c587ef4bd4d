"""Files as people have them: `ombud audit` reaches the numbers that the raw lists give.

The files are written from plain Python lists, and the expected numbers come from the same lists:
nothing here uses ombud's reader.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import zipfile
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ombud.audits import Result
from ombud.cli.commands import app

RNG = random.Random(7)
USERS = list(range(101, 141))
ITEMS = list(range(1, 61))
HISTORY = [(u, i, RNG.choice([1, 2, 3, 4, 5]), 1_700_000_000 + 86_400 * RNG.randrange(300))
           for u in USERS for i in RNG.sample(ITEMS, 12)]  # fmt: skip
TAGS = {
    i: sorted(RNG.sample(["violence", "gore", "death"], RNG.choice([0, 1, 1, 2]))) for i in ITEMS
}
LISTS = {name: {u: RNG.sample(ITEMS, 10) for u in USERS} for name in ("alpha", "beta")}
WORDS = ["you people", "a fine day", "go away", "the train, again", "nice; really", 'he said "no"']
TEXTS = [(n, f"{RNG.choice(WORDS)} {n}", RNG.random() < 0.4) for n in range(1, 301)]
FLAGS = {n: RNG.random() < (0.7 if bad else 0.2) for n, _, bad in TEXTS}
SCORES = {n: round(RNG.uniform(0.5, 0.99) if FLAGS[n] else RNG.uniform(0.01, 0.49), 3)
          for n, _, _ in TEXTS}  # fmt: skip


def gap(system: str, label: str) -> float:
    """The share of a label in lists minus that in histories, averaged over users."""
    seen = {u: [i for v, i, _, _ in HISTORY if v == u] for u in USERS}
    both = [
        sum(label in TAGS[i] for i in LISTS[system][u]) / 10
        - sum(label in TAGS[i] for i in seen[u]) / len(seen[u])
        for u in USERS
    ]
    return sum(both) / len(both)


def false_positives() -> float:
    fine = [n for n, _, bad in TEXTS if not bad]
    return sum(FLAGS[n] for n in fine) / len(fine)


def day(seconds: int, form: str) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime(form)


def table(rows: Iterable[Iterable[object]], separator: str = ",") -> str:
    """CSV with the quotes that it needs."""
    out = io.StringIO()
    for row in rows:
        cells = [str(cell) for cell in row]
        quoted = [
            '"' + c.replace('"', '""') + '"' if separator in c or '"' in c else c for c in cells
        ]
        out.write(separator.join(quoted) + "\n")
    return out.getvalue()


def history(
    separator: str = ",", head: str = "user,item,rating,timestamp", rating=str, time=str
) -> str:  # type: ignore[no-untyped-def]
    rows = [[u, i, rating(r), time(t)] for u, i, r, t in HISTORY]
    return table([head.split(","), *rows], separator)


def tags(separator: str = ",", head: str = "item,label") -> str:
    return table([head.split(","), *([i, t] for i in ITEMS for t in TAGS[i])], separator)


def lists(separator: str = ",", head: str = "user,item,rank", first: int = 1) -> str:
    rows = [[u, i, n] for u in USERS for n, i in enumerate(LISTS["alpha"][u], first)]
    return table([head.split(","), *rows], separator)


def texts(separator: str = ",", head: str = "id,text,label", yes: str = "1", no: str = "0") -> str:
    return table([head.split(","), *([n, t, yes if b else no] for n, t, b in TEXTS)], separator)


def flags(separator: str = ",", head: str = "id,flagged", yes: str = "1", no: str = "0") -> str:
    return table([head.split(","), *([n, yes if FLAGS[n] else no] for n, _, _ in TEXTS)], separator)


Files = dict[str, str | bytes]
Case = tuple[str, Callable[[], Files], list[str]]


def one_hot() -> str:
    names = ["violence", "gore", "death"]
    rows = [[i, *(int(n in TAGS[i]) for n in names)] for i in ITEMS]
    return table([["movieId", *names], *rows])


def wide() -> str:
    rows = [[u, *LISTS["alpha"][u]] for u in USERS]
    return table([["user_id", *(f"rec{n}" for n in range(1, 11))], *rows])


def two_systems() -> str:
    rows = [[m, u, i, round(1 - n / 10, 2)] for m in LISTS for u in USERS
            for n, i in enumerate(LISTS[m][u])]  # fmt: skip
    RNG.shuffle(rows)
    return table([["model", "user", "item", "score"], *rows])


def zipped(name: str, text: str, *others: tuple[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for inside, content in ((name, text), *others):
            archive.writestr(inside, content)
    return out.getvalue()


def film(item: int) -> str:
    """A title without digits."""
    return f"{['Old', 'New', 'Red', 'Blue', 'Long', 'Lost'][item % 6]} {chr(65 + item // 6) * 3}"


def german() -> Files:
    comma = lambda r: f"{r + 0.5:.1f}".replace(".", ",")  # noqa: E731
    head = "Kunden-Nr,Film Nr,Bewertung,Datum"
    dates = lambda t: day(t, "%d.%m.%Y %H:%M")  # noqa: E731
    return {
        "bewertungen.csv": ("\ufeff" + history(";", head, comma, dates)).encode(),
        "warnungen.csv": tags(";", "Film Nr,Inhaltswarnung").encode("cp1252"),
        "empfehlungen.csv": lists(";", "Kunden-Nr,Film Nr,Rang"),
    }


NO = ["--unlabeled", "no"]
LISTED: list[Case] = [
    ("german Excel: BOM, semicolons, decimal commas, dotted dates", german, NO),
    ("Excel sep= line, quoted headers with spaces and capitals", lambda: {
        "r.csv": "sep=;\n" + history(";", '"User ID" ,"Movie ID","Rating","Time"'),
        "tags.csv": tags(";", "Movie ID,Tag"), "recs.csv": lists(",", "USER ID,MOVIE ID,RANK")}, NO),
    ("UTF-16 from a spreadsheet, tabs", lambda: {
        "clicks.txt": history("\t").encode("utf-16"), "tags.txt": tags("\t").encode("utf-16"),
        "recs.tsv": lists("\t")}, NO),
    ("comments, blank lines and a repeated header", lambda: {
        "ratings.csv": "# exported 2026-11-01\n# by shop\n" + history() + "\n" + "user,item,rating,timestamp\n",
        "labels.csv": tags() + "\n\n", "recs.csv": lists()}, NO),
    ("compressed: gz and zip", lambda: {
        "ratings.csv.gz": gzip.compress(history().encode()),
        "labels.zip": zipped("inner/labels.csv", tags()),
        "recs.csv.gz": gzip.compress(lists().encode())}, NO),
    ("pipes, NA words in ratings, milliseconds, float ids", lambda: {
        "ratings.psv": history("|", rating=lambda r: "N/A" if r == 3 else r, time=lambda t: t * 1000)
,
        "labels.csv": table([["item", "label"], *([f"{i}.0", t] for i in ITEMS for t in TAGS[i])]),
        "recs.csv": lists(first=0)}, NO),
    ("one-hot labels, wide lists, member numbers", lambda: {
        "views.csv": history(head="member_no,title_no,stars,viewed_at"),
        "advisories.csv": one_hot().replace("movieId", "title_no"),
        "recs.csv": wide().replace("user_id", "member_no")}, []),
    ("genres in one cell, lists as JSON arrays", lambda: {
        "ratings.csv": history(head="userId,movieId,rating,timestamp"),
        "movies.csv": table([["movieId", "title", "genres"],
            *([i, f"Film, the {i}th", "|".join(TAGS[i])] for i in ITEMS)]),
        "recs.jsonl": "\n".join(json.dumps({"userId": u, "items": LISTS["alpha"][u]}) for u in USERS)}, NO),
    ("two systems in one file, scores without ranks", lambda: {
        "history.csv": history(), "labels.csv": tags(), "output.csv": two_systems()}, NO),
    ("French headers, Latin-1", lambda: {
        "notes.csv": history(";", "Utilisateur,Œuvre".replace("Œ", "Oe") + ",Note,Horodatage").encode("latin-1"),
        "avertissements.csv": tags(";", "Oeuvre,Catégorie").encode("latin-1"),
        "recommandations.csv": lists(";", "Utilisateur,Oeuvre,Rang").encode("latin-1")}, NO),
    ("names that nobody knows, mapped", lambda: {
        "a.csv": history(head="m,t,g,w"), "b.csv": tags(head="t,adv"), "c.csv": lists(head="m,t,n")},
     [*NO, "--as", "interactions=a.csv", "--as", "labels=b.csv", "--as", "recommendations=c.csv",
      "--map", "user=m", "--map", "item=t", "--map", "label=adv", "--map", "rank=n"]),
    ("a title above the table, percent scores", lambda: {
        "ratings.csv": "Export of all ratings\n\n" + history(), "labels.csv": tags(),
        "recs.csv": table([["user", "item", "score"], *([u, i, f"{100 - 3 * n}%"] for u in USERS
            for n, i in enumerate(LISTS["alpha"][u]))])}, NO),
    ("objects in JSON lines, titles beside ids, arrays of ids and scores", lambda: {
        "events.jsonl": "\n".join(json.dumps({"user": {"id": u}, "item": {"id": i}, "ts": t * 1000})
            for u, i, _, t in HISTORY),
        "items.jsonl": "\n".join(json.dumps({"id": i, "title": f"Film {i}", "warnings": TAGS[i]})
            for i in ITEMS),
        "als.jsonl": "\n".join(json.dumps({"user_id": u, "ids": LISTS["alpha"][u],
            "scores": [1 - n / 20 for n in range(10)]}) for u in USERS)}, NO),
    ("ids in one cell, labels in capitals, a synopsis beside them, a row of totals", lambda: {
        "ratings.csv": history(head="customer_id,movie,stars,rated") + f"Total,{len(HISTORY)},,\n\n",
        "films.csv": table([["movie", "synopsis", "warnings"], *([i, f'A "film"\nof {i}, and no more',
            "|".join(t.title() if i % 2 else t for t in TAGS[i])] for i in ITEMS)]),
        "submission.csv": table([["customer_id", "prediction"],
            *([u, " ".join(map(str, LISTS["alpha"][u]))] for u in USERS)])},
     [*NO, "--read", "labels.fold=true"]),
]  # fmt: skip

WARNINGS = ("violence", "gore", "death")
SEEN = {u: [i for v, i, _, _ in HISTORY if v == u] for u in USERS}
LISTED += [
    ("MovieLens: ratings with :: and no header, tags with taggers; lists as one object", lambda: {
        "ratings.dat": "".join(f"{u}::{i}::{r}::{t}\n" for u, i, r, t in HISTORY),
        "tags.csv": table([["userId", "movieId", "tag", "timestamp"], *([u, i, t, 1_700_000_000]
            for i in ITEMS for t in TAGS[i] for u in USERS[: 1 + i % 3])]),
        "recs.json": json.dumps(LISTS["alpha"])}, [*NO, "--yes"]),
    ("RecBole: atomic files", lambda: {
        "a.inter": history("\t", "user_id:token,item_id:token,rating:float,timestamp:float"),
        "a.item": table([["item_id:token", "tags:token_seq"],
            *([i, " ".join(TAGS[i])] for i in ITEMS)], "\t"),
        "recs.inter": table([["user_id:token", "item_id:token", "score:float"],
            *([u, i, -n] for u in USERS for n, i in enumerate(LISTS["alpha"][u]))], "\t")}, NO),
    ("a history in a cell; flags among the facts of a catalog", lambda: {
        "history.csv": table([["user", "watched"],
            *([u, "|".join(map(str, SEEN[u]))] for u in USERS)]),
        "catalog.csv": table([["item", "title", "year", *WARNINGS],
            *([i, f"Film {i}", 1990 + i, *(int(t in TAGS[i]) for t in WARNINGS)] for i in ITEMS)]),
        "recs.csv": lists()}, []),
    ("impressions that were clicked or not; unclear labels", lambda: {
        "log.csv": table([["user_id", "artist_id", "plays", "clicked"],
            *([u, i, f"{r * 700:,}", 1] for u, i, r, _ in HISTORY),
            *([u, i, 0, 0] for u in USERS for i in ITEMS if i not in SEEN[u] and i % 5 == 0)]),
        "labels.csv": table([["artist_id", "label", "value"],
            *([i, t, "yes" if t in TAGS[i] else "no"] for i in ITEMS for t in WARNINGS),
            *([i, "violence", "unclear"] for i in (901, 902))]),
        "recs.csv": lists(head="user_id,artist_id,rank")},
     ["--read", "interactions.where=clicked=1"]),
    ("annotators of items, with a column for each label; a column of lists for each system", lambda: {
        "ratings.csv": history(), "recs.csv": table([["user", *LISTS],
            *([u, *(json.dumps(LISTS[name][u]) for name in LISTS)] for u in USERS)]),
        "labels.csv": table([["item", "annotator", *WARNINGS], *([i, who,
            *(int(t in TAGS[i]) for t in WARNINGS)] for i in ITEMS for who in "abc")])}, []),
]  # fmt: skip

MODERATED: list[Case] = [
    ("replies by id in one object", lambda: {
        "texts.csv": texts(), "perspective.json": json.dumps({n: {"attributeScores":
            {"TOXICITY": {"summaryScore": {"value": SCORES[n]}}}} for n, _, _ in TEXTS})},
     ["--threshold", "0.5"]),
    ("a column for each annotator, and for each group", lambda: {
        "texts.csv": table([["id", "text", *(f"rater_{a}" for a in (1, 2, 3)), "women", "muslim"],
            *([n, t, int(b), int(b), int(not b), n % 2, n % 3 // 2] for n, t, b in TEXTS)]),
        "flags.csv": flags()}, []),
    ("semicolons, ja and nein", lambda: {
        "kommentare.csv": texts(";", "Nr,Kommentar,giftig", "ja", "nein").encode("cp1252"),
        "entscheidungen.csv": flags(";", "Nr,Entscheidung", "entfernt", "behalten")}, []),
    ("removed and hidden, mapped", lambda: {
        "comments.csv": texts(head="comment_id,comment_text,toxic"),
        "decisions.csv": table([["comment_id", "status"],
            *([n, RNG.choice(["removed", "limited"]) if FLAGS[n] else "live"] for n, _, _ in TEXTS)])},
     ["--yes-values", "removed,limited"]),
    ("floats and NaN", lambda: {
        "texts.csv": texts(yes="1.0", no="0.0"),
        "flags.csv": table([["id", "flagged"], *([f"{n}.0", float(FLAGS[n])] for n, _, _ in TEXTS)])}, []),
    ("one file for texts, truth and decisions", lambda: {
        "all.csv": table([["id", "text", "label", "flagged"],
            *([n, t, int(b), int(FLAGS[n])] for n, t, b in TEXTS)])}, []),
    ("decimal-comma scores", lambda: {
        "texts.csv": texts(";"),
        "scores.csv": table([["id", "score"],
            *([n, str(SCORES[n]).replace(".", ",")] for n, _, _ in TEXTS)], ";")}, ["--threshold", "0.5"]),
    ("several annotators", lambda: {
        "texts.csv": table([["id", "text", "annotator", "label"],
            *([n, t, a, int(b if a < 2 else not b)] for n, t, b in TEXTS for a in range(3))]),
        "flags.csv": flags(yes="TRUE", no="FALSE")}, []),
    ("words of a data set", lambda: {
        "texts.csv": texts(yes="toxic", no="not toxic"), "flags.csv": flags(yes="Yes", no="No")}, []),
    ("JSON array and UTF-16", lambda: {
        "texts.json": json.dumps([{"id": n, "text": t, "label": b} for n, t, b in TEXTS]),
        "flags.txt": flags("\t").encode("utf-16")}, []),
    ("a column whose yes means that a text is fine", lambda: {
        "texts.csv": texts(head="id,text,is_safe", yes="0", no="1"),
        "dec.csv": flags(head="id,approved", yes="false", no="true")}, ["--yes"]),
    ("classes 0, 1 and 2", lambda: {
        "texts.csv": table([["id", "tweet", "class"], *([n, t, n % 2 if b else 2] for n, t, b in TEXTS)]),
        "dec.csv": flags()}, ["--yes-values", "0,1"]),
    ("label in both files, a repeated header, totals", lambda: {
        "texts.csv": texts(yes="hate", no="noHate"),
        "pred.csv": flags(head="id,label", yes="hate", no="noHate").replace(
            "\n150,", "\nid,label\n150,") + "Total,9\n"}, []),
    ("two files that share the text alone", lambda: {
        "c.csv": table([["text", "toxic"], *([t, int(b)] for _, t, b in TEXTS)]),
        "d.csv": table([["text", "flagged"], *([t, int(FLAGS[n])] for n, t, _ in TEXTS[::-1])])}, []),
    ("one file without ids, named as in scikit-learn", lambda: {
        "all.csv": table([["comment_text", "y_true", "y_pred"],
            *([t, 2 * b - 1, 2 * FLAGS[n] - 1] for n, t, b in TEXTS)])}, ["--yes"]),
    ("objects in JSON lines: everything in one", lambda: {
        "all.jsonl": "\n".join(json.dumps({"id": n, "comment": {"body": t}, "gold": {"toxic": b},
            "model": {"flagged": FLAGS[n]}}) for n, t, b in TEXTS)}, []),
    ("decisions as a column beside the texts", lambda: {
        "all.csv": table([["id", "text", "label", "v2"],
            *([n, t, int(b), int(FLAGS[n])] for n, t, b in TEXTS)])},
     ["--map", "decisions.flagged=v2"]),
]  # fmt: skip

REFUSED: list[tuple[str, Callable[[], Files], list[str], str]] = [
    ("lists that are not recognized are not replaced by others", lambda: {
        "ratings.csv": history(), "labels.csv": tags(),
        "x.csv": table([["user", "blob"], *([u, f"{u}#{i}"] for u in USERS for i in range(3))])},
     [*NO, "--yes"], "--as recommendations=FILE"),
    ("decisions that are not recognized are not replaced by a list of words", lambda: {
        "all.csv": texts(head="id,text,label"), "x.csv": flags(head="id,v2")},
     ["--yes"], "decisions.flagged=COLUMN"),
    ("ids with thousands separators", lambda: {
        "ratings.csv": table([["user", "item"], *([u, f"{i + 970:,}"] for u, i, _, _ in HISTORY)]),
        "labels.csv": table([["item", "label"], *([i + 970, t] for i in ITEMS for t in TAGS[i])]),
        "recs.csv": table([["user", "item", "rank"],
            *([u, i + 970, n] for u in USERS for n, i in enumerate(LISTS["alpha"][u], 1))])},
     NO, "may be '1000' of another"),
    ("labels that differ in capitals alone", lambda: {
        "ratings.csv": history(), "recs.csv": lists(),
        "labels.csv": table([["item", "label"], *([i, t.upper() if i % 2 else t]
            for i in ITEMS for t in TAGS[i])])}, NO, "--read labels.fold=true"),
    ("a threshold that flags every text", lambda: {
        "texts.csv": texts(),
        "scores.csv": table([["id", "score"], *([n, 100 * SCORES[n]] for n, _, _ in TEXTS)])},
     ["--threshold", "0.5", "--yes"], "flags every text"),
    ("columns that contradict each other", lambda: {
        "texts.csv": texts(), "dec.csv": table([["id", "flagged", "outcome"], *([n, int(FLAGS[n]),
            "removed" if FLAGS[n] != (n % 9 == 0) else "kept"] for n, _, _ in TEXTS)])},
     ["--yes"], "--map decisions.flagged=flagged (or outcome)"),
    ("rows that were not clicked", lambda: {
        "log.csv": table([["user", "item", "clicked"], *([u, i, r % 2] for u, i, r, _ in HISTORY)]),
        "labels.csv": tags(), "recs.csv": lists()}, NO, "--map rating=clicked (it is)"),
    ("words that no column is read by", lambda: {"texts.csv": texts(), "dec.csv": flags()},
     ["--yes-values", "0"], "--read texts.yes=0"),
    ("a setting that is neither true nor false", lambda: {
        "texts.csv": texts(), "dec.csv": flags()}, ["--read", "texts.votes=yes"], "votes is 'yes'"),
    ("a number that is none", lambda: {"texts.csv": texts(), "dec.csv": flags()},
     ["--read", "texts.yes_from=1.2.3"], "yes_from is '1.2.3'"),
]  # fmt: skip


ISBN = {i: f"{i * 7919:09d}{'X' if i % 4 == 0 else i % 10}" for i in ITEMS}
"""Numbers with leading zeros, some of which end in a letter, so that all of them are words."""


def spelled(head: str, items: Callable[[int], object]) -> str:
    rows = [[u, items(i), n] for u in USERS for n, i in enumerate(LISTS["alpha"][u], 1)]
    return table([head.split(","), *rows])


def flagged_by(items: Callable[[int], object], head: str = "item") -> str:
    rows = [[items(i), *(int(w in TAGS[i]) for w in WARNINGS)] for i in ITEMS]
    return table([[head, *WARNINGS], *rows])


def psql(rows: list[list[object]]) -> str:
    """A table as psql prints it."""
    lines = ["|".join(f" {str(cell):>12} " for cell in row) for row in rows]
    ruler = "+".join("-" * 14 for _ in rows[0])
    return "\n".join([lines[0], ruler, *lines[1:], f"({len(rows) - 1} rows)", "", ""])


SHUFFLED = [(u, i, n) for u in USERS for n, i in enumerate(LISTS["alpha"][u])]
RNG.shuffle(SHUFFLED)
LISTED += [
    ("a database's NULL users in histories and lists", lambda: {
        "ratings.csv": history() + "".join(f"NULL,{i},3,1700000000\n" for i in ITEMS),
        "labels.csv": one_hot(),
        "recs.csv": lists() + "".join(f"NULL,{i},{n}\n" for n, i in enumerate(ITEMS[:10], 1))}, []),
    ("ISBNs of which the lists lost the leading zeros", lambda: {
        "ratings.csv": table([["user", "isbn"], *([u, ISBN[i]] for u, i, _, _ in HISTORY)]),
        "labels.csv": flagged_by(ISBN.__getitem__, "isbn"),
        "recs.csv": spelled("user,isbn,rank",
            lambda i: ISBN[i] if ISBN[i].endswith("X") else ISBN[i].lstrip("0"))},
     ["--read", "interactions.ids=numbers", "--read", "labels.ids=numbers"]),
    ("distances, of which the lowest is the best", lambda: {
        "ratings.csv": history(), "labels.csv": one_hot(),
        "neighbors.csv": table([["user", "item", "distance"],
            *([u, i, n / 7] for u, i, n in SHUFFLED),
            *([u, i, 9 + i] for u in USERS for i in ITEMS if i not in LISTS["alpha"][u])])},
     ["--read", "recommendations.best=lowest"]),
    ("labels with a relevance for every item", lambda: {
        "ratings.csv": history(head="userId,movieId,rating,timestamp"),
        "genome-scores.csv": table([["movieId", "tag", "relevance"],
            *([i, w, 0.75 if w in TAGS[i] else 0.125] for i in ITEMS for w in WARNINGS)]),
        "recs.csv": lists(head="userId,movieId,rank")}, ["--read", "labels.yes_from=0.5"]),
    ("wide lists with -1 after their end", lambda: {
        "ratings.csv": history(), "labels.csv": one_hot(),
        "recs.csv": table([["user", *(f"item_{n}" for n in range(14))],
            *([u, *LISTS["alpha"][u], *[-1] * 4] for u in USERS)])}, []),
    ("what psql prints", lambda: {
        "history.txt": psql([["user_id", "item_id"], *([u, i] for u, i, _, _ in HISTORY)]),
        "labels.csv": one_hot(),
        "recs.txt": psql([["user_id", "item_id", "rank"],
            *([u, i, n + 1] for u, i, n in sorted(SHUFFLED))])}, []),
    ("RecBole's classes, one column after the other in JSON", lambda: {
        "ml.inter": table([["user_id:token", "item_id:token"], *([u, i] for u, i, _, _ in HISTORY)], "\t"),
        "ml.item": table([["item_id:token", "class:token_seq"],
            *([i, " ".join(TAGS[i]) or "none"] for i in ITEMS)], "\t"),
        "recs.json": json.dumps({name: {str(row): cells[place] for row, cells in enumerate(SHUFFLED)}
            for place, name in enumerate(("user_id", "item_id", "rank"))})}, NO),
    ("movies without a header", lambda: {
        "ratings.csv": history(),
        "movies.dat": "".join(f"{i}::Caf\xe9 {i} (1995)::{'|'.join(TAGS[i]) or 'none'}\n"
            for i in ITEMS).encode("latin-1"), "recs.csv": lists()},
     [*NO, "--as", "labels=movies.dat", "--read", "labels.names=item,title,label"]),
    ("names with dots, as R writes them", lambda: {
        "ratings.csv": history(head="member.key,thing.key,rating,time"),
        "labels.csv": flagged_by(str, "thing.key"), "recs.csv": lists(head="member.key,thing.key,rank")},
     ["--map", "user=member.key", "--map", "item=thing.key", "--as", "interactions=ratings.csv",
      "--as", "labels=labels.csv", "--as", "recommendations=recs.csv"]),
]  # fmt: skip

MODERATED += [
    ("row numbers from 0 for texts without ids", lambda: {
        "texts.csv": table([["text", "label"], *([t, int(b)] for _, t, b in TEXTS)]),
        "decisions.csv": table([["id", "flagged"], *([n - 1, int(FLAGS[n])] for n, _, _ in TEXTS)])}, []),
    ("a pipeline's nested lists with labels without a name", lambda: {
        "texts.csv": texts(),
        "preds.json": json.dumps([[{"label": "LABEL_1", "score": SCORES[n]},
            {"label": "LABEL_0", "score": 1 - SCORES[n]}] for n, _, _ in TEXTS])},
     ["--yes-values", "LABEL_1"]),
    ("fractions of raters as the label", lambda: {
        "texts.csv": table([["id", "text", "target"], *([n, t, 0.6 if b else 0.2] for n, t, b in TEXTS)]),
        "decisions.csv": flags()}, ["--map", "texts.label=target", "--read", "texts.yes_from=0.5"]),
    ("-1 for texts that nobody rated, a class that is called like a group", lambda: {
        "texts.csv": table([["id", "text", "toxic", "identity_hate"],
            *([n, t, int(b), 0] for n, t, b in TEXTS),
            *([n, f"not rated {n}", -1, -1] for n in range(1001, 1101))]),
        "decisions.csv": flags() + "".join(f"{n},1\n" for n in range(1001, 1101))},
     ["--read", "texts.missing=-1"]),
    ("decisions that are still open", lambda: {
        "texts.csv": texts() + "".join(f"{n},a text {n},0\n" for n in range(1001, 1051)),
        "queue.csv": flags(head="id,status", yes="Reject", no="approve")
        + "".join(f"{n},pending\n" for n in range(1001, 1051))}, ["--yes-values", "reject"]),
    ("a frame's index as id, a class that is called like a language", lambda: {
        "labeled.csv": table([["", "offensive_language", "class", "tweet"],
            *([7 * n, 3 * b, 0 if b else 2, t] for n, t, b in TEXTS)]),
        "model.csv": table([["", "flagged"], *([7 * n, FLAGS[n]] for n, _, _ in TEXTS)])},
     ["--yes-values", "0", "--as", "decisions=model.csv", "--map", "decisions.id=index",
      "--map", "texts.id=index"]),
    ("Dynahate's id, zeros in one file", lambda: {
        "texts.txt": table([["acl.id", "text", "label"],
            *([f"{n:05d}", t, "hate" if b else "nothate"] for n, t, b in TEXTS)], "\t").encode("utf-16"),
        "decisions.csv": flags(head="acl.id,prediction", yes="hate", no="nothate")},
     ["--read", "texts.ids=numbers"]),
]  # fmt: skip

REFUSED += [
    ("leading zeros lost in lists beside ids that are words", lambda: {
        "ratings.csv": table([["user", "isbn"], *([u, ISBN[i]] for u, i, _, _ in HISTORY)]),
        "labels.csv": flagged_by(ISBN.__getitem__, "isbn"),
        "recs.csv": spelled("user,isbn,rank",
            lambda i: ISBN[i] if ISBN[i].endswith("X") else ISBN[i].lstrip("0"))},
     [], "--read TABLE.ids=numbers"),
    ("ids that a spreadsheet rounded", lambda: {
        "ratings.csv": table([["user", "ean"],
            *([u, f"{9780300000000 + 37 * i:.5E}"] for u, i, _, _ in HISTORY)]),
        "labels.csv": flagged_by(lambda i: f"{9780300000000 + 37 * i:.5E}", "ean"),
        "recs.csv": spelled("user,ean,rank", lambda i: f"{9780300000000 + 37 * i:.5E}")},
     ["--map", "item=ean"], "lost digits in a spreadsheet"),
    ("distances without a word on which is best", lambda: {
        "ratings.csv": history(), "labels.csv": one_hot(),
        "neighbors.csv": table([["user", "item", "distance"], *([u, i, n / 7] for u, i, n in SHUFFLED)])},
     [], "--read recommendations.best=lowest"),
    ("a relevance without a word on how much is enough", lambda: {
        "ratings.csv": history(), "recs.csv": lists(),
        "genome.csv": table([["item", "tag", "relevance"], *([i, "gore", i / 100] for i in ITEMS)])},
     [], "--read labels.yes_from=0.5"),
    ("-1, 0 and 1", lambda: {
        "texts.csv": texts(no="-1") + "1001,a text,0\n", "decisions.csv": flags()},
     ["--yes-values", "1"], "--read texts.missing=-1"),
    ("labels of a pipeline without a name", lambda: {
        "texts.csv": texts(),
        "preds.json": json.dumps([[{"label": "LABEL_1", "score": 0.5}] for _ in TEXTS])},
     [], "--yes-values LABEL,LABEL"),
    ("lists of two days", lambda: {
        "ratings.csv": history(), "labels.csv": one_hot(),
        "recs.csv": table([["day", "user", "item", "rank"],
            *(["2026-03-01", u, i, n + 1] for u, i, n in SHUFFLED),
            *(["2026-03-08", u, i, 10 - n] for u, i, n in SHUFFLED)])},
     [], "--read recommendations.where=COLUMN=VALUE"),
    ("ids that no text has", lambda: {
        "texts.csv": texts(),
        "decisions.csv": table([["id", "flagged"], *([n + 5000, n % 2] for n, _, _ in TEXTS)])},
     [], "--map texts.id=COLUMN"),
    ("a matrix of users and items", lambda: {
        "matrix.csv": table([["user", *ITEMS], *([u, *(i % 5 for i in ITEMS)] for u in USERS)]),
        "labels.csv": one_hot(), "recs.csv": lists()},
     ["--as", "interactions=matrix.csv"], "write a row per user and item"),
]  # fmt: skip


LISTED += [
    ("lists of objects by user in JSON; a row without a user", lambda: {
        "ratings.csv": history() + ",5,3,1700000000\n", "labels.csv": tags(),
        "recs.json": json.dumps({u: [{"item": i, "score": -n} for n, i in enumerate(one)]
            for u, one in LISTS["alpha"].items()})}, NO),
    ("items by label in JSON; a matrix of lists with the user as index", lambda: {
        "ratings.csv": history(),
        "labels.json": json.dumps({t: [i for i in ITEMS if t in TAGS[i]] for t in WARNINGS}),
        "recs.csv": table([["", *range(10)], *([u, *LISTS["alpha"][u]] for u in USERS)])},
     [*NO, "--map", "user=index"]),
    ("impressions among the events; labels with spaces between", lambda: {
        "log.csv": table([["user", "item", "event"],
            *([u, i, "click" if i % 2 else "purchase"] for u, i, _, _ in HISTORY),
            *([u, i, "impression"] for u in USERS for i in ITEMS if i not in SEEN[u])]),
        "labels.csv": table([["item", "tags"],
            *([i, " ".join(TAGS[i])] for i in ITEMS if TAGS[i])]),
        "recs.csv": lists()},
     [*NO, "--read", "interactions.where=event=click,purchase", "--read", "labels.split= "]),
    ("a catalog with genres and warnings; the word none", lambda: {
        "ratings.csv": history(), "recs.csv": lists(),
        "catalog.csv": table([["item", "title", "genres", "content_warnings"], *([i, f"F {i}",
            "drama|war" if i % 2 else "war", "; ".join(TAGS[i]) or "none"] for i in ITEMS)])},
     [*NO, "--map", "labels.label=content_warnings"]),
    ("severities from 0 to 3 in a column for each label", lambda: {
        "ratings.csv": history(), "recs.csv": lists(),
        "warnings.csv": table([["item", *WARNINGS],
            *([i, *((t in TAGS[i]) * (1 + i % 3) for t in WARNINGS)] for i in ITEMS)])},
     ["--read", "labels.yes_from=1"]),
    ("percentages in a column for each label; ids with spaces between", lambda: {
        "ratings.csv": history(),
        "warnings.csv": table([["item", *WARNINGS],
            *([i, *("85%" if t in TAGS[i] else "10%" for t in WARNINGS)] for i in ITEMS)]),
        "submission.csv": table([["customer_id", "prediction"],
            *([u, " ".join(map(str, LISTS["alpha"][u]))] for u in USERS)])},
     ["--read", "labels.yes_from=0.5"]),
    ("two columns of items after a join; a column that says absent", lambda: {
        "ratings.csv": table([["user", "item_x", "item_y"],
            *([u, i, 61 - i] for u, i, _, _ in HISTORY)]), "recs.csv": lists(),
        "labels.csv": table([["item", "label", "absent"],
            *([i, t, t not in TAGS[i]] for i in ITEMS for t in WARNINGS)])},
     ["--map", "interactions.item=item_x", "--read", "labels.yes=false"]),
]  # fmt: skip
MODERATED += [
    ("tabs and line breaks within quotes, in UTF-16", lambda: {
        "texts.txt": "id\ttext\tlabel\n".encode("utf-16") + "".join(
            f'{n}\t"one\n""two""; tab\t{n}"\t{int(b)}\n' for n, _, b in TEXTS).encode("utf-16-le"),
        "flags.csv": flags()}, []),
    ("one reply of OpenAI about all texts", lambda: {
        "texts.csv": texts(), "replies.json": json.dumps({"id": "modr-1", "model": "omni",
            "results": [{"flagged": FLAGS[n], "categories": {"hate": FLAGS[n]},
                "category_scores": {"hate": SCORES[n]}} for n, _, _ in TEXTS]})}, []),
    ("decisions by id in JSON; a share of raters", lambda: {
        "texts.csv": table([["id", "text", "toxicity"],
            *([n, t, 0.8 if b else n % 5 / 10] for n, t, b in TEXTS)]),
        "decisions.json": json.dumps(FLAGS)}, ["--read", "texts.yes_from=0.5"]),
    ("decisions without ids in the order of the texts", lambda: {
        "texts.csv": texts(), "dec.csv": table([["flagged"], *([FLAGS[n]] for n, _, _ in TEXTS)])},
     ["--as", "decisions=dec.csv", "--read", "decisions.numbered=true"]),
    ("a column for each system in a file of decisions; keep", lambda: {
        "texts.csv": texts(),
        "dec.csv": table([["id", "keep"], *([n, int(not FLAGS[n])] for n, _, _ in TEXTS)])},
     ["--read", "decisions.yes=0"]),
]  # fmt: skip
REFUSED += [
    ("a score of how safe a text is", lambda: {
        "texts.csv": texts(),
        "dec.csv": table([["id", "safe_score"], *([n, 1 - SCORES[n]] for n, _, _ in TEXTS)])},
     ["--threshold", "0.5"], "--map decisions.score=COLUMN"),
    ("decisions about flagged texts only", lambda: {
        "texts.csv": texts(), "dec.csv": table([["id", "decision"],
            *([n, "removed"] for n, _, _ in TEXTS if FLAGS[n])])},
     [], "--read decisions.yes=removed (all were flagged)"),
    ("ids in other capitals", lambda: {
        "ratings.csv": table([["user", "item"], *([u, f"f-{i}"] for u, i, _, _ in HISTORY)]),
        "labels.csv": table([["item", "label"], *([f"f-{i}", t] for i in ITEMS for t in TAGS[i])]),
        "recs.csv": spelled("user,item,rank", lambda i: f"F-{i}")}, NO, "in capitals alone"),
    ("groups that differ in spaces", lambda: {
        "texts.csv": table([["id", "text", "label", "group"],
            *([n, t, int(b), "women " if n % 3 else "women"] for n, t, b in TEXTS)]),
        "dec.csv": flags()}, [], "--read texts.fold=true"),
    ("a number from which on no label applies", lambda: {
        "ratings.csv": history(), "recs.csv": lists(), "warnings.csv": table([["item", *WARNINGS],
            *([i, *((t in TAGS[i]) / 2 + 0.1 for t in WARNINGS)] for i in ITEMS)])},
     ["--read", "labels.yes_from=50"], "the highest is 0.6"),
]  # fmt: skip

LISTED += [
    ("labels as JSON in a cell; lists of objects in a cell", lambda: {
        "ratings.csv": history(), "recs.csv": table([["user", "recommendations"], *([u, json.dumps(
            [{"product": i, "score": 1 - n / 20} for n, i in enumerate(LISTS["alpha"][u])])]
            for u in USERS)]),
        "tags.csv": table([["item", "tags"], *([i, json.dumps(TAGS[i])] for i in ITEMS)])}, NO),
    ("objects as Python prints them; arrays as numpy prints them", lambda: {
        "ratings.csv": history(), "recs.csv": table([["user", "items"],
            *([u, "[" + " ".join(map(str, LISTS["alpha"][u])) + "]"] for u in USERS)]),
        "keywords.csv": table([["item", "keywords"], *([i, str([{"id": len(t), "name": t}
            for t in TAGS[i]])] for i in ITEMS)])}, NO),
    ("Spanish words; the history has a score", lambda: {
        "compras.csv": table([["usuario", "producto", "puntuación"],
            *([u, i, r] for u, i, r, _ in HISTORY)], ";").encode("latin-1"),
        "etiquetas.csv": tags(";", "producto,etiqueta"),
        "recomendaciones.csv": lists(";", "usuario,producto,posición").encode("latin-1")}, NO),
    ("files joined by cat, with marks of their own", lambda: {
        "interactions.csv": history(), "tags.csv": tags(),
        "recommendations.csv": "\ufeff" + lists() + "\ufeffuser,item,rank\n"}, NO),
    ("empty last cells; merged cells above the header", lambda: {
        "ratings.csv": history().replace("\n", ",,\n").replace("\n", ",\n", 1), "tags.csv": tags(),
        "recs.csv": "Customer,Recommendation,\n" + lists()}, NO),
    ("titles without digits by user in JSON", lambda: {
        "ratings.csv": table([["user", "title"], *([u, film(i)] for u, i, _, _ in HISTORY)]),
        "tags.csv": table([["title", "label"], *([film(i), t] for i in ITEMS for t in TAGS[i])]),
        "recs.json": json.dumps({u: list(map(film, LISTS["alpha"][u])) for u in USERS})}, NO),
    ("a readme in the archive; names that end in id; nested items", lambda: {
        "ratings.zip": zipped("README.txt", "who", ("r.csv", history())), "tags.csv": tags(),
        "recs.jsonl": "\n".join(json.dumps({"userid": u, "recs": [
            {"item": {"id": i}, "score": 1 - n / 20} for n, i in enumerate(LISTS["alpha"][u])]})
            for u in USERS)}, NO),
    ("scores that are missing beside ranks; order ids", lambda: {
        "orders.csv": table([["Order ID", "Customer ID", "Product ID", "Price"],
            *([f"#{n}", u, i, "$1,234.50"] for n, (u, i, _, _) in enumerate(HISTORY))]),
        "tags.csv": tags(), "recs.csv": table([["user", "item", "rank", "score"],
            *([u, i, n + 1, "" if n % 3 else 1 - n / 20] for u in USERS
              for n, i in enumerate(LISTS["alpha"][u]))])}, NO),
]  # fmt: skip
MODERATED += [
    ("answers of Llama Guard", lambda: {"texts.csv": texts(), "out.csv": table([["id", "output"]]) +
        "".join(f'{n},"{"unsafe" if FLAGS[n] else "safe"}\nS{n % 13}"\n' for n, _, _ in TEXTS)}, []),
    ("outputs of a pipeline in a cell, as pandas writes them", lambda: {"texts.csv": texts(),
        "out.csv": table([["id", "prediction"], *([n, str([{"label": "toxic" if FLAGS[n] else
            "non-toxic", "score": 0.9}])] for n, _, _ in TEXTS)])}, []),
    ("quotes behind a backslash, as Spark writes them", lambda: {"texts.csv": "id,text,label\n" +
        "".join(f'{n},"a \\"b, c\\" {n}",{int(b)}\n' for n, _, b in TEXTS), "dec.csv": flags()}, []),
    ("quotes within bare texts; a log of JSON with a wrapper", lambda: {
        "texts.csv": "id,text,label\n" + "".join(f'{n},5" {n},{int(b)}\n' for n, _, b in TEXTS),
        "dec.json": json.dumps({"meta": {}, "results": [{"id": n, "flagged": FLAGS[n]}
                                                        for n, _, _ in TEXTS]}, indent=1)}, []),
    ("an empty first column and a total", lambda: {"dec.csv": flags(), "texts.csv": table([
        ["", "id", "text", "label"], *(["", n, t, int(b)] for n, t, b in TEXTS),
        ["", "Total", "", 120]])}, []),
    ("several groups in one cell of another file", lambda: {"texts.csv": texts(), "dec.csv": flags(),
        "groups.csv": table([["id", "groups"], *([n, "women" if n % 2 else "men|men"]
            for n, _, _ in TEXTS)])}, []),
    ("frames as pandas splits them", lambda: {"texts.csv": texts(), "dec.json": json.dumps({
        "columns": ["id", "flagged"], "data": [[n, FLAGS[n]] for n, _, _ in TEXTS]})}, []),
]  # fmt: skip
REFUSED += [
    ("a rank that cannot be read", lambda: {"ratings.csv": history(), "tags.csv": tags(),
        "recs.csv": table([["user", "item", "position"], *([u, i, f"{n + 1}/10"] for u in USERS
            for n, i in enumerate(LISTS["alpha"][u]))])}, NO, "--map recommendations.rank=position"),
    ("a number that may order lists", lambda: {"ratings.csv": history(), "tags.csv": tags(),
        "recs.csv": table([["user", "item", "match"], *([u, i, f"{90 - n}%"] for u in USERS
            for n, i in enumerate(LISTS["alpha"][u]))])},
     [*NO, "--as", "recommendations=recs.csv"], "--map recommendations.score=match"),
    ("a log of views and purchases", lambda: {"recs.csv": lists(), "tags.csv": tags(),
        "log.csv": table([["user", "item", "event_type"], *([u, i, "view" if i % 2 else "purchase"]
            for u, i, _, _ in HISTORY)])}, NO, "--read interactions.where=event_type=purchase"),
    ("a score in the history, and lists of no known order", lambda: {"tags.csv": tags(),
        "a.csv": table([["user", "item", "score"], *([u, i, r] for u, i, r, _ in HISTORY)]),
        "b.csv": lists(head="user,item,plads")}, NO, "several files look like interactions"),
    ("cells that hold the separator without quotes", lambda: {"dec.csv": flags(), "texts.csv":
        "id,label,text\n" + "".join(f"{n},{int(b)},a, b {n}\n" if n % 9 else f"{n},{int(b)},a {n}\n"
                                    for n, _, b in TEXTS)}, [], "put cells that hold ',' in quotes"),
]  # fmt: skip


def audit(
    folder: Path, files: Files, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    for name, content in files.items():
        (folder / name).write_bytes(_bytes(content))
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(app, ["audit", *files, *options, "--json"])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def value(result: dict[str, Any], metric: str, **where: str) -> float:
    found = [
        e for e in result["estimates"]
        if e["metric"].startswith(metric) and not e.get("group") and e["kind"] == "level"
        and all(e.get(k) == v for k, v in where.items())
    ]  # fmt: skip
    assert len(found) == 1, [
        (e["metric"], e.get("label"), e["system"]) for e in result["estimates"]
    ]
    return float(found[0]["value"])


@pytest.mark.parametrize(("make", "options"), [c[1:] for c in LISTED], ids=[c[0] for c in LISTED])
def test_lists(
    make: Callable[[], Files], options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = audit(tmp_path, make(), options, monkeypatch)
    systems = {e["system"] for e in result["estimates"]}
    for system in systems:
        truth = system if system in LISTS else "alpha"
        for label in ("violence", "gore", "death"):
            found = value(result, "share gap@10", system=system, label=label)
            assert found == pytest.approx(gap(truth, label), abs=1e-6)
    assert len(systems) == (2 if systems <= set(LISTS) else 1)


@pytest.mark.parametrize(
    ("make", "options"), [c[1:] for c in MODERATED], ids=[c[0] for c in MODERATED]
)
def test_moderators(
    make: Callable[[], Files], options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = audit(tmp_path, make(), options, monkeypatch)
    assert value(result, "false-positive rate") == pytest.approx(false_positives(), abs=1e-6)
    by = {e["group"].rpartition("=")[2]: e["value"] for e in result["estimates"]
          if e["kind"] == "level" and e["metric"].startswith("false-positive")}  # fmt: skip
    if "women" in by:
        fine = [n for n, _, bad in TEXTS if not bad and n % 2]
        assert by["women"] == pytest.approx(sum(FLAGS[n] for n in fine) / len(fine), abs=1e-6)
    assert len(by) == (3 if b"women" in b"".join(map(_bytes, make().values())) else 1)


@pytest.mark.parametrize(
    ("make", "options", "words"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED]
)
def test_what_could_be_read_in_two_ways_is_asked(
    make: Callable[[], Files],
    options: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, content in make().items():
        (tmp_path / name).write_text(str(content))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["audit", *make(), *options])
    assert done.exit_code == 2, done.output
    assert words in done.output
    assert not (tmp_path / "audit").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--map", "foo=topic"], "'foo' is none of annotator, attribute,"),
        (["--map", "label=nosuch"], "there is no column 'nosuch' among"),
        (["--map", "texts.rank=topic"], "--map texts.rank=topic was not used: no table has"),
        (["--map", "users.user=topic"], "no file holds users"),
        (["--read", "labels.split=,"], "--read labels.split was not used: no file holds labels"),
        (["--unlabeled", "no"], "--unlabeled no was not used: no file holds labels"),
        (["--threshold", "0.7"], "not used: decisions are stated in decisions.csv"),
        (["opinions=texts.csv"], "'opinions' is not what a file can hold; one of"),
    ],
)
def test_an_answer_that_changes_nothing_is_refused(
    options: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [["id", "text", "label", "topic"], *([n, t, int(b), "films"] for n, t, b in TEXTS)]
    (tmp_path / "texts.csv").write_text(table(rows))
    (tmp_path / "decisions.csv").write_text(flags())
    monkeypatch.chdir(tmp_path)
    for command in ("audit", "init"):
        done = CliRunner().invoke(app, [command, "texts.csv", "decisions.csv", *options])
        assert done.exit_code == 2 and words in done.output, done.output
        assert not list(tmp_path.glob("**/plan.toml"))


def test_groups_of_texts_are_those_of_the_column_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [[n, f"text number {n}", "0", ("films", "sports")[n % 2]] for n in range(60)]
    (tmp_path / "texts.csv").write_text(table([["id", "text", "toxic", "topic"], *rows]))
    flagged = [[n, int(n % 2 == 1 and n < 40)] for n in range(60)]
    (tmp_path / "decisions.csv").write_text(table([["id", "flagged"], *flagged]))
    monkeypatch.chdir(tmp_path)
    files = ["audit", "texts.csv", "decisions.csv"]
    done = CliRunner().invoke(app, files)
    assert "columns topic (--map group=COLUMN compares its groups)" in done.output, done.output
    assert "Cannot tell. The plan declares nothing to compare." in done.output
    assert "\nFalse-positive rate\nContent " in done.output
    for name in ("group", "texts.group"):
        done = CliRunner().invoke(app, [*files, "--map", f"{name}=topic", "-o", name])
        assert done.exit_code == 0, done.output
        estimates = Result.load(f"{name}/plan.result").select(key="false-positive-rate")
        shares = {e.group: e.value for e in estimates if e.kind == "level" and e.group}
        assert shares == {"topic=films": 0.0, "topic=sports": 20 / 30}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--threshold", "200"], "the threshold 200 flags no text"),
        (["--threshold", "50", "--yes-values", "x"], "--yes-values x was not used"),
    ],
)
def test_a_first_plan_does_not_guess_which_texts_are_flagged(
    options: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "texts.csv").write_text(texts())
    scores = table([["id", "score"], *([n, 100 * SCORES[n]] for n, _, _ in TEXTS)])
    (tmp_path / "scores.csv").write_text(scores)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["init", "texts.csv", "scores.csv", *options])
    assert done.exit_code == 2 and words in done.output, done.output
    assert not (tmp_path / "plan.toml").exists()
    bare = CliRunner().invoke(app, ["init", "texts.csv", "scores.csv"])
    assert bare.exit_code == 0 and "flags are not measured; --threshold NUMBER" in bare.output
    assert "threshold" not in (tmp_path / "plan.toml").read_text().partition("[data]")[2]


def test_without_a_terminal_all_questions_come_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(history(head="m,t,g,w"))
    (tmp_path / "labels.csv").write_text(tags())
    (tmp_path / "recs.csv").write_text(lists(head="user,thing,rank"))
    done = CliRunner().invoke(app, ["audit", "a.csv", "labels.csv", "recs.csv"])
    assert done.exit_code == 2
    assert "3 open questions" in done.output
    assert "--as ROLE=a.csv" in done.output
    again = ["audit", "a.csv", "labels.csv", "recs.csv", "--as", "interactions=a.csv"]
    done = CliRunner().invoke(app, again)
    assert "--map user=COLUMN" in done.output and "--map item=COLUMN" in done.output
    assert not (tmp_path / "audit").exists()


def test_the_plan_runs_on_next_weeks_files_and_says_what_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files: Files = {"ratings.csv": history(), "labels.csv": tags(), "recs.csv": lists()}
    audit(tmp_path, files, NO, monkeypatch)
    rows = history().splitlines()
    changed = [rows[0] + ",device", *(row + ",phone" for row in rows[1:-10])]
    (tmp_path / "ratings.csv").write_text("\n".join(changed).replace(",", ";"))
    done = CliRunner().invoke(app, ["run", "audit/plan.toml", "-o", "week2"])
    assert done.exit_code == 0, done.output
    assert "new columns: device" in " ".join(done.output.split())
    assert "separated by semicolons" in done.output


def test_ambiguous_dates_and_numbers_are_refused_with_both_readings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    few = [(u, i, r, t) for u, i, r, t in HISTORY if int(day(t, "%d")) <= 12]
    rows = [[u, i, day(t, "%d/%m/%Y")] for u, i, _, t in few]
    (tmp_path / "views.csv").write_text(table([["user", "item", "date"], *rows]))
    plan = (
        '[data]\ninteractions = "views.csv"\n%s[split]\nmethod = "time"\n'
        '[systems.popular]\ntype = "popular"\n[[metrics]]\nname = "ndcg"\nk = 5\n'
    )
    (tmp_path / "plan.toml").write_text(plan % "")
    mapped = '[data.columns.interactions]\ntime = "date"\n'
    (tmp_path / "plan.toml").write_text(plan % mapped)
    done = CliRunner().invoke(app, ["run", "plan.toml"])
    assert done.exit_code == 2
    assert 'dates = "day-first" or "month-first"' in done.output
    chosen = mapped + '[data.reading.interactions]\ndates = "day-first"\n'
    (tmp_path / "plan.toml").write_text(plan % chosen)
    done = CliRunner().invoke(app, ["run", "plan.toml"])
    assert done.exit_code == 0, done.output


PLAIN_HISTORY = [(u, 10 * u + k) for u in range(12) for k in range(4)]
PLAIN_LISTS = [(u, 10 * u + k + 2, k) for u in range(12) for k in (1, 2)]
PLAIN_LABELS = [(10 * u + k, int(k == 3)) for u in range(12) for k in range(5)]


@pytest.mark.parametrize(
    ("ratings", "labels", "recs", "read"),
    [
        ([("" if i % 10 else u, i) for u, i in PLAIN_HISTORY], PLAIN_LABELS, PLAIN_LISTS,
         "interactions.fill_down=true"),
        ([(u, f"{i}a") for u, i in PLAIN_HISTORY], [(f"{{{i}A}}", v) for i, v in PLAIN_LABELS],
         [(u, f"{i}a", k) for u, i, k in PLAIN_LISTS], "labels.ids=lowercase"),
        (PLAIN_HISTORY, PLAIN_LABELS,
         [(u, f"{10 * u + 4}:0.2|{10 * u + 3}:0.9") for u in range(12)], ""),
    ],
)  # fmt: skip
def test_users_of_blocks_ids_in_braces_and_items_with_scores(
    ratings: list[Any], labels: list[Any], recs: list[Any], read: str,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / "ratings.csv").write_text(table([["user", "item"], *ratings]))
    (tmp_path / "labels.csv").write_text(table([["item", "gore"], *labels]))
    names = ["user", "item", "rank"] if len(recs[0]) == 3 else ["user", "recs"]
    (tmp_path / "recs.csv").write_text(table([names, *recs]))
    monkeypatch.chdir(tmp_path)
    files = ["audit", "ratings.csv", "labels.csv", "recs.csv"]
    if read:
        done = CliRunner().invoke(app, files)
        assert done.exit_code == 2 and f"--read {read}" in done.output, done.output
        files += ["--read", read]
    done = CliRunner().invoke(app, files)
    assert done.exit_code == 0, done.output
    (gap,) = [e.value for e in Result.load("audit/plan.result").estimates if e.kind == "level"]
    assert gap == 0.25  # one of two recommended items, and one of four of the history


def test_several_rows_about_one_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [[n, f"text {n}", 0] for n in range(40)]
    (tmp_path / "texts.csv").write_text(table([["id", "text", "toxic"], *texts]))
    rows = [*([n, 1] for n in range(40)), *([n, 0] for n in range(20))]
    (tmp_path / "decisions.csv").write_text(table([["id", "flagged"], *rows]))
    monkeypatch.chdir(tmp_path)
    files = ["audit", "texts.csv", "decisions.csv"]
    done = CliRunner().invoke(app, files)
    assert done.exit_code == 2 and "--read decisions.duplicates=last" in done.output
    for how, rate in (("last", 0.5), ("repeats", 0.75)):
        read = ["--read", f"decisions.duplicates={how}"]
        done = CliRunner().invoke(app, [*files, *read, "-o", how])
        assert done.exit_code == 0, done.output
        found = Result.load(f"{how}/plan.result").select(key="false-positive-rate", kind="level")
        assert [e.value for e in found] == [rate]
    (tmp_path / "texts.csv").write_text(
        table([["id", "text", "toxic"], *texts, *([n, f"text {n}", 1] for n in range(20))])
    )
    done = CliRunner().invoke(app, [*files, "--read", "decisions.duplicates=last"])
    assert done.exit_code == 2 and "--read texts.votes=true" in done.output
