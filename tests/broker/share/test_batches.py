"""Which records were acquired together when they were first delivered, and the parts in which they come."""

from __future__ import annotations

import random

import pytest
from broker.share.taking import acquire

from dafka.broker.interface.share import AcknowledgeType
from dafka.broker.share import batches as batches_module
from dafka.broker.share.acquisition import Terms
from dafka.broker.share.batches import Batches
from dafka.broker.share.partition import Acknowledged, LogBatch, SharePartition
from dafka.broker.share.runs import RecordState

TERMS = Terms(lock=30.0, deliveries=5, in_flight=100)
LOG = [LogBatch(0, 5), LogBatch(6, 11)]
LOG_OFFSETS = list(range(12))
AVAILABLE, ACKNOWLEDGED = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED


def take(partition: SharePartition, records: int = 500, **options: object) -> list[int]:
    begin = partition.next_offset(TERMS)
    assert begin is not None
    log = [batch for batch in LOG if batch.last >= begin]
    acquired = acquire(partition, 0.0, "m", begin, log, TERMS, records=records, **options)  # type: ignore[arg-type]
    return [offset for first, last, _ in acquired for offset in range(first, last + 1)]


def say(partition: SharePartition, first: int, last: int, type_: int) -> None:
    partition.acknowledge(0.0, "m", [Acknowledged(first, last, [type_])], TERMS)
    partition.take_changes()
    partition.written()


def together(partition: SharePartition, firsts: list[int]) -> None:
    """Records were acquired together from each of these on."""
    batches = Batches(firsts)
    batches.deliveries = partition._batches.deliveries
    partition._batches = batches


def again(partition: SharePartition, offsets: list[int], times: int = 1) -> None:
    """Give offsets back, and take the same ones again so many times less one."""
    for number in range(times):
        say(partition, offsets[0], offsets[-1], AcknowledgeType.RELEASE)
        if number < times - 1:
            assert take(partition) == offsets


def test_records_that_were_acquired_together_are_halved_together() -> None:
    partition = SharePartition(0)
    everything = take(partition)
    again(partition, everything, 3)
    assert take(partition) == [0, 1, 2, 3, 4, 5]


def test_those_of_two_acquisitions_are_not_one_part_though_they_were_delivered_as_often() -> None:
    partition = SharePartition(0)
    first, second = take(partition, 1), take(partition, 1)
    assert (first, second) == (LOG_OFFSETS[:6], LOG_OFFSETS[6:])
    again(partition, LOG_OFFSETS, 3)
    assert take(partition) == [0, 1, 2]


def test_the_size_of_a_part_goes_by_all_that_were_acquired_together() -> None:
    partition = SharePartition(0)
    again(partition, take(partition), 2)
    assert len(take(partition)) == 12
    say(partition, 0, 3, AcknowledgeType.ACCEPT)
    say(partition, 4, 11, AcknowledgeType.RELEASE)
    assert take(partition) == [4, 5, 6, 7, 8, 9]


def test_those_that_come_as_ever_count_as_well_and_too_many_of_them_end_the_limit() -> None:
    for slow, expected in ((5, [0, 1, 2, 3, 4, 5]), (7, LOG_OFFSETS)):
        partition = SharePartition(0)
        again(partition, take(partition), 2)
        assert take(partition) == LOG_OFFSETS
        partition.restore(
            0,
            [(0, slow - 1, AVAILABLE, 2), (slow, 11, AVAILABLE, 3)],
        )
        together(partition, [0])
        assert take(partition) == expected


def test_records_on_their_last_delivery_come_alone_and_nothing_behind_slow_ones() -> None:
    partition = SharePartition(0)
    partition.restore(0, [(0, 5, AVAILABLE, 4)])
    assert [take(partition) for _ in range(6)] == [[0], [1], [2], [3], [4], [5]]
    assert take(partition) == [6, 7, 8, 9, 10, 11]


def test_slow_ones_are_not_taken_behind_others() -> None:
    partition = SharePartition(0)
    partition.restore(0, [(0, 3, AVAILABLE, 1), (4, 5, AVAILABLE, 3)])
    assert take(partition) == [0, 1, 2, 3]
    assert take(partition) == [4]


def test_after_a_restart_each_range_that_was_stored_is_one() -> None:
    partition = SharePartition(0)
    partition.restore(0, [(0, 7, AVAILABLE, 3), (8, 11, AVAILABLE, 2)])
    assert take(partition) == [0, 1, 2, 3]


def test_a_batch_of_the_log_of_which_only_so_many_were_wanted_is_one() -> None:
    partition = SharePartition(0)
    assert take(partition, 2, strict=True) == [0, 1]
    assert take(partition, 4, strict=True) == [2, 3, 4, 5]
    for _ in range(2):
        say(partition, 0, 5, AcknowledgeType.RELEASE)
        assert take(partition, 6, strict=True) == [0, 1, 2, 3, 4, 5]
    say(partition, 0, 5, AcknowledgeType.RELEASE)
    assert take(partition) == [0, 1, 2]


def test_a_batch_is_found_by_each_of_its_offsets() -> None:
    batches = Batches()
    for first in (0, 4, 6):
        batches.begin(first)
    assert [batches.around(offset, 9) for offset in (0, 3, 4, 5, 6, 8)] == [
        *([(0, 3)] * 2),
        *([(4, 5)] * 2),
        *([(6, 8)] * 2),
    ]
    batches.forget_below(5)
    assert batches.around(5, 9) == (4, 5)
    batches.forget_from(6)
    assert batches.around(5, 6) == (4, 5)


def test_there_is_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches_module, "BATCHES_KNOWN", 100)
    batches = Batches()
    for first in range(0, 2000, 2):
        batches.begin(first)
    assert len(batches._firsts) <= 100 and batches.around(1998, 2000) == (1998, 1999)


def reference(counts: list[int | None], batch_of: list[int], deliveries: int, records: int) -> list[int]:
    """What Apache Kafka 4.3 acquires of available offsets (None: not available), offset by offset."""
    slow = max(2, (deliveries + 1) // 2)
    taken: list[int] = []
    for batch in dict.fromkeys(batch_of):
        offsets = [offset for offset, one in enumerate(batch_of) if one == batch]
        available = [offset for offset in offsets if counts[offset] is not None]
        is_slow = deliveries > 2 and any((counts[one] or 0) >= slow for one in available)
        if len(taken) >= records or (is_slow and taken):
            return taken
        part = -1
        for offset in available:
            count = counts[offset] or 0
            if is_slow and count == deliveries - 1 and taken:
                break
            if is_slow and count >= slow and part < 0:
                part = max(1, len(offsets) >> (count - slow + 1))
            taken.append(offset)
            if is_slow and (count == deliveries - 1 or len(taken) == part):
                break
        if is_slow and taken:
            return taken
    return taken


@pytest.mark.parametrize("first", range(0, 2000, 500))
def test_random_states_are_acquired_as_by_kafkas_rule(first: int) -> None:
    for seed in range(first, first + 500):
        dice = random.Random(seed)
        size, deliveries, records = dice.randint(1, 30), dice.randint(2, 8), dice.choice([1, 5, 500])
        firsts = sorted({0, *(dice.randrange(size) for _ in range(dice.randint(0, 3)))})
        batch_of = [max(one for one in firsts if one <= offset) for offset in range(size)]
        low = dice.randint(0, deliveries - 1)
        counts = [
            None if dice.random() < 0.15 else dice.randint(low, min(low + dice.randint(0, 2), deliveries - 1))
            for _ in range(size)
        ]
        if counts[0] is None:
            counts[0] = low
        partition, terms = SharePartition(0), TERMS._replace(deliveries=deliveries)
        partition.restore(
            0,
            [
                (offset, offset, ACKNOWLEDGED if count is None else AVAILABLE, count or 0)
                for offset, count in enumerate(counts)
            ],
        )
        together(partition, firsts)
        acquired = acquire(partition, 0.0, "m", 0, [LogBatch(0, size - 1)], terms, records=records)
        found = [offset for begin, end, _ in acquired for offset in range(begin, end + 1)]
        assert found and found == reference(counts, batch_of, deliveries, records), seed
