"""The walk-through of a broker and a mesh for known clients: nothing of it works with a wrong key."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator

import pytest
from clients.adapters.java import FLAGS
from documents.markdown import ROOT, Block, blocks
from documents.running import SECONDS
from documents.walking import Walk
from kafka import KafkaProducer
from kafka.errors import KafkaError, TopicAuthorizationFailedError
from security.certificates import Authority

from dafka import Consumer, Producer
from dafka.mesh.producer import UnacknowledgedError
from dafka.security import KeyFolder
from dafka.security.keys import new_keys
from scripts.apache import jars, node

pytestmark = pytest.mark.xdist_group("walking")

PAGE = ROOT / "examples" / "secure" / "README.md"
STEPS = [one for one in blocks(PAGE) if one.told("step") is not None and one.told("step in Spark") is None]
MISSING = "$(cat alice.password)"


def _java(walk: Walk) -> str | None:
    """Why Kafka's tools cannot be used here."""
    try:
        command = [node.java(), *FLAGS, "-cp", jars.classpath()]
    except jars.UnavailableError as error:
        return str(error)
    walk.command("kafka-console-consumer.sh", *command, "org.apache.kafka.tools.consumer.ConsoleConsumer")
    return None


@pytest.fixture(scope="module")
def walk(tmp_path_factory) -> Iterator[Walk]:
    """Everything before the clients, and the mesh, as the page says."""
    walk = Walk(tmp_path_factory.mktemp("walk"))
    try:
        walk.printed = {}
        for block in STEPS:
            missing = _missing(walk, block)
            walk.printed[block.text] = missing or walk.step(block)
        yield walk
    finally:
        walk.end()


def _missing(walk: Walk, block: Block) -> str | None:
    if "kcat " in block.text and shutil.which("kcat") is None:
        return "there is no kcat here"
    return _java(walk) if block.told("step in Java") is not None else None


def printed(walk: Walk, words: str) -> str:
    """What the step with these words has printed; skips if it could not be run."""
    (text,) = [one for one in walk.printed if words in one]
    answer = walk.printed[text]
    if "UnavailableError" in answer or answer.startswith("there is no"):
        pytest.skip(answer)
    return answer


def login(walk: Walk, **more) -> dict:
    password = (walk.folder / f"{more.get('sasl_plain_username', 'alice')}.password").read_text().strip()
    return {
        "bootstrap_servers": walk.here("localhost:9093"),
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(walk.folder / "ca.pem"),
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "alice",
        "sasl_plain_password": password,
        "bootstrap_timeout_ms": 1000,
        **more,
    }


def test_clients_of_three_languages_read_what_was_written(walk: Walk) -> None:
    assert "one pizza" in printed(walk, "from compat.kafka import")
    assert "User:alice" in printed(walk, "dafka acl list")
    assert "x=1 y=2" in printed(walk, "from dafka import Consumer")


def test_kcat_reads_it(walk: Walk) -> None:
    assert printed(walk, "kcat -C") == "one pizza\n"


def test_java_reads_it(walk: Walk) -> None:
    assert "one pizza" in printed(walk, "kafka-console-consumer.sh")


def test_private_files_are_private(walk: Walk) -> None:
    for name in ("ca.key", "server.key", "alice.password", "data", "keys", "keys/robot.key_secret"):
        assert not (walk.folder / name).stat().st_mode & 0o077, name


@pytest.mark.parametrize("wrong", ["password", "user", "authority", "no TLS", "no account"])
def test_python_is_not_let_in_with_a_wrong(walk: Walk, wrong: str, tmp_path) -> None:
    options = {
        "password": {"sasl_plain_password": "wrong"},
        "user": {"sasl_plain_username": "bob", "sasl_plain_password": "wrong"},
        "authority": {"ssl_cafile": Authority(tmp_path).cafile},
        "no TLS": {"security_protocol": "SASL_PLAINTEXT"},
        "no account": {"security_protocol": "SSL"},
    }[wrong]

    def attempt() -> None:
        with pytest.raises(KafkaError):
            producer = KafkaProducer(**login(walk, **options))
            try:
                producer.send("orders", b"forged").get(5)
            finally:
                producer.close(0)

    attempt()
    if wrong in ("password", "user"):
        name = options.get("sasl_plain_username", "alice")
        deadline = time.monotonic() + SECONDS
        while not walk.has_said(f"authentication of user {name!r} by SCRAM-SHA-256 failed"):
            assert time.monotonic() < deadline
            attempt()


def test_an_account_without_rights_may_do_nothing_and_it_is_in_the_audit_log(walk: Walk) -> None:
    bob = login(walk, sasl_plain_username="bob", bootstrap_timeout_ms=30_000)
    producer = KafkaProducer(**bob, max_block_ms=30_000)
    try:
        with pytest.raises(TopicAuthorizationFailedError):
            producer.send("orders", b"forged").get(30)
    finally:
        producer.close(0)
    walk.said("User:bob from")  # ... is refused ... on TOPIC


def test_c_and_java_are_not_let_in_with_a_wrong_password(walk: Walk) -> None:
    for words in ("kcat -C", "kafka-console-consumer.sh"):  # whose statuses say nothing
        printed(walk, words)  # or skip
        (text,) = [one for one in walk.printed if words in one]
        answer = walk.run(text.replace(MISSING, "wrong").replace("-q -m 30", "-m 8") + "exit 1", status=1)
        assert "uthentication" in answer and "one pizza" not in answer


def test_a_stranger_to_the_mesh_sees_nothing_and_nobody_hears_it(walk: Walk, tmp_path) -> None:
    new_keys(tmp_path, "stranger")
    keys = KeyFolder(str(tmp_path), "stranger")
    tower = (walk.here("tcp://127.0.0.1:5556"), walk.here("tcp://127.0.0.1:5557"))
    with Consumer(["poses"], tower=tower, keys=keys, offset_reset="earliest") as consumer:
        producer = Producer("poses", tower=tower, keys=keys, min_stores=1)
        producer.send(b"forged")
        with pytest.raises(UnacknowledgedError):
            producer.close(1)
        assert [one.value for one in consumer.poll(60)] == [b"forged"]  # its own, within its process
    friend = KeyFolder(str(walk.folder / "keys"), "archive")
    with Consumer(["poses"], tower=tower, keys=friend, offset_reset="earliest") as consumer:
        assert [one.value for one in consumer.poll(60)] == [b"x=1 y=2"]
