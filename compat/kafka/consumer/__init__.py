"""The consumer: ``KafkaConsumer``, as in ``kafka.consumer``."""

from __future__ import annotations

from compat.kafka._mirror import counterpart_names
from compat.kafka.consumer.group import KafkaConsumer

__all__ = ["KafkaConsumer"]

__getattr__ = counterpart_names(__name__)
