"""The producer's rules: numbering, retention until acknowledged, HEAD, and what it answers."""

from __future__ import annotations

import pytest

from dafka.protocol.commands import Ack, DirectHead, Fetch, GetHeads, Head, StoreHello, Trimmed
from dafka.protocol.runs import Run
from dafka.roles.known_stores import KnownStores
from dafka.roles.limits import Limits
from dafka.roles.outputs import Subscribe
from dafka.roles.producer import ProducerRole

ME = b"A" * 32
OTHER = b"B" * 32
STORE, STORE2, STORE3 = b"5" * 32, b"6" * 32, b"7" * 32
CONSUMER = b"C" * 32
TOPIC = b"hello"


def contents(first: int, count: int) -> list[bytes]:
    return [b"%d" % sequence for sequence in range(first, first + count)]


def producer(published: int = 0, **options) -> ProducerRole:
    role = ProducerRole(TOPIC, ME, **options)
    if published:
        role.publish(0.0, contents(0, published))
    return role


def ack(sequence: int, store: bytes = b"") -> Ack:
    return Ack(ME, TOPIC, sequence, store)


def fetched(role: ProducerRole, first: int, count: int) -> list[bytes]:
    """What a FETCH brings; checks that it is in order and without gaps."""
    got: list[bytes] = []
    for run in role.receive(1.0, Fetch(ME, CONSUMER, TOPIC, first, count)):
        assert isinstance(run, Run)
        assert (run.recipient, run.address, run.topic, run.first) == (CONSUMER, ME, TOPIC, first + len(got))
        got += run.contents
    return got


def test_it_subscribes_to_acks_and_fetches_of_its_partition_and_get_heads_of_its_topic():
    assert producer().start() == [Subscribe(b"K" + ME), Subscribe(b"F" + ME), Subscribe(b"Ghello")]


def test_sequences_begin_at_0_and_have_no_gaps():
    role = producer()
    assert role.publish(0.0, [b"a", b"b"]) == Run(None, ME, TOPIC, 0, [b"a", b"b"])
    assert role.publish(0.0, [b"c"]).first == 2
    assert role.next_sequence == 3
    with pytest.raises(ValueError):
        role.publish(0.0, [])


def test_retained_records_do_not_change_with_the_callers_list():
    role = producer()
    mine = [b"a", b"b"]
    role.publish(0.0, mine)
    role.publish(0.0, [b"c"])
    assert mine == [b"a", b"b"]
    mine.clear()
    assert fetched(role, 0, 9) == [b"a", b"b", b"c"]


def test_head_comes_at_every_interval_after_the_first_record():
    role = producer(head_interval=1.0)
    assert role.tick(100.0) == []
    role.publish(100.0, [b"a", b"b"])
    assert role.tick(100.9) == []
    assert role.tick(101.0) == [Head(ME, TOPIC, 1)]
    assert role.tick(101.5) == []
    assert role.tick(102.0) == [Head(ME, TOPIC, 1)]


def heads(role: ProducerRole, begin: float, end: float) -> list[float]:
    """The times of the HEADs, with a tick every half second."""
    times = [begin + step / 2 for step in range(int(2 * (end - begin)))]
    return [now for now in times if role.tick(now)]


def test_heads_follow_each_other_at_longer_and_longer_intervals_while_nothing_is_new():
    role = producer(2, head_interval=1.0)
    assert heads(role, 0.0, 5.0) == [1.0, 2.0, 3.0, 4.0]  # it waits for an ACK
    role.receive(5.0, ack(1, STORE))
    assert heads(role, 5.0, 60.0) == [5.0, 6.0, 8.0, 12.0, 20.0, 36.0]
    assert role.next_tick == 68.0
    role.publish(60.0, [b"c"])
    assert role.next_tick == 61.0
    assert heads(role, 60.0, 63.0) == [61.0, 62.0]


def test_a_producer_that_leaves_says_where_it_ends():
    assert producer().leave() == []
    assert producer(3).leave() == [Head(ME, TOPIC, 2)]


def test_a_subscriber_to_its_heads_gets_one_at_once():
    for prefix in (b"H", b"M", b"H" + TOPIC, b"M" + TOPIC):
        role = producer(1, head_interval=1.0, min_stores=0)
        assert heads(role, 0.0, 20.0) == [1.0, 2.0, 4.0, 8.0, 16.0]
        role.peer_subscribed(20.0, b"H" + TOPIC + b"2")
        assert role.next_tick == 32.0
        role.peer_subscribed(20.0, prefix)
        assert heads(role, 20.0, 30.0) == [20.0, 21.0, 23.0, 27.0]


def test_heads_keep_their_interval_while_silent_stores_are_counted_as_lost():
    role = producer(1, head_interval=1.0, store_timeout=60.0)
    role.receive(0.0, ack(0, STORE))
    assert heads(role, 0.0, 30.0) == [float(second) for second in range(1, 30)]


def test_a_long_interval_between_heads_stays_as_it_is():
    role = producer(1, head_interval=40.0, min_stores=0)
    assert heads(role, 0.0, 130.0) == [40.0, 80.0, 120.0]


def test_an_ack_stands_for_everything_up_to_its_sequence():
    role = producer(10)
    assert (role.unacknowledged, role.first_retained) == (10, 0)
    role.receive(1.0, ack(6, STORE))
    assert (role.unacknowledged, role.first_unacknowledged, role.first_retained) == (3, 7, 7)
    assert role.retained_bytes == 3
    role.receive(1.0, ack(2, STORE))  # a late one takes nothing back
    assert role.first_unacknowledged == 7
    role.receive(1.0, ack(9, STORE))
    assert (role.unacknowledged, role.retained_bytes) == (0, 0)


def test_distinct_stores_are_counted():
    role = producer(10, min_stores=2)
    role.receive(1.0, ack(9, STORE))
    role.receive(1.0, ack(9, STORE))
    assert role.unacknowledged == 10
    role.receive(1.0, ack(4, STORE2))
    assert role.unacknowledged == 5
    role.receive(1.0, ack(7, STORE3))
    assert role.unacknowledged == 2
    assert fetched(role, 8, 9) == [b"8", b"9"]


def test_a_store_that_has_an_earlier_producers_records_is_not_counted():
    role = producer(10)
    role.receive(1.0, ack(3, STORE))
    assert role.disputed == 0
    role.receive(1.0, ack(19, STORE))
    assert (role.disputed, role.unacknowledged) == (20, 6)
    role.publish(2.0, contents(10, 20))
    role.receive(2.0, ack(19, STORE))  # which are not the records of these numbers from here
    assert role.unacknowledged == 26
    role.receive(2.0, ack(29, STORE2))
    assert role.unacknowledged == 0


def test_an_ack_beyond_the_end_never_counts_however_many_stores_sent_one():
    role = producer(10, limits=Limits(stores=2))
    for number in range(5):
        role.receive(1.0, ack(20, b"%032d" % number))
    assert (role.unacknowledged, fetched(role, 0, 10)) == (10, contents(0, 10))
    role.receive(1.0, ack(9, STORE))
    assert role.unacknowledged == 0


def test_acks_without_a_store_count_as_one_store():
    role = producer(10, min_stores=2)
    role.receive(1.0, ack(9))
    role.receive(1.0, ack(9))
    assert role.unacknowledged == 10
    role.receive(1.0, ack(9, STORE))
    assert role.unacknowledged == 0


def test_min_stores_0_asks_for_no_ack_and_keeps_everything():
    role = producer(10, min_stores=0)
    assert (role.unacknowledged, role.first_unacknowledged) == (0, 10)
    role.receive(1.0, ack(9, STORE))
    assert fetched(role, 0, 10) == contents(0, 10)


@pytest.mark.parametrize(
    "command",
    [
        Ack(OTHER, TOPIC, 9, STORE),
        Ack(ME, b"hello2", 9, STORE),
        Ack(ME, b"hell", 9, STORE),
        ack(10, STORE),  # never published
        Fetch(OTHER, CONSUMER, TOPIC, 0, 1),
        Fetch(ME, CONSUMER, b"hello2", 0, 1),
        GetHeads(b"hello2", CONSUMER),
        GetHeads(b"", CONSUMER),
        StoreHello(CONSUMER, STORE),
    ],
)
def test_commands_about_other_partitions_or_unknown_records_are_ignored(command):
    role = producer(10)
    assert role.receive(1.0, command) == []
    assert role.unacknowledged == 10


def test_a_fetch_is_answered_with_exactly_what_was_asked_for():
    role = producer()
    for first in range(0, 5000, 500):
        role.publish(0.0, contents(first, 500))
    assert fetched(role, 0, 1) == [b"0"]
    assert fetched(role, 1490, 1020) == contents(1490, 1020)
    assert fetched(role, 4990, 100) == contents(4990, 10)
    assert fetched(role, 5000, 1) == []
    assert fetched(role, 17, 0) == []


def test_a_fetch_below_what_is_retained_is_left_to_the_stores():
    role = producer(10)
    role.receive(1.0, ack(4, STORE))
    assert role.receive(1.0, Fetch(ME, CONSUMER, TOPIC, 4, 6)) == []
    assert fetched(role, 5, 5) == contents(5, 5)


def test_an_answer_is_bounded_in_records_and_bytes():
    role = ProducerRole(TOPIC, ME, limits=Limits(answer_records=7))
    role.publish(0.0, contents(0, 10))
    assert fetched(role, 0, 10) == contents(0, 7)
    role = ProducerRole(TOPIC, ME, limits=Limits(answer_bytes=100))
    role.publish(0.0, [b"x" * 40] * 10)
    assert fetched(role, 0, 10) == [b"x" * 40] * 2
    role.publish(0.0, [b"y" * 400] * 2)
    assert fetched(role, 10, 2) == [b"y" * 400]


def test_get_heads_is_answered_when_there_is_a_head():
    role = producer()
    assert role.receive(1.0, GetHeads(TOPIC, CONSUMER)) == []
    role.publish(0.0, contents(0, 3))
    assert role.receive(1.0, GetHeads(TOPIC, CONSUMER)) == [DirectHead(CONSUMER, ME, TOPIC, 2)]


def test_records_of_stores_that_stay_silent_are_reported_as_trimmed_if_it_gives_stores_up():
    role = producer(10, store_timeout=30.0)
    role.receive(1.0, ack(6, STORE))
    fetch = Fetch(ME, CONSUMER, TOPIC, 0, 5)
    assert role.receive(31.0, fetch) == []
    assert role.receive(31.1, fetch) == [Trimmed(CONSUMER, ME, TOPIC, 7, ME)]
    role.receive(32.0, ack(6, STORE))  # it is back, with what it has
    assert role.receive(60.0, fetch) == []


def test_a_store_that_is_heard_of_answers_for_those_that_are_silent():
    role = producer(10, store_timeout=30.0)
    role.receive(1.0, ack(6, STORE))
    role.receive(40.0, ack(3, STORE2))
    assert role.receive(50.0, Fetch(ME, CONSUMER, TOPIC, 3, 5)) == []
    assert role.receive(50.0, Fetch(ME, CONSUMER, TOPIC, 4, 5)) == [Trimmed(CONSUMER, ME, TOPIC, 7, ME)]


def test_a_store_that_has_lost_what_it_acknowledged_goes_on_behind_it():
    """After a power cut, or from a copy of its folder: nobody else has these records."""
    role = producer(10)
    role.receive(1.0, ack(6, STORE))
    role.receive(2.0, ack(3, STORE))  # it is back, with less
    assert role.receive(2.0, Fetch(ME, STORE, TOPIC, 4, 6)) == [Trimmed(STORE, ME, TOPIC, 7, ME)]
    assert role.receive(2.0, Fetch(ME, CONSUMER, TOPIC, 4, 6)) == []
    assert role.unacknowledged == 3
    role.receive(3.0, ack(9, STORE2))
    assert role.receive(3.0, Fetch(ME, STORE, TOPIC, 4, 6)) == []  # the other store has them


def test_it_waits_for_silent_stores_for_ever_unless_it_is_told_not_to():
    role = producer(10)
    role.receive(1.0, ack(6, STORE))
    assert role.receive(1e9, Fetch(ME, CONSUMER, TOPIC, 0, 5)) == []


def test_records_forgotten_before_a_store_had_them_are_reported_as_trimmed():
    role = producer(min_stores=0)
    for _ in range(4):
        role.publish(0.0, [b"x" * 10] * 1000)
    role.receive(1.0, ack(499, STORE))
    role.forget(25_000)
    assert (role.first_retained, role.retained_bytes) == (2000, 20_000)
    assert role.receive(1.0, Fetch(ME, CONSUMER, TOPIC, 499, 1)) == []  # the store has it
    assert role.receive(1.0, Fetch(ME, CONSUMER, TOPIC, 500, 1)) == [Trimmed(CONSUMER, ME, TOPIC, 2000, ME)]
    with pytest.raises(ValueError):
        producer(10, min_stores=1).forget(0)


def forgetful(*stores: bytes) -> ProducerRole:
    """It has had 4000 records, has forgotten them all, and is connected to these stores."""
    role = producer(min_stores=0)
    known = KnownStores()
    for store in stores:
        known.subscribed(b"W" + store)
        known.subscribed(b"T" + store)
    role.know_stores(known)
    role.publish(0.0, [b"x"] * 4000)
    role.forget(0)
    return role


def test_records_that_connected_stores_lack_are_counted_whatever_min_stores_says():
    assert producer(10, min_stores=0).unstored == 0  # nobody is there
    role = forgetful(STORE, OTHER)
    assert role.unstored == 4000
    role.receive(1.0, ack(3999, STORE))
    role.receive(1.0, ack(3000, OTHER))
    assert role.unstored == 999
    role.receive(1.0, ack(3999, OTHER))
    assert role.unstored == 0


def test_stores_that_do_not_say_who_they_are_lack_what_no_such_ack_has_named():
    role = producer(10, min_stores=0)
    known = KnownStores()
    known.subscribed(b"W" + STORE)  # a C store
    role.know_stores(known)
    assert role.unstored == 10
    role.receive(1.0, ack(8))
    assert role.unstored == 1


def asks(role: ProducerRole, now: float, who: bytes, sequence: int) -> bool:
    """Whether it answers a FETCH, by TRIMMED."""
    outputs = role.receive(now, Fetch(ME, who, TOPIC, sequence, 1))
    assert outputs in ([], [Trimmed(who, ME, TOPIC, 4000, ME)])
    return bool(outputs)


def test_records_that_a_connected_store_may_still_be_committing_are_not_reported_as_trimmed():
    role = forgetful(STORE)
    role.receive(0.5, ack(499, STORE))
    assert not asks(role, 1.0, CONSUMER, 500)
    role.receive(1.5, ack(999, STORE))  # it was under way
    assert not asks(role, 2.0, CONSUMER, 999)
    assert not asks(role, 2.0, CONSUMER, 1000)
    assert asks(role, 3.0, STORE, 1000)  # it has come to a gap
    assert asks(role, 4.0, CONSUMER, 1000)
    assert not asks(role, 4.0, CONSUMER, 1001)


def test_the_store_that_is_furthest_behind_is_told_first():
    role = forgetful(STORE, STORE2)
    assert not asks(role, 1.0, STORE2, 10)  # the other one may be about to have it
    assert not asks(role, 1.0, STORE, 5)  # the same
    assert asks(role, 2.0, STORE2, 5)
    assert asks(role, 2.0, STORE, 5)
    assert asks(role, 2.0, CONSUMER, 5)
    assert not asks(role, 2.0, CONSUMER, 6)


def test_a_connected_store_that_does_not_get_on_with_a_partition_is_not_waited_for_for_ever():
    role = forgetful(STORE, STORE2)
    for now in range(1, 21):
        assert not asks(role, float(now), CONSUMER, 5)
    assert asks(role, 22.0, CONSUMER, 5)
    role.receive(23.0, ack(2, STORE))  # it gets on again
    assert not asks(role, 24.0, CONSUMER, 5)
    for now in range(24, 44):
        asks(role, float(now), STORE, 3)
    assert asks(role, 45.0, CONSUMER, 5)


def test_a_store_that_has_gone_and_acknowledged_nothing_is_not_waited_for():
    role = forgetful()
    assert asks(role, 1.0, CONSUMER, 5)


def test_the_table_of_stores_is_bounded():
    role = ProducerRole(TOPIC, ME, min_stores=3, limits=Limits(stores=2))
    role.publish(0.0, [b"a"])
    for number in range(10):
        role.receive(1.0, ack(0, b"%032d" % number))
    assert role.unacknowledged == 1
