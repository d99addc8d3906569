"""Broker's developer guide, "Channels": "Producer"."""

from __future__ import annotations

import pytest

from dafka.overlay.channels.consumer import Consumer
from dafka.overlay.channels.messages import (
    CumulativeAck,
    Event,
    Handshake,
    Heartbeat,
    Nack,
    RetransmitFailed,
)
from dafka.overlay.channels.producer import Attached, Broadcast, Dropped, Producer, Unicast
from dafka.overlay.limits import HEARTBEAT_TICKS, MOST_RESENT, SILENT_TICKS
from dafka.overlay.wire.codes import ErrorCode


def attached(*consumers: str) -> Producer[str]:
    producer: Producer[str] = Producer()
    for one in consumers:
        producer.add(one)
        assert producer.receive(one, CumulativeAck(producer.sequence)) == [Attached(one)]
    return producer


def ticks(one: Producer | Consumer, count: int) -> list:
    return [output for _ in range(count) for output in one.tick()]


def test_the_first_event_has_number_2():
    assert attached("a").produce("x") == [Broadcast(Event(2, "x"))]


def test_before_the_first_consumer_nothing_is_counted():
    producer = Producer()
    assert producer.produce("x") == [] and producer.sequence == 1 and producer.is_idle


def test_events_while_a_consumer_is_dropped_are_counted_so_that_it_notices():
    producer = attached("a")
    producer.produce("x")
    producer.drop_slowest()
    assert producer.produce("y") == [] and producer.is_idle
    assert producer.add("a") == [Unicast("a", Handshake(3, HEARTBEAT_TICKS))]
    assert producer.receive("a", Nack((3,))) == [Unicast("a", RetransmitFailed(3))]


def test_a_consumer_hears_where_it_begins():
    producer = attached("a")
    producer.produce("x")
    assert producer.add("b") == [Unicast("b", Handshake(2, HEARTBEAT_TICKS))]
    producer.produce("y")
    assert producer.receive("b", Nack((0,))) == [Unicast("b", Handshake(2, HEARTBEAT_TICKS))]


def test_events_are_kept_until_everybody_has_them():
    producer = attached("a", "b")
    for content in "xyz":
        producer.produce(content)
    producer.receive("a", CumulativeAck(4))
    assert producer.kept == 3 and not producer.is_idle
    producer.receive("b", CumulativeAck(3))
    assert producer.kept == 1
    producer.remove("b")
    assert producer.kept == 0 and producer.is_idle


def test_missing_events_are_sent_again_to_the_consumer_that_lacks_them():
    producer = attached("a", "b")
    for content in "xyz":
        producer.produce(content)
    assert producer.receive("a", Nack((2, 4))) == [Unicast("a", Event(2, "x")), Unicast("a", Event(4, "z"))]


def test_a_nack_acknowledges_what_is_before_it():
    producer = attached("a")
    for content in "xyz":
        producer.produce(content)
    producer.receive("a", Nack((4,)))
    assert producer.kept == 1
    assert producer.receive("a", Nack((2,))) == [Unicast("a", RetransmitFailed(2))]
    assert producer.receive("a", Nack((99,))) == [Unicast("a", RetransmitFailed(99))]


@pytest.mark.parametrize("wanted", [(9, 8), (3, 3), ()])
def test_a_consumer_that_asks_in_disorder_is_dropped(wanted):
    producer = attached("a")
    assert producer.receive("a", Nack(wanted)) == [Dropped("a", ErrorCode.INVALID_MESSAGE, [])]
    assert producer.consumers == []


@pytest.mark.parametrize("sequence", [0, 5, 2**63])
def test_numbers_that_were_never_sent_are_not_acknowledged(sequence):
    producer = attached("a")
    producer.produce("x")
    assert producer.receive("a", CumulativeAck(sequence)) == []
    assert producer.kept == 1


def test_heartbeats_come_when_there_are_no_events():
    producer = attached("a")
    producer.produce("x")
    assert ticks(producer, HEARTBEAT_TICKS - 1) == []
    producer.produce("y")
    assert ticks(producer, HEARTBEAT_TICKS) == [Broadcast(Heartbeat(3))]
    assert ticks(producer, 2 * HEARTBEAT_TICKS) == [Broadcast(Heartbeat(3))] * 2


def test_a_handshake_is_repeated_until_it_is_acknowledged():
    producer: Producer[str] = Producer()
    producer.add("a")
    assert Unicast("a", Handshake(1, HEARTBEAT_TICKS)) in ticks(producer, HEARTBEAT_TICKS)
    producer.receive("a", CumulativeAck(1))
    assert ticks(producer, HEARTBEAT_TICKS) == [Broadcast(Heartbeat(1))]


def test_a_silent_consumer_is_dropped_with_the_reason_and_holds_nobody_back():
    producer = attached("a", "b")
    producer.produce("x")
    producer.receive("a", CumulativeAck(2))
    outputs = []
    for _ in range(SILENT_TICKS):
        producer.receive("a", CumulativeAck(2))
        outputs += producer.tick()
    assert Dropped("b", ErrorCode.CONNECTION_TIMEOUT, ["x"]) in outputs
    assert producer.consumers == ["a"] and producer.kept == 0


def test_a_consumer_that_was_dropped_hears_that_it_has_lost_something():
    producer = attached("a", "b")
    producer.produce("x")
    ticks(producer, SILENT_TICKS)
    assert producer.receive("a", CumulativeAck(1)) == [Unicast("a", RetransmitFailed(2))]
    assert producer.receive("b", Nack((2, 3))) == [
        Unicast("b", RetransmitFailed(2)),
        Unicast("b", RetransmitFailed(3)),
    ]
    assert producer.receive("a", Nack((0,))) == [Unicast("a", Handshake(2, HEARTBEAT_TICKS))]


def test_kept_events_are_bounded(monkeypatch):
    monkeypatch.setattr("dafka.overlay.channels.producer.MOST_KEPT", 3)
    monkeypatch.setattr("dafka.overlay.channels.producer.MOST_CONSUMERS", 2)
    producer = attached("a", "b")
    for content in "xyz":
        assert not producer.is_full
        producer.produce(content)
    assert producer.is_full
    producer.receive("a", CumulativeAck(4))
    producer.receive("b", CumulativeAck(2))
    assert not producer.is_full
    assert producer.add("c") == [Dropped("c", ErrorCode.UNSPECIFIED, [])]


def test_kept_events_are_bounded_in_octets_and_the_event_that_goes_beyond_is_kept(monkeypatch):
    monkeypatch.setattr("dafka.overlay.channels.producer.KEPT_OCTETS", 10)
    producer = attached("a")
    producer.produce("x", 9)
    assert not producer.is_full
    producer.produce("y", 50)
    assert producer.is_full
    producer.receive("a", CumulativeAck(2))
    assert producer.is_full
    producer.receive("a", CumulativeAck(3))
    assert not producer.is_full


def test_a_consumer_that_asks_for_very_much_is_answered_in_part():
    producer = attached("a")
    for content in range(MOST_RESENT + 10):
        producer.produce(content)
    assert len(producer.receive("a", Nack(tuple(range(2, 100_000))))) == MOST_RESENT
    assert len(producer.receive("stranger", Nack(tuple(range(2, 100_000))))) == MOST_RESENT
