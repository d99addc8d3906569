"""Keys, values and headers of a record on their way from the program to octets."""

from __future__ import annotations

import warnings
from typing import Any

from kafka.errors import MessageSizeTooLargeError
from kafka.record.default_records import DefaultRecordBatchBuilder

from dafka.protocol.batch import HEADERS_LIMIT
from dafka.protocol.compression import DECOMPRESSED_LIMIT

HEADER_OCTETS = 4
"""How many octets a header takes besides its name and value, by an estimate that is not too low."""
MOST_OCTETS = min(HEADER_OCTETS * HEADERS_LIMIT, DECOMPRESSED_LIMIT)
"""By this estimate a smaller record can be read, whatever it is made of."""

_NO_HEADER = "All headers items must be (str, bytes) tuples"


def headers_size(headers: Any) -> int:
    """The octets of all headers, -1 if there are none.

    Raises:
        TypeError: not a list of pairs of a string and octets.
    """
    # Types are compared before isinstance() is called: this runs for each record with headers.
    if type(headers) is not list and not isinstance(headers, list):
        raise TypeError("headers must be list-type")
    size = 0
    for item in headers:
        if (type(item) is not tuple and not isinstance(item, tuple)) or len(item) != 2:
            raise TypeError(_NO_HEADER)
        name, value = item
        if (type(name) is not str and not isinstance(name, str)) or (
            type(value) is not bytes and not isinstance(value, bytes)
        ):
            raise TypeError(_NO_HEADER)
        size += len(value) + (len(name) if name.isascii() else len(name.encode()))
    return size if headers else -1


def as_bytes(serialized: Any, what: str) -> bytes:
    """Octets of its own for a batch: a buffer may change before it is encoded."""
    if type(serialized) in (bytearray, memoryview):
        return bytes(serialized)
    raise TypeError(f"Unsupported type for serialized {what}: {type(serialized)}")


def serialize(config: Any, topic: str, headers: Any, key: Any, value: Any) -> tuple[Any, Any]:
    """Key and value after the configured serializers."""
    headers = [] if headers is None else headers
    if config["key_serializer"] is not None:
        key = _apply(config["key_serializer"], topic, headers, key)
    if config["value_serializer"] is not None:
        value = _apply(config["value_serializer"], topic, headers, value)
    return key, value


def _apply(serializer: Any, topic: str, headers: Any, data: Any) -> Any:
    """``data`` after the serializer; serializers for older versions have no parameter for headers."""
    try:
        return serializer.serialize(topic, headers, data)
    except TypeError as error:
        try:
            serialized = serializer.serialize(topic, data)
        except TypeError:
            raise error from None  # it was not about the number of arguments
        message = "serializer does not implement serialize(topic, headers, data)"
        warnings.warn(message, DeprecationWarning, stacklevel=4)
        return serialized


def check_size(limit: int, key: bytes | None, value: bytes | None, headers: Any) -> None:
    """Refuse a record that is larger than ``max_request_size``, or that no consumer would read.

    Raises:
        MessageSizeTooLargeError.
    """
    size = DefaultRecordBatchBuilder.estimate_size_in_bytes(key, value, headers or [])
    if size > limit:
        raise MessageSizeTooLargeError(
            f"The message is {size} bytes when serialized which is larger than the maximum request "
            f"size you have configured with the max_request_size configuration ({limit})"
        )
    if size > DECOMPRESSED_LIMIT:
        raise MessageSizeTooLargeError(
            f"A record has at most {DECOMPRESSED_LIMIT} bytes, this one has {size}"
        )
    if headers and len(headers) > HEADERS_LIMIT:
        raise MessageSizeTooLargeError(
            f"A record has at most {HEADERS_LIMIT} headers, this one has {len(headers)}"
        )
