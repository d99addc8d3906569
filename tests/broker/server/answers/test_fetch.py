"""Fetch through the listener."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import gevent
import pytest
from broker.clients import Client, batch
from broker.server.client import WireClient
from broker.server.samples import fetch
from kafka.errors import (
    FencedLeaderEpochError,
    OffsetOutOfRangeError,
    UnknownLeaderEpochError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from timing import until

from dafka import Broker
from dafka.broker import running
from dafka.broker.server import limits
from dafka.broker.server.budget import SMALLEST_SHARE, Budget
from dafka.log import StoredBatches
from dafka.log.limits import FILE_BYTES
from dafka.protocol.batch import split_batches
from dafka.protocol.batch_reader import decode_batch

VERSIONS = range(4, 19)
BY_ID = 13
NEWEST_BY_NAME = 12


def partition(response, index=0):
    return response.responses[0].partitions[index]


def values(answer):
    return [value for content in split_batches(answer.records) for value in decode_batch(content).values]


def topic_id(client: Client, topic: str = "topic"):
    return client.call("metadata", [topic]).topics[topic].topic_id


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_returns_the_records(client: Client, wire: WireClient, version: int):
    client.create("topic", 2)
    client.produce("topic", b"a", b"b")
    client.produce("topic", b"c")
    request = fetch("topic", 1, 0, topic_id=topic_id(client))
    response = wire.ask(request, version)
    answer, empty = partition(response), partition(response, 1)
    assert (answer.error_code, answer.high_watermark, answer.last_stable_offset) == (0, 3, 3)
    assert values(answer) == [b"a", b"b", b"c"]  # whole batches
    # Without a session every partition is answered, with its limits.
    assert (empty.error_code, empty.high_watermark, empty.records) == (0, 0, b"")
    if version >= 5:
        assert answer.log_start_offset == 0
    if version >= BY_ID:
        assert response.responses[0].topic_id == topic_id(client)
    if version >= 7:
        assert (response.error_code, response.session_id) == (0, 0)


@pytest.mark.parametrize("version", range(4))
def test_versions_before_4_end_the_connection(client: Client, wire: WireClient, version: int):
    client.create("topic")
    with pytest.raises(EOFError):
        wire.ask(fetch("topic", 0), version)


@pytest.mark.parametrize("version", [4, 11, 12])
def test_an_unknown_partition_is_refused(wire: WireClient, version: int):
    answer = partition(wire.ask(fetch("nothing", 0, wait=60_000), version))
    assert answer.error_code == UnknownTopicOrPartitionError.errno


def test_an_unknown_topic_id_is_refused(client: Client, wire: WireClient):
    client.create("topic")
    deleted = topic_id(client)
    client.call("delete_topics", ["topic"])
    answer = partition(wire.ask(fetch("", 0, topic_id=deleted, wait=60_000), 18))
    assert answer.error_code == UnknownTopicIdError.errno


def test_an_offset_out_of_range_is_refused(client: Client, wire: WireClient):
    client.create("topic")
    answer = partition(wire.ask(fetch("topic", 5, wait=60_000), NEWEST_BY_NAME))
    assert (answer.error_code, answer.high_watermark) == (OffsetOutOfRangeError.errno, -1)


@pytest.mark.parametrize("isolation", [0, 1])
@pytest.mark.parametrize("version", [4, 12])
def test_aborted_transactions_are_null_where_nobody_has_looked_for_them(
    client: Client, wire: WireClient, version: int, isolation: int
):
    client.create("topic")
    request = fetch("topic", 0, 0, isolation_level=isolation)
    (topic,) = wire.ask(request, version).responses
    aborted = {one.partition_index: one.aborted_transactions for one in topic.partitions}
    assert aborted == {0: [] if isolation else None, 1: []}  # there is no partition 1
    (topic,) = wire.ask(fetch("topic", 5, isolation_level=isolation), version).responses
    assert topic.partitions[0].aborted_transactions is None  # the offset is out of range


def test_an_unknown_leader_epoch_is_refused(client: Client, wire: WireClient):
    client.create("topic")
    request = fetch("topic", 0, wait=60_000)
    request.topics[0].partitions[0].current_leader_epoch = 3
    assert partition(wire.ask(request, NEWEST_BY_NAME)).error_code == UnknownLeaderEpochError.errno


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_that_has_read_truncated_records_gets_the_diverging_epoch_from_version_12_on(
    client: Client, wire: WireClient, version: int
):
    client.create("topic", 2)
    client.produce("topic", b"kept")
    client.core._epochs.current = 1  # as if what came behind it had been lost
    client.produce("topic", b"new")
    client.produce("topic", b"new, too")
    request = fetch("topic", 2, 0, wait=60_000, topic_id=topic_id(client))
    request.topics[0].partitions[0].last_fetched_epoch = 0
    answer = partition(wire.ask(request, version))
    assert answer.error_code == 0
    if version >= 12:
        assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 1)
        assert not answer.records
    else:
        assert values(answer) == [b"new, too"]


def test_epochs_below_zero_are_none(client: Client, wire: WireClient):
    client.create("topic")
    request = fetch("topic", 3, topic_id=topic_id(client))
    request.topics[0].partitions[0].last_fetched_epoch = -2
    request.topics[0].partitions[0].current_leader_epoch = -2
    assert partition(wire.ask(request, 13)).error_code == OffsetOutOfRangeError.errno


def test_an_outdated_leader_epoch_is_fenced(client: Client, wire: WireClient):
    client.create("topic")
    client.core._epochs.current = 1
    request = fetch("topic", 0, wait=60_000)
    for epoch, error in ((0, FencedLeaderEpochError.errno), (1, 0)):
        request.topics[0].partitions[0].current_leader_epoch = epoch
        request.max_wait_ms = 0 if not error else 60_000
        assert partition(wire.ask(request, NEWEST_BY_NAME)).error_code == error


def test_a_waiting_fetch_does_not_block_others(broker: Broker, client: Client, wire: WireClient):
    client.create("topic")
    parked = wire.send(fetch("topic", 0, wait=30_000), NEWEST_BY_NAME)
    with WireClient(broker) as other:
        assert partition(other.ask(fetch("topic", 0), NEWEST_BY_NAME)).records == b""
    client.produce("topic", b"late")
    assert values(partition(wire.receive(fetch("topic", 0), NEWEST_BY_NAME, parked))) == [b"late"]


def test_a_fetch_without_records_is_answered_empty_after_max_wait(client: Client, wire: WireClient):
    client.create("topic")
    begun = time.monotonic()
    answer = partition(wire.ask(fetch("topic", 0, wait=100), NEWEST_BY_NAME))
    assert (answer.error_code, answer.records) == (0, b"")
    assert time.monotonic() - begun >= 0.09


def test_records_read_count_once_and_only_if_the_client_gets_them(
    broker: Broker, client: Client, wire: WireClient
):
    client.create("topic", 2)
    client.produce("topic", b"a", b"b")
    client.produce("topic", b"c", partition=1)
    (core,) = (one.core for one in running.brokers() if one.owner is broker)
    got, octets = 0, 0

    def ask(*offsets, **options):
        nonlocal got, octets
        response = wire.ask(fetch("topic", *offsets, **options), NEWEST_BY_NAME)
        batches = [one.records for topic in response.responses for one in topic.partitions if one.records]
        got += sum(len(decode_batch(content).offsets) for part in batches for content in split_batches(part))
        octets += sum(map(len, batches))
        assert (core.traffic.records, core.traffic.octets) == (got, octets)
        return response

    ask(0, 0)
    assert got == 3
    for _ in range(3):
        ask(0, 0, min_bytes=1 << 20, wait=20)  # read twice: at once, and when the time is over
    assert got == 12
    for _ in range(4):
        ask(2, 1, wait=20)  # at the ends; from the third time on nothing is read
    assert got == 12
    session = ask(0, 1, session_epoch=0).session_id
    assert got == 14
    request = fetch("topic", session_id=session, session_epoch=1, min_bytes=1 << 20, wait=200)
    request.topics = []
    response = wire.ask(request, NEWEST_BY_NAME)  # reads again and again until the time is over
    assert partition(response).records
    assert core.traffic.records == 16


@pytest.mark.parametrize("version", [4, 9, 10])
def test_zstd_is_given_in_all_versions(client: Client, wire: WireClient, version: int):
    """As by Apache Kafka 4; rskafka reads with version 4 and knows zstd."""
    client.create("topic")
    content = batch(b"a" * 100, compression="zstd")
    client.call("produce", {("topic", 0): [content]})
    assert values(partition(wire.ask(fetch("topic", 0), version))) == [b"a" * 100]


def test_large_responses_arrive_complete(client: Client, wire: WireClient):
    client.create("topic")
    for number in range(12):
        client.produce("topic", b"%02d" % number * 250_000)
    slow = wire.send(fetch("topic", 0, max_bytes=50 << 20), NEWEST_BY_NAME)
    frame = wire.receive(fetch("topic", 0), NEWEST_BY_NAME, slow)
    assert values(partition(frame)) == [b"%02d" % number * 250_000 for number in range(12)]


def test_many_small_batches_arrive_complete(client: Client, wire: WireClient):
    client.create("topic")
    contents = [batch(b"%d" % number) for number in range(3000)]
    client.call("produce", {("topic", 0): contents})
    answer = partition(wire.ask(fetch("topic", 0), NEWEST_BY_NAME))
    assert values(answer) == [b"%d" % number for number in range(3000)]


def test_many_connections_wait_for_the_same_records(broker: Broker, client: Client):
    client.create("topic")
    waiting = [WireClient(broker) for _ in range(50)]
    sent = [one.send(fetch("topic", 0, wait=30_000), NEWEST_BY_NAME) for one in waiting]
    threading.Timer(0.05, client.produce, ("topic", b"news")).start()
    for one, correlation in zip(waiting, sent, strict=True):
        assert values(partition(one.receive(fetch("topic", 0), NEWEST_BY_NAME, correlation))) == [b"news"]
        one.socket.close()


def test_the_first_batch_may_exceed_max_bytes_and_no_other(client: Client, wire: WireClient):
    client.create("topic", 2)
    for number in range(2):
        client.produce("topic", b"a" * 1000, partition=number)
    request = fetch("topic", 0, 0)
    request.max_bytes = 1
    response = wire.ask(request, NEWEST_BY_NAME)
    first, second = partition(response), partition(response, 1)
    assert values(first) == [b"a" * 1000]
    assert (second.error_code, second.high_watermark, second.records) == (0, 1, b"")


def test_concurrent_fetches_share_the_memory_budget(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "TOTAL_BYTES", 8 * 1024 * 1024)
    clients, size = 16, 100_000
    shares: list[int] = []
    promised = Budget.promised

    @contextmanager
    def together(budget: Budget) -> Iterator[int]:
        """No response is read before all of them have been promised their shares."""
        with promised(budget) as share:
            shares.append(share)
            while len(shares) < clients:
                gevent.sleep(0.001)
            yield share

    with Broker(listen="127.0.0.1:0") as broker, ExitStack() as stack:
        client = Client(broker)
        client.create("topic")
        for _ in range(30):
            client.produce("topic", bytes(size))
        monkeypatch.setattr(Budget, "promised", together)
        wires = [stack.enter_context(WireClient(broker)) for _ in range(clients)]
        request = fetch("topic", 0)
        request.max_bytes = request.topics[0].partitions[0].partition_max_bytes = 2**31 - 1
        for wire in wires:
            wire.send(request, NEWEST_BY_NAME)
        answers = [partition(wire.receive(request, NEWEST_BY_NAME, 1)) for wire in wires]
        until(lambda: broker.metrics()["listener_held_bytes"] == 0)
    assert sum(shares) <= limits.TOTAL_BYTES + clients * SMALLEST_SHARE
    sizes = [len(answer.records) for answer in answers]
    assert min(sizes) >= size  # a batch comes in any case
    assert sum(sizes) <= limits.TOTAL_BYTES + clients * 2 * size


@pytest.fixture
def of_files(tmp_path) -> Iterator[Broker]:
    """A listening broker that has nothing of its topic's values, which are files, in memory."""
    with Broker(tmp_path) as writer:
        client = Client(writer)
        client.create("topic")
        for letter in b"abc":
            client.produce("topic", bytes([letter]) * FILE_BYTES)
    with Broker(tmp_path, listen="127.0.0.1:0") as running:
        yield running


@pytest.mark.parametrize(("offset", "most"), [(0, 10 * FILE_BYTES), (1, 1), (0, 0), (3, 10)])
@pytest.mark.parametrize("isolation", [0, 1])
def test_batches_in_files_are_sent_from_there(of_files, monkeypatch, offset, most, isolation):
    sent = []

    def sendfile(there, descriptor, position, count):
        sent.append(count)
        return os_sendfile(there, descriptor, position, count)

    os_sendfile = os.sendfile
    monkeypatch.setattr("os.sendfile", sendfile)
    request = fetch("topic", offset, topic_id=topic_id(Client(of_files)), max_bytes=most)
    request.isolation_level = isolation
    with WireClient(of_files) as wire:
        for version in VERSIONS:
            sent.clear()
            answer = partition(wire.ask(request, version))
            whole = [bytes([letter]) * FILE_BYTES for letter in b"abc"][offset:]
            assert values(answer) == (whole if most > FILE_BYTES else whole[:1])
            assert (answer.error_code, answer.high_watermark) == (0, 3)
            assert bool(sent) == bool(whole)
    assert StoredBatches.opened == 0
