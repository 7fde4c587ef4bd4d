"""Labels, lists, texts, decisions, groups: by hand, with their faults, and round trips."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.data import (
    Dataset,
    Decisions,
    Grouping,
    Interactions,
    Labels,
    LabelState,
    Outcome,
    Recommendations,
    Texts,
    Vocabulary,
)
from ombud.data.frames import MappedFile
from ombud.data.reading import Reading
from ombud.errors import DataError, PlanError

YES, NO, DISPUTED, UNKNOWN = 1, 0, -1, -2


@pytest.mark.parametrize(
    ("yes", "no", "strict", "state"),
    [
        (3, 1, False, YES),
        (3, 1, True, DISPUTED),
        (1, 3, False, NO),
        (1, 3, True, DISPUTED),
        (1, 1, False, DISPUTED),
        (0, 0, False, UNKNOWN),
        (1, 0, True, YES),
        (75, 25, False, YES),
        (74, 26, False, DISPUTED),
    ],
)
def test_vote_states(yes: int, no: int, strict: bool, state: int) -> None:
    votes = {"item": [1], "label": ["w"], "yes": [yes], "no": [no]}
    assert Labels.from_votes(votes, strict=strict).states.tolist() == [[state]]


@given(st.integers(0, 200), st.integers(0, 200))
def test_a_state_follows_from_the_share_of_votes(yes: int, no: int) -> None:
    votes = {"item": [1], "label": ["w"], "yes": [yes], "no": [no]}
    state = LabelState(int(Labels.from_votes(votes).states[0, 0]))
    if yes + no == 0:
        assert state is LabelState.UNKNOWN
    elif 4 * yes >= 3 * (yes + no):
        assert state is LabelState.YES
    elif 4 * no >= 3 * (yes + no):
        assert state is LabelState.NO
    else:
        assert state is LabelState.DISPUTED


def test_applied_labels_and_what_absence_means() -> None:
    frame = pl.DataFrame({"item": [1, 2, 3], "label": ["a", "b", None]})
    assert Labels.from_applied(frame).states.tolist() == [[1, -2], [-2, 1], [-2, -2]]
    assert Labels.from_applied(frame, absent="no").states.tolist() == [[1, 0], [0, 1], [0, 0]]
    present = {"item": [1, 2], "label": ["a", "a"], "present": [True, False]}
    assert Labels.from_applied(present).states.tolist() == [[1], [0]]


def test_labels_refuse_what_they_must() -> None:
    again = {"item": [1, 1], "label": ["a", "a"], "yes": [1, 1], "no": [0, 0]}
    with pytest.raises(DataError, match="the same item and label again in row 2"):
        Labels.from_votes(again)
    with pytest.raises(DataError, match="'yes' is below 0 in row 1"):
        Labels.from_votes({"item": [1], "label": ["a"], "yes": [-1], "no": [0]})
    with pytest.raises(PlanError, match="threshold"):
        Labels.from_votes({"item": [1], "label": ["a"], "yes": [1], "no": [0]}, threshold=0.5)
    kept = Labels.from_votes(
        {"item": [1, 2], "label": ["a", "b"], "yes": [1, 1], "no": [0, 0]}, refused=("b",)
    )
    assert kept.names == ("a",) and kept.exclusions[0].count == 1


def test_refused_labels_are_dropped_by_every_reader() -> None:
    from ombud.taxonomy import load_taxonomy

    label = sorted(load_taxonomy("warnings-ddd@1").refused_spellings)[0]
    rows = {"item": [1, 2], "label": [label, "w"]}
    for labels in (
        Labels.from_applied(rows),
        Labels.from_votes(rows | {"yes": [1, 1], "no": [0, 0]}),
        Labels.from_states(rows | {"state": [1, 1]}),
    ):
        assert labels.names == ("w",)
        (left_out,) = labels.exclusions
        assert left_out.count == 1 and label not in str(left_out)


def test_labels_round_trip_and_probability() -> None:
    votes = {"item": [1, 2, 2], "label": ["a", "a", "b"], "yes": [3, 0, 1], "no": [0, 9, 1]}
    labels = Labels.from_votes(votes)
    again = Labels.from_states(labels.to_frame())
    assert np.array_equal(again.states, labels.states)
    assert labels.probability((1, 1))[0, 0] == pytest.approx(4 / 5)
    assert np.isnan(Labels.from_applied({"item": [1, 2], "label": ["a", "b"]}).probability()[0, 1])
    counts = labels.counts().row(0, named=True)
    assert counts == {"label": "a", "yes": 1, "no": 1, "disputed": 0, "unknown": 0}
    wider = labels.aligned(Vocabulary([2, 9]))
    assert wider.tolist() == [labels.states[1].tolist(), [UNKNOWN, UNKNOWN]]


def test_lists_by_hand() -> None:
    frame = {"user": ["u", "u", "v"], "item": [7, 8, 7], "rank": [2, 1, 1], "score": [0.1, 0.9, 1]}
    lists = Recommendations.from_frame(frame)
    assert lists.to_frame().rows() == [
        ("u", 8, 1, pytest.approx(0.9)),
        ("u", 7, 2, pytest.approx(0.1)),
        ("v", 7, 1, pytest.approx(1.0)),
    ]
    assert lists.lengths.tolist() == [2, 1]
    asked = lists.for_users(["v", "nobody"])
    assert asked.lengths.tolist() == [1, 0]
    assert lists.in_catalogue(Vocabulary([8])).tolist() == [[0, -2], [-2, -1]]
    assert lists.top(1).items.shape == (2, 1)


def test_lists_without_rank_follow_the_score() -> None:
    lists = Recommendations.from_frame({"user": [1, 1], "item": [5, 6], "score": [0.1, 0.2]})
    assert lists.to_frame()["item"].to_list() == [6, 5]


def test_whole_ranks_may_be_written_as_floats() -> None:
    lists = {"user": [1, 1, 1], "item": [5, 6, 7], "rank": [2.0, 1.0, 3.0]}
    assert Recommendations.from_frame(pl.DataFrame(lists)).to_frame()["item"].to_list() == [6, 5, 7]


def test_copied_rows_do_not_turn_lists_of_distances_around() -> None:
    lists = {"user": [1, 1, 1], "item": [5, 6, 6], "score": [0.1, 0.9, 0.9]}
    lowest = MappedFile(pl.DataFrame(lists), reading=Reading(best="lowest"))
    found = Recommendations.from_frame(lowest)
    assert found.catalogue.take(found.items[0]).tolist() == [5, 6]
    assert [one.count for one in found.exclusions] == [1]


def test_lists_refuse_repeats() -> None:
    frame = {"user": [1, 1, 1], "item": [5, 5, 6], "rank": [1, 2, 2]}
    with pytest.raises(DataError) as caught:
        Recommendations.from_frame(frame)
    assert len(caught.value.faults) == 2
    assert "an item again in row 2" in str(caught.value)
    assert "a rank again in row 3" in str(caught.value)


def test_empty_lists_survive_storage() -> None:
    lists = Recommendations.from_frame({"user": [1, 1], "item": ["a", "b"], "score": [2.0, 1.0]})
    asked = lists.for_users([2, 1, 3])
    again = Recommendations.from_lists(asked.to_lists())
    assert again.users.tolist() == [2, 1, 3]
    assert again.lengths.tolist() == [0, 2, 0]
    assert again.to_frame().equals(asked.to_frame())
    both = Recommendations.concat([asked, lists.for_users([4])])
    assert both.users.tolist() == [2, 1, 3, 4]


def test_texts_and_their_faults() -> None:
    texts = Texts.from_frame(
        pl.DataFrame({"text": ["a", "b"], "label": [True, None], "cluster": ["x", "x"]})
    )
    assert texts.truth.tolist() == [1, -1]
    assert texts.clusters is not None and texts.clusters.tolist() == [0, 0]
    again = Texts.from_frame(texts.to_frame())
    assert again.truth.tolist() == [1, -1]
    with pytest.raises(DataError, match="repeats an id with other values in row 2"):
        Texts.from_frame({"text": ["a", "b"], "id": [1, 1]})
    copied = Texts.from_frame({"text": ["a", "b", "a"], "id": [1, 2, 1]})
    assert copied.ids.tolist() == [1, 2]
    assert [(one.count, one.of) for one in copied.exclusions] == [(1, 3)]


def test_decisions_three_ways() -> None:
    words = Decisions.from_frame({"id": [1, 2], "outcome": ["Flagged", "refused"]})
    assert words.outcomes.tolist() == [Outcome.FLAGGED, Outcome.REFUSED]
    assert words.decided.tolist() == [True, False]
    flags = Decisions.from_frame(pl.DataFrame({"id": [1, 2], "flagged": [False, None]}))
    assert flags.outcomes.tolist() == [Outcome.ALLOWED, Outcome.ERROR]
    scores = pl.DataFrame({"id": [1, 2, 3], "score": [0.4, 0.5, None]})
    bare = Decisions.from_frame(scores)
    assert bare.outcomes.tolist() == [Outcome.SCORED, Outcome.SCORED, Outcome.ERROR]
    assert bare.lacks_decisions and bare.answered.tolist() == [True, True, False]
    back = Decisions.from_frame(bare.to_frame())
    assert back.outcomes.tolist() == bare.outcomes.tolist() and not back.decided.any()
    for rows, fault in (
        (["scored", "flagged"], "split them into two systems"),
        (["error", "scored"], "without a score in row 2"),
    ):
        with pytest.raises(DataError, match=fault):
            Decisions.from_frame({"id": [1, 2], "outcome": rows, "score": [0.5, None]})
    cut = Decisions.from_frame(scores, threshold=0.5)
    assert cut.outcomes.tolist() == [Outcome.ALLOWED, Outcome.FLAGGED, Outcome.ERROR]
    with pytest.raises(DataError, match="none of allowed, flagged"):
        Decisions.from_frame({"id": [1], "outcome": ["maybe"]})
    with pytest.raises(DataError, match="decided again in row 2"):
        Decisions.from_frame({"id": [1, 1], "flagged": [True, False]})
    copied = Decisions.from_frame({"id": [1, 1], "flagged": [True, True]})
    assert len(copied) == 1 and copied.exclusions[0].count == 1


def test_decisions_keep_categories() -> None:
    frame = {"id": [1, 2], "flagged": [True, False], "categories": ['{"hate": 0.5}', "{}"]}
    found = Decisions.from_frame(frame)
    assert found.categories == ("hate",)
    again = Decisions.from_frame(found.to_frame())
    assert again.category_scores is not None
    assert np.array_equal(again.category_scores, found.category_scores, equal_nan=True)
    with pytest.raises(DataError, match="JSON objects"):
        Decisions.from_frame({"id": [1], "flagged": [True], "categories": ["[1]"]})


def test_groups_unknowns_and_intersections() -> None:
    frame = pl.DataFrame(
        {"user": [1, 2, 3, 4], "age": ["x", "y", None, "x"], "new": [True, True, False, None]}
    )
    groups = Grouping.from_frame(frame, by=["age", "new"])
    assert groups.names == ("age=x", "age=y", "new=false", "new=true")
    assert groups.members.sum(axis=0).tolist() == [2, 1, 1, 2]
    both = groups.with_intersections()
    assert "age=x & new=true" in both.names and "age=y & new=false" not in both.names
    assert groups.aligned([9, 1]).tolist() == [[False] * 4, [True, False, False, True]]
    again = Grouping.from_members(both.to_members())
    assert set(again.names) == set(both.names)
    for name in both.names:
        here = both.members[:, both.names.index(name)].sum()
        assert again.members[:, again.names.index(name)].sum() == here


def test_more_groups_than_sense() -> None:
    frame = {"user": list(range(10)), "name": [f"n{i}" for i in range(10)]}
    with pytest.raises(DataError, match="choose a coarser attribute"):
        Grouping.from_frame(frame, by=["name"])
    with pytest.raises(DataError, match="'height': holds Float64"):
        Grouping.from_frame({"user": [1, 2], "height": [1.7, 1.8]}, by=["height"])


def test_ids_of_two_kinds_in_two_tables() -> None:
    histories = Interactions.from_arrays([1], [1])
    data = Dataset(histories, Labels.from_applied({"item": ["1"], "label": ["a"]}))
    assert data.exclusions == ()
    assert data.labels is not None
    assert data.labels.aligned(histories.items).tolist() == [[LabelState.YES]]
    padded = Dataset(histories, Labels.from_applied({"item": ["01"], "label": ["a"]}))
    with pytest.raises(DataError, match="'01' of one table may be '1' of another"):
        _ = padded.exclusions


def test_what_does_not_fit_together_is_counted() -> None:
    data = Dataset(
        Interactions.from_arrays([1, 2], [1, 1]),
        Labels.from_applied({"item": [1, 2, 3], "label": ["a", "a", "a"]}),
        users=Grouping.from_values([1, 2, 9], {"age": ["x", "y", "x"]}),
    )
    counts = [(e.where, e.count) for e in data.exclusions]
    assert counts == [("labels", 2), ("groups", 1)]
    few = Dataset(data.interactions, users=Grouping.from_values([1], {"age": ["x"]}))
    (ungrouped,) = few.exclusions
    assert (ungrouped.count, ungrouped.of) == (1, 2) and "overall numbers only" in ungrouped.reason
