"""Zeek events to octets and back, beside the standard library's json doing it.

The reference is the form that Zeek Broker's own WebSocket API gives a value in JSON, which keeps the types.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from time import perf_counter
from typing import Any

from processes import Figures

from dafka.overlay.values import Address, Count, Enum, Port, Set, Timespan, Timestamp, Value, decode, encode
from dafka.overlay.wire.zeek import Event, to_value

EVENTS = 30_000

SMALL = to_value(Event("event_1", (42, "test")))
CONNECTION = to_value(
    Event(
        "Conn::log_conn",
        (
            (
                *(Timestamp(1681827194000000000), "CHhAvVGS1DHFjwGM9"),
                (Address.of("192.168.9.8"), Port(51234), Address.of("2001:db8::1"), Port(443)),
                *("tcp", "ssl", Timespan(1500000000), Count(1234), Count(98765), "SF", True, False, Count(0)),
                *("ShADadFf", Count(12), Count(2345), Count(14), Count(99999), Set(["a", "b"])),
            ),
        ),
        ((Count(1), Timestamp(1681827194000000000)),),
    )
)
_NAMES: dict[type, str] = {
    bool: "boolean",
    Count: "count",
    int: "integer",
    str: "string",
    Enum: "enum-value",
    Address: "address",
    Port: "port",
    Timestamp: "timestamp",
    Timespan: "timespan",
}


def as_json(value: Value) -> dict[str, Any]:
    """Input for json: plain objects."""
    if isinstance(value, tuple) and not isinstance(value, Port):
        return {"@data-type": "vector", "data": [as_json(element) for element in value]}
    if isinstance(value, Set):
        return {"@data-type": "set", "data": [as_json(element) for element in value]}
    plain = str(value) if isinstance(value, (Address, Port)) else value
    return {"@data-type": _NAMES[type(value)], "data": plain}


def rates(event: Value) -> Figures:
    """Events a second: encoded, json.dumps; decoded, json.loads."""
    octets, plain = encode(event), as_json(event)
    text = json.dumps(plain)
    return (
        _rate(lambda: encode(event)),
        _rate(lambda: json.dumps(plain)),
        _rate(lambda: decode(octets)),
        _rate(lambda: json.loads(text)),
    )


def small() -> Figures:
    return rates(SMALL)


def connection() -> Figures:
    return rates(CONNECTION)


def _rate(call: Callable[[], object]) -> float:
    call()
    began = perf_counter()
    for _ in range(EVENTS):
        call()
    return EVENTS / (perf_counter() - began)
