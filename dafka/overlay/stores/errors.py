"""Errors of a store's operations; ``code`` is Broker's number."""

from __future__ import annotations

from dafka.overlay.errors import InvalidValue
from dafka.overlay.wire.codes import ErrorCode
from dafka.protocol.errors import DafkaError


class TypeClash(InvalidValue):
    """An operation that the type of a value does not have."""


class StoreError(DafkaError):
    """Base of the errors of stores."""

    def __init__(self, code: ErrorCode, text: str) -> None:
        self.code = code
        super().__init__(text)


class StoreRefused(StoreError):
    """A store that cannot be attached."""


class NoSuchKey(StoreError, KeyError):
    """The store, or a value in it, has no such key or index."""

    __str__ = Exception.__str__


class WrongType(StoreError, TypeError):
    """The type of the value does not have this operation."""


class NotAnswered(StoreError, TimeoutError):
    """A question was not answered in time: there is no master, or it is too far away, or was never heard."""


class BackendFailure(StoreError):
    """The disk of the content is full or damaged, or the store has reached one of its bounds."""


_CLASSES: dict[ErrorCode, type[StoreError]] = {
    ErrorCode.NO_SUCH_KEY: NoSuchKey,
    ErrorCode.TYPE_CLASH: WrongType,
    ErrorCode.REQUEST_TIMEOUT: NotAnswered,
    ErrorCode.NO_SUCH_MASTER: NotAnswered,
    ErrorCode.STALE_DATA: NotAnswered,
    ErrorCode.BACKEND_FAILURE: BackendFailure,
    ErrorCode.MASTER_EXISTS: StoreRefused,
}


def error_of(code: ErrorCode, text: str) -> StoreError:
    """The error that stands for a code."""
    return _CLASSES.get(code, StoreError)(code, text)
