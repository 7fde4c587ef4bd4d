"""Near duplicates: estimates of similarity, recall, and a stream equal to one batch."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ombud.text.dedup import NearDuplicates, _shingles, best_bands, content_keys, minhash

WORDS = [f"w{i}" for i in range(3000)]


def texts_and_copies(count: int, changed: int) -> tuple[list[str], list[str]]:
    draw = random.Random(7)
    base = [[draw.choice(WORDS) for _ in range(draw.randint(40, 80))] for _ in range(count)]
    copies = []
    for words in base:
        copy = list(words)
        for _ in range(changed):
            copy[draw.randrange(len(copy))] = draw.choice(WORDS)
        copies.append(" ".join(copy))
    return [" ".join(words) for words in base], copies


def shingle_sets(texts: list[str]) -> list[frozenset[int]]:
    hashes, starts = _shingles(texts, 3)
    return [frozenset(part.tolist()) for part in np.split(hashes, starts[1:])]


def jaccard(one: frozenset[int], two: frozenset[int]) -> float:
    return len(one & two) / len(one | two)


def test_a_hand_worked_similarity() -> None:
    # Runs of three: {abc, bcd, cde} and {abc, bcd, cdx}: 2 of 4.
    one, two = shingle_sets(["a b c d e", "A, b c - d x"])
    assert jaccard(one, two) == 0.5
    # Fewer words than a run: one shingle of all of them.
    assert shingle_sets(["a b"]) == shingle_sets(["A b!"])
    assert shingle_sets(["a b"]) != shingle_sets(["b a"])
    assert shingle_sets(["?!"]) != shingle_sets(["..."])


def test_shingles_equal_those_of_plain_python() -> None:
    texts, copies = texts_and_copies(30, 4)
    for a, b in zip(texts, copies, strict=True):
        one, two = shingle_sets([a, b])
        plain = [{tuple(t.split()[i : i + 3]) for i in range(len(t.split()) - 2)} for t in (a, b)]
        assert len(one) == len(plain[0])
        assert jaccard(one, two) == len(plain[0] & plain[1]) / len(plain[0] | plain[1])


def test_signatures_estimate_the_jaccard_similarity() -> None:
    texts, copies = texts_and_copies(400, 3)
    true = np.array(
        [jaccard(*pair) for pair in zip(shingle_sets(texts), shingle_sets(copies), strict=True)]
    )
    guess = (minhash(texts, permutations=256) == minhash(copies, permutations=256)).mean(axis=1)
    error = guess - true
    # Mean error within four standard errors of zero; spread as the binomial says.
    expected = np.sqrt((true * (1 - true) / 256).mean())
    assert abs(error.mean()) < 4 * expected / np.sqrt(len(error))
    assert 0.85 < error.std() / expected < 1.15


def test_bands_are_those_that_the_formula_gives() -> None:
    bands, rows = best_bands(0.8, 128)
    assert bands * rows <= 128
    meet = [1 - (1 - s**rows) ** bands for s in (0.5, 0.8, 0.95)]
    assert meet[0] < 0.03 and 0.85 < meet[1] < 0.9 and meet[2] > 0.999


def test_copies_are_found_and_others_are_not() -> None:
    texts, copies = texts_and_copies(500, 1)
    seen = NearDuplicates(0.8)
    assert (seen.add(texts) == -1).all()
    found = seen.add(copies)
    alike = np.array(
        [jaccard(*pair) for pair in zip(shingle_sets(texts), shingle_sets(copies), strict=True)]
    )
    sure = alike > 0.9
    assert sure.sum() > 50
    assert (found[sure] == np.flatnonzero(sure)).mean() > 0.985
    assert (found[alike < 0.6] == -1).all()


def test_a_stream_equals_one_batch() -> None:
    texts, copies = texts_and_copies(200, 1)
    mixed = [text for pair in zip(texts, copies, strict=True) for text in pair]
    whole = NearDuplicates(0.8).add(mixed)
    seen = NearDuplicates(0.8)
    parts = np.concatenate([seen.add(mixed[at : at + 7]) for at in range(0, len(mixed), 7)])
    assert np.array_equal(whole, parts)
    assert len(seen) == seen.size == int((whole == -1).sum())


def test_groups_are_kept_apart_and_removed_texts_forgotten() -> None:
    text = "one two three four five six seven"
    seen = NearDuplicates(0.8)
    assert seen.add([text, text], groups=[0, 1]).tolist() == [-1, -1]
    assert seen.add([text], groups=[1]).tolist() == [1]
    seen.remove([1])
    assert len(seen) == 1
    assert seen.add([text], groups=[1]).tolist() == [-1]
    seen.remove([1, 2])
    assert len(seen) == 1


def test_memory_does_not_grow_when_texts_are_removed() -> None:
    seen = NearDuplicates(0.8, permutations=32)
    for block in range(60):
        first = seen.size
        seen.add([f"text {block} {i} a b c d" for i in range(100)])
        seen.remove(range(first, seen.size))
    assert len(seen) == 0
    assert seen._signatures.shape[0] <= 2048
    assert sum(len(run) for run, _ in seen._runs) <= 3 * seen.bands * 1200


@given(st.lists(st.text(max_size=40), min_size=1, max_size=8))
def test_any_text_has_a_key_and_a_signature(texts: list[str]) -> None:
    keys = content_keys(texts)
    assert len(keys) == len(texts)
    assert np.array_equal(keys, np.concatenate([content_keys([text]) for text in texts]))
    signatures = minhash(texts, permutations=8)
    assert np.array_equal(
        signatures, np.concatenate([minhash([text], permutations=8) for text in texts])
    )


def test_keys_are_spread_evenly() -> None:
    keys = content_keys([f"text number {i}" for i in range(4000)]) / 2.0**64
    assert len(np.unique(keys)) == 4000
    assert abs(keys.mean() - 0.5) < 0.03
    counts = np.histogram(keys, bins=10, range=(0, 1))[0]
    assert ((counts - 400) ** 2 / 400).sum() < 28  # chi-square, 9 degrees, p = 0.001
