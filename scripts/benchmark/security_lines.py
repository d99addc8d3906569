"""What it costs to know each other and to be read by nobody else: each line beside the same without keys."""

from __future__ import annotations

from functools import partial

import native_nodes
import secured_nodes
from line import Figure, Line, measurement, pick, rate

MESSAGES = {("raw", 100): 100_000, ("batch", 100): 300_000, ("raw", 10_000): 10_000}
HANDSHAKES = 300
SIZES = {100: "100 B", 10_000: "10 kB"}


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


SECURITY_LINES = [
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
