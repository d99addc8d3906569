"""The producer: ``KafkaProducer``, as in ``kafka.producer``."""

from __future__ import annotations

from compat.kafka._mirror import counterpart_names
from compat.kafka.producer.kafka import KafkaProducer

__all__ = ["KafkaProducer"]

__getattr__ = counterpart_names(__name__)
