"""A partition as a store has it: the appends under way, and what becomes of those behind a failed one."""

from __future__ import annotations

import gc
from collections import deque

from dafka.roles.follower import NOBODY
from dafka.roles.limits import Limits
from dafka.roles.outputs import Append, Begin
from dafka.roles.stored import Pending, StoredPartition, append, begin

TOPIC, PARTITION = b"hello", b"A" * 32


def partition(first: int = 0, following: int = 0) -> StoredPartition:
    return StoredPartition(TOPIC, PARTITION, first, following, Limits())


def appending(*pieces: tuple[int, int]) -> StoredPartition:
    """With appends under way, from first to end."""
    one = partition()
    for first, end in pieces:
        append(one, first, [b"x"] * (end - first), end - first)
    return one


def test_records_handed_to_the_log_are_pending():
    one = partition()
    assert append(one, 0, [b"a", b"bc"], 3) == Append(TOPIC, PARTITION, 0, [b"a", b"bc"])
    assert list(one.pending) == [Pending(2, 2, 3)]


def test_a_commit_ends_all_appends_up_to_its_end():
    one = appending((0, 2), (2, 3), (3, 7))
    assert one.take_pending(3) == [Pending(2, 2, 2), Pending(3, 1, 1)]
    assert one.take_pending(3) == []
    assert list(one.pending) == [Pending(7, 4, 4)]


def test_one_with_nothing_under_way_is_a_single_object_for_the_collector():
    """A store may have a hundred thousand of them."""
    one = appending((0, 2))
    assert held(one)
    one.take_pending(2)
    assert held(one) == []
    append(one, 2, [b"x"], 1)
    one.take_failed(3)
    assert held(one) == []


def held(one: StoredPartition) -> list[object]:
    """The objects of its own that the garbage collector goes through."""
    return [each for each in gc.get_referents(one) if type(each) in (deque, frozenset) and each is not NOBODY]


def test_appends_behind_one_that_has_failed_will_fail():
    one = appending((0, 2), (2, 3), (3, 7))
    assert one.take_failed(3) == Pending(3, 1, 1)
    assert list(one.pending) == [Pending(2, 2, 2), Pending(7, 4, 4, fails=True)]


def test_records_handed_over_later_do_not_fail_with_earlier_ones():
    one = appending((0, 2), (2, 3))
    one.take_failed(2)
    append(one, 0, [b"x"] * 3, 3)
    assert one.take_failed(3) == Pending(3, 1, 1, fails=True)
    assert list(one.pending) == [Pending(3, 3, 3)]


def test_an_append_that_is_over_already_has_no_effect():
    one = appending((0, 2))
    assert one.take_failed(5) is None
    assert len(one.pending) == 1


def test_a_skipped_gap_counts_as_committed():
    one = partition(0, 3)
    assert begin(one, 3, 8) == Begin(TOPIC, PARTITION, 8)
    assert (one.first, one.committed, one.log_end) == (0, 8, 3)


def test_a_partition_that_has_nothing_begins_where_it_goes_on():
    one = partition()
    begin(one, 0, 8)
    assert (one.first, one.committed, one.log_end) == (8, 8, 0)


def test_it_lacks_what_others_say_is_trimmed_and_has_not_come():
    one = partition(0, 3)
    one.end, one.trimmed = 10, 7
    assert [sequence for sequence in range(12) if one.lacks(sequence)] == [3, 4, 5, 6]
    one.ahead = deque([[b"x"]])
    one.ahead_first, one.ahead_next = 5, 6
    assert [sequence for sequence in range(12) if one.lacks(sequence)] == [3, 4]


def test_one_that_is_in_the_log_is_known():
    assert partition().untried
    assert not partition(0, 3).untried
