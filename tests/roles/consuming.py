"""A consumer of one topic, and what it is sent and gives out."""

from __future__ import annotations

from dafka.protocol.commands import (
    Fetch,
)
from dafka.protocol.runs import Run
from dafka.roles.consumer import ConsumerRole
from dafka.roles.outputs import Deliver

ME = b"C" * 32
OTHER = b"D" * 32
STORE, STORE2 = b"5" * 32, b"6" * 32
PARTITION = b"A" * 32
PARTITION2 = b"B" * 32
TOPIC = b"hello"


def consumer(
    offset_reset: str = "earliest", topics=(TOPIC,), room=(1_000_000, 10**9), **options
) -> ConsumerRole:
    role = ConsumerRole(ME, offset_reset=offset_reset, **options)
    role.set_room(0.0, *room)
    for topic in topics:
        role.subscribe(0.0, topic)
    return role


def live(first: int, *contents: bytes, address: bytes = PARTITION, topic: bytes = TOPIC) -> Run:
    return Run(None, address, topic, first, list(contents))


def direct(first: int, *contents: bytes, address: bytes = PARTITION, topic: bytes = TOPIC) -> Run:
    return Run(ME, address, topic, first, list(contents))


def fetch(first: int, count: int, address: bytes = PARTITION) -> Fetch:
    return Fetch(address, ME, TOPIC, first, count)


def deliver(first: int, *contents: bytes, address: bytes = PARTITION) -> Deliver:
    return Deliver(TOPIC, address, first, list(contents))
