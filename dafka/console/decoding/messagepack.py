"""MessagePack."""

from __future__ import annotations

from typing import Any

from dafka.console import limits
from dafka.console.decoding.errors import DecodingError
from dafka.console.decoding.plain import Pairs

_CONTAINERS = frozenset({*range(0x80, 0xA0), 0xDC, 0xDD, 0xDE, 0xDF})  # first octets of maps and lists


def may_be_messagepack(content: bytes) -> bool:
    """Whether octets begin like a map or a list; one number alone is too easily found in anything."""
    return content[0] in _CONTAINERS if content else False


def decode_messagepack(content: bytes) -> Any:
    """The value. Raises DecodingError."""
    try:
        import msgpack
    except ImportError:
        raise DecodingError("MessagePack needs msgpack: pip install 'dafka[console]'") from None
    parts = values = 0

    def count(some: Any) -> Any:
        nonlocal parts, values
        parts += 1
        values += len(some)
        if parts > limits.DECODED_PARTS or values > limits.DECODED_VALUES:
            raise DecodingError("it holds too many values")
        return some

    def pairs(some: list[Any]) -> Pairs:
        return Pairs(count(some))

    try:
        return msgpack.unpackb(
            content,
            list_hook=count,
            object_pairs_hook=pairs,
            ext_hook=lambda code, data: {"extension": code, "data": data},
            strict_map_key=False,
            max_array_len=limits.DECODED_VALUES,  # room for so many is taken before there is one
            max_map_len=limits.DECODED_VALUES,
            unicode_errors="surrogateescape",
        )
    except DecodingError:
        raise
    except msgpack.ExtraData as error:
        raise DecodingError(f"it is not MessagePack: {len(error.extra)} octets are left over") from None
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise DecodingError(f"it is not MessagePack: {error or type(error).__name__}") from None
