"""The lines of the native nodes: each beside the plain pyzmq loop that does no more than carry the messages.

Publishing is compared with the PUB loop and consuming with the SUB loop, of the same record size.
"""

from __future__ import annotations

from functools import cache, partial

import libdafka_tools
import libzmq_loops
import native_nodes
import pyzmq_loops
from line import Figure, Line, measurement, megabytes, microseconds, percent, pick, rate

MESSAGES = {100: 300_000, 10_000: 20_000}  # by their size, through the mesh and the pyzmq loops
SIZES = {100: "100 B", 10_000: "10 kB"}
PERF_RECORDS = 1_000_000
LONE_RECORDS = 2000
PAUSE = 0.003  # seconds between lone records
TOPICS = 10_000
PUB, SUB = "pyzmq: PUB send_multipart loop", "pyzmq: SUB recv_multipart loop"
IN_C = "libzmq: the same loop in C"


@cache
def plain_loops(size: int) -> tuple[Figure, Figure]:
    count = MESSAGES[size]
    figures = measurement(
        partial(pyzmq_loops.publish, count=count, size=size), partial(pyzmq_loops.receive, count=count)
    )
    return pick(figures), pick(figures, 1)


def references(size: int) -> list[Line]:
    """Costs of the references themselves: Python's loops beside the same ones in C."""
    c_loops = partial(libzmq_loops.measured, count=MESSAGES[size], size=size)
    return [
        Line(
            f"native: {loop}, {SIZES[size]}", rate, figure, pick(c_loops, place), "libzmq: the same loop in C"
        )
        for place, (loop, figure) in enumerate(zip((PUB, SUB), plain_loops(size), strict=True))
    ]


def handed_over() -> Line:
    count = MESSAGES[100]
    figure = measurement(
        partial(native_nodes.send, count=count, size=100), partial(native_nodes.receive_plain, count=count)
    )
    return Line("native: Producer.send, raw, 100 B", rate, pick(figure), plain_loops(100)[0], PUB, 0.5)


def streams(kind: str, size: int, least: tuple[float, float, float]) -> list[Line]:
    """Stored, consumed live, and caught up with; ``least`` are the ratios wanted."""
    records = {"count": MESSAGES[size], "size": size, "kind": kind}
    name = f"{kind}, {SIZES[size]}"
    publishing, receiving = plain_loops(size)
    stored = measurement(partial(native_nodes.send_and_flush, **records), native_nodes.store)
    live = measurement(partial(native_nodes.send, **records), native_nodes.consume)
    late = measurement(partial(native_nodes.serve_from_store, **records), native_nodes.catch_up)
    return [
        Line(
            f"native: published, stored, acknowledged, {name}",
            *(rate, pick(stored), publishing, PUB, least[0]),
        ),
        Line(f"native: consumed live, {name}", rate, pick(live, 1), receiving, SUB, least[1]),
        Line(f"native: catching up from a store, {name}", rate, pick(late), receiving, SUB, least[2]),
    ]


_perf_store = measurement(partial(native_nodes.perf_store, count=PERF_RECORDS, size=100), native_nodes.store)


def perf_tool() -> Line:
    """``dafka perf store`` and this benchmark say the same about the same.

    Both count from the second record, when the first is stored, to the acknowledgement of the last; the tool
    in a process that has just begun, which a run of less than a second would be about.
    """
    stored = measurement(
        partial(native_nodes.send_and_flush, count=PERF_RECORDS, size=100), native_nodes.store
    )
    name = "native: as dafka perf store reports it, raw, 100 B"
    return Line(name, rate, pick(_perf_store), pick(stored), "the same, measured here", 0.9)


def beside_libdafka() -> Line:
    """``dafka perf store`` and libdafka's tool of that name, each with its own tower and store."""
    theirs = partial(libdafka_tools.stored, count=PERF_RECORDS, size=100)
    name = "native: dafka perf store 1000000 100"
    return Line(name, rate, pick(_perf_store), pick(theirs), "libdafka: dafka_perf_store", 1)


def lone_records() -> list[Line]:
    figures = measurement(
        partial(native_nodes.send_one_by_one, count=LONE_RECORDS, pause=PAUSE),
        partial(native_nodes.latency, count=LONE_RECORDS),
    )
    plain = measurement(
        partial(pyzmq_loops.publish_one_by_one, count=LONE_RECORDS, pause=PAUSE),
        partial(pyzmq_loops.latency, count=LONE_RECORDS),
    )
    return [
        Line(
            f"native: a lone record, {percentile}",
            *(microseconds, pick(figures, place), pick(plain, place), "pyzmq: PUB to SUB"),
            most_ratio=most,
        )
        for place, (percentile, most) in enumerate((("p50", 2), ("p99", 1.5)))
    ]


def many_topics() -> list[Line]:
    figures = measurement(
        partial(native_nodes.own_many_topics, topics=TOPICS), native_nodes.store_many_topics
    )
    name = "native: 10 000 topics, idle"
    return [
        Line(f"{name}: memory of the producers", megabytes, pick(figures), None, ""),
        Line(f"{name}: processor, producers", percent, pick(figures, 1), None, "", most=0.02),
        Line(f"{name}: memory of the store", megabytes, pick(figures, 2), None, ""),
        Line(f"{name}: processor, store", percent, pick(figures, 3), None, "", most=0.02),
    ]


NATIVE_LINES = [
    *references(100),
    *references(10_000),
    handed_over(),
    *streams("raw", 100, (2, 2, 2)),
    perf_tool(),
    beside_libdafka(),
    *streams("raw", 10_000, (0.5, 0.9, 0.4)),
    *streams("batch", 100, (2.8, 2.4, 1.7)),
    *streams("batch", 10_000, (0.4, 0.4, 0.4)),
    *lone_records(),
    *many_topics(),
]
