"""Mutated requests: other connections keep working, memory stays flat, and no fault of the broker is logged.

The corpus is a request of every API and version as kafka-python encodes it, taken apart and put together
wrongly. ``DAFKA_FUZZ_REQUESTS`` is how many times, ``DAFKA_FUZZ_SEED`` repeats a run.
"""

from __future__ import annotations

import logging
import os
import random
import resource
import socket
import struct
from collections.abc import Callable

import pytest
from broker.clients import Client, batch
from broker.server.client import WireClient, encoded
from broker.server.samples import fetch, produce, samples
from timing import until

from dafka import Broker
from dafka.broker.server import limits
from dafka.broker.server.table import BY_KEY
from dafka.broker.topics import table as topics

REQUESTS = int(os.environ.get("DAFKA_FUZZ_REQUESTS", "600"))
GROWTH = 64 * 1024 * 1024  # octets of memory that a run may add: kept by the interpreter for itself
INTERESTING = [b"\0", b"\xff", b"\x7f", b"\x80", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0"]


def corpus(client: Client) -> list[bytes]:
    client.create("topic", 2)
    topic_id = client.call("metadata", ["topic"]).topics["topic"].topic_id
    found = []
    for sample in samples("topic", topic_id):
        api = BY_KEY[sample.API_KEY]
        found += [encoded(sample, version) for version in range(api.first, api.last + 1)]
    return found


def flip(octets: bytearray, chance: random.Random) -> None:
    for _ in range(chance.randint(1, 8)):
        octets[chance.randrange(len(octets))] = chance.randrange(256)


def overwrite(octets: bytearray, chance: random.Random) -> None:
    what = chance.choice(INTERESTING)
    at = chance.randrange(len(octets))
    octets[at : at + len(what)] = what


def cut(octets: bytearray, chance: random.Random) -> None:
    begin = chance.randrange(len(octets))
    del octets[begin : begin + chance.randint(1, 40)]


def repeat(octets: bytearray, chance: random.Random) -> None:
    begin = chance.randrange(len(octets))
    piece = octets[begin : begin + chance.randint(1, 60)]
    octets[begin:begin] = piece * chance.randint(1, 20)


def retag(octets: bytearray, chance: random.Random) -> None:
    """Another API or version with the same body."""
    struct.pack_into(">hh", octets, 0, chance.randrange(-1, 80), chance.randrange(-1, 20))


def scramble(octets: bytearray, chance: random.Random) -> None:
    octets[:] = chance.randbytes(chance.randint(0, 300))


MUTATIONS: list[Callable[[bytearray, random.Random], None]] = [flip, overwrite, cut, repeat, retag, scramble]


def mutated(request: bytes, chance: random.Random) -> bytes:
    body = bytearray(request[4:])
    for _ in range(chance.randint(1, 3)):
        if len(body) > 4:
            chance.choice(MUTATIONS)(body, chance)
    # Mostly with a correct length, because otherwise the octets after it would not be decoded.
    length = len(body) if chance.random() < 0.9 else chance.randrange(-(2**31), 2**31)
    return struct.pack(">i", length) + body


def resident() -> int:
    with open("/proc/self/statm") as status:
        return int(status.read().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")
@pytest.mark.timeout(300 + REQUESTS)
def test_mutated_requests_do_not_affect_other_connections(
    broker: Broker,
    client: Client,
    wire: WireClient,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    seed = int(os.environ.get("DAFKA_FUZZ_SEED", random.randrange(2**32)))
    print(f"DAFKA_FUZZ_SEED={seed}")
    chance = random.Random(seed)
    monkeypatch.setattr(limits, "REQUEST_SECONDS", 0.5)
    monkeypatch.setattr(topics, "PARTITIONS_PER_TOPIC", 1000)  # 46 000, once asked for, are 70 MB rightly
    requests = corpus(client)
    client.create("others")
    host, port = broker.bootstrap_servers.rsplit(":", 1)
    before = 0
    sent = written = 0
    with caplog.at_level(logging.WARNING):
        while sent < REQUESTS or written < 6:
            with socket.create_connection((host, int(port)), 100) as bad:
                try:
                    for _ in range(chance.randint(1, 5)):
                        bad.sendall(mutated(chance.choice(requests), chance))
                        sent += 1
                    if chance.random() < 0.5:
                        bad.settimeout(0.01)
                        bad.recv(65536)
                except (TimeoutError, ConnectionError):
                    pass
            if sent % 20 == 0:
                (answer,) = wire.ask(produce("others", batch(b"%d" % written)), 9).responses
                assert answer.partition_responses[0].base_offset == written
                written += 1
            if not before and sent > REQUESTS * 0.4:
                before = resident()  # warm by now
        assert resident() - before < GROWTH
        (answer,) = wire.ask(fetch("others", 0), 12).responses
        assert answer.partitions[0].high_watermark == written
        until(lambda: broker.metrics()["listener_connections"] == 1)
        until(lambda: broker.metrics()["listener_held_bytes"] == 0)
    discarded = broker.discarded
    assert sum(discarded.values()) > sent / 20, discarded
    assert "internal" not in discarded, caplog.text
    ours = [record for record in caplog.records if record.name.startswith("dafka")]  # kafka-python logs, too
    assert not [record for record in ours if record.exc_info], caplog.text
