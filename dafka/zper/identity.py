"""The identity of a ZPER client: the ZeroMQ identity of its socket, which names the topic.

| octets | meaning |
|---|---|
| 1 | low octet of Java's ``String.hashCode()`` of the topic; a hint for spreading work, never checked |
| 1 | mode: which responses the client wants |
| 1 | length of the topic |
| n | topic |
| 16 | a random UUID, which makes the identity unique |

A topic has ASCII letters, digits, ``.``, ``_`` and ``-`` (the Java server takes letters and digits only), 64
octets at most. ``name:N`` is partition N of the topic ``name``.

:func:`build` is for clients::

    socket.setsockopt(zmq.IDENTITY, identity.build("flights", mode=1))

:func:`parse` is for servers. The rest behind the topic is not looked at: it may have any length.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple
from uuid import uuid4

from dafka.protocol.errors import MalformedMessage

TOPIC_LIMIT = 64  # octets, with the partition's number
PARTITION_LIMIT = 2**31  # Kafka's partitions are signed 32-bit numbers
UNIQUE_SIZE = 16  # octets
COPY = b"zper/cpy"  # the first of them, if the client is a node that copies its messages; no UUID has them
IDENTITY_LIMIT = 255  # octets, ZeroMQ's own

_HEAD = 3
_TOPIC = re.compile(rb"(?P<name>[A-Za-z0-9._-]+)(:(?P<partition>[0-9]+))?")


class InvalidIdentityError(MalformedMessage):
    """An identity that names no topic; ``cause`` is one of a few words, for counting."""


class Mode(IntEnum):
    """Which responses a writing client gets. For reading clients it means nothing."""

    NO_RESPONSE = 0
    AT_FLUSH = 1
    """One for each flush that contains a message of this client."""
    EVERY_WRITE = 2
    """One for each message, when it is flushed."""


class Identity(NamedTuple):
    """The fields of an identity."""

    topic: str
    """As the client named it: with the partition's number if it gave one."""
    name: str
    """The topic without the partition's number."""
    partition: int
    mode: Mode


def build(topic: str, mode: int = Mode.NO_RESPONSE, unique: bytes | None = None) -> bytes:
    """The identity for a socket that writes to or reads from ``topic``.

    ``unique`` is 16 octets that no other socket has; without it they are random. Raises
    :class:`InvalidIdentityError` for a topic or a mode that a server would not take.
    """
    named = topic.encode("utf-8", "surrogateescape")
    _split(named)
    if unique is None:
        unique = uuid4().bytes
    if len(unique) != UNIQUE_SIZE:
        raise InvalidIdentityError("unique", f"{len(unique)} octets; there are {UNIQUE_SIZE}, as in a UUID")
    return bytes([hash_octet(named), _mode(mode), len(named)]) + named + unique


def parse(octets: bytes) -> Identity:
    """Decode an identity. Raises :class:`InvalidIdentityError`, whose ``cause`` says what is wrong."""
    if len(octets) < _HEAD:
        raise InvalidIdentityError("too-short", f"{octets!r} has not the 3 octets before the topic")
    length = octets[2]
    named = octets[_HEAD : _HEAD + length]
    if length <= TOPIC_LIMIT and len(named) < length:
        raise InvalidIdentityError("too-short", f"of a topic of {length} octets there are {len(named)}")
    name, partition = _split(named, length)
    return Identity(named.decode(), name, partition, _mode(octets[1]))


def is_copy(octets: bytes) -> bool:
    """Whether an identity that can be parsed is that of another node, of which this one is a replica."""
    return octets.startswith(COPY, _HEAD + octets[2])


def hash_octet(topic: bytes) -> int:
    """The low octet of ``s[0]*31^(n-1) + s[1]*31^(n-2) + ... + s[n-1]``."""
    value = 0
    for octet in topic:
        value = (31 * value + octet) & 0xFF
    return value


def _mode(value: int) -> Mode:
    try:
        return Mode(value)
    except ValueError:
        raise InvalidIdentityError("mode", f"{value} is not one of 0, 1 and 2") from None


def _split(topic: bytes, length: int | None = None) -> tuple[str, int]:
    """Name and partition. ``length`` is what the identity says, if the topic may be cut."""
    length = len(topic) if length is None else length
    if length > TOPIC_LIMIT:
        raise InvalidIdentityError("topic-length", f"{length} octets, at most {TOPIC_LIMIT} are allowed")
    if not topic:
        raise InvalidIdentityError("topic-length", "the topic is empty")
    match = _TOPIC.fullmatch(topic)
    if match is None:
        allowed = "letters, digits, '.', '_' and '-', and behind a ':' the number of a partition"
        raise InvalidIdentityError("topic-characters", f"{topic!r} is not made of {allowed}")
    name = match["name"].decode()
    if name in (".", ".."):
        raise InvalidIdentityError("topic-characters", f"{name!r} is not allowed as a topic by Kafka's rules")
    digits = match["partition"] or b"0"
    partition = int(digits)
    if str(partition).encode() != digits or partition >= PARTITION_LIMIT:
        raise InvalidIdentityError(
            "partition", f"{topic!r}: a partition is a number below 2^31, without zeros before it"
        )
    return name, partition
