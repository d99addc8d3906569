"""TCP connections of a mesh, to towers and between nodes, as the system has them: dead ones are noticed."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import starmap
from typing import NamedTuple

import pytest
from timing import until

from dafka import Consumer, Producer, Tower
from dafka.mesh import limits
from dafka.mesh.options import TRANSPORTS

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="it looks at a process's descriptors in /proc"
)


class End(NamedTuple):
    """One end of a TCP connection of this process."""

    port: int
    to: int
    on: int
    idle: int
    interval: int
    probes: int
    unread: int  # ms


def ends() -> Iterator[End]:
    """Those of all connections, our own and libzmq's."""
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # it is closed meanwhile, listens, or is not of TCP
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                with socket.socket(fileno=os.dup(int(name))) as one:
                    if one.family == socket.AF_INET:
                        yield end_of(one)


def end_of(one: socket.socket) -> End:
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE)]
    for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT):
        options.append((socket.IPPROTO_TCP, option))
    return End(one.getsockname()[1], one.getpeername()[1], *starmap(one.getsockopt, options))


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_silent_connections_are_looked_after_at_both_ends_and_unread_ones_given_up(transport):
    with (
        Tower() as tower,
        Producer(
            "t", tower=tower, transport=transport, min_stores=0, beacon_interval=0.1, beacon_timeout=33.0
        ) as producer,
        Consumer(
            ["t"], tower=tower, transport=transport, beacon_interval=0.1, beacon_timeout=34.0
        ) as consumer,
    ):
        until(lambda: producer.send(b"value") >= 0 and consumer.poll(0.1))
        until(lambda: producer.metrics()["endpoint_peers"] == consumer.metrics()["endpoint_peers"] == 1)
        nodes = {producer._node.endpoint.port: 33_000, consumer._node.endpoint.port: 34_000}
        towers = set(map(port_of, tower.addresses))

        def found() -> list[End]:
            """Both ends of connections to each of the ports; none until there are all of them."""
            ports = {*nodes, *towers}
            mine = [end for end in ends() if end.port in ports or end.to in ports]
            complete = ports <= {end.port for end in mine} & {end.to for end in mine}
            return mine if complete else []

        for end in until(found):
            assert end.on == 1, end
            assert end.idle == limits.KEEPALIVE_SECONDS == 4, end
            assert end.interval == limits.KEEPALIVE_INTERVAL == 1, end
            assert end.probes == limits.KEEPALIVE_PROBES == 4, end
            # Who is published to has to read; who publishes nothing may be silent.
            assert end.unread == nodes.get(end.port, 0), end
