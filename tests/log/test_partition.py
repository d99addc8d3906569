"""The keys by which a folder knows its partitions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafka.log import Log
from dafka.log.partition import (
    LogPartition,
    pack_dropped,
    pack_floor,
    pack_partition,
    unpack_dropped,
    unpack_floor,
    unpack_partition,
)

numbers = st.integers(0, 2**32 - 1)
names = st.binary(max_size=255)


@given(numbers, names, names)
def test_a_partitions_key_holds_its_number_and_names(number: int, topic: bytes, address: bytes) -> None:
    assert unpack_partition(pack_partition(number, topic, address)) == (number, topic, address)


@given(numbers, st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_a_floors_key_holds_the_first_sequence_and_offset(number: int, sequence: int, offset: int) -> None:
    assert unpack_floor(pack_floor(number, sequence, offset)) == (number, sequence, offset)


@given(numbers)
def test_the_key_of_a_deleted_partition_holds_its_number(number: int) -> None:
    assert unpack_dropped(pack_dropped(number)) == number


@pytest.mark.parametrize(
    ("unpack", "key"),
    [
        (unpack_partition, pack_partition(1, b"topic", b"")[:-1]),
        (unpack_partition, pack_partition(1, b"", b"")[:-1]),
        (unpack_floor, pack_floor(1, 2, 3)[:-1]),
        (unpack_floor, pack_floor(1, 2, 3) + b"\0"),
        (unpack_dropped, pack_dropped(1) + b"\0"),
    ],
)
def test_keys_of_another_length_are_refused(unpack: Callable[[bytes], object], key: bytes) -> None:
    with pytest.raises(ValueError, match="key"):
        unpack(key)


def test_the_offset_behind_whole_values_is_known_by_sequence(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        partition = log.partition(b"t", b"A")
        for _ in range(3):
            log.write([(partition, [bytes(10_000)] * 2)])  # too large to be merged
        assert [partition.offset_behind(sequence) for sequence in range(7)] == [0, 0, 2, 2, 4, 4, 6]
        log.trim(partition, before_sequence=4)
        assert [partition.offset_behind(sequence) for sequence in range(7)] == [4, 4, 4, 4, 4, 4, 6]


@pytest.mark.parametrize("values", [1, 3, 30])
def test_partitions_are_made_of_their_keys_when_somebody_asks_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: int
) -> None:
    made: list[bytes] = []
    make = LogPartition.__init__

    def note(self: LogPartition, topic: bytes, *arguments: Any, **options: Any) -> None:
        made.append(topic)
        make(self, topic, *arguments, **options)

    names = [(b"t%d" % number, b"A") for number in range(20)]
    with Log(tmp_path) as log:
        for _ in range(values):
            log.write([(log.partition(*name), [bytes(10_000)]) for name in names])  # too large to be merged
        written = {one.topic: list(one.index) for one in log.partitions()}
    monkeypatch.setattr(LogPartition, "__init__", note)
    with Log(tmp_path) as log:
        assert log.names() == names
        assert made == ([] if values < 16 else [topic for topic, _ in names])
        found = log.partition(*names[7])
        assert (found.number, list(found.index)) == (7, written[b"t7"])
        assert log.find(*names[7]) is found is log.partitions()[7]
        assert {one.topic: list(one.index) for one in log.each_partition()} == written
        assert sorted(made) == sorted(topic for topic, _ in names)


def test_partitions_that_are_dropped_meanwhile_are_left_out(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.write([(log.partition(b"t%d" % number, b"A"), [b"1"]) for number in range(3)])
    with Log(tmp_path) as log:
        topics = []
        for partition in log.each_partition():
            topics.append(partition.topic)
            if partition.topic == b"t0":
                log.drop(log.partition(b"t1", b"A"))
        assert topics == [b"t0", b"t2"]
