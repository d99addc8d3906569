"""Rights with the clients that people have: kafka-python, librdkafka, and the facade in the process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import kafka
import pytest
from broker import users
from broker.clients import Client
from confluent_kafka import KafkaError as ConfluentError
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
)
from kafka.admin import ResourceType as Kind
from kafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
)

import compat.kafka
from dafka import Broker
from dafka.security import ServerAcls, ServerSasl

SECONDS = 60.0


@pytest.fixture
def broker() -> Iterator[Broker]:
    options: dict[str, Any] = {
        "listen": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl": ServerSasl(mechanisms=("PLAIN",)),
        "acls": ServerAcls(super_users=["User:admin"]),
    }
    with Broker(**options) as running:
        for user in ("admin", "alice"):
            users.add(running, user, "secret")
        Client(running).create("flights")
        yield running


def login(broker: Broker, user: str, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap_servers": broker.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": user,
        "sasl_plain_password": "secret",
        **more,
    }


def acl(operation: ACLOperation, kind: Kind = Kind.TOPIC, name: str = "flights") -> ACL:
    pattern = ResourcePattern(kind, name, ACLResourcePatternType.LITERAL)
    return ACL("User:alice", "*", operation, ACLPermissionType.ALLOW, pattern)


EVERY = ACLFilter(
    None,
    None,
    ACLOperation.ANY,
    ACLPermissionType.ANY,
    ResourcePatternFilter(Kind.ANY, None, ACLResourcePatternType.ANY),
)


def admin_of(broker: Broker, user: str) -> Any:
    return kafka.KafkaAdminClient(**login(broker, user))


@pytest.fixture
def admin(broker: Broker) -> Iterator[Any]:
    client = admin_of(broker, "admin")
    yield client
    client.delete_acls([EVERY])
    client.close()


def test_rights_are_given_seen_and_taken_by_kafka_python(broker: Broker, admin: Any):
    given = [acl(ACLOperation.WRITE), acl(ACLOperation.READ, Kind.GROUP, "g")]
    assert admin.create_acls(given) == {"succeeded": given, "failed": []}
    assert set(admin.describe_acls(EVERY)[0]) == set(given)
    producer = kafka.KafkaProducer(**login(broker, "alice"))
    assert producer.send("flights", b"one").get(SECONDS).offset == 0
    consumer = kafka.KafkaConsumer("flights", auto_offset_reset="earliest", **login(broker, "alice"))
    with pytest.raises(TopicAuthorizationFailedError):
        consumer.poll(1000 * SECONDS)
    admin.create_acls([acl(ACLOperation.READ)])
    found = consumer.poll(1000 * SECONDS)
    assert [one.value for records in found.values() for one in records] == [b"one"]
    ((_, deleted, error),) = admin.delete_acls([EVERY])
    assert error is kafka.errors.NoError and len(deleted) == 3
    with pytest.raises(TopicAuthorizationFailedError):
        producer.send("flights", b"two").get(SECONDS)
    producer.close(0)
    consumer.close()


def test_kafka_python_tells_of_missing_rights(broker: Broker, admin: Any):
    alice = admin_of(broker, "alice")
    with pytest.raises(ClusterAuthorizationFailedError):
        alice.describe_acls(EVERY)
    assert alice.create_acls([acl(ACLOperation.READ)]) == {
        "succeeded": [],
        "failed": [ClusterAuthorizationFailedError],
    }
    assert alice.list_topics() == []
    alice.close()
    admin.create_acls([acl(ACLOperation.READ)])
    consumer = kafka.KafkaConsumer("flights", group_id="not-hers", **login(broker, "alice"))
    with pytest.raises(GroupAuthorizationFailedError):
        consumer.poll(1000 * SECONDS)
    consumer.close(autocommit=False)


def test_rights_are_given_seen_and_taken_by_librdkafka(broker: Broker, admin: Any):
    def configuration(user: str) -> dict[str, Any]:
        return {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": "secret",
        }

    theirs = AdminClient(configuration("admin"))
    fields = (ResourceType.TOPIC, "fli", ResourcePatternType.PREFIXED, "User:alice", "*")
    binding = AclBinding(*fields, AclOperation.WRITE, AclPermissionType.ALLOW)
    (created,) = theirs.create_acls([binding], request_timeout=SECONDS).values()
    assert created.result(SECONDS) is None
    anything = (AclOperation.ANY, AclPermissionType.ANY)
    matching = AclBindingFilter(
        ResourceType.TOPIC, "flights", ResourcePatternType.MATCH, None, None, *anything
    )
    assert theirs.describe_acls(matching, request_timeout=SECONDS).result(SECONDS) == [binding]
    errors: list[Any] = []
    producer = Producer({**configuration("alice"), "enable.idempotence": True})
    for removed in (False, True):
        if removed:
            (gone,) = theirs.delete_acls([matching], request_timeout=SECONDS).values()
            assert gone.result(SECONDS) == [binding]
        producer.produce("flights", b"v", on_delivery=lambda error, message: errors.append(error))
        assert producer.flush(SECONDS) == 0
    assert errors[0] is None
    assert errors[1].code() == ConfluentError.TOPIC_AUTHORIZATION_FAILED
    alice = AdminClient(configuration("alice"))
    with pytest.raises(KafkaException) as refused:
        alice.create_acls([binding], request_timeout=SECONDS)[binding].result(SECONDS)
    assert refused.value.args[0].code() == ConfluentError.CLUSTER_AUTHORIZATION_FAILED


def test_the_facade_in_the_process_is_the_owner(broker: Broker, admin: Any):
    ours = compat.kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    given = [acl(ACLOperation.READ)]
    assert ours.create_acls(given) == {"succeeded": given, "failed": []}
    assert ours.describe_acls(EVERY)[0] == admin.describe_acls(EVERY)[0] == given
    assert ours.delete_acls([EVERY])[0][1] == given
    ours.close()
