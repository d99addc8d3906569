"""Calling the program's rebalance listener, a plain or a coroutine one, in the program's own thread."""

from __future__ import annotations

import inspect
import logging
from typing import Any

from kafka.errors import KafkaError
from kafka.structs import TopicPartition

log = logging.getLogger(__name__)


class Notices:
    """Calls to one listener (or to none) that belong together.

    An error of the listener prevents nothing; :meth:`report` raises it afterwards.
    """

    def __init__(self, listener: Any) -> None:
        self._listener = listener
        self._failure: Exception | None = None

    def tell(self, what: str, partitions: set[TopicPartition]) -> None:
        """Call ``listener.on_partitions_<what>(partitions)``."""
        if self._listener is None:
            return
        method = getattr(self._listener, f"on_partitions_{what}")
        try:
            if inspect.iscoroutinefunction(method):
                import asyncio  # here, because loading it takes time and only coroutines need it

                asyncio.run(method(partitions))
            else:
                method(partitions)
        except Exception as error:
            log.exception("User provided rebalance listener %s failed: %s", self._listener, method.__name__)
            self._failure = error

    def report(self) -> None:
        """Raise KafkaError if the listener raised something, which is the cause."""
        if self._failure is not None:
            raise KafkaError("User rebalance callback throws an error") from self._failure
