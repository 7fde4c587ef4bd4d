"""Crosswalks: complete, consistent in both directions, checked when read."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from ombud.errors import DataError, RegistryError
from ombud.taxonomy import load_taxonomy, taxonomy_names
from ombud.taxonomy.model import Crosswalk, load_crosswalk, read_crosswalk


@pytest.mark.parametrize(("here", "there"), list(permutations(taxonomy_names(), 2)))
def test_all_pairs_map_both_ways(here: str, there: str) -> None:
    source, target = load_taxonomy(here), load_taxonomy(there)
    forward, back = source.map_to(target), target.map_to(source)
    assert set(forward) == {*source.ids, *source.parent_ids}
    assert any(forward.values())
    for id, others in forward.items():
        for other in others:
            assert other in target
            assert id in back[other]


def test_relations_choose_and_turn_round() -> None:
    ddd, ao3 = load_taxonomy("warnings-ddd@1"), load_taxonomy("warnings-ao3@1")
    assert ddd.map_to(ao3, relations=("exact",))["torture"] == ()
    assert ddd.map_to(ao3, relations=("exact", "broader"))["torture"] == ("violence",)
    assert "torture" in ao3.map_to(ddd, relations=("narrower",))["violence"]
    assert "torture" not in ao3.map_to(ddd, relations=("broader",))["violence"]
    assert ddd.map_to(ao3)["jump-scares"] == ()


def test_every_ao3_label_but_named_ones_has_a_counterpart_in_ddd() -> None:
    mapped = load_taxonomy("warnings-ao3@1").map_to("warnings-ddd@1")
    none = {id for id in load_taxonomy("warnings-ao3@1").ids if not mapped[id]}
    assert none == {"other-abuse"}


def test_inverting_twice_is_the_same() -> None:
    walk = load_crosswalk("warnings-ddd@1", "warnings-ao3@1")
    assert walk.inverted().inverted() == walk
    assert load_crosswalk("warnings-ao3@1", "warnings-ddd@1") == walk.inverted()


def test_a_crosswalk_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("# from: delicate@1\n# to: house@1\nsource,target,relation\nage,old,exact\n")
    walk = read_crosswalk(path)
    assert load_taxonomy("delicate@1").map_to("house@1", crosswalk=walk)["age"] == ("old",)
    with pytest.raises(RegistryError, match="the crosswalk joins"):
        load_taxonomy("identity@1").map_to("house@1", crosswalk=walk)
    with pytest.raises(RegistryError, match="no crosswalk joins"):
        load_taxonomy("delicate@1").map_to("house@1")


def test_all_faults_of_a_crosswalk_in_one_error(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(
        "# from: delicate@1\nsource,target,relation\nage,x,exact\nage,x,exact\nnope,x,like\n"
    )
    with pytest.raises(DataError) as caught:
        read_crosswalk(path)
    assert len(caught.value.faults) == 4
    for part in ("# to:", "row 4: the pair", "row 5: 'nope'", "row 5: relation 'like'"):
        assert part in str(caught.value)


def test_columns_and_ragged_rows(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("source,target\na,b\n")
    with pytest.raises(DataError, match="expected also relation"):
        read_crosswalk(path)
    path.write_text("source,target,relation\na,b\na,b,c,d\n")
    with pytest.raises(DataError, match="rows 2, 3: not as many fields"):
        read_crosswalk(path)
    path.write_text('source,target,relation\n"a,b,c\n')
    with pytest.raises(DataError, match="not CSV"):
        read_crosswalk(path)


def test_crosswalk_hides_its_rows() -> None:
    assert "dog" not in repr(Crosswalk("a@1", "b@1", (("dog", "animal", "broader"),)))
