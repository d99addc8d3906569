"""The broker interface over TCP keeps its promises with either broker."""

from __future__ import annotations

import time

import pytest
from clients.adapters.client import SECONDS
from clients.conftest import MakeTopic
from kafka.errors import OffsetOutOfRangeError

from dafka.broker import connect
from dafka.broker.interface.broker import FetchFrom
from dafka.protocol.batch_writer import encode_batch


@pytest.mark.parametrize("offset", [0, 99])
def test_an_offset_out_of_range_comes_with_the_partitions_limits(
    servers: str, new_topic: MakeTopic, offset: int
) -> None:
    partition = (new_topic(1), 0)
    now = int(time.time() * 1000)
    connection = connect(servers, SECONDS)
    try:
        batch = encode_batch([(now, None, b"x", ())] * 3)
        assert connection.call("produce", {partition: [batch]})[partition].error is None
        assert connection.call("delete_records", {partition: 2})[partition].low_watermark == 2
        wanted = {partition: FetchFrom(offset, 1000)}
        found = connection.call("fetch", wanted, max_wait=SECONDS, min_bytes=1, max_bytes=1000)[partition]
        assert found.error is OffsetOutOfRangeError
        assert (found.log_start_offset, found.high_watermark) == (2, 3)
    finally:
        connection.close()
