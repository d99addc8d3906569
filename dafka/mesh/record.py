"""Record: the item that a native consumer hands to its user, made from the runs that its role delivers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

from dafka.mesh.address import address_name, topic_name
from dafka.protocol.batch import ATTRIBUTES, CONTROL_BIT, BatchError, is_batch
from dafka.protocol.batch_reader import decode_batch


class Record(NamedTuple):
    """One record of a topic.

    ``partition`` is the address of the producer that wrote it and ``sequence`` the number of the Dafka
    message that carried it. A message of a C node, or of :class:`dafka.Producer`, is one record:
    ``offset`` equals ``sequence``, ``value`` is the content, ``key`` and ``timestamp`` are None. A message
    of a broker is a Kafka record batch: its records share the ``sequence`` and have an ``offset`` each;
    ``timestamp`` is in milliseconds since the epoch.
    """

    topic: str
    partition: str
    sequence: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: Iterable[tuple[str, bytes | None]]


class Made(NamedTuple):
    """Records, made one by one in C-level loops only; the length hint of ``left`` is how many are left."""

    records: Iterator[Record]
    left: Any


_new = tuple.__new__  # of a NamedTuple, without the call in Python that its class makes of it
_make = partial(_new, Record)


def raw_records(topic: bytes, address: bytes, first: int, contents: list[bytes]) -> Made:
    """Records of consecutive raw messages, the first with sequence ``first``."""
    sequences = range(first, first + len(contents))
    left = iter(sequences)
    records = map(
        _make,
        zip(
            repeat(topic_name(topic)),
            repeat(address_name(address)),
            sequences,
            left,
            repeat(None),
            repeat(None),
            contents,
            repeat(()),
        ),
    )
    return _new(Made, (records, left))


def batch_records(topic: bytes, address: bytes, sequence: int, content: bytes) -> Made:
    """Records of one message that holds a record batch; raises :class:`BatchError`.

    A control batch, which ends a transaction of a broker's client, has none for users.
    """
    if content[ATTRIBUTES] & CONTROL_BIT:
        return Made(iter(()), ())
    columns = decode_batch(content)
    left = iter(columns.offsets)
    records = map(
        _make,
        zip(
            repeat(topic_name(topic)),
            repeat(address_name(address)),
            repeat(sequence),
            left,
            columns.timestamps,
            columns.keys,
            columns.values,
            columns.headers,
        ),
    )
    return Made(records, left)


__all__ = ["BatchError", "Made", "Record", "batch_records", "is_batch", "raw_records"]
