"""Messages between the producer and the consumers of a channel.

In data stores these are commands: a handshake is an attach_writer or an ack_clone, a heartbeat a keepalive,
and an event any action.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Handshake(NamedTuple):
    """Producer: the first event for you comes behind ``offset``; I am heard of every so many ticks."""

    offset: int
    heartbeat_interval: int


class Event(NamedTuple):
    """Producer: the content with this number. The first number of all is 2."""

    sequence: int
    content: Any


class RetransmitFailed(NamedTuple):
    """Producer: this event cannot be had any more."""

    sequence: int


class Heartbeat(NamedTuple):
    """Producer: I live, and this is the number of my last event."""

    sequence: int


class CumulativeAck(NamedTuple):
    """Consumer: I have all events up to this one."""

    sequence: int


class Nack(NamedTuple):
    """Consumer: I miss these events, in ascending order; a lone 0 asks for a handshake."""

    sequences: tuple[int, ...]


FromProducer = Handshake | Event | RetransmitFailed | Heartbeat
FromConsumer = CumulativeAck | Nack
