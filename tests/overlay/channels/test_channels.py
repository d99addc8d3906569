"""Broker's developer guide, "Channels": as libbroker's ends of them speak."""

from __future__ import annotations

import pytest
from overlay.vectors import session

from dafka.overlay.channels.consumer import Consumer, Reply
from dafka.overlay.channels.messages import (
    CumulativeAck,
    Event,
    Handshake,
    Heartbeat,
    Nack,
    RetransmitFailed,
)
from dafka.overlay.channels.producer import Broadcast, Dropped, Producer, Unicast
from dafka.overlay.limits import HEARTBEAT_TICKS, NACK_TICKS
from dafka.overlay.wire import commands
from dafka.overlay.wire.commands import Command, decode_command
from dafka.overlay.wire.envelope import COMMAND, decode_envelope


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
