"""The commands of 46/DAFKA as values, and the three commands that we add.

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


class Claim(NamedTuple):
    """CLAIM, our addition: the producer ``address`` numbers the records of ``partition``, or is about to.

    A partition that keeps its name across restarts is named apart from the producers that write it one after
    another, which have an address of their own for each run. ``numbering``: whether it knows by now where to
    go on; stores that hear a CLAIM answer with END. ``sequence``: from where on a store is to sum up what it
    has, to be compared with what this producer has.
    """

    partition: bytes
    address: bytes
    topic: bytes
    sequence: int
    numbering: bool


class End(NamedTuple):
    """END, our addition: in ``store`` the partition ``address`` ends before ``sequence``, 0 if it has none.

    For the producer ``recipient``, whose CLAIM it answers. ``kind`` of messages: 1 raw records, 2 record
    batches, 0 unknown. ``offset``: that of the next record, as readers count them. ``checksum``: the CRC-32C
    of the ``count`` messages from ``first`` on.
    """

    recipient: bytes
    address: bytes
    topic: bytes
    sequence: int
    store: bytes
    kind: int = 0
    offset: int = 0
    first: int = 0
    count: int = 0  # type: ignore[assignment]  # hides tuple.count
    checksum: int = 0


Command = (
    Record
    | DirectRecord
    | Fetch
    | Ack
    | Head
    | DirectHead
    | GetHeads
    | ConsumerHello
    | StoreHello
    | Trimmed
    | Claim
    | End
)
