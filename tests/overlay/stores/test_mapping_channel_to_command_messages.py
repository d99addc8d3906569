"""Broker's developer guide, "Mapping Channel to Command Messages"."""

from __future__ import annotations

import pytest

from dafka.overlay.channels.messages import CumulativeAck, Event, Handshake, Heartbeat, Nack, RetransmitFailed
from dafka.overlay.stores.outputs import from_consumer, from_producer, to_command
from dafka.overlay.wire import commands
from dafka.overlay.wire.commands import Command, decode_command, encode_command
from dafka.overlay.wire.primitives import NO_ENTITY, EntityId

CLONE, MASTER = EntityId(b"c" * 16, 1), EntityId(b"m" * 16, 2)
ERASE = commands.Erase("key", NO_ENTITY)

FROM_PRODUCERS = [
    (commands.AttachWriter(1, 5), Handshake(1, 5)),
    (commands.AckClone(7, 5, ()), Handshake(7, 5)),
    (commands.Keepalive(9), Heartbeat(9)),
    (commands.RetransmitFailed(9), RetransmitFailed(9)),
]
FROM_CONSUMERS = [
    (commands.CumulativeAck(9), CumulativeAck(9)),
    (commands.Nack((3, 4)), Nack((3, 4))),
]


def carried(content: commands.Content, sequence: int = 0) -> Command:
    """As it arrives at the other end."""
    return decode_command(encode_command(Command(sequence, CLONE, MASTER, content)))


@pytest.mark.parametrize(("command", "message"), FROM_PRODUCERS, ids=lambda one: type(one).__name__)
def test_commands_of_producers_are_these_messages_of_the_channel(command, message):
    assert from_producer(carried(command)) == message
    assert from_consumer(command) is None


@pytest.mark.parametrize(("command", "message"), FROM_CONSUMERS, ids=lambda one: type(one).__name__)
def test_commands_of_consumers_are_these_messages_of_the_channel(command, message):
    assert from_consumer(carried(command).content) == message
    assert from_producer(carried(command)) is None


def test_an_action_is_the_content_of_an_event_with_the_number_of_the_command():
    assert from_producer(carried(ERASE, 42)) == Event(42, ERASE)


@pytest.mark.parametrize(
    "message",
    [Event(42, ERASE), Handshake(1, 5), Heartbeat(9), RetransmitFailed(9)],
    ids=lambda one: type(one).__name__,
)
def test_messages_of_a_producer_are_the_same_at_the_other_end(message):
    command = decode_command(encode_command(to_command(CLONE, MASTER, message)))
    assert (command.sender, command.receiver) == (CLONE, MASTER)
    assert from_producer(command) == message


@pytest.mark.parametrize("message", [CumulativeAck(9), Nack((3, 4))], ids=lambda one: type(one).__name__)
def test_messages_of_a_consumer_are_the_same_at_the_other_end(message):
    assert (
        from_consumer(decode_command(encode_command(to_command(CLONE, MASTER, message))).content) == message
    )


def test_only_actions_have_a_number_among_a_channels_messages():
    for message in (Handshake(1, 5), Heartbeat(9), RetransmitFailed(9), CumulativeAck(9), Nack((3,))):
        assert to_command(CLONE, MASTER, message).sequence == 0
    assert to_command(CLONE, MASTER, Event(42, ERASE)).sequence == 42
