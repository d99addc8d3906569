"""A consumer whose user's thread receives lone records itself, and who publishes them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from gevent._hub_local import get_hub_if_exists, set_hub
from mesh.peer import Peer
from timing import SECONDS, until

from dafka import Consumer, Tower
from dafka.protocol.commands import Record

PARTITION = b"P" * 32


class Meeting:
    """A consumer of ``t``, and a peer that publishes records of its partition."""

    def __init__(self, peer: Peer, consumer: Consumer) -> None:
        self.peer = peer
        self.consumer = consumer
        self.node = consumer._node
        self.next = 0
        self._pool = ThreadPoolExecutor(1)

    @property
    def is_lent(self) -> bool:
        return self.node._lone.may_come

    def record(self, content: bytes, address: bytes = PARTITION) -> Record:
        """The next record."""
        self.next += 1
        return Record(address, b"t", self.next - 1, content)

    def say(self, content: bytes) -> None:
        """Publish the next record."""
        self.peer.send(self.record(content))

    def waits(self) -> Any:
        """Have a user's thread wait for records: a future of those that come."""
        waiting = self._pool.submit(self.consumer.poll, SECONDS)
        until(lambda: self.node._waiter is not None)
        return waiting

    def come(self, content: bytes) -> None:
        """A record comes, for a thread that waits for it."""
        waiting = self.waits()
        self.say(content)
        (record,) = waiting.result(SECONDS)
        assert (record.sequence, record.value) == (self.next - 1, content)

    def lend(self) -> None:
        """Have the next record be one that the thread receives itself."""
        self.node._lone._wanted = 1
        while not self.is_lent:
            self.come(b"before")
            time.sleep(0.002)


@contextmanager
def meeting(**options: Any) -> Iterator[Meeting]:
    with (
        Tower() as tower,
        Peer(tower.addresses) as peer,
        Consumer(["t"], tower=tower, offset_reset="earliest", **options) as consumer,
    ):
        peer.meet(b"Mt")
        yield Meeting(peer, consumer)


@contextmanager
def plain_thread() -> Iterator[None]:
    """Another test may have given this thread green threads of its own."""
    before = get_hub_if_exists()
    set_hub(None)
    try:
        yield
    finally:
        set_hub(before)
