"""Endpoints as programs use them, over real TCP."""

from __future__ import annotations

import math
import select
import threading

import pytest
from overlay.node.endpoints import WAIT, heard, until
from ports import LOOPBACK, free_port

from dafka.hub.hub import get_hub
from dafka.overlay import (
    AddressError,
    Closed,
    Empty,
    Endpoint,
    ErrorCode,
    Event,
    SlowSubscriber,
    StatusCode,
)
from dafka.overlay.node.connections.link import Link
from dafka.overlay.node.publisher import payload_of
from dafka.overlay.peering.statuses import STATUSES
from dafka.overlay.values import Count, encode
from dafka.overlay.wire.zeek import from_value, to_value


def test_published_messages_arrive_in_order_with_topic_value_and_sender(two):
    listener, connector = two
    subscriber = listener.subscribe("/t")
    heard(subscriber, connector)
    for number in range(3000):
        connector.publish("/t/x", Count(number))
    messages = [subscriber.get(timeout=WAIT) for _ in range(3000)]
    assert [message.value for message in messages] == list(range(3000))
    assert messages[0] == ("/t/x", Count(0), connector.id)


def test_both_ends_publish_and_messages_reach_the_own_endpoint_only_on_request(two):
    one, other = two
    here, own, there = one.subscribe("/t"), one.subscribe("/t", own=True), other.subscribe("/t")
    heard(there, one)
    own.poll()
    one.publish("/t", "mine")
    assert there.get(timeout=WAIT).value == "mine" == own.get(timeout=WAIT).value
    assert here.available == 0
    other.publish("/t", "yours")
    assert here.get(timeout=WAIT).value == "yours" == own.get(timeout=WAIT).value


def test_an_event_of_zeek_is_published_as_its_value(two):
    listener, connector = two
    subscriber = listener.subscribe("/t")
    heard(subscriber, connector)
    connector.publish("/t", Event("ping", ("x", Count(3))))
    assert from_value(subscriber.get(timeout=WAIT).value) == Event("ping", ("x", Count(3)))


def test_an_address_that_is_left_while_its_connection_begins_is_not_peered_with(make, monkeypatch):
    listener, connector = make("127.0.0.1:0"), make()
    left = []

    def rest_and_leave(link):
        if link.is_connector and not left:
            left.append(connector._carrier.unpeer_address(*link.address))

    monkeypatch.setattr(Link, "_rest", rest_and_leave)
    connector.peer_nosync(listener.address)
    until(lambda: left == [True])
    carrier = connector._carrier
    until(lambda: not get_hub().run(lambda: list(carrier._links) or carrier._connector._places))
    assert connector.peers() == []


def test_waiting_for_an_address_ends_when_it_is_left(make):
    endpoint = make()
    outcomes = []
    address = f"{LOOPBACK}:{free_port()}"
    waiting = threading.Thread(target=lambda: outcomes.append(endpoint.peer(address)))
    waiting.start()
    until(lambda: [one.status for one in endpoint.peers()] == ["connecting"])
    assert endpoint.unpeer(address)
    waiting.join(WAIT)
    assert outcomes == [False]


def test_a_subscriber_waits_is_iterated_and_is_done_when_its_endpoint_is_closed(two):
    listener, connector = two
    subscriber = listener.subscribe("/t")
    heard(subscriber, connector)
    with pytest.raises(Empty):
        subscriber.get(timeout=0)
    got = []
    thread = threading.Thread(target=lambda: got.extend(message.value for message in subscriber))
    thread.start()
    for number in range(5):
        connector.publish("/t", number)
    until(lambda: len(got) == 5)
    listener.close()
    thread.join(WAIT)
    assert not thread.is_alive() and got == [0, 1, 2, 3, 4]
    with pytest.raises(Closed):
        subscriber.get()


def test_a_subscriber_is_readable_for_select_while_messages_wait(two):
    listener, connector = two
    subscriber = listener.subscribe("/t")
    heard(subscriber, connector)
    assert select.select([subscriber], [], [], 0)[0] == []
    connector.publish("/t", 1)
    connector.publish("/t", 2)
    until(lambda: subscriber.available == 2)
    assert select.select([subscriber], [], [], WAIT)[0] == [subscriber]
    subscriber.get()
    assert select.select([subscriber], [], [], 0)[0] == [subscriber]
    subscriber.get()
    assert select.select([subscriber], [], [], 0)[0] == []
    connector.publish("/t", 3)
    assert select.select([subscriber], [], [], WAIT)[0] == [subscriber]


def test_topics_are_added_and_removed(two):
    listener, connector = two
    subscriber = listener.subscribe("/a")
    subscriber.add_topic("/b")
    heard(subscriber, connector, "/b")
    assert subscriber.remove_topic("/b") and not subscriber.remove_topic("/never")
    assert subscriber.topics == ["/a"]
    connector.publish("/b", "no longer")
    connector.publish("/a", "still")
    until(lambda: subscriber.available)
    assert [message.value for message in subscriber.poll()] == ["still"]


@pytest.mark.parametrize(("overflow", "kept"), [("drop_newest", [0, 1, 2]), ("drop_oldest", [7, 8, 9])])
def test_a_full_subscriber_drops_the_newest_or_the_oldest_and_counts_them(make, overflow, kept):
    endpoint = make()
    with endpoint.subscribe("/t", capacity=3, overflow=overflow, own=True) as subscriber:
        for number in range(10):
            endpoint.publish("/t", number)
        until(lambda: subscriber.dropped == 7)
        assert [message.value for message in subscriber.poll()] == kept


def test_a_full_subscriber_is_disconnected_behind_what_it_had_room_for(make):
    endpoint = make()
    subscriber = endpoint.subscribe("/t", capacity=3, overflow="disconnect", own=True)
    for number in range(10):
        endpoint.publish("/t", number)
    assert [subscriber.get(timeout=WAIT).value for _ in range(3)] == [0, 1, 2]
    with pytest.raises(SlowSubscriber, match="3 messages behind"):
        subscriber.get(timeout=WAIT)


def test_statuses_tell_of_a_peer_that_comes_and_is_left(make):
    listener, connector = make("127.0.0.1:0"), make()
    statuses = connector.statuses()
    called = []
    connector.on_status(called.append)
    local = connector.subscribe(STATUSES)
    assert connector.peer(listener.address, timeout=WAIT)
    assert connector.unpeer(listener.address)
    assert not connector.unpeer(listener.address)
    news = [statuses.get(timeout=WAIT) for _ in range(5)]
    assert [one.code for one in news] == [
        StatusCode.ENDPOINT_DISCOVERED,
        StatusCode.PEER_ADDED,
        StatusCode.PEER_REMOVED,
        StatusCode.ENDPOINT_UNREACHABLE,
        ErrorCode.PEER_INVALID,
    ]
    assert news[1].context.endpoint == listener.id
    until(lambda: called == news)
    until(lambda: local.available == 4)


def test_an_endpoint_that_was_left_hears_that_its_peer_is_lost(two):
    listener, connector = two
    statuses = listener.statuses()
    assert connector.unpeer(listener.id)
    codes = [statuses.get(timeout=WAIT).code for _ in range(2)]
    assert codes == [StatusCode.PEER_LOST, StatusCode.ENDPOINT_UNREACHABLE]


@pytest.mark.parametrize("versions", [(1, 1), (1, 2)])
def test_a_publisher_waits_until_a_subscription_is_known(make, versions):
    middle = make("127.0.0.1:0")
    connector, far = make(peers=[middle.address]), make(peers=[middle.address], versions=versions)
    assert not connector.await_subscriber("/t/x", timeout=0.01)
    connector.subscribe("/t"), middle.subscribe("/other")
    waiting = threading.Thread(target=connector.await_subscriber, args=("/t/x", far.id, WAIT))
    waiting.start()
    subscriber = far.subscribe("/t")
    waiting.join(WAIT)
    connector.publish("/t/x", "it is")
    assert subscriber.get(timeout=WAIT).value == "it is"
    assert connector.await_subscriber("/t/x", timeout=0)
    assert not connector.await_subscriber("/t/x", middle.id, timeout=0)
    subscriber.close()
    until(lambda: not connector.await_subscriber("/t/x", timeout=0))


def test_waiting_for_a_subscriber_ends_with_the_endpoint(two):
    listener, connector = two
    outcomes = []
    calls = [lambda: connector.await_subscriber("/t"), lambda: connector.await_subscriber("/t", listener.id)]
    waiting = [threading.Thread(target=lambda call=call: outcomes.append(call())) for call in calls]
    for one in waiting:
        one.start()
    connector.close()
    for one in waiting:
        one.join(WAIT)
    assert outcomes == [False, False]


def test_two_endpoints_with_one_id_are_refused(make):
    listener = make("127.0.0.1:0")
    twin = make(id=listener.id)
    assert not twin.peer(listener.address, retry=0, timeout=WAIT)


def test_an_endpoint_of_version_1_hears_and_is_heard(make):
    listener = make("127.0.0.1:0")
    plain = make(versions=(1, 1))
    subscribers = [listener.subscribe("/a"), plain.subscribe("/z")]
    assert plain.peer(listener.address, timeout=WAIT)
    heard(subscribers[0], plain, "/a")
    heard(subscribers[1], listener, "/z")


def test_a_value_of_many_octets_arrives_whole(two):
    listener, connector = two
    subscriber = listener.subscribe("/t")
    heard(subscriber, connector)
    value = "x" * 8_000_000
    connector.publish("/t", value)
    assert subscriber.get(timeout=WAIT).value == value


def test_messages_published_before_the_close_arrive(two):
    listener, connector = two
    subscriber = listener.subscribe("/t", capacity=100_000)
    heard(subscriber, connector)
    connector.publish_batch(("/t", number) for number in range(20_000))
    connector.close()
    assert [subscriber.get(timeout=WAIT).value for _ in range(20_000)] == list(range(20_000))


def test_a_closed_endpoint_says_so(make):
    endpoint = make("127.0.0.1:0")
    endpoint.close()
    endpoint.close()
    for call in (
        lambda: endpoint.publish("/t", 1),
        lambda: endpoint.subscribe("/t"),
        lambda: endpoint.listen(),
        lambda: endpoint.peer_nosync("127.0.0.1:1"),
    ):
        with pytest.raises(Closed):
            call()


@pytest.mark.parametrize(
    "address",
    ["", "here", "127.0.0.1:", "127.0.0.1:99999", "::1:80", "a:b", "a:\uff18\uff10", "a:" + "9" * 5000],
)
def test_anything_but_an_address_is_refused_by_name(make, address):
    with pytest.raises(AddressError, match="is not host:port"):
        make().peer(address)
    with pytest.raises(TypeError, match="an address is a str, not NoneType"):
        make().peer(None)


@pytest.mark.parametrize("retry", [math.nan, math.inf, -1, 1e300])
def test_an_interval_that_is_none_is_refused(make, retry):
    with pytest.raises(ValueError, match="retry is a number of seconds"):
        make().peer("127.0.0.1:1", retry=retry)


def test_an_id_that_is_none_is_refused_by_name(make):
    endpoint = make()
    for use in (endpoint.unpeer, endpoint.await_peer, endpoint.ask_links, lambda id: make(id=id)):
        with pytest.raises(ValueError, match="'somebody' is not the id of an endpoint"):
            use("somebody")
        with pytest.raises(TypeError, match="an endpoint's id is a str or bytes, not int"):
            use(5)


@pytest.mark.parametrize("host", ["a..b", "." * 3, "a" * 70, "ä" * 70, "\ud800", "127.0.0.1\0"])
def test_a_name_that_no_host_can_have_is_like_one_that_nobody_has(make, host, capfd):
    endpoint = make(tls="plain")
    assert endpoint.peer(f"{host}:1", retry=0) is False
    with pytest.raises(OSError, match="is not an address of this machine"):
        endpoint.listen(f"{host}:0")
    assert "Traceback" not in capfd.readouterr().err


def test_an_endpoint_is_used_from_the_hub_too(make):
    def within():
        with Endpoint("127.0.0.1:0") as one, Endpoint(peers=[one.address]) as other:
            subscriber = one.subscribe("/t")
            assert other.await_peer(one.id, timeout=WAIT)
            for _ in range(1000):
                other.publish("/t", "here")
                try:
                    return subscriber.get(timeout=0.05).value
                except Empty:
                    continue
        return None

    assert get_hub().run(within) == "here"


def test_statuses_or_errors_alone(make):
    endpoint, other = make("127.0.0.1:0"), make()
    statuses, errors = other.statuses(errors=False), other.statuses(statuses=False)
    with pytest.raises(Empty):
        assert not other.unpeer("127.0.0.1:9")
        statuses.get(timeout=0)
    assert errors.get(timeout=WAIT).code is ErrorCode.PEER_INVALID
    assert other.peer(endpoint.address, timeout=WAIT)
    assert statuses.get(timeout=WAIT).code is StatusCode.ENDPOINT_DISCOVERED
    assert not errors.available


@pytest.mark.parametrize("arguments", [(), (1, "x"), [1, (2, Count(3))], ("ä" * 200, None)])
def test_events_have_the_octets_of_their_values(arguments):
    event = Event("name", arguments)
    assert payload_of(event) == encode(to_value(event))


@pytest.mark.parametrize(
    "call",
    [
        lambda endpoint: endpoint.subscribe(["/t"]),
        lambda endpoint: endpoint.publish(3, "value"),
        lambda endpoint: endpoint.forward([None]),
        lambda endpoint: endpoint.await_subscriber(3),
    ],
)
def test_a_topic_that_is_none_is_refused_with_what_it_is(call):
    with Endpoint() as endpoint, pytest.raises(TypeError, match="a string is a str or bytes, not"):
        call(endpoint)


@pytest.mark.parametrize("wrong", [None, "", {}, (1,), (1, 2, 3), ("1", "2"), (2, 1), (0, 1), (1, 3)])
def test_versions_that_nobody_speaks_are_refused(wrong):
    with pytest.raises(ValueError, match=r"versions (is a pair|are from 1 to 2)"):
        Endpoint(versions=wrong)


@pytest.mark.parametrize("option", ["listen", "websocket", "peers"])
def test_addresses_that_are_no_list_are_named(option):
    with pytest.raises(TypeError, match=f"{option} is an address .*, not None"):
        Endpoint(**{option: None})
