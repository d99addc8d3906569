"""Times to wait, where a program gives them to the overlay: NaN is refused, infinity is for ever."""

from __future__ import annotations

import math

import pytest
from timing import SECONDS

from dafka.hub.hub import get_hub
from dafka.overlay import Memory, topology
from dafka.overlay.websocket import Client

NAN = math.nan

OF_AN_ENDPOINT = {
    "peer": lambda one: one.peer("127.0.0.1:1", timeout=NAN),
    "peer's retry": lambda one: one.peer("127.0.0.1:1", retry=NAN),
    "peer_nosync's retry": lambda one: one.peer_nosync("127.0.0.1:1", retry=NAN),
    "await_peer": lambda one: one.await_peer(bytes(16), timeout=NAN),
    "await_peer with a callback": lambda one: one.await_peer(bytes(16), timeout=NAN, callback=print),
    "await_routes": lambda one: one.await_routes(timeout=NAN),
    "await_subscriber": lambda one: one.await_subscriber("t", timeout=NAN),
    "publish": lambda one: one.publish("t", 1, timeout=NAN),
    "publish_batch": lambda one: one.publish_batch([("t", 1)], timeout=NAN),
    "publisher": lambda one: one.publisher("t").publish(1, timeout=NAN),
    "subscriber": lambda one: one.subscribe("t").get(timeout=NAN),
    "statuses": lambda one: one.statuses().get(timeout=NAN),
    "topology": lambda one: topology.gather(one, NAN),
}
OF_A_STORE = {
    "get": lambda store: store.get("k", timeout=NAN),
    "get_index_from_value": lambda store: store.get_index_from_value("k", 0, timeout=NAN),
    "exists": lambda store: store.exists("k", timeout=NAN),
    "keys": lambda store: store.keys(timeout=NAN),
    "put_unique": lambda store: store.put_unique("k", 1, timeout=NAN),
    "await_idle": lambda store: store.await_idle(NAN),
    "events": lambda store: store.events().get(timeout=NAN),
}


@pytest.mark.parametrize("wait", OF_AN_ENDPOINT.values(), ids=OF_AN_ENDPOINT)
def test_an_endpoint_refuses_to_wait_nan_seconds(make, wait):
    with pytest.raises(ValueError, match=r"(timeout|retry) is a number of seconds.*, not nan"):
        wait(make())


@pytest.mark.parametrize("role", ["master", "clone", "proxy"])
@pytest.mark.parametrize("wait", OF_A_STORE.values(), ids=OF_A_STORE)
def test_a_store_refuses_to_wait_nan_seconds(make, role, wait):
    endpoint = make()
    store = getattr(endpoint, f"attach_{role}")("st")
    with pytest.raises(ValueError, match=r"timeout is a number of seconds.*, not nan"):
        wait(store)


@pytest.mark.parametrize("role", ["master", "clone", "proxy"])
def test_a_store_refuses_to_wait_for_no_number(make, role):
    store = getattr(make(), f"attach_{role}")("st")
    for given in (None, "1", True):
        with pytest.raises(TypeError, match="timeout is a number of seconds, not"):
            store.get("k", timeout=given)


def test_an_expiry_that_is_no_span_of_time_is_refused(make):
    store = make().attach_master("st")
    for given in ("1", True, [1]):
        with pytest.raises(TypeError, match="an expiry is seconds, a timedelta or a Timespan, not"):
            store.put("k", 1, expiry=given)


def test_infinity_is_for_ever(make):
    listener, connector, third = make("127.0.0.1:0"), make(), make()
    assert connector.peer(listener.address, timeout=math.inf)
    assert listener.await_peer(connector.id, timeout=math.inf)
    assert connector.await_routes(math.inf) and third.peer(listener.address)
    subscriber = listener.subscribe("t")
    assert connector.await_subscriber("t", timeout=math.inf)
    connector.publish("t", 1, timeout=math.inf)
    assert subscriber.get(timeout=math.inf).value == 1
    master, clone, proxy = (
        listener.attach_master("st", Memory()),
        connector.attach_clone("st"),
        third.attach_proxy("st"),
    )
    for store in (master, clone, proxy):
        assert store.put_unique(store.role, 1, timeout=math.inf)
        assert store.get(store.role, timeout=math.inf) == 1
        assert store.await_idle(math.inf)
    assert len(topology.gather(connector, math.inf).nodes) == 3


def test_a_websocket_client_refuses_to_wait_nan_seconds(make):
    endpoint = make(websocket="127.0.0.1:0")
    url = f"ws://{endpoint.websocket_address}"
    with pytest.raises(ValueError, match="timeout is a number of seconds, not nan"):
        Client(url, timeout=NAN)
    with Client(url, "t", timeout=math.inf) as client:
        for wait in (
            lambda: client.get(timeout=NAN),
            lambda: client.publish("t", 1, timeout=NAN),
            lambda: client.close(NAN),
        ):
            with pytest.raises(ValueError, match=r"timeout is a number of seconds.*, not nan"):
                wait()
        assert client.is_connected
        subscriber = endpoint.subscribe("t")
        client.publish("t", 1, timeout=math.inf)
        assert subscriber.get(timeout=SECONDS).value == 1
        endpoint.publish("t", 2)
        assert client.get(timeout=math.inf).value == 2


def test_a_refused_wait_leaves_others_alone(make):
    endpoint = make()
    for wait in OF_AN_ENDPOINT.values():
        with pytest.raises(ValueError, match="nan"):
            wait(endpoint)
    assert not endpoint.await_peer(bytes(16), timeout=0.01)
    assert get_hub().run(lambda: True)
