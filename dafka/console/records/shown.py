"""A record as JSON: octets as text where they are text, else as Base64; long ones are cut."""

from __future__ import annotations

import base64
from typing import Any, NamedTuple

from dafka.console import limits
from dafka.console.decoding.decoder import Decoder


class Record(NamedTuple):
    """A record with what its batch says of it. ``transaction``: "open", "committed", "aborted" or None."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    batch: BatchFacts
    transaction: str | None = None


class BatchFacts(NamedTuple):
    """Properties that a batch gives its records. ``log_append``: its timestamps are the broker's."""

    base_offset: int
    records: int
    octets: int
    compression: str | None
    producer_id: int
    producer_epoch: int
    base_sequence: int
    leader_epoch: int
    log_append: bool


def shown(record: Record, decoder: Decoder, most: int = limits.SHOWN_OCTETS) -> dict[str, Any]:
    """The record for a page; of each key, value and header ``most`` octets at the most.

    The forms that ``decoder`` finds for key and value stand beside their octets.
    """
    batch = record.batch
    row: dict[str, Any] = {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": "log append" if batch.log_append else "create",
        "key": _field("key", record.key, decoder, most),
        "value": _field("value", record.value, decoder, most),
        "headers": [
            {"name": name[:most], "value": octets(value, most)}
            for name, value in record.headers[: limits.HEADERS_SHOWN]
        ],
        "total_headers": len(record.headers),
        "transaction": record.transaction,
        "batch": {
            "base_offset": batch.base_offset,
            "records": batch.records,
            "bytes": batch.octets,
            "compression": batch.compression,
            "leader_epoch": batch.leader_epoch,
        },
    }
    if batch.producer_id >= 0:
        row["producer"] = {
            "id": batch.producer_id,
            "epoch": batch.producer_epoch,
            "sequence": batch.base_sequence + record.offset - batch.base_offset,
        }
    return row


def _field(name: str, content: bytes | None, decoder: Decoder, most: int) -> dict[str, Any] | None:
    found = octets(content, most)
    return found if found is None else found | decoder.shown(name, content, most)


def octets(content: bytes | None, most: int) -> dict[str, Any] | None:
    """Octets as ``{"size", "cut", "text" or "base64"}``; None stays None: a tombstone, or no key."""
    if content is None:
        return None
    cut = len(content) > most
    head = content[:most]
    text = _text(head, cut)
    found: dict[str, Any] = {"size": len(content), "cut": cut}
    if text is None:
        found["base64"] = base64.b64encode(head).decode()
    else:
        found["text"] = text
    return found


def _text(content: bytes, cut: bool) -> str | None:
    """The text; None if this is not UTF-8. A cut value may end within a character."""
    for end in range(len(content), max(len(content) - (4 if cut else 1), -1), -1):
        try:
            return content[:end].decode()
        except UnicodeDecodeError:
            continue
    return None
