"""Broker's developer guide, "Cluster Setup and Testing", over real TCP."""

from __future__ import annotations

from overlay.node.endpoints import WAIT, heard, until, values_until
from ports import LOOPBACK, free_port

from dafka.overlay import (
    Endpoint,
    EndpointId,
    ErrorCode,
)


def test_three_endpoints_in_a_ring_get_each_message_once(make):
    ring = [make("127.0.0.1:0") for _ in range(3)]
    for index, endpoint in enumerate(ring):
        endpoint.peer_nosync(ring[(index + 1) % 3].address)
    for endpoint in ring:
        for other in ring:
            assert endpoint is other or endpoint.await_peer(other.id, timeout=WAIT)
    subscribers = [endpoint.subscribe("/t") for endpoint in ring]
    for index, endpoint in enumerate(ring):
        for other in (1, 2):
            heard(subscribers[(index + other) % 3], endpoint)
    ring[0].publish("/t", "once")
    ring[0].publish("/t", "end")
    for index in (1, 2):
        values = values_until(subscribers[index], "end")
        assert values.count("once") == values.count("end") == 1


def test_a_message_to_one_endpoint_goes_over_a_hop_to_it_alone(make):
    middle = make("127.0.0.1:0")
    ends = [make(peers=[middle.address]) for _ in range(2)]
    assert ends[0].await_peer(ends[1].id, timeout=WAIT)
    subscribers = [one.subscribe("/t") for one in (middle, ends[1])]
    for subscriber in subscribers:
        heard(subscriber, ends[0])
    ends[0].publish_to(ends[1].id, "/t", "you alone")
    ends[0].publish("/t", "end")
    assert values_until(subscribers[1], "end").count("you alone") == 1
    assert "you alone" not in values_until(subscribers[0], "end")


def test_peers_are_listed_with_their_addresses_and_flags(make):
    middle = make("127.0.0.1:0")
    ends = [make(peers=[middle.address]) for _ in range(2)]
    assert ends[0].await_peer(ends[1].id, timeout=WAIT)
    direct, remote = ends[0].peers()
    assert direct == (middle.id, middle.address, {"outbound"}, "peered")
    assert remote == (ends[1].id, None, {"remote"}, "reachable")
    assert {peer.id for peer in middle.peers()} == {end.id for end in ends}
    assert all(peer.flags == {"inbound"} for peer in middle.peers())


def test_a_lost_connection_is_made_again(make):
    address = f"{LOOPBACK}:{free_port()}"
    listener, connector = make(address), make()
    assert connector.peer(address, retry=0.1, timeout=WAIT)
    listener.close()
    again = make(address)
    assert connector.await_peer(again.id, timeout=WAIT)


def test_an_address_without_an_endpoint_is_tried_until_there_is_one(make):
    address = f"{LOOPBACK}:{free_port()}"
    connector = make()
    statuses = connector.statuses()
    assert not connector.peer(address, retry=0)
    assert statuses.get(timeout=WAIT).code is ErrorCode.PEER_UNAVAILABLE
    assert not connector.peer(address, retry=0.1, timeout=0.05)
    assert [peer.status for peer in connector.peers()] == ["connecting"]
    late = make(address)
    assert connector.await_peer(late.id, timeout=WAIT)


def test_await_peer_ends_after_its_time_and_calls_back(two):
    listener, connector = two
    assert not listener.await_peer(EndpointId.random(), timeout=0.01)
    called = []
    assert listener.await_peer(connector.id, callback=called.append)
    late = EndpointId.random()
    assert not listener.await_peer(str(late), callback=called.append)
    until(lambda: called == [True])
    with Endpoint(id=late, peers=[listener.address]):
        until(lambda: called == [True, True])


def test_messages_reach_all_nodes_the_peer_knows_as_soon_as_it_is_peered(make):
    middle = make("127.0.0.1:0")
    far = [make() for _ in range(5)]
    subscribers = [one.subscribe("/t") for one in far]
    for one in far:
        assert one.peer(middle.address, timeout=WAIT)
        assert middle.await_subscriber("/t", one.id, timeout=WAIT)
    connector = make()
    assert connector.peer(middle.address, timeout=WAIT)
    assert {peer.id for peer in connector.peers()} == {one.id for one in (middle, *far)}
    connector.publish("/t", "at once")
    assert [one.get(timeout=WAIT).value for one in subscribers] == ["at once"] * 5


def test_an_endpoint_that_accepts_peers_waits_for_what_they_tell(make):
    listener, far = make("127.0.0.1:0"), make("127.0.0.1:0")
    middle = make(peers=[far.address])
    assert middle.await_peer(far.id, timeout=WAIT)
    middle.peer_nosync(listener.address)
    assert listener.await_peer(middle.id, timeout=WAIT)
    assert listener.await_routes(timeout=WAIT)
    assert listener.await_peer(far.id, timeout=0)
    assert make().await_routes(timeout=0), "without peers there is nothing to wait for"


def test_two_that_connect_to_each_other_keep_one_connection(make):
    one, other = make("127.0.0.1:0"), make("127.0.0.1:0")
    one.peer_nosync(other.address)
    assert other.peer(one.address, timeout=WAIT)
    assert one.await_peer(other.id, timeout=WAIT)
    assert [peer.id for peer in one.peers() if peer.status == "peered"] == [other.id]


def test_filters_of_peers_are_known(two):
    listener, connector = two
    subscriber = connector.subscribe("/a/b", b"/\xff", "/a/b/c")
    until(lambda: set(listener.filters().get(connector.id, [])) == {"/a/b", "/\udcff"})
    subscriber.close()
    until(lambda: listener.filters() == {connector.id: []})
