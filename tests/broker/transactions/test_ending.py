"""Ends of transactions, with failures, restarts and kills meanwhile."""

from __future__ import annotations

import logging
import shutil
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from typing import Any

import forking
import gevent
import kafka.errors as errors
import pytest
from broker.clients import Client
from broker.transactions.transactional import Producer, committed, fetch, offset_of, state_of
from timing import until

from dafka import Broker
from dafka.broker import limits
from dafka.broker.interface.broker import CommittedOffset
from dafka.broker.interface.transactions import Writes
from dafka.broker.records.leader import MARKER_BYTES
from dafka.broker.transactions import ending as transactions_ending
from dafka.broker.transactions.transaction import OPEN, State
from dafka.commit import writer
from dafka.log import AppendError, LogPartition, LogWriteError
from dafka.testing import TestBroker


@pytest.fixture
def producer(client: Client) -> Producer:
    client.create("t", 3)
    return Producer(client)


# -- failures -----------------------------------------------------------------------------------


def test_an_end_that_cannot_be_written_leaves_the_transaction_open(client, producer, monkeypatch):
    storage = client.core.log._storage
    commit = storage.commit

    def fail(*args: object) -> None:
        raise LogWriteError(client.core.log.path, "no space")

    producer.send(b"a")
    producer.send_offset(7)
    monkeypatch.setattr(storage, "commit", fail)
    assert producer.end(True) is errors.KafkaStorageError
    assert producer.add(("t", 1)) is errors.KafkaStorageError
    monkeypatch.setattr(storage, "commit", commit)
    assert committed(client) == []
    producer.commit()
    assert committed(client) == [b"a"]
    assert offset_of(client) == 7


class TornRounds:
    """Each marker gets a round of its own, the first one with the decision and the last one with the end.

    ``outcomes``: for each commit from now on whether it works; all do behind the last. ``before_retry`` is
    called before the first commit behind them.
    """

    def __init__(self, client: Client, monkeypatch: pytest.MonkeyPatch, *outcomes: bool) -> None:
        self.before_retry: Callable[[], object] = lambda: None
        self._left = list(outcomes)
        self._path = client.core.log.path
        storage = client.core.log._storage
        self._commit = storage.commit
        monkeypatch.setattr(writer, "ROUND_BYTES", MARKER_BYTES)
        monkeypatch.setattr(storage, "commit", self._step)

    def _step(self, *rows: object) -> None:
        if self._left:
            if not self._left.pop(0):
                raise LogWriteError(self._path, "no space")
        else:
            self.before_retry()
            self.before_retry = lambda: None
        self._commit(*rows)


@pytest.mark.parametrize("commit", [True, False])
def test_a_crash_between_the_rounds_of_an_end_leaves_no_partial_end(tmp_path, monkeypatch, commit):
    """The round of one marker fails, and the broker dies before the retry."""
    with Broker(tmp_path / "broker") as broker:
        client = Client(broker)
        client.create("t", 3)
        producer = Producer(client)
        for number in range(3):
            producer.send(b"a", ("t", number))
        torn = TornRounds(client, monkeypatch, True, False, True)
        torn.before_retry = lambda: shutil.copytree(broker.path, tmp_path / "crashed")
        assert producer.end(commit) is None
        monkeypatch.undo()
    expected = [b"a"] if commit else []
    for folder in ("broker", "crashed"):
        with Broker(tmp_path / folder) as broker:
            client = Client(broker)
            until(lambda client=client: state_of(client).startswith("Complete"))
            for number in range(3):
                assert committed(client, number) == expected
                fetched = fetch(client, 0, number)
                assert fetched.last_stable_offset == fetched.high_watermark > 1


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_is_not_written_without_a_marker_that_the_log_has_refused(tmp_path, monkeypatch, commit):
    """The other partitions of the round are written, and the broker dies before the marker is retried."""
    with Broker(tmp_path / "broker") as broker:
        client = Client(broker)
        client.create("t", 3)
        producer = Producer(client)
        for number in range(3):
            producer.send(b"a", ("t", number))
        producer.send_offset(7)
        data = client.core.log
        begin, refused = data.begin, []

        def refuse_once(chunks: list[tuple[LogPartition, list[bytes], int]], *rest: object, **more: object):
            if len(chunks) == 3 and not refused:
                partition = chunks[1][0]
                refused.append(partition)
                raise AppendError(data.path, "refused", partition.topic, partition.address, 0)
            if refused and len(chunks) == 1 and not (tmp_path / "crashed").exists():
                shutil.copytree(broker.path, tmp_path / "crashed")
            return begin(chunks, *rest, **more)

        monkeypatch.setattr(data, "begin", refuse_once)
        assert producer.end(commit) is None
        assert refused
        monkeypatch.undo()
    for folder in ("broker", "crashed"):
        with Broker(tmp_path / folder) as broker:
            client = Client(broker)
            until(lambda client=client: state_of(client).startswith("Complete"))
            assert [committed(client, number) for number in range(3)] == [[b"a"] if commit else []] * 3
            for fetched in (fetch(client, 0, number) for number in range(3)):
                assert fetched.last_stable_offset == fetched.high_watermark > 1
            assert offset_of(client, require_stable=True) == (7 if commit else None)


def test_a_decision_on_disk_is_not_reverted(client, producer, monkeypatch):
    """Only the decision was written."""
    producer.send(b"a")
    producer.send(b"b", ("t", 1))
    TornRounds(client, monkeypatch, True, False, False)
    monkeypatch.setattr(writer, "ROUND_BYTES", MARKER_BYTES - 1)  # the decision fills its round
    producer.commit()
    assert [committed(client, number) for number in range(2)] == [[b"a"], [b"b"]]


def test_a_deleted_topic_does_not_keep_its_transaction_from_ending(client, producer):
    client.create("u")
    producer.send(b"a", ("u", 0))
    producer.send(b"b")
    client.call("delete_topics", ["u"])
    producer.commit()
    assert committed(client) == [b"b"]
    client.create("u")
    assert client.call("list_offsets", {("u", 0): -1}, read_committed=True)["u", 0].offset == 0


def test_open_transactions_and_aborted_ones_survive_a_restart(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        for number in range(200):  # more than a block
            producer = Producer(client, f"p{number}")
            producer.send(b"%d" % number)
            producer.end(number % 2 == 0)
        open_one = Producer(client, "open")
        open_one.send(b"open")
        open_one.send_offset(9)
        before = fetch(client)
    with Broker(tmp_path) as broker:
        client = Client(broker)
        after = fetch(client)
        assert (after.last_stable_offset, after.aborted) == (before.last_stable_offset, before.aborted)
        assert committed(client) == [b"%d" % number for number in range(0, 200, 2)]
        with pytest.raises(errors.UnstableOffsetCommitError):
            offset_of(client, require_stable=True)
        open_one.client = client
        open_one.send(b"more")
        open_one.commit()
        assert committed(client)[-2:] == [b"open", b"more"]
        assert offset_of(client, require_stable=True) == 9


def test_a_transaction_that_exceeds_its_timeout_is_aborted_after_a_restart(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        Producer(client, timeout=600).send(b"a")
    with TestBroker(tmp_path) as broker:
        client = Client(broker)
        assert fetch(client).last_stable_offset == 0
        broker.clock.advance(minutes=10)
        assert fetch(client).last_stable_offset == 2
        assert committed(client) == []


@pytest.mark.parametrize("commit", [True, False])
def test_a_decided_transaction_is_completed_after_a_restart(tmp_path, commit):
    """As after a crash between decision and markers, which are usually in one commit."""
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        producer = Producer(client)
        producer.send(b"a")
        producer.send_offset(4)
        core = client.core
        state = State.PREPARE_COMMIT if commit else State.PREPARE_ABORT
        rows = core._transactions._table.get("x").row(state=state)
        client.connection.hub.run(core._writer.put_and_wait, rows)
    with Broker(tmp_path) as broker:
        client = Client(broker)
        until(lambda: fetch(client).last_stable_offset == 2)
        assert committed(client) == ([b"a"] if commit else [])
        assert offset_of(client) == (4 if commit else None)
        assert until(lambda: client.call("describe_transactions", ["x"])["x"].state).startswith("Complete")


CHILD = """
    import sys
    from broker.clients import Client
    from broker.transactions.transactional import Producer
    from dafka import Broker

    broker = Broker(sys.argv[1]).start()
    client = Client(broker)
    producer = Producer(client)
    number = int(sys.argv[2])
    while True:
        for partition in range(3):
            producer.send(b"%d" % number, ("t", partition))
        producer.send_offset(number)
        print("ending", number, flush=True)
        if number % 3:
            producer.commit()
            print("committed", number, flush=True)
        else:
            producer.abort()
        number += 1
"""


def test_after_a_kill_each_transaction_is_complete_or_absent(tmp_path):
    """A committed transaction is in all partitions and in the offset of the group, another one in none."""
    with Broker(tmp_path) as broker:
        Client(broker).create("t", 3)
    done: set[int] = set()
    begun: set[int] = set()
    for attempt in range(4):
        child = forking.Popen(
            [sys.executable, "-c", textwrap.dedent(CHILD), str(tmp_path), str(1000 * attempt + 1)],
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": ":".join(sys.path)},
        )
        assert child.stdout is not None
        with child.stdout as lines:
            for line in lines:
                word, number = line.split()
                (done if word == "committed" else begun).add(int(number))
                if len(begun) >= 15 * (attempt + 1):
                    child.send_signal(signal.SIGKILL)
                    break
            rest = lines.read().split("\n")[:-1]
        assert child.wait() == -signal.SIGKILL
        for line in rest:
            word, number = line.split()
            (done if word == "committed" else begun).add(int(number))
        with Broker(tmp_path) as broker:
            client = Client(broker)
            Producer(client)  # aborts the open transaction
            seen = [[int(value) for value in committed(client, partition)] for partition in range(3)]
            assert seen[0] == seen[1] == seen[2] == sorted(set(seen[0]))
            assert done <= set(seen[0]) <= {number for number in begun if number % 3}
            assert offset_of(client, require_stable=True) == seen[0][-1]


def test_a_partly_written_end_is_completed_by_the_waiting_call(client, producer, monkeypatch):
    """The decision is on disk, and the write of a marker fails."""
    for partition in (("t", 0), ("t", 1)):
        producer.send(b"a", partition)
    producer.send_offset(7)
    ending = client.core._transactions._ending
    leaders = ending._leaders
    append = leaders.end_transaction
    failures = [LogWriteError(client.core.log.path, "no space")]

    def fail_once(partition, producer_id, epoch, commit, done, check):
        if partition.number == 1 and failures:
            done(failures.pop())
        else:
            append(partition, producer_id, epoch, commit, done, check)

    monkeypatch.setattr(leaders, "end_transaction", fail_once)
    producer.commit()
    assert [committed(client, number) for number in range(2)] == [[b"a"], [b"a"]]
    assert [fetch(client, 0, number).high_watermark for number in range(2)] == [2, 2]
    assert offset_of(client, require_stable=True) == 7
    assert len(client.core.log.table("transactions.open")) == 0


def test_an_end_that_fails_for_long_is_logged_once(client, producer, monkeypatch, caplog):
    monkeypatch.setattr(transactions_ending, "RETRY_PAUSE", 0.001)
    producer.send(b"a")
    leaders = client.core._transactions._ending._leaders
    append = leaders.end_transaction
    failures = [LogWriteError(client.core.log.path, "no space") for _ in range(20)]

    def fail_long(partition, producer_id, epoch, commit, done, check):
        if failures:
            done(failures.pop())
        else:
            append(partition, producer_id, epoch, commit, done, check)

    monkeypatch.setattr(leaders, "end_transaction", fail_long)
    with caplog.at_level(logging.INFO, "dafka.broker"):
        producer.commit()
    assert committed(client) == [b"a"]
    assert len([text for text in caplog.messages if "ending transaction 'x'" in text]) == 1


def test_calls_for_an_id_that_is_being_changed_get_concurrent_transactions(client, producer):
    def together() -> set[object]:
        calls = [
            gevent.spawn(client.core.add_partitions_to_transaction, *producer.who, [("t", number)])
            for number in range(3)
        ]
        gevent.joinall(calls, raise_error=True)
        return {error for call in calls for error in call.value.values()}

    assert client.connection.hub.run(together) == {None, errors.ConcurrentTransactionsError}


def test_an_end_completes_although_its_caller_is_killed(client, producer):
    producer.send(b"a")

    def end_and_kill() -> None:
        call = gevent.spawn(client.core.end_transaction, *producer.who, True)
        gevent.sleep(0)
        call.kill()

    client.connection.hub.run(end_and_kill)
    assert until(lambda: committed(client)) == [b"a"]
    producer.send(b"b")
    producer.commit()


# -- very many offsets --------------------------------------------------------------------------


@pytest.fixture
def many(client: Client) -> Producer:
    """One that may commit very many offsets, in a transaction whose end takes them a few at a time."""
    client.create("t", MANY)
    producer = Producer(client, raising=True)
    commit_all(producer)
    return producer


MANY, AT_ONCE = 400, 50


def commit_all(producer: Producer, offset: int = 7) -> None:
    wanted = {("t", number): CommittedOffset(offset) for number in range(MANY)}
    answers = producer.client.call(
        "commit_transaction_offsets", *producer.who, "g", wanted, writes=Writes.ADDING
    )
    assert set(answers.values()) == {None}


def test_offsets_of_an_end_are_freed_with_the_round_that_commits_them(client, many, monkeypatch):
    """A hundred thousand at once, or copies of them, make a long turn."""
    monkeypatch.setattr(limits, "ENDED_AT_ONCE", AT_ONCE)
    freed = Counter[int]()
    log = client.core.log

    class Row(list[Any]):
        def __del__(self) -> None:
            freed[len(log.table("offsets"))] += 1

    transaction = client.core._transactions._table.get("x")
    for key, row in transaction.offsets.items():
        transaction.offsets[key] = Row(row)
    del row
    many.commit()
    assert freed.total() == MANY
    assert max(freed.values()) <= AT_ONCE
    assert not client.core._offsets._held


@pytest.mark.parametrize("commit", [True, False])
def test_a_topic_that_is_deleted_between_the_rounds_of_an_end_keeps_no_offsets(
    client, many, monkeypatch, commit
):
    monkeypatch.setattr(limits, "ENDED_AT_ONCE", AT_ONCE)
    core, wait = client.core, client.core._writer.put_and_wait
    deleted = []

    def put_and_wait(rows: Any) -> None:
        wait(rows)
        if not deleted and any(table == OPEN for table, _ in rows):
            deleted.append(True)
            assert core.delete_topics(["t"])["t"].error is None

    monkeypatch.setattr(core._transactions._ending._writer, "put_and_wait", put_and_wait)
    assert many.end(commit) is None
    assert deleted
    assert len(core.log.table(OPEN)) == 0
    assert not core._offsets._held
    until(lambda: len(core.log.table("offsets")) == 0 or client.connection.hub.run(core._expiry.look))
