"""Karapace, a schema registry that keeps its schemas in a topic, on a broker for tests.

It is not in a package index, so ``DAFKA_TEST_KARAPACE`` says how it is started: a command that gets its
configuration file as a further argument (``/opt/karapace/bin/python -m karapace.karapace_all``).
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ports import free_port
from timing import SECONDS, until

from dafka.testing import TestBroker

COMMAND = shlex.split(os.environ.get("DAFKA_TEST_KARAPACE", ""))
FIRST = {"type": "record", "name": "Order", "fields": [{"name": "book", "type": "string"}]}
SECOND = {**FIRST, "fields": [*FIRST["fields"], {"name": "copies", "type": "int", "default": 1}]}

pytestmark = pytest.mark.skipif(
    not COMMAND, reason="Karapace is in no package index; DAFKA_TEST_KARAPACE says how it is started"
)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url + "/subjects", timeout=5) as page:
            return page.status == 200
    except (urllib.error.URLError, OSError):
        return False


@contextmanager
def karapace(folder: Path, broker: TestBroker, port: int) -> Iterator[str]:
    """Its address, while it runs."""
    config = {
        "bootstrap_uri": broker.bootstrap_servers,
        "host": "127.0.0.1",
        "port": port,
        "advertised_hostname": "127.0.0.1",
        "karapace_registry": True,
        "karapace_rest": False,
        "replication_factor": 1,
        "log_level": "WARNING",
    }
    (folder / "karapace.json").write_text(json.dumps(config))
    process = subprocess.Popen(
        [*COMMAND, str(folder / "karapace.json")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        until(lambda: answers(url) or process.poll() is not None)
        assert process.poll() is None, process.communicate()[0]
        yield url
    finally:
        process.kill()
        process.communicate()


def test_records_with_schemas_of_two_versions_are_read_after_the_registry_was_killed(tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka.schema_registry", exc_type=ImportError)
    avro = pytest.importorskip("confluent_kafka.schema_registry.avro", exc_type=ImportError)
    from confluent_kafka import DeserializingConsumer, SerializingProducer
    from confluent_kafka.schema_registry import SchemaRegistryClient

    port = free_port()
    orders = [{"book": "one"}, {"book": "two", "copies": 3}]
    with TestBroker(listen="127.0.0.1:0") as broker:
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        with karapace(tmp_path, broker, port) as url:
            registry = SchemaRegistryClient({"url": url})
            for order, schema in zip(orders, (FIRST, SECOND), strict=True):
                serializer = avro.AvroSerializer(registry, json.dumps(schema))
                producer = SerializingProducer({**servers, "value.serializer": serializer})
                producer.produce("orders", value=order)
                assert producer.flush(SECONDS) == 0
            assert registry.get_versions("orders-value") == [1, 2]
        with karapace(tmp_path, broker, port) as url:  # its schemas are in its topic
            registry = SchemaRegistryClient({"url": url})
            assert registry.get_versions("orders-value") == [1, 2]
            group = {"group.id": "billing", "auto.offset.reset": "earliest"}
            deserializer = avro.AvroDeserializer(registry, json.dumps(SECOND))
            consumer = DeserializingConsumer({**servers, **group, "value.deserializer": deserializer})
            consumer.subscribe(["orders"])
            read = [consumer.poll(SECONDS).value() for _ in orders]
            consumer.close()
        assert read == [{"book": "one", "copies": 1}, orders[1]]
