"""Records that are gone: the evidence that a consumer needs before it skips them."""

from __future__ import annotations

from roles.consuming import (
    ME,
    PARTITION,
    STORE,
    STORE2,
    TOPIC,
    consumer,
    deliver,
    direct,
    fetch,
    live,
)

from dafka.protocol.commands import (
    GetHeads,
    Head,
    Trimmed,
)
from dafka.roles.consumer import ConsumerRole
from dafka.roles.known_stores import KnownStores
from dafka.roles.outputs import Gap, Output

# -- trimmed ----------------------------------------------------------------------------------------


def test_a_trimmed_beginning_is_reported_and_left_out():
    role = consumer()
    role.receive(1.0, Head(PARTITION, TOPIC, 9))
    assert role.receive(1.1, Trimmed(ME, PARTITION, TOPIC, 5, STORE)) == []
    assert role.tick(1.5) == [GetHeads(TOPIC, ME), Gap(TOPIC, PARTITION, 0, 5), fetch(5, 5)]
    assert role.receive_run(1.6, direct(5, b"5")) == [deliver(5, b"5")]


def test_records_that_another_node_still_has_go_before_trimmed():
    role = consumer()
    role.receive(1.0, Head(PARTITION, TOPIC, 9))
    role.receive(1.1, Trimmed(ME, PARTITION, TOPIC, 5, STORE))
    assert role.receive_run(1.2, direct(0, b"0")) == [deliver(0, b"0")]
    for now in (1.5, 2.3, 9.0):
        assert not any(isinstance(output, Gap) for output in role.tick(now))


def test_the_rest_of_a_partly_sent_gap_is_asked_for_before_it_is_skipped():
    role = consumer()
    assert role.receive(1.0, Head(PARTITION, TOPIC, 9)) == [fetch(0, 10)]
    assert role.receive_run(1.1, direct(0, b"0", b"1")) == [deliver(0, b"0", b"1")]
    role.receive(1.2, Trimmed(ME, PARTITION, TOPIC, 5, STORE))
    assert role.tick(1.5) == [GetHeads(TOPIC, ME), fetch(2, 8)]
    role.receive(1.6, Trimmed(ME, PARTITION, TOPIC, 5, STORE))
    assert role.tick(1.9) == [Gap(TOPIC, PARTITION, 2, 5), fetch(5, 5)]


def test_the_store_that_has_most_decides_where_a_partition_begins():
    role = consumer()
    role.receive(1.0, Head(PARTITION, TOPIC, 9))
    role.receive(1.1, Trimmed(ME, PARTITION, TOPIC, 7, STORE))
    role.receive(1.1, Trimmed(ME, PARTITION, TOPIC, 3, STORE))
    role.receive(1.1, Trimmed(ME, PARTITION, TOPIC, 5, STORE))
    assert Gap(TOPIC, PARTITION, 0, 3) in role.tick(1.5)


def connected(*stores: bytes) -> tuple[ConsumerRole, KnownStores]:
    """A consumer that lacks records 0 to 9 and is connected to these stores."""
    role, known = consumer(), KnownStores()
    role.know_stores(known)
    for store in stores:
        known.subscribed(b"W" + store)
    role.receive(1.0, Head(PARTITION, TOPIC, 9))
    return role, known


def gaps(role: ConsumerRole, *times: float, source: bytes | None = None) -> list[Gap]:
    """What is left out in ticks at these times; ``source`` repeats that the partition begins at 5."""
    found: list[Output] = []
    for now in times:
        found += role.tick(now)
        if source is not None:
            found += role.receive(now, Trimmed(ME, PARTITION, TOPIC, 5, source))
    return [output for output in found if isinstance(output, Gap)]


def test_records_are_left_out_when_every_connected_store_has_said_that_they_are_gone():
    role, _ = connected(STORE, STORE2)
    role.receive(1.1, Trimmed(ME, PARTITION, TOPIC, 5, STORE))
    assert gaps(role, 2.2, 3.3, 4.4, 5.5, source=STORE) == []
    role.receive(5.6, Trimmed(ME, PARTITION, TOPIC, 4, STORE2))
    assert gaps(role, 5.9) == [Gap(TOPIC, PARTITION, 0, 4)]


def test_a_store_that_has_gone_is_not_waited_for():
    role, known = connected(STORE, STORE2)
    role.receive(1.1, Trimmed(ME, PARTITION, TOPIC, 5, STORE))
    assert gaps(role, 1.5) == []
    known.unsubscribed(b"W" + STORE2)
    assert gaps(role, 2.1) == [Gap(TOPIC, PARTITION, 0, 5)]


def test_stores_are_asked_for_long_before_a_producer_is_believed():
    role, _ = connected(STORE)
    role.receive(1.1, Trimmed(ME, PARTITION, TOPIC, 5, PARTITION))
    fetches = role.fetches
    assert gaps(role, *range(2, 13), source=PARTITION) == []
    assert role.fetches >= fetches + 5
    assert gaps(role, 13.2, 14.5, source=PARTITION) == [Gap(TOPIC, PARTITION, 0, 5)]


def test_a_producer_is_believed_when_no_store_has_turned_up():
    role, _ = connected()
    role.receive(1.1, Trimmed(ME, PARTITION, TOPIC, 5, PARTITION))
    assert gaps(role, 2.0, 3.1, 4.2, source=PARTITION) == []
    assert gaps(role, 5.3, 6.4, source=PARTITION) == [Gap(TOPIC, PARTITION, 0, 5)]


def test_records_that_are_kept_ahead_are_not_left_out():
    role = consumer()
    role.receive_run(1.0, live(3, b"3", b"4"))
    role.receive(1.0, Head(PARTITION, TOPIC, 9))
    role.receive(1.1, Trimmed(ME, PARTITION, TOPIC, 8, STORE))
    outputs = role.tick(1.5)
    assert Gap(TOPIC, PARTITION, 0, 3) in outputs
    assert deliver(3, b"3", b"4") in outputs


def test_trimmed_means_nothing_to_a_consumer_that_has_come_further():
    role = consumer()
    role.receive_run(1.0, live(0, b"0", b"1"))
    role.receive(1.0, Head(PARTITION, TOPIC, 9))
    role.receive(1.0, Trimmed(ME, PARTITION, TOPIC, 2, STORE))
    assert not any(isinstance(output, Gap) for output in role.tick(1.5))
    role = consumer()
    role.receive_run(1.0, live(0, b"0"))
    role.receive(1.0, Trimmed(ME, PARTITION, TOPIC, 5, STORE))  # never asked
    assert not any(isinstance(output, Gap) for output in role.tick(9.0))
