"""The settings of a running node of Apache Kafka, as JSON that is the same for every run of a version."""

from __future__ import annotations

import itertools
import json
import socket
from typing import Any

from kafka.protocol.admin.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafka.protocol.admin.topics import CreateTopicsRequest, CreateTopicsResponse

SECONDS = 60.0
TYPES = ("UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD")
TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
DEFAULT_SOURCE, SET = 5, 0
NODE = "1"  # what `run` calls it
READ_ONLY = "read-only"
UPDATES = {"broker id must be specified": "per-broker", "listener prefix": "per-listener"}  # by what is said
CLUSTER_WIDE = "cluster-wide"


def listing(bootstrap_servers: str) -> str:
    """All settings of topics, the broker, groups and client metrics, one line for each.

    A setting of the broker has ``update``: whether and where it can be changed while the broker runs.
    """
    with _Client(bootstrap_servers) as client:
        _create(client, "settings")
        parts = {
            "topic": _described(client, TOPIC, "settings"),
            "broker": _described(client, BROKER, NODE),
            "group": _described(client, GROUP, "settings"),
            "client-metrics": _described(client, CLIENT_METRICS, "settings"),
        }
        for name, setting in parts["broker"].items():
            setting["update"] = _update(client, name, setting)
    lines = []
    for part, settings in parts.items():
        entries = [f"    {json.dumps(name)}: {json.dumps(settings[name])}" for name in sorted(settings)]
        lines.append(f'  "{part}": {{\n' + ",\n".join(entries) + "\n  }")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _create(client: _Client, name: str) -> None:
    topic = CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=int(SECONDS * 1000), validate_only=False)
    (created,) = client.ask(request, CreateTopicsResponse, 5).topics
    if created.error_code:
        raise RuntimeError(f"topic {name} was not created: {created.error_message}")


def _described(client: _Client, kind: int, name: str) -> dict[str, dict[str, Any]]:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=False)
    (described,) = client.ask(request, DescribeConfigsResponse, 4).results
    if described.error_code:
        raise RuntimeError(f"settings of {name}: {described.error_message}")
    settings = {}
    for entry in described.configs:
        setting: dict[str, Any] = {"type": TYPES[entry.config_type], "default": entry.value}
        defaults = [one for one in entry.synonyms if one.source == DEFAULT_SOURCE]
        if entry.config_source != DEFAULT_SOURCE:
            setting["default"] = defaults[-1].value if defaults else None
        if kind in (TOPIC, GROUP) and defaults:
            setting["broker"] = defaults[-1].name
        if entry.read_only:
            setting["update"] = READ_ONLY
        settings[entry.name] = setting
    return settings


def _update(client: _Client, name: str, setting: dict[str, Any]) -> str:
    """Find out by trying whether a setting may be changed for all brokers at once."""
    if setting.get("update") == READ_ONLY:
        return READ_ONLY
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    change = resource.AlterableConfig(name=name, config_operation=SET, value=setting["default"] or "1")
    request = IncrementalAlterConfigsRequest(
        resources=[resource(resource_type=BROKER, resource_name="", configs=[change])], validate_only=True
    )
    (answer,) = client.ask(request, IncrementalAlterConfigsResponse, 1).responses
    said = answer.error_message or ""
    return next((update for text, update in UPDATES.items() if text in said), CLUSTER_WIDE)


class _Client:
    """A connection, in kafka-python's protocol classes."""

    def __init__(self, bootstrap_servers: str) -> None:
        host, port = bootstrap_servers.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), SECONDS)
        self._correlations = itertools.count(1)

    def __enter__(self) -> _Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: Any, response_class: Any, version: int) -> Any:
        request.API_VERSION = version
        request.with_header(next(self._correlations), "configs")
        self._socket.sendall(request.encode(version=version, header=True, framed=True))
        frame = self._exactly(int.from_bytes(self._exactly(4), "big"))
        flexible = response_class.flexible_version_q(version)
        return response_class.decode(frame[5 if flexible else 4 :], version=version)

    def _exactly(self, size: int) -> bytes:
        octets = bytearray()
        while len(octets) < size:
            some = self._socket.recv(size - len(octets))
            if not some:
                raise OSError("Apache Kafka has closed the connection")
            octets += some
        return bytes(octets)
