"""A broker with faults that a test has ordered."""

from __future__ import annotations

from typing import Any

import gevent

from compat.kafka import KafkaProducer
from dafka.broker.interface.broker import Produced


class FaultyBroker:
    """The real broker, except that ``faults`` come first: classes of errors, or seconds to wait."""

    def __init__(self, producer: KafkaProducer, faults: list[Any]) -> None:
        self._broker = producer._client._broker
        self.faults = faults
        self.calls = 0
        self.options: dict[str, Any] = {}  # of the last call
        producer._client._broker = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    def produce(self, batches: Any, **options: Any) -> Any:
        self.options = options
        self.calls += 1
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, type):
            if not hasattr(fault, "errno"):
                raise fault("broken")
            return {partition: Produced(fault, detail="injected") for partition in batches}
        if fault is not None:
            gevent.sleep(fault)
        return self._broker.produce(batches, **options)
