"""An observer hears what passes and says nothing but what it is told to ask."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

import pytest
from mesh.peer import Peer
from timing import each_time, short_turns

from dafka import Producer, Store, Tower
from dafka.mesh import limits, metrics_port
from dafka.mesh.observer import Observer
from dafka.protocol.commands import Command, DirectHead, GetHeads, Head
from dafka.protocol.runs import Run


def heard(observer: Observer, wanted: Callable[[Run | Command], bool]) -> tuple[float, Run | Command]:
    """The first of what it hears that is wanted."""
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        for when, item, _ in observer.poll(0.5):
            if wanted(item):
                return when, item
    pytest.fail("it was not heard")


def test_it_hears_what_its_prefixes_match_and_when():
    with Tower() as tower, Peer(tower.addresses) as peer, Observer([b"Hone"], tower=tower) as observer:
        peer.meet(b"Hone")
        before = time.time()
        peer.send(Head(b"A" * 32, b"other", 1))
        peer.send(Head(b"A" * 32, b"one", 2))
        when, item = heard(observer, lambda item: isinstance(item, Head))
        assert item == Head(b"A" * 32, b"one", 2)
        assert before - 1 <= when <= time.time() + 1


def test_records_come_in_runs_also_those_of_this_process():
    with (
        Tower() as tower,
        Observer([b"M"], tower=tower) as observer,
        Producer("hello", tower=tower, min_stores=0) as producer,
    ):
        producer.send(b"value")
        _, item = heard(observer, lambda item: isinstance(item, Run))
        assert isinstance(item, Run)
        assert (item.topic, item.address.decode(), item.first) == (b"hello", producer.address, 0)
        assert item.contents[0] == b"value"


def test_stores_answer_when_they_are_asked_for_heads_also_those_that_join_later(tmp_path):
    def from_store(item: Run | Command) -> bool:
        return isinstance(item, DirectHead) and item.recipient == observer.address

    with Tower() as tower, Observer([], tower=tower) as observer:
        observer.ask_heads(b"hello")
        with Store(tmp_path / "db", tower=tower), Producer("hello", tower=tower) as producer:
            producer.send(b"value")
            producer.flush(100)
            partition = producer.address.encode()
        with Store(tmp_path / "db", tower=tower):
            _, item = heard(observer, from_store)
            assert isinstance(item, DirectHead)
            assert (item.address, item.topic, item.sequence) == (partition, b"hello", 0)


def test_it_asks_again_at_intervals_that_grow(monkeypatch):
    with Tower() as tower, Peer(tower.addresses) as peer, Observer([], tower=tower) as observer:
        peer.meet(b"E" + observer.address)
        endpoint, times = observer._node.endpoint, []
        publish = endpoint.publish

        def noted(node, outputs):
            times.append(time.monotonic())  # when it asks: a busy machine may hear of several at once
            publish(node, outputs)

        monkeypatch.setattr(endpoint, "publish", noted)
        observer.ask_heads(b"hello")
        for _ in range(4):
            assert peer.receive(GetHeads) == GetHeads(b"hello", observer.address)
        assert times[3] - times[0] > 0.8  # three of the first pause are over after 0.6 s


@each_time
def test_a_look_at_as_many_subscriptions_as_a_peer_may_have_is_a_short_turn():
    with Tower() as tower, Observer([], tower=tower) as observer:
        endpoint = observer._node.endpoint
        for number in range(limits.HEARD_PREFIXES // 2):
            endpoint._heard.add(b"L%032d" % number)
            endpoint._heard.add(metrics_port.ID + b"%032d:80" % number)
        with short_turns():
            seen = observer.seen()
        assert len(seen.prefixes) == len(seen.metrics) == limits.HEARD_PREFIXES // 2


def test_it_waits_no_longer_than_it_is_told_to():
    with Tower() as tower, Observer([b"H"], tower=tower) as observer:
        began = time.monotonic()
        assert observer.poll(0.2) == []
        assert 0.1 < time.monotonic() - began < 100


def test_items_nobody_takes_are_dropped_oldest_first(monkeypatch):
    monkeypatch.setattr(limits, "OBSERVED_ITEMS", 5)
    with Tower() as tower, Peer(tower.addresses) as peer, Observer([b"H"], tower=tower) as observer:
        peer.meet(b"H")
        for sequence in range(20):
            peer.send(Head(b"A" * 32, b"hello", sequence))
        peer.until(lambda: observer.discarded.get("observer-queue") == 15)
        taken = [item.sequence for _, item, _ in observer.poll(0.0) if isinstance(item, Head)]
        assert taken == [15, 16, 17, 18, 19]


def test_it_knows_whether_a_tower_has_said_anything():
    with Tower() as tower, Observer([], tower=tower) as observer:
        deadline = time.monotonic() + 100
        while not observer.hears_tower:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
        silent = [f"tcp://127.0.0.1:{listening.getsockname()[1]}" for listening in (one, two)]
        with Observer([], tower=(silent[0], silent[1]), high_water_mark=1001) as alone:
            assert alone.poll(0.2) == []
            assert not alone.hears_tower
