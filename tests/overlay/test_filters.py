"""Filters let pass what their prefixes let pass, with as few of them as possible."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dafka.overlay.filters import announced, matches, reduced
from dafka.overlay.wire.envelope import LOCAL

PREFIXES = st.lists(st.text("/ab", max_size=4).map(str.encode))


def test_the_guides_example():
    assert reduced([b"/zeek/event/foo", b"/zeek/event/bar", b"/zeek/event"]) == (b"/zeek/event",)


@given(PREFIXES, st.text("/ab", max_size=6).map(str.encode))
def test_a_reduced_filter_lets_the_same_topics_pass(prefixes, topic):
    assert matches(reduced(prefixes), topic) == any(topic.startswith(prefix) for prefix in prefixes)


@given(PREFIXES)
def test_no_prefix_of_a_reduced_filter_covers_another(prefixes):
    filter = reduced(prefixes)
    assert filter == tuple(sorted(set(filter)))
    assert not any(a != b and a.startswith(b) for a in filter for b in filter)


def test_topics_of_local_events_are_not_announced():
    assert announced([LOCAL + b"data/statuses", b"/a", b"/a/b"], LOCAL) == (b"/a",)
    assert not matches((), b"anything")
