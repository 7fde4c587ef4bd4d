"""Fine-tuning, with a tiny model made here: learns, resumes exactly, windows, refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ombud.data import Texts
from ombud.errors import DataError, PlanError
from ombud.systems.detectors import Head, TransformerDetector, load_detector
from ombud.systems.detectors.transformer import Recipe

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

WORDS = ["calm", "odd", "sharp", "harsh", "cruel", "deadly", "a", "remark", "number", "the"]
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two layers and 16 dimensions with random weights, saved as safetensors."""
    folder = tmp_path_factory.mktemp("tiny")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    inner = Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token="[UNK]")
    )
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=32,
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        num_labels=2,
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def data(n: int = 96) -> tuple[list[str], np.ndarray]:
    classes = np.random.default_rng(0).integers(0, 6, n)
    return [f"a {WORDS[k]} remark" for k in classes], classes


RECIPE = Recipe(updates=60, batch=32, at_once=16, learning_rate=1e-2, length=32, save_every=20)


@pytest.mark.parametrize("kind", ["multiclass", "ordinal", "binary"])
def test_it_learns_and_is_saved(tiny: Path, tmp_path: Path, kind: str) -> None:
    texts, classes = data()
    head = Head(kind=kind)  # type: ignore[arg-type]
    detector = TransformerDetector(head=head, base=str(tiny), recipe=RECIPE)
    detector.fit(texts, classes, folder=tmp_path / "t")
    found = detector.moderate(Texts.from_frame({"text": texts}))
    assert ((found.outcomes == 1) == (classes >= 3)).mean() > 0.95
    folder = detector.save(tmp_path / "d")
    assert not list(folder.rglob("*.bin")) and not list(folder.rglob("*.pkl"))
    again = load_detector(folder)
    assert again.score(texts)[0] == pytest.approx(detector.score(texts)[0], abs=1e-6)


def test_a_stopped_training_goes_on_as_if_it_had_not(tiny: Path, tmp_path: Path) -> None:
    texts, classes = data()

    def stop(done: int, total: int, note: str) -> None:
        if done == 33:
            raise KeyboardInterrupt

    whole = TransformerDetector(base=str(tiny), recipe=RECIPE)
    whole.fit(texts, classes, folder=tmp_path / "whole")
    parts = TransformerDetector(base=str(tiny), recipe=RECIPE)
    with pytest.raises(KeyboardInterrupt):
        parts.fit(texts, classes, folder=tmp_path / "parts", progress=stop)
    torch.rand(5)  # what ran in between does not matter
    steps: list[int] = []
    parts = TransformerDetector(base=str(tiny), recipe=RECIPE)
    parts.fit(
        texts, classes, folder=tmp_path / "parts", progress=lambda done, *_: steps.append(done)
    )
    assert steps[0] == 21  # from the checkpoint at 20, not from the beginning
    assert np.array_equal(parts.outputs(texts).outputs, whole.outputs(texts).outputs)
    finished = TransformerDetector(base=str(tiny), recipe=RECIPE)
    finished.fit(texts, classes, folder=tmp_path / "parts")
    assert np.array_equal(finished.outputs(texts).outputs, whole.outputs(texts).outputs)
    with pytest.raises(PlanError, match="belongs to other texts"):
        TransformerDetector(base=str(tiny), recipe=RECIPE).fit(
            texts[:-1], classes[:-1], folder=tmp_path / "parts"
        )


def test_long_texts_are_read_in_windows(tiny: Path, tmp_path: Path) -> None:
    texts, classes = data()
    detector = TransformerDetector(base=str(tiny), recipe=RECIPE)
    detector.fit(texts, classes, folder=tmp_path / "t")
    long = "a calm remark " * 30 + "a deadly remark"
    _, scores = detector.score([long, texts[0]])
    assert scores.windows[0] > 3 and scores.windows[1] == 1
    assert scores.highest[0] >= detector.of_windows(scores, "mean")[0]
    first = detector.score([" ".join(long.split()[:30])])[0][0]
    assert scores.cut[0] == pytest.approx(first, abs=1e-6)


def test_the_recipe_of_the_paper_is_the_default() -> None:
    recipe = Recipe()
    assert (recipe.updates, recipe.batch, recipe.learning_rate) == (2000, 256, 5e-5)
    with pytest.raises(PlanError, match="updates is 0"):
        Recipe(updates=0)


def test_folders_that_are_no_model_are_refused(tiny: Path, tmp_path: Path) -> None:
    texts, classes = data()
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no model can be read"):
        TransformerDetector(base=str(tmp_path / "empty"), recipe=RECIPE).fit(
            texts, classes, folder=tmp_path / "t"
        )
    with pytest.raises(PlanError, match="name the checkpoint"):
        TransformerDetector(recipe=RECIPE).fit(texts, classes, folder=tmp_path / "t")
    with pytest.raises(PlanError, match="not trained"):
        TransformerDetector(base=str(tiny)).score(["a"])


@pytest.mark.slow
def test_the_published_recipe(tiny: Path, tmp_path: Path) -> None:
    """2,000 updates of AdamW at 5e-5 with six classes, on 50 texts that one word tells apart."""
    import json

    import polars as pl
    from typer.testing import CliRunner

    from ombud.cli import app

    rows = [{"text": f"the {WORDS[k % 6]} remark number {k}", "risk": k % 6,
             "split": "train" if k < 50 else ("validation", "test")[k % 2]}
            for k in range(74)]  # fmt: skip
    pl.DataFrame(rows).write_csv(tmp_path / "t.csv")
    command = ["text", "train", str(tmp_path / "t.csv"), "--to", str(tmp_path / "d"), "--near", "1"]
    done = CliRunner().invoke(app, [*command, "--recipe", "published", "--base", str(tiny)])
    assert done.exit_code == 0, done.output
    saved = json.loads((tmp_path / "d" / "detector.json").read_text())
    recipe = saved["model"]["recipe"]
    assert saved["model"]["optimizer"] == "AdamW" and recipe["learning_rate"] == 5e-5
    assert recipe["batch"] == 256 and recipe["updates"] == 2000
    assert saved["head"] == {"kind": "multiclass", "classes": 6, "cut": 3}
    mapping = {str(k): "delicate" if k >= 3 else "not" for k in range(6)}
    assert saved["model"]["classes"] == mapping
    losses = saved["facts"]["losses"]
    assert losses[0][0] == 1 and losses[-1][0] == 2000
    assert losses[-1][1] < 0.8 * losses[0][1]
    assert not (tmp_path / "d.training").exists()
    assert load_detector(tmp_path / "d").head.outputs == 6


def test_a_transformer_among_the_heads(tiny: Path, tmp_path: Path) -> None:
    import polars as pl

    from ombud.audits.analysis import Context
    from ombud.data.dataset import Dataset
    from ombud.metrics.engine.estimator import Settings
    from ombud.questions.delicate.detectors import HeadComparison

    texts, classes = data(60)
    mine = [f"{text} n{k}" for k, text in enumerate(texts)]
    pl.DataFrame({"text": mine, "risk": classes}).write_csv(tmp_path / "train.csv")
    words = np.array([f"{text} odd" for text in texts[:20]], dtype=object)
    audited = Texts(np.arange(20), words, (classes[:20] >= 3).astype(np.int8))
    found = HeadComparison(
        train=tmp_path / "train.csv", model="transformer", base=tiny, updates=3,
        heads=("multiclass", "binary"), rules=("threshold",),
    ).analyze(Context(Dataset(texts=audited), {}, Settings(replicates=100)))  # fmt: skip
    assert {e.system for e in found.estimates if e.key == "heads/f1"} == {
        "multiclass, threshold", "binary, threshold",
    }  # fmt: skip
