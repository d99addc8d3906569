"""Records that come alone: received by the thread of the consumer's user that waits for them."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from mesh.lending import PARTITION, Meeting, meeting, plain_thread
from mesh.peer import ADDRESS, Peer
from mesh.test_lone import ELSEWHERE, hub_held_up
from timing import SECONDS, until

from dafka import Consumer, Producer, Tower
from dafka.hub.hub import get_hub
from dafka.mesh import limits, lone_reads, options
from dafka.protocol.commands import Claim, DirectRecord, End, Fetch, Head, Record
from dafka.sockets.loans import CAN_LEND, Loans

pytestmark = [
    pytest.mark.skipif(not CAN_LEND, reason="no connection is lent on this system"),
    pytest.mark.skipif(options.TRANSPORT == "libzmq", reason="a socket of libzmq is one thread's"),
]


def waits_of_the_system() -> int:
    """How many descriptors this process has that something is waited for with."""
    count = 0
    for place in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            count += os.readlink(f"/proc/self/fd/{place}").startswith("anon_inode:[event")
    return count


@pytest.fixture
def met() -> Iterator[Meeting]:
    with plain_thread(), meeting() as one:
        one.lend()
        yield one


def test_a_lone_record_is_had_without_the_hub(met: Meeting):
    with hub_held_up():
        for number in range(100):
            met.come(b"%d" % number)


@pytest.mark.parametrize("timeout", [0.0, 0.001, 1.0])
def test_a_lone_record_that_has_come_is_had_by_who_does_not_wait_for_long(met: Meeting, timeout: float):
    with hub_held_up():
        met.say(b"hello")
        records = []
        while not records:
            records = met.consumer.poll(timeout)
        assert [record.value for record in records] == [b"hello"]


def test_a_lone_record_is_had_by_who_iterates(met: Meeting):
    with hub_held_up():
        met.say(b"first")
        assert next(met.consumer).value == b"first"
        met.say(b"second")
        assert next(iter(met.consumer)).value == b"second"


@pytest.mark.parametrize("size", [0, 1, 300, 1900, 2100, 100_000])
def test_records_of_every_size_come_as_they_were_sent(met: Meeting, size: int):
    content = bytes(number & 255 for number in range(size))
    met.come(content)
    met.come(b"behind")


def test_lone_records_are_counted_like_all_others(met: Meeting):
    before = met.consumer.metrics()
    with hub_held_up():
        met.come(b"hello")
        met.come(b"again!")
    after = met.consumer.metrics()
    difference = {name: after[name] - before[name] for name in before if type(before[name]) is int}
    counted = {name: difference[name] for name in difference if "records" in name or "bytes" in name}
    assert {name: value for name, value in counted.items() if value} == {
        "records_in": 2,
        "bytes_in": 11,
        "endpoint_records_in": 2,
        "endpoint_bytes_in": 11,
    }
    assert (after["lag"], after["inbox_records"], after["inbox_bytes"]) == (0, 0, 0)


def test_the_room_for_records_is_as_large_behind_lone_ones(met: Meeting):
    for _ in range(20):
        met.come(bytes(100))
    met.consumer.metrics()
    assert met.node._records == met.node._bytes == 0


def test_records_that_come_while_nobody_waits_are_the_hubs(met: Meeting):
    loan = next(iter(met.node._lone._loans.lent.values()))
    met.say(b"first")
    until(lambda: met.consumer.metrics()["inbox_records"] == 1)
    met.say(b"second")
    until(lambda: met.consumer.metrics()["inbox_records"] == 2)
    assert not loan.held
    assert [record.value for record in met.consumer.poll(SECONDS)] == [b"first", b"second"]


def test_a_head_is_the_hubs_and_what_it_tells_of_is_fetched(met: Meeting):
    waiting = met.waits()
    missed = met.next
    met.peer.send(Head(PARTITION, b"t", missed))
    fetch = met.peer.receive(Fetch)
    assert (fetch.partition, fetch.sequence) == (PARTITION, missed)
    met.peer.send(DirectRecord(met.consumer.address.encode(), PARTITION, b"t", missed, b"fetched"))
    assert [record.value for record in waiting.result(SECONDS)] == [b"fetched"]
    met.next += 1
    met.come(b"behind")


def test_a_record_behind_a_gap_waits_for_what_is_missing(met: Meeting):
    waiting = met.waits()
    missed = met.record(b"missed")
    met.say(b"behind")
    fetch = met.peer.receive(Fetch)
    assert (fetch.sequence, fetch.count) == (missed.sequence, 1)
    answer = DirectRecord(met.consumer.address.encode(), PARTITION, b"t", missed.sequence, b"missed")
    met.peer.send(answer)
    records = waiting.result(SECONDS)
    while len(records) < 2:
        records += met.consumer.poll(SECONDS)
    assert [record.value for record in records] == [b"missed", b"behind"]


def test_a_record_comes_once_however_often_it_is_sent(met: Meeting):
    waiting = met.waits()
    again = met.record(b"again")
    for _ in range(3):
        met.peer.send(again)
        time.sleep(0.02)
    met.say(b"behind")
    records = waiting.result(SECONDS)
    while len(records) < 2:
        records += met.consumer.poll(SECONDS)
    assert [record.value for record in records] == [b"again", b"behind"]


@pytest.mark.parametrize("amount", [2, 3, 100, 5000])
def test_records_that_come_together_come_in_order(met: Meeting, amount: int):
    waiting = met.waits()
    with hub_held_up():
        for number in range(amount):
            met.say(b"%d" % number)
    records = waiting.result(SECONDS)
    while len(records) < amount:
        records += met.consumer.poll(SECONDS)
    assert [record.value for record in records] == [b"%d" % number for number in range(amount)]


def test_records_of_a_partition_that_was_not_there_before_come_too(met: Meeting):
    waiting = met.waits()
    met.peer.send(Record(b"O" * 32, b"t", 0, b"of another"))
    assert [record.value for record in waiting.result(SECONDS)] == [b"of another"]
    met.lend()
    with hub_held_up():
        waiting = met.waits()
        met.peer.send(Record(b"O" * 32, b"t", 1, b"again"))
        assert [record.value for record in waiting.result(SECONDS)] == [b"again"]


def test_records_of_a_topic_that_is_not_consumed_any_more_are_not_handed_out(met: Meeting):
    met.consumer.subscribe("u")
    met.consumer.unsubscribe("t")
    met.say(b"late")
    met.peer.send(Record(PARTITION, b"u", 0, b"other"))
    assert [record.value for record in met.consumer.poll(SECONDS)] == [b"other"]


def test_a_record_is_the_hubs_while_it_works_with_the_role(met: Meeting):
    waiting = met.waits()
    met.node._lone.busy += 1
    met.say(b"hello")
    assert [record.value for record in waiting.result(SECONDS)] == [b"hello"]
    met.node._lone.busy -= 1
    assert not met.is_lent


def test_a_record_of_a_partition_that_another_producer_has_claimed_is_the_hubs(met: Meeting):
    """What an earlier producer had sent may wait unread: the consumer has told where it is."""
    node, role = met.node, met.node._role
    with hub_held_up():
        role.reclaimed.add((b"t", PARTITION))
        waiting = met.waits()
        met.say(b"of the earlier one")
        until(lambda: met.node._lone._loans.lent and any(x.returned for x in node._lone._loans.lent.values()))
        assert not waiting.done()
    until(lambda: (b"t", PARTITION) not in role.reclaimed)  # all that waited has been read
    met.peer.until(lambda: role.positions[b"t", PARTITION] == (met.next - 1, met.next))
    assert not waiting.done()
    fetch = met.peer.receive(Fetch)
    met.peer.send(
        DirectRecord(met.consumer.address.encode(), PARTITION, b"t", fetch.sequence, b"of the later")
    )
    assert [record.value for record in waiting.result(SECONDS)] == [b"of the later"]


def test_a_producer_that_claims_a_partition_is_told_of_lone_records(met: Meeting):
    with hub_held_up():
        met.come(b"hello")
    met.peer.send(Claim(PARTITION, b"C" * 32, b"t", 0, numbering=False))
    end = met.peer.receive(End)
    assert (end.address, end.sequence) == (PARTITION, met.next)


def test_a_connection_that_has_ended_is_given_back_and_made_anew(met: Meeting):
    waiting = met.waits()
    peers = {loan.lender for loan in met.node._lone._loans.lent.values()}
    for peer in peers:
        peer.socket.shutdown(2)
    until(lambda: not met.is_lent)
    met.peer.meet(b"Mt")
    met.peer.told.clear()
    met.peer.until(lambda: met.peer.told[b"Mt"])
    met.say(b"over the next one")
    assert [record.value for record in waiting.result(SECONDS)] == [b"over the next one"]


def test_a_connection_that_is_lent_is_silent_since_the_last_record_and_not_behind(met: Meeting):
    (loan,) = met.node._lone._loans.lent.values()
    peer, lane = loan.lender, met.node.endpoint._links.lanes[met.node]
    until(lambda: peer.silent(time.monotonic()) > limits.LANE_BEHIND_SECONDS)
    assert not lane.behind
    with hub_held_up():
        before = time.monotonic()
        met.come(b"hello")
        assert before < peer.waits_since
        assert before < peer.emptied


def test_a_consumer_that_ends_ends_who_waits_and_leaves_no_descriptor():
    with Tower() as tower, Peer(tower.addresses) as peer, Consumer(["other"], tower=tower):
        peer.meet(b"Mother")
        gc.collect()  # those of other tests
        before = waits_of_the_system()
        for waits in (True, False):
            consumer = Consumer(["t"], tower=tower, offset_reset="earliest")
            peer.told.clear()
            peer.until(lambda: peer.told[b"Mt"])
            met = Meeting(peer, consumer)
            met.lend()
            if waits:
                waiting = met.waits()
            consumer.close()
            if waits:
                assert waiting.result(SECONDS) == []
            until(lambda: waits_of_the_system() <= before)


def test_a_thread_that_has_just_been_woken_is_not_left_behind_by_the_end_of_the_consumer(
    met: Meeting, monkeypatch
):
    """It may be about to look for what woke it."""
    held, go_on = threading.Event(), threading.Event()
    wait = Loans.wait

    def wait_later(self: Loans, timeout: float | None) -> list[Any]:
        held.set()
        go_on.wait(SECONDS)
        return wait(self, timeout)

    monkeypatch.setattr(Loans, "wait", wait_later)
    waiting = met.waits()
    assert held.wait(SECONDS)
    get_hub().run(met.node._wake)
    met.consumer.close()
    go_on.set()
    assert waiting.result(SECONDS) == []


def test_consumers_that_end_at_any_moment_end_who_reads_them():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with Tower() as tower, Producer("t", tower=tower, min_stores=0, **ELSEWHERE) as producer:
            for number in range(60):
                consumer = Consumer(["t"], tower=tower)
                ended: list[object] = []
                reader = threading.Thread(target=lambda c=consumer, e=ended: e.append(sum(1 for _ in c)))
                reader.start()
                for _ in range(5 + number % 7):
                    producer.send(b"hello")
                    time.sleep(0.0005)
                consumer.close()
                reader.join(SECONDS)
                assert len(ended) == 1
    finally:
        sys.setswitchinterval(interval)


def test_a_head_that_says_nothing_new_leaves_the_connection_to_the_thread(met: Meeting):
    before = met.consumer.metrics()["endpoint_commands_in"]
    with hub_held_up():
        met.come(b"first")
        waiting = met.waits()
        met.peer.send(Head(PARTITION, b"t", met.next - 1))
        time.sleep(0.01)
        met.say(b"second")
        assert [record.value for record in waiting.result(SECONDS)] == [b"second"]
    assert met.consumer.metrics()["endpoint_commands_in"] == before + 1


def test_the_connection_of_a_c_producer_is_not_lent():
    """Its address is that of its beacon, and that its answers are wrong is remembered with each record."""
    with meeting() as met:
        for sequence in range(10):
            waiting = met.waits()
            met.peer.send(Record(ADDRESS, b"t", sequence, b"hello"))
            assert [record.value for record in waiting.result(SECONDS)] == [b"hello"]
            time.sleep(0.002)
        assert not met.is_lent


def test_a_record_of_a_topic_with_a_longer_name_lends_nothing():
    with meeting() as met:
        met.come(b"first")
        for sequence in range(5):
            met.peer.send(Record(PARTITION, b"tt", sequence, b"not subscribed to"))
            time.sleep(0.002)
        time.sleep(0.05)
        alone = met.node._lone._alone
        assert alone + met.is_lent <= 1


def test_a_thread_that_waits_already_when_a_connection_is_lent_receives_from_it():
    with meeting() as met:
        met.come(b"first")
        waiting = met.waits()
        assert not met.is_lent
        peer = next(iter(met.node.endpoint._links.lanes[met.node]._subscriber.peers))

        def lend() -> None:
            met.node._has_woken = True  # as if another record had been handed over just now
            assert not peer.is_closed
            met.node.lend(peer, PARTITION)

        get_hub().run(lend)
        until(lambda: met.node._waiter is met.node._lone._loans)
        assert not waiting.done()
        get_hub().run(met.node._lone.end)
        met.node.close()
        waiting.result(SECONDS)


def test_a_thread_that_was_about_to_wait_when_a_connection_was_lent_receives_from_it(
    met: Meeting, monkeypatch
):
    bell, asked = met.node._lone.bell, []

    def bell_of_before() -> Loans | None:
        asked.append(len(asked))
        return bell() if len(asked) > 1 else None

    monkeypatch.setattr(met.node._lone, "bell", bell_of_before)
    with hub_held_up():
        met.come(b"hello")
    assert len(asked) > 1


def test_a_record_that_nobody_waits_for_lends_nothing():
    with meeting() as met:
        met.come(b"first")
        for number in range(5):
            met.say(b"hello")
            until(lambda number=number: met.consumer.metrics()["inbox_records"] == number + 1)
        assert not met.is_lent
        assert met.node._lone._alone <= 1


def test_idle_connections_make_room_for_others(met: Meeting, monkeypatch):
    monkeypatch.setattr(limits, "LENT_CONNECTIONS", 1)
    (loan,) = met.node._lone._loans.lent.values()

    def look_twice() -> bool:
        met.node._lone.look()
        met.node._lone.look()
        return loan.held

    assert not get_hub().run(look_twice)
    assert not met.is_lent


def test_connections_are_kept_while_there_is_room_for_others(met: Meeting):
    (loan,) = met.node._lone._loans.lent.values()
    for _ in range(5):
        get_hub().run(met.node._lone.look)
    assert loan.held


def test_connections_are_lent_to_no_consumer_that_hands_out_only_what_is_newest():
    with meeting(latest_only=True) as met:
        for _ in range(5):
            met.come(b"hello")
        assert not met.is_lent


def test_a_consumer_without_descriptors_for_it_goes_on_through_the_hub(monkeypatch):
    def none_left() -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(lone_reads, "Loans", none_left)
    with meeting() as met:
        for number in range(10):
            met.come(b"%d" % number)
        assert not met.is_lent


def test_connections_that_were_not_worth_lending_are_lent_more_rarely():
    with meeting() as met:
        lone = met.node._lone
        for _ in range(10):
            lone._valued(limits.LENT_WORTH_RECORDS - 1)
        assert lone._wanted == limits.LENT_AFTER_RECORDS
        alone = 0
        while not met.is_lent:
            met.come(b"alone")
            alone += 1
            time.sleep(0.002)
        assert limits.LENT_AFTER_RECORDS <= alone <= limits.LENT_AFTER_RECORDS + 5
        with hub_held_up():
            for _ in range(limits.LENT_WORTH_RECORDS):
                met.come(b"alone")
        get_hub().run(lone.end)
        met.come(b"through the hub")
        until(lambda: lone._wanted == 1)


def test_the_connections_that_are_lent_have_a_bound(monkeypatch):
    monkeypatch.setattr(limits, "LENT_CONNECTIONS", 2)
    with meeting() as met:
        lone = met.node._lone
        met.lend()
        (loan,) = lone._loans.lent.values()
        lone._loans.lent[-1] = loan  # as if of another connection
        assert not lone.offer(loan.lender)
        del lone._loans.lent[-1]
