"""Errors in bytes: error codes and messages of the protocol, and requests that cannot be decoded."""

from __future__ import annotations

from kafka.errors import KafkaStorageError, NotCoordinatorError, for_code

from dafka.broker.interface.broker import Error
from dafka.protocol.errors import DafkaError


class BadRequestError(DafkaError):
    """A request that does not follow Kafka's protocol; ``cause`` is a short word for the metrics."""

    def __init__(self, cause: str, detail: str) -> None:
        self.cause = cause
        super().__init__(detail)


def error_code(error: Error | None) -> int:
    """The error code of an error; 0 for None."""
    return 0 if error is None else int(error.errno)


def coordinator_code(error: Error | None) -> int:
    """The error code of a coordinator that answers for what it stores: where it cannot, clients are to look
    for it again, and try again, as with Kafka. Most know no other error of its disk, and give up."""
    return error_code(NotCoordinatorError if error is KafkaStorageError else error)


def error_of(code: int) -> Error | None:
    """The error of an error code; None for 0."""
    return for_code(code) if code else None


def error_message(error: Error | None, detail: str | None = None) -> str | None:
    """The message for an error: ``detail``, or kafka-python's description. None without an error."""
    return None if error is None else detail or str(error.description) or str(error.message)
