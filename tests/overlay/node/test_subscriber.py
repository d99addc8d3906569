"""Subscribers that are read by threads: a few messages are taken at once, and nobody notices."""

from __future__ import annotations

import select
from random import Random

import pytest

from dafka.hub.hub import get_hub
from dafka.overlay import Closed, Empty, EndpointId, Event
from dafka.overlay.node.subscriber import Subscriber
from dafka.overlay.values import Count, decode, encode
from dafka.overlay.wire.zeek import to_value

SENDER = bytes(15) + b"\x07"


def subscriber(capacity=1000, overflow="wait"):
    return Subscriber(get_hub(), ["/t"], capacity, overflow, False, lambda one: None)


def put(one, *values):
    one.put_run(b"/t", [value if isinstance(value, bytes) else encode(value) for value in values], SENDER)


def test_they_come_in_order_one_by_one_or_all_at_once():
    one = subscriber()
    put(one, *range(200))
    assert [one.get().value for _ in range(3)] == [0, 1, 2]
    assert one.available == 197
    assert [message.value for message in one.poll()] == list(range(3, 200))
    assert (one.available, one.poll()) == (0, [])
    with pytest.raises(Empty):
        one.get(timeout=0)
    with pytest.raises(Empty):
        one.get(timeout=0.01)


def test_anything_but_a_value_is_counted_and_left_out():
    one = subscriber()
    put(one, b"\xff", 1, b"\xff", b"", 2, b"\xff")
    assert [one.get(timeout=100).value, one.get(timeout=100).value] == [1, 2]
    with pytest.raises(Empty):
        one.get(timeout=0)
    assert one.malformed == 4


def test_events_are_the_values_that_they_are():
    event = Event("ping", (Count(1), "a\udcff", (1.5,)))
    cut = encode(to_value(event))
    one = subscriber()
    put(one, to_value(event), to_value(Event("")), *[cut[:end] for end in range(1, len(cut))], cut + b"\x00")
    assert one.get().value == to_value(event)
    assert one.get().value == to_value(Event(""))
    with pytest.raises(Empty):
        one.get(timeout=0)
    assert one.malformed == len(cut)


@pytest.mark.parametrize("overflow", ["drop_newest", "drop_oldest", "disconnect", "wait"])
@pytest.mark.parametrize("seed", range(5))
def test_waiting_messages_have_their_topic_and_dropped_ones_leave_nothing(overflow, seed):
    random = Random(seed)
    capacity = 10**9 if overflow == "wait" else random.randint(1, 6)
    one, waiting, is_closed = subscriber(capacity, overflow), [], False
    for number in range(400):
        if random.random() < 0.7:
            topic = random.choice([b"/ta", b"/tb"])
            for place in range(random.choice([1, 1, 3, 9])):
                new = topic.decode(), 100 * number + place
                if len(waiting) < capacity or overflow == "drop_oldest":
                    waiting = [*waiting, new][-capacity:]
                else:
                    is_closed = is_closed or overflow == "disconnect"
            count = place + 1
            one.put_run(topic, [encode(100 * number + place) for place in range(count)], SENDER)
        elif overflow != "disconnect":
            got = []
            if random.random() < 0.5:
                got = [(message.topic, message.value) for message in one.poll()]
                assert got == waiting
            elif waiting:
                topic, payload = one.take_raw()
                got = [(topic.decode(), decode(payload))]
            assert got == waiting[: len(got)]
            del waiting[: len(got)]
        assert len(one._runs) <= len(waiting) and sum(run.count for run in one._runs) == len(waiting)


def test_its_descriptor_is_readable_until_the_last_one_is_got():
    one = subscriber()

    def is_readable():
        return bool(select.select([one], [], [], 0)[0])

    assert not is_readable()
    put(one, 1, 2)
    assert is_readable()
    one.get()
    assert is_readable()
    one.get()
    assert not is_readable()
    put(one, 3, 4)
    one.get()
    one.poll()
    assert not is_readable()
    one.shut(Closed("over"))
    assert is_readable()


def test_a_queue_that_drops_the_oldest_has_the_newest_whatever_was_got_before():
    one = subscriber(3, "drop_oldest")
    put(one, *range(10))
    assert one.get().value == 7
    put(one, *range(10, 20))
    assert [message.value for message in one.poll()] == [17, 18, 19]


def test_waiting_messages_can_be_got_after_the_end_unless_the_user_closed_the_subscriber():
    one = subscriber()
    put(one, 1, 2)
    one.shut(Closed("over"))
    assert [one.get().value, one.get().value] == [1, 2]
    with pytest.raises(Closed):
        one.get()
    other = subscriber()
    put(other, 1, 2)
    other.get()
    other.close()
    with pytest.raises(Closed):
        other.get()


def test_messages_keep_their_topics_and_senders_whatever_was_taken_or_dropped():
    other = EndpointId(bytes(15) + b"\x08")
    sent = [(f"/t/{number // 3}", number, (SENDER, other)[number // 5 % 2]) for number in range(60)]

    def put_all(one):
        for topic, value, sender in sent:
            one.put_run(topic.encode(), [encode(value)], sender)
        return one

    one = put_all(subscriber())
    assert [one.get() for _ in range(7)] + one.poll() == sent
    assert [put_all(subscriber()).take_raw() for _ in range(2)] == [(b"/t/0", encode(0))] * 2
    one = put_all(subscriber())
    assert [one.take_raw() for _ in sent] == [(topic.encode(), encode(value)) for topic, value, _ in sent]
    with pytest.raises(Empty):
        one.take_raw()
    for overflow, kept in (("drop_newest", sent[:7]), ("drop_oldest", sent[-7:]), ("disconnect", sent[:7])):
        one = put_all(subscriber(7, overflow))
        first = [one.get(), one.get()]
        put_all(one)
        expected = {"drop_newest": kept[2:] + sent[:2], "drop_oldest": sent[-7:], "disconnect": kept[2:]}
        assert first + one.poll() == kept[:2] + expected[overflow]


def test_messages_taken_ahead_are_bounded_in_octets():
    one = subscriber()
    one.put_run(b"/t", [encode("x" * 10_000)] * 10, SENDER)
    one.put_run(b"/u", [encode("y")], SENDER)
    one.get()
    assert len(one._hand) == 3, "TAKEN_OCTETS are reached by the fourth"
    assert [message.topic for message in one.poll()] == ["/t"] * 9 + ["/u"]
    assert one._octets == 0 and not one._runs
