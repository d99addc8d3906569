"""Costs of authentication and encryption: each line beside the same without keys."""

from __future__ import annotations

from functools import partial

import native_nodes
import secured_brokers
import secured_loops
import secured_nodes
from line import Figure, Line, measurement, pick, rate

MESSAGES = {("raw", 100): 100_000, ("batch", 100): 300_000, ("raw", 10_000): 10_000}
HANDSHAKES = 300
KAFKA_RECORDS = {1000: 300_000, 10_000: 60_000}
KAFKA_CONNECTIONS = 300
SIZES = {100: "100 B", 1000: "1 kB", 10_000: "10 kB"}


def stored(kind: str, size: int, *, secured: bool) -> Figure:
    records = {"count": MESSAGES[kind, size], "size": size, "kind": kind}
    return pick(
        measurement(partial(native_nodes.send_and_flush, **records, secured=secured), native_nodes.store)
    )


def shaken(*, secured: bool) -> Figure:
    return pick(
        measurement(
            partial(secured_nodes.handshakes, count=HANDSHAKES, secured=secured),
            partial(secured_nodes.answer, secured=secured),
        )
    )


def received(*, secured: bool) -> Figure:
    loops = partial(secured_loops.received, secured=secured), partial(secured_loops.sent, secured=secured)
    return pick(measurement(*loops))


def _seal_lines() -> list[Line]:
    lines = []
    for size in (100, 10_000):
        figures = measurement(partial(secured_loops.sealed, size=size))
        name = f"security: CURVE, frames sealed and opened in a second of processor time, {SIZES[size]}"
        lines.append(Line(name, rate, pick(figures), pick(figures, 1), "libsodium alone"))
    return lines


def gigabytes(value: float) -> str:
    return f"{value:.3f} GB/s"


def _records_lines() -> list[Line]:
    lines = []
    for listener in secured_brokers.LISTENERS[1:]:
        for size, count in KAFKA_RECORDS.items():
            measured, plain = (
                measurement(
                    partial(secured_brokers.records, listener=one, size=size, count=count),
                    secured_brokers.broker,
                )
                for one in (listener, "PLAINTEXT")
            )
            for position, verb in enumerate(("produced", "consumed")):
                done = f"{verb} in a second of the broker's processor time"
                name = f"security: {listener}, {done}, {SIZES[size]}"
                figures = pick(measured, position), pick(plain, position)
                lines.append(Line(name, gigabytes, *figures, "PLAINTEXT"))
    return lines


def _connections(listener: str) -> Figure:
    client = partial(secured_brokers.connections, listener=listener, count=KAFKA_CONNECTIONS)
    return pick(measurement(client, secured_brokers.broker))


SECURITY_LINES = [
    *_records_lines(),
    Line(
        "security: SSL, connections in a second of the broker's processor time",
        *(rate, _connections("SSL"), _connections("PLAINTEXT"), "PLAINTEXT"),
    ),
    Line(
        "security: SSL, received by a loop of Python's ssl in a second of processor time",
        *(gigabytes, received(secured=True), received(secured=False), "plain socket"),
    ),
    *_seal_lines(),
    *(
        Line(
            f"security: CURVE, stored and acknowledged, {kind}, {SIZES[size]}",
            *(rate, stored(kind, size, secured=True), stored(kind, size, secured=False), "without keys"),
        )
        for kind, size in MESSAGES
    ),
    Line(
        "security: CURVE, connections and an answer",
        *(rate, shaken(secured=True), shaken(secured=False), "without keys"),
    ),
]
