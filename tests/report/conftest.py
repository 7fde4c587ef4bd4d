"""Results made by hand: an ordinary one, a hostile one, and a large one."""

from __future__ import annotations

import numpy as np
import pytest

from ombud.audits.plan import Plan, StatisticsPlan
from ombud.audits.result import MetricInfo, Result
from ombud.data.card import Card
from ombud.data.exclusions import Exclusion
from ombud.metrics.engine.estimate import REST, correct
from ombud.stats.estimate import Estimate

GAP = MetricInfo(
    {"name": "share-gap", "k": 10},
    "share gap@10",
    "Share of a label in a user's list minus its share in the user's own history.",
    "user",
    0.0,
    reading="Above 0, the lists hold more of the label than the same users' histories do.",
    undefined="when no user has both shares.",
    limits="why; a gap may come from popularity, or from missing labels.",
)
SHARE = MetricInfo(
    {"name": "label-share", "k": 10},
    "label share@10",
    "Share of recommended items that carry a label, averaged over users.",
    "user",
    None,
    undefined="when no user has a list.",
    limits="rank within the list.",
)
LABELS = (
    "violence",
    "blood or gore",
    "an animal dies",
    "a child is abandoned by its parents and later found again by someone it does not know",
    "flashing lights",
    "self-harm",
    "car crash",
    "spiders",
    "needles",
    "drowning",
    "hospital scene",
    "audio gore",
)
HOSTILE = (
    "</script><script>document.title='ran'</script>",
    "<img src=x onerror=\"document.title='ran'\">",
    "\u202egnp.exe \u2066reversed\u2069",
    "zero\u200bwidth\ufeffname",
    "\x1b[31mred\x07\x9b31m",
    "javascript:document.title='ran'",
    "[link](javascript:alert(1)) **bold** `code`",
    "[bold red]rich[/] markup",
    "{{ 7*7 }}{% raw %} ${7*7}",
    "https://example.org/?q=1&x=<b>",
    "\\input{/etc/passwd} 50% $x_1^2$ #1 & ~",
    "Z" + "\u0301\u0302\u0303\u0304" * 30 + "algo | pipe",
    "شغب عنيف",
    "line\nbreak\u2028sep\tab\0nul",
    "&lt;b&gt; &amp; ]]> --> <!--",
    "x" * 500,
    "constructor",
    "__proto__",
    "toString",
)


def number(rng: np.random.Generator, value: float, spread: float, **about: object) -> Estimate:
    """An estimate with a plain normal interval; p-values where there is a null value."""
    fields: dict[str, object] = {"metric": "m", "unit": "user", "n": 400} | about
    shown = value + rng.normal(0, spread)
    if fields.get("null") is not None:
        from scipy.stats import norm

        z = (shown - float(fields["null"])) / spread  # type: ignore[arg-type]
        fields["p_value"] = float(2 * norm.sf(abs(z)))
    interval = (shown - 1.96 * spread, shown + 1.96 * spread)
    return Estimate(value=shown, interval=interval, method="BCa bootstrap", **fields)  # type: ignore[arg-type]


def make(
    labels: tuple[str, ...],
    systems: tuple[str, ...],
    groups: tuple[str, ...],
    *,
    metrics: tuple[MetricInfo, ...] = (GAP, SHARE),
    title: str = "Does our film recommender show more of what people avoid?",
    card: Card | None = None,
    exclusions: tuple[Exclusion, ...] = (),
    correction: str = "benjamini-hochberg",
) -> Result:
    rng = np.random.default_rng(7)
    estimates: list[Estimate] = []
    for info in metrics:
        base = {"metric": info.title, "null": info.null}
        centre = 0.0 if info.null is not None else 0.12
        true = {
            (s, w): centre + (0.05 * rng.normal() if rng.random() < 0.4 else 0.0) * (0.3 + 0.7 * j)
            for j, s in enumerate(systems)
            for w in labels
        }
        overall = [number(rng, true[s, w], 0.012, **base, system=s, label=w) for s, w in true]
        undefined = "no user has an item whose label is known"
        for place in (0, len(overall) // 2):
            e = overall[place]
            overall[place] = Estimate.undefined(
                metric=e.metric, reason=undefined, n=0, unit="user", system=e.system, label=e.label
            )
        by_group = [
            number(rng, true[s, w] + 0.01 * k, 0.02, **base, system=s, label=w, group=g, n=90 + k)
            for s, w in true
            for k, g in enumerate(groups)
        ]
        gaps = [
            number(
                rng,
                0.06 if (k == 0 and i % 7 == 0) else 0.0,
                0.018,
                metric=info.title,
                null=0.0,
                kind="gap",
                against=REST,
                system=s,
                label=w,
                group=g,
                n=90 + k,
            )
            for i, (s, w) in enumerate(true)
            for k, g in enumerate(groups)
        ]
        if gaps:
            e = gaps[-1]
            gaps[-1] = Estimate.undefined(
                metric=e.metric,
                reason="not enough data: 4 users, at least 10 wanted",
                n=4,
                unit="user",
                system=e.system,
                label=e.label,
                group=e.group,
                kind="gap",
                against=REST,
            )
        pairs = [
            number(
                rng,
                true[a, w] - true[b, w],
                0.01,
                metric=info.title,
                null=0.0,
                kind="gap",
                system=a,
                against=b,
                label=w,
            )
            for i, a in enumerate(systems)
            for b in systems[i + 1 :]
            for w in labels
        ]
        for some in (overall, by_group, gaps, pairs):
            estimates += correct(some, correction)
    return Result(
        plan=Plan(
            title=title,
            seed=1,
            systems={s: {"type": "recorded"} for s in systems},
            statistics=StatisticsPlan(correction=correction),
        ),
        estimates=tuple(estimates),
        metrics=metrics,
        exclusions=exclusions,
        provenance={
            "schema_version": 1,
            "started": "2026-11-15T20:00:00+00:00",
            "finished": "2026-11-15T20:03:12+00:00",
            "seed": 1,
            "versions": {"python": "3.11.7", "ombud": "0.1.0.dev0", "numpy": "2.4.0"},
            "data": "9f2c",
            "inputs": {"recommendations.parquet": "ab" * 32},
        },
        card=card or Card(name="films", title="Films with content warnings", licence="CC BY 4.0"),
    )


@pytest.fixture(scope="session")
def ordinary() -> Result:
    return make(
        LABELS,
        ("most popular", "neighbours", "factor model"),
        ("age=18-24", "age=25-44", "age=45+", "gender=f", "gender=m"),
        exclusions=(
            Exclusion("most popular: users", "users", 12, "no list was recommended", 412),
            Exclusion("labels", "rows", 1204, "the item is not in the catalogue"),
        ),
        card=Card(
            name="films",
            title="Films with content warnings",
            source="A simulated world",
            licence="CC BY 4.0",
            unknowns="An item without votes is unknown, never 'no'.",
            facts={"users": 412, "items": 5120, "density": 0.021},
            dropped=("3 labels of a refused kind were dropped when the data was read.",),
        ),
    )


@pytest.fixture(scope="session")
def hostile() -> Result:
    info = [
        MetricInfo(
            {"name": "x"},
            HOSTILE[0],
            HOSTILE[1],
            HOSTILE[2],
            0.0,
            reading=HOSTILE[8],
            undefined=HOSTILE[9],
            limits=HOSTILE[6],
        )
    ]
    return make(
        HOSTILE,
        (HOSTILE[1], HOSTILE[7], HOSTILE[2]),
        (HOSTILE[0], HOSTILE[12], HOSTILE[3]),
        metrics=tuple(info),
        title="Audit </title><script>document.title='ran'</script> \u202e",
        exclusions=tuple(Exclusion(text, text, 3, text) for text in HOSTILE),
        card=Card(
            name=HOSTILE[1],
            title=HOSTILE[0],
            source=HOSTILE[5],
            citation=HOSTILE[9],
            dropped=HOSTILE,
            hashes={HOSTILE[0]: HOSTILE[1]},
            facts={HOSTILE[1]: HOSTILE[0]},
        ),
    )


@pytest.fixture(scope="session")
def large() -> Result:
    return make(
        tuple(f"warning number {i}" for i in range(137)),
        ("popular", "neighbours", "factors"),
        tuple(f"group={i}" for i in range(10)),
    )


@pytest.fixture(scope="session")
def moderator() -> Result:
    """One number for each system, no labels: as a moderator's audit has."""
    info = MetricInfo({"name": "fpr"}, "false positive rate", "Harmless texts removed.", "text")
    return make(("",), ("service A", "service B"), ("identity=a", "identity=b"), metrics=(info,))
