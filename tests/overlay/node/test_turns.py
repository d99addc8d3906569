"""The hub's turns stay short, whatever many peers and busy stores do at once."""

from __future__ import annotations

import threading

import pytest
from overlay.node.crowd import Crowd
from overlay.node.endpoints import until
from timing import each_time, short_turns

from dafka.hub.hub import get_hub
from dafka.overlay import Disk, Endpoint, Memory

PEERS = 120


@pytest.mark.parametrize("version", [1, 2])
@each_time
def test_many_peers_come_are_sent_to_and_go_at_once(version):
    with Endpoint("127.0.0.1:0") as endpoint:
        with short_turns(), Crowd(endpoint.address, PEERS, version) as crowd:
            until(lambda: crowd.up == PEERS and len(endpoint.peers()) == PEERS)
        with short_turns():
            until(lambda: not endpoint.peers())


@pytest.mark.parametrize("version", [1, 2])
@each_time
def test_an_endpoint_with_many_peers_publishes_much_and_is_closed(version):
    endpoint = Endpoint("127.0.0.1:0")
    with Crowd(endpoint.address, PEERS, version) as crowd:
        until(lambda: crowd.up == PEERS and len(endpoint.peers()) == PEERS)
        with short_turns():
            endpoint.publish_batch([("/t", number) for number in range(100)])
            endpoint.close()


@pytest.mark.parametrize("kind", ["memory", "disk"])
@each_time
def test_a_store_is_written_to_from_both_ends(kind, tmp_path_factory):
    backend = Memory() if kind == "memory" else Disk(tmp_path_factory.mktemp("disk") / "store")
    with Endpoint("127.0.0.1:0") as here, Endpoint(peers=[here.address]) as there:
        master, clone = here.attach_master("s", backend), there.attach_clone("s")

        def write(store):
            for number in range(1000):
                store.put(number % 500, "x" * 100)

        other = threading.Thread(target=write, args=(clone,))
        with short_turns():
            other.start()
            write(master)
            other.join()
            assert clone.await_idle(60) and master.await_idle(60)
            get_hub().run(lambda: None)
