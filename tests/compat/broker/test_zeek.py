"""Zeek's events, as the wire has them, and messages that are not events."""

from __future__ import annotations

import datetime

import pytest

from compat.broker import Count, Data, ImmutableData, Timestamp, zeek
from dafka.overlay.wire import zeek as wire

THEN = datetime.datetime(2023, 5, 3, 9, 27, 57, tzinfo=datetime.timezone.utc)


def test_an_event_is_its_name_and_its_arguments():
    event = zeek.Event("ping", 42, ["a"], {"k": 1.5})
    assert event.valid()
    assert event.name() == "ping"
    assert event.args() == [42, ("a",), {"k": 1.5}]
    assert event.metadata() is None
    assert str(event.as_data()) == "(1, 1, (ping, (42, (a), {k -> 1.500000})))"


def test_an_event_is_the_message_that_zeek_knows():
    event = zeek.Event("ping", 42, metadata={1: THEN})
    time = wire.Timestamp(int(THEN.timestamp()) * 10**9)
    assert wire.from_value(Data(event)._value) == wire.Event("ping", (42,), ((wire.NETWORK_TIME, time),))


def test_an_event_that_was_received():
    message = Data.to_py(Data(zeek.Event("ping", 42, metadata={1: THEN, 200: "mine"})))
    event = zeek.Event(message)
    assert (event.name(), event.args()) == ("ping", [42])
    assert event.metadata() == [(Count(1), THEN), (Count(200), "mine")]


def test_metadata_may_be_pairs_and_stay_as_they_were():
    given = [(zeek.MetadataType.NetworkTimestamp, THEN), (250, None)]
    assert zeek.Event("e", metadata=given).metadata() == [(Count(1), THEN), (Count(250), None)]
    assert given == [(zeek.MetadataType.NetworkTimestamp, THEN), (250, None)]
    assert zeek.Event("e", metadata=[]).metadata() is None


@pytest.mark.parametrize(
    "event",
    [
        zeek.Event("e", metadata={1: "no time"}),
        zeek.Event("e", metadata={1: 1.5}),
        zeek.Event(None),
        zeek.Event(5),
        zeek.Event(()),
        zeek.Event([1, 1, ["e", []]]),
        zeek.Event([Count(2), Count(1), ["e", []]]),
        zeek.Event([Count(1), Count(2), ["e", []]]),
        zeek.Event([Count(1), Count(1), "e"]),
        zeek.Event([Count(1), Count(1), ["e"]]),
        zeek.Event([Count(1), Count(1), [1, []]]),
        zeek.Event([Count(1), Count(1), ["e", 5]]),
        zeek.Event([Count(1), Count(1), ["e", [], None]]),
        zeek.Event([Count(1), Count(1), ["e", [], [5]]]),
        zeek.Event([Count(1), Count(1), ["e", [], [[1, 2]]]]),
        zeek.Event([Count(1), Count(1), ["e", [], [[Count(5)]]]]),
    ],
)
def test_a_message_that_is_not_an_event_says_so(event: zeek.Event):
    assert not event.valid()
    for accessor in (event.name, event.args, event.metadata):
        with pytest.raises(ValueError, match="invalid Event data"):
            accessor()


def test_elements_beyond_what_is_known_are_left_out():
    event = zeek.Event([Count(1), Count(1), ["e", [1], [[Count(1), Timestamp(1.0)]], "more"], "more"])
    assert event.valid()
    assert event.args() == [1]


@pytest.mark.parametrize("arguments", [(), (5, 6), (None, 5)])
def test_an_event_without_a_name_is_refused(arguments: tuple):
    with pytest.raises(TypeError, match="an Event is made of its name"):
        zeek.Event(*arguments)


def test_safe_events_express_sets_of_tables():
    message = ImmutableData.to_py(Data([Count(1), Count(1), ["e", [[frozenset()]]]]))
    assert zeek.SafeEvent(message).args() == [(frozenset(),)]
    hello = zeek.SafeEvent("e", ImmutableData.to_py(Data([{"a": 1}])), {("x",)})
    assert hello.args() == [({"a": 1},), {("x",)}]
    tables = frozenset({ImmutableData.to_py(Data({"a": 1}))})
    assert zeek.SafeEvent("e", tables).args() == [tables]
    with pytest.raises(TypeError, match="unhashable"):
        zeek.Event("e", tables).args()


def test_events_are_data():
    event = zeek.Event("ping", 1)
    assert Data.to_py(Data(event)) == (Count(1), Count(1), ("ping", (1,)))
    assert Data([event]).as_vector()[0] == Data(event)
