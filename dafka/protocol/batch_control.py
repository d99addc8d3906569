"""Control batches: the markers that end a transaction in a partition.

A control batch holds one record. Its key is the version (0) and the type (0 abort, 1 commit), 16 bits each;
its value is the version (0) and the epoch of the coordinator that wrote it. It takes an offset like any
other batch, and readers skip it. Layout: Kafka protocol guide, "Control Batch", and KIP-98.
"""

from __future__ import annotations

import struct

from crc32c import crc32c

from dafka.protocol.batch import (
    ATTRIBUTES,
    CONTROL_BIT,
    CRC_END,
    CRC_START,
    TRANSACTIONAL_BIT,
    BatchError,
    with_producer,
)
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_writer import encode_batch

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
_ABORT, _COMMIT = 0, 1


def encode_marker(
    timestamp: int, producer_id: int, epoch: int, *, commit: bool, coordinator_epoch: int = 0
) -> bytes:
    """The batch that commits or aborts the transaction of a producer; ``timestamp`` in ms."""
    record = (timestamp, _KEY.pack(0, _COMMIT if commit else _ABORT), _VALUE.pack(0, coordinator_epoch), ())
    batch = bytearray(with_producer(encode_batch([record]), producer_id, epoch, -1))
    batch[ATTRIBUTES] |= TRANSACTIONAL_BIT | CONTROL_BIT
    batch[CRC_START:CRC_END] = crc32c(memoryview(batch)[CRC_END:]).to_bytes(4, "big")
    return bytes(batch)


def commits(batch: bytes) -> bool:
    """Whether a control batch commits its transaction; raises BatchError if it is not a marker."""
    keys = decode_batch(batch).keys
    key = keys[0] if keys else None
    if key is None or len(key) < _KEY.size:
        raise BatchError("control", f"a control record's key is {key!r}")
    kind = int(_KEY.unpack_from(key)[1])
    if kind not in (_ABORT, _COMMIT):
        raise BatchError("control", f"a control record of type {kind}")
    return kind == _COMMIT
