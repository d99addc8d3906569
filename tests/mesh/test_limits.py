"""No queue and no table of a node grows without bound while others are slow, gone or hostile."""

from __future__ import annotations

import threading
import time

import gevent
import pytest
import zmq
from contexts import new_context
from mesh.peer import ADDRESS, Peer
from timing import until
from zmq.utils.monitor import recv_monitor_message

from dafka import Consumer, Producer, Store, Tower
from dafka.hub.hub import get_hub
from dafka.mesh import limits
from dafka.mesh.observer import Observer
from dafka.mesh.producer import RecordTooLargeError, SendTimeoutError
from dafka.protocol import commands
from dafka.protocol.beacons import TowerBeacon
from dafka.roles.limits import DEFAULT_LIMITS

KB = b"x" * 1000


def test_a_producer_that_no_store_hears_stops_taking_records(monkeypatch):
    monkeypatch.setattr(limits, "RETAINED_BYTES", 100_000)
    monkeypatch.setattr(limits, "PENDING_BYTES", 50_000)
    with Tower() as tower:
        producer = Producer("hello", tower=tower)
        with pytest.raises(SendTimeoutError):
            for _ in range(10_000):
                producer.send(KB, timeout=0.2)
        metrics = producer.metrics()
        # Beyond the limit there may be the one run that went over it.
        assert metrics["retained_bytes"] <= 100_000 + 50_000 + len(KB)
        assert metrics["pending_bytes"] <= 50_000 + len(KB)
        for _ in range(50):
            with pytest.raises(SendTimeoutError):
                producer.send(KB, timeout=0)
        assert len(producer._node.waiting) == 0
        with pytest.raises(TimeoutError):
            producer.close(0)


def test_a_producer_that_was_full_goes_on_when_a_store_comes(monkeypatch, tmp_path):
    monkeypatch.setattr(limits, "RETAINED_BYTES", 100_000)
    monkeypatch.setattr(limits, "PENDING_BYTES", 50_000)
    with Tower() as tower, Producer("hello", tower=tower) as producer:
        with pytest.raises(SendTimeoutError):
            for _ in range(10_000):
                producer.send(KB, timeout=0.1)
        with Store(tmp_path / "db", tower=tower):
            for _ in range(500):
                producer.send(KB, timeout=200)
            producer.flush(100)


@pytest.mark.parametrize("value", [KB, b""])
def test_a_producer_for_consumers_only_keeps_the_newest_records(monkeypatch, value):
    monkeypatch.setattr(limits, "RETAINED_BYTES", 100_000)
    monkeypatch.setattr(limits, "RETAINED_RECORDS", 5000)
    with Tower() as tower, Producer("hello", tower=tower, min_stores=0) as producer:
        for _ in range(20_000):
            producer.send(value, timeout=100)
        producer.flush(100)
        metrics = producer.metrics()
        assert metrics["records_out"] == 20_000
        assert metrics["retained_bytes"] <= 100_000 + limits.RUN_RECORDS * len(value)
        assert metrics["retained_records"] <= 5000 + limits.RUN_RECORDS


def test_a_record_larger_than_nodes_accept_is_refused_where_it_is_sent(monkeypatch):
    monkeypatch.setattr(limits, "RECORD_OCTETS", 100)
    with (
        Tower() as tower,
        Producer("hello", tower=tower, min_stores=0) as producer,
        pytest.raises(RecordTooLargeError, match="at most 100 octets, this one has 101"),
    ):
        producer.send(b"x" * 101)


def test_a_consumer_nobody_reads_holds_no_more_than_its_room(monkeypatch):
    monkeypatch.setattr(limits, "ROOM_RECORDS", 500)
    with (
        Tower() as tower,
        Producer("hello", tower=tower, min_stores=0) as producer,
        Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer,
    ):
        for _ in range(10_000):
            producer.send(b"value")
        producer.flush(100)
        until(lambda: consumer.metrics()["lag"] > 0)
        metrics = consumer.metrics()
        assert metrics["inbox_records"] <= 500
        assert sum(1 for _ in zip(range(10_000), consumer, strict=False)) == 10_000


def test_records_dropped_by_the_queue_between_local_nodes_are_repaired(monkeypatch):
    monkeypatch.setattr(limits, "LOCAL_BYTES", 20_000)
    with (
        Tower() as tower,
        Producer("hello", tower=tower, min_stores=0, head_interval=0.1) as producer,
        Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer,
    ):
        endpoint = consumer._node.endpoint
        largest = 0
        for number in range(2000):
            producer.send(b"%0100d" % number)
            largest = max(largest, endpoint._local.octets)
        assert [int(next(consumer).value) for _ in range(2000)] == list(range(2000))
        assert largest <= 20_000 + limits.RUN_RECORDS * 100  # a lone run may be larger


def test_a_flood_of_unknown_partitions_fills_the_tables_and_no_more(tmp_path, caplog):
    few = DEFAULT_LIMITS._replace(partitions=50)
    with (
        Tower() as tower,
        Peer(tower.addresses) as peer,
        Store(tmp_path / "db", tower=tower) as store,
        Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer,
    ):
        store._node.role._limits = consumer._node._role._limits = few
        peer.meet(b"Mhello", b"H")
        for number in range(1000):
            peer.send(commands.Record(b"%032X" % number, b"hello", 0, b"value"))
            peer.send(commands.Head(b"%032X" % number, b"hello", 7))
        for node in (store, consumer):
            until(lambda node=node: node.metrics()["partitions_refused"] > 500)  # some are lost on the way
            assert node.metrics()["partitions"] == 50
        assert len(store.heads()) == 50
        until(lambda: caplog.text.count("its table of partitions is full") == 2)


def test_partitions_that_do_not_exist_hold_up_no_stream(tmp_path):
    with (
        Tower() as tower,
        Store(tmp_path / "db", tower=tower) as store,
        Producer("hello", tower=tower) as producer,
        Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer,
        Peer(tower.addresses) as intruder,
    ):
        intruder.meet(b"H", b"Hhello")
        for number in range(2000):
            intruder.send(commands.Head(b"%032X" % number, b"hello", 1_000_000))
        intruder.until(lambda: store.metrics()["fetches_sent"] >= 400 <= consumer.metrics()["lag"])
        for number in range(100):
            producer.send(b"%d" % number)
        producer.flush(100)
        assert [next(consumer).value for _ in range(100)] == [b"%d" % number for number in range(100)]


@pytest.mark.parametrize("octets", [256, 4000])
def test_a_subscriber_to_an_impossible_topic_is_cut_off(octets):
    """Every octet of a subscription costs its publisher about fifty."""
    with Tower() as tower, Producer("hello", tower=tower, min_stores=0) as producer:
        endpoint = producer._node.endpoint
        node = f"tcp://127.0.0.1:{endpoint.port}"
        for address in (tower.addresses[1], node):
            with new_context() as context, context.socket(zmq.SUB) as socket:
                monitor = socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
                socket.subscribe(b"M" + b"x" * (octets - 1))
                socket.connect(address)
                assert recv_monitor_message(monitor)["event"] == zmq.EVENT_HANDSHAKE_SUCCEEDED
                cut_off = bool(monitor.poll(100_000 if octets > 256 else 1000))
                assert cut_off is (octets > 256)
                socket.disable_monitor()
                monitor.close()


def test_beacons_of_peers_that_have_no_place_in_the_table_are_counted():
    with Tower() as tower, Consumer(["hello"], tower=tower) as consumer, Peer(tower.addresses) as peer:
        role = consumer._node.endpoint._beaconing._role
        role._limits = DEFAULT_LIMITS._replace(peers=0)
        peer.until(lambda: consumer.metrics()["discarded"].get("peer-table", 0) > 1)
        assert consumer.metrics()["endpoint_peers"] == 0


def test_a_peer_whose_name_changes_all_the_time_is_looked_up_once_at_a_time(monkeypatch):
    released = threading.Event()
    monkeypatch.setattr("dafka.mesh.beaconing.sockets.getaddrinfo", lambda *_: released.wait(30) and [])
    with Tower() as tower, Consumer(["hello"], tower=tower) as consumer:
        beaconing = consumer._node.endpoint._beaconing
        keep, kept = beaconing._hub.keep, []
        monkeypatch.setattr(beaconing._hub, "keep", lambda *call: kept.append(keep(*call)) or kept[-1])

        def beacons() -> int:
            for number in range(200):
                beacon = TowerBeacon(ADDRESS, b"tcp://host%d.invalid:5" % number)
                beaconing._carry(beaconing._role.beacon(time.monotonic(), beacon))
                gevent.sleep(0)
            gevent.sleep(0.01)
            return sum(not green.dead for green in kept)

        try:
            assert get_hub().run(beacons) <= 1
            assert (
                get_hub().run(lambda: gevent.get_hub().threadpool.apply(len, ([],))) == 0
            )  # is free for others
        finally:
            released.set()


def test_a_store_queues_a_bounded_number_of_fetches(monkeypatch, tmp_path):
    monkeypatch.setattr(limits, "SERVE_REQUESTS", 5)
    with (
        Tower() as tower,
        Peer(tower.addresses) as peer,
        Store(tmp_path / "db", tower=tower) as store,
        Producer("hello", tower=tower) as producer,
    ):
        producer.send(KB)
        producer.flush(100)
        peer.meet(b"F")
        node = store._node
        fetch = commands.Fetch(producer.address.encode(), ADDRESS, b"hello", 0, 1)

        def flood() -> int:
            for number in range(100):
                node.on_command(fetch._replace(address=b"%032X" % number))
            return len(node._requests)

        assert get_hub().run(flood) == 5
        assert store.metrics()["discarded"]["serve-queue"] == 95
        until(lambda: store.metrics()["serve_requests"] == 0)


def test_a_fetch_that_is_repeated_before_it_was_served_is_served_once(tmp_path):
    """Else a store that is behind gets further behind with each repetition."""
    with (
        Tower() as tower,
        Peer(tower.addresses) as peer,
        Store(tmp_path / "db", tower=tower) as store,
        Producer("hello", tower=tower) as producer,
    ):
        for _ in range(10):
            producer.send(KB)
        producer.flush(100)
        peer.meet(b"F")
        fetch = commands.Fetch(producer.address.encode(), ADDRESS, b"hello", 3, 5)

        def repeat() -> None:
            for count in [5] * 50 + [2]:
                store._node.on_command(fetch._replace(count=count))

        get_hub().run(repeat)
        until(lambda: store.metrics()["serve_requests"] == 0)
        assert store.metrics()["records_served"] == 2


def test_a_store_that_cannot_read_one_partition_goes_on_serving_others(monkeypatch, tmp_path, caplog):
    with (
        Tower() as tower,
        Store(tmp_path / "db", tower=tower) as store,
        Producer("bad", tower=tower) as bad,
        Producer("good", tower=tower) as good,
    ):
        for producer in (bad, good):
            producer.send(b"value")
            producer.flush(100)
        read = store._node._read

        def damaged(partition, request):
            if partition.topic == b"bad":
                raise OSError("damaged")
            return read(partition, request)

        monkeypatch.setattr(store._node, "_read", damaged)
        with Consumer(["bad", "good"], tower=tower, offset_reset="earliest") as consumer:
            assert consumer.poll(100)[0].topic == "good"
            until(lambda: store.metrics()["discarded"].get("serve-error"))
    assert "cannot serve" in caplog.text


def test_an_observer_nobody_reads_keeps_the_newest(monkeypatch):
    monkeypatch.setattr(limits, "OBSERVED_ITEMS", 10)
    monkeypatch.setattr(limits, "OBSERVED_BYTES", 10_000)
    with (
        Tower() as tower,
        Observer([b"M"], tower=tower) as observer,
        Producer("hello", tower=tower, min_stores=0) as producer,
    ):
        for number in range(50):
            producer.send(b"%01000d" % number)
            producer.flush(100)
        until(lambda: observer.discarded.get("observer-queue"))
        until(lambda: not observer._node.endpoint._local)
        get_hub().run(lambda: None)  # items taken from that queue have been handed on
        kept = observer.poll(1.0)
        assert 0 < len(kept) <= 10
        assert int(kept[-1][1].contents[-1]) == 49
        assert sum(len(content) for _, run, _ in kept for content in run.contents) <= 10_000
