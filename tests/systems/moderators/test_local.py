"""Moderators on this machine: lists, functions, pipelines, packaged models."""

from __future__ import annotations

import hashlib
import pickle
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest

from ombud import registry
from ombud.data.decisions import Decisions
from ombud.data.texts import Texts
from ombud.errors import DataError, MissingExtraError, OmbudError, PlanError, RegistryError
from ombud.systems import OwnModerator
from ombud.systems.base import Moderator
from ombud.systems.moderators import HuggingFaceModerator, KeywordModerator, SklearnModerator


def texts_of(*rows: str) -> Texts:
    n = len(rows)
    return Texts(np.arange(n), np.array(rows, dtype=object), np.full(n, -1, dtype=np.int8))


ODD = texts_of("", " ", "a\ud800b", "\0", "\u202eabc", "word " * 20_000, "ﷺ́" * 100, "plain")


def check_contract(system: Moderator) -> Decisions:
    """Any texts go in, one outcome each comes out, twice the same."""
    assert isinstance(system, Moderator) and system.name
    decisions = system.moderate(ODD)
    assert decisions.ids.tolist() == ODD.ids.tolist()
    assert set(decisions.outcomes.tolist()) <= {0, 1}
    np.testing.assert_array_equal(decisions.outcomes, system.moderate(ODD).outcomes)
    assert len(system.moderate(texts_of())) == 0
    one = system.moderate(texts_of("plain"))
    assert one.outcomes[0] == decisions.outcomes[-1]
    assert one.scores[0] == pytest.approx(decisions.scores[-1], abs=1e-5, nan_ok=True)
    return decisions


def test_keywords_match_whole_words_in_any_case(tmp_path: Path) -> None:
    listed = tmp_path / "terms.txt"
    listed.write_text("# a list\n\nbad thing\nugh\n", encoding="utf-8")
    system = KeywordModerator(terms=["Foo"], path=listed)
    rows = ["a FOO!", "food", "Bad  thing", "bad thing, ugh", "foos", ""]
    decisions = system.moderate(texts_of(*rows))
    assert decisions.outcomes.tolist() == [1, 0, 0, 1, 0, 0]
    assert decisions.scores.tolist() == [1, 0, 0, 2, 0, 0]
    plurals = KeywordModerator(terms=["foo"], plurals=True)
    assert plurals.moderate(texts_of("foos", "food")).outcomes.tolist() == [1, 0]
    check_contract(system)


def test_keywords_from_the_built_in_list_are_slurs_only() -> None:
    from ombud.taxonomy import load_terms

    system = registry.create("moderator", "keyword", {"builtin": "terms-identity@1"})
    terms = load_terms("terms-identity@1").terms
    slurs = {t.text for t in terms if t.kind == "slur"}
    assert set(system.all_terms()) == slurs
    neutral = next(t.text for t in terms if t.kind != "slur" and t.text not in slurs)
    assert neutral not in system.all_terms()
    assert not any(slur in repr(system) for slur in slurs)


def test_keywords_from_a_dictionary_go_by_severity() -> None:
    from ombud.taxonomy import load_dictionary

    terms = load_dictionary("delicate@1").terms
    severe = {t.text for t in terms if t.severity in {"highly-offensive", "offensive"}}
    system = KeywordModerator(dictionary="delicate@1", severity="offensive")
    assert set(system.all_terms()) == severe
    assert len(KeywordModerator(dictionary="delicate").all_terms()) > len(severe)
    # Before any system is asked, which may take hours and money.
    for options, words in (
        ({"dictionary": "nothing"}, "no dictionary is named"),
        ({"dictionary": "delicate", "severity": "bad"}, "severity is one of highly-offensive"),
        ({"terms": ["a"], "severity": "offensive"}, "severity is for a dictionary"),
        ({"builtin": "nothing"}, "no term list is named"),
    ):
        with pytest.raises(OmbudError, match=words):
            KeywordModerator(**options)  # type: ignore[arg-type]


def test_keyword_faults(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="give terms, path or builtin"):
        KeywordModerator()
    with pytest.raises(DataError, match="cannot be read"):
        KeywordModerator(path=tmp_path / "absent")
    latin = tmp_path / "latin.txt"
    latin.write_bytes(b"ok\ncaf\xe9\n")
    with pytest.raises(DataError, match="byte 6: not UTF-8"):
        KeywordModerator(path=latin)


def test_a_plan_cannot_name_a_function() -> None:
    assert not {"callable", "own"} & set(registry.names("moderator"))
    with pytest.raises(RegistryError):
        registry.create("moderator", "callable", {"function": "os:system"})


def fitted(*, probabilities: bool = True) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    model = LogisticRegression(C=100) if probabilities else LinearSVC()
    rows = ["bad words here", "bad bad", "lovely day", "nice and lovely"] * 3
    return make_pipeline(TfidfVectorizer(), model).fit(rows, ["flag", "flag", "keep", "keep"] * 3)


@pytest.mark.parametrize("probabilities", [True, False])
def test_a_pipeline_in_memory(probabilities: bool) -> None:
    pipeline = fitted(probabilities=probabilities)
    threshold = 0.5 if probabilities else 0.0
    system = SklearnModerator.from_pipeline(pipeline, flagged="flag", threshold=threshold)
    rows = ["bad", "lovely", "bad bad day"]
    expected = [int(label == "flag") for label in pipeline.predict(rows)]
    assert system.moderate(texts_of(*rows)).outcomes.tolist() == expected
    other = SklearnModerator.from_pipeline(pipeline, flagged="keep", threshold=threshold)
    assert other.moderate(texts_of(*rows)).outcomes.tolist() == [1 - e for e in expected]
    with pytest.raises(PlanError, match="no class 'hate'"):
        SklearnModerator.from_pipeline(pipeline, flagged="hate").moderate(texts_of("a"))
    check_contract(system)


def test_pickles_are_refused_unopened(tmp_path: Path) -> None:
    trap = tmp_path / "trap"

    class Trap:
        def __reduce__(self) -> Any:
            return Path.write_text, (trap, "sprung")

    for name in ("model.pkl", "model.joblib", "model"):
        (tmp_path / name).write_bytes(pickle.dumps(Trap()))
        with pytest.raises(PlanError, match="can run code"):
            registry.create("moderator", "sklearn", {"path": str(tmp_path / name)})
    assert not trap.exists()


@pytest.mark.skipif(find_spec("skops") is None, reason="skops is not installed")
def test_a_pipeline_from_a_skops_file(tmp_path: Path) -> None:
    import skops.io

    skops.io.dump(fitted(), tmp_path / "model.skops")
    arguments = {"path": str(tmp_path / "model.skops"), "flagged": "flag"}
    system = registry.create("moderator", "sklearn", arguments)
    assert system.name == "model"
    assert system.moderate(texts_of("bad", "lovely")).outcomes.tolist() == [1, 0]
    skops.io.dump(OwnModerator(len), tmp_path / "odd.skops")
    odd = SklearnModerator(path=tmp_path / "odd.skops")
    with pytest.raises(PlanError, match="does not trust"):
        odd.moderate(texts_of("a"))


def fake_pipeline(texts: list[str], **options: Any) -> list[list[dict[str, Any]]]:
    assert options["truncation"] is True and options["top_k"] is None
    rows = []
    for text in texts:
        bad = 0.8 if "bad" in text else 0.1
        rows.append([{"label": "toxic", "score": bad}, {"label": "fine", "score": 1 - bad}])
    return rows


def test_hugging_face_pipelines(monkeypatch: pytest.MonkeyPatch) -> None:
    system = HuggingFaceModerator.from_pipeline(fake_pipeline, flagged=["toxic"])
    decisions = system.moderate(texts_of("bad", "good"))
    assert decisions.outcomes.tolist() == [1, 0]
    assert decisions.categories == ("fine", "toxic")
    assert decisions.version == "huggingface"  # and no commit that nobody knows
    check_contract(system)
    with pytest.raises(PlanError, match=r"no label hate; its labels are fine, toxic"):
        HuggingFaceModerator.from_pipeline(fake_pipeline, flagged=["hate"]).moderate(texts_of("a"))
    asked: dict[str, Any] = {}

    def pipeline(task: str, **options: Any) -> Any:
        asked.update(options, task=task)
        return fake_pipeline

    module = ModuleType("transformers")
    module.pipeline = pipeline  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers", module)
    monkeypatch.setattr("ombud.systems.moderators.huggingface.require", lambda *_: None)
    named = registry.create(
        "moderator",
        "huggingface",
        {"model": "org/guard", "revision": "abc1234", "flagged": ["toxic"]},
    )
    assert named.name == "guard"
    assert named.moderate(texts_of("bad")).version == "org/guard@abc1234"
    assert asked["trust_remote_code"] is False
    assert asked["model_kwargs"] == {"use_safetensors": True}
    assert asked["revision"] == "abc1234"


@pytest.mark.skipif(find_spec("transformers") is not None, reason="transformers is installed")
def test_a_missing_extra_says_what_to_install() -> None:
    system = HuggingFaceModerator(model="org/guard", revision="abc1234", flagged=["toxic"])
    with pytest.raises(MissingExtraError, match=r"pip install 'ombud\[huggingface\]'"):
        system.moderate(texts_of("a"))


PACKAGED = [
    ("profanity-check", "profanity_check"),
    ("hatesonar", "hatesonar"),
    ("glin-profanity", "glin_profanity"),
]


@pytest.mark.parametrize(("name", "module"), PACKAGED)
def test_packaged_models_work(name: str, module: str) -> None:
    if find_spec(module) is None:
        pytest.skip(f"{module} is not installed; it is in the extra 'moderators'")
    system = registry.create("moderator", name)
    check_contract(system)
    mild = texts_of("what bollocks, you stupid idiot", "the library opens at nine")
    decisions = system.moderate(mild)
    assert decisions.outcomes.tolist() == [1, 0]
    assert name.split("-")[0] in decisions.version


@pytest.mark.skipif(find_spec("hatesonar") is None, reason="hatesonar is not installed")
def test_hatesonar_scores_are_those_of_its_classes() -> None:
    hate = registry.create("moderator", "hatesonar", {"flagged": ["hate_speech"]})
    both = registry.create("moderator", "hatesonar")
    texts = texts_of("the library opens at nine", "you stupid idiot")
    a, b = hate.moderate(texts), both.moderate(texts)
    assert a.category_scores is not None
    np.testing.assert_allclose(a.category_scores.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(a.scores, a.category_scores[:, 0])
    np.testing.assert_allclose(b.scores, 1 - a.category_scores[:, 2], atol=1e-5)
    upper = hate.moderate(texts_of("THE LIBRARY OPENS AT NINE"))
    assert upper.scores[0] == pytest.approx(a.scores[0])
    with pytest.raises(PlanError, match="must be some of"):
        registry.create("moderator", "hatesonar", {"flagged": ["spam"]})


@pytest.mark.realdata
def test_three_packaged_models_tell_real_hate_from_real_talk(realdata: Path) -> None:
    path = realdata / "stormfront" / "stormfront_sentences.csv"
    if not path.exists():
        pytest.skip(f"no {path.name} in the data folder")
    import polars as pl

    table = pl.read_csv(path).filter(pl.col("label").is_in(["hate", "noHate"]))
    table = table.with_columns(pl.col("text").fill_null("")).sample(2000, seed=5)
    hate = (table["label"] == "hate").to_numpy()
    ran = 0
    for name, module in PACKAGED:
        if find_spec(module) is not None:
            flags = registry.create("moderator", name).moderate(texts_of(*table["text"])).outcomes
            assert flags[hate].mean() > 1.3 * flags[~hate].mean() > 0, name
            ran += 1
    if ran < len(PACKAGED):
        pytest.skip(f"only {ran} of {len(PACKAGED)} packages are installed")


@pytest.mark.skipif(find_spec("skops") is None, reason="skops is not installed")
@pytest.mark.parametrize(
    "schema",
    [None, "[1", "[]", "5", "{}", '{"protocol": 9}', '{"__class__": "a", "__module__": "os"}'],
)
def test_a_damaged_skops_file_is_named(tmp_path: Path, schema: str | None) -> None:
    with zipfile.ZipFile(tmp_path / "m.skops", "w") as archive:
        if schema is not None:
            archive.writestr("schema.json", schema)
    with pytest.raises(PlanError, match=r"m\.skops (is damaged|holds types)"):
        SklearnModerator(path=tmp_path / "m.skops").moderate(texts_of("a"))


class FakeTokenizer:
    """One token a word, and two marks."""

    model_max_length = 12

    def __call__(self, text: str, truncation: bool) -> dict[str, list[int]]:
        assert truncation is False
        return {"input_ids": [0] * (len(text.split()) + 2)}


class FakeDetoxify:
    loaded: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, **options: Any) -> None:
        self.loaded.append(options)
        self.tokenizer = FakeTokenizer()

    def predict(self, texts: list[str]) -> dict[str, Any]:
        scores = [0.9 if "bad" in text else 0.125 for text in texts]
        made = {"toxicity": scores, "insult": [s / 2 for s in scores]}
        return {k: v[0] for k, v in made.items()} if len(texts) == 1 else made


def test_detoxify_checks_its_weights_before_they_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "weights.ckpt"
    file.write_bytes(b"weights")
    digits = hashlib.sha256(b"weights").hexdigest()
    package, inner = ModuleType("detoxify"), ModuleType("detoxify.detoxify")
    package.__dict__.update(Detoxify=FakeDetoxify, detoxify=inner)
    monkeypatch.setitem(sys.modules, "detoxify", package)
    monkeypatch.setattr("ombud.systems.moderators.detoxify.require", lambda *_: None)
    given: dict[str, Any] = {"checkpoint": str(file), "sha256": digits[:8]}
    system = registry.create("moderator", "detoxify", {**given, "threshold": 0.5, "batch": 2})
    decisions = system.moderate(texts_of("bad", "good", "a bad word"))
    assert decisions.outcomes.tolist() == [1, 0, 1]
    assert decisions.scores.tolist() == pytest.approx([0.9, 0.125, 0.9])
    assert decisions.categories == ("toxicity", "insult") and digits[:8] in decisions.version
    check_contract(system)
    both = registry.create("moderator", "detoxify", {**given, "flagged": ["insult"]})
    assert both.moderate(texts_of("bad")).lacks_decisions
    wrong = registry.create("moderator", "detoxify", {**given, "sha256": "00000000"})
    count = len(FakeDetoxify.loaded)
    with pytest.raises(PlanError, match="it is another file, and was not opened"):
        wrong.moderate(texts_of("a"))
    assert len(FakeDetoxify.loaded) == count
    with pytest.raises(OmbudError, match="a checkpoint needs sha256"):
        registry.create("moderator", "detoxify", {"checkpoint": str(file)})
    odd = registry.create("moderator", "detoxify", {**given, "flagged": ["hate"]})
    with pytest.raises(PlanError, match="has no class hate; it has toxicity, insult"):
        odd.moderate(texts_of("a"))


def test_texts_that_are_cut_are_counted() -> None:
    class Pipeline:
        tokenizer = FakeTokenizer()

        def __call__(self, texts: list[str], **options: Any) -> Any:
            return fake_pipeline(texts, **options)

    system = HuggingFaceModerator.from_pipeline(Pipeline(), flagged=["toxic"])
    decisions = system.moderate(texts_of("word " * 10, "word " * 11, "a", "supercalifragilistic"))
    (note,) = decisions.exclusions
    assert "read only the first 12 tokens of 1 of 4 texts" in str(note)
    assert not system.moderate(texts_of("word " * 10)).exclusions


@pytest.mark.parametrize("revision", ["", "main", "v1.0"])
def test_a_model_of_the_hub_needs_a_commit(revision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    system = HuggingFaceModerator(model="org/guard", revision=revision, flagged=["toxic"])
    monkeypatch.setattr("ombud.systems.moderators.huggingface.require", lambda *_: None)
    with pytest.raises(PlanError, match="name a commit of org/guard"):
        system.moderate(texts_of("a"))
