"""Whatever happens between the pieces of a large transaction's end: each partition and offset is ended once,
as it was decided, and nothing else is in the transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import gevent
import kafka.errors as errors
import pytest
from broker.clients import Client, batch
from broker.transactions.transactional import Producer, committed, everything, fetch, offset_of, state_of
from timing import until

from dafka import Broker
from dafka.broker import limits
from dafka.broker.interface.errors import BrokerStoppedError
from dafka.broker.interface.topics import TopicSpec
from dafka.broker.transactions import ending
from dafka.hub.changes import Changes
from dafka.protocol.batch import with_producer

PARTITIONS = 12


@pytest.fixture
def producer(client: Client, monkeypatch: pytest.MonkeyPatch) -> Producer:
    return wide_transaction(client, monkeypatch)


def wide_transaction(client: Client, monkeypatch: pytest.MonkeyPatch) -> Producer:
    """A producer that has written to each partition of two topics, and committed an offset.

    Two partitions, or offsets, are very many.
    """
    client.call("create_topics", {"t": TopicSpec(PARTITIONS), "u": TopicSpec(2)})
    monkeypatch.setattr(limits, "WIDE_PRODUCE", 2)
    monkeypatch.setattr(limits, "ENDED_AT_ONCE", 2)
    producer = Producer(client)
    everywhere = [*(("t", number) for number in range(PARTITIONS)), ("u", 0), ("u", 1)]
    assert producer.add(*everywhere) is None
    for partition in everywhere:
        assert producer.write(b"a", partition).error is None
    assert producer.send_offset(7) is None
    return producer


class Pauses:
    """In the pause of that number of ends, of those between markers and of those between rounds,
    ``happen()`` is carried out before the end goes on."""

    def __init__(self, patch: pytest.MonkeyPatch, client: Client, where: str, happen: Callable[[], Any]):
        self.outcome: Any = None
        self.count = 0
        pauses = self

        class Settled(Changes):
            def wait(self, timeout: float | None = None) -> bool:
                changed = super().wait(timeout)
                pauses.pause("markers", where, happen)
                return changed

        writer = client.core._writer
        put_and_wait = writer.put_and_wait

        def put(rows: Any, *more: Any) -> None:
            put_and_wait(rows, *more)
            self.pause("rounds", where, happen)

        patch.setattr(ending, "Changes", Settled)
        patch.setattr(client.core._transactions._ending, "_writer", Forwarding(writer, put))

    def pause(self, here: str, where: str, happen: Callable[[], Any]) -> None:
        if here == where:
            self.count += 1
            if self.count == 2:
                self.outcome = gevent.spawn(happen).get(timeout=100)


class Forwarding:
    """A writer with another put_and_wait."""

    def __init__(self, writer: Any, put_and_wait: Any) -> None:
        self._writer = writer
        self.put_and_wait = put_and_wait

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)


def check_ended(client: Client, commit: bool, most_markers: int = 1) -> None:
    """The transaction is complete in every partition of "t", and its offset with it."""
    assert state_of(client) == ("CompleteCommit" if commit else "CompleteAbort")
    for number in range(PARTITIONS):
        assert committed(client, number) == [b"a"] * commit
        assert everything(client, number) == [b"a"]
        found = fetch(client, partition=number)
        assert found.last_stable_offset == found.high_watermark <= 1 + most_markers
    assert offset_of(client) == (7 if commit else None)


HAPPENINGS = {
    "its producer writes": errors.KafkaError,
    "it adds a partition": errors.ConcurrentTransactionsError,
    "it ends again": errors.ConcurrentTransactionsError,
    "it is fenced": errors.ConcurrentTransactionsError,
    "a topic is deleted": None,
}


def happening(which: str, producer: Producer) -> Any:
    core, who = producer.client.core, producer.who
    late = with_producer(batch(b"late"), producer.producer_id, producer.epoch, 1, transactional=True)
    return {
        "its producer writes": lambda: core.produce({("t", 0): [late]}, transactional_id="x")["t", 0].error,
        "it adds a partition": lambda: core.add_partitions_to_transaction(*who, [("t", 0)])["t", 0],
        "it ends again": lambda: core.end_transaction(*who, True),
        "it is fenced": lambda: core.init_producer_id("x", 60.0).error,
        "a topic is deleted": lambda: core.delete_topics(["u"])["u"].error,
    }[which]


@pytest.mark.parametrize("which", HAPPENINGS)
@pytest.mark.parametrize("where", ["markers", "rounds"])
@pytest.mark.parametrize("commit", [True, False])
def test_an_end_is_complete_whatever_happens_between_its_pieces(
    client, producer, monkeypatch, commit, where, which
):
    with monkeypatch.context() as patched:
        pauses = Pauses(patched, client, where, happening(which, producer))
        assert producer.end(commit) is None
    assert pauses.count >= 2
    expected = HAPPENINGS[which]
    assert pauses.outcome is None if expected is None else issubclass(pauses.outcome, expected)
    check_ended(client, commit)
    transaction = client.core._transactions._table.get("x")
    assert not transaction.partitions and not transaction.offsets
    assert len(client.core.log.table("open")) == 0
    if which != "a topic is deleted":
        assert everything(client) == [b"a"]
    producer.sequences.clear()
    producer.init()
    producer.send(b"b")
    producer.commit()
    assert committed(client) == [b"a"] * commit + [b"b"]


@pytest.mark.parametrize("where", ["markers", "rounds"])
@pytest.mark.parametrize("commit", [True, False])
def test_an_end_that_a_stop_interrupts_is_complete_after_the_next_start(tmp_path, monkeypatch, commit, where):
    broker = Broker(tmp_path)
    broker.start()
    client = Client(broker)
    producer = wide_transaction(client, monkeypatch)
    core, stopping = client.core, threading.Thread(target=broker.stop)

    def stop() -> None:
        stopping.start()
        while core._lifecycle.running:
            gevent.sleep(0.001)

    with monkeypatch.context() as patched:
        pauses = Pauses(patched, client, where, stop)
        with suppress(BrokerStoppedError):
            producer.end(commit)
        until(lambda: stopping.ident is not None)
        stopping.join(100)
        assert not stopping.is_alive()
    assert pauses.count >= 2
    with Broker(tmp_path) as broker:
        again = Client(broker)
        until(lambda: state_of(again).startswith("Complete"))
        check_ended(again, commit, most_markers=2)  # what may have been ended is ended again
