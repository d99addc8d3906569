"""What can go wrong with a broker as a whole; what concerns one topic or partition is a kafka.errors class."""

from __future__ import annotations

from dafka.protocol.errors import DafkaError


class BrokerStoppedError(DafkaError):
    """The broker has been stopped, or was not started yet."""
