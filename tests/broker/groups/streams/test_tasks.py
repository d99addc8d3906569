"""Tasks by role."""

from __future__ import annotations

from dafka.broker.groups.streams.tasks import (
    NOTHING,
    Roles,
    each,
    frozen,
    joined,
    make_up,
    minus,
    overlap,
    size,
    split,
)

HAD = Roles({"a": frozenset({0, 1})}, {"b": frozenset({2})})


def test_tasks_that_stay_keep_their_role():
    target = Roles({"a": frozenset({1}), "b": frozenset({2})})
    kept, given_up = split(HAD, target)
    assert kept == Roles({"a": frozenset({1})})
    assert given_up == Roles({"a": frozenset({0})}, {"b": frozenset({2})})
    assert joined(kept, given_up) == HAD and minus(HAD, HAD) == NOTHING


def test_shares_that_make_up_all_tasks_have_each_of_them_and_no_other():
    shares = [{"a": frozenset({0})}, {"a": frozenset({1}), "b": frozenset({0})}]
    assert make_up(shares, {"a": 2, "b": 1, "none": 0})
    for counts in ({"a": 2}, {"a": 3, "b": 1}, {"a": 1, "b": 1}, {"a": 2, "b": 1, "c": 1}, {}):
        assert not make_up(shares, counts)
    assert make_up([], {}) and make_up([{}], {"none": 0})


def test_tasks_overlap_only_in_the_same_role():
    assert overlap(HAD, Roles({"a": frozenset({1})}))
    assert not overlap(HAD, Roles({"b": frozenset({2})}, {"a": frozenset({1})}))


def test_tasks_are_counted_and_listed_and_subtopologies_without_any_left_out():
    assert size(HAD) == 3 and sorted(each(HAD.active)) == [("a", 0), ("a", 1)]
    assert frozen({"a": [1, 1], "b": []}) == {"a": {1}}
