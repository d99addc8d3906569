"""Quotas, and accounts for SASL, beside Apache Kafka's: DAFKA_TEST_APACHE_KAFKA=1.

The same requests to both; the errors of the answers are compared.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from broker.clients import batch
from broker.server.client import WireClient
from broker.server.samples import fetch, produce
from clients.servers import APACHE, running
from kafka.protocol.admin import (
    AlterUserScramCredentialsRequest,
    CreateTopicsRequest,
    DescribeUserScramCredentialsRequest,
)
from kafka.protocol.admin.client_quotas import AlterClientQuotasRequest, DescribeClientQuotasRequest
from timing import until

from dafka import Broker

pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("DAFKA_TEST_APACHE_KAFKA"),
        reason="starts Apache Kafka; set DAFKA_TEST_APACHE_KAFKA=1",
    ),
    pytest.mark.xdist_group("apache"),
]

RATE = 2000.0
ENTITIES: list[list[tuple[str, str | None]]] = [
    [("user", "alice")],
    [("user", None)],
    [("client-id", "app")],
    [("user", "alice"), ("client-id", None)],
    [("client-id", "app"), ("user", "alice")],
    [("planet", "mars")],
    [("ip", "127.0.0.1")],
    [("ip", "localhost")],
    [("ip", None)],
    [("ip", "not an address")],
    [("ip", "no-such-host.invalid")],
    [("ip", socket.gethostname())],
    [("ip", "127.0.0.1"), ("user", "alice")],
    [],
    [("user", "")],
]
VALUES = [
    {"producer_byte_rate": RATE},
    {"consumer_byte_rate": 1.5},
    {"request_percentage": 0.5},
    {"producer_byte_rate": 0.0},
    {"producer_byte_rate": -1.0},
    {"no_such_key": 1.0},
    {"controller_mutation_rate": 0.5},
    {"connection_creation_rate": 1000.0},
    {"connection_creation_rate": 2.0**31},
    {"connection_creation_rate": None, "producer_byte_rate": None},
]


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[WireClient, WireClient]]:
    """A connection to Apache Kafka, and one to ours."""
    with (
        running(APACHE) as theirs,
        Broker(listen="127.0.0.1:0") as ours,
        WireClient(theirs) as one,
        WireClient(ours) as other,
    ):
        yield one, other


def altering(entity: list[tuple[str, str | None]], values: dict[str, float | None]) -> Any:
    data = AlterClientQuotasRequest.EntryData
    return AlterClientQuotasRequest(
        entries=[
            data(
                entity=[data.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                ops=[
                    data.OpData(key=key, value=value or 0.0, remove=value is None)
                    for key, value in values.items()
                ],
            )
        ],
        validate_only=False,
    )


def described(wire: WireClient, *components: tuple[str, int, str | None], strict: bool = False) -> Any:
    component = DescribeClientQuotasRequest.ComponentData
    request = DescribeClientQuotasRequest(
        components=[component(entity_type=one, match_type=how, match=name) for one, how, name in components],
        strict=strict,
    )
    answer = wire.ask(request, 1)
    entries = answer.entries or []
    return answer.error_code, sorted(
        (
            sorted((one.entity_type, one.entity_name or "") for one in entry.entity),
            sorted((one.key, one.value) for one in entry.values),
        )
        for entry in entries
    )


def compare(what: str, theirs: Any, ours: Any) -> None:
    assert ours == theirs, what


def test_quotas_are_set_refused_and_found_alike(both: tuple[WireClient, WireClient]) -> None:
    one, other = both
    differences = []
    for entity in ENTITIES:
        for values in VALUES:
            codes = [wire.ask(altering(entity, values), 1).entries[0].error_code for wire in both]
            if codes[0] != codes[1]:
                differences.append((entity, values, codes))
    assert not differences
    twice = altering([("user", "alice"), ("user", "bob")], VALUES[0])
    twice.validate_only = True
    compare("a user twice in an entity", *(wire.ask(twice, 1).entries[0].error_code for wire in both))
    filters: list[list[tuple[str, int, str | None]]] = [
        [],
        [("user", 0, "alice")],
        [("user", 1, None)],
        [("user", 2, None)],
        [("client-id", 0, "app")],
        [("user", 0, "alice"), ("client-id", 2, None)],
        [("user", 2, None), ("user", 2, None)],
        [("planet", 2, None)],
        [("user", 0, None)],
        [("ip", 2, None)],
        [("ip", 0, "localhost")],
        [("ip", 2, None), ("user", 2, None)],
        [("", 2, None)],
        [("user", 3, None)],
    ]
    until(lambda: described(one) == described(other))  # Apache Kafka's broker hears of them a little later
    for components in filters:
        for strict in (False, True):
            theirs, ours = (described(wire, *components, strict=strict) for wire in both)
            compare(f"{components} {strict}", theirs, ours)


def test_accounts_are_set_refused_and_found_alike(both: tuple[WireClient, WireClient]) -> None:
    kind = AlterUserScramCredentialsRequest
    upsertion, deletion = kind.ScramCredentialUpsertion, kind.ScramCredentialDeletion

    def put(**more: Any) -> Any:
        fields = {"name": "a", "mechanism": 1, "iterations": 4096, "salt": b"s" * 16}
        return upsertion(**{**fields, "salted_password": b"p" * 32, **more})

    requests = [
        ([], [put()]),
        ([], [put(name="")]),
        ([], [put(mechanism=0)]),
        ([], [put(mechanism=9)]),
        ([], [put(iterations=4095)]),
        ([], [put(iterations=16385)]),
        ([], [put(), put()]),
        ([deletion(name="nobody", mechanism=1)], []),
        ([deletion(name="a", mechanism=1)], [put()]),
        ([], [put(name="b", mechanism=2, salted_password=b"p" * 64)]),
        ([], [put(name="c"), put(name="c", mechanism=2, salted_password=b"p" * 64)]),
    ]
    for number, (deletions, upsertions) in enumerate(requests):
        codes = [
            [
                (one.user, one.error_code)
                for one in wire.ask(kind(deletions=deletions, upsertions=upsertions), 0).results
            ]
            for wire in both
        ]
        compare(f"accounts {number}", *codes)

    def accounts(wire: WireClient, *names: str) -> Any:
        name = DescribeUserScramCredentialsRequest.UserName
        request = DescribeUserScramCredentialsRequest(users=[name(name=one) for one in names] or None)
        return sorted(
            (one.user, one.error_code, [(info.mechanism, info.iterations) for info in one.credential_infos])
            for one in wire.ask(request, 0).results
        )

    until(lambda: accounts(both[0], "a", "b") == accounts(both[1], "a", "b"))
    compare("accounts of names", *(accounts(wire, "a", "nobody", "b", "b") for wire in both))


def test_a_user_that_has_read_too_much_gets_nothing_in_another_connection(
    both: tuple[WireClient, WireClient],
) -> None:
    """Ours has sent the records that were too many, because nothing else counted; Apache Kafka has not."""
    told = []
    for wire in both:
        topic = CreateTopicsRequest.CreatableTopic(
            name="read", num_partitions=1, replication_factor=1, assignments=[], configs=[]
        )
        wire.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000, validate_only=False), 4)
        until(lambda wire=wire: not _produced(wire))
        wire.ask(altering([("client-id", "tests")], {"consumer_byte_rate": RATE}), 1)
        until(lambda wire=wire: wire.ask(fetch("read", 0), 11).throttle_time_ms)
        host, port = wire.socket.getpeername()
        with WireClient(SimpleNamespace(bootstrap_servers=f"{host}:{port}")) as other:
            response = other.ask(fetch("read", 0, wait=60_000), 11)
            told.append((response.error_code, len(response.responses), response.throttle_time_ms > 0))
    assert told == [(0, 0, True)] * 2


def test_a_fetch_that_goes_beyond_what_is_left_gets_nothing(both: tuple[WireClient, WireClient]) -> None:
    """It looks for as much as may be read in all windows at once, whatever has been read in them."""
    told = []
    for wire in both:
        wire.ask(altering([("client-id", "tests")], {"consumer_byte_rate": None}), 1)
        topic = CreateTopicsRequest.CreatableTopic(
            name="left", num_partitions=1, replication_factor=1, assignments=[], configs=[]
        )
        wire.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000, validate_only=False), 4)
        for _ in range(10):
            until(lambda wire=wire: not _produced(wire, "left", 3000))
        wire.ask(altering([("client-id", "few")], {"consumer_byte_rate": RATE}), 1)
        until(lambda wire=wire: described(wire, ("client-id", 0, "few"))[1])
        sizes = []
        for max_bytes in (9500, 1 << 20):
            request = fetch("left", 0, max_bytes=max_bytes)
            response = wire.receive(request, 11, wire.send(request, 11, client_id="few"))
            sizes.append([len(one.partitions[0].records) // 1000 for one in response.responses])
        told.append((sizes, response.throttle_time_ms > 0))
    assert told == [([[9], []], True)] * 2


def _produced(wire: WireClient, topic: str = "read", octets: int = 50_000) -> int:
    found = wire.ask(produce(topic, batch(b"v" * octets)), 9).responses[0].partition_responses[0]
    code: int = found.error_code
    return code
