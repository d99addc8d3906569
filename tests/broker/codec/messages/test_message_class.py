"""Each message is as Apache Kafka 4.3.1 writes it.

vectors.tsv has a line for each message and version: the octets that Kafka's own class writes if the values
are numbered in the order of the fields. The nth value is n; in int8 modulo 100; in int32 n thousand, modulo
60 000; in int64 n times 10^10; a flag says whether n is odd; a text is "text n". Arrays have two items and
count as a value themselves.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from dafka.broker.codec.reader import read_message

FOLDERS = ("consumer_group", "share_group", "streams_group", "delegation_tokens", "telemetry", "cluster")
CLASSES = {
    name: getattr(module, name)
    for module in (import_module(f"dafka.broker.codec.messages.{folder}") for folder in FOLDERS)
    for name in vars(module)
    if name.endswith(("Request", "Response"))
}
VECTORS = [
    (name, int(version), bytes.fromhex(octets))
    for name, version, octets in (
        line.split("\t") for line in (Path(__file__).parent / "vectors.tsv").read_text().splitlines()
    )
]


class Counting:
    """Fills a message as the vectors are filled."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.count = 0

    def value(self, field: Any, kind: str) -> Any:
        self.count += 1
        n = self.count
        if kind.startswith("[]"):
            return [self.value(field, kind[2:]) for _ in range(2)]
        match kind:
            case "int8":
                return n % 100
            case "int16":
                return n
            case "int32" | "uint16":
                return n * 1000 % 60000
            case "bitfield":
                return {bit for bit in range(32) if n * 1000 % 60000 >> bit & 1}
            case "int64":
                return n * 10**10
            case "bool":
                return n % 2 == 1
            case "string":
                return f"text {n}"
            case "uuid":
                return UUID(int=(n << 64) + n + 1)
            case "bytes":
                return bytes([n % 100, 2 if field.name == "metrics" else 1])
            case "records":
                return b""
        return self.fill(field.data_class)

    def fill(self, made: Any) -> Any:
        fields = [field for field in made.fields.values() if field.for_version_q(self.version)]
        values = {field.name: self.value(field, field._json["type"]) for field in fields}
        return made(version=self.version, **values)


@pytest.mark.parametrize(("name", "version", "octets"), VECTORS, ids=[f"{v[0]}-{v[1]}" for v in VECTORS])
def test_a_message_is_written_as_kafka_writes_it(name: str, version: int, octets: bytes):
    assert bytes(Counting(version).fill(CLASSES[name]).encode(version=version)).hex() == octets.hex()


@pytest.mark.parametrize(("name", "version", "octets"), VECTORS, ids=[f"{v[0]}-{v[1]}" for v in VECTORS])
def test_a_message_of_kafka_is_read_to_its_end(name: str, version: int, octets: bytes):
    message, end = read_message(CLASSES[name], version, memoryview(octets), 0)
    assert end == len(octets)
    assert bytes(message.encode(version=version)) == octets


def test_each_message_has_a_vector_of_each_of_its_versions():
    versions = {
        (name, version)
        for name, one in CLASSES.items()
        for version in range(one.valid_versions[0], one.valid_versions[1] + 1)
    }
    assert versions == {(name, version) for name, version, _ in VECTORS}
