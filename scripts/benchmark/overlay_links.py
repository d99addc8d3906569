"""Endpoints of the overlay on TCP, beside plain sockets: the same octets with their lengths in front.

Each end is a process of its own. Events are Zeek's, with a count and a short string. One publisher with one
subscriber is measured in processor time as well, of all processes together: that depends less on what else
the machine does.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from time import perf_counter, process_time

from processes import Figures, percentiles

from dafka.overlay import Disk, Empty, Endpoint, Event, Memory
from dafka.overlay.values import Count, encode
from dafka.overlay.wire.zeek import to_value

TOPIC = "/zeek/event/bench"
MESSAGES = 100_000
ROUND_TRIPS = 2000
FAN = 10
FANNED = 20_000
KEYS = 5000
WAIT = 60

_LENGTH = struct.Struct(">I")


def event(number: int) -> Event:
    return Event("ping", (Count(number), "payload"))


OCTETS = encode(to_value(event(0)))


# -- one publisher, one subscriber ------------------------------------------------------------------


def publish(link: Connection, *, count: int = MESSAGES) -> Figures:
    """As fast as a thread can. Its processor time."""
    with Endpoint(peers=[link.recv()]) as endpoint:
        link.send(str(endpoint.id))
        assert endpoint.await_peer(link.recv(), timeout=WAIT)
        used = process_time()
        for number in range(count):
            endpoint.publish(TOPIC, event(number))
        link.recv()
        used = process_time() - used
    return (used,)


def subscribe(link: Connection, *, count: int = MESSAGES, hops: int = 0) -> Figures:
    """Events a second that a thread gets, decoded; its processor time, and that of ``hops`` in between."""
    with Endpoint("127.0.0.1:0") as endpoint:
        subscriber = endpoint.subscribe(TOPIC, capacity=20_000)
        middles = [_middle(endpoint.address) for _ in range(hops)]
        link.send(middles[-1][1] if middles else endpoint.address)
        endpoint.await_peer(link.recv(), timeout=WAIT)
        link.send(str(endpoint.id))
        assert subscriber.get(timeout=WAIT).value is not None
        began, used = perf_counter(), process_time()
        for _ in range(count - 1):
            subscriber.get()
        ended, used = perf_counter(), process_time() - used
        link.send("done")
        used += sum([_end(process) for process, _ in middles])
    return (count - 1) / (ended - began), used


def _middle(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    """A process that is peered with an endpoint, or passes on what comes (``_pass_on``), and its address."""
    command = [sys.executable, __file__, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def _end(process: subprocess.Popen[str]) -> float:
    """Its processor time since it said its address."""
    used, _ = process.communicate("end\n")
    return float(used)


def send_plain(link: Connection, *, count: int = MESSAGES, receivers: int = 1) -> Figures:
    """The loop that a socket needs. Its processor time."""
    port = link.recv()
    links = [socket.create_connection(("127.0.0.1", port)) for _ in range(receivers)]
    used = process_time()
    for _ in range(count):
        frame = _LENGTH.pack(len(OCTETS)) + OCTETS
        for one in links:
            one.sendall(frame)
    used = process_time() - used
    link.recv()
    return (used,)


def receive_plain(link: Connection, *, count: int = MESSAGES, receivers: int = 1, hops: int = 0) -> Figures:
    """Messages a second, cut out of what one connection receives; of several, one after the other. And the
    processor time, with that of ``hops`` in between, which do the same and send what they have cut."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        middles = [_middle("plain", str(port)) for _ in range(hops)]
        link.send(int(middles[-1][1]) if middles else port)
        links = [server.accept()[0] for _ in range(receivers)]
        began, used = perf_counter(), process_time()
        left = [b""] * receivers
        got = [0] * receivers
        while sum(got) < count * receivers:
            for index, one in enumerate(links):
                if got[index] == count:
                    continue  # nothing more comes
                octets = left[index] + one.recv(65536)
                position = 0
                while len(octets) - position >= 4:
                    (length,) = _LENGTH.unpack_from(octets, position)
                    if len(octets) - position - 4 < length:
                        break
                    message = octets[position + 4 : position + 4 + length]
                    assert message
                    position += 4 + length
                    got[index] += 1
                left[index] = octets[position:]
        ended, used = perf_counter(), process_time() - used
    link.send("done")
    used += sum([_end(process) for process, _ in middles])
    return count * receivers / (ended - began), used


def _pass_on(port: int) -> None:
    """Messages of one connection, each cut out and sent on over another."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        used = process_time()
        with socket.create_connection(("127.0.0.1", port)) as there, server.accept()[0] as here:
            left = b""
            while received := here.recv(65536):
                octets, position = left + received, 0
                while len(octets) - position >= 4:
                    (length,) = _LENGTH.unpack_from(octets, position)
                    if len(octets) - position - 4 < length:
                        break
                    message = octets[position + 4 : position + 4 + length]
                    there.sendall(_LENGTH.pack(length) + message)
                    position += 4 + length
                left = octets[position:]
    sys.stdin.readline()
    print(process_time() - used)


# -- one publisher, ten subscribers -----------------------------------------------------------------


def publish_to_many(link: Connection) -> Figures:
    """To ten peers, each with a connection of its own."""
    with Endpoint("127.0.0.1:0") as endpoint:
        link.send(endpoint.address)
        for one in link.recv():
            endpoint.await_peer(one, timeout=WAIT)
        for number in range(FANNED):
            endpoint.publish(TOPIC, event(number))
        link.recv()
    return ()


def subscribe_many(link: Connection) -> Figures:
    """Events a second, at all ten together."""
    address = link.recv()
    ends = [Endpoint() for _ in range(FAN)]
    subscribers = [end.subscribe(TOPIC, capacity=20_000) for end in ends]
    for end in ends:
        end.peer_nosync(address)
    link.send([str(end.id) for end in ends])
    subscribers[0].get(timeout=WAIT)
    began = perf_counter()
    for index, subscriber in enumerate(subscribers):
        for _ in range(FANNED - (index == 0)):
            subscriber.get(timeout=WAIT)
    ended = perf_counter()
    link.send("done")
    for end in ends:
        end.close()
    return (FAN * FANNED / (ended - began),)


# -- there and back ---------------------------------------------------------------------------------


def echo(link: Connection) -> Figures:
    """Publish what comes."""
    with Endpoint(peers=[link.recv()]) as endpoint:
        subscriber = endpoint.subscribe("/there")
        link.send(str(endpoint.id))
        for message in subscriber:
            if message.value is None:
                break
            endpoint.publish("/back", message.value)
    return ()


def round_trips(link: Connection) -> Figures:
    """Seconds, p50 and p99."""
    with Endpoint("127.0.0.1:0") as endpoint:
        subscriber = endpoint.subscribe("/back")
        link.send(endpoint.address)
        endpoint.await_peer(link.recv(), timeout=WAIT)
        while True:
            endpoint.publish("/there", -1)
            try:
                subscriber.get(timeout=0.1)
                break
            except Empty:
                continue
        seconds = []
        for number in range(ROUND_TRIPS):
            began = perf_counter()
            endpoint.publish("/there", number)
            while subscriber.get(timeout=WAIT).value != number:
                pass
            seconds.append(perf_counter() - began)
        endpoint.publish("/there", None)
    return percentiles(seconds)


def echo_plain(link: Connection) -> Figures:
    with socket.create_connection(("127.0.0.1", link.recv())) as there:
        there.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while octets := there.recv(65536):
            there.sendall(octets)
    return ()


def round_trips_plain(link: Connection) -> Figures:
    with socket.create_server(("127.0.0.1", 0)) as server:
        link.send(server.getsockname()[1])
        back, _ = server.accept()
        back.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        seconds = []
        with back:
            for _ in range(ROUND_TRIPS):
                began = perf_counter()
                back.sendall(_LENGTH.pack(len(OCTETS)) + OCTETS)
                back.recv(65536)
                seconds.append(perf_counter() - began)
    return percentiles(seconds)


# -- stores -----------------------------------------------------------------------------------------


def clone_three_times(link: Connection) -> Figures:
    """Three clones that follow a master."""
    address = link.recv()
    ends = [Endpoint(peers=[address]) for _ in range(3)]
    stores = [end.attach_clone("bench") for end in ends]
    for store in stores:
        store.await_idle(timeout=WAIT)
    link.send("go")
    for store in stores:
        while store.get(KEYS - 1, None) is None:
            time.sleep(0.001)
    link.send("done")
    for end in ends:
        end.close()
    return ()


def put_to_disk_with_clones(link: Connection) -> Figures:
    """The same, and the master's disk has them before the clones."""
    with tempfile.TemporaryDirectory() as folder:
        return put_with_clones(link, backend=Disk(f"{folder}/bench"))


def put_with_clones(link: Connection, *, backend: Disk | Memory = Memory()) -> Figures:  # noqa: B008
    """Puts a second at a master, until three clones have the last one."""
    with Endpoint("127.0.0.1:0") as endpoint:
        store = endpoint.attach_master("bench", backend)
        link.send(endpoint.address)
        link.recv()
        began = perf_counter()
        for key in range(KEYS):
            store.put(key, "value")
        link.recv()
        ended = perf_counter()
    return (KEYS / (ended - began),)


if __name__ == "__main__":
    if sys.argv[1] == "plain":
        _pass_on(int(sys.argv[2]))
    else:
        with Endpoint("127.0.0.1:0", peers=[sys.argv[1]]) as middle:
            print(middle.address, flush=True)
            used = process_time()
            sys.stdin.readline()
            print(process_time() - used)
