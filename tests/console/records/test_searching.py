"""Following a topic whose offsets are not where they were."""

from __future__ import annotations

import json
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from dafka.broker.interface.records import EARLIEST
from dafka.broker.looking.outcomes import RefusedError
from dafka.console.decoding.decoder import Decoder
from dafka.console.records.searching import follow
from dafka.protocol.batch_writer import encode_batch


class Partition:
    """Partition 0 as a desk sees it: ``bounds`` are its first offset and its end, at each look."""

    def __init__(self, *bounds):
        self.looks = list(bounds)
        self.streaming = nullcontext

    def call(self, method, asked, **options):
        ((key, wanted),) = asked.items()
        if method == "list_offsets":
            if wanted == EARLIEST:
                self.first, self.end = self.looks.pop(0) if self.looks else (self.first, self.end)
            return {key: SimpleNamespace(error=None, offset=self.first if wanted == EARLIEST else self.end)}
        if not self.first <= wanted.offset <= self.end:
            raise RefusedError("out of range", ["OffsetOutOfRangeError"])
        rows = [(0, None, b"v", ())] * (self.end - wanted.offset)
        batches = [encode_batch(rows, base_offset=wanted.offset)] if rows else []
        return {
            key: SimpleNamespace(
                error=None, batches=batches, last_stable_offset=self.end, high_watermark=self.end
            )
        }


@pytest.mark.parametrize(
    ("later", "offsets", "skipped"),
    [((0, 2), [0, 1], 0), ((150, 152), [150, 151], 50)],
    ids=["made again", "deleted up to there"],
)
def test_a_follower_goes_on_where_the_partition_begins(later, offsets, skipped):
    desk = Partition((0, 100), later)
    events = follow(desk, "topic", [0], lambda _: True, Decoder(None))
    assert b'{"0":100}' in next(events)
    event = next(events)
    assert event.startswith(b"event: records\n")
    found = json.loads(event.partition(b"data: ")[2])
    assert [one["offset"] for one in found["records"]] == offsets and found["skipped"] == skipped
