"""Subscribers between endpoints of this process, over TCP."""

from __future__ import annotations

import asyncio
import select

import pytest
from ports import free_port

from compat.broker import EC, SC, Count, Endpoint, Error, SafeSubscriber, Status, Subscriber, zeek
from tests.compat.broker.waiting import wanted

Pair = tuple[Endpoint, Endpoint]

UNHASHABLE = zeek.SafeEvent("e", frozenset({frozenset()}))


def test_messages_are_pairs_of_topic_and_object(pair: Pair):
    here, there = pair
    subscriber = here.make_subscriber("/test")
    wanted(there, "/test")
    there.publish("/test/1", [1, Count(2), {"a": {1}}])
    assert subscriber.get() == ("/test/1", (1, Count(2), {"a": {1}}))


def test_a_topic_that_was_not_asked_for_does_not_come(pair: Pair):
    here, there = pair
    subscriber = here.make_subscriber(["/a", "/b"])
    wanted(there, "/a", "/b")
    there.publish_batch(("/a", 1), ("/c", 2), ("/b/c", 3))
    assert subscriber.get(2) == [("/a", 1), ("/b/c", 3)]


def test_an_endpoint_does_not_hear_itself(pair: Pair):
    here, there = pair
    subscriber = here.make_subscriber("/test")
    wanted(there, "/test")
    here.publish("/test", "mine")
    there.publish("/test", "yours")
    assert subscriber.get() == ("/test", "yours")


def test_a_float_is_how_long_and_an_int_is_how_many(pair: Pair):
    here, there = pair
    subscriber = here.make_subscriber("/test")
    wanted(there, "/test")
    assert subscriber.get(0.01) is None
    assert subscriber.get(0) == []
    assert subscriber.get(2, 0.01) == []
    there.publish_batch(("/test", 1), ("/test", 2), ("/test", 3))
    assert subscriber.get(1) == [("/test", 1)]
    wait_for(subscriber, 2)
    assert subscriber.get(5, 0.5) == [("/test", 2), ("/test", 3)]
    there.publish("/test", 4)
    assert subscriber.get(100.0) == ("/test", 4)


@pytest.mark.parametrize("arguments", [("1",), (None,), (-1,), (1, "1"), (1.0, 1.0), (1, 1.0, 1)])
def test_other_arguments_are_refused(pair: Pair, arguments: tuple):
    with pytest.raises(TypeError, match="get takes"):
        pair[0].make_subscriber("/test").get(*arguments)


def test_poll_and_available_do_not_wait(pair: Pair):
    here, there = pair
    subscriber = here.make_subscriber("/test")
    wanted(there, "/test")
    assert subscriber.poll() == []
    assert not subscriber.available()
    there.publish_batch(("/test", 1), ("/test", 2))
    wait_for(subscriber, 2)
    assert subscriber.poll() == [("/test", 1), ("/test", 2)]
    assert subscriber.available() == 0


def test_the_descriptor_can_be_read_from_while_messages_wait(pair: Pair):
    here, there = pair
    subscriber = here.make_subscriber("/test")
    wanted(there, "/test")
    assert select.select([subscriber.fd()], [], [], 0) == ([], [], [])
    there.publish("/test", 1)
    assert select.select([subscriber.fd()], [], [], 100)[0] == [subscriber.fd()]
    assert select.select([subscriber.fd()], [], [], 0)[0] == [subscriber.fd()]
    subscriber.get()
    assert select.select([subscriber.fd()], [], [], 0) == ([], [], [])


def test_asyncio_can_wait_for_the_descriptor(pair: Pair):
    here, there = pair
    subscriber = here.make_subscriber("/test")
    wanted(there, "/test")

    async def receive(number: int) -> list:
        loop, messages = asyncio.get_running_loop(), []
        done = loop.create_future()

        def read() -> None:
            messages.extend(subscriber.poll())
            if len(messages) == number:
                done.set_result(messages)

        loop.add_reader(subscriber.fd(), read)
        for count in range(number):
            there.publish("/test", count)
        await asyncio.wait_for(done, 100)
        loop.remove_reader(subscriber.fd())
        return messages

    assert asyncio.run(receive(50)) == [("/test", count) for count in range(50)]


def test_topics_come_and_go(pair: Pair):
    here, there = pair
    subscriber = here.make_subscriber("/a")
    subscriber.add_topic("/b", True)
    wanted(there, "/a", "/b")
    there.publish_batch(("/a", 1), ("/b", 2))
    assert subscriber.get(2) == [("/a", 1), ("/b", 2)]
    subscriber.remove_topic("/a", block=True)
    wanted(there, "/b")
    there.publish_batch(("/a", 3), ("/b", 4))
    assert subscriber.get() == ("/b", 4)


def test_a_subscriber_that_was_reset_says_so(pair: Pair):
    with pair[0].make_subscriber("/test") as subscriber:
        pass
    for call in (subscriber.get, subscriber.poll, subscriber.available, subscriber.fd):
        with pytest.raises(AttributeError, match="this Subscriber was reset"):
            call()
    subscriber.reset()


def test_a_subscriber_of_an_endpoint_that_was_shut_down_says_so(pair: Pair):
    subscriber = pair[0].make_subscriber("/test")
    pair[0].shutdown()
    with pytest.raises(RuntimeError, match="subscriber queue closed"):
        subscriber.get()
    assert subscriber.poll() == []


def test_a_safe_subscriber_gets_what_a_subscriber_cannot_express(pair: Pair):
    here, there = pair
    plain, safe = here.make_subscriber("/test"), here.make_safe_subscriber("/test")
    wanted(there, "/test")
    assert isinstance(safe, SafeSubscriber)
    there.publish("/test", UNHASHABLE)
    with pytest.raises(TypeError, match="unhashable"):
        plain.get()
    _, message = safe.get()
    assert zeek.SafeEvent(message).args() == [frozenset({frozenset()})]
    there.publish("/test", {"a": [{1}]})
    _, table = safe.get()
    assert hash(table)
    with pytest.raises(TypeError, match="cannot modify"):
        table["b"] = 1
    assert safe.poll() == []


def test_a_class_of_ones_own_for_subscribers(pair: Pair):
    class Mine(Subscriber):
        pass

    assert type(pair[0].make_subscriber("/test", 20, Mine)) is Mine
    assert type(pair[0].make_subscriber("/test", subscriber_class=Mine)) is Mine


def test_statuses_tell_of_peers(pair: Pair, new_endpoint):
    here, _ = pair
    statuses = here.make_status_subscriber(True)
    third = new_endpoint()
    assert third.peer("127.0.0.1", here.listen("127.0.0.1", 0))
    found, added = statuses.get(2)
    assert isinstance(found, Status) and isinstance(added, Status)
    assert [found.code(), added.code()] == [SC.EndpointDiscovered, SC.PeerAdded]
    assert added.context().node_id() == third.node_id()
    assert added.context().network.get().address == "127.0.0.1"
    third.shutdown()
    assert [news.code() for news in statuses.get(2)] == [SC.PeerLost, SC.EndpointUnreachable]
    assert statuses.get(0.01) is None
    assert statuses.poll() == []


def test_without_statuses_there_are_errors_alone(new_endpoint):
    endpoint = new_endpoint()
    errors = endpoint.make_status_subscriber()
    port = free_port()
    other = new_endpoint()
    assert endpoint.peer("127.0.0.1", other.listen("127.0.0.1", 0))
    assert not endpoint.peer("127.0.0.1", port, 0.0)
    error = errors.get()
    assert isinstance(error, Error)
    assert error.code() == EC.PeerUnavailable
    assert f"127.0.0.1:{port}" in repr(error)
    assert not errors.available()
    assert select.select([errors.fd()], [], [], 0)[0] == []


def wait_for(subscriber: Subscriber, number: int) -> None:
    """Until so many messages are there."""
    while subscriber.available() < number:
        assert select.select([subscriber.fd()], [], [], 100)[0]
