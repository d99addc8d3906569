"""The store's rules: what is appended, acknowledged, served, told, and learnt from other stores."""

from __future__ import annotations

import sys

import pytest
from roles.storing import (
    CONSUMER,
    HELLO2_HEADS,
    HELLO_HEADS,
    KEY,
    ME,
    OTHER_STORE,
    PARTITION,
    PARTITION2,
    RUN,
    TOPIC,
    ack,
    append,
    direct,
    fetch,
    from_consumer,
    live,
    several,
    store,
)

from dafka.protocol.commands import (
    Claim,
    ConsumerHello,
    DirectHead,
    DirectRecord,
    End,
    Fetch,
    GetHeads,
    Head,
    Record,
    StoreHello,
    Trimmed,
)
from dafka.protocol.runs import Run
from dafka.roles.limits import LAST_SEQUENCE, Limits
from dafka.roles.outputs import Append, Begin, Hold, Serve, Subscribe
from dafka.roles.store import ALL_TOPICS, StoreRole

# -- storing and acknowledging ----------------------------------------------------------------------


def test_it_subscribes_to_everything_and_to_what_is_addressed_to_it():
    everything = [Subscribe(octet) for octet in (b"M", b"H", b"F", b"G", b"C")]
    own = [Subscribe(octet + ME) for octet in (b"D", b"W", b"T", b"E")]
    assert store().start() == everything + own


def test_records_are_appended_at_once_and_acknowledged_after_the_commit():
    role = store()
    assert role.receive_run(1.0, live(0, b"0", b"1")) == [append(0, b"0", b"1")]
    assert role.receive_run(1.1, live(2, b"2")) == [append(2, b"2")]
    assert role.stored(1.2, TOPIC, PARTITION, 2) == [ack(1)]
    assert role.stored(1.3, TOPIC, PARTITION, 3) == [ack(2)]
    assert role.stored(1.4, TOPIC, PARTITION, 3) == []


def test_doubles_are_cut_off():
    role = store(0, 5)
    assert role.receive_run(1.0, live(3, b"3", b"4", b"5")) == [append(5, b"5")]
    assert role.receive_run(1.0, live(5, b"5")) == []  # on its way to the log


def test_missed_records_are_fetched():
    role = store()
    assert role.receive_run(1.0, live(2, b"2")) == [fetch(0, 2)]
    assert role.receive_run(1.1, direct(0, b"0", b"1")) == [append(0, b"0", b"1"), append(2, b"2")]
    assert role.receive(1.2, Head(PARTITION, TOPIC, 5)) == [fetch(3, 3)]


def test_a_store_goes_on_where_its_log_ends():
    role = store(3, 8)
    assert role.receive(1.0, Head(PARTITION, TOPIC, 9)) == [fetch(8, 2)]
    assert role.positions == {KEY: (3, 8, 10)}


def test_single_records_are_taken_like_runs():
    role = store()
    assert role.receive(1.0, Record(PARTITION, TOPIC, 0, b"0")) == [append(0, b"0")]
    assert role.receive(1.0, DirectRecord(ME, PARTITION, TOPIC, 1, b"1")) == [append(1, b"1")]


@pytest.mark.parametrize("again", [live(3, b"3", b"4"), Head(PARTITION, TOPIC, 4)])
def test_an_ack_that_may_be_lost_is_repeated_at_growing_intervals(again):
    role = store(limits=Limits(ack_interval=0.5, longest_ack_interval=4.0))
    role.receive_run(0.0, live(0, b"0", b"1", b"2", b"3", b"4"))
    role.stored(0.0, TOPIC, PARTITION, 5)
    receive = role.receive_run if isinstance(again, Run) else role.receive
    times = [step / 10 for step in range(200) if receive(step / 10, again) == [ack(4)]]
    assert times == [0.5, 1.0, 2.0, 4.0, 8.0, 12.0, 16.0]


def test_uncommitted_records_are_not_acknowledged_again():
    role = store()
    role.receive_run(0.0, live(0, b"0"))
    assert role.receive(5.0, Head(PARTITION, TOPIC, 0)) == []
    assert role.receive_run(5.0, live(0, b"0")) == []


def test_records_that_the_process_appended_itself_count_as_received():
    role = store()
    role.stored(0.0, TOPIC, PARTITION, 7)
    assert role.receive_run(1.0, live(7, b"7")) == [append(7, b"7")]
    assert role.receive(1.0, from_consumer(0, 9)) == [Serve(CONSUMER, TOPIC, PARTITION, 0, 7)]


def test_a_failed_write_is_fetched_again_after_a_pause():
    role = store(limits=Limits(write_pause=1.0))
    role.receive_run(0.0, live(0, b"0"))
    role.stored(0.0, TOPIC, PARTITION, 1)
    role.receive_run(0.1, live(1, b"1"))
    role.receive_run(0.1, live(2, b"2"))
    assert role.not_stored(0.2, TOPIC, PARTITION, 2) == []
    assert role.not_stored(0.2, TOPIC, PARTITION, 3) == []  # the second append, behind the first
    assert role.receive_run(0.5, live(3, b"3")) == [Hold(live(3, b"3"))]
    role.receive(0.5, Head(PARTITION2, TOPIC, 0))
    assert role.tick(0.9) == []
    assert sorted(out for out in role.tick(1.3) if isinstance(out, Fetch)) == [
        fetch(1, 2),
        fetch(0, 1, PARTITION2),
    ]
    assert role.receive_run(1.4, direct(1, b"1", b"2")) == [append(1, b"1", b"2")]


def after_a_failed_write(*, room: int = 4) -> StoreRole:
    """The first of two appends has failed, and the second is under way."""
    role = store(limits=Limits(uncommitted_records=room, guessed_record_bytes=1, write_pause=1.0))
    role.receive_run(0.0, live(0, b"0", b"1"))
    role.receive_run(0.0, live(2, b"2", b"3"))
    role.not_stored(0.1, TOPIC, PARTITION, 2)
    return role


def test_appends_behind_one_that_has_failed_take_room_until_they_are_over():
    role = after_a_failed_write()
    role.tick(1.2)
    assert role.receive_run(1.3, direct(0, b"0", b"1", b"2")) == [append(0, b"0", b"1")]
    assert role.not_stored(1.4, TOPIC, PARTITION, 4) == []  # the second append, behind the first
    role.tick(2.5)
    assert append(2, b"2", b"3") in role.receive_run(2.6, direct(2, b"2", b"3"))


def test_an_append_that_fails_behind_another_does_not_stop_what_has_been_fetched_since():
    role = after_a_failed_write(room=100)
    role.tick(1.2)
    assert append(0, b"0", b"1") in role.receive_run(1.3, direct(0, b"0", b"1"))
    assert role.not_stored(1.4, TOPIC, PARTITION, 4) == []  # the second append, behind the first
    assert role.stored(1.5, TOPIC, PARTITION, 2) == [ack(1)]
    assert append(2, b"2", b"3") in role.receive_run(1.6, direct(2, b"2", b"3"))  # no pause


def test_nothing_is_left_out_while_an_append_is_under_way_that_will_fail():
    role = after_a_failed_write()
    role.tick(1.2)
    role.receive(1.3, Trimmed(ME, PARTITION, TOPIC, 4, OTHER_STORE))
    assert not any(isinstance(out, Begin) for out in role.tick(1.8))
    role.not_stored(1.9, TOPIC, PARTITION, 4)
    role.receive(2.0, Trimmed(ME, PARTITION, TOPIC, 4, OTHER_STORE))
    assert Begin(TOPIC, PARTITION, 4) in [out for now in (2.4, 2.9) for out in role.tick(now)]


def test_uncommitted_records_are_bounded():
    role = store(limits=Limits(uncommitted_records=4, guessed_record_bytes=1))
    assert role.receive_run(0.0, live(0, b"0", b"1", b"2")) == [append(0, b"0", b"1", b"2")]
    rest = live(4, b"4", b"5")
    assert role.receive_run(0.0, live(3, b"3", b"4", b"5")) == [append(3, b"3"), Hold(rest)]
    assert role.stored(0.1, TOPIC, PARTITION, 3) == [ack(2)]
    assert role.receive_run(0.1, rest) == [append(4, b"4", b"5")]
    role = store(limits=Limits(uncommitted_bytes=10))
    taken, left = append(0, b"x" * 8, b"y" * 8), Hold(live(2, b"z"))
    assert role.receive_run(0.0, live(0, b"x" * 8, b"y" * 8, b"z")) == [taken, left]
    role.not_stored(0.1, TOPIC, PARTITION, 2)
    assert [out for out in role.tick(1.3) if isinstance(out, Fetch)] == [fetch(0, 1)]


@pytest.mark.parametrize(
    "run",
    [
        direct(0, b"0"),  # of a partition it knows nothing of
        Run(OTHER_STORE, PARTITION, TOPIC, 0, [b"0"]),
        live(0, b"0", topic=b""),
        live(0, b"0", address=b""),
        live(LAST_SEQUENCE, b"0"),
        live(0),
    ],
)
def test_runs_that_are_not_for_it_are_ignored(run):
    role = store()
    assert role.receive_run(1.0, run) == []
    assert role.positions == {}


# -- serving ----------------------------------------------------------------------------------------


def test_a_fetch_is_served_with_exactly_what_was_asked_for_as_far_as_it_is_committed():
    role = store(0, 8)
    role.receive_run(0.0, live(8, b"8"))
    assert role.receive(1.0, from_consumer(2, 3)) == [Serve(CONSUMER, TOPIC, PARTITION, 2, 3)]
    assert role.receive(1.0, from_consumer(2, 100)) == [Serve(CONSUMER, TOPIC, PARTITION, 2, 6)]
    assert role.receive(1.0, from_consumer(8, 1)) == []
    assert role.receive(1.0, from_consumer(0, 0)) == []


@pytest.mark.parametrize(
    "command",
    [
        from_consumer(0, 1, topic=b"hello2"),
        from_consumer(0, 1, topic=b"hell"),
        Fetch(PARTITION2, CONSUMER, TOPIC, 0, 1),
        Fetch(PARTITION, ME, TOPIC, 0, 1),  # its own
    ],
)
def test_fetches_of_what_it_has_not_and_its_own_are_ignored(command):
    assert store(0, 8).receive(1.0, command) == []


def test_a_fetch_below_the_first_record_is_told_where_the_partition_begins():
    role = store(3, 8)
    assert role.receive(1.0, from_consumer(0, 5)) == [Trimmed(CONSUMER, PARTITION, TOPIC, 3, ME)]
    role.trimmed(TOPIC, PARTITION, 6)
    assert role.receive(1.0, from_consumer(5, 1)) == [Trimmed(CONSUMER, PARTITION, TOPIC, 6, ME)]
    assert role.receive(1.0, from_consumer(6, 1)) == [Serve(CONSUMER, TOPIC, PARTITION, 6, 1)]
    role.trimmed(TOPIC, PARTITION, 8)  # nothing left
    assert role.receive(1.0, from_consumer(6, 1)) == [Trimmed(CONSUMER, PARTITION, TOPIC, 8, ME)]


def test_a_fetch_of_no_records_is_not_answered():
    assert store(2, 8).receive(1.0, from_consumer(3, 0)) == []
    assert store(2, 8).receive(1.0, from_consumer(0, 0)) == []


# -- heads and hellos -------------------------------------------------------------------------------


def test_heads_of_exactly_the_topic_asked_for():
    role = several()
    assert role.receive(1.0, GetHeads(TOPIC, CONSUMER)) == HELLO_HEADS
    assert role.receive(1.0, GetHeads(b"hello2", CONSUMER)) == HELLO2_HEADS
    assert role.receive(1.0, GetHeads(b"hell", CONSUMER)) == []


def test_a_consumers_hello_is_answered_with_the_heads_of_its_topics():
    role = several()
    assert role.receive(1.0, ConsumerHello(ME, CONSUMER, (b"hello2", TOPIC))) == HELLO2_HEADS + HELLO_HEADS
    assert role.receive(1.0, ConsumerHello(ME, CONSUMER, ())) == []
    assert role.receive(1.0, ConsumerHello(OTHER_STORE, CONSUMER, (TOPIC,))) == []


def test_a_topic_that_a_hello_repeats_is_told_once():
    """Else one message of 65 536 times the same name is answered with that many times all its heads."""
    assert several().receive(1.0, ConsumerHello(ME, CONSUMER, (TOPIC,) * 1000)) == HELLO_HEADS


def test_a_consumer_that_subscribes_to_hellos_is_greeted():
    assert store().peer_subscribed(1.0, b"L" + CONSUMER) == [StoreHello(CONSUMER, ME)]
    assert store().peer_subscribed(1.0, b"L") == []
    assert store().peer_subscribed(1.0, b"Mhello") == []
    assert store().peer_subscribed(1.0, b"Ghello") == []


# -- limits -----------------------------------------------------------------------------------------


def test_a_claim_is_answered_with_where_the_partition_ends():
    role = store(0, 5)
    claim = Claim(PARTITION, RUN, TOPIC, 2, numbering=True)
    assert role.receive(1.0, claim) == [End(RUN, PARTITION, TOPIC, 5, ME, first=2, count=3)]
    assert role.receive(1.0, claim._replace(partition=PARTITION2, sequence=0)) == [
        End(RUN, PARTITION2, TOPIC, 0, ME)
    ]


def test_a_claim_is_not_answered_while_records_are_on_their_way_into_the_log():
    role = store()
    role.receive_run(1.0, live(0, b"0"))
    claim = Claim(PARTITION, RUN, TOPIC, 0, numbering=False)
    assert role.receive(1.0, claim) == []
    role.stored(1.1, TOPIC, PARTITION, 1)
    assert role.receive(1.2, claim) == [End(RUN, PARTITION, TOPIC, 1, ME, count=1)]


def test_a_claim_is_not_answered_while_records_that_have_come_wait_for_room():
    """They may be of this partition, even if nothing of it has been heard of so far."""
    claim = Claim(PARTITION, RUN, TOPIC, 0, numbering=False)
    assert store(0, 5).receive(1.0, claim, unread=True) == []
    assert store().receive(1.0, claim, unread=True) == []
    numbering = claim._replace(numbering=True)
    assert store(0, 5).receive(1.0, numbering, unread=True) == [End(RUN, PARTITION, TOPIC, 5, ME, count=5)]


def test_a_producer_that_numbers_is_told_what_is_committed_while_more_is_on_its_way_into_the_log():
    role = store(0, 1)
    role.receive_run(1.0, live(1, b"1"))
    claim = Claim(PARTITION, RUN, TOPIC, 0, numbering=True)
    assert role.receive(1.0, claim) == [End(RUN, PARTITION, TOPIC, 1, ME, count=1)]


def test_records_kept_behind_a_gap_go_when_another_producer_claims_the_partition():
    """They are the earlier one's, under numbers that the new one gives to its own."""
    role = store()
    role.receive_run(1.0, live(2, b"old 2"))
    role.receive(1.0, Claim(PARTITION, RUN, TOPIC, 0, numbering=False))
    outputs = role.receive_run(2.0, live(0, b"new 0", b"new 1"))
    assert [one for one in outputs if isinstance(one, Append)] == [
        Append(TOPIC, PARTITION, 0, [b"new 0", b"new 1"])
    ]


def test_the_table_of_partitions_is_bounded():
    role = store(limits=Limits(partitions=3))
    for number in range(10):
        role.receive_run(1.0, live(0, b"0", address=b"%032d" % number))
        role.receive(1.0, Head(b"%032d" % (number + 100), TOPIC, 3))
    assert len(role.positions) == 3
    assert role.refused == 17


def test_partitions_that_this_process_leads_are_served_beyond_the_bound_and_take_no_place_of_others():
    role = store(limits=Limits(partitions=3))
    for number in range(10):
        role.lead(TOPIC, b"%032d" % number)
        role.stored(1.0, TOPIC, b"%032d" % number, 2)
    for number in range(100, 105):
        role.receive_run(1.0, live(0, b"0", address=b"%032d" % number))
    assert (len(role.positions), role.refused) == (13, 2)
    assert role.receive(1.0, Fetch(b"%032d" % 9, CONSUMER, TOPIC, 0, 9)) == [
        Serve(CONSUMER, TOPIC, b"%032d" % 9, 0, 2)
    ]
    role.forget(TOPIC, [b"%032d" % number for number in range(10)])
    role.receive_run(1.0, live(0, b"0", address=b"%032d" % 200))
    assert (len(role.positions), role.refused) == (3, 3)


def test_a_partition_that_was_deleted_for_good_is_forgotten():
    role = store(0, 5)
    role.receive(0.0, Head(PARTITION2, TOPIC, 3))
    role.forget(TOPIC, [PARTITION, b"X" * 32])
    assert set(role.positions) == {(TOPIC, PARTITION2)}
    assert role.receive(1.0, from_consumer(0, 5)) == []
    assert not [told for told in role.receive(1.0, GetHeads(TOPIC, CONSUMER)) if isinstance(told, DirectHead)]
    role.forget(TOPIC, [PARTITION2])
    assert role.positions == {}
    asked = [one for step in range(100) for one in role.tick(2.0 + step) if isinstance(one, Fetch)]
    assert asked == []


def test_very_many_heads_are_told_some_at_a_time():
    limits = Limits(told_at_once=10)
    names = [b"%032d" % number for number in range(25)]
    role = StoreRole(ME, {(TOPIC, name): (0, 5) for name in names}, limits=limits)
    *first, rest = role.receive(1.0, GetHeads(TOPIC, CONSUMER))
    assert first == [DirectHead(CONSUMER, name, TOPIC, 4) for name in names[:10]]
    assert rest[:2] == (CONSUMER, TOPIC)
    role.forget(TOPIC, [names[11]])  # the message is true when it is sent
    role.stored(1.0, TOPIC, names[12], 9)
    told = list(rest.heads)
    assert told[:2] == [DirectHead(CONSUMER, names[10], TOPIC, 4), DirectHead(CONSUMER, names[12], TOPIC, 8)]
    assert [head.address for head in told] == [names[10], *names[12:]]


def test_very_many_heads_cost_no_object_each_before_they_are_told():
    """The collector of garbage would go through them, in the turn in which a store joins."""
    limits, names = Limits(told_at_once=10), [b"%032d" % number for number in range(8000)]
    role = StoreRole(ME, {(TOPIC, name): (0, 5) for name in names}, limits=limits)
    before = sys.getallocatedblocks()
    told = role.receive(1.0, GetHeads(ALL_TOPICS, CONSUMER))
    assert sys.getallocatedblocks() - before < 1000
    assert len(told) == 11


def test_heads_of_all_topics_and_of_a_hello_are_told_some_at_a_time_too():
    limits = Limits(told_at_once=2)
    role = StoreRole(ME, {(b"t%d" % number, PARTITION): (0, 1) for number in range(5)}, limits=limits)
    for question in (
        GetHeads(ALL_TOPICS, CONSUMER),
        ConsumerHello(ME, CONSUMER, tuple(b"t%d" % number for number in range(5))),
    ):
        *first, rest = role.receive(1.0, question)
        assert [head.topic for head in (*first, *rest.heads)] == [b"t0", b"t1", b"t2", b"t3", b"t4"]


def test_a_log_that_is_learned_of_late_takes_nothing_back():
    role = StoreRole(ME)
    role.lead(TOPIC, PARTITION)
    role.stored(1.0, TOPIC, PARTITION, 7)
    role.know(TOPIC, PARTITION, 3, 5)
    role.know(TOPIC, PARTITION2, 1, 4)
    assert role.positions == {(TOPIC, PARTITION): (3, 7, 7), (TOPIC, PARTITION2): (1, 4, 4)}
