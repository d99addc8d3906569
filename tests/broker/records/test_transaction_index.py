"""The index of aborted transactions, next to a list that is searched in full."""

from __future__ import annotations

import random

import pytest

from dafka.broker.limits import ABORTED_BLOCK
from dafka.broker.records.transaction_index import ABORTED, AbortedIndex, AbortedTransaction
from dafka.log import Log


@pytest.fixture
def log(tmp_path):
    with Log(tmp_path) as opened:
        yield opened


def random_history(chance: random.Random, count: int) -> list[AbortedTransaction]:
    """Transactions of several producers that overlap, in the order of their markers."""
    offset, begun, entries = 0, dict[int, int](), list[AbortedTransaction]()
    while len(entries) < count:
        producer_id = chance.randrange(6)
        if producer_id not in begun:
            begun[producer_id] = offset
        elif chance.random() < 0.5:
            first = begun.pop(producer_id)
            if chance.random() < 0.7:  # the others commit
                entries.append(
                    AbortedTransaction(producer_id, first, offset, min(begun.values(), default=offset + 1))
                )
        offset += chance.randrange(1, 5)
    return entries


@pytest.mark.parametrize("seed", range(5))
def test_it_finds_the_same_as_a_search_of_everything(log, seed):
    chance = random.Random(seed)
    entries = random_history(chance, 3 * ABORTED_BLOCK)
    index = AbortedIndex(log, "t/0")
    for entry in entries:
        log.write([], index.add(entry))
    reopened = AbortedIndex(log, "t/0")
    for _ in range(300):
        start = chance.randrange(entries[-1].last + 10)
        end = start + chance.randrange(1, 200)
        expected = [entry for entry in entries if entry.last >= start and entry.first < end]
        assert index.between(start, end) == reopened.between(start, end) == expected


def test_rows_below_the_start_of_the_log_go_and_the_others_stay(log):
    entries = random_history(random.Random(1), 3 * ABORTED_BLOCK + 5)
    index = AbortedIndex(log, "t/0")
    for entry in entries:
        log.write([], index.add(entry))
    other = AbortedIndex(log, "t/1")
    log.write([], other.add(AbortedTransaction(1, 2, 3, 4)))
    assert index.rows_below(entries[0].last + 1) == {}
    rows = index.rows_below(entries[2 * ABORTED_BLOCK].last)
    assert len(rows) == 2
    log.write([], rows)
    index.drop(len(rows))
    later = AbortedTransaction(9, entries[-1].last + 1, entries[-1].last + 2, entries[-1].last + 3)
    log.write([], index.add(later))
    expected = [*entries[2 * ABORTED_BLOCK :], later]
    assert AbortedIndex(log, "t/0").between(0, 2**60) == index.between(0, 2**60) == expected
    assert len(log.table(ABORTED)) == 3
    log.write([], dict.fromkeys(AbortedIndex.places_of(log, "t/")))
    assert len(log.table(ABORTED)) == 0


def test_an_entry_whose_round_failed_leaves_nothing(log):
    index = AbortedIndex(log, "t/0")
    kept, lost = AbortedTransaction(1, 0, 1, 2), AbortedTransaction(2, 2, 3, 4)
    log.write([], index.add(kept))
    index.add(lost)
    index.take_back(lost)
    assert index.between(0, 100) == [kept]
    again = AbortedTransaction(3, 2, 4, 5)
    log.write([], index.add(again))
    assert AbortedIndex(log, "t/0").between(0, 100) == [kept, again]


@pytest.mark.parametrize(
    "kept", [0, 1, ABORTED_BLOCK - 1, ABORTED_BLOCK, ABORTED_BLOCK + 1, 2 * ABORTED_BLOCK]
)
def test_transactions_behind_the_end_of_a_partition_are_taken_out(log, kept):
    entries = random_history(random.Random(2), 2 * ABORTED_BLOCK + 5)
    index = AbortedIndex(log, "t/0")
    for entry in entries:
        log.write([], index.add(entry))
    taken, rows = index.cut(entries[kept].last)
    assert taken == entries[kept:]
    log.write([], rows)
    far = entries[-1].last + 10
    assert index.between(0, far) == AbortedIndex(log, "t/0").between(0, far) == entries[:kept]
    assert len(log.table(ABORTED)) == -(-kept // ABORTED_BLOCK)
    log.write([], index.add(entries[kept]))
    assert AbortedIndex(log, "t/0").between(0, far) == entries[: kept + 1]
