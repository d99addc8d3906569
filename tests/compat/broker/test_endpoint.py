"""Endpoints as programs of the bindings use them."""

from __future__ import annotations

import gc
import threading
import uuid
import weakref
from itertools import pairwise

import pytest
from ports import free_port

from compat import broker
from compat.broker import BrokerOptions, Configuration, Endpoint, PeerFlags, PeerStatus, Topic
from tests.compat.broker.waiting import until, wanted

Pair = tuple[Endpoint, Endpoint]


def test_its_id_is_a_uuid(new_endpoint):
    endpoint, other = new_endpoint(), new_endpoint()
    assert str(uuid.UUID(endpoint.node_id())) == endpoint.node_id() == repr(endpoint)
    assert endpoint.node_id() != other.node_id()


def test_an_endpoint_is_made_of_a_configuration(new_endpoint):
    with pytest.raises(TypeError, match="of a Configuration, not of BrokerOptions"):
        Endpoint(BrokerOptions())


def test_listening_where_somebody_listens_gives_no_port(new_endpoint):
    port = new_endpoint().listen("127.0.0.1", 0)
    assert port > 0
    assert new_endpoint().listen("127.0.0.1", port) == 0


def test_no_address_is_all_addresses_of_the_machine(new_endpoint):
    port = new_endpoint().listen("", 0)
    assert new_endpoint().peer("127.0.0.1", port)
    assert new_endpoint().peer("localhost", port)


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", -1), ("127.0.0.1", 65536), (None, 1), ("", "1")])
def test_anything_but_an_address_is_refused(new_endpoint, host: object, port: object):
    for call in ("listen", "peer", "peer_nosync", "unpeer", "unpeer_nosync"):
        with pytest.raises(TypeError, match="no address and port"):
            getattr(new_endpoint(), call)(host, port)


def test_a_peer_that_is_not_there_and_is_tried_once(new_endpoint):
    for retry in (0.9, -1):
        assert new_endpoint().peer("127.0.0.1", free_port(), retry) is False


def test_peers_and_what_they_want(pair: Pair):
    here, there = pair
    subscriber = there.make_subscriber(["/a/b", "/c"])
    (peer,) = here.peers()
    assert peer.peer.node_id() == there.node_id()
    assert peer.peer.network.get().address == "127.0.0.1"
    assert peer.flags == PeerFlags.Remote
    assert peer.status == PeerStatus.Peered
    until(lambda: len(here.peer_subscriptions()) == 2)
    topics = here.peer_subscriptions()
    assert all(isinstance(topic, Topic) for topic in topics)
    assert sorted(map(str, topics)) == ["/a/b", "/c"]
    subscriber.reset()


def test_a_peer_is_left(pair: Pair):
    there = pair[1]
    (peer,) = there.peers()
    where = peer.peer.network.get()
    assert there.unpeer(where.address, where.port)
    assert there.peers() == []
    assert not there.unpeer(where.address, where.port)


def test_a_peer_is_left_without_waiting(pair: Pair):
    there = pair[1]
    where = there.peers()[0].peer.network.get()
    statuses = there.make_status_subscriber(True)
    assert there.unpeer_nosync(where.address, where.port) is None
    assert statuses.get(100.0).code() == broker.SC.PeerRemoved


def test_peering_without_waiting(new_endpoint):
    here, there = new_endpoint(), new_endpoint()
    assert there.peer_nosync("127.0.0.1", here.listen("127.0.0.1", 0)) is None
    assert there.await_peer(here.node_id(), 100)


def test_waiting_for_a_peer_that_does_not_come(new_endpoint):
    assert new_endpoint().await_peer(str(uuid.uuid4()), 0.01) is False


def test_waiting_for_anything_but_an_id_is_refused(new_endpoint):
    with pytest.raises(ValueError):
        new_endpoint().await_peer("nobody")


def test_a_batch_with_an_object_of_no_type_is_not_sent_in_part(pair: Pair):
    here, there = pair
    subscriber = here.make_subscriber("/")
    wanted(there, "/")
    with pytest.raises(TypeError, match="unsupported data type"):
        there.publish_batch(("/1", 1), ("/2", object()))
    there.publish_batch((Topic("/3"), 3), ("/4", 4))
    assert subscriber.get(2) == [("/3", 3), ("/4", 4)]


def test_messages_pass_over_others(new_endpoint):
    ends = [new_endpoint() for _ in range(4)]
    for left, right in pairwise(ends):
        assert left.peer("127.0.0.1", right.listen("127.0.0.1", 0))
    first, last = ends[0], ends[-1]
    subscriber = last.make_subscriber("/test")
    assert first.await_peer(last.node_id())
    until(lambda: subscriber.get(0.05) or first.publish("/test", "far"))


def test_forwarded_topics_count_as_subscriptions(pair: Pair):
    here, there = pair
    there.forward(["/x", Topic("/y")])
    until(lambda: len(here.peer_subscriptions()) == 2)
    assert sorted(map(str, here.peer_subscriptions())) == ["/x", "/y"]


def test_many_threads_use_one_endpoint(pair: Pair):
    here, there = pair
    subscriber = here.make_subscriber("/test")
    wanted(there, "/test")

    def publish(who: int) -> None:
        for number in range(200):
            there.publish("/test", (who, number))

    threads = [threading.Thread(target=publish, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    messages = [message for _, message in subscriber.get(800)]
    for thread in threads:
        thread.join()
    assert sorted(messages) == [(who, number) for who in range(4) for number in range(200)]
    assert [number for who, number in messages if who == 1] == list(range(200))


def test_a_peer_learns_of_an_endpoint_that_was_let_go_of(pair: Pair, new_endpoint):
    here, _ = pair
    statuses = here.make_status_subscriber(True)
    options = BrokerOptions()
    options.disable_ssl = True
    third = Endpoint(Configuration(options))
    assert third.peer("127.0.0.1", here.listen("127.0.0.1", 0))
    assert len(statuses.get(2)) == 2
    gone = weakref.ref(third)
    del third
    until(lambda: gc.collect() is not None and gone() is None)  # the hub may be in a last call of it
    assert statuses.get(100.0).code() == broker.SC.PeerLost


def test_after_its_end_nothing_is_published(new_endpoint):
    endpoint = new_endpoint()
    endpoint.shutdown()
    endpoint.shutdown()
    with pytest.raises(Exception, match="closed"):
        endpoint.publish("/test", 1)
