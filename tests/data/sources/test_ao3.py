"""AO3 from small files of exactly the published formats."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ombud import registry
from ombud.data import LabelState
from ombud.data.sources._build import write_dataset
from ombud.data.sources.ao3 import build_ao3
from ombud.errors import DataError
from ombud.taxonomy import load_taxonomy


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, formats: ModuleType) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("ao3")
    paths: tuple[Path, Path] = formats.write_ao3(folder, users=400, works=120, kudos=1500, seed=5)
    return paths


def plain(paths: tuple[Path, Path]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The same in pandas."""
    works, kudos = (pd.read_csv(path).drop(columns="Unnamed: 0") for path in paths)
    while True:
        before = len(kudos)
        for column in ("user_id", "work_id"):
            counts = kudos[column].value_counts()
            kudos = kudos[kudos[column].isin(counts[counts >= 3].index)]
        kudos = kudos[kudos["work_id"].isin(works["work_id"])]
        if len(kudos) == before:
            return works[works["work_id"].isin(kudos["work_id"])], kudos


def test_same_as_pandas(made: tuple[Path, Path]) -> None:
    works, kudos = plain(made)
    data = build_ao3(*made)
    facts = data.card.facts
    assert facts["interactions"] == len(kudos) < 1500
    assert facts["users"] == kudos["user_id"].nunique()
    assert facts["works"] == len(works)
    labels = list(load_taxonomy("warnings-ao3@1").ids)
    assert facts["applied"] == works[labels].to_numpy().sum()
    assert facts["absent"] == facts["works"] * 36 - facts["applied"]
    assert facts["warning_density"] == pytest.approx(works[labels].to_numpy().mean())
    assert facts["mean_hits"] == pytest.approx(works["n_hits"].mean())
    assert facts["mean_kudos"] == pytest.approx(works["n_kudos"].mean())
    assert facts["mean_interactions"] == pytest.approx(len(kudos) / len(works))
    assert data.labels is not None
    table = works.set_index("work_id")
    for row, work in enumerate(data.labels.items.ids.tolist()):
        assert (data.labels.states[row] == table.loc[work, list(data.labels.names)]).all()
    assert data.items is not None and data.items.attributes == ("hits", "kudos")
    hits = dict(zip(data.items.items.ids.tolist(), data.items.values["hits"], strict=True))
    assert hits == {work: str(int(n)) for work, n in table["n_hits"].items()}


def test_names_of_users_are_nowhere_in_the_folder(tmp_path: Path, formats: ModuleType) -> None:
    paths = formats.write_ao3(
        tmp_path,
        users=300,
        works=60,
        kudos=1200,
        user_name=lambda codes: pl.Series([f"secretreader{code}" for code in codes]),
    )
    data = build_ao3(*paths)
    folder = write_dataset(data, tmp_path / "built")
    assert data.interactions is not None
    assert data.interactions.users.ids.tolist() == list(range(1, data.interactions.n_users + 1))
    for path in folder.iterdir():
        assert b"secretreader" not in path.read_bytes()
    for path in folder.glob("*.parquet"):
        table = pl.read_parquet(path)
        assert "user" not in table.columns or table["user"].dtype == pl.Int64
    again = registry.create("source", "ao3", {"path": str(folder)})
    assert (again.interactions.matrix != data.interactions.matrix).nnz == 0
    assert not again.interactions.explicit
    assert data.labels is not None
    order = data.labels.select(again.labels.names)
    assert (again.labels.aligned(data.labels.items) == order.states).all()
    assert not np.any(again.labels.states == LabelState.UNKNOWN), "absent is no, and stays no"


def test_works_outside_the_table_and_repeats_are_counted(
    tmp_path: Path, made: tuple[Path, Path]
) -> None:
    kudos = pl.read_csv(made[1], columns=["user_id", "work_id"])
    strangers = pl.DataFrame({"user_id": [1, 2, 3, 4], "work_id": [10**8] * 4})
    more = pl.concat([kudos, kudos.head(7), strangers])
    more.write_csv(tmp_path / "ao3_interaction_table.csv")
    data = build_ao3(made[0], tmp_path / "ao3_interaction_table.csv")
    dropped = "\n".join(data.card.dropped)
    assert "interactions: 7 of 1,511 rows excluded: the same user and item again" in dropped
    assert "1 of" in dropped and "they are not in the sensitivity table" in dropped
    assert data.card.facts["interactions"] == build_ao3(*made).card.facts["interactions"]


def test_faults_of_the_sensitivity_table(tmp_path: Path, made: tuple[Path, Path]) -> None:
    table = pl.read_csv(made[0])
    path = tmp_path / "ao3_sensitivity_table.csv"
    table.drop("violence", "death").write_csv(path)
    with pytest.raises(DataError) as error:
        build_ao3(path, made[1])
    assert "no column for the warning 'violence'" in str(error.value)
    assert "no column for the warning 'death'" in str(error.value)
    pl.concat([table, table.head(1)]).with_columns(violence=pl.lit(3)).write_csv(path)
    with pytest.raises(DataError) as error:
        build_ao3(path, made[1])
    assert "'violence' holds values other than 0 and 1" in str(error.value)
    assert "repeats an id" in str(error.value)


def test_other_columns_are_left_out_and_refused_ones_not_named(
    tmp_path: Path, made: tuple[Path, Path]
) -> None:
    refused = sorted(load_taxonomy("warnings-ao3@1").refused_spellings)[0]
    path = tmp_path / "ao3_sensitivity_table.csv"
    table = pl.read_csv(made[0]).with_columns(**{refused: pl.lit(1), "dragons": pl.lit(1)})
    table.write_csv(path)
    data = build_ao3(path, made[1])
    text = data.card.model_dump_json()
    assert "labels that ombud refuses to store" in text and "dragons" in text
    assert refused not in text
    assert data.labels is not None and len(data.labels.names) == 36
