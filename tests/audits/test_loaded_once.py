"""What a plan names is built, hashed and decided once for each run."""

from __future__ import annotations

from collections import Counter
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


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each registered thing was built."""
    counts: Counter[str] = Counter()
    create = registry.create

    def counting(kind: str, name: str, *rest: Any) -> Any:
        counts[f"{kind}:{name}"] += 1
        return create(kind, name, *rest)

    monkeypatch.setattr(registry, "create", counting)
    return counts


@pytest.mark.parametrize("repeat", [1, 3])
def test_metrics_and_analyses_are_built_once_and_systems_once_a_repeat(
    plan: dict[str, Any], built: Counter[str], repeat: int
) -> None:
    plan |= {"repeat": repeat, "split": {"method": "per-user", "share": 0.2}}
    Audit.from_plan(Plan.from_dict(plan)).run()
    assert built == {
        "analysis:distribution": 1,
        "metric:label-share": 1,
        "metric:share-gap": 1,
        "recommender:popular": repeat,
    }


def test_a_preset_completes_a_plan_and_prepares_its_data_once(
    built: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = {"source": "small", "options": {"seed": 2, "ratings": True}}
    plan = {
        "preset": "warnings",
        "data": data,
        "repeat": 3,
        "options": {"trained": ["SVD"], "feedback": "explicit"},
    }
    audit = Audit.from_plan(Plan.from_dict(plan))
    before = Counter(built)
    for number in (1, 2):
        again = audit.repeated(number, None)
        assert again.data is not None and again.metrics == audit.metrics
    assert built["preset:warnings"] == 2
    assert {name.partition(":")[0] for name in built - before} == {"recommender"}


@pytest.mark.parametrize("repeat", [1, 3])
def test_files_are_hashed_once_and_the_data_is_gone_through_once(
    plan: dict[str, Any], repeat: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan |= {"repeat": repeat, "split": {"method": "per-user", "share": 0.2}}
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
