"""Each API in each version, with all rights and with each right missing that the table says it needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from broker.clients import Client, batch
from broker.server.admin_samples import ANY_ACL, NO_ID
from broker.server.client import Addressed, WireClient
from broker.server.samples import CONSUMERS, produce, samples, streams_heartbeat
from broker.server.share_samples import MEMBER, SHARED, SHARERS, share_acknowledge, share_offsets
from broker.share.member import Member
from crc32c import crc32c
from kafka.protocol.admin import (
    AlterConfigsRequest,
    CreateTopicsRequest,
    DeleteAclsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    DescribeTopicPartitionsRequest,
    IncrementalAlterConfigsRequest,
    ListTransactionsRequest,
)
from kafka.protocol.consumer import OffsetFetchRequest
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest
from timing import until

from dafka import Broker
from dafka.broker.codec.errors import error_code
from dafka.broker.interface.broker import CommittedOffset
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat
from dafka.broker.interface.share import ShareFetchLimits, ShareRequest
from dafka.broker.server.rights import needs
from dafka.broker.server.rights.guards import GUARDS
from dafka.broker.server.rights.needs import ERRORS, NEEDS, Effect, Need
from dafka.broker.server.table import BY_KEY
from dafka.protocol.batch import ATTRIBUTES, TRANSACTIONAL_BIT
from dafka.security import ServerAcls
from dafka.security.acls.terms import (
    CLUSTER_NAME,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

EVERYBODY = "User:ANONYMOUS"
REFUSED = {error_code(error) for error in ERRORS.values()}
TOPIC, GROUP, TRANSACTION, LATER = "flights", "readers", "payments", "created"
OUT_OF_PLACE = {"SaslHandshake", "SaslAuthenticate"}  # are answered with an error of their own

CRC = slice(17, 21)  # of a batch; it is that of what follows

STAY = 10.0
"""Seconds for which members are not heard of; a session has 45."""

Key = tuple[str, int]  # an API, and the place of one of its needs


def rule(kind: ResourceType, operation: Operation, permission: Permission, host: str = "*") -> Acl:
    name = CLUSTER_NAME if kind is ResourceType.CLUSTER else "*"
    return Acl(kind, name, PatternType.LITERAL, EVERYBODY, host, operation, permission)


def all_rights(host: str = "*") -> list[Acl]:
    return [rule(kind, Operation.ALL, Permission.ALLOW, host) for kind in ERRORS]


class Scene:
    """A broker in which its client at ``host`` has all rights, and something of everything."""

    def __init__(self, broker: Addressed, host: str = "*", others: Sequence[Acl] = ()) -> None:
        self.host = host
        self.client = Client(broker)  # type: ignore[arg-type]  # which only takes its address
        self.client.call("create_acls", [*others, *all_rights(host)])
        self.client.create(TOPIC)
        self.node = str(self.client.call("metadata", ()).controller_id)
        self.topic_id = self.client.call("metadata", [TOPIC]).topics[TOPIC].topic_id
        call = self.client.call
        call("commit_offsets", GROUP, {(TOPIC, 0): CommittedOffset(1)}, generation=-1, member_id="")
        identity = call("init_producer_id", TRANSACTION, 60.0)
        call("add_partitions_to_transaction", TRANSACTION, identity.producer_id, identity.epoch, [(TOPIC, 0)])
        self.broker = broker
        self._join()
        for group in (SHARERS, SHARED):
            member = Member(call, group, TOPIC)
            member.member_id = MEMBER
            member.heartbeat()
            member.fetch()
        member.heartbeat(-1)

    def _join(self) -> None:
        self._joined = time.monotonic()
        heartbeat = ConsumerHeartbeat("m", 0, rebalance_timeout=9.0, topics=[TOPIC], owned={})
        self.client.call("consumer_group_heartbeat", CONSUMERS, heartbeat)
        with WireClient(self.broker, "" if self.host == "*" else self.host) as wire:
            assert wire.ask(streams_heartbeat(TOPIC, member_id="m"), 0).error_code == 0
        member = Member(self.client.call, SHARERS, TOPIC)
        member.member_id = MEMBER
        member.heartbeat()

    def stay(self) -> None:
        """Have the members join again long before their sessions are over, however long the tests take."""
        if time.monotonic() - self._joined > STAY:
            self._join()

    def requests(self) -> dict[str, Any]:
        found = {type(one).__name__[:-7]: one for one in samples(TOPIC, self.topic_id, GROUP)}
        nobody = {**ANY_ACL, "principal_filter": "User:nobody"}
        found["DeleteAcls"] = DeleteAclsRequest(filters=[DeleteAclsRequest.DeleteAclsFilter(**nobody)])
        return found

    def denied(self, need: Need, also: Iterable[tuple[ResourceType, Operation]]) -> list[Acl]:
        """The rules that take a right away."""
        rights = [(need.kind, need.operation), *also]
        if need.instead is not None:
            rights.append((ResourceType.CLUSTER, need.instead))
        return [rule(kind, operation, Permission.DENY, self.host) for kind, operation in rights]

    def without(self, denied: list[Acl], ask: Callable[[], Any]) -> Any:
        """What is answered while these rules count."""
        self.client.call("create_acls", denied)
        self.settle(len(denied))
        try:
            return ask()
        finally:
            self.client.call("delete_acls", [AclFilter(*one) for one in denied])
            self.settle(0)

    def settle(self, denied: int) -> None:
        """Wait until so many rules count."""


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with Broker(listen="127.0.0.1:0", acls=ServerAcls()) as broker:
        yield Scene(broker)


@pytest.fixture
def wire(scene: Scene) -> Iterator[WireClient]:
    scene.stay()
    with WireClient(scene.broker) as connected:
        yield connected


def codes(found: Any) -> set[int]:
    """All error codes in a response."""
    if isinstance(found, dict):
        here = {value for name, value in found.items() if name.endswith("error_code") and value}
        return here.union(*map(codes, found.values()))
    return set().union(*map(codes, found)) if isinstance(found, list) else set()


def created(scene: Scene) -> Any:
    topic = CreateTopicsRequest.CreatableTopic(
        name=LATER, num_partitions=2, replication_factor=1, assignments=[], configs=[]
    )
    scene.client.call("delete_topics", [LATER])
    return CreateTopicsRequest(topics=[topic], timeout_ms=1000, validate_only=False)


def metadata(**change: Any) -> Any:
    fields: dict[str, Any] = {
        "topics": [],
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": True,
        "include_topic_authorized_operations": False,
    }
    return MetadataRequest(**{**fields, **change})


def config(request_class: Any, kind: int, name: str) -> Any:
    if request_class is DescribeConfigsRequest:
        one = request_class.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=None
        )
        return request_class(resources=[one], include_synonyms=False, include_documentation=False)
    one = request_class.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[])
    return request_class(resources=[one], validate_only=True)


def configs(request_class: Any) -> dict[Key, Callable[[Scene], Any]]:
    name = request_class.__name__[:-7]
    return {
        (name, 0): lambda scene: config(request_class, 2, TOPIC),
        (name, 1): lambda scene: config(request_class, 32, GROUP),
        (name, 2): lambda scene: config(request_class, 4, scene.node),
    }


def all_offsets(scene: Scene) -> Any:
    group = OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id=GROUP, member_id=None, member_epoch=-1, topics=None
    )
    return OffsetFetchRequest(group_id=GROUP, topics=None, groups=[group], require_stable=False)


def missing(scene: Scene) -> Any:
    scene.client.call("delete_topics", [LATER])
    topic = MetadataRequest.MetadataRequestTopic(name=LATER, topic_id=NO_ID)
    return metadata(topics=[topic], allow_auto_topic_creation=True)


def in_transaction(scene: Scene) -> Any:
    octets = bytearray(batch(b"value"))
    octets[ATTRIBUTES] |= TRANSACTIONAL_BIT
    octets[CRC] = crc32c(bytes(octets[CRC.stop :])).to_bytes(4, "big")
    return produce(TOPIC, bytes(octets), topic_id=scene.topic_id, transactional_id=TRANSACTION)


def by_name(scene: Scene) -> Any:
    topics = [DeleteTopicsRequest.DeleteTopicState(name=TOPIC, topic_id=NO_ID)]
    return DeleteTopicsRequest(topics=topics, topic_names=[TOPIC], timeout_ms=1000)


def by_id(scene: Scene) -> Any:
    """Of a topic that may be deleted by nobody, so that it is still there for the next test."""
    topics = [DeleteTopicsRequest.DeleteTopicState(name=None, topic_id=scene.topic_id)]
    return DeleteTopicsRequest(topics=topics, topic_names=[], timeout_ms=1000)


def in_session(scene: Scene) -> Any:
    limits = ShareFetchLimits(0.0, 1, 1, 1)
    request = ShareRequest(SHARERS, MEMBER, 0, {})
    assert scene.client.call("share_fetch", request, [(scene.topic_id, 0)], [], limits).error is None
    return share_acknowledge(scene.topic_id, 1)


REQUESTS: dict[Key, Callable[[Scene], Any]] = {
    ("Produce", 0): in_transaction,
    ("DeleteTopics", 0): by_name,
    ("Metadata", 1): lambda scene: metadata(topics=None),
    ("Metadata", 2): missing,
    ("Metadata", 3): lambda scene: metadata(),
    ("OffsetFetch", 2): all_offsets,
    ("FindCoordinator", 1): lambda scene: FindCoordinatorRequest(
        key=TRANSACTION, key_type=1, coordinator_keys=[TRANSACTION]
    ),
    ("FindCoordinator", 2): lambda scene: FindCoordinatorRequest(
        key_type=2, coordinator_keys=[f"group:{'A' * 22}:0"]
    ),
    ("CreateTopics", 1): created,
    ("DeleteTopics", 1): by_id,
    ("InitProducerId", 0): lambda scene: InitProducerIdRequest(
        transactional_id="another", transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
    ),
    ("ListTransactions", 0): lambda scene: ListTransactionsRequest(
        state_filters=[], producer_id_filters=[], duration_filter=-1, transactional_id_pattern=None
    ),
    ("DescribeTopicPartitions", 1): lambda scene: DescribeTopicPartitionsRequest(
        topics=[], response_partition_limit=100, cursor=None
    ),
    ("ShareAcknowledge", 1): in_session,
    ("DescribeShareGroupOffsets", 2): lambda scene: share_offsets(None),
    **configs(DescribeConfigsRequest),
    **configs(AlterConfigsRequest),
    **configs(IncrementalAlterConfigsRequest),
}
"""Requests for which a right is needed that the samples do not need."""

OLDEST = {"Produce": 3}  # the first one that is answered, and not only announced
SINCE = {
    ("Metadata", 1): 1,  # no topics are all topics in version 0
    ("Metadata", 3): 8,
    ("FindCoordinator", 1): 1,
    ("FindCoordinator", 2): 6,
    ("OffsetFetch", 2): 2,
    ("CreateTopics", 1): 5,
    ("DeleteTopics", 1): 6,
    ("DescribeLogDirs", 0): 3,  # before it there is no error in the answer, and nothing else
    ("Produce", 0): 3,
    ("AddPartitionsToTxn", 2): 4,
    ("Produce", 1): 3,
}
UNTIL = {("Metadata", 3): 10, ("AddPartitionsToTxn", 0): 3, ("AddPartitionsToTxn", 1): 3}


def operations_are_gone(response: Any) -> bool:
    return not response.authorized_operations


HIDDEN: dict[Key, Callable[[Any], bool]] = {
    ("Metadata", 3): operations_are_gone,
    ("DescribeCluster", 0): operations_are_gone,
    ("DeleteTopics", 1): lambda response: response.responses[0].name is None,
    ("CreateTopics", 1): lambda response: (
        response.topics[0].topic_config_error_code == 29 and response.topics[0].num_partitions == -1
    ),
}
"""Whether something is left out of an answer; else its name is nowhere in it."""

NAMES = {
    ResourceType.TOPIC: TOPIC,
    ResourceType.GROUP: GROUP,
    ResourceType.TRANSACTIONAL_ID: TRANSACTION,
}
ALSO = {
    ("InitProducerId", 1): [(ResourceType.TOPIC, Operation.WRITE)],
    ("DeleteTopics", 1): [
        (ResourceType.TOPIC, Operation.DELETE),
        (ResourceType.CLUSTER, Operation.DELETE),
    ],
}
"""Further rights without which the one of the table is needed."""


def test_each_api_has_a_row_and_a_guard():
    names = [api.name for api in BY_KEY.values()]
    assert list(NEEDS) == names
    assert set(GUARDS) == set(names) - {"Produce", "Fetch"}


@pytest.mark.parametrize("name", list(NEEDS))
def test_with_all_rights_nothing_is_refused(scene: Scene, wire: WireClient, name: str):
    api = next(api for api in BY_KEY.values() if api.name == name)
    for version in range(max(api.first, OLDEST.get(name, 0)), api.last + 1):
        response = wire.ask(scene.requests()[name], version)
        assert not codes(response.to_dict()) & REFUSED, (version, response)


ELSEWHERE = {"CreateDelegationToken"}
"""Tokens are for clients that have logged in, which those here have not (answers/test_tokens.py)."""


@pytest.mark.parametrize(
    ("name", "place"),
    [(name, place) for name, row in NEEDS.items() if name not in ELSEWHERE for place in range(len(row))],
)
def test_without_a_right_the_answer_is_what_the_table_says(
    scene: Scene, wire: WireClient, name: str, place: int
):
    api = next(api for api in BY_KEY.values() if api.name == name)
    key, need = (name, place), NEEDS[name][place]
    denied = scene.denied(need, ALSO.get(key, ()))
    versions = range(max(api.first, SINCE.get(key, 0)), UNTIL.get(key, api.last) + 1)
    for version in versions:

        def ask(version: int = version) -> Any:
            make = REQUESTS.get(key)
            request = scene.requests()[name] if make is None else make(scene)
            return wire.ask(request, version)

        response = scene.without(denied, ask)
        if need.effect is not Effect.LEFT_OUT:
            assert error_code(need.error) in codes(response.to_dict()), (version, response)
            continue
        names = {NAMES[need.kind], str(scene.topic_id)} if need.kind in NAMES else set()
        is_hidden = HIDDEN.get(
            key, lambda found, names=names: not any(map(str(found.to_dict()).count, names))
        )
        assert is_hidden(response), (version, response)
        if key not in ALSO:
            assert not is_hidden(ask()), (version, response)


def test_an_entry_that_several_filters_of_a_deletion_take_is_in_the_answer_to_each(
    scene: Scene, wire: WireClient
):
    both = [
        Acl(ResourceType.TOPIC, "twice", PatternType.LITERAL, user, "*", Operation.READ, Permission.ALLOW)
        for user in ("User:a", "User:b")
    ]
    assert [one.error for one in scene.client.call("create_acls", both)] == [None, None]
    until(lambda: len(scene.client.call("describe_acls", AclFilter(name="twice"))) == 2)
    named = {**ANY_ACL, "resource_name_filter": "twice"}
    kind = DeleteAclsRequest.DeleteAclsFilter
    filters = [kind(**{**named, "principal_filter": user}) for user in (None, "User:a", "User:c", None)]
    found = wire.ask(DeleteAclsRequest(filters=filters), 3).filter_results
    assert [one.error_code for one in found] == [0, 0, 0, 0]
    users = [sorted(acl.principal for acl in one.matching_acls) for one in found]
    assert users == [["User:a", "User:b"], ["User:a"], [], ["User:a", "User:b"]]


def test_the_table_of_the_document_is_that_of_the_code():
    document = Path(needs.__file__).with_name("README.md").read_text()
    assert "\n".join(needs.lines()) in document, "python -m dafka.broker.server.rights.needs prints it"
