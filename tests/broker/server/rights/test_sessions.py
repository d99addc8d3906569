"""The clients that people have: rights that are missing, given, and taken away while they are connected."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from broker.server.rights.sessions import PASSWORD, REFUSED, SECONDS, SESSIONS, USER, YES, Session, login
from cli.tools import running
from click.testing import CliRunner
from clients.adapters.java import tools_missing
from kafka import KafkaAdminClient
from kafka.errors import TopicAuthorizationFailedError
from timing import until

import compat.kafka
import dafka.broker
from compat.kafka.consumer import _topics
from dafka.broker.interface.topics import TopicSpec
from dafka.cli import main
from dafka.security.acls.terms import Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from dafka.security.sasl.options import ClientSasl

SCENE = (
    ("before anything is allowed", (), REFUSED, None),  # a client that may not even see a topic waits for it
    ("with the right to write", (Operation.WRITE,), YES, None),
    ("with both", (Operation.WRITE, Operation.READ), YES, YES),
    ("with the right to read alone", (Operation.READ,), REFUSED, None),
    ("when all were taken away", (), REFUSED, REFUSED),
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a broker in another process, with accounts and rights."""
    folder: Path = tmp_path_factory.mktemp("broker")
    password = folder / "password"
    password.write_text(PASSWORD)
    data = ("--data", str(folder / "data"))
    for name in ("admin", USER):
        added = CliRunner().invoke(main, ["user", "add", name, "--password-file", str(password), *data])
        assert added.exit_code == 0, added.output
    listens = ("--listen", "SASL_PLAINTEXT://127.0.0.1:0", "--sasl-mechanisms", "PLAIN")
    with running("broker", *listens, *data, "--authorizer", "--super-users", "User:admin") as daemon:
        yield daemon.stderr.readline().split("SASL_PLAINTEXT://")[-1].split(" ")[0]


@pytest.fixture(scope="module")
def admin(address: str) -> Iterator[Any]:
    options = {"sasl_plain_username": "admin", "sasl_plain_password": PASSWORD}
    sasl = ClientSasl(mechanism="PLAIN", options=options)
    connection = dafka.broker.connect(address, 60, security_protocol="SASL_PLAINTEXT", sasl=sasl)
    yield connection
    connection.close()


@pytest.mark.parametrize("client", SESSIONS)
def test_clients_can_do_exactly_what_they_are_allowed(address: str, admin: Any, client: str) -> None:
    if client == "kcat" and shutil.which("kcat") is None:
        pytest.skip("there is no kcat here")
    if client == "java" and not os.environ.get("DAFKA_TEST_APACHE_KAFKA"):
        pytest.skip("starts Java and its compiler; set DAFKA_TEST_APACHE_KAFKA=1")
    if client == "java" and tools_missing():
        pytest.skip(str(tools_missing()))
    topic = client.replace(" ", "-")
    settings = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
    tool = KafkaAdminClient(
        bootstrap_servers=address, sasl_plain_username="admin", sasl_plain_password=PASSWORD, **settings
    )
    tool.create_topics({topic: {"num_partitions": 1, "replication_factor": 1}})
    tool.close()
    session: Session | None = None
    try:
        for step, operations, writes, reads in SCENE:
            allow(admin, topic, *operations)
            session = session or SESSIONS[client](address, topic)
            attempt(session, step, writes, reads, operations)
    finally:
        if session is not None:
            session.close()


def allow(admin: Any, topic: str, *operations: Operation) -> None:
    """Have the user do this with the topic, and nothing else; groups may be joined by those who may read."""
    admin.call("delete_acls", [AclFilter()])
    groups = [(ResourceType.GROUP, "*")]
    acls = [
        Acl(kind, name, PatternType.LITERAL, f"User:{USER}", "*", operation, Permission.ALLOW)
        for operation in operations
        for kind, name in [(ResourceType.TOPIC, topic), *(groups if operation is Operation.READ else [])]
    ]
    assert all(one.error is None for one in admin.call("create_acls", acls))


@pytest.mark.parametrize(
    ("group", "protocol"), [(None, "classic"), ("seen-1", "classic"), ("seen-2", "consumer")]
)
def test_a_topic_that_may_no_longer_be_seen_is_refused_also_when_metadata_says_so_first(
    address: str, admin: Any, group: str | None, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_topics, "METADATA_INTERVAL", 0.0)  # each poll looks there first
    topic = f"seen-by-{group}"
    admin.call("create_topics", {topic: TopicSpec(1)})
    allow(admin, topic, Operation.READ, Operation.WRITE)
    given = login(address)
    with compat.kafka.KafkaProducer(**given) as producer:
        producer.send(topic, b"v").get(SECONDS)
    options = {"group_id": group, "group_protocol": protocol, "auto_offset_reset": "earliest"}
    with compat.kafka.KafkaConsumer(topic, **given, **options) as consumer:
        until(lambda: consumer.poll(500))
        allow(admin, topic)
        with pytest.raises(TopicAuthorizationFailedError):
            until(lambda: consumer.poll(500))


def attempt(
    session: Session, step: str, writes: str, reads: str | None, operations: Sequence[Operation]
) -> None:
    if writes == YES:  # a client may have to learn of it
        until(lambda: session.write() == YES, step)
    elif operations or not session.waits_to_write:
        assert session.write() == REFUSED, step
    if reads is not None:  # of what it has fetched before there is an end
        until(lambda: session.read() == reads, step)
