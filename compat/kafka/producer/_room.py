"""How much of a producer is under way: batches that are sealed and not acknowledged.

Memory is bounded by ``BYTES_UNDER_WAY``: a ``send`` that begins a batch waits while there is more than that.
(kafka-python 3 has no ``buffer_memory``; Kafka's default is the same.)
"""

from __future__ import annotations

from time import monotonic

from kafka.errors import KafkaTimeoutError

from compat.kafka.producer._batches import Batch, allocate_lock
from dafka.hub.hub import Hub, Waiter

BYTES_UNDER_WAY = 32 * 1024 * 1024  # octets sealed and not acknowledged before send() waits


class Room:
    """The bytes under way, and who waits until they are fewer. For any thread."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._lock = allocate_lock()
        self._blocked: list[Waiter] = []
        self.under_way = 0

    @property
    def full(self) -> bool:
        """Whether so much is under way that the next batch has to wait."""
        return self.under_way > BYTES_UNDER_WAY

    def take(self, batch: Batch) -> None:
        """A batch is sealed; a second call does nothing."""
        with self._lock:
            if not batch.counted:
                batch.counted = True
                self.under_way += batch.size

    def give_back(self, batch: Batch) -> None:
        """Its outcome is known."""
        with self._lock:
            if batch.counted:
                batch.counted = False
                self.under_way -= batch.size
            blocked: list[Waiter] = []
            if self._blocked and not self.full:
                blocked, self._blocked = self._blocked, []
        for waiter in blocked:
            waiter.set()

    def wait(self, max_block_ms: float) -> None:
        """Wait until there is room.

        Raises:
            KafkaTimeoutError: there still was none after ``max_block_ms``.
        """
        deadline = monotonic() + max_block_ms / 1000
        while self.full:
            waiter = self._hub.waiter()
            with self._lock:
                self._blocked.append(waiter)
            try:
                if self.full:
                    waiter.wait(deadline - monotonic())
            finally:
                with self._lock:
                    coming = waiter not in self._blocked
                    if not coming:
                        self._blocked.remove(waiter)
                if coming:
                    waiter.wait(1.0)
                waiter.close()
            if self.full and monotonic() >= deadline:
                raise KafkaTimeoutError(
                    f"Failed to allocate memory within the configured max blocking time {max_block_ms} ms: "
                    f"{self.under_way} bytes are waiting for the broker"
                )
