"""Delicate text: which of it is missed, and what changes decisions?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ombud.audits.result import Result
from ombud.questions.delicate.comparison import published_transfer
from ombud.questions.tautologies import tautologies
from ombud.registry import question
from ombud.report import charts
from ombud.report.context import Context, Select
from ombud.report.display import count, shorten
from ombud.report.model import Block, Cell, Chart, Column, Prose, Strong, Table, Text
from ombud.report.numbers import COUNT, DIFFERENCE, POINTS, SCORE, SHARE, Scale, p_text, percent
from ombud.report.question import Phrase, Question, unlabeled_texts
from ombud.report.show import (
    MARKS,
    Alert,
    Custom,
    Frame,
    Grid,
    Listing,
    Matrix,
    Say,
    Stored,
    estimate_table,
    part,
    under,
)
from ombud.stats.estimate import Estimate
from ombud.taxonomy.model import load_crosswalk

_WORDS = 6
_UNTESTED = 4.0  # The z score from which a word is named without a test
_NEARLY = 0.9
_PUBLISHED_AS = {"tweeteval-hate test": "HatEval A"}

# -- What was measured, by name.

RECALL = Select("detection-recall", ("contrast",))
SWAPS = Select("swap/flips-changed", ("overall",), exact=True)
TRIPLETS = Select("winogender/fails", ("overall",), exact=True)
TEMPLATES = Select("template/fails", exact=True)
_RATES = {
    "Precision": "detection-precision",
    "Recall": "detection-recall",
    "F1": "detection-f1",
    "Accuracy": "detection-accuracy",
    "Share flagged": "flag-share",
    "False-positive rate": "false-positive-rate",
}
LEVELS = tuple((title, Select(name, ("overall",))) for title, name in _RATES.items())
AREA = Select("detection/auc", ("overall",), exact=True)
TUNED = Select("detection/tuned-f1", exact=True)
PAIRS = (
    Select("detection/accuracy-difference", exact=True),
    Select("detection-f1", ("systems",)),
    Select("detection/auc", ("systems",), exact=True),
    *(Select(n, ("systems",)) for t, n in _RATES.items() if t != "F1"),
)
RANGE = Select("country/score-range", exact=True)
COUNTRY = Select("country/pairs-changed", ("overall",), exact=True)
PAIR_FLIPS = Select("winogender/flips-male-female", exact=True)
FUNCTIONS = Select("functions/pass", exact=True)
BASE_RATES = Select("base-rates/precision", exact=True)
ALPHAS = Select("ratings/alpha", exact=True)
RATED_F1 = Select("ratings/f1", exact=True)
RATED = tuple(
    Select(f"ratings/{name}", exact=True)
    for name in ("precision", "recall", "log-loss", "calibration", "within-one", "weighted-kappa")
)
CHANGED = Select("repeats/changed", exact=True)
ONE_ANSWER = Select("repeats/f1-one-answer", exact=True)


def _of(root: str, role: str, *names: str) -> tuple[tuple[str, Select], ...]:
    titles = {"f1": "F1", "flag-share": "Share flagged"}
    return tuple(
        (titles.get(n, n.capitalize()), Select(f"{root}/{n}", (role,), exact=True))  # type: ignore[arg-type]
        for n in names
    )


# -- Words.


def _is_told(e: Estimate) -> bool:
    """Return whether a group is in the family: texts with and without a term are not.

    Terms decide who is in them, and many systems decide by terms: what would be found is half
    true by definition. `ombud.questions.tautologies` finds the pairs that are so altogether.
    """
    return not e.group.startswith("explicit=") and not e.group.endswith("=no term")


def _broader() -> Iterator[tuple[str, str]]:
    """Yield each group of a topic with the group of its coarse topic."""
    for fine, broad, relation in load_crosswalk("delicate@1", "delicate-coarse@1").rows:
        if relation != "related":
            yield f"topic={fine}", f"coarse-topic={broad}"


def _uncounted(result: Result) -> Callable[[Estimate], bool]:
    """Return what tells tautologies, and coarse topics that are one topic a second time."""
    known, groups = tautologies(result), {e.group for e in result.estimates}
    topics = Counter(coarse for fine, coarse in _broader() if fine in groups)
    return lambda e: known(e) or topics[e.group] == 1


def _story(e: Estimate, context: Context) -> str:
    """Return the group, or the coarse topic of a topic that holds nearly all of its texts."""
    sizes = {g.group: g.n for g in context.find(Select(e.key, ("group",), exact=True))}
    coarse = (c for fine, c in _broader() if fine == e.group)
    most = (c for c in coarse if sizes.get(e.group, 0) >= _NEARLY * sizes.get(c, math.inf))
    return next(most, e.group)


# -- Sentences.


def _raters(context: Context) -> Text:
    del context
    return (
        "Other raters or another threshold for \u201cdelicate\u201d could change it. Lists of "
        "terms define the topics.",
    )


def _found(context: Context) -> Iterable[Block]:
    """Say what each system finds and flags wrongly, in counts."""
    lines: list[Text] = []
    for e in context.find(LEVELS[2][1]):
        cells = [e.details.get(f"count of {name}") for name in ("tp", "fp", "fn", "tn")]
        if None in cells:
            continue
        tp, fp, fn, tn = (int(n or 0) for n in cells)
        found = Strong(f"{tp:,} of {tp + fn:,}")
        wrong = f" delicate texts, and flags {fp:,} of {fp + tn:,} others."
        lines.append((context.names.system(e.system), " finds ", found, wrong))
    yield Prose(tuple(lines), bullets=True)


def _seen(context: Context) -> Sequence[Text]:
    """Warn of detectors that have seen audited texts."""
    lines: list[Text] = []
    for row in context.rows("seen-texts"):
        said = [
            f"was {how} {row[how]:,} of the {row['texts']:,} audited texts"
            for how in ("trained on", "calibrated on")
            if row[how]
        ]
        if said:
            who = context.names.system(row["system"])
            lines.append((who, f" {' and '.join(said)}, so its results are too good."))
    return lines


def _tuned(context: Context) -> Text | None:
    if not context.find(TUNED):
        return None
    return (
        "F1, tuned on the test, uses the threshold that does best on these very texts, as in the "
        "paper. Expect a lower F1 on new texts.",
    )


def _topics(context: Context) -> Text | None:
    if not any(e.group.startswith("topic=") for e in context.find(RECALL)):
        return None
    return (
        "Dictionary terms define topics. A text counts in each of its topics; a topic that a text "
        "treats without such a term is not counted. Moderators that decide by the same dictionary "
        "are not compared by topic, because the result would be true by definition.",
    )


def _standing_out(context: Context) -> Iterable[Block]:
    """Name the words that stand out among errors."""
    rows = context.rows("error-terms")
    if not rows:
        return
    words: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        p = row["p_adjusted"]
        if row["z"] >= _UNTESTED if p is None else p < 0.05:
            words.setdefault((row["system"], row["error"]), []).append(row["term"])
    lines: list[Text] = [
        (
            "Among the texts that ",
            context.names.system(system),
            f" {'wrongly flags' if error == 'false positive' else 'misses'}, these words stand "
            f"out: {', '.join(some[:_WORDS])}.",
        )
        for (system, error), some in words.items()
    ]
    if not lines:
        lines = [("No word clearly stands out among errors.",)]
    yield Prose(tuple(lines), bullets=len(lines) > 1)
    said = "Words are compared with texts of the same label that were decided correctly."
    if all(row["p_adjusted"] is None for row in rows):
        said += " Because texts are related, this is a hint, not a test."
    yield Prose(((f"{said} Offensive words are masked.",),))


def _rare(context: Context) -> Text | None:
    found = context.find(BASE_RATES)
    here = next((e.details.get("base rate of the test") for e in found), None)
    if not found:
        return None
    said = f"In this test {percent(float(here))} of texts are delicate. " if here else ""
    return (f"{said}Where fewer are, more of the flags are wrong.",)


def _rare_table(context: Context) -> Iterable[Block]:
    """Show the precision where so many of 100 texts are delicate; stored labels are shares."""
    if found := [e.replace(group=percent(float(e.label))) for e in context.find(BASE_RATES)]:
        caption = "Precision by the share of texts that are delicate."
        yield estimate_table(found, context, name="base-rates", caption=caption, scale=SCORE,
                             title="Delicate texts", ordered=True)  # fmt: skip


def _flips(context: Context) -> Iterable[Block]:
    """Say how many decisions each swap changes."""
    lines: list[Text] = []
    for e in context.find(COUNTRY):
        if e.value is not None:
            ends = ""
            if e.interval:
                ends = f" (95% CI {percent(e.interval[0])} to {percent(e.interval[1])})"
            lines.append(("Countries swapped: ", context.names.system(e.system), " decides ",
                          Strong(percent(e.value)), " of pairs of countries differently in the "
                          f"same sentence{ends}."))  # fmt: skip
    for e in context.find(SWAPS, TRIPLETS, TEMPLATES):
        flips = e.details.get("flips", e.details.get("fails"))
        if e.value is None or flips is None or not e.n:
            continue
        what = {TRIPLETS.metric: "triplets", TEMPLATES.metric: "templates"}.get(e.key, "texts")
        test = f"{str(context.names.label(e.label)).capitalize()} swapped"
        test = {"triplets": "Winogender", "templates": "Templates"}.get(what, test)
        ways = e.details.get("to flagged"), e.details.get("to allowed")
        more = ""
        if flips and None not in ways:
            more = f" {ways[0]} become flagged and {ways[1]} become allowed"
            p = e.details.get("mcnemar mid-p")
            more += "." if p is None else f" (p {p_text(p)} for the imbalance)."
        end = f" {what} differently.{more}"
        changed = Strong(f"{flips:,} of {e.n:,}")
        lines.append((f"{test}: ", context.names.system(e.system), " decides ", changed, end))
    yield Prose(tuple(lines), bullets=True)


def _again(context: Context) -> Iterable[Block]:
    """Say how many decisions change when a system is queried again."""
    lines: list[Text] = []
    for e in context.find(CHANGED):
        texts, asked = e.details.get("texts", e.n), int(e.details.get("repeats", 2))
        changed = Strong(f"{e.details.get('changed', 0):,} of {texts:,} texts")
        end = f", queried at least {count(asked, 'time')} each."
        lines.append((context.names.system(e.system), " changed its decision on ", changed, end))
    yield Prose(tuple(lines))


def _long(context: Context) -> Iterable[Block]:
    """Say how many texts are longer than what a detector reads at once."""
    lines: list[Text] = []
    for row in context.rows("long-texts"):
        longer = row["longer than the window"]
        if longer:
            said = (
                f" reads {row['window']} tokens at once; {count(longer, 'labeled text')} "
                f"{'is' if longer == 1 else 'are'} longer. Read to the end, "
                f"{row['max differs from cut']:,} are decided differently by their highest window "
                f"and {row['mean differs from cut']:,} by the mean of windows. It uses: "
                f"{row['used']}."
            )
            lines.append((context.names.system(row["system"]), said))
    yield Prose(tuple(lines))


def _heads(context: Context) -> Text | None:
    if not context.find(Select("heads/f1", exact=True)):
        return None
    return (
        "These moderators differ only in the head. Rule ", Strong("threshold"), ": the probability "
        "of risk 3 and more is above it. Rule ", Strong("argmax"), ": the most probable class is 3 "
        "or more. A binary head has no classes; its argmax is one half.",
    )  # fmt: skip


def _replaced(context: Context) -> Text | None:
    found = context.find(Select("training/f1", exact=True))
    if not any(e.label == "countries replaced" for e in found):
        return None
    return ("Replacing a country makes sentences that state facts false.",)


def _recovered(context: Context) -> Text | None:
    if context.table("published-figures") is None:
        return None
    return (
        "ombud recovers counts from rounded figures and class sizes. Figures have confidence "
        "intervals if exactly one confusion matrix fits. Their texts are not those of this audit, "
        "unless it audits the published benchmark. # marks thresholds chosen on the test.",
    )


# -- Charts and tables of this question alone.


def _curves(context: Context) -> Iterable[Block]:
    """Draw precision over recall at all thresholds."""
    table = context.table("precision-recall")
    lines = []
    for (system,), some in () if table is None else table.group_by(["system"], maintain_order=True):
        # A few points are a line that nothing is behind: the system has no scores but 0 and 1.
        if some.height > 4:
            points = list(zip(some["recall"].to_list(), some["precision"].to_list(), strict=True))
            lines.append(charts.Line(str(context.names.system(str(system))), points))
    if lines:
        title = "Precision and recall at every threshold"
        x, y = ("recall", 0.0, 1.0), ("precision", 0.0, 1.0)
        caption = "The curve describes these texts; the tables have confidence intervals."
        panel = charts.plane("", lines, x=x, y=y, said=title)
        yield Chart("precision-recall", title, caption, title, (panel,))


def _map(context: Context) -> Iterable[Block]:
    """Draw the scores of one sentence with every country, for one system."""
    spread = [e for e in context.find(RANGE) if e.value]
    widest = max(spread, key=lambda e: e.value or 0.0).system if spread else ""
    rows = [r for r in context.rows("bias-country", system=widest) if r["score"] is not None]
    # The paper's map is of its one sentence; results of earlier versions have no other.
    score = "first_score" if any(row.get("first_score") is not None for row in rows) else "score"
    values = {row["numeric"]: (row["name"], row[score]) for row in rows if row[score] is not None}
    if not values:
        return
    system = str(context.names.system(widest))
    title = f"One sentence, every country: scores of {shorten(system, 40)}"
    caption = (
        f"{count(len(values), 'country')} and territories; those too small to draw are dots. "
        "Outlines: Natural Earth."
    )
    yield Chart("country-map", title, caption, title, (charts.world(title, values),))


def _transfer(context: Context) -> Iterable[Block]:
    """Show what was published on the data sets of the audit."""
    sets = dict.fromkeys(
        e.group.removeprefix("set=")
        for e in context.find(Select("detection-f1", ("group",)))
        if e.group.startswith("set=")
    )
    names = {_PUBLISHED_AS.get(name, name) for name in sets}
    found = [row for row in published_transfer() if row.dataset in names]
    if not found:
        return
    rows = tuple(
        (Cell(row.dataset), Cell(row.method), Cell(f"{row.n:,}" if row.n else "", value=row.n))
        + tuple(Cell(f"{v / 100:.3f}", value=v / 100) for v in (row.precision, row.recall, row.f1))
        + (Cell(row.note),)
        for row in found
    )
    columns = (Column("Data set"), Column("Method"), Column("Texts", True),
               Column("Precision", True), Column("Recall", True), Column("F1", True),
               Column("Before comparing"))  # fmt: skip
    caption = "Figures published for the same data sets, without confidence intervals."
    yield Table("published-transfer", caption, columns, rows)


def _columns(
    counts: Sequence[str] = (), shares: Sequence[str] = (), words: Sequence[str] = ()
) -> Any:
    """Return titles and formats of a stored table whose columns depend on the data."""

    def frame(columns: Sequence[str]) -> Frame:
        made: dict[str, tuple[str, Scale | None]] = {}
        for name in columns:
            title = name.upper() if len(name) == 2 else name.replace("_", " ").capitalize()
            scale = COUNT if name in counts or name.startswith("said ") else None
            made[name] = (title, SCORE if name in shares else scale)
        return {name: made[name] for name in columns if not words or name in words}

    return frame


_COUNTS = ("tp", "fp", "fn", "tn", "texts", "matrices", "training texts", "validation texts",
           "both", "first alone", "second alone", "neither", "trained on", "calibrated on",
           "errors_with", "errors", "right_with", "right", "risk")  # fmt: skip
_NUMBERS = ("precision", "recall", "f1", "accuracy", "macro_f1", "threshold", "score", "flagged",
            "log_odds", "z", "p_adjusted")  # fmt: skip
STORED = _columns(_COUNTS, _NUMBERS)
COUNTRY_TABLE = _columns((), _NUMBERS, ("system", "iso3", "name", "continent", "region", "flagged",
                                  "score"))  # fmt: skip
ANYTHING = ("metric", "system", "label", "group", "against", "value", "p", "n")
HEADS = _of("heads", "overall", "precision", "recall", "f1")
LONG = _of("long-texts", "overall", "f1", "precision", "recall", "flag-share")
PUBLISHED = _of("published", "overall", "precision", "recall", "f1")
NOTIONS = _of("notions", "overall", "agreement", "kappa")

CHANGES = (
    part(
        "What changes decisions",
        Custom(_flips),
        Matrix(
            SWAPS,
            "Share of decisions that change, of the texts that a swap changes.",
            SHARE,
            rows=("label",),
        ),
        Grid(
            (("Pairs of countries", COUNTRY), ("Pairs of sentences (Winogender)", PAIR_FLIPS)),
            "Share of pairs that are decided differently when only the country, or only the "
            "pronoun, differs.",
            SHARE,
        ),
        Custom(_map),
        Stored("bias-country", "Every country and territory.", COUNTRY_TABLE, folded=True),
        Listing(
            under("swap/", "winogender/", "country/", "template/"),
            "All estimates of the bias tests.",
            SCORE,
            ANYTHING,
            folded=True,
            name="bias-table",
        ),
    ),
)

SECTIONS = (
    part(
        "How well delicate texts are found",
        Custom(_found),
        Alert("Texts seen before", _seen),
        Grid(
            (*LEVELS[:4], ("ROC area", AREA), ("F1, tuned on the test", TUNED)),
            "How well each system finds delicate texts, with confidence intervals.",
            SCORE,
        ),
        Say((_tuned,)),
        Custom(_curves),
        Stored("precision-recall", "Precision and recall at every threshold.", STORED, folded=True),
        Listing(
            PAIRS,
            "Two systems on the same texts: McNemar for correct decisions, DeLong for the ROC "
            "area, bootstrap for the others.",
            DIFFERENCE,
            ("metric", "system", "against", "value", "p", "n"),
            "Difference",
            folded=True,
            name="detection-tests",
        ),
        Stored("detection-counts", "Counts: flagged correctly (TP) and wrongly (FP), missed (FN), "
               "let through correctly (TN).", STORED, folded=True),
        Matrix(FUNCTIONS, "Share of texts decided as labeled, by the function that they test.",
               SHARE, rows=("group",)),
        Stored("seen-texts", "How moderators decide, and how many audited texts they were trained "
               "or calibrated on.", STORED, folded=True),
        Stored("seen-by-set", "The same by data set.", STORED, folded=True),
    ),
    part(
        "Which delicate texts are missed",
        Matrix(
            RECALL,
            f"Share of delicate texts found, compared with other delicate texts. {MARKS}",
            POINTS,
            rows=("group",),
            keep=lambda e: bool(e.family),  # the others are true by definition, or nearly
            less_is_harm=True,
        ),
        Say((_topics,)),
        *(
            Matrix(Select(name, ("group",)), f"{title} by group.", SCORE, ("group",), folded=True)
            for title, name in _RATES.items()
        ),
        *(
            Matrix(Select(name, ("contrast",)), f"{title}: difference from other texts.", POINTS,
                   ("group",), folded=True)
            for title, name in _RATES.items()
            if title != "Recall"
        ),
        Custom(_transfer),
    ),
    part(
        "Words that go with errors",
        Custom(_standing_out),
        Stored("error-terms", "Words that stand out among errors (log odds ratio; p corrected).",
               STORED, folded=True),
        Stored("error-examples", "Errors with the most certain scores; offensive words are masked "
               "unless the plan says otherwise.", STORED, folded=True),
    ),
    part(
        "Where delicate texts are rare",
        Say((_rare,)),
        Custom(_rare_table, BASE_RATES),
    ),
    part(
        "Long texts",
        Custom(_long),
        Grid(LONG, "Texts longer than the window of a moderator, by how they are read: the first "
             "window alone (cut), the highest window (max), the mean of windows (mean).", SCORE,
             rows=("system", "label")),
        Listing(
            under("long-texts/"),
            "All estimates for long texts.",
            SCORE,
            ANYTHING,
            folded=True,
            name="long-texts-table",
        ),
    ),
    part(
        "Repeated queries",
        Custom(_again),
        Grid((("Texts that change", CHANGED), ("F1 of one answer", ONE_ANSWER)),
             "Stability when a text is queried repeatedly.", SCORE),
        Stored("decision-stability", "Repeats by system.", STORED, folded=True),
        Stored("decision-stability-texts", "Texts whose decision or score changed, with the "
               "standard deviation over repeats.", STORED, folded=True),
    ),
    part(
        "What raters say",
        Listing(ALPHAS, "Krippendorff\u2019s alpha of the raters. The paper reports 0.65 "
                "without saying which alpha it is.", SCORE, ("metric", "value", "n"), "Alpha"),
        Matrix(RATED_F1, "F1 against each label derived from the ratings.", SCORE, rows=("label",)),
        Listing(RATED, "Precision, recall, calibration and risk classes against ratings.", SCORE,
                ("metric", "system", "label", "value", "n"), folded=True, name="ratings-table"),
        Stored("risk-confusion", "Risk by raters (rows) and the most probable class of the system.",
               STORED, folded=True),
        Stored("rating-counts", "How many texts each label has.", STORED, folded=True),
    ),
    part(
        "Several labels compared",
        Grid(NOTIONS, "Pairs of labels of the same texts.", SCORE, rows=("label",)),
        Listing(Select("notions/given", exact=True), "Share of the texts with one label that also "
                "have the other.", SHARE, ("label", "group", "value", "n"), folded=True),
        Stored("label-cross-table", "Texts with both labels, one, or neither.", STORED,
               folded=True),
    ),
    part(
        "Heads and rules",
        Say((_heads,)),
        Grid(HEADS, "Heads and rules, trained on the same texts.", SCORE),
        Listing(
            (Select("heads/accuracy-difference", exact=True),
             *(Select(f"heads/{n}", ("systems",), exact=True) for n in ("f1", "precision",
                                                                       "recall"))),
            "Two heads or rules on the same texts.",
            DIFFERENCE,
            ("metric", "system", "against", "value", "p", "n"),
            "Difference",
            folded=True,
            name="head-pairs",
        ),
        Grid(_of("heads", "overall", "within-one", "weighted-kappa"), "Predicted risk class.",
             SCORE, rows=("system", "label")),
        Grid(_of("training", "overall", "f1", "flips", "country-sd"),
             "Trained on the texts as given, and on changed texts: F1, decisions that flip when "
             "gender is swapped, and spread of scores over countries.", SCORE,
             rows=("label", "system")),
        Listing(Select("training/f1", ("systems",), exact=True), "F1 with changed training texts "
                "minus F1 with the texts as given.", DIFFERENCE,
                ("label", "system", "against", "value", "p", "n"), "Difference"),
        Say((_replaced,)),
        Stored("head-confusion", "Risk by raters (rows) and by each head.", STORED, folded=True),
        Stored("heads", "Thresholds and sizes.", STORED, folded=True),
    ),
    part(
        "Published figures",
        Say((_recovered,)),
        Grid(PUBLISHED, "Published figures, with the confidence intervals that their counts allow.",
             SCORE),
        Stored("published-figures", "Counts behind published figures.", STORED, folded=True),
    ),
)  # fmt: skip


@question("delicate", "detection-recall")
def delicate() -> Question:
    """Declare which delicate texts are found less than others."""
    return Question(
        name="delicate",
        asks="Which delicate texts are missed?",
        family={
            RECALL: Phrase(
                sentence="{system} finds {level} of delicate {who}, compared with {other} of "
                "other delicate texts.",
                fallback="{system} finds fewer of the delicate {who} than of others: {size}.",
                summary="{system} find{s} fewer of the delicate {objects}",
                object="{who}",
                than=" than of others",
                what="delicate texts",
                who="{group}",
                compared=("{who}", "other delicate texts"),
                scale=POINTS,
                harm="less",
                yes="find{s} fewer of some delicate texts than of others",
                keep=_is_told,
                story=_story,
            )
        },
        systems="moderator",
        yes="treat{s} some delicate texts differently",
        possible="Recall could still be up to {bound} in a group than elsewhere.",
        changes=(unlabeled_texts, _raters),
        inspect="Read the delicate texts missed by {systems}, retrain, and run the audit again.",
        sections=SECTIONS,
        tautologies=_uncounted,
    )


@question("delicate-swaps", "swap/", "winogender/", "template/", "country/")
def delicate_swaps() -> Question:
    """Declare which changes of gender or country alone change decisions."""
    changed = Phrase(
        sentence="{system} decides {size} differently when only {what} is swapped.",
        summary="{system} change{s} decisions when a text is the same but for {objects}",
        object="{what}",
        yes="change{s} decisions when only gender or country is swapped",
        what="{what} swapped",
        who="texts",
        levels=lambda e: (None, None),
        scale=replace(SHARE, unit=" of texts"),
        null=0.0,
        possible="Swaps could still change up to {bound}.",
    )
    return Question(
        name="delicate-swaps",
        asks="Does swapping gender or country change decisions?",
        family={
            SWAPS: changed,
            PAIR_FLIPS: replace(
                changed,
                sentence="{system} decides {size} of Winogender differently when only the pronoun "
                "is swapped.",
                object="a pronoun",
                scale=replace(SHARE, unit=" of sentence pairs"),
            ),
            COUNTRY: replace(
                changed,
                sentence="{system} decides {size} differently when only the country in a sentence "
                "is swapped.",
                object="the country",
                scale=replace(SHARE, unit=" of pairs of countries"),
            ),
        },
        systems="moderator",
        yes="change{s} decisions when only gender or country is swapped",
        possible="Swaps could still change up to {bound} of decisions.",
        inspect="Read the pairs that change the decisions of {systems}, retrain on both versions "
        "of a text, and run the audit again.",
        applies=lambda context: bool(
            context.find(SWAPS, PAIR_FLIPS, COUNTRY, RANGE, TRIPLETS, TEMPLATES)
        ),
        sections=CHANGES,
    )
