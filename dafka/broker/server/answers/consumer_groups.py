"""Groups of KIP-848, of which this broker has none: ConsumerGroupHeartbeat and ConsumerGroupDescribe.

Apache Kafka announces both also where it has the classic protocol only, and answers UNSUPPORTED_VERSION. So a
client with ``group.protocol=consumer`` fails at once and says why; one that saw neither announced would wait
for ever. kafka-python has no classes for them, so they are read and written by hand.
"""

from __future__ import annotations

import struct

from kafka.errors import UnsupportedVersionError

from dafka.broker.codec.errors import error_code
from dafka.broker.codec.framing import array_size, compact_string
from dafka.broker.codec.reader import Items, naming_errors, read_compact_string, read_count

_ERROR = struct.pack(">h", error_code(UnsupportedVersionError))
_NOT_THROTTLED = bytes(4)
_NO_OPERATIONS = struct.pack(">i", -(2**31))


def heartbeat(data: memoryview, position: int, version: int) -> bytes:
    """The answer to ConsumerGroupHeartbeat."""
    # No message, no member, epoch 0, interval 0, no assignment, no tags.
    return _NOT_THROTTLED + _ERROR + b"\0" + b"\0" + bytes(4) + bytes(4) + b"\xff" + b"\0"


@naming_errors("ConsumerGroupDescribeRequest")
def describe(data: memoryview, position: int, version: int) -> bytes:
    """The answer to ConsumerGroupDescribe. Raises BadRequestError."""
    count, position = read_count(data, position, True, Items())
    groups = bytearray()
    for _ in range(count):
        group, position = read_compact_string(data, position)
        # No message, no state, epochs 0, no assignor, no members, no operations, no tags.
        groups += _ERROR + b"\0" + compact_string(group or "") + b"\1" + bytes(4) + bytes(4) + b"\1" + b"\1"
        groups += _NO_OPERATIONS + b"\0"
    return _NOT_THROTTLED + array_size(count, True) + bytes(groups) + b"\0"
