"""Segments: the positions that OFFSET lists, and where a FETCH ends."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from dafka.zper.segments import LISTED, Segments


class Messages:
    """Messages of these sizes, of which the first ``dropped`` are gone."""

    def __init__(self, sizes, dropped=0):
        self.starts = [0, *accumulate(sizes)]
        self.dropped = dropped
        self.lookups = 0

    def append(self, size):
        self.starts.append(self.starts[-1] + size)

    @property
    def first(self):
        return self.starts[self.dropped]

    @property
    def end(self):
        return self.starts[-1]

    def bounds(self, position):
        assert self.first <= position < self.end
        self.lookups += 1
        place = bisect_right(self.starts, position)
        return self.starts[place - 1], self.starts[place]


def test_without_messages_there_is_one_empty_segment():
    segments = Segments(Messages([]), 100)
    assert segments.earliest() == [0]
    assert segments.latest() == [0, 0]
    assert segments.before(None, None) == [0, 0]


def test_a_segment_begins_with_the_first_message_at_or_behind_a_multiple_of_its_size():
    # Messages at 0, 40, 80 | 120, 160 | 200, 240, 280 | 320, 360.
    segments = Segments(Messages([40] * 10), 100)
    assert segments.before(None, None) == [0, 120, 200, 320, 400]
    assert segments.latest() == [320, 400]
    assert [segments.stop(position) for position in (0, 119, 120, 199, 200, 319, 320, 399)] == [
        *(120, 120, 200, 200, 320, 320, 400, 400)
    ]


def test_a_message_longer_than_segments_makes_those_in_it_vanish():
    segments = Segments(Messages([10, 10_000_000, 10, 10]), 100)
    assert segments.before(None, None) == [0, 10_000_010, 10_000_030]
    assert segments.stop(5_000_000) == 10_000_010
    assert segments.latest() == [10_000_010, 10_000_030]


def test_the_end_comes_only_with_the_last_segment():
    segments = Segments(Messages([40] * 10), 100)
    assert segments.before(319, None) == [0, 120]
    assert segments.before(320, None) == [0, 120, 200]
    assert segments.before(399, None) == [0, 120, 200]
    assert segments.before(400, None) == [0, 120, 200, 320, 400]
    assert segments.before(0, None) == []


def test_entries_are_the_newest_starts():
    segments = Segments(Messages([40] * 10), 100)
    assert segments.before(None, 2) == [200, 320, 400]
    assert segments.before(320, 2) == [120, 200]


def test_no_more_than_a_thousand_are_listed():
    segments = Segments(Messages([1] * 5000), 1)
    assert segments.before(None, None) == [*range(5000 - LISTED, 5001)]


def test_dropped_messages_shorten_the_first_segment_and_move_no_other():
    messages = Messages([40] * 10)
    segments = Segments(messages, 100)
    assert segments.earliest() == [0]
    messages.dropped = 2
    assert segments.earliest() == [80]
    for one in (segments, Segments(messages, 100)):
        assert one.before(None, None) == [80, 120, 200, 320, 400]
    messages.dropped = 10
    assert segments.before(None, None) == [400, 400]


def test_reading_on_in_a_segment_looks_nothing_up():
    messages = Messages([40] * 1000)
    segments = Segments(messages, 20_000)
    segments.stop(0)
    looked_up = messages.lookups
    for position in range(0, 20_000, 400):
        assert segments.stop(position) == 20_000
    assert messages.lookups == looked_up


sizes = st.lists(st.integers(1, 60), max_size=30)


@given(sizes, sizes, st.integers(1, 100), st.integers(0, 40), st.data())
def test_segments_are_those_of_the_plain_rule_and_never_change(before, after, size, dropped, data):
    messages = Messages(before)
    segments = Segments(messages, size)

    def check():
        starts = messages.starts[messages.dropped : -1]
        by_number = {}
        for start in starts:
            by_number.setdefault(start // size, start)
        firsts = list(by_number.values())
        assert segments.before(None, None) == [*(firsts or [messages.end]), messages.end]
        if starts:
            position = data.draw(st.integers(messages.first, messages.end - 1))
            behind = [first for first in firsts if first > position]
            assert segments.stop(position) == (behind[0] if behind else messages.end)
            limit = data.draw(st.integers(0, messages.end + 5))
            stops = [*firsts[1:], messages.end]
            whole = [first for first, stop in zip(firsts, stops, strict=False) if stop <= limit]
            assert segments.before(limit, None) == whole + ([messages.end] if limit >= messages.end else [])

    check()
    for each in after:
        messages.append(each)
        check()
    messages.dropped = min(dropped, len(messages.starts) - 1)
    check()
