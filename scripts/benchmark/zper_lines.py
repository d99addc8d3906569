"""The lines of ZPER: writing beside a ROUTER that only receives; reading by super frames and in streams.

Those whose name has ``zper beside Apache Kafka`` have as their reference what Kafka's own perf tools measure.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import kafka_tools
import zper_servers
from line import Figure, Line, measurement, milliseconds, pick, rate
from processes import Figures

MESSAGES = {100: 1_000_000, 1000: 200_000}  # by their size
SIZES = {100: "100 B", 1000: "1 kB"}
ROUTER = "pyzmq: ROUTER recv_multipart loop"


@cache
def plain_router(size: int) -> Figure:
    count = MESSAGES[size]
    return pick(
        measurement(
            partial(zper_servers.receive_plain, count=count),
            partial(zper_servers.write, count=count, size=size, mode=0),
        )
    )


def written(size: int) -> list[Line]:
    count = MESSAGES[size]
    lines = []
    for mode in (0, 1):
        figures = measurement(
            partial(zper_servers.take, count=count),
            partial(zper_servers.write, count=count, size=size, mode=mode),
        )
        name = f"zper: written and committed in mode {mode}, {SIZES[size]}"
        lines.append(Line(name, rate, pick(figures), plain_router(size), ROUTER, least_ratio=0.8))
        if mode == 0:
            turn = "zper: the hub's longest turn meanwhile, of processor time"
            lines.append(Line(f"{turn}, {SIZES[size]}", milliseconds, pick(figures, 1), None, "", most=0.02))
            cost = "zper: written in a second of the server's processor time"
            least = 1_000_000 if size == 100 else None
            lines.append(Line(f"{cost}, {SIZES[size]}", rate, pick(figures, 2), None, "", least=least))
    return lines


@cache
def reading(client: Callable[..., Figures], size: int) -> Callable[[int], Figures]:
    count = MESSAGES[size]
    return measurement(
        partial(client, count=count, size=size),
        partial(zper_servers.filled, count=count, size=size),
    )


def read(size: int, least: float | None) -> list[Line]:
    """``least``: messages fetched in a second, and streamed in a second of the server's processor time."""
    fetched, streamed = (reading(client, size) for client in (zper_servers.fetch, zper_servers.stream))
    cost = "zper: streamed in a second of the server's processor time"
    return [
        Line(f"zper: fetched by super frames, {SIZES[size]}", rate, pick(fetched), None, "", least=least),
        Line(f"zper: streamed, {SIZES[size]}", rate, pick(streamed), plain_router(size), ROUTER),
        Line(f"{cost}, {SIZES[size]}", rate, pick(streamed, 2), None, "", least=least),
    ]


def beside_kafka(size: int) -> list[Line]:
    """The writing client has its frames ready, so that it is not the limit."""
    count = MESSAGES[size]
    written = measurement(
        partial(zper_servers.take, count=count), partial(zper_servers.write_encoded, count=count, size=size)
    )
    kafka = kafka_tools.tools_measurement(count=count, size=size)
    producer = (pick(kafka), "ProducerPerformance, acks=1, warm")
    consumer = (pick(kafka, 1), "ConsumerPerformance")
    return [
        Line(f"zper beside Apache Kafka: {name}, {SIZES[size]}", rate, figure, *reference)
        for name, figure, reference in (
            ("written in mode 0", pick(written), producer),
            ("fetched by super frames", pick(reading(zper_servers.fetch, size)), consumer),
            ("streamed", pick(reading(zper_servers.stream, size)), consumer),
        )
    ]


ZPER_LINES = [
    *written(100),
    *written(1000),
    *read(100, 2_000_000),
    *read(1000, None),
    *beside_kafka(100),
    *beside_kafka(1000),
]
