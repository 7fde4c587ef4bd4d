from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.stats import adjust, benjamini_hochberg, holm

P = st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=30)


def test_hand_worked() -> None:
    p = [0.01, 0.02, 0.03, 0.5]
    assert holm(p).tolist() == pytest.approx([0.04, 0.06, 0.06, 0.5])
    assert benjamini_hochberg(p).tolist() == pytest.approx([0.04, 0.04, 0.04, 0.5])


@pytest.fixture(scope="module")
def multitest() -> Any:
    # Inside the test Hypothesis would trace every line of the import.
    return pytest.importorskip("statsmodels.stats.multitest")


@given(p=P)
def test_equal_statsmodels_and_keep_what_is_missing(multitest: Any, p: list[float | None]) -> None:
    values = np.array(p, dtype=float)
    known = ~np.isnan(values)
    for ours, theirs in ((holm(p), "holm"), (benjamini_hochberg(p), "fdr_bh")):
        assert np.isnan(ours[~known]).all()
        if known.any():
            expected = multitest.multipletests(values[known], method=theirs)[1]
            np.testing.assert_allclose(ours[known], expected, atol=1e-12)
        assert (ours[known] >= values[known] - 1e-15).all() and (ours[known] <= 1).all()


@given(P)
def test_order_is_kept_and_holm_is_stricter(p: list[float | None]) -> None:
    values = np.array(p, dtype=float)
    order = np.argsort(values)[: np.count_nonzero(~np.isnan(values))]
    for adjusted in (holm(p), benjamini_hochberg(p)):
        assert (np.diff(adjusted[order]) >= -1e-15).all()
    assert (holm(p) >= benjamini_hochberg(p) - 1e-12)[~np.isnan(values)].all()


def test_names_shapes_and_refusals() -> None:
    table = np.array([[0.01, 0.5], [np.nan, 0.02]])
    assert adjust(table, "holm")[0, 0] == pytest.approx(0.03)
    assert adjust(table, "benjamini-hochberg").shape == (2, 2)
    assert table[0, 0] == 0.01, "the input is not written to"
    np.testing.assert_array_equal(adjust(table, "none"), table)
    with pytest.raises(ValueError, match="2 p-values are outside"):
        holm([1.5, -0.1, 0.2])
    with pytest.raises(ValueError, match="expected 'holm'"):
        adjust([0.1], "bonferroni")  # type: ignore[arg-type]


@pytest.mark.simulation
def test_error_rates(rng) -> None:
    """Forty labels, eight with an effect: Holm bounds any false alarm, BH their share."""
    from scipy.stats import norm

    runs, effect = 3000, np.r_[np.full(8, 3.0), np.zeros(32)]
    p = 2 * norm.sf(np.abs(rng.normal(size=(runs, 40)) + effect))
    any_false = np.mean([(holm(row)[8:] <= 0.05).any() for row in p])
    shares = []
    for row in p:
        found = benjamini_hochberg(row) <= 0.05
        shares.append(found[8:].sum() / max(found.sum(), 1))
    assert any_false <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / runs)
    assert np.mean(shares) == pytest.approx(0.05 * 32 / 40, abs=0.008)
