"""Broker's developer guide, "Channels": "Consumer"."""

from __future__ import annotations

from dafka.overlay.channels.consumer import Closed, Consume, Consumer, Lost, Reply
from dafka.overlay.channels.messages import (
    CumulativeAck,
    Event,
    Handshake,
    Heartbeat,
    Nack,
    RetransmitFailed,
)
from dafka.overlay.channels.producer import Producer
from dafka.overlay.limits import HEARTBEAT_TICKS, MOST_AHEAD, MOST_NACKED, NACK_TICKS, SILENT_TICKS
from dafka.overlay.wire.codes import ErrorCode


def ticks(one: Producer | Consumer, count: int) -> list:
    return [output for _ in range(count) for output in one.tick()]


def begun(offset: int = 1) -> Consumer:
    consumer = Consumer()
    assert consumer.receive(Handshake(offset, HEARTBEAT_TICKS))[-1] == Reply(CumulativeAck(offset))
    return consumer


def test_a_consumer_asks_for_the_handshake_until_it_comes():
    consumer = Consumer()
    assert ticks(consumer, 1) == [Reply(Nack((0,)))]
    assert ticks(consumer, 2 * NACK_TICKS) == [Reply(Nack((0,)))] * 2
    assert not consumer.is_attached
    consumer.receive(Handshake(1, HEARTBEAT_TICKS))
    assert consumer.is_attached and consumer.is_idle
    assert ticks(Consumer(asks_for_handshake=False), 10) == []


def test_events_that_come_before_the_handshake_are_kept():
    consumer = Consumer()
    for sequence in (4, 5, 7):
        assert consumer.receive(Event(sequence, sequence)) == []
    assert consumer.receive(Handshake(4, 5)) == [Consume(5), Reply(CumulativeAck(5))]
    assert consumer.receive(Event(6, 6)) == [Consume(6), Consume(7)]


def test_events_are_consumed_in_order_and_once():
    consumer = begun()
    assert consumer.receive(Event(3, "y")) == []
    assert consumer.receive(Event(3, "y")) == []
    assert consumer.receive(Event(2, "x")) == [Consume("x"), Consume("y")]
    assert consumer.receive(Event(2, "x")) == consumer.receive(Event(3, "y")) == []


def test_missing_events_are_asked_for_until_they_come():
    consumer = begun()
    consumer.receive(Event(3, "y"))
    consumer.receive(Event(6, "z"))
    assert Reply(Nack((2, 4, 5))) in ticks(consumer, NACK_TICKS)
    assert Reply(Nack((2, 4, 5))) in ticks(consumer, NACK_TICKS)
    assert consumer.receive(Event(2, "x")) == [Consume("x"), Consume("y")]
    assert Reply(Nack((4, 5))) in ticks(consumer, NACK_TICKS)


def test_a_heartbeat_tells_of_a_last_event_that_is_lost():
    consumer = begun()
    consumer.receive(Heartbeat(2))
    assert not consumer.is_idle
    assert Reply(Nack((2,))) in ticks(consumer, NACK_TICKS)


def test_an_event_that_cannot_be_had_any_more_is_reported_in_its_place():
    consumer = begun()
    consumer.receive(Event(4, "z"))
    assert consumer.receive(RetransmitFailed(3)) == []
    assert consumer.receive(Event(2, "x")) == [Consume("x"), Lost(3), Consume("z")]
    assert consumer.receive(RetransmitFailed(2)) == []


def test_acknowledgements_come_regularly_also_when_there_is_nothing_new():
    consumer = begun()
    assert ticks(consumer, 3 * HEARTBEAT_TICKS) == [Reply(CumulativeAck(1))] * 3
    consumer.receive(Event(2, "x"))
    assert Reply(CumulativeAck(2)) in ticks(consumer, HEARTBEAT_TICKS)


def test_a_repeated_handshake_is_acknowledged_again_and_changes_nothing():
    consumer = begun()
    consumer.receive(Event(2, "x"))
    assert consumer.receive(Handshake(1, 5)) == [Reply(CumulativeAck(2))]


def test_a_producer_that_is_gone_is_noticed():
    consumer = begun()
    outputs = ticks(consumer, SILENT_TICKS)
    assert outputs[-1] == Closed(ErrorCode.CONNECTION_TIMEOUT)
    assert consumer.receive(Event(2, "x")) == consumer.tick() == []


def test_events_ahead_of_a_gap_are_bounded():
    consumer = begun()
    for sequence in range(3, MOST_AHEAD + 100):
        consumer.receive(Event(sequence, sequence))
    assert len(consumer._ahead) <= MOST_AHEAD
    assert len(consumer.receive(Event(2, 2))) <= MOST_AHEAD + 1
    consumer.receive(Heartbeat(2**63))
    (reply,) = [output for output in ticks(consumer, NACK_TICKS) if isinstance(output.message, Nack)]
    assert len(reply.message.sequences) == MOST_NACKED
