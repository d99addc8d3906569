"""Measuring and reading any partition takes no turn of the hub of 20 ms."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import pytest
from broker.clients import Client
from broker.positions.octets import Octets
from timing import each_time, short_turns

from dafka import Broker
from dafka.protocol import raw
from dafka.protocol.batch_writer import encode_batch

CONTENTS: dict[str, Callable[[], list[bytes]]] = {
    "large batches of equal messages": lambda: [raw.encode_bulk([[b"x" * 100]] * 8000, 1000)] * 20,
    "large batches of unlike messages": lambda: (
        [raw.encode_bulk([[b"x" * (number % 200)] for number in range(8000)], 1000)] * 5
    ),
    "batches of one message": lambda: [raw.encode_bulk([[b"x" * 100]], 1000)] * 10_000,
    "batches of empty messages": lambda: [raw.encode_bulk([[b""]] * 20_000, 1000)] * 5,
    "messages of many frames": lambda: [raw.encode_bulk([[b"x"] * 1000] * 20, 1000)] * 20,
    "one message of many frames": lambda: [raw.encode_bulk([[b""] * 200_000], 1000)],
    "a batch that unfolds to very much": lambda: [
        encode_batch([(1000, None, bytes(1000), ())] * 20_000, compression="gzip")
    ],
}


@pytest.mark.parametrize("content", CONTENTS)
@each_time
def test_a_partition_is_measured_and_read_in_short_turns(content: str) -> None:
    with Broker() as broker:
        measure_and_read(Client(broker), batches(content))


@lru_cache(maxsize=1)  # which attempts share
def batches(content: str) -> list[bytes]:
    return CONTENTS[content]()


def measure_and_read(client: Client, batches: list[bytes]) -> None:
    client.create("t")
    for begin in range(0, len(batches), 500):
        produced = client.call("produce", {("t", 0): batches[begin : begin + 500]})["t", 0]
        assert produced.error is None
    octets = Octets(client)
    with short_turns():
        octets.call("catch_up")
    end = octets.end
    with short_turns():
        assert len(octets.read(0, 4 << 20)) == min(end, 4 << 20)
    with short_turns():
        octets.call("messages", 0, 1 << 20)
        octets.call("messages", end // 2, 1 << 16)
        octets.call("position_of", octets.call("offset_of", end // 2))
