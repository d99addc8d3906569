"""What a killed broker must have left: see :mod:`log.killed_broker`."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from log import killed_broker as program
from log import ledger
from log.expecting import Survived, expect, expect_undamaged
from log.killed_broker import COMPACTED, GROUP, PARTITIONS, PLAIN, RECORD_BYTES, RETENTION_BYTES, TEMPORARY

from dafka import Broker
from dafka.broker import connect
from dafka.broker.interface.broker import EARLIEST, LATEST, FetchFrom
from dafka.broker.interface.positions import PositionOutOfRangeError
from dafka.hub.hub import get_hub
from dafka.log import dirty_bytes
from dafka.protocol import raw
from dafka.protocol.batch import read_header
from dafka.protocol.batch_reader import decode_batch

_FETCH_BYTES = 4_000_000
_KEPT = RETENTION_BYTES // (RECORD_BYTES + 30) - 1  # records, with what a batch adds to each


def check(folder: Path, said: dict[str, Any]) -> Survived:
    """Reopen the broker and compare it with what was said; raises Loss."""
    records = 0
    with program.open_broker(str(folder), "process") as broker:
        call = connect(broker.bootstrap_servers).call
        ends, starts = program.offsets(call, LATEST), program.offsets(call, EARLIEST)
        groups = call("fetch_offsets", GROUP)
        for number, (topic, partition) in enumerate(PARTITIONS):
            start, end = starts[number], ends[number]
            place = f"{topic}/{partition}"
            expect(end >= said["ends"][number], f"{place} ends at {end}, {said['ends'][number]} was said")
            expect(start >= said["starts"][number], f"{place} begins at {start}: deleted records are back")
            committed = groups[topic, partition].offset if (topic, partition) in groups else 0
            least = said["committed"][number]
            expect(least <= committed <= end, f"{place}: {committed} is committed, {least} was said")
            # Retention goes on in this broker, too: records read may begin later than they did.
            found = read(call, topic, partition, end)
            records += len(found)
            if topic == PLAIN:
                asked = start <= said["deleted"][number] or end - start >= _KEPT
                expect(asked, f"{place} has {end - start} records, more were to be kept")
                first = min(found, default=end)
                expect(
                    sorted(found) == list(range(first, end)), f"{place} has gaps between {first} and {end}"
                )
            else:
                expect(start == 0, f"{place} is compacted and begins at {start}")
                check_compacted(found, end)
            for offset, (key, value) in found.items():
                expect((key, value) == program.record(topic, partition, offset), f"{place}: {offset} differs")
        check_positions(broker)
        records += ledger.check(call, said["ledger"])
        core = connect(broker.bootstrap_servers).broker
        known = {one.name for one in call("metadata", None).topics.values()}
        if TEMPORARY not in known:
            what = "the records of a deleted topic stay on disk"
            until(lambda: all(one.topic != TEMPORARY.encode() for one in core.log.partitions()), what)
        # What was compacted in part until the kill is compacted now; the next broker goes on from there.
        stored = [one for one in core.log.partitions() if one.topic == COMPACTED.encode()]
        until(lambda: not any(dirty_bytes(core.log, one)[0] for one in stored), "compaction does not end")
        check_compacted(read(call, COMPACTED, 0, ends[-1]), ends[-1])
        until(lambda: not core.log.space.sweeps, "files that no row names are looked for without end")
    expect_undamaged(folder)
    return Survived(0, records)


def read(call: Any, topic: str, partition: int, end: int) -> dict[int, tuple[bytes | None, bytes | None]]:
    """All records by their offsets."""
    key = topic, partition
    found: dict[int, tuple[bytes | None, bytes | None]] = {}
    offset = call("list_offsets", {key: EARLIEST})[key].offset
    while offset < end:
        wanted = {key: FetchFrom(offset, _FETCH_BYTES)}
        fetched = call("fetch", wanted, max_wait=0, min_bytes=1, max_bytes=_FETCH_BYTES)[key]
        if fetched.log_start_offset > offset:
            offset, found = fetched.log_start_offset, {}
            continue
        expect(fetched.error is None and fetched.batches, f"{topic}/{partition}: {offset} cannot be read")
        for content in fetched.batches:
            columns = decode_batch(content)
            records = zip(columns.keys, columns.values, strict=True)
            found |= {at: one for at, one in zip(columns.offsets, records, strict=True) if at >= offset}
        offset = read_header(fetched.batches[-1]).next_offset
    return found


def check_positions(broker: Broker) -> None:
    """All records have the same number of octets, so a position follows from the one that they began at."""
    size = raw.message_sizes([[bytes(RECORD_BYTES)]])[0]
    for number in range(2):
        positions = program.positions_of(broker, number)
        begin = positions._checkpoints.begin
        place = f"positions of {PLAIN}/{number}"

        def look(positions: Any = positions) -> tuple[int, int, int, bytes]:
            positions.catch_up()
            while True:
                first = positions.first
                with suppress(PositionOutOfRangeError):  # retention goes on
                    octets = positions.read(first, 40 * size)
                    return first, positions.end, positions.offset_of(first), octets

        first, end, offset, octets = get_hub().run(look)
        expect(first == begin.position + size * (offset - begin.offset), f"{place}: {offset} is at {first}")
        expect((end - first) % size == 0, f"{place} end at {end}")
        for message in raw.decode_messages(octets)[0]:
            expect(message == [program.record(PLAIN, number, offset)[1]], f"{place}: {offset} is {message}")
            offset += 1


def check_compacted(found: dict[int, tuple[bytes | None, bytes | None]], end: int) -> None:
    newest = {program.record(COMPACTED, 0, offset)[0]: offset for offset in range(end)}
    kept = {key: offset for offset, (key, _) in sorted(found.items())}
    for key, offset in newest.items():
        if program.record(COMPACTED, 0, offset)[1] is not None:  # a tombstone may have gone
            expect(kept.get(key) == offset, f"{key!r} should be at {offset} and is at {kept.get(key)}")
    for key, offset in kept.items():
        expect(offset == newest[key], f"{key!r} is back at {offset} though {newest[key]} was written")


def until(holds: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        expect(time.monotonic() < deadline, otherwise)
        time.sleep(0.01)
