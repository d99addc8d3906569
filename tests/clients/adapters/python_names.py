"""What kafka-python and aiokafka call by the same names."""

from __future__ import annotations

from typing import Any

from clients.adapters.client import LARGEST
from clients.records import Record

MEMBER_SETTINGS: dict[str, Any] = {
    "auto_offset_reset": "earliest",
    "auto_commit_interval_ms": 100,
    "session_timeout_ms": 6000,
    "heartbeat_interval_ms": 200,
    "metadata_max_age_ms": 1000,
}
"""Of a member of a group, beside its servers, group and assignor."""


def producer_settings(servers: str, acks: str, compression: str, idempotent: bool) -> dict[str, Any]:
    return {
        "bootstrap_servers": servers,
        "acks": acks if acks == "all" else int(acks),
        "compression_type": None if compression == "none" else compression,
        "enable_idempotence": idempotent,
        "max_request_size": LARGEST,
    }


def consumer_settings(servers: str, committed: bool) -> dict[str, Any]:
    return {
        "bootstrap_servers": servers,
        "auto_offset_reset": "earliest",
        "isolation_level": "read_committed" if committed else "read_uncommitted",
    }


def from_client(record: Any) -> Record:
    """A client's ConsumerRecord."""
    headers = tuple((name, value) for name, value in record.headers)
    return Record(record.value, record.key, headers, record.timestamp, record.partition, record.offset)
