"""Transactions on a compacted topic of a broker that is killed: the records written, and those that must be
left.

Two transactional producers write to the same few keys at the same time. Each transaction knows from its first
record how it will end, and its records say so: a reader of committed records sees none that is to be aborted,
and of each key the newest that was committed.
"""

from __future__ import annotations

import random
from typing import Any

from log.expecting import expect

from dafka.broker.interface.broker import EARLIEST, FetchFrom
from dafka.protocol.batch import read_header, with_producer
from dafka.protocol.batch_control import commits
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_writer import encode_batch

TOPIC = "ledger"
KEYS = 12
_PARTITION = TOPIC, 0
_PRODUCERS = "left", "right"
_FETCH_BYTES = 4_000_000


class Writer:
    """One of the producers."""

    def __init__(self, call: Any, transactional_id: str) -> None:
        self._call = call
        error, *identity = call("init_producer_id", transactional_id, 60.0)  # aborts what was left open
        assert error is None, error
        self._who = transactional_id, *identity
        self._sequence = 0
        self._fate: bool | None = None  # whether the open transaction will be committed
        self._written: dict[str, int] = {}

    def step(self, choice: random.Random) -> dict[str, int]:
        """Begin a transaction, write to it or end it; the offsets of keys that are committed now."""
        if self._fate is None:
            self._fate = choice.random() < 0.5
            assert self._call("add_partitions_to_transaction", *self._who, [_PARTITION]) == {_PARTITION: None}
        elif choice.random() < 0.3:
            assert self._call("end_transaction", *self._who, self._fate) is None
            committed = self._written if self._fate else {}
            self._fate, self._written = None, {}
            return committed
        value = b"committed" if self._fate else b"aborted"
        keys = [f"key {choice.randrange(KEYS)}" for _ in range(choice.choice((1, 1, 2, 5)))]
        content = encode_batch([(0, key.encode(), value, ()) for key in keys])
        content = with_producer(content, *self._who[1:], self._sequence, transactional=True)
        produced = self._call("produce", {_PARTITION: [content]}, transactional_id=self._who[0])[_PARTITION]
        assert produced.error is None, produced
        self._sequence += len(keys)
        self._written |= {key: produced.base_offset + place for place, key in enumerate(keys)}
        return {}


class Ledger:
    """Both producers, and the newest committed offset of each key."""

    def __init__(self, call: Any) -> None:
        self._writers = [Writer(call, name) for name in _PRODUCERS]
        self.newest = read(call)

    def step(self, choice: random.Random) -> None:
        for writer in self._writers:
            for key, offset in writer.step(choice).items():
                self.newest[key] = max(offset, self.newest.get(key, -1))


def check(call: Any, said: dict[str, int]) -> int:
    """Compare what is there with what was ``said``; the number of keys. Raises Loss."""
    for name in _PRODUCERS:
        Writer(call, name)
    newest = read(call)
    for key, offset in said.items():
        found = newest.get(key)
        expect(found is not None and found >= offset, f"{key!r} was committed at {offset} and is at {found}")
    return len(newest)


def read(call: Any) -> dict[str, int]:
    """The newest offset of each key, as a reader of committed records finds it. Raises Loss."""
    newest: dict[str, int] = {}
    offset = call("list_offsets", {_PARTITION: EARLIEST})[_PARTITION].offset
    while True:
        wanted = {_PARTITION: FetchFrom(offset, _FETCH_BYTES)}
        limits = {"max_wait": 0, "min_bytes": 1, "max_bytes": _FETCH_BYTES}
        fetched = call("fetch", wanted, **limits, read_committed=True)[_PARTITION]
        if offset >= fetched.last_stable_offset:
            return newest
        expect(fetched.error is None and fetched.batches, f"{TOPIC}: {offset} cannot be read")
        begins = sorted((first, producer_id) for producer_id, first in fetched.aborted)
        aborting: set[int] = set()
        for content in fetched.batches:
            header = read_header(content)
            while begins and begins[0][0] <= header.base_offset:
                aborting.add(begins.pop(0)[1])
            if header.is_control:
                if not commits(content):
                    aborting.discard(header.producer_id)
            elif header.producer_id not in aborting:
                columns = decode_batch(content)
                for at, key, value in zip(columns.offsets, columns.keys, columns.values, strict=True):
                    expect(value == b"committed", f"{TOPIC}: {at} is read, and was not committed")
                    newest[(key or b"").decode()] = at
            offset = header.next_offset
