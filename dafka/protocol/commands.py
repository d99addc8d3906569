"""The commands of 46/DAFKA as values, and the one command that we add.

Addresses are 32 upper-case hex octets, topics any octets, at most 255. ``topic`` is what the specification
calls subject: the name of a Dafka topic, not the ZeroMQ topic that a command is published under; that one
follows from the command (:func:`dafka.protocol.framing.zmq_topic`).
"""

from __future__ import annotations

from typing import NamedTuple


class Record(NamedTuple):
    """RECORD: a new record, from a producer to everyone subscribed to its topic."""

    address: bytes
    topic: bytes
    sequence: int
    content: bytes


class DirectRecord(NamedTuple):
    """DIRECT-RECORD: a fetched record, to the node ``recipient`` that asked; ``address`` is the partition."""

    recipient: bytes
    address: bytes
    topic: bytes
    sequence: int
    content: bytes


class Fetch(NamedTuple):
    """FETCH: ``address`` asks for ``count`` records of ``partition`` from ``sequence`` on."""

    partition: bytes
    address: bytes
    topic: bytes
    sequence: int
    count: int  # type: ignore[assignment]  # hides tuple.count


class Ack(NamedTuple):
    """ACK: a store has committed ``partition`` up to and including ``sequence``.

    ``store`` is the store's address. libdafka does not say it (empty here); we append it behind the last
    field, where C nodes ignore it, so that producers can count distinct stores.
    """

    partition: bytes
    topic: bytes
    sequence: int
    store: bytes = b""


class Head(NamedTuple):
    """HEAD: ``sequence`` is the last one published in the partition ``address``."""

    address: bytes
    topic: bytes
    sequence: int


class DirectHead(NamedTuple):
    """DIRECT-HEAD: a HEAD for the one consumer ``recipient``; ``address`` is the partition."""

    recipient: bytes
    address: bytes
    topic: bytes
    sequence: int


class GetHeads(NamedTuple):
    """GET-HEADS: ``address`` asks for the heads of all partitions of ``topic``."""

    topic: bytes
    address: bytes


class ConsumerHello(NamedTuple):
    """CONSUMER-HELLO: the consumer ``address`` tells ``store`` its topics."""

    store: bytes
    address: bytes
    topics: tuple[bytes, ...]


class StoreHello(NamedTuple):
    """STORE-HELLO: the store ``address`` greets ``consumer``."""

    consumer: bytes
    address: bytes


class Trimmed(NamedTuple):
    """TRIMMED, our addition: ``partition address`` now begins at ``sequence``.

    A store says it to a ``recipient`` that fetched records below, which would otherwise wait for ever; a
    producer says it of what it no longer has and of what no store it knows has either. ``source`` is the
    address of the node that says it, the partition's own for the producer. libdafka nodes ignore command IDs
    they do not know.
    """

    recipient: bytes
    address: bytes
    topic: bytes
    sequence: int
    source: bytes = b""


Command = (
    Record | DirectRecord | Fetch | Ack | Head | DirectHead | GetHeads | ConsumerHello | StoreHello | Trimmed
)
