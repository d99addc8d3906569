"""Errors of a whole broker. Errors of one topic or partition are classes of kafka.errors."""

from __future__ import annotations

from kafka.errors import KafkaConnectionError, KafkaError

from dafka.protocol.errors import DafkaError


class BrokerStoppedError(DafkaError, KafkaError):
    """The broker has been stopped, or was not started yet. A KafkaError, and not one to try again after."""


class LoginRefusedError(DafkaError, KafkaConnectionError):
    """A broker refuses the login of a client. Clients try again, as its accounts may change."""
