"""Zeek Broker's data types: Python's own where there is one, ours for the others, and their octets."""

from __future__ import annotations

from dafka.overlay.values.containers import Set, Table, Value, order_key
from dafka.overlay.values.decoder import decode
from dafka.overlay.values.encoder import encode
from dafka.overlay.values.types import NAN, Address, Count, Enum, Port, Subnet, Timespan, Timestamp

__all__ = [
    "NAN",
    "Address",
    "Count",
    "Enum",
    "Port",
    "Set",
    "Subnet",
    "Table",
    "Timespan",
    "Timestamp",
    "Value",
    "decode",
    "encode",
    "order_key",
]
