"""A peer in a process of its own attacks an endpoint: no turn of the hub gets long, and others go on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from overlay.node.attacker import KINDS
from overlay.node.endpoints import until
from timing import SECONDS, each_time, short_turns

from dafka.hub.hub import get_hub
from dafka.hub.turns import in_pieces
from dafka.overlay import Empty, Endpoint
from dafka.overlay.wire.primitives import NO_ENTITY

TESTS = Path(__file__).parents[2]
ATTACK_SECONDS = 1.0
MESSAGES = 10
KEYS = 300_000  # to encode them takes a tenth of a second


class Bystanders:
    """Two peers of the endpoint under attack, which pass messages to each other over it."""

    def __init__(self, publisher, receiver, subscriber):
        self.publisher = publisher
        self._receiver = receiver
        self._subscriber = subscriber
        self._number = 0

    def pass_on(self):
        """One message; again when it is lost, as peers believe a liar about others' links."""
        self._number += 1
        for _ in range(100):
            self.publisher.publish("/by", self._number)
            try:
                while self._subscriber.get(timeout=1.0).value != self._number:
                    pass
                return
            except Empty:
                continue
        pytest.fail("no message gets through")


@pytest.fixture
def town():
    with (
        Endpoint("127.0.0.1:0") as endpoint,
        endpoint.subscribe("/t", capacity=1000, overflow="drop_oldest"),
        Endpoint(peers=[endpoint.address]) as one,
        Endpoint(peers=[endpoint.address]) as other,
        other.subscribe("/by", capacity=1000, overflow="drop_oldest") as subscriber,
    ):
        endpoint.attach_master("st")
        assert one.await_subscriber("/by", other.id, SECONDS)
        yield endpoint, Bystanders(one, other, subscriber), [endpoint.id, one.id, other.id]


def fill(endpoint):
    """Put many keys into its store."""
    content = endpoint._carrier.role.stores["st"].content
    for numbers in in_pieces(range(KEYS), 1000):
        get_hub().run(lambda some: [content.put(one, "x", None, NO_ENTITY) for one in some], numbers)


@pytest.mark.parametrize("kind", KINDS)
@each_time
def test_turns_stay_short_and_bystanders_go_on(kind, town):
    endpoint, bystanders, ids = town
    if kind == "clones":
        fill(endpoint)
    command = [sys.executable, "-m", "overlay.node.attacker", endpoint.address, kind, str(ATTACK_SECONDS)]
    environment = {"PYTHONPATH": f"{TESTS}:{TESTS.parent}"}
    command += [bytes(one).hex() for one in ids]
    with (
        short_turns(),
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as attacker,
    ):
        assert attacker.stdout is not None and attacker.stdout.readline() == "begun\n"
        passed = 0
        while attacker.poll() is None or passed < MESSAGES:
            bystanders.pass_on()
            passed += 1
        assert attacker.wait() == 0
    until(lambda: {peer.id for peer in endpoint.peers()} == set(ids[1:]))
