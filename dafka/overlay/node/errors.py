"""Errors of endpoints and subscribers."""

from __future__ import annotations

from dafka.protocol.errors import DafkaError


class Empty(DafkaError, TimeoutError):
    """No message came to a subscriber in the time that was given."""


class Closed(DafkaError):
    """An endpoint, a subscriber or a store was used after it was closed."""


class SlowSubscriber(DafkaError):
    """A subscriber with ``overflow="disconnect"`` was closed, because its queue was full."""


class Overloaded(DafkaError, TimeoutError):
    """A message could not be published in the time that was given: somebody who gets it is too slow."""


class AddressError(DafkaError, ValueError):
    """An address is not of the form ``"host:port"``."""


class InsecureAddress(DafkaError, ValueError):
    """An address outside of this machine, and nobody has said how connections are to be secured."""
