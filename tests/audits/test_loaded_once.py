"""What a plan names is built, hashed and decided once for each run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ombud import registry
from ombud.audits import Audit, Plan, load, provenance
from ombud.audits.load import load_data
from ombud.worlds import small_world


@pytest.fixture
def plan(tmp_path: Path) -> dict[str, Any]:
    small_world(seed=3).write(tmp_path, 5)
    return {
        "data": {
            "interactions": str(tmp_path / "interactions.parquet"),
            "labels": str(tmp_path / "labels.parquet"),
            "users": str(tmp_path / "users.parquet"),
        },
        "systems": {"popular": {"type": "popular"}},
        "metrics": [{"name": "share-gap", "k": 5}, {"name": "label-share", "k": 5}],
        "analyses": [{"name": "distribution"}],
        "statistics": {"replicates": 100},
    }


def test_metrics_analyses_and_systems_are_built_once(
    plan: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []
    create = registry.create

    def counting(kind: str, name: str, *rest: Any) -> Any:
        built.append(f"{kind}:{name}")
        return create(kind, name, *rest)

    monkeypatch.setattr(registry, "create", counting)
    Audit.from_plan(Plan.from_dict(plan)).run()
    assert sorted(built) == [
        "analysis:distribution", "metric:label-share", "metric:share-gap", "recommender:popular",
    ]  # fmt: skip


def test_files_are_hashed_once_and_the_data_is_gone_through_once(
    plan: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[str] = []
    arrays: list[int] = []
    hash_file, bytes_of = provenance.hash_file, provenance._bytes_of

    def counting(path: Path) -> str:
        hashed.append(path.name)
        return hash_file(path)

    def once(array: Any) -> list[Any]:
        arrays.append(id(array))
        return bytes_of(array)

    monkeypatch.setattr(provenance, "hash_file", counting)
    monkeypatch.setattr(load, "hash_file", counting)
    monkeypatch.setattr(provenance, "_bytes_of", once)
    audit = Audit.from_plan(Plan.from_dict(plan))
    result = audit.run()
    assert audit.data is not None
    assert sorted(hashed) == ["interactions.parquet", "labels.parquet", "users.parquet"]
    assert len(arrays) == sum(map(len, provenance._arrays_of(audit.data).values()))
    assert set(result.card.hashes) == set(hashed)


@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("source", [False, True])
def test_intersections_are_made_where_the_plan_asks_for_them(
    plan: dict[str, Any], crossed: bool, source: bool
) -> None:
    if source:
        plan["data"] = {"source": "small", "options": {"seed": 3}}
    users = load_data(Plan.from_dict(plan | {"intersections": crossed})).users
    assert users is not None
    pairs = [name for name in users.names if " & " in name]
    assert bool(pairs) == crossed
    assert len(set(users.attributes)) > 1  # or there would be nothing to cross
