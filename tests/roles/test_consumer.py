"""The consumer's rules: subscriptions, HELLOs and heads, where partitions start, what the user is given."""

from __future__ import annotations

import pytest
from roles.consuming import (
    ME,
    OTHER,
    PARTITION,
    PARTITION2,
    STORE,
    TOPIC,
    consumer,
    deliver,
    direct,
    fetch,
    live,
)

from dafka.protocol.commands import (
    Claim,
    ConsumerHello,
    DirectHead,
    DirectRecord,
    End,
    GetHeads,
    Head,
    Record,
    StoreHello,
    Trimmed,
)
from dafka.protocol.framing import STRINGS_LIMIT, decode, encode
from dafka.protocol.runs import Run
from dafka.roles.consumer import ConsumerRole
from dafka.roles.limits import LAST_SEQUENCE, Limits
from dafka.roles.outputs import Gap, Hold, Subscribe, Unsubscribe

# -- subscriptions, hellos, heads -------------------------------------------------------------------


def test_every_consumer_subscribes_to_what_is_addressed_to_it():
    own = [Subscribe(octet + ME) for octet in (b"D", b"E", b"L", b"T")]
    assert ConsumerRole(ME).start() == [*own, Subscribe(b"C")]


def test_subscribing_to_a_topic_asks_for_its_records_and_heads():
    role = consumer(topics=())
    assert role.subscribe(0.0, TOPIC) == [Subscribe(b"Mhello"), Subscribe(b"Hhello"), GetHeads(TOPIC, ME)]
    assert role.subscribe(0.0, TOPIC) == []
    assert role.topics == [TOPIC]


def test_get_heads_is_repeated_at_intervals_that_double():
    role = consumer(limits=Limits(heads_interval=1.0, longest_heads_interval=4.0))
    times = [step / 10 for step in range(200) if role.tick(step / 10)]
    assert times == [1.0, 3.0, 7.0, 11.0, 15.0, 19.0]


def test_get_heads_of_many_topics_do_not_come_all_at_once():
    topics = [b"topic%d" % number for number in range(25)]
    role = consumer(topics=topics, limits=Limits(heads_at_once=10))
    assert [len(role.tick(1.0 + step / 10)) for step in range(4)] == [10, 10, 5, 0]


def test_a_store_that_says_hello_is_told_the_topics():
    role = consumer(topics=(b"one", b"two"))
    hello = ConsumerHello(STORE, ME, (b"one", b"two"))
    assert role.receive(1.0, StoreHello(ME, STORE)) == [hello]
    assert role.peer_subscribed(1.0, b"W" + STORE) == [hello]
    assert role.receive(1.0, StoreHello(OTHER, STORE)) == []
    assert role.peer_subscribed(1.0, b"W") == []
    assert role.peer_subscribed(1.0, b"Mhello") == []


def test_more_topics_than_a_hello_may_have_are_told_in_several():
    role = consumer()
    names = [b"%d" % number for number in range(STRINGS_LIMIT + 1)]
    for name in names:
        role.subscribe(0.0, name)
    hellos = role.receive(0.0, StoreHello(ME, STORE))
    for hello in hellos:
        assert decode(encode(hello)) == hello
    assert [topic for hello in hellos for topic in hello.topics] == role.topics


def test_a_consumer_without_topics_does_not_say_hello():
    role = consumer(topics=())
    assert role.receive(1.0, StoreHello(ME, STORE)) == []
    assert role.peer_subscribed(1.0, b"W" + STORE) == []


def test_a_consumer_at_the_latest_record_names_its_topics_once_heads_can_tell_it_something():
    role = consumer("latest")
    assert role.receive(1.0, StoreHello(ME, STORE)) == [ConsumerHello(STORE, ME, ())]
    role.receive_run(2.0, live(7, b"7"))
    assert role.receive(3.0, StoreHello(ME, STORE)) == [ConsumerHello(STORE, ME, (TOPIC,))]
    role = consumer("latest", offsets={PARTITION: 3})
    assert role.receive(1.0, StoreHello(ME, STORE)) == [ConsumerHello(STORE, ME, (TOPIC,))]


# -- where a partition starts -----------------------------------------------------------------------


@pytest.mark.parametrize("head", [Head(PARTITION, TOPIC, 1), DirectHead(ME, PARTITION, TOPIC, 1)])
def test_earliest_a_head_has_everything_fetched_from_0(head):
    role = consumer("earliest")
    assert role.receive(1.0, head) == [fetch(0, 2)]
    assert role.receive_run(1.1, live(0, b"CONTENT")) == [deliver(0, b"CONTENT")]


def test_earliest_a_record_above_0_has_those_before_it_fetched():
    role = consumer("earliest")
    assert role.receive_run(1.0, live(1, b"1")) == [fetch(0, 1)]
    assert role.receive_run(1.1, direct(0, b"0")) == [deliver(0, b"0"), deliver(1, b"1")]


def test_latest_starts_at_the_first_record_that_comes():
    role = consumer("latest")
    assert role.receive_run(1.0, live(7, b"7", b"8")) == [deliver(7, b"7", b"8")]
    assert role.receive_run(1.0, live(6, b"6")) == []


@pytest.mark.parametrize("head", [Head(PARTITION, TOPIC, 7), DirectHead(ME, PARTITION, TOPIC, 7)])
def test_latest_starts_behind_the_first_head_that_comes(head):
    role = consumer("latest")
    assert role.receive(1.0, head) == []
    assert role.receive_run(1.0, live(9, b"9")) == [fetch(8, 1)]


@pytest.mark.parametrize("offset_reset", ["earliest", "latest"])
def test_a_start_that_is_given_goes_before_the_reset(offset_reset):
    role = consumer(offset_reset, offsets={PARTITION: 3})
    assert role.receive(1.0, Head(PARTITION, TOPIC, 9)) == [fetch(3, 7)]
    role = consumer(offset_reset, offsets={PARTITION: 3})
    assert role.receive_run(1.0, live(2, b"2", b"3", b"4")) == [deliver(3, b"3", b"4")]


def test_an_unknown_offset_reset_is_an_error():
    with pytest.raises(ValueError, match="'middle'"):
        ConsumerRole(ME, offset_reset="middle")


# -- what is for it, and what is not ----------------------------------------------------------------


@pytest.mark.parametrize(
    "item",
    [
        live(0, b"0", topic=b"hello2"),
        live(0, b"0", topic=b"hell"),
        Run(OTHER, PARTITION, TOPIC, 0, [b"0"]),
        direct(0, b"0"),  # of a partition it knows nothing of, so never asked for
        live(LAST_SEQUENCE, b"0"),
        live(0),
        live(0, b"0", address=b""),
    ],
)
def test_runs_that_are_not_exactly_its_own_are_ignored(item):
    role = consumer()
    assert role.receive_run(1.0, item) == []
    assert role.positions == {}


@pytest.mark.parametrize(
    "command",
    [
        Head(PARTITION, b"hello2", 3),
        Head(PARTITION, TOPIC, 2**64 - 1),
        DirectHead(OTHER, PARTITION, TOPIC, 3),
        Trimmed(ME, PARTITION, TOPIC, 3, STORE),
        GetHeads(TOPIC, OTHER),
    ],
)
def test_commands_that_are_not_exactly_its_own_are_ignored(command):
    role = consumer()
    assert role.receive(1.0, command) == []
    assert role.positions == {}


def test_single_records_are_taken_like_runs():
    role = consumer()
    assert role.receive(1.0, Record(PARTITION, TOPIC, 0, b"0")) == [deliver(0, b"0")]
    assert role.receive(1.0, DirectRecord(ME, PARTITION, TOPIC, 1, b"1")) == [deliver(1, b"1")]


# -- order ------------------------------------------------------------------------------------------


def test_records_that_overlap_are_given_once():
    role = consumer()
    role.receive_run(1.0, live(0, b"0", b"1"))
    assert role.receive_run(1.0, live(0, b"0", b"1")) == []
    assert role.receive_run(1.0, live(1, b"1", b"2")) == [deliver(2, b"2")]


def test_partitions_are_independent():
    role = consumer()
    assert role.receive_run(1.0, live(1, b"1")) == [fetch(0, 1)]
    assert role.receive_run(1.0, live(0, b"x", address=PARTITION2)) == [deliver(0, b"x", address=PARTITION2)]
    assert role.positions == {(TOPIC, PARTITION): (0, 2), (TOPIC, PARTITION2): (1, 1)}
    assert role.lag == 2


# -- room -------------------------------------------------------------------------------------------


def test_without_room_nothing_is_asked_for_or_given():
    role = consumer(room=(0, 0))
    assert role.receive(1.0, Head(PARTITION, TOPIC, 9)) == []
    assert role.receive_run(1.0, live(0, b"0")) == [Hold(live(0, b"0"))]
    assert role.receive_run(1.0, direct(0, b"0")) == []
    assert role.set_room(2.0, 4, 1000) == [fetch(0, 1)]


def test_no_more_is_given_than_there_is_room_for():
    role = consumer(room=(3, 1000))
    rest = live(3, b"3", b"4")
    outputs = role.receive_run(1.0, live(0, b"0", b"1", b"2", b"3", b"4"))
    assert outputs == [deliver(0, b"0", b"1", b"2"), Hold(rest)]
    assert role.set_room(2.0, 10, 1000) == []  # nothing is lost
    assert role.receive_run(2.0, rest) == [deliver(3, b"3", b"4")]


def test_records_without_room_that_cannot_be_held_are_fetched():
    role = consumer(room=(3, 1000))
    role.receive_run(1.0, live(0, b"0", b"1", b"2", b"3", b"4"))
    assert role.receive(1.0, Head(PARTITION, TOPIC, 4)) == []
    assert role.set_room(2.0, 10, 1000) == [fetch(3, 2)]


def test_records_that_leave_a_gap_and_find_no_room_are_not_held():
    role = consumer(room=(1, 1000))
    role.receive_run(1.0, live(0, b"0"))
    assert role.receive_run(1.0, live(3, b"3")) == []
    assert role.set_room(2.0, 10, 1000) == [fetch(1, 2)]


def test_room_in_bytes_may_be_exceeded_by_one_record_only():
    role = consumer(room=(100, 10))
    taken, left = deliver(0, b"x" * 8, b"y" * 50), Hold(live(2, b"z"))
    assert role.receive_run(1.0, live(0, b"x" * 8, b"y" * 50, b"z")) == [taken, left]
    assert role.receive_run(1.0, live(2, b"z")) == [left]


def test_room_is_used_up_until_it_is_said_anew():
    role = consumer(room=(2, 1000))
    role.receive_run(1.0, live(0, b"0"))
    assert role.receive_run(1.0, live(1, b"1", b"2")) == [deliver(1, b"1"), Hold(live(2, b"2"))]
    role.receive(1.0, Head(PARTITION, TOPIC, 3))
    assert role.set_room(2.0, 4, 1000) == [fetch(2, 2)]


def test_when_records_kept_behind_a_gap_use_up_the_room_nothing_is_asked_for():
    role = consumer(room=(2, 1000))
    assert role.receive_run(1.0, live(1, b"1", b"2")) == [fetch(0, 1)]
    assert role.receive_run(1.1, direct(0, b"0")) == [deliver(0, b"0"), deliver(1, b"1")]
    role.receive(1.2, Head(PARTITION, TOPIC, 9))
    assert role.set_room(1.3, 1, 1000) == [deliver(2, b"2")]
    assert role.set_room(1.4, 10, 1000) == [fetch(3, 5)]


def test_room_set_aside_by_one_fetch_is_not_taken_by_the_guess_of_another():
    role = consumer(room=(100, 600), limits=Limits(guessed_record_bytes=256))
    role.receive_run(1.0, live(0, b"0", b"1"))
    assert role.receive(1.1, Head(PARTITION, TOPIC, 5)) == [fetch(2, 4)]  # of records of 2 bytes or so
    # Two of 256 bytes would be more than there is.
    assert role.receive(1.1, Head(PARTITION2, TOPIC, 0)) == [fetch(0, 1, PARTITION2)]
    role.receive(1.1, Head(b"E" * 32, TOPIC, 0))
    assert role.receive_run(1.2, direct(2, b"2", b"3", b"4", b"5")) == [deliver(2, b"2", b"3", b"4", b"5")]


def test_fetched_records_without_room_are_asked_for_again_and_not_left_out():
    role = consumer(room=(100, 300), limits=Limits(guessed_record_bytes=50))
    role.receive(1.0, Head(PARTITION, TOPIC, 1))
    role.receive(1.0, Head(PARTITION2, TOPIC, 0))
    role.receive(1.0, Head(b"E" * 32, TOPIC, 0))
    role.receive_run(1.1, direct(0, b"x" * 400, address=PARTITION2))  # more than was guessed
    role.receive(1.2, Trimmed(ME, PARTITION, TOPIC, 2, STORE))
    assert role.receive_run(1.2, direct(0, b"0")) == []
    outputs = [output for now in (1.3, 1.6, 2.9, 5.0) for output in role.tick(now)]
    assert not any(isinstance(output, Gap) for output in outputs)
    assert fetch(0, 2) in role.set_room(6.0, 100, 300)


# -- a partition that is claimed --------------------------------------------------------------------


def claim(claimant: bytes) -> Claim:
    return Claim(PARTITION, claimant, TOPIC, 0, False)


def test_a_producer_that_claims_a_partition_is_told_how_far_it_has_been_read():
    role = consumer()
    assert role.receive(1.0, claim(b"N1")) == []
    role.receive_run(1.0, live(0, b"0", b"1"))
    assert role.receive(1.1, claim(b"N1")) == [End(b"N1", PARTITION, TOPIC, 2, b"")]


def test_unread_records_of_the_previous_producer_are_fetched_instead():
    role = consumer()
    role.receive_run(1.0, live(0, b"0", b"1"))
    assert role.receive(1.1, claim(b"N2"), unread=True) == [End(b"N2", PARTITION, TOPIC, 2, b"")]
    assert role.receive_run(1.2, live(2, b"before", b"before")) == [fetch(2, 2)]
    assert role.receive_run(1.3, live(0, b"0", address=PARTITION2)) == [deliver(0, b"0", address=PARTITION2)]
    assert role.receive_run(1.4, direct(2, b"stored")) == [deliver(2, b"stored")]


def test_unread_records_of_an_unknown_partition_are_fetched_as_well():
    role = consumer()
    assert role.receive(1.0, claim(b"N2"), unread=True) == []
    assert role.receive_run(1.1, live(0, b"before")) == [fetch(0, 1)]


def test_unread_records_of_a_topic_subscribed_to_later_are_fetched_as_well():
    role = ConsumerRole(ME, offset_reset="earliest")
    role.set_room(0.5, 1000, 10**6)
    assert role.receive(1.0, claim(b"N2"), unread=True) == []
    role.subscribe(1.1, TOPIC)
    assert role.receive_run(1.2, live(0, b"before")) == [fetch(0, 1)]


def test_unread_records_are_fetched_although_their_topic_was_left_in_between():
    role = consumer()
    role.receive(1.0, claim(b"N2"), unread=True)
    role.unsubscribe(1.1, TOPIC)
    role.subscribe(1.2, TOPIC)
    assert role.receive_run(1.3, live(0, b"before")) == [fetch(0, 1)]


def test_when_all_that_waited_is_read_records_are_taken_again():
    role = consumer()
    role.receive_run(1.0, live(0, b"0"))
    role.receive(1.1, claim(b"N2"), unread=True)
    assert role.reclaimed
    role.read_up()
    assert not role.reclaimed
    assert role.receive_run(1.2, live(1, b"1")) == [deliver(1, b"1")]


def test_a_producer_that_claims_its_partition_again_changes_nothing():
    role = consumer()
    role.receive_run(1.0, live(0, b"0"))
    role.receive(1.1, claim(b"N2"))
    role.receive(9.0, claim(b"N2"), unread=True)
    assert role.receive_run(9.1, live(1, b"1")) == [deliver(1, b"1")]


# -- leaving, limits --------------------------------------------------------------------------------


def test_unsubscribing_forgets_the_topic():
    role = consumer(topics=(TOPIC, b"other"))
    role.receive(1.0, Head(PARTITION, TOPIC, 9))
    assert role.unsubscribe(1.0, TOPIC) == [Unsubscribe(b"Mhello"), Unsubscribe(b"Hhello")]
    assert role.unsubscribe(1.0, TOPIC) == []
    assert role.receive_run(1.1, direct(0, b"0")) == []
    assert (role.topics, role.positions, role.lag) == ([b"other"], {}, 0)
    assert [output for output in role.tick(9.0) if output != GetHeads(b"other", ME)] == []
    role.subscribe(10.0, TOPIC)
    assert role.receive(10.0, Head(PARTITION, TOPIC, 9)) == [fetch(0, 10)]


def test_unsubscribing_gives_the_credit_of_its_fetches_to_others():
    role = consumer(topics=(TOPIC, b"other"), room=(2, 10_000))
    assert len(role.receive(1.0, Head(PARTITION, b"other", 9))) == 1
    assert role.receive(1.0, Head(PARTITION, TOPIC, 9)) == []
    assert role.unsubscribe(1.1, b"other")[2:] == [fetch(0, 1)]


def test_the_table_of_partitions_is_bounded():
    role = consumer(limits=Limits(partitions=3))
    for number in range(10):
        role.receive(1.0, Head(b"%032d" % number, TOPIC, 9))
    assert (len(role.positions), role.refused) == (3, 7)
    role.unsubscribe(1.0, TOPIC)
    role.subscribe(1.0, TOPIC)
    role.receive(1.0, Head(PARTITION, TOPIC, 9))
    assert len(role.positions) == 1
