"""Publishers: one topic of an endpoint."""

from __future__ import annotations

from typing import Any, TypeVar

from compat.broker._values.conversion import to_value
from dafka import overlay

P = TypeVar("P", bound="Publisher")


class Publisher:
    """Publishes on one topic. Any thread may call it."""

    def __init__(self, internal_publisher: overlay.Publisher) -> None:
        self._publisher: overlay.Publisher | None = internal_publisher

    def __enter__(self: P) -> P:
        return self

    def __exit__(self, *error: object) -> None:
        self.reset()

    def reset(self) -> None:
        """Publish nothing more. Messages that were published are still sent."""
        if self._publisher is not None:
            self._publisher.close()
            self._publisher = None

    def publish(self, data: Any) -> None:
        """Send an object to all subscribers of the topic; waits while one of them is too slow."""
        self._open.publish(to_value(data))

    def publish_batch(self, *batch: Any) -> None:
        """Each of the objects, one after the other; or none, if one of them has no data type."""
        publisher = self._open
        for value in [to_value(data) for data in batch]:
            publisher.publish(value)

    def buffered(self) -> int:
        """Messages that the endpoint has still to send, those of other publishers, too."""
        return self._open.waiting

    def capacity(self) -> int:
        """How many may wait."""
        return self._open.capacity

    def free_capacity(self) -> int:
        """How many more may wait."""
        return max(0, self.capacity() - self.buffered())

    def fd(self) -> int:
        """A descriptor that can be read from while publishing does not wait: for select, poll and asyncio."""
        return self._open.fileno()

    def drop_all_on_destruction(self) -> None:
        """Changes nothing, as in libbroker: published messages are sent."""

    @property
    def _open(self) -> overlay.Publisher:
        """Raises AttributeError after :meth:`reset`, as the bindings do."""
        if self._publisher is None:
            raise AttributeError("this Publisher was reset")
        return self._publisher
