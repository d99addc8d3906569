"""A transactional id and its rows in the log."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dafka.broker.groups.offsets import OFFSETS
from dafka.broker.transactions.transaction import OPEN, TRANSACTIONS, State, Transaction


@pytest.fixture
def transaction() -> Transaction:
    transaction = Transaction("x")
    transaction.producer_id, transaction.epoch, transaction.last_epoch = 7, 2, 1
    transaction.timeout, transaction.started, transaction.updated = 60.0, 1000.0, 1001.0
    transaction.state = State.ONGOING
    return transaction


def partition(name: str, number: int, deleted: bool = False) -> Any:
    return SimpleNamespace(topic=SimpleNamespace(name=name, deleted=deleted), number=number)


def contents(transaction: Transaction) -> tuple[Any, ...]:
    return transaction.partitions, transaction.groups, transaction.offsets


def test_open_are_the_states_between_its_first_partition_and_the_end_of_its_last_marker():
    assert {state.value for state in State if state.is_open} == {"Ongoing", "PrepareCommit", "PrepareAbort"}


def test_its_row_says_all_but_its_contents(transaction):
    ((place, row),) = transaction.row().items()
    assert place == (TRANSACTIONS, "x")
    again = Transaction.load("x", row)
    assert all(getattr(again, name) == getattr(transaction, name) for name in row)
    assert (again.row(), again.deadline) == (transaction.row(), 1060.0)
    assert contents(again) == ({}, set(), {})


def test_a_changed_row_leaves_the_transaction_as_it_is(transaction):
    (row,) = transaction.row(state=State.PREPARE_COMMIT, updated=2000.0).values()
    assert (row["state"], row["updated"], row["epoch"]) == ("PrepareCommit", 2000.0, 2)
    assert (transaction.state, transaction.updated) == (State.ONGOING, 1001.0)


def test_its_contents_are_read_from_the_rows_that_they_were_written_to(transaction):
    known = {"t/0": partition("t", 0)}
    rows = {
        **transaction.open_row(),
        **transaction.partition_row("t/0"),
        **transaction.partition_row("gone/0"),
        **transaction.group_row("g/with/strokes"),
        **transaction.offset_row("g/t/0", [5, "", -1]),
    }
    for (table, key), value in rows.items():
        assert table == OPEN
        assert key.startswith(transaction.prefix)
        transaction.touch(key, value, known.get)
    assert contents(transaction) == (known, {"g/with/strokes"}, {"g/t/0": [5, "", -1]})
    assert transaction.contents == 3


def test_the_rows_of_a_transaction_have_the_prefix_of_its_producer_id_alone(transaction):
    other = Transaction("y")
    other.producer_id = 71
    assert not any(key.startswith(transaction.prefix) for _, key in other.open_row())


def test_ending_deletes_every_row_of_it(transaction):
    transaction.partitions["t/0"] = partition("t", 0)
    transaction.groups.add("g")
    transaction.offsets["g/t/0"] = [5, "", -1]
    written = [
        transaction.open_row(),
        transaction.partition_row("t/0"),
        transaction.group_row("g"),
        transaction.offset_row("g/t/0", [5, "", -1]),
    ]
    assert transaction.rows_without() == {place: None for rows in written for place in rows}
    assert transaction.offset_rows() == {(OFFSETS, "g/t/0"): [5, "", -1]}
    transaction.forget_touched()
    assert transaction.contents == 0


def test_its_partitions_are_named_in_order_without_those_of_deleted_topics(transaction):
    found = [partition("b", 0), partition("a", 10), partition("a", 2), partition("c", 0, deleted=True)]
    transaction.partitions = {f"{one.topic.name}/{one.number}": one for one in found}
    assert transaction.names() == [("a", 2), ("a", 10), ("b", 0)]
