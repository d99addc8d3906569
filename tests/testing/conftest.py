"""The fixtures of the plugin, also where the package is not installed and pytest does not find it itself."""

from __future__ import annotations

from dafka.testing.plugin import (
    dafka_broker,
    dafka_broker_session,
    kafka_consumer_factory,
    kafka_producer,
)

__all__ = ["dafka_broker", "dafka_broker_session", "kafka_consumer_factory", "kafka_producer"]
