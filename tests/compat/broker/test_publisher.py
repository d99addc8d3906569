from __future__ import annotations

import select
import threading

import pytest

from compat.broker import Endpoint
from tests.compat.broker.waiting import until, wanted

Pair = tuple[Endpoint, Endpoint]


def test_it_publishes_on_its_topic(pair: Pair):
    here, there = pair
    subscriber = here.make_subscriber("/test")
    wanted(there, "/test")
    with there.make_publisher("/test/1") as publisher:
        publisher.publish([1, 2])
        publisher.publish_batch("a", {"b": 1}, None)
        publisher.publish_batch()
        publisher.drop_all_on_destruction()
    assert subscriber.get(4) == [
        ("/test/1", (1, 2)),
        ("/test/1", "a"),
        ("/test/1", {"b": 1}),
        ("/test/1", None),
    ]


def test_a_batch_with_an_object_of_no_type_is_not_sent_in_part(pair: Pair):
    here, there = pair
    subscriber = here.make_subscriber("/test")
    wanted(there, "/test")
    publisher = there.make_publisher("/test")
    with pytest.raises(TypeError, match="unsupported data type"):
        publisher.publish_batch(1, object())
    publisher.publish(2)
    assert subscriber.get() == ("/test", 2)


def test_a_publisher_that_was_reset_says_so(pair: Pair):
    publisher = pair[0].make_publisher("/test")
    publisher.reset()
    publisher.reset()
    with pytest.raises(AttributeError, match="this Publisher was reset"):
        publisher.publish(1)


def test_the_capacity_of_a_publisher(pair: Pair):
    publisher = pair[0].make_publisher("/test")
    assert publisher.capacity() > 1000
    until(lambda: publisher.buffered() == 0)
    assert publisher.free_capacity() == publisher.capacity()
    assert select.select([publisher.fd()], [], [], 0)[0] == [publisher.fd()]
    publisher.reset()
    for call in (publisher.buffered, publisher.capacity, publisher.free_capacity, publisher.fd):
        with pytest.raises(AttributeError, match="this Publisher was reset"):
            call()


def test_it_waits_for_a_subscriber_that_is_too_slow(pair: Pair):
    here, there = pair
    subscriber = here.make_subscriber("/test")
    wanted(there, "/test")
    publisher = there.make_publisher("/test")
    text, done = "x" * 50_000, threading.Event()

    def publish() -> None:
        for number in range(3000):
            publisher.publish((number, text))
        done.set()

    publishing = threading.Thread(target=publish)
    publishing.start()
    until(lambda: not select.select([publisher.fd()], [], [], 0)[0])
    assert not done.is_set()
    for number in range(3000):
        assert subscriber.get()[1][0] == number
    publishing.join()
    until(lambda: select.select([publisher.fd()], [], [], 0)[0])
