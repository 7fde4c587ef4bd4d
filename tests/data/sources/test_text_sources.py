"""Sources of labelled texts, on small files of the exact form, and on the real ones."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ombud import registry
from ombud.data.dataset import Dataset
from ombud.data.sources.jigsaw_kaggle import IDENTITY_COLUMNS
from ombud.errors import DataError, OmbudError, RegistryError


def load(name: str, **options: Any) -> Dataset:
    made = registry.create("source", name, options)
    assert isinstance(made, Dataset)
    return made


def truth_of(data: Dataset) -> list[int]:
    assert data.texts is not None
    return data.texts.truth.tolist()


def families_of(data: Dataset) -> list[str]:
    assert data.texts is not None
    assert data.texts.families is not None
    return data.texts.families.tolist()


def write_csv(path: Path, rows: list[list[str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


def forum(folder: Path, *, as_files: bool) -> Path:
    labels = ["hate", "noHate", "relation", "idk/skip", "noHate"]
    ids = ["12_1", "12_2", "13_1", "14_1", "15_1"]
    rows = [["file_id", "user_id", "subforum_id", "num_contexts", "label"]]
    rows += [
        [one, user, "7", "0", label] for one, user, label in zip(ids, "aabbc", labels, strict=True)
    ]
    write_csv(folder / "annotations_metadata.csv", rows)
    if as_files:
        (folder / "all_files").mkdir()
        for one in ids[:4]:
            (folder / "all_files" / f"{one}.txt").write_bytes(
                f"text of {one} \xff\n".encode("latin1")
            )
    else:
        table = [["file_id", "user_id", "text"]]
        table += [[one, "a", f'text "{one}",\nmore'] for one in ids]
        write_csv(folder / "stormfront_sentences.csv", table)
    return folder


def test_stormfront_in_one_file(tmp_path: Path) -> None:
    path = str(forum(tmp_path, as_files=False))
    data = load("stormfront", path=path)
    assert truth_of(data) == [1, 0, -1, -1, 0]
    assert data.texts is not None
    assert data.texts.clusters is not None
    assert data.texts.clusters.tolist() == [0, 0, 1, 1, 2]
    assert data.texts.texts[0] == 'text "12_1",\nmore'
    assert set(families_of(data)) == {"traditional"}
    assert truth_of(load("stormfront", path=path, others="acceptable")) == [1, 0, 0, 0, 0]
    posts = load("stormfront", path=path, cluster="post").texts
    assert posts is not None
    assert posts.clusters is not None
    assert posts.clusters.tolist() == [0, 0, 1, 2, 3]
    assert load("stormfront", path=path, cluster="none").texts.clusters is None  # type: ignore[union-attr]
    assert data.card.licence == "CC BY-SA 3.0 ES"
    assert data.card.known_harms
    assert set(data.card.hashes) == {"annotations_metadata.csv", "stormfront_sentences.csv"}


def test_stormfront_as_published(tmp_path: Path) -> None:
    data = load("stormfront", path=str(forum(tmp_path, as_files=True)))
    assert truth_of(data) == [1, 0, -1, -1]
    (lost,) = data.exclusions
    assert (lost.count, lost.of, lost.reason) == (1, 5, "no text was found")
    assert data.card.facts["texts_with_replaced_bytes"] == 4


def test_stormfront_without_texts(tmp_path: Path) -> None:
    forum(tmp_path, as_files=False)
    (tmp_path / "stormfront_sentences.csv").unlink()
    with pytest.raises(DataError, match="all_files"):
        load("stormfront", path=str(tmp_path))
    with pytest.raises(DataError, match="there is no"):
        load("stormfront", path=str(tmp_path / "nowhere"))


def test_tweeteval(tmp_path: Path) -> None:
    texts = {"train": "one\u2028still one\ntwo\n", "val": "three\n \n", "test": "four\r\n"}
    labels = {"train": "0\n1\n", "val": "0\n1\n", "test": "1\n"}
    for split in texts:
        (tmp_path / f"{split}_text.txt").write_bytes(texts[split].encode())
        (tmp_path / f"{split}_labels.txt").write_text(labels[split])
    data = load("tweeteval", path=str(tmp_path))
    assert truth_of(data) == [0, 1, 0, 1]
    assert data.texts is not None
    assert data.texts.ids.tolist() == ["train-1", "train-2", "val-1", "test-1"]
    assert data.texts.texts[0] == "one\u2028still one"
    assert data.texts.texts[3] == "four"
    assert data.exclusions[0].reason == "they are empty"
    assert truth_of(load("tweeteval", path=str(tmp_path), splits=["test"])) == [1]
    (tmp_path / "val_labels.txt").write_text("0\n")
    (tmp_path / "test_text.txt").unlink()
    with pytest.raises(DataError, match="2 faults") as error:
        load("tweeteval", path=str(tmp_path))
    assert "2 texts but 1 labels" in str(error.value)


def test_jigsaw_bias(tmp_path: Path) -> None:
    rows = [["template", "toxicity", "phrase"]]
    rows += [["verb_adj", "nontoxic", f"hug {term}"] for term in ("deaf", "middle aged")]
    rows += [["name_adj", "toxic", f"{n} is a bad {t}"] for n in ("Al", "Bo") for t in ("deaf",)]
    rows += [["you_occupation", "nontoxic", f"You are a good {o}"] for o in ("cook", "bank clerk")]
    write_csv(tmp_path / "en_sentence_templates.csv", rows)
    data = load("jigsaw-bias", path=str(tmp_path))
    assert truth_of(data) == [0, 0, 1, 1, 0, 0]
    assert data.texts is not None
    assert data.texts.clusters is not None
    assert len(np.unique(data.texts.clusters)) == 3
    assert data.text_groups is not None
    stated = dict(zip(data.text_groups.names, data.text_groups.members.T.tolist(), strict=True))
    assert stated["disability"] == [True, False, True, True, False, False]
    assert sum(map(sum, stated.values())) == 3
    named = load("jigsaw-bias", path=str(tmp_path), named_only=True)
    assert named.texts is not None
    assert named.texts.ids.tolist() == [1, 3, 4]
    assert named.exclusions[0].count == 3
    write_csv(tmp_path / "en_sentence_templates.csv", [rows[0], ["x", "toxic", "y"]])
    with pytest.raises(DataError, match="verb_adj"):
        load("jigsaw-bias", path=str(tmp_path))


def comments(path: Path, toxicity: str) -> Path:
    known = [column for columns in IDENTITY_COLUMNS.values() for column in columns]
    empty = dict.fromkeys(known, "")
    none = dict.fromkeys(known, "0.0")
    rows = [
        {"id": "1", "comment_text": "a", toxicity: "0.7"} | none | {"female": "1.0"},
        {"id": "2", "comment_text": "b,\nc", toxicity: "0.1"}
        | none
        | {"jewish": "0.5", "black": "0.4", "transgender": "0.6"},
        {"id": "3", "comment_text": "c", toxicity: "0.9"} | empty,
        {"id": "4", "comment_text": "d", toxicity: ""} | none,
    ]
    pl.DataFrame(rows).write_csv(path)
    return path


@pytest.mark.parametrize(
    ("file", "toxicity"), [("all_data.csv", "toxicity"), ("train.csv", "target")]
)
def test_jigsaw_kaggle(tmp_path: Path, file: str, toxicity: str) -> None:
    comments(tmp_path / file, toxicity)
    data = load("jigsaw-kaggle", path=str(tmp_path))
    assert truth_of(data) == [1, 0, -1]
    groups = data.text_groups
    assert groups is not None
    found = {name: groups.members[:, g].tolist() for g, name in enumerate(groups.names)}
    assert found["women"] == [True, False, False]
    assert found["non-christian"] == [False, True, False]
    assert found["lgbt"] == [False, True, False]
    assert not any(found["non-white"])
    assert data.exclusions[0].reason == "nobody labelled them for identities"
    with pytest.raises(DataError, match="threshold"):
        load("jigsaw-kaggle", path=str(tmp_path), threshold=0)
    with pytest.raises(DataError, match="label 'insult' needs the column 'insult'"):
        load("jigsaw-kaggle", path=str(tmp_path), label="insult")
    table = pl.read_csv(tmp_path / file, infer_schema=False)
    table.with_columns(insult=pl.Series(["0.1", "0.8", "0", "0.2"])).write_csv(tmp_path / file)
    assert truth_of(load("jigsaw-kaggle", path=str(tmp_path), label="insult")) == [0, 1, 0]
    comments(tmp_path / file, "other")
    with pytest.raises(DataError, match="neither column"):
        load("jigsaw-kaggle", path=str(tmp_path))


@pytest.mark.parametrize("packed", [False, True])
def test_openai_1680(tmp_path: Path, packed: bool) -> None:
    whole = dict.fromkeys(("S", "H", "V", "HR", "SH", "H2", "V2"), 0)
    rows: list[dict[str, Any]] = [
        {"prompt": "one", **whole, "S3": 0},
        {"prompt": "two", "H": 1},
        {"prompt": "three", "V": 0},
        {"prompt": "never shown", "S": 1, "S3": 1},
        {"prompt": "never shown", "sexual/minors": 1},
    ]
    content = "\n".join(json.dumps(row) for row in rows).encode() + b"\n\n"
    path = tmp_path / ("samples-1680.jsonl.gz" if packed else "samples-1680.jsonl")
    path.write_bytes(gzip.compress(content) if packed else content)
    data = load("openai-1680", path=str(tmp_path))
    assert truth_of(data) == [0, 1, -1]
    assert data.texts is not None
    assert "never shown" not in " ".join(data.texts.texts)
    assert (data.exclusions[0].count, data.exclusions[0].of) == (2, 5)
    assert "S3" not in str(data.card)
    assert truth_of(load("openai-1680", path=str(path), missing="acceptable")) == [0, 1, 0]
    assert set(families_of(data)) == {"generative-ai"}


def test_openai_1680_damaged(tmp_path: Path) -> None:
    path = tmp_path / "samples-1680.jsonl"
    path.write_text('{"prompt": "a", "H": 0}\n{broken\n{"text": "b"}\n')
    with pytest.raises(DataError, match=r"rows 2, 3 \(2 in all\)"):
        load("openai-1680", path=str(path))


def titles(path: Path) -> Path:
    ratings = ["G", "TV-Y7-FV", "PG-13", "tv-14 ", "R", "TV-MA", "NR", "", "84 min"]
    rows = [["show_id", "type", "rating", "description", "series"]]
    rows += [[f"s{i}", "Movie", r, f"synopsis {i}", f"x{i // 2}"] for i, r in enumerate(ratings)]
    return write_csv(path, rows)


def test_synopses(tmp_path: Path) -> None:
    titles(tmp_path / "netflix_titles.csv")
    data = load("synopses", path=str(tmp_path))
    assert truth_of(data) == [0, 0, 0, 0, 1, 1]
    assert truth_of(load("synopses", path=str(tmp_path), acceptable="pg")) == [0, 0, 1, 1, 1, 1]
    (lost,) = data.exclusions
    assert (lost.count, lost.of) == (3, 9)
    assert "1 no rating" in lost.reason
    clustered = load("synopses", path=str(tmp_path / "netflix_titles.csv"), cluster="series").texts
    assert clustered is not None
    assert clustered.clusters is not None
    assert clustered.clusters.tolist() == [0, 0, 1, 1, 2, 2]
    with pytest.raises(DataError, match="'plot' is missing"):
        load("synopses", path=str(tmp_path), text="plot")
    with pytest.raises(RegistryError, match="acceptable"):
        load("synopses", path=str(tmp_path), acceptable="anything")


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_two_column(tmp_path: Path, suffix: str) -> None:
    frame = pl.DataFrame(
        {"body": ["a", "b", None, "d"], "says": [1, 0, 1, None], "k": ["x", "y", "x", "y"]}
    )
    path = tmp_path / f"mine.{suffix}"
    getattr(frame, {"csv": "write_csv", "parquet": "write_parquet"}.get(suffix, "write_ndjson"))(
        path
    )
    data = load(
        "two-column", path=str(path), text="body", label="says", cluster="k", family="generative-ai"
    )
    assert truth_of(data) == [1, 0, -1]
    assert data.exclusions[0].count == 1
    assert data.card.name == "mine"
    with pytest.raises(DataError, match="'text' is missing"):
        load("two-column", path=str(path))
    with pytest.raises(DataError, match="no label is one of hate"):
        load(
            "two-column", path=str(path), text="body", label="says", flagged=["hate"], acceptable=[]
        )


def test_two_column_refuses_an_id_that_stands_twice(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    pl.DataFrame({"text": ["a", "b"], "label": [0, 1], "n": [5, 5]}).write_csv(path)
    with pytest.raises(DataError, match="an id stands twice"):
        load("two-column", path=str(path), id="n")


def test_together(tmp_path: Path) -> None:
    titles(tmp_path / "netflix_titles.csv")
    forum(tmp_path, as_files=False)
    parts = [
        {"source": "stormfront", "path": str(tmp_path)},
        {"source": "synopses", "path": str(tmp_path)},
    ]
    data = load("together", parts=parts)
    assert data.texts is not None
    assert truth_of(data) == [1, 0, -1, -1, 0, 0, 0, 0, 0, 1, 1]
    assert data.texts.ids[0] == "stormfront:12_1"
    assert data.texts.clusters is not None
    assert len(np.unique(data.texts.clusters)) == 3 + 6
    assert data.texts.families is not None
    assert data.texts.families.tolist() == ["traditional"] * 5 + ["generative-ai"] * 6
    assert "stormfront: CC BY-SA" in data.card.licence
    with pytest.raises(DataError, match="two or more"):
        load("together", parts=parts[:1])
    with pytest.raises(DataError, match="same name"):
        load("together", parts=[parts[0], parts[0]])
    with pytest.raises(DataError, match="names no source"):
        load("together", parts=[{"path": "x"}, parts[0]])


def test_sets_and_stated_groups_are_kept_when_sources_are_combined(tmp_path: Path) -> None:
    from ombud.data import Dataset
    from ombud.data.card import Card
    from ombud.data.groups import Grouping
    from ombud.data.sources import combined as module
    from ombud.data.texts import Texts

    def part(name: str, group: str) -> Dataset:
        texts = Texts.from_frame({"id": [1, 2], "text": ["a", "b"], "label": [0, 1]})
        groups = Grouping.from_members({"id": [2], "group": [group]}, unit="id")
        return Dataset(texts=texts, text_groups=groups, card=Card(name=name))

    parts = [part("one", "men"), part("two", "women")]
    texts, groups = module._joined(parts), module._groups(parts)
    assert texts.sets is not None and texts.sets.tolist() == ["one", "one", "two", "two"]
    assert groups is not None and groups.names == ("men", "women")
    assert groups.aligned(texts.ids).tolist() == [
        [False, False],
        [True, False],
        [False, False],
        [False, True],
    ]
    again = Texts.from_frame(texts.to_frame())
    assert again.sets is not None and again.sets.tolist() == texts.sets.tolist()


@pytest.mark.realdata
def test_real_files(realdata: Path) -> None:
    found = {
        "stormfront": load("stormfront", path=str(realdata / "stormfront"), others="acceptable"),
        "tweeteval": load("tweeteval", path=str(realdata / "tweeteval-hate")),
        "jigsaw-bias": load("jigsaw-bias", path=str(realdata / "jigsaw-bias")),
        "synopses": load("synopses", path=str(realdata / "netflix-ratings"), acceptable="pg"),
    }
    counts = {
        name: tuple(int(np.count_nonzero(np.array(truth_of(data)) == v)) for v in (0, 1))
        for name, data in found.items()
    }
    assert counts["stormfront"] == (9748, 1196)  # as in the published confusion matrices
    assert sum(counts["tweeteval"]) + found["tweeteval"].exclusions[0].count == 12_970
    assert counts["jigsaw-bias"] == (38_282, 38_282)
    assert found["jigsaw-bias"].card.facts["clusters"] == 138
    assert counts["synopses"] == (1843, 5848)
    assert found["synopses"].exclusions[0].count == 96


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_two_columns_that_cannot_be_read_are_said_in_a_sentence(
    tmp_path: Path, ending: str
) -> None:
    file = tmp_path / f"broken.{ending}"
    file.write_bytes(b'text,label\n"some words,1\nmore,0\n')
    with pytest.raises(DataError, match=rf"broken\.{ending}"):
        load("two-column", path=str(file))


def test_one_type_of_label_of_openai(tmp_path: Path) -> None:
    path = tmp_path / "samples-1680.jsonl"
    path.write_text(
        '{"prompt": "a", "H": 1, "S": 0}\n{"prompt": "b", "S": 1}\n{"prompt": "c", "H": 0}\n'
    )
    assert truth_of(load("openai-1680", path=str(path), label="H")) == [1, -1, 0]
    hate = {"source": "openai-1680", "path": str(path), "label": "H", "name": "hate"}
    sexual = {"source": "openai-1680", "path": str(path), "label": "S", "name": "sexual"}
    with pytest.raises(DataError, match=r"'sexual' is refused: hate has the same texts under"):
        load("together", parts=[hate, sexual])
    with pytest.raises(OmbudError, match="label: Input should be 'any', 'H'"):
        load("openai-1680", path=str(path), label="X")


def test_the_compiled_file_of_the_authors(tmp_path: Path) -> None:
    from ombud.data.sources.speech_suppression import OUTCOMES
    from ombud.systems import RecordedDecisions

    file = tmp_path / "genAI_combined.csv"
    pl.DataFrame(
        {
            "index": [0, 1, 2, 3],
            "dataset_name": ["OpenAI", "TV Synopses", "OpenAI", "Stormfront"],
            "subset_name": ["-", "Short TMDB", None, "-"],
            "data_type": ["GenAI", "GenAI", "GenAI", "Traditional"],
            "text": ["a", "b", "c", "d"],
            "true_label": [0, 1, None, 0],
            "PG score": [None, True, None, None],
            "Big_identity": ["women;LGBT-related", None, "white", "women"],
            "Sub_Identities": ["female;gay", None, "european", "female"],
            "openAI_flag": [True, False, False, False],
            "openAI_score": [0.9, 0.1, 0.2, 0.3],
        }
    ).write_csv(file)
    data = load("speech-suppression", path=str(file))
    assert truth_of(data) == [0, 1, -1, 0]
    assert data.texts is not None
    assert data.texts.sets is not None
    assert data.texts.families is not None
    assert data.texts.sets.tolist() == ["OpenAI", "TV Synopses: Short TMDB", "OpenAI", "Stormfront"]
    assert data.texts.families.tolist() == ["generative-ai"] * 3 + ["traditional"]
    assert data.text_groups is not None
    assert data.text_groups.names == ("white", "women", "lgbt")
    assert data.text_groups.members.sum(axis=0).tolist() == [1, 2, 1]
    sub = load("speech-suppression", path=str(file), identities="sub-identities")
    assert sub.text_groups is not None
    assert sub.text_groups.names == ("european", "female", "gay")
    assert truth_of(load("speech-suppression", path=str(file), label="PG score")) == [-1, 0, -1, -1]
    past = RecordedDecisions(file, columns={"id": "index", **OUTCOMES["openai"]})
    got = past.moderate(data.texts)
    assert got.outcomes.tolist() == [1, 0, 0, 0]
    assert got.scores.tolist() == pytest.approx([0.9, 0.1, 0.2, 0.3])
    with pytest.raises(DataError, match="column 'nothing', mapped to 'id', is missing"):
        RecordedDecisions(file, columns={"id": "nothing"}).moderate(data.texts)


def test_a_text_under_two_label_definitions_counts_once(tmp_path: Path) -> None:
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.write_text("id,text,label\n1,a,1\n2,b,0\n3,c,0\n")
    two.write_text("id,text,label\n3,c,1\n2,other,1\n4,d,1\n")
    parts = [
        {"source": "two-column", "path": str(path), "id": "id", "name": path.stem}
        for path in (one, two)
    ]
    data = load("together", parts=parts)
    assert data.texts is not None
    assert data.texts.texts.tolist() == ["a", "b", "c", "other", "d"]
    assert truth_of(data) == [1, 0, 0, 1, 1]  # of c, the first label counts
    (lost,) = [e for e in data.texts.exclusions if e.key == "warning/second-definition"]
    assert (lost.where, lost.count, lost.of) == ("two: texts", 1, 3)
    assert "one has the same texts under another label definition" in lost.reason
