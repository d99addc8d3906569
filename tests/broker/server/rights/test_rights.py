"""Rights over a connection: refused requests have no effect, and revoked rights count at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from broker.clients import Client, batch
from broker.server.client import WireClient
from broker.server.samples import fetch, produce, streams_heartbeat
from kafka.errors import (
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError,
)
from kafka.protocol.admin import DeleteTopicsRequest
from kafka.protocol.metadata import MetadataRequest

from dafka import Broker
from dafka.broker.codec.messages.consumer_group import ConsumerGroupDescribeRequest
from dafka.broker.codec.messages.streams_group import StreamsGroupDescribeRequest
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat
from dafka.broker.interface.streams_groups import (
    StreamsHeartbeat,
    StreamsInvalidTopologyError,
    Subtopology,
    Topology,
)
from dafka.protocol.batch import ATTRIBUTES, TRANSACTIONAL_BIT
from dafka.security import ServerAcls
from dafka.security.acls.terms import Acl, AclFilter, Operation, PatternType, Permission, ResourceType

EVERYBODY = "User:ANONYMOUS"
REFUSED = TopicAuthorizationFailedError.errno
LONG = 30_000  # ms; a fetch that waits for it has hung


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(listen="127.0.0.1:0", acls=ServerAcls()) as running:
        yield running


def acl(
    operation: Operation, name: str = "t", permission: Permission = Permission.ALLOW, host: str = "*"
) -> Acl:
    return Acl(ResourceType.TOPIC, name, PatternType.LITERAL, EVERYBODY, host, operation, permission)


def allow(client: Client, *acls: Acl) -> None:
    assert not any(one.error for one in client.call("create_acls", list(acls)))


def read(response: Any) -> tuple[int, bool]:
    """The error of the only partition, and whether there are records."""
    (topic,) = response.responses
    (partition,) = topic.partitions
    return partition.error_code, bool(partition.records)


def write(client: Client) -> None:
    (produced,) = client.call("produce", {("t", 0): [batch(b"later")]}, -1).values()
    assert produced.error is None


def test_a_client_of_the_process_is_the_owner(client: Client, wire: WireClient):
    client.create("t")
    write(client)
    assert client.call("describe_acls", AclFilter()) == []
    assert wire.ask(produce("t", batch(b"v")), 9).responses[0].partition_responses[0].error_code == REFUSED


def test_refused_requests_have_no_effect(client: Client, wire: WireClient):
    client.create("t")
    client.create("u")
    allow(client, acl(Operation.WRITE, "u"), acl(Operation.DESCRIBE))
    request = produce("t", batch(b"v"))
    request.topic_data += produce("u", batch(b"v")).topic_data
    found = {one.name: one.partition_responses[0].error_code for one in wire.ask(request, 9).responses}
    assert found == {"t": REFUSED, "u": 0}
    wire.ask(DeleteTopicsRequest(topics=[], topic_names=["t", "u"], timeout_ms=1000), 5)
    topic = MetadataRequest.MetadataRequestTopic(name="created")
    request = MetadataRequest(topics=[topic], allow_auto_topic_creation=True)
    allow(client, acl(Operation.DESCRIBE, "created"))
    assert [one.error_code for one in wire.ask(request, 4).topics] == [REFUSED]
    assert set(client.call("metadata", None).topics) == {"t", "u"}
    ends = client.call("list_offsets", {("t", 0): -1, ("u", 0): -1})
    assert {key[0]: one.offset for key, one in ends.items()} == {"t": 0, "u": 1}


def test_a_batch_of_a_transaction_needs_a_transactional_id(client: Client, wire: WireClient):
    client.create("t")
    allow(client, acl(Operation.WRITE))
    octets = bytearray(batch(b"v"))
    octets[ATTRIBUTES] |= TRANSACTIONAL_BIT
    response = wire.ask(produce("t", bytes(octets)), 9)
    assert (
        response.responses[0].partition_responses[0].error_code
        == TransactionalIdAuthorizationFailedError.errno
    )


def test_rights_are_of_the_host_that_a_client_connects_from(client: Client, wire: WireClient):
    client.create("t")
    allow(client, acl(Operation.READ))
    assert read(wire.ask(fetch("t", 0), 12)) == (0, False)
    allow(client, acl(Operation.READ, permission=Permission.DENY, host="127.0.0.2"))
    assert read(wire.ask(fetch("t", 0), 12)) == (0, False)
    allow(client, acl(Operation.READ, permission=Permission.DENY, host="127.0.0.1"))
    assert read(wire.ask(fetch("t", 0), 12)) == (REFUSED, False)


@pytest.mark.parametrize("times", [1, 3])
def test_a_fetch_that_waits_gets_no_record_once_the_right_is_gone(
    client: Client, wire: WireClient, times: int
):
    """The third time the request is a repeated one, which is not decoded again."""
    client.create("t")
    allow(client, acl(Operation.READ))
    for _ in range(times):
        assert read(wire.ask(fetch("t", 0, wait=1), 12)) == (0, False)
    request = fetch("t", 0, wait=LONG)
    asked = wire.send(request, 12)
    client.call("delete_acls", [AclFilter()])
    write(client)
    assert read(wire.receive(request, 12, asked)) == (REFUSED, False)
    assert read(wire.ask(fetch("t", 0, wait=1), 12)) == (REFUSED, False)


def test_a_repeated_fetch_is_refused_though_nothing_has_changed_in_its_partitions(
    client: Client, wire: WireClient
):
    client.create("t")
    allow(client, acl(Operation.READ))
    for _ in range(4):
        assert read(wire.ask(fetch("t", 0, wait=1), 12)) == (0, False)
    client.call("delete_acls", [AclFilter()])
    assert read(wire.ask(fetch("t", 0, wait=1), 12)) == (REFUSED, False)
    allow(client, acl(Operation.READ))
    write(client)
    assert read(wire.ask(fetch("t", 0, wait=1), 12)) == (0, True)


def test_a_fetch_session_is_told_of_a_right_that_is_gone(client: Client, wire: WireClient):
    client.create("t")
    allow(client, acl(Operation.READ))
    begun = wire.ask(fetch("t", 0, session_epoch=0), 12)
    assert begun.session_id and read(begun) == (0, False)

    def go_on(epoch: int, wait: int = 1) -> Any:
        return fetch("t", session_id=begun.session_id, session_epoch=epoch, wait=wait, topics=[])

    assert wire.ask(go_on(1), 12).responses == []
    client.call("delete_acls", [AclFilter()])
    assert read(wire.ask(go_on(2), 12)) == (REFUSED, False)
    allow(client, acl(Operation.READ))
    assert read(wire.ask(go_on(3), 12)) == (0, False)
    request = go_on(4, LONG)
    asked = wire.send(request, 12)
    client.call("delete_acls", [AclFilter()])
    write(client)
    assert read(wire.receive(request, 12, asked)) == (REFUSED, False)


def test_only_what_may_be_described_is_listed(client: Client, wire: WireClient):
    for name in ("t", "tea", "u"):
        client.create(name)
    allow(client, acl(Operation.WRITE, "t")._replace(pattern=PatternType.PREFIXED))
    for version in (0, 1, 12):
        topics = [] if version == 0 else None
        found = wire.ask(MetadataRequest(topics=topics), version).topics
        assert {one.name for one in found} == {"t", "tea"}
    named = [MetadataRequest.MetadataRequestTopic(name=name) for name in ("u", "missing")]
    for version in (0, 1, 12):
        found = wire.ask(MetadataRequest(topics=named, allow_auto_topic_creation=False), version).topics
        assert {(one.name, one.error_code) for one in found} == {("u", REFUSED), ("missing", REFUSED)}


def test_groups_are_not_described_whose_topics_may_not_be_and_the_answer_says_so(
    client: Client, wire: WireClient
):
    client.create("t")
    heartbeat = ConsumerHeartbeat("m", 0, rebalance_timeout=9.0, topics=["t"], owned={})
    assert client.call("consumer_group_heartbeat", "c", heartbeat).error is None
    topology = Topology(0, [Subtopology("0", ["t"])])
    joining = StreamsHeartbeat("m", 0, -1, None, None, 9.0, topology, {}, {}, {}, "p")
    assert client.call("streams_group_heartbeat", "s", joining).error is None
    may = Acl(
        ResourceType.GROUP, "*", PatternType.LITERAL, EVERYBODY, "*", Operation.DESCRIBE, Permission.ALLOW
    )
    allow(client, may)

    def said(kind: Any, group: str) -> tuple[int, str]:
        (found,) = wire.ask(kind(group_ids=[group], include_authorized_operations=False), 0).groups
        return found.error_code, found.error_message

    # What is no topic is said to everybody who may be a member.
    assert (
        wire.ask(streams_heartbeat("a/b", group_id="s"), 0).error_code == GroupAuthorizationFailedError.errno
    )
    allow(client, may._replace(operation=Operation.READ))
    assert wire.ask(streams_heartbeat("a/b", group_id="s"), 0).error_code == StreamsInvalidTopologyError.errno
    assert wire.ask(streams_heartbeat("t", group_id="s"), 0).error_code == REFUSED
    words = "topic(s) that the client is not authorized to describe."
    assert said(ConsumerGroupDescribeRequest, "c") == (REFUSED, f"The group has described {words}")
    words = "topics that the client is not authorized to describe."
    assert said(StreamsGroupDescribeRequest, "s") == (REFUSED, f"The described group uses {words}")
    allow(client, acl(Operation.DESCRIBE))
    assert said(StreamsGroupDescribeRequest, "s")[0] == 0
