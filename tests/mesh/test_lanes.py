"""Consumers and stores read what they have room for and leave the rest to back-pressure; C nodes stand by.

The peers are plain sockets that do what C nodes do: a producer whose partition has the address of its beacon,
which answers a FETCH with wrong contents; a store that answers rightly; a consumer that asks for a hundred
thousand records at most and goes on only when it hears a head.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from mesh.peer import Peer
from timing import until

from dafka import Consumer, Producer, Store, Tower
from dafka.mesh import limits, store_node
from dafka.protocol.commands import Claim, DirectHead, DirectRecord, End, Fetch, GetHeads, Head, Record
from dafka.roles import store as store_role
from dafka.roles.limits import Limits

PARTITION = b"A" * 32
CONSUMER = b"C" * 32
TOPIC = b"hello"
# A peer beacons only while a test has it take part, and counts as silent only where a test says so.
PATIENT: dict[str, Any] = {"beacon_timeout": 100.0, "beacon_interval": 0.1}


def c_producer(tower: Tower) -> Peer:
    return Peer(tower.addresses, address=PARTITION)


def publish(peer: Peer, first: int, end: int, size: int = 100) -> None:
    for sequence in range(first, end):
        peer.send(Record(PARTITION, TOPIC, sequence, b"%d" % sequence + b"." * size))
    peer.send(Head(PARTITION, TOPIC, end - 1))


def take(consumer: Consumer, count: int) -> list[int]:
    """The numbers in the next records."""
    taken: list[int] = []
    while len(taken) < count:
        records = consumer.poll(20.0, count - len(taken))
        assert records, f"{len(taken)} records of {count} have come"
        taken += [int(record.value.partition(b".")[0]) for record in records]
    return taken


def leave_the_silent(consumer: Consumer) -> None:
    """Have the time be over for peers that have not beaconed lately."""
    role = consumer._node.endpoint._beaconing._role
    role._timeout, before = 0.0, role._timeout
    until(lambda: consumer.metrics()["endpoint_peers"] == 0)
    role._timeout = before


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ROOM_RECORDS", 50)
    monkeypatch.setattr(limits, "LANE_MESSAGES", 20)


def test_records_without_room_at_a_slow_consumer_wait_and_are_not_fetched(little_room: None) -> None:
    with Tower() as tower, c_producer(tower) as peer, Consumer(["hello"], tower=tower, **PATIENT) as consumer:
        peer.meet(b"Mhello", b"Hhello")
        publish(peer, 0, 5000)
        until(lambda: consumer.metrics()["inbox_records"] == 50)
        assert take(consumer, 5000) == list(range(5000))
        metrics = consumer.metrics()
        assert (metrics["fetches_sent"], metrics["lag"], metrics["records_lost"]) == (0, 0, 0)


def test_large_records_take_no_more_memory_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ROOM_BYTES", 100_000)
    monkeypatch.setattr(limits, "LANE_BYTES", 50_000)
    with Tower() as tower, c_producer(tower) as peer, Consumer(["hello"], tower=tower, **PATIENT) as consumer:
        peer.meet(b"Mhello", b"Hhello")
        publish(peer, 0, 200, size=20_000)
        until(lambda: consumer.metrics()["inbox_bytes"] >= 100_000)
        # Seven have room. A read may be twice as large as the one before, so some more come with the last.
        assert consumer.metrics()["endpoint_records_in"] <= 20
        assert take(consumer, 200) == list(range(200))
        assert consumer.metrics()["fetches_sent"] == 0


def test_a_slow_consumer_holds_up_no_other_one_of_its_process(little_room: None) -> None:
    with (
        Tower() as tower,
        c_producer(tower) as peer,
        Consumer(["hello"], tower=tower, **PATIENT) as slow,
        Consumer(["hello"], tower=tower, **PATIENT) as quick,
    ):
        until(lambda: (peer.pump(0.01), slow.metrics()["endpoint_peers"])[1] == 1)
        peer.meet(b"Mhello", b"Hhello")
        peer.until(lambda: min(peer.told[b"Mhello"], peer.told[b"Hhello"]) >= 2)  # both of them
        publish(peer, 0, 1)
        until(lambda: slow.metrics()["records_in"] == quick.metrics()["records_in"] == 1)
        publish(peer, 1, 3000)
        assert take(quick, 3000) == list(range(3000))
        until(lambda: slow.metrics()["records_in"] == 50)
        assert take(slow, 3000) == list(range(3000))
        assert slow.metrics()["fetches_sent"] == quick.metrics()["fetches_sent"] == 0


def test_messages_sent_before_a_peer_left_are_still_read(little_room: None) -> None:
    with (
        Tower() as tower,
        Consumer(["hello"], tower=tower, **PATIENT) as consumer,
        c_producer(tower) as peer,
    ):
        peer.meet(b"Mhello", b"Hhello")
        publish(peer, 0, 500)
        until(lambda: consumer.metrics()["inbox_records"] == 50)
        leave_the_silent(consumer)
        assert take(consumer, 500) == list(range(500))


def test_a_store_whose_log_is_slow_leaves_records_to_back_pressure(tmp_path, monkeypatch) -> None:
    role = store_role.StoreRole
    few = Limits(uncommitted_records=20)
    monkeypatch.setattr(store_node, "StoreRole", lambda *arguments: role(*arguments, limits=few))
    with Tower() as tower, c_producer(tower) as peer, Store(tmp_path, tower=tower, **PATIENT) as store:
        peer.meet(b"M", b"H")
        publish(peer, 0, 3000)
        until(lambda: store.heads() == {(TOPIC, PARTITION.decode()): 2999})
        assert store.metrics()["fetches_sent"] == 0


def test_a_store_does_not_say_where_a_partition_ends_while_its_records_wait_for_room(
    tmp_path, monkeypatch
) -> None:
    role, other, asks, numbers = store_role.StoreRole, b"B" * 32, b"1" * 32, b"2" * 32
    few = Limits(uncommitted_records=20)
    monkeypatch.setattr(store_node, "StoreRole", lambda *arguments: role(*arguments, limits=few))
    with Tower() as tower, c_producer(tower) as peer, Store(tmp_path, tower=tower, **PATIENT) as store:
        node, stalled = store._node, []
        append = node.writer.append
        node.writer.append = lambda *arguments, **more: stalled.append(partial(append, *arguments, **more))
        peer.meet(b"M", b"H", b"C")
        peer.be_heard(node.endpoint)  # or it would not hear the END
        for sequence in range(21):  # as many as there is room for, and one
            peer.send(Record(other, TOPIC, sequence, b"x"))
        publish(peer, 0, 5)

        def is_behind() -> bool:  # the lane's socket is the hub's: libzmq's are for one thread
            return store._hub.run(node.endpoint.is_behind, node)

        until(is_behind)
        peer.send(Claim(PARTITION, asks, TOPIC, 0, numbering=False))
        peer.send(Claim(PARTITION, numbers, TOPIC, 0, numbering=True))
        assert peer.receive(End).recipient == numbers

        def go_on() -> None:  # at once: records waiting for room must not come in front of stalled ones
            node.writer.append = append
            for call in stalled:
                call()

        store._hub.run(go_on)
        until(lambda: (TOPIC, PARTITION.decode()) in store.heads() and not is_behind())
        until(lambda: store.heads()[TOPIC, PARTITION.decode()] == 4)
        peer.send(Claim(PARTITION, asks, TOPIC, 0, numbering=False))
        told = peer.receive(End)
        assert (told.recipient, told.sequence) == (asks, 5)


def test_waiting_records_are_dropped_when_the_next_producer_numbers_them_again(
    little_room: None,
) -> None:
    with (
        Tower() as tower,
        Peer(tower.addresses) as peer,
        Consumer(["hello"], tower=tower, **PATIENT) as consumer,
    ):
        peer.meet(b"Mhello", b"Hhello", b"C")
        peer.be_heard(consumer._node.endpoint)  # or it would not hear the END
        publish(peer, 0, 200)
        until(lambda: consumer.metrics()["inbox_records"] == 50)
        peer.send(Claim(PARTITION, b"1" * 32, TOPIC, 0, numbering=False))
        told = peer.receive(End)
        assert (told.recipient, told.sequence) == (b"1" * 32, 50)
        assert take(consumer, 50) == list(range(50))
        assert answer(peer, b"of the next one").sequence == 50
        record = consumer.poll(20.0, 1)[0]
        assert (record.sequence, record.value) == (50, b"of the next one")
        # When all that waited has been read, records are taken as they come.
        until(lambda: not consumer._node._role.reclaimed)


def answer(peer: Peer, content: bytes) -> Fetch:
    """Wait for the next FETCH, and answer it with records of this content."""
    fetch = peer.receive(Fetch)
    assert isinstance(fetch, Fetch)
    for sequence in range(fetch.sequence, fetch.sequence + fetch.count):
        peer.send(DirectRecord(fetch.address, PARTITION, TOPIC, sequence, content))
    return fetch


def test_answers_of_a_c_producer_are_not_taken_while_a_store_may_answer() -> None:
    with (
        Tower() as tower,
        c_producer(tower) as producer,
        Peer(tower.addresses) as store,
        Consumer(["hello"], tower=tower, address=CONSUMER.decode(), **PATIENT) as consumer,
    ):
        both = (b"Mhello", b"Hhello", b"D" + CONSUMER)
        producer.meet(*both)
        store.meet(*both)
        producer.pump(0)  # it beacons again, so that it does not count as silent
        publish(producer, 0, 1)
        producer.until(lambda: b"D" + CONSUMER not in producer.subscriptions)
        publish(producer, 3, 4)
        assert answer(producer, b"wrong")[3:] == (1, 2)
        again = producer.receive(Fetch)
        assert isinstance(again, Fetch)
        assert again[3:] == (1, 2)
        answer(store, b"7.")
        assert take(consumer, 4) == [0, 7, 7, 3]


def test_when_nobody_else_answers_a_c_producer_is_heard() -> None:
    with (
        Tower() as tower,
        c_producer(tower) as producer,
        Consumer(["hello"], tower=tower, address=CONSUMER.decode(), **PATIENT) as consumer,
    ):
        producer.meet(b"Mhello", b"Hhello", b"D" + CONSUMER)
        publish(producer, 0, 1)
        producer.until(lambda: b"D" + CONSUMER not in producer.subscriptions)
        publish(producer, 2, 3)
        producer.until(lambda: b"D" + CONSUMER in producer.subscriptions)
        producer.heard.clear()
        answer(producer, b"1.")
        assert take(consumer, 3) == [0, 1, 2]


def test_a_c_consumer_comes_to_the_end_of_what_a_store_has(tmp_path) -> None:
    with Tower() as tower, Store(tmp_path, tower=tower), Peer(tower.addresses, address=CONSUMER) as peer:
        with Producer("hello", tower=tower) as producer:
            for _ in range(250):
                producer.send(b"x")
        partition = producer.address.encode()
        peer.meet(b"F", b"G")
        peer.receive(GetHeads)  # it hears the store, too
        taken = 0
        while taken < 250:
            peer.heard.clear()
            peer.send(Fetch(partition, CONSUMER, TOPIC, taken, 100))
            # It asks again only when it hears a head behind what it has.
            peer.until(
                lambda: any(
                    isinstance(said, DirectHead) or (isinstance(said, DirectRecord) and said.sequence == 249)
                    for said in peer.heard
                )
            )
            taken += sum(isinstance(said, DirectRecord) for said in peer.heard)
        assert taken == 250


def test_a_peer_that_is_back_before_it_was_let_go_of_is_connected_anew(
    little_room: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old connection may be cut without this end knowing."""
    monkeypatch.setattr(limits, "LANE_LEAVE_SECONDS", 60.0)
    with (
        Tower() as tower,
        c_producer(tower) as peer,
        Consumer(["hello"], tower=tower, **PATIENT) as consumer,
    ):
        peer.meet(b"Mhello", b"Hhello")
        leave_the_silent(consumer)
        before = peer.told[b"Mhello"]
        peer.until(lambda: peer.told[b"Mhello"] > before)
        publish(peer, 0, 10)
        assert take(consumer, 10) == list(range(10))
