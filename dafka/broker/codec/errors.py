"""What is wrong with a request that cannot be answered."""

from __future__ import annotations

from dafka.protocol.errors import DafkaError


class BadRequestError(DafkaError):
    """Bytes that are no request of Kafka's protocol; ``cause`` is a short word for counting."""

    def __init__(self, cause: str, detail: str) -> None:
        self.cause = cause
        super().__init__(detail)
