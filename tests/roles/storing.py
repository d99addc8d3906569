"""A store of one partition, and what it is told and answers."""

from __future__ import annotations

from dafka.protocol.commands import (
    Ack,
    DirectHead,
    Fetch,
)
from dafka.protocol.runs import Run
from dafka.roles.outputs import Append
from dafka.roles.store import StoreRole

ME = b"5" * 32
OTHER_STORE = b"6" * 32
CONSUMER = b"C" * 32
RUN = b"9" * 32  # a producer of the partition
PARTITION, PARTITION2 = b"A" * 32, b"B" * 32
TOPIC = b"hello"
KEY = (TOPIC, PARTITION)


def store(first: int = 0, following: int = 0, **options) -> StoreRole:
    """A store that has told the others it is there, with one partition in its log."""
    role = StoreRole(ME, {KEY: (first, following)} if following else {}, **options)
    role.tick(0.0)
    return role


def live(first: int, *contents: bytes, address: bytes = PARTITION, topic: bytes = TOPIC) -> Run:
    return Run(None, address, topic, first, list(contents))


def direct(first: int, *contents: bytes, address: bytes = PARTITION) -> Run:
    return Run(ME, address, TOPIC, first, list(contents))


def fetch(first: int, count: int, address: bytes = PARTITION) -> Fetch:
    return Fetch(address, ME, TOPIC, first, count)


def append(first: int, *contents: bytes) -> Append:
    return Append(TOPIC, PARTITION, first, list(contents))


def ack(sequence: int) -> Ack:
    return Ack(PARTITION, TOPIC, sequence, ME)


def from_consumer(first: int, count: int, topic: bytes = TOPIC) -> Fetch:
    return Fetch(PARTITION, CONSUMER, topic, first, count)


def several() -> StoreRole:
    role = StoreRole(ME, {KEY: (0, 8), (TOPIC, PARTITION2): (2, 3), (b"hello2", PARTITION): (0, 1)})
    role.receive_run(0.0, live(0, b"0", address=b"E" * 32))  # not committed
    return role


HELLO_HEADS = [DirectHead(CONSUMER, PARTITION, TOPIC, 7), DirectHead(CONSUMER, PARTITION2, TOPIC, 2)]
HELLO2_HEADS = [DirectHead(CONSUMER, PARTITION, b"hello2", 0)]
