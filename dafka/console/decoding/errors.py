"""Why octets are not decoded."""

from __future__ import annotations

from dafka.protocol.errors import DafkaError


class DecodingError(DafkaError):
    """Octets that are not what they are decoded as; its text is shown beside them."""
