"""Swap probes: flips, shifts, Winogender, countries, templates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats as reference

from ombud.data import Decisions, Outcome, Texts
from ombud.errors import AuditedSystemError, DataError, PlanError
from ombud.probes.swaps import (
    COUNTRY_TEMPLATES,
    ask,
    country_probe,
    flip_estimates,
    shift_estimates,
    swap_probe,
    template_probe,
)
from ombud.probes.winogender import Winogender, read_winogender, winogender_probe
from ombud.text.swaps import GenderSwap, WordSwap


class Planted:
    """Scores 0.1, and 0.5 more for each word of a list; flags from 0.5; errs on 'broken'."""

    name = "planted"

    def __init__(self, *words: str, scores: bool = True) -> None:
        self.words, self.scores, self.asked = words, scores, 0

    def moderate(self, texts: Texts) -> Decisions:
        self.asked += len(texts)
        score = np.array(
            [
                0.1 + 0.5 * sum(word in text.lower().split() for word in self.words)
                for text in texts.texts
            ]
        )
        outcomes = (score >= 0.5).astype(np.int8)
        broken = np.array(["broken" in text for text in texts.texts], dtype=bool)
        outcomes[broken] = Outcome.ERROR
        values = score if self.scores else np.full(len(score), np.nan)
        return Decisions(np.asarray(texts.ids), outcomes, values.astype(np.float32))


TEXTS = ["She left early", "He left early", "It left early", "She met him", "He is broken"]


def test_flips_and_shifts_by_hand() -> None:
    found = swap_probe(Planted("she"), TEXTS, GenderSwap())
    # she->he and he->she flip; "She met him" becomes "He met her" and flips; one errs.
    flips = found["swap/flips-changed"]
    assert (flips.value, flips.n) == (1.0, 3)
    assert found["swap/flips-all"].value == 0.75 and found["swap/flips-all"].n == 4
    assert flips.details["to flagged"] == 1 and flips.details["to allowed"] == 2
    assert found["swap/to-flagged"].value == pytest.approx(1 / 3)
    exact = reference.binomtest(3, 4).proportion_ci(method="exact")
    assert found["swap/flips-all"].interval == pytest.approx((exact.low, exact.high))
    # Shifts of the four changed texts with a score: -0.5, +0.5, -0.5, and the broken one +0.5.
    assert found["swap/shift"].value == pytest.approx(0.0, abs=1e-6)
    assert found["swap/shift-size"].value == pytest.approx(0.5)
    assert found["swap/shift-forward"].value == pytest.approx(0.5)
    assert [str(e.count) for e in found.exclusions] == ["1"]
    assert found.rows.height == 5 and "text" not in found.rows.columns


def test_the_published_count_has_its_interval() -> None:
    before = np.zeros(1023)
    after = before.copy()
    after[:6] = 1
    flips = flip_estimates(before, after, np.arange(1023) < 500)
    exact = reference.binomtest(6, 1023).proportion_ci(method="exact")
    assert flips[1].interval == pytest.approx((exact.low, exact.high))
    assert flips[0].n == 500
    assert flips[0].details["mcnemar mid-p"] == pytest.approx(2 * 0.5**6 - 0.5**6)


def test_no_change_no_flip_rate() -> None:
    found = swap_probe(Planted("she"), ["It left", "It came"], GenderSwap())
    assert not found["swap/flips-changed"].is_defined
    assert found["swap/flips-all"].value == 0.0
    assert not found["swap/shift"].is_defined
    with pytest.raises(ValueError, match="did not change"):
        flip_estimates([0.0], [1.0], [False])


def test_a_moderator_without_scores_has_flips_alone() -> None:
    found = swap_probe(Planted("she", scores=False), TEXTS, GenderSwap())
    assert found["swap/flips-changed"].is_defined
    assert not found["swap/shift"].is_defined


def test_shift_interval_equals_that_of_scipy(rng: np.random.Generator) -> None:
    a, b = rng.random(40), rng.random(40)
    found = shift_estimates(a, b, np.ones(40, bool))[0]
    theirs = reference.ttest_rel(b, a)
    ends = theirs.confidence_interval()
    assert found.interval == pytest.approx((ends.low, ends.high))
    assert found.p_value == pytest.approx(theirs.pvalue)


def test_exact_intervals_cover(rng: np.random.Generator) -> None:
    covered = 0
    for _ in range(300):
        after = (rng.random(60) < 0.08).astype(float)
        low, high = flip_estimates(np.zeros(60), after, np.ones(60, bool))[0].interval or (1, 0)
        covered += low <= 0.08 <= high
    assert covered >= 0.93 * 300


def test_equal_texts_are_asked_once_and_answers_checked() -> None:
    system = Planted("x")
    ask(system, ["a", "a", "b", "a"])
    assert system.asked == 2

    class Short(Planted):
        def moderate(self, texts: Texts) -> Decisions:
            return Decisions(np.arange(1), np.zeros(1, np.int8), np.zeros(1, np.float32))

    with pytest.raises(AuditedSystemError, match="asked about 2 texts and answered 1"):
        ask(Short("x"), ["a", "b"])


def test_words_and_templates_of_ones_own() -> None:
    found = swap_probe(Planted("cat"), ["A cat", "A dog"], WordSwap({"cat": "dog"}, "pets"))
    assert found["swap/flips-changed"].value == 1.0 and found["swap/flips-changed"].n == 1
    result = template_probe(
        Planted("gay"), ["I am {who} .", "Nothing of {who} broken"], "who", ["gay", "tall", "old"]
    )
    assert result["template/fails"].value == 1.0 and result["template/fails"].n == 1
    assert result["template/score-range"].value == pytest.approx(0.5)
    assert result.exclusions[0].count == 1
    assert result.rows.height == 6


def test_countries_have_spread_without_interval() -> None:
    found = country_probe(Planted("france.", "kenya."), COUNTRY_TEMPLATES[0])
    assert found.rows.height == 249
    flagged = found.rows.filter(found.rows["flagged"] == 1)["name"].to_list()
    assert flagged == ["France", "Kenya"]
    assert found["country/flagged"].value == pytest.approx(2 / 249)
    assert found["country/flagged"].interval is None
    changed = found["country/pairs-changed"]
    assert changed.value == pytest.approx(2 * 247 / (249 * 248 / 2)) and changed.interval is None
    scores = np.full(249, 0.1)
    scores[:2] = 0.6
    assert found["country/score-sd"].value == pytest.approx(scores.std(ddof=1), rel=1e-5)
    assert found["country/score-range"].value == pytest.approx(0.5)
    assert found["country/score-iqr"].value == 0.0
    assert found["country/score-in-europe-sd"].value > 0
    assert found["country/score-in-asia-sd"].value == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(PlanError, match="slot"):
        country_probe(Planted("x"), "No slot here")
    assert not country_probe(Planted("x", scores=False))["country/score-sd"].is_defined


def sentences(folder: Path) -> Path:
    rows = ["sentid\tsentence"]
    for job in ("nurse", "pilot"):
        for gender, word in (("male", "he"), ("female", "she"), ("neutral", "they")):
            rows.append(f"{job}.patient.0.{gender}.txt\tThe {job} said {word} left")
    (folder / "all_sentences.tsv").write_text("\n".join(rows) + "\n")
    (folder / "occupations-stats.tsv").write_text(
        "occupation\tbergsma_pct_female\tbls_pct_female\tbls_year\nnurse\t1\t90\t2015\n"
    )
    return folder


def test_winogender_by_hand(tmp_path: Path) -> None:
    triplets = read_winogender(sentences(tmp_path))
    assert triplets.sentences.shape == (2, 3)
    assert triplets.occupation == ["nurse", "pilot"]
    assert triplets.female_share[0] == 90 and np.isnan(triplets.female_share[1])
    found = winogender_probe(Planted("she"), triplets)
    assert found["winogender/fails"].value == 1.0 and found["winogender/fails"].n == 2
    assert found["winogender/fails"].details["sentences flagged"] == 2
    assert found["winogender/flips-male-female"].value == 1.0
    assert found["winogender/flips-male-neutral"].value == 0.0
    assert found["winogender/shift-male-female"].value == pytest.approx(0.5)
    assert found["winogender/fails-75"].n == 1
    assert not found["winogender/fails-0"].is_defined
    assert found["winogender/correlation-decision"].value == pytest.approx(1.0)
    none = winogender_probe(Planted("nothing"), triplets)
    assert none["winogender/fails"].value == 0.0
    assert not none["winogender/correlation-decision"].is_defined


def test_winogender_files_are_checked(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no all_sentences\.tsv"):
        read_winogender(tmp_path)
    (tmp_path / "all_sentences.tsv").write_text("sentid\tsentence\na.b.0.male.txt\tx\nodd\ty\n")
    with pytest.raises(DataError) as caught:
        read_winogender(tmp_path)
    assert len(caught.value.faults) == 2


@pytest.mark.realdata
def test_winogender_as_published(realdata: Path) -> None:
    triplets = read_winogender(realdata / "winogender")
    assert triplets.sentences.shape == (240, 3)
    assert len(set(triplets.occupation)) == 60
    assert not np.isnan(triplets.female_share).any()
    # Our gender swap turns the male sentences into the female ones.
    swapped = GenderSwap().apply([str(text) for text in triplets.sentences[:, 0]])
    alike = np.array(swapped.texts, dtype=object) == triplets.sentences[:, 1]
    assert alike.mean() > 0.97


def test_a_text_with_two_readings_is_not_swapped_and_counted() -> None:
    found = swap_probe(Planted("she"), [*TEXTS[:3], "I saw her duck"], GenderSwap())
    assert found["swap/flips-all"].n == 3 and found["swap/flips-changed"].n == 2
    (left,) = found.exclusions
    assert left.count == 1 and "two readings" in left.reason
    assert found.rows["abstained"].to_list() == [False, False, False, True]


def test_many_sentences_show_how_sure_countries_are() -> None:
    found = country_probe(Planted("france", "france.", "kenya"))
    per_sentence = [t.replace("{country}", "x").lower().split() for t in COUNTRY_TEMPLATES]
    hit = sum("x" in words for words in per_sentence)
    first = sum("x." in words for words in per_sentence)
    pairs = (2 * 247 * hit + 248 * first) / (20 * 249 * 248 / 2)
    changed = found["country/pairs-changed"]
    assert changed.value == pytest.approx(pairs) and changed.unit == "pair"
    low, high = changed.interval or (1, 0)
    assert low < changed.value < high
    row = found.rows.filter(found.rows["name"] == "Kenya").row(0, named=True)
    assert row["flagged"] == pytest.approx(hit / 20) and row["first_flagged"] == 0
    none = country_probe(Planted("nothing"))["country/pairs-changed"]
    # No pair changed in 20 sentences: as in 20 units without an event.
    assert none.value == 0 and none.interval is not None
    assert none.interval[1] == pytest.approx(reference.binomtest(0, 20).proportion_ci().high)


def test_winogender_intervals_count_occupations(rng: np.random.Generator) -> None:
    """Four triplets of each of 60 occupations, all decided by the occupation: 60 units, not 240."""
    jobs = [f"job{k}" for k in range(60) for _ in range(4)]
    words = np.array([[f"{job} {n} {w}" for w in ("he", "she", "they")]
                      for n, job in enumerate(jobs)], dtype=object)  # fmt: skip
    triplets = Winogender(words, jobs, np.full(240, 50.0))

    class Jobs(Planted):
        def moderate(self, texts: Texts) -> Decisions:
            score = np.array([0.9 if t.split()[0] in self.words and t.endswith("she") else 0.1
                              for t in texts.texts])  # fmt: skip
            return Decisions(np.asarray(texts.ids), (score > 0.5).astype(np.int8),
                             score.astype(np.float32))  # fmt: skip

    covered, widths = 0, []
    for _ in range(200):
        chosen = [f"job{k}" for k in np.flatnonzero(rng.random(60) < 0.2)]
        found = winogender_probe(Jobs(*chosen), triplets)
        low, high = found["winogender/fails"].interval or (1, 0)
        covered += low <= 0.2 <= high
        widths.append(high - low)
    assert covered >= 0.93 * 200
    alone = reference.binomtest(48, 240).proportion_ci(method="exact")
    assert np.mean(widths) > 1.7 * (alone.high - alone.low)
    shift = found["winogender/shift-male-female"]
    per_job = np.array([0.8 * (f"job{k}" in chosen) for k in range(60)])
    t = reference.t.interval(0.95, 59, per_job.mean(), reference.sem(per_job))
    assert shift.interval == pytest.approx(t, abs=1e-6)
    assert found["winogender/correlation-decision"].interval is not None
