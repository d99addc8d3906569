"""Queries of a user whose rights are taken away while they run, and given back."""

from __future__ import annotations

import pytest
from broker.clients import Client
from broker.users import add
from spark.frames import create, produce, stream, values, wait_until, write_stream
from spark.test_streaming import collected, positions, rows, wait_for_rows

from dafka import Broker
from dafka.security import ServerAcls, ServerSasl
from dafka.security.acls.terms import Acl, AclFilter, Operation, PatternType, Permission, ResourceType

LISTEN = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"


@pytest.fixture
def broker():
    """Its owner has to say nothing; alice logs in."""
    with Broker(listen=LISTEN, sasl=ServerSasl(), acls=ServerAcls(super_users=["User:ANONYMOUS"])) as running:
        add(running, "alice", "secret")
        yield running


@pytest.fixture
def alice(broker):
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return {
        "kafka.bootstrap.servers": broker.listeners["SASL_PLAINTEXT"],
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "SCRAM-SHA-256",
        "kafka.sasl.jaas.config": f'{module} required username="alice" password="secret";',
    }


def allow(broker, *operations, topic="t"):
    """These, and nothing else."""
    call = Client(broker).call
    call("delete_acls", [AclFilter()])
    who = ResourceType.TOPIC, topic, PatternType.LITERAL, "User:alice", "*"
    outcomes = call("create_acls", [Acl(*who, one, Permission.ALLOW) for one in operations])
    assert not any(one.error for one in outcomes)


def error_of(query):
    wait_until(lambda: not query.isActive)
    return str(query.exception())


@pytest.mark.parametrize("left", [(), (Operation.DESCRIBE,)], ids=["none", "the right to see it"])
def test_a_query_fails_that_may_no_longer_read_and_goes_on_when_it_may(spark, broker, alice, tmp_path, left):
    create(broker, "t", 1)
    produce(broker, "t", [b"x"] * 3)
    allow(broker, Operation.READ)
    read = stream(spark, broker, subscribe="t", startingOffsets="earliest", **alice)
    query = collected(read, tmp_path, processingTime="0 seconds")
    wait_for_rows(spark, tmp_path, positions("t", [3]))
    allow(broker, *left)
    produce(broker, "t", [b"y"] * 2)
    error = error_of(query)
    assert "'t'" in error and "not authorized to access the requested topic" in error
    assert "secret" not in error and "DataLossError" not in error  # they are all there
    allow(broker, Operation.READ)
    collected(read, tmp_path).awaitTermination()
    assert rows(spark, tmp_path) == positions("t", [5])


def test_a_query_fails_that_may_no_longer_write_and_goes_on_when_it_may(spark, broker, alice, tmp_path):
    create(broker, "from", 1)
    create(broker, "t", 1)
    produce(broker, "from", [b"a", b"b"])
    allow(broker, Operation.WRITE)
    read = stream(spark, broker, subscribe="from", startingOffsets="earliest").select("value")
    writer = write_stream(read, broker, tmp_path, topic="t", **alice)
    query = writer.trigger(processingTime="0 seconds").start()
    wait_until(lambda: values(broker, "t") == [b"a", b"b"])
    allow(broker)
    produce(broker, "from", [b"c"])
    error = error_of(query)
    assert "'t'" in error and "not authorized to access the requested topic" in error
    allow(broker, Operation.WRITE)
    writer.trigger(availableNow=True).start().awaitTermination()
    assert values(broker, "t") == [b"a", b"b", b"c"]
