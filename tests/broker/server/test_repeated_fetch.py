"""A Fetch that is sent again and again at the end of its partitions sleeps until something happens."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from broker.clients import Client
from broker.server.client import WireClient, encoded
from broker.server.samples import fetch
from kafka.errors import UnknownTopicOrPartitionError
from timing import until

from dafka import Broker
from dafka.broker.embedded.records import RecordCalls
from dafka.broker.server import limits
from dafka.testing import TestBroker

VERSION = 12
BY_ID = 13


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """A list that grows with each reading of partitions."""
    calls: list[Any] = []
    read = RecordCalls.fetch

    def counted(self: RecordCalls, wanted: Any, **options: Any) -> Any:
        calls.append(wanted)
        return read(self, wanted, **options)

    monkeypatch.setattr(RecordCalls, "fetch", counted)
    return calls


def request(wait: int = 20) -> Any:
    return fetch("topic", 0, wait=wait)


def partition(response: Any) -> Any:
    (topic,) = response.responses
    (one,) = topic.partitions
    return one


def repeat(wire: WireClient, times: int) -> None:
    """Ask so often, with nothing to read."""
    for _ in range(times):
        response = wire.ask(request(), VERSION)
        assert (partition(response).error_code, not partition(response).records) == (0, True)


def test_from_the_third_time_on_nothing_is_read(client: Client, wire: WireClient, reads: list[Any]):
    client.create("topic", 1)
    repeat(wire, 2)
    count = len(reads)
    repeat(wire, 10)
    assert len(reads) == count


def test_records_that_are_there_already_are_read_once(client: Client, wire: WireClient, reads: list[Any]):
    client.create("topic", 1)
    client.produce("topic", b"a")
    for count in (1, 2, 3):
        assert partition(wire.ask(request(), VERSION)).records
        assert len(reads) == count


def test_it_waits_for_its_time(client: Client, wire: WireClient):
    client.create("topic", 1)
    repeat(wire, 3)
    began = time.monotonic()
    repeat(wire, 3)
    assert time.monotonic() - began >= 0.05


def test_a_record_wakes_it(client: Client, wire: WireClient, reads: list[Any]):
    client.create("topic", 1)
    repeat(wire, 3)
    count = len(reads)
    asked = request(wait=20)
    client.produce("topic", b"a record")
    response = wire.ask(asked, VERSION)
    assert b"a record" in bytes(partition(response).records)
    assert len(reads) > count
    assert b"a record" in bytes(partition(wire.ask(asked, VERSION)).records)


def test_a_record_that_comes_while_it_waits_wakes_it(client: Client, wire: WireClient):
    client.create("topic", 1)
    for _ in range(2):
        wire.socket.sendall(encoded(request(wait=300), VERSION))
        wire.receive_frame()
    wire.socket.sendall(encoded(request(wait=300), VERSION))
    until(lambda: watchers(client) == 1)
    client.produce("topic", b"a record")
    answers = [wire.receive_frame()]
    if b"a record" not in answers[0]:  # on a busy machine the time was over before
        wire.socket.sendall(encoded(request(wait=300), VERSION))
        answers.append(wire.receive_frame())
    assert b"a record" in answers[-1]


def test_a_topic_that_is_deleted_and_made_again_is_not_mixed_up(client: Client, wire: WireClient):
    client.create("topic", 1)
    repeat(wire, 3)
    client.call("delete_topics", ["topic"])
    response = wire.ask(request(), VERSION)
    assert partition(response).error_code == UnknownTopicOrPartitionError.errno
    client.create("topic", 1)
    repeat(wire, 3)
    client.produce("topic", b"of the new one")
    assert b"of the new one" in bytes(partition(wire.ask(request(), VERSION)).records)


def test_another_request_in_between_is_answered_for_itself(client: Client, wire: WireClient):
    client.create("topic", 2)
    client.produce("topic", b"in the other one", partition=1)
    for _ in range(4):
        repeat(wire, 3)
        other = wire.ask(fetch("topic", 0, 0, wait=20), VERSION)
        found = [bytes(one.records) for one in other.responses[0].partitions]
        assert b"in the other one" in b"".join(found)


def test_after_some_time_the_answer_is_made_anew(client: Client, wire: WireClient, reads, monkeypatch):
    monkeypatch.setattr(limits, "REPEATED_SECONDS", 0.0)
    client.create("topic", 1)
    repeat(wire, 3)
    count = len(reads)
    repeat(wire, 3)
    assert len(reads) > count


def test_a_long_request_is_read_each_time(client: Client, wire: WireClient, reads, monkeypatch):
    monkeypatch.setattr(limits, "REPEATED_OCTETS", 20)
    client.create("topic", 1)
    repeat(wire, 3)
    count = len(reads)
    repeat(wire, 3)
    assert len(reads) >= count + 3


def test_nobody_watches_when_the_client_has_gone(broker: Broker, client: Client):
    client.create("topic", 1)
    with WireClient(broker) as wire:
        repeat(wire, 3)
        assert watchers(client) == 1
    until(lambda: watchers(client) == 0)


def watchers(client: Client) -> int:
    """How many watch the partition."""
    return len(client.core._topics.partition("topic", 0).watchers)


def test_a_topic_by_its_id_is_watched_as_well(client: Client, wire: WireClient, reads: list[Any]):
    client.create("topic", 1)
    topic_id = client.call("metadata", ["topic"]).topics["topic"].topic_id
    asked = fetch("", 0, topic_id=topic_id, wait=20)
    for _ in range(2):
        wire.ask(asked, BY_ID)
    count = len(reads)
    for _ in range(5):
        wire.ask(asked, BY_ID)
    assert len(reads) == count
    client.produce("topic", b"a record")
    assert b"a record" in bytes(partition(wire.ask(asked, BY_ID)).records)


def test_requests_behind_a_repeated_fetch_that_is_read_the_first_time_are_answered(
    broker: Broker, client: Client, wire: WireClient, reads: list[Any]
):
    client.create("topic", 1)
    repeat(wire, 1)
    waiting = wire.send(request(wait=20), VERSION)  # the second one, which is read and then waits
    wire.receive(request(), VERSION, waiting)
    count = len(reads)
    repeat(wire, 3)
    assert len(reads) == count
    sent = wire.send(request(wait=100_000), VERSION)  # another wait is another request
    until(lambda: len(reads) > count)
    client.produce("topic", b"a")
    assert partition(wire.receive(request(), VERSION, sent)).records


def test_records_that_are_there_and_held_back_come_when_it_is_time():
    with TestBroker() as broker, WireClient(broker) as wire:
        broker.create_topic("topic")
        repeat(wire, 3)
        broker.delay_fetches(0.1)
        broker.preload("topic", [b"a record"])
        until(lambda: b"a record" in bytes(partition(wire.ask(request(), VERSION)).records or b""))
