"""Messages between nodes of ours behind the handshake (version 2): subscriptions and routed messages.

Each message begins with an octet that names its type. Ping (4) and pong (5) hold their payload alone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from dafka.overlay.filters import Filter
from dafka.overlay.limits import BRANCH_OCTETS, MOST_HOPS
from dafka.overlay.values.decoder import read_counted
from dafka.overlay.values.encoder import write_counted
from dafka.overlay.wire import primitives
from dafka.overlay.wire.frames import frame
from dafka.overlay.wire.leaves import Leaf, encode_leaves, read_leaves
from dafka.overlay.wire.primitives import Reader
from dafka.protocol.errors import MalformedMessage

SUBSCRIPTION, WITHDRAWAL, REVOCATION, ROUTED = range(20, 24)
INQUIRY = 25
DATA, COMMAND = 1, 2
"""Kinds of routed messages, as in version 1's envelopes."""
ADDRESSED = 2
"""Of a branch: the receiver is the only one, so a peer of version 1 is not to pass the message on."""

_LAST_TIME = 2**63
_LAST_REVOCATION = 2**62  # a node that is lied about has later times left to contradict with
_U64 = struct.Struct(">Q")
_HOP = struct.Struct(">16sQ")
_LENGTH = struct.Struct(">H")


class Subscription(NamedTuple):
    """The filter of a peer, and a path to it: from the peer (first) to the sender (last).

    ``times`` holds the logical time of each hop when it passed this on, a vector timestamp of the path;
    ``time`` is that of the peer when it set the filter and the ``leaves``, the peers of version 1 behind it.
    """

    path: tuple[bytes, ...]
    times: tuple[int, ...]
    time: int
    filter: Filter
    leaves: tuple[Leaf, ...] = ()


class Withdrawal(NamedTuple):
    """The sender has no path to a peer any more that does not lead through the receiver."""

    peer: bytes


class Revocation(NamedTuple):
    """A link went: at its logical time ``time``, ``revoker`` was no longer connected with ``hop``."""

    revoker: bytes
    time: int
    hop: bytes


class Inquiry(NamedTuple):
    """The sender had no room for what it was told of a peer, and has some now: it is to be told again."""

    peer: bytes


class Routed(NamedTuple):
    """A message on its way. ``branches`` is the way that it still has to go behind the receiver."""

    kind: int
    deliver: bool
    """Whether the receiver is in the list of receivers: only then it looks at topic and payload."""
    publisher: bytes
    branches: bytes
    topic: bytes
    payload: bytes


RoutedMessage = Subscription | Withdrawal | Revocation | Inquiry | Routed


def encode_routed(message: RoutedMessage) -> bytes:
    """A message with its length."""
    match message:
        case Subscription(path, times, time, filter, leaves):
            out = bytearray((SUBSCRIPTION,))
            write_counted(len(path), out)
            for hop, at in zip(path, times, strict=True):
                out += _HOP.pack(hop, at)
            told = primitives.prefixes(filter) + encode_leaves(leaves)
            return frame(bytes(out) + _U64.pack(time) + told)
        case Withdrawal(peer):
            return frame(bytes((WITHDRAWAL,)) + peer)
        case Revocation(revoker, time, hop):
            return frame(bytes((REVOCATION,)) + revoker + _U64.pack(time) + hop)
        case Inquiry(peer):
            return frame(bytes((INQUIRY,)) + peer)
        case Routed(kind, deliver, publisher, branches, topic, payload):
            return frame(way(deliver, branches) + cargo(kind, publisher, topic, payload))


def way(deliver: int, branches: bytes) -> bytes:
    """The beginning of a :class:`Routed`, which differs from one receiver to the next."""
    out = bytearray((ROUTED, deliver))
    write_counted(len(branches), out)
    return bytes(out) + branches


def cargo(kind: int, publisher: bytes, topic: bytes, payload: bytes) -> bytes:
    """The rest of it, which is the same for all. Raises ValueError for a topic that is too long."""
    if len(topic) > 0xFFFF:
        raise ValueError(f"a topic of {len(topic)} octets, at most {0xFFFF}")
    return bytes((kind,)) + publisher + _LENGTH.pack(len(topic)) + topic + payload


def decode_routed(message: bytes) -> RoutedMessage:
    """A message without its length. Raises :class:`MalformedMessage`."""
    kind = message[0] if message else 0
    if kind == ROUTED:
        return _read_routed(message)
    reader = Reader(message, 1)
    decoded: RoutedMessage
    if kind == SUBSCRIPTION:
        decoded = _read_subscription(reader)
    elif kind == WITHDRAWAL:
        decoded = Withdrawal(reader.identity())
    elif kind == REVOCATION:
        decoded = Revocation(reader.identity(), _time(reader, _LAST_REVOCATION), reader.identity())
    elif kind == INQUIRY:
        decoded = Inquiry(reader.identity())
    else:
        raise MalformedMessage("message-type", f"{kind} is not a message among peers")
    if reader.left:
        raise MalformedMessage("trailing-octets", f"{reader.left} octets behind a message")
    return decoded


def encode_branch(hop: bytes, deliver: int, branches: bytes) -> bytes:
    """One branch of a way: the next hop, whether it is a receiver (or ADDRESSED), and how it goes on."""
    out = bytearray(hop)
    out.append(deliver)
    write_counted(len(branches), out)
    return bytes(out) + branches


def split_branches(branches: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """The branches that stand one behind the other. Raises :class:`MalformedMessage`."""
    reader = Reader(branches)
    while reader.left:
        yield reader.identity(), reader.number(1), reader.string()


def height_of(branches: bytes) -> int:
    """How many hops a way has, at most. Raises :class:`MalformedMessage`."""
    height, left = 0, [branches]
    while left:
        left = [behind for one in left for _, _, behind in split_branches(one) if behind]
        height += 1
        if height > MOST_HOPS:
            raise MalformedMessage("branches", f"a way of more than {MOST_HOPS} hops")
    return height


def leads_through(branches: bytes, peer: bytes) -> bool:
    """Whether a way leads through a peer. Raises :class:`MalformedMessage`."""
    if peer not in branches:  # as octets, wherever they begin
        return False
    left = [branches]
    while left:
        for hop, _, behind in split_branches(left.pop()):
            if hop == peer:
                return True
            left.append(behind)
    return False


def _read_routed(message: bytes) -> Routed:
    # Without a Reader: this is what comes most.
    try:
        count, begin = read_counted(message, 2)
        end = begin + count
        kind = message[end]
        publisher = message[end + 1 : end + 17]
        topic = end + 19
        topic_end = topic + (message[end + 17] << 8 | message[end + 18])
    except IndexError as error:
        raise MalformedMessage("truncated", f"{len(message)} octets of a routed message") from error
    if topic_end > len(message):
        raise MalformedMessage("topic-length", f"{topic_end - topic} octets, {len(message) - topic} are left")
    if count > BRANCH_OCTETS:
        raise MalformedMessage("branches", f"a way of {count} octets, at most {BRANCH_OCTETS}")
    if kind != DATA and kind != COMMAND:
        raise MalformedMessage("routed-kind", f"{kind} is not a kind of routed message")
    deliver, branches = message[1] != 0, message[begin:end]
    return Routed(kind, deliver, publisher, branches, message[topic:topic_end], message[topic_end:])


def _read_subscription(reader: Reader) -> Subscription:
    count = reader.counted(least=_HOP.size)
    if not 0 < count <= MOST_HOPS:
        raise MalformedMessage("path", f"a path of {count} hops, at most {MOST_HOPS}")
    hops = [(reader.identity(), _time(reader)) for _ in range(count)]
    path, times = zip(*hops, strict=True)
    if len(set(path)) < count:
        raise MalformedMessage("path", "a path that comes twice through the same peer")
    return Subscription(path, times, _time(reader), reader.prefixes(), read_leaves(reader))


def _time(reader: Reader, end: int = _LAST_TIME) -> int:
    time = reader.number(8)
    if time >= end:
        raise MalformedMessage("time", f"{time} is not a logical time: none could come after it")
    return time
