"""The error that ends a migration, in words for its user."""

from __future__ import annotations

from dafka.protocol.errors import DafkaError


class MigrationError(DafkaError):
    """The migration cannot go on; the message says why and what to do."""
