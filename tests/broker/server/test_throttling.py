"""Throttling: responses say how long to wait, connections are not read before, and others do not notice."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from broker.clients import Client, batch
from broker.server.client import WireClient, decoded
from broker.server.samples import fetch, produce
from broker.server.share_samples import SHARERS, share_fetch, share_samples
from confluent_kafka import Producer as ConfluentProducer
from kafka import KafkaConsumer, KafkaProducer
from kafka.protocol.admin import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from timing import until

from dafka import Broker
from dafka.broker.codec.encoding import encoded
from dafka.broker.codec.framing import Header
from dafka.broker.interface.admin import ConfigChange, Resource, ResourceType
from dafka.broker.interface.quotas import QuotaChange, QuotaChanges
from dafka.broker.server.requests import Frame
from dafka.broker.server.table import API_VERSIONS, BY_KEY
from dafka.broker.server.throttling import with_throttle_time

PRODUCED, FETCHED, REQUESTED = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
MUTATED = "controller_mutation_rate"
BURST = 20_000
RATE = BURST / 10
"""Octets a second: so many that BURST are free."""
LARGE = b"v" * 22_000
"""Costs a second or so: ``(22 000 - 20 000) / 2000``."""
USER = {"user": "ANONYMOUS"}


def set_quota(broker: Broker, entity: dict[str, str | None], **values: float | None) -> None:
    changes = [QuotaChange(key, value) for key, value in values.items()]
    (outcome,) = Client(broker).call("alter_quotas", [QuotaChanges(tuple(entity.items()), changes)])
    assert outcome.error is None, outcome


@pytest.fixture
def brisk() -> Iterator[Broker]:
    """A broker that counts in two windows of a second, and has forgotten what was used after these."""
    with Broker(listen="127.0.0.1:0", quota_settings={"quota.window.num": "2"}) as broker:
        yield broker


def seconds(function: Any, *args: Any) -> float:
    began = time.monotonic()
    function(*args)
    return time.monotonic() - began


# -- the field ---------------------------------------------------------------------------------------

APIS = [api for api in BY_KEY.values() if api.home is not None]


@pytest.mark.parametrize("api", APIS, ids=[api.name for api in APIS])
def test_the_time_is_in_every_response_that_has_the_field(api: Any) -> None:
    """And nothing else of it changes, whatever its version."""
    for version in range(api.first, api.last + 1):
        response = api.response()
        body = encoded(response, version)
        frame = Frame(memoryview(b""), Header(api.key, version, 1, "", 0), api)
        flexible = api.response.flexible_version_q(version) and api.key != API_VERSIONS
        head = (1).to_bytes(4, "big") + b"\0" * flexible
        changed = b"".join(with_throttle_time(frame, [head, body], 1.2345))
        names = {
            one.name
            for one in api.response._struct._fields
            if one.for_version_q(version) and one._tag is None
        }
        request = api.request()
        before = decoded(request, f"{api.name}Response", version, head + body, 1)
        after = decoded(request, f"{api.name}Response", version, changed, 1)
        if "throttle_time_ms" in names and api.key != API_VERSIONS:
            assert after.throttle_time_ms == 1235
            after.throttle_time_ms = before.throttle_time_ms
        assert encoded(after, version) == encoded(before, version)


def test_a_refused_version_is_left_as_it_is() -> None:
    frame = Frame(memoryview(b""), Header(API_VERSIONS, 99, 1, "", 0), BY_KEY[API_VERSIONS])
    assert with_throttle_time(frame, [b"head", b"body"], 5.0) == [b"head", b"body"]


# -- on the wire -------------------------------------------------------------------------------------


def test_a_client_that_has_produced_too_much_is_told_and_not_read_for_so_long(
    broker: Broker, client: Client, wire: WireClient
) -> None:
    client.create("topic")
    set_quota(broker, USER, **{PRODUCED: RATE})
    response = wire.ask(produce("topic", batch(LARGE[:100])), 9)
    assert response.throttle_time_ms == 0
    response = wire.ask(produce("topic", batch(LARGE)), 9)
    told = response.throttle_time_ms / 1000
    assert 0.5 < told <= 1.5
    assert seconds(wire.ask, ApiVersionsRequest(), 0) >= told - 0.2
    with WireClient(broker) as other:  # the client, not the connection, has used it
        assert other.ask(produce("topic", batch(LARGE)), 9).throttle_time_ms / 1000 > 2


def test_a_client_that_has_read_too_much_is_told_and_not_read_for_so_long(
    broker: Broker, client: Client, wire: WireClient
) -> None:
    client.create("topic")
    for size in (15_000, 7000):
        wire.ask(produce("topic", batch(LARGE[:size])), 9)
    set_quota(broker, USER, **{FETCHED: RATE})
    assert not wire.ask(fetch("topic", 0), 11).throttle_time_ms
    response = wire.ask(fetch("topic", 1), 11)
    told = response.throttle_time_ms / 1000
    assert 0.5 < told <= 1.5
    assert not response.responses  # it does not count as read, either
    assert seconds(wire.ask, ApiVersionsRequest(), 0) >= told - 0.2


def test_a_user_that_has_read_too_much_gets_nothing_in_another_connection_either(
    broker: Broker, client: Client, wire: WireClient
) -> None:
    """And what it has read of its session is not lost. Nothing else was used, so the first had its batch."""
    client.create("topic")
    for _ in range(2):
        wire.ask(produce("topic", batch(LARGE)), 9)
    with WireClient(broker) as reader:
        begun = reader.ask(fetch("topic", 0, session_epoch=0, max_bytes=100), 11)
        assert begun.session_id and begun.responses[0].partitions[0].records
    set_quota(broker, USER, **{FETCHED: RATE})
    assert wire.ask(fetch("topic", 0, max_bytes=100), 11).throttle_time_ms > 500
    for request in (
        fetch("topic", 1, wait=60_000),
        fetch("topic", 1, wait=60_000, session_epoch=0),
        fetch("topic", session_id=begun.session_id, session_epoch=1, wait=60_000),
    ):
        with WireClient(broker) as other:
            response = other.ask(request, 11)
            assert response.throttle_time_ms > 0 and not response.error_code and not response.responses
            assert response.session_id == request.session_id
    set_quota(broker, USER, **{FETCHED: None})
    with WireClient(broker) as other:
        request = fetch("topic", session_id=begun.session_id, session_epoch=2)
        assert other.ask(request, 11).responses[0].partitions[0].records


def test_a_repeated_empty_answer_is_not_given_to_a_throttled_client(
    broker: Broker, client: Client, wire: WireClient
) -> None:
    client.create("topic")
    wire.ask(produce("topic", batch(LARGE)), 9)
    with WireClient(broker) as idle:
        for _ in range(3):  # the third answer is the second one again
            assert idle.ask(fetch("topic", 1, wait=1), 11).responses
        set_quota(broker, USER, **{FETCHED: RATE})
        assert wire.ask(fetch("topic", 0), 11).throttle_time_ms > 500
        response = idle.ask(fetch("topic", 1, wait=1), 11)
        assert response.throttle_time_ms > 0 and not response.responses
        set_quota(broker, USER, **{FETCHED: None})
        assert idle.ask(fetch("topic", 1, wait=1), 11).responses


def test_a_response_has_no_more_than_is_allowed_at_once_but_one_batch(
    broker: Broker, client: Client, wire: WireClient
) -> None:
    client.create("topic")
    for _ in range(10):
        wire.ask(produce("topic", batch(LARGE[:8000])), 9)
    set_quota(broker, USER, **{FETCHED: RATE})
    records = wire.ask(fetch("topic", 0), 11).responses[0].partitions[0].records
    assert 16_000 < len(records) <= BURST


def test_a_fetch_that_goes_beyond_what_is_left_gets_nothing(
    broker: Broker, client: Client, wire: WireClient
) -> None:
    client.create("topic")
    for _ in range(10):
        wire.ask(produce("topic", batch(LARGE[:3000])), 9)
    set_quota(broker, USER, **{FETCHED: RATE})
    assert len(wire.ask(fetch("topic", 0, max_bytes=9500), 11).responses[0].partitions[0].records) > 9000
    response = wire.ask(fetch("topic", 0), 11)
    assert response.throttle_time_ms > 0 and not response.responses


def test_records_of_share_groups_count_as_all_others(brisk: Broker) -> None:
    broker, client = brisk, Client(brisk)
    client.create("topic")
    with WireClient(broker) as wire:
        topic_id = client.call("metadata", ["topic"]).topics["topic"].topic_id
        resource = Resource(ResourceType.GROUP, SHARERS)
        client.call("alter_configs", {resource: [ConfigChange("share.auto.offset.reset", 0, "earliest")]})
        assert not wire.ask(share_samples("topic", topic_id)[0], 1).error_code
        for _ in range(4):
            wire.ask(produce("topic", batch(LARGE[:11_000])), 9)
        set_quota(broker, USER, **{FETCHED: RATE})
        response = wire.ask(share_fetch(topic_id), 1)
        ((records,),) = [[one.records for one in topic.partitions] for topic in response.responses]
        assert 11_000 < len(records) < 33_000  # the allowance of the moment, and the batch that goes beyond
        told = response.throttle_time_ms / 1000
        assert 0.3 < told <= 7
        with WireClient(broker) as other:
            assert seconds(other.ask, share_fetch(topic_id, 1), 1) >= told - 0.3
        set_quota(broker, USER, **{FETCHED: None})


def test_topics_are_made_and_deleted_as_fast_as_is_allowed(
    broker: Broker, client: Client, wire: WireClient
) -> None:
    """Requests of older clients, which do not know the error, are carried out, and the clients wait
    afterwards."""
    set_quota(broker, USER, **{MUTATED: 1.0})  # eleven at once

    def create(*sizes: int, version: int = 7, name: str = "t", check: bool = False) -> Any:
        topics = [
            CreateTopicsRequest.CreatableTopic(
                name=f"{name}{size}", num_partitions=size, replication_factor=1, assignments=[], configs=[]
            )
            for size in sizes
        ]
        return wire.ask(CreateTopicsRequest(topics=topics, timeout_ms=1000, validate_only=check), version)

    def codes(response: Any) -> list[int]:
        return [one.error_code for one in getattr(response, "topics", None) or response.responses]

    assert codes(create(0)) == [37]  # topics that could not be created do not count
    beyond = create(10, 3, 4)
    assert sorted((one.name, one.error_code) for one in beyond.topics) == [("t10", 0), ("t3", 0), ("t4", 89)]
    assert 1000 < beyond.throttle_time_ms <= 2001
    assert client.call("metadata", ["t4"]).topics["t4"].error is not None
    began = time.monotonic()
    delete = DeleteTopicsRequest(topics=None, topic_names=["t3"], timeout_ms=1000)
    assert codes(wire.ask(delete, 5)) == [0]  # the connection was not read before
    assert time.monotonic() - began > 0.9
    assert codes(wire.ask(delete, 5)) == [3]
    grow = CreatePartitionsRequest(
        topics=[CreatePartitionsRequest.CreatePartitionsTopic(name="t10", count=11, assignments=None)],
        timeout_ms=1000,
        validate_only=True,
    )
    with WireClient(broker) as other:
        assert [one.error_code for one in other.ask(grow, 3).results] == [89]
        named = [MetadataRequest.MetadataRequestTopic(name="auto")]
    with WireClient(broker) as other:
        ask = MetadataRequest(topics=named, allow_auto_topic_creation=True)
        assert [one.error_code for one in other.ask(ask, 9).topics] == [3]
    with WireClient(broker) as other:
        set_quota(broker, USER, **{MUTATED: 1e6})
        assert [one.error_code for one in other.ask(ask, 9).topics] == [0]
        assert [one.error_code for one in other.ask(grow, 3).results] == [0]
    assert broker.metrics()["listener_throttled"] >= 3


def test_topics_that_no_client_makes_do_not_count() -> None:
    with Broker(listen="127.0.0.1:0", auto_create_topics=False) as broker, WireClient(broker) as wire:
        set_quota(broker, USER, **{MUTATED: 0.001})
        named = [MetadataRequest.MetadataRequestTopic(name=name) for name in ("a", "b", "c")]
        response = wire.ask(MetadataRequest(topics=named, allow_auto_topic_creation=True), 9)
        assert [one.error_code for one in response.topics] == [3, 3, 3]
        assert not response.throttle_time_ms


def test_a_quota_close_to_nothing_closes_no_connection(broker: Broker, wire: WireClient) -> None:
    set_quota(broker, USER, **{MUTATED: 5e-324})
    topics = [
        CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[]
        )
        for name in ("a", "b")
    ]
    response = wire.ask(CreateTopicsRequest(topics=topics, timeout_ms=1000, validate_only=False), 7)
    assert sorted(one.error_code for one in response.topics) == [0, 89]
    assert response.throttle_time_ms == 2**31 - 1


def test_an_address_connects_as_often_as_is_allowed(broker: Broker) -> None:
    """Those that are refused are closed later; the address of others counts for itself."""
    set_quota(broker, {"ip": "127.0.0.1"}, connection_creation_rate=1)
    host, port = broker.bootstrap_servers.split(":")
    connections = [socket.create_connection((host, int(port))) for _ in range(12)]
    refused = connections[-1]
    refused.settimeout(30)
    assert seconds(refused.recv, 1) > 0.05 and not refused.recv(1)
    until(lambda: broker.metrics()["listener_connections"] == 10)
    assert broker.metrics()["discarded"]["throttled"] == 2
    set_quota(broker, {"ip": "127.0.0.1"}, connection_creation_rate=None)
    set_quota(broker, {"ip": "10.1.2.3"}, connection_creation_rate=1)
    with WireClient(broker) as one:
        assert one.ask(ApiVersionsRequest(), 0).error_code == 0
    for connection in connections:
        connection.close()


def test_a_client_that_takes_much_time_is_told(broker: Broker, client: Client, wire: WireClient) -> None:
    client.create("topic", 500)
    set_quota(broker, USER, **{REQUESTED: 0.01})
    ask = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="topic")])
    told = [wire.ask(ask, 9).throttle_time_ms for _ in range(2)]
    assert told[-1] == 1001  # never more than a second, and one millisecond because of rounding


def test_a_quota_that_is_removed_counts_no_longer(broker: Broker, client: Client, wire: WireClient) -> None:
    client.create("topic")
    set_quota(broker, USER, **{PRODUCED: RATE})
    set_quota(broker, USER, **{PRODUCED: None})
    assert wire.ask(produce("topic", batch(LARGE), acks=1), 9).throttle_time_ms == 0
    assert wire.ask(produce("topic", batch(LARGE), acks=1), 9).throttle_time_ms == 0


def test_a_client_that_does_not_wait_is_read_no_faster(
    broker: Broker, client: Client, wire: WireClient
) -> None:
    """It has sent five requests at once, the first of which used up what is free."""
    client.create("topic")
    set_quota(broker, {"client-id": "tests"}, **{PRODUCED: 10_000})
    requests = [produce("topic", batch(b"v" * size)) for size in (100_000, *[2000] * 5)]

    def ask_all() -> None:
        sent = [(request, wire.send(request, 9)) for request in requests]
        for request, number in sent:
            wire.receive(request, 9, number)

    assert seconds(ask_all) >= 0.7


def test_a_client_that_goes_while_it_is_throttled_is_forgotten(
    broker: Broker, client: Client, wire: WireClient
) -> None:
    client.create("topic")
    set_quota(broker, USER, **{PRODUCED: 1})
    assert wire.ask(produce("topic", batch(LARGE)), 9).throttle_time_ms > 1e7
    request = ApiVersionsRequest()
    wire.send(request, 0)
    wire.socket.close()
    deadline = time.monotonic() + 100
    while broker.metrics()["listener_connections"]:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_records_of_a_client_that_goes_while_it_is_throttled_are_not_lost(
    broker: Broker, client: Client, wire: WireClient
) -> None:
    """It asks for no acknowledgement, so it will not send them again."""
    client.create("topic")
    set_quota(broker, USER, **{PRODUCED: RATE})
    for value in (LARGE, b"second", b"third"):
        wire.send(produce("topic", batch(value), acks=0), 9)
    wire.socket.close()
    until(lambda: client.values("topic") == [LARGE, b"second", b"third"])


def test_nothing_is_held_for_a_client_while_it_is_throttled(
    broker: Broker, client: Client, wire: WireClient
) -> None:
    """It has begun a long request; the room of all connections together is for the others."""
    client.create("topic")
    set_quota(broker, USER, **{PRODUCED: 1})
    assert wire.ask(produce("topic", batch(LARGE)), 9).throttle_time_ms > 1e7
    before = broker.metrics()["listener_bytes_in"]
    wire.socket.sendall((1_000_000).to_bytes(4, "big") + bytes(100))
    deadline = time.monotonic() + 100
    while broker.metrics()["listener_bytes_in"] == before:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert broker.metrics()["listener_held_bytes"] == 0


# -- real clients ------------------------------------------------------------------------------------


def kafka_python(address: str, client_id: str) -> Any:
    producer = KafkaProducer(bootstrap_servers=address, client_id=client_id, linger_ms=0)
    try:
        for _ in range(3):
            producer.send("topic", LARGE).get(100)
    finally:
        producer.close(5)


def librdkafka(address: str, client_id: str) -> None:
    producer = ConfluentProducer({"bootstrap.servers": address, "client.id": client_id, "linger.ms": 0})
    for _ in range(3):
        producer.produce("topic", LARGE)
        assert producer.flush(100) == 0


def aiokafka(address: str, client_id: str) -> None:
    async def write() -> None:
        async with AIOKafkaProducer(bootstrap_servers=address, client_id=client_id) as producer:
            for _ in range(3):
                await producer.send_and_wait("topic", LARGE)

    asyncio.run(write())


def test_real_clients_are_throttled_while_another_is_not(broker: Broker, client: Client) -> None:
    """Each writes 66 000 octets."""
    client.create("topic")
    kinds = (kafka_python, librdkafka, aiokafka)
    for kind in kinds:
        set_quota(broker, {"client-id": f"slow-{kind.__name__}"}, **{PRODUCED: 4200})
    address = broker.bootstrap_servers
    with ThreadPoolExecutor(2 * len(kinds)) as pool:
        slow = [pool.submit(seconds, one, address, f"slow-{one.__name__}") for one in kinds]
        fast = [pool.submit(seconds, one, address, f"fast-{one.__name__}") for one in kinds]
        took = [(one.result(), other.result()) for one, other in zip(slow, fast, strict=True)]
    # Two batches fit into a burst of 42 000 but for 2000 octets, half a second, before the third is sent.
    assert all(throttled >= 0.4 for throttled, _ in took), took


def test_a_consumer_gets_all_of_it_though_it_is_throttled(brisk: Broker) -> None:
    """Each batch is more than may be read at once, so the second comes when the first is forgotten."""
    broker, client = brisk, Client(brisk)
    client.create("topic")
    for _ in range(2):
        client.produce("topic", LARGE)
    set_quota(broker, USER, **{FETCHED: 15_000})
    consumer = KafkaConsumer(
        "topic",
        bootstrap_servers=broker.bootstrap_servers,
        auto_offset_reset="earliest",
        consumer_timeout_ms=30_000,
    )
    try:
        assert seconds(lambda: [next(consumer) for _ in range(2)]) >= 0.75
    finally:
        consumer.close()
