"""Outputs of stores for their surroundings, and the commands that stand for the messages of channels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dafka.overlay.channels.messages import (
    CumulativeAck,
    Event,
    FromConsumer,
    FromProducer,
    Handshake,
    Heartbeat,
    Nack,
    RetransmitFailed,
)
from dafka.overlay.stores.content import Changes
from dafka.overlay.values import Value
from dafka.overlay.values.containers import octets_of
from dafka.overlay.wire import commands
from dafka.overlay.wire.codes import ErrorCode
from dafka.overlay.wire.commands import QUERIES, AckClone, AttachWriter, Command, Content, Keepalive
from dafka.overlay.wire.primitives import EntityId


class Publish(NamedTuple):
    """Send a command to the subscribers of a topic, or to one endpoint only."""

    topic: bytes
    command: Command
    receiver: bytes | None = None


class Changed(NamedTuple):
    """An event for the subscribers of this endpoint, on the topic of the store's events."""

    event: Value


class Cleared(NamedTuple):
    """Events for the same subscribers, one for each key that a clear has erased: there may be very many."""

    events: Iterator[Value]


class Answered(NamedTuple):
    """The answer to a question of this endpoint; to put_unique whether it has put the key there."""

    request: int
    value: Value
    code: ErrorCode = ErrorCode.NONE


class Commit(NamedTuple):
    """Write this to the backend, all of it or nothing, and tell the master when it is there."""

    changes: Changes
    writers: dict[EntityId, int | None]
    """The last action of each writer that is in the changes or before; None: the writer is forgotten."""


Output = Publish | Changed | Cleared | Answered | Commit


def query_topic(name: str) -> bytes:
    """The topic of our masters for questions. libbroker's masters know another topic only, and would not
    understand them."""
    return octets_of(name) + QUERIES


def master_topic(name: str) -> bytes:
    return octets_of(name) + b"/<$>/data/master"


def clone_topic(name: str) -> bytes:
    return octets_of(name) + b"/<$>/data/clone"


def to_command(sender: EntityId, receiver: EntityId, message: FromProducer | FromConsumer) -> Command:
    """A handshake becomes an attach_writer; masters make an ack_clone of it, with their content."""
    match message:
        case Event(sequence, content):
            return Command(sequence, sender, receiver, content)
        case Handshake(offset, interval):
            return Command(0, sender, receiver, AttachWriter(offset, interval))
        case Heartbeat(sequence):
            return Command(0, sender, receiver, Keepalive(sequence))
        case RetransmitFailed(sequence):
            return Command(0, sender, receiver, commands.RetransmitFailed(sequence))
        case CumulativeAck(sequence):
            return Command(0, sender, receiver, commands.CumulativeAck(sequence))
        case Nack(sequences):
            return Command(0, sender, receiver, commands.Nack(sequences))


def from_producer(command: Command) -> FromProducer | None:
    """The message of a command on the channel of its sender; None if it is an answer to the receiver's
    channel."""
    match command.content:
        case AttachWriter(offset, interval) | AckClone(offset, interval, _):
            return Handshake(offset, interval)
        case Keepalive(sequence):
            return Heartbeat(sequence)
        case commands.RetransmitFailed(sequence):
            return RetransmitFailed(sequence)
        case commands.CumulativeAck() | commands.Nack():
            return None
        case commands.Load() | commands.Piece() | commands.Query() | commands.Response():
            return None
        case action:
            return Event(command.sequence, action)


def from_consumer(content: Content) -> FromConsumer | None:
    """The acknowledgement or the wish that a command is."""
    match content:
        case commands.CumulativeAck(sequence):
            return CumulativeAck(sequence)
        case commands.Nack(sequences):
            return Nack(sequences)
        case _:
            return None
