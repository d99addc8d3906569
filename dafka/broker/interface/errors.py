"""What can go wrong with a whole broker; what concerns one topic or partition is a kafka.errors class."""

from __future__ import annotations

from kafka.errors import KafkaError

from dafka.protocol.errors import DafkaError


class BrokerStoppedError(DafkaError, KafkaError):
    """The broker has been stopped, or was not started yet. A KafkaError, and not one to try again after."""
