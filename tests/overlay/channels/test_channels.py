"""Broker's developer guide, "Channels": "Producer" and "Consumer"."""

from __future__ import annotations

import pytest
from overlay.vectors import session

from dafka.overlay.channels.consumer import Closed, Consume, Consumer, Lost, Reply
from dafka.overlay.channels.messages import (
    CumulativeAck,
    Event,
    Handshake,
    Heartbeat,
    Nack,
    RetransmitFailed,
)
from dafka.overlay.channels.producer import Attached, Broadcast, Dropped, Producer, Unicast
from dafka.overlay.limits import HEARTBEAT_TICKS, MOST_AHEAD, MOST_NACKED, NACK_TICKS, SILENT_TICKS
from dafka.overlay.wire import commands
from dafka.overlay.wire.codes import ErrorCode
from dafka.overlay.wire.commands import Command, decode_command
from dafka.overlay.wire.envelope import COMMAND, decode_envelope


def attached(*consumers: str) -> Producer[str]:
    producer: Producer[str] = Producer()
    for one in consumers:
        producer.add(one)
        assert producer.receive(one, CumulativeAck(producer.sequence)) == [Attached(one)]
    return producer


def ticks(one: Producer | Consumer, count: int) -> list:
    return [output for _ in range(count) for output in one.tick()]


# -- the producer -----------------------------------------------------------------------------------


def test_the_first_event_has_number_2():
    assert attached("a").produce("x") == [Broadcast(Event(2, "x"))]


def test_without_consumers_nothing_is_counted():
    producer = Producer()
    assert producer.produce("x") == [] and producer.sequence == 1 and producer.is_idle


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


def test_what_is_missing_is_sent_again_to_whom_misses_it():
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


def test_what_is_kept_is_bounded(monkeypatch):
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


# -- the consumer -----------------------------------------------------------------------------------


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


def test_what_is_missing_is_asked_for_until_it_comes():
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


def test_what_is_ahead_is_bounded():
    consumer = begun()
    for sequence in range(3, MOST_AHEAD + 100):
        consumer.receive(Event(sequence, sequence))
    assert len(consumer._ahead) <= MOST_AHEAD
    assert len(consumer.receive(Event(2, 2))) <= MOST_AHEAD + 1
    consumer.receive(Heartbeat(2**63))
    (reply,) = [output for output in ticks(consumer, NACK_TICKS) if isinstance(output.message, Nack)]
    assert len(reply.message.sequences) == MOST_NACKED


# -- libbroker at the other end ---------------------------------------------------------------------


def recorded(name: str) -> list[tuple[bool, Command]]:
    """The commands of a session, and whether libbroker said them."""
    found = []
    for vector in session(name):
        if "ttl=" in vector.meaning:
            envelope = decode_envelope(vector.message)
            if envelope.kind == COMMAND:
                said = vector.direction.startswith("libbroker")
                found.append((said, decode_command(envelope.payload)))
    return found


def as_message(command: Command):
    match command.content:
        case commands.AttachWriter(offset, interval) | commands.AckClone(offset, interval, _):
            return Handshake(offset, interval)
        case commands.Keepalive(sequence):
            return Heartbeat(sequence)
        case commands.RetransmitFailed(sequence):
            return RetransmitFailed(sequence)
        case commands.CumulativeAck(sequence):
            return CumulativeAck(sequence)
        case commands.Nack(sequences):
            return Nack(sequences)
        case content:
            return Event(command.sequence, content)


def until(consumer: Consumer, wanted: CumulativeAck | Nack, outputs: list) -> bool:
    """Whether the consumer says this within a heartbeat interval."""
    for _ in range(HEARTBEAT_TICKS + NACK_TICKS):
        if Reply(wanted) in outputs:
            return True
        outputs += consumer.tick()
    return Reply(wanted) in outputs


def test_as_a_consumer_of_a_writer_ours_says_what_libbrokers_master_said():
    consumer = Consumer(asks_for_handshake=False)
    outputs: list = []
    for by_libbroker, command in recorded("py-writer"):
        message = as_message(command)
        if not by_libbroker:
            if command.sequence == 2 and not consumer.is_attached:
                continue  # sent before its handshake: libbroker has dropped it
            outputs = consumer.receive(message)
        elif isinstance(message, (CumulativeAck, Nack)):
            assert until(consumer, message, outputs), message
            outputs = []


def test_as_the_producer_of_a_master_ours_answers_as_libbrokers_did():
    producer: Producer[str] = Producer()
    outputs: list = []
    for by_libbroker, command in recorded("py-clone"):
        message = as_message(command)
        if by_libbroker and isinstance(message, Event) and command.receiver.number == 0:
            if message.sequence > producer.sequence:
                assert producer.produce(message.content) == [Broadcast(message)]
            else:
                assert Unicast("clone", message) in outputs
        elif by_libbroker and isinstance(message, (Handshake, RetransmitFailed)):
            if producer.consumers:
                assert Unicast("clone", message) in outputs, message
        elif not by_libbroker:
            outputs = producer.receive("clone", message)
            if message == Nack((9, 8)):
                assert [type(output) for output in outputs] == [Dropped]
                break
    else:
        pytest.fail("the recording does not end as it did")
