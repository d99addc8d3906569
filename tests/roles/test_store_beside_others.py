"""A store beside other stores: its messages to them and theirs to it, and records that are gone."""

from __future__ import annotations

from roles.storing import (
    CONSUMER,
    HELLO2_HEADS,
    HELLO_HEADS,
    KEY,
    ME,
    OTHER_STORE,
    PARTITION,
    PARTITION2,
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
    DirectHead,
    GetHeads,
    Head,
    Trimmed,
)
from dafka.roles.limits import Limits
from dafka.roles.outputs import Begin, Serve
from dafka.roles.store import ALL_TOPICS, StoreRole

# -- other stores -----------------------------------------------------------------------------------


def test_a_store_tells_another_all_its_heads():
    role = several()
    heads = role.receive(1.0, GetHeads(ALL_TOPICS, CONSUMER))
    assert heads == HELLO_HEADS + HELLO2_HEADS
    assert role.receive(1.0, GetHeads(ALL_TOPICS, ME)) == []


def test_a_store_asks_the_others_when_one_shows_up_and_at_intervals_that_double():
    role = StoreRole(ME, limits=Limits(heads_interval=1.0, longest_heads_interval=4.0))
    question = GetHeads(ALL_TOPICS, ME)
    assert [step for step in range(15) if role.tick(step) == [question]] == [0, 1, 3, 7, 11]
    assert role.peer_subscribed(14.0, b"G") == [question]
    assert [step for step in range(15, 20) if role.tick(step) == [question]] == [15, 17]


def test_records_of_another_store_are_fetched():
    role = store()
    assert role.receive(1.0, DirectHead(ME, PARTITION, TOPIC, 4)) == [fetch(0, 5)]
    assert role.receive(1.0, DirectHead(CONSUMER, PARTITION2, TOPIC, 4)) == []


def test_a_new_store_begins_where_the_others_do():
    role = store()
    role.receive(1.0, DirectHead(ME, PARTITION, TOPIC, 9))
    role.receive(1.1, Trimmed(ME, PARTITION, TOPIC, 6, OTHER_STORE))
    assert [out for out in role.tick(1.4) if not isinstance(out, GetHeads)] == [
        Begin(TOPIC, PARTITION, 6),
        fetch(6, 4),
    ]
    assert role.receive_run(1.5, direct(6, b"6")) == [append(6, b"6")]
    assert role.positions == {KEY: (6, 6, 10)}
    assert role.receive(1.6, from_consumer(0, 1)) == [Trimmed(CONSUMER, PARTITION, TOPIC, 6, ME)]


def test_a_store_that_was_away_for_too_long_keeps_what_it_has_and_goes_on_behind_the_hole():
    role = store(0, 3)
    role.receive(1.0, Head(PARTITION, TOPIC, 9))
    role.receive(1.1, Trimmed(ME, PARTITION, TOPIC, 6, OTHER_STORE))
    assert Begin(TOPIC, PARTITION, 6) in role.tick(1.4)
    assert role.positions == {KEY: (0, 6, 10)}


def test_records_that_a_store_looks_for_itself_and_was_told_are_gone_are_reported_as_trimmed():
    """Or two stores that lack the same record would wait for each other."""
    role = store(0, 3)
    role.receive_run(1.0, live(6, b"6"))
    role.receive(1.0, Head(PARTITION, TOPIC, 9))
    assert role.receive(1.0, from_consumer(3, 9)) == []
    role.receive(1.1, Trimmed(ME, PARTITION, TOPIC, 8, PARTITION))
    assert role.receive(1.2, from_consumer(3, 9)) == [Trimmed(CONSUMER, PARTITION, TOPIC, 6, ME)]
    assert role.receive(1.2, from_consumer(6, 9)) == []  # it will have this one
    role.receive_run(1.3, direct(3, b"3"))
    assert role.receive(1.4, from_consumer(4, 9)) == []


def test_behind_an_answer_the_head_is_told_if_more_is_stored():
    role = store(0, 8)
    assert role.served(CONSUMER, TOPIC, PARTITION, 5) == [DirectHead(CONSUMER, PARTITION, TOPIC, 7)]
    assert role.served(CONSUMER, TOPIC, PARTITION, 8) == []
    assert role.served(CONSUMER, TOPIC, b"?" * 32, 5) == []


def test_a_skipped_gap_is_reported_as_trimmed_also_before_a_record_has_come_behind_it():
    role = store(0, 3)
    role.receive(1.0, Head(PARTITION, TOPIC, 9))
    role.receive(1.1, Trimmed(ME, PARTITION, TOPIC, 6, OTHER_STORE))
    role.tick(1.4)
    assert role.receive(1.5, from_consumer(1, 9)) == [Serve(CONSUMER, TOPIC, PARTITION, 1, 2)]
    assert role.receive(1.5, from_consumer(3, 9)) == [Trimmed(CONSUMER, PARTITION, TOPIC, 6, ME)]
    assert role.receive(1.5, from_consumer(6, 9)) == []


def test_a_beginning_is_said_again_until_the_log_has_a_record_there():
    role = store(0, 3)
    role.receive(1.0, Head(PARTITION, TOPIC, 9))
    role.receive(1.1, Trimmed(ME, PARTITION, TOPIC, 6, OTHER_STORE))
    role.tick(1.4)
    role.receive_run(1.5, direct(6, b"6"))
    assert role.not_stored(1.6, TOPIC, PARTITION, 7) == [Begin(TOPIC, PARTITION, 6)]
    role.tick(2.7)
    assert role.receive_run(2.8, direct(6, b"6")) == [append(6, b"6")]
    assert role.stored(2.9, TOPIC, PARTITION, 7) == [ack(6)]
    assert role.not_stored(3.0, TOPIC, PARTITION, 7) == []


def test_nothing_is_left_out_while_records_are_on_their_way_to_the_log():
    role = store()
    role.receive_run(1.0, live(0, b"0"))
    role.receive(1.0, Head(PARTITION, TOPIC, 9))
    role.receive(1.1, Trimmed(ME, PARTITION, TOPIC, 6, OTHER_STORE))
    assert not any(isinstance(out, Begin) for out in role.tick(1.9))
