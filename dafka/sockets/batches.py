"""Many messages as batches of octets that are small enough to be queued one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dafka.sockets import limits
from dafka.zmtp.encoding import Message, encode_all


class Batch(NamedTuple):
    """Messages as on the wire."""

    buffers: list[bytes]
    messages: int
    octets: int


def batches(messages: Sequence[Message]) -> Iterator[Batch]:
    """The messages, in order, in batches of at most SENT_MESSAGES and SENT_OCTETS, or of one message.

    The size of a batch is learned from the one before: octets are not summed up in advance.
    """
    begin, count = 0, limits.SENT_MESSAGES
    while begin < len(messages):
        some = messages[begin : begin + count]
        buffers = encode_all(some)
        octets = sum(map(len, buffers))
        if octets > limits.SENT_OCTETS and len(some) > 1:
            count = max(1, min(len(some) // 2, len(some) * limits.SENT_OCTETS // octets))
            continue
        yield Batch(buffers, len(some), octets)
        begin += len(some)
        if 2 * octets < limits.SENT_OCTETS:
            count = min(2 * count, limits.SENT_MESSAGES)
