"""Every input of the corpus of mutated bytes, and every finding so far, ends as it must."""

from __future__ import annotations

import pytest
from mutations import HERE, TARGETS, fault_of

INPUTS = sorted(p for kind in ("corpus", "findings") for p in (HERE / kind).glob("*/*"))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.filterwarnings("ignore")
def test_the_corpus_of_a_target(target: str) -> None:
    paths = [path for path in INPUTS if path.parent.name == target]
    assert len(paths) >= 3
    faults = {p.name: fault_of(TARGETS[target], p.read_bytes()) for p in paths}
    assert {name: fault for name, fault in faults.items() if fault} == {}
