"""What the garbage collector of a daemon goes through, and what becomes of garbage that it has left out."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator

import pytest

from dafka.cli.collecting import COUNT_SECONDS, EVERYTHING_SECONDS, FEW, passing_over_what_lasts


class Ring:
    """Refers to itself."""

    def __init__(self) -> None:
        self.next = self


@pytest.fixture
def now() -> Iterator[list[float]]:
    """The time of a collector that is in use."""
    seconds = [50.0]
    gc.collect()  # or what others have left would go in the midst of a test
    with passing_over_what_lasts(lambda: seconds[0]):
        yield seconds
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # as it is for all tests


def test_objects_that_outlived_a_full_collection_are_passed_over(now):
    lasting = Ring()
    gc.collect()
    assert not any(one is lasting for one in gc.get_objects())


def test_garbage_of_before_a_full_collection_goes_with_it(now):
    gone = weakref.ref(Ring())
    gc.collect()
    assert gone() is None


def test_smaller_collections_change_nothing(now):
    young = Ring()
    gc.collect(1)
    assert any(one is young for one in gc.get_objects())


def test_garbage_that_was_passed_over_goes_with_the_next_collection_of_everything(now):
    ring = Ring()
    gone = weakref.ref(ring)
    gc.collect()
    del ring
    for _ in range(2):
        gc.collect()
        assert gone() is not None
        now[0] += EVERYTHING_SECONDS / 2
    gc.collect()
    assert gone() is None
    lasting = Ring()
    gc.collect()
    assert not any(one is lasting for one in gc.get_objects())


def test_twice_as_much_in_memory_is_reason_for_a_collection_of_everything(now):
    ring = Ring()
    gone = weakref.ref(ring)
    gc.collect()
    del ring
    # And a tenth more: other threads let go of what earlier tests have left.
    many = [[] for _ in range(sys.getallocatedblocks() * 11 // 10 + FEW)]
    gc.collect()
    assert gone() is not None
    now[0] += COUNT_SECONDS
    gc.collect()  # they are set aside since the last one
    assert gone() is None
    ring = Ring()
    gone = weakref.ref(ring)
    gc.collect()
    del ring
    now[0] += COUNT_SECONDS
    gc.collect()  # no more than there were
    assert gone() is not None
    assert many


def test_afterwards_collections_are_what_they_were():
    before = list(gc.callbacks)
    with passing_over_what_lasts():
        assert gc.callbacks != before
    assert gc.callbacks == before
