"""Broker's developer guide, "Data Stores", over real TCP: stores as programs use them."""

from __future__ import annotations

import math
import threading
from contextlib import suppress
from datetime import timedelta
from itertools import count

import pytest
from overlay.node.stores.three_endpoints import EXPECTED, Program
from timing import each_time, no_long_turn, until

from dafka.hub import hub
from dafka.hub.hub import get_hub
from dafka.overlay import (
    Closed,
    Endpoint,
    Memory,
    NoSuchKey,
    NotAnswered,
    SlowSubscriber,
    StoreError,
    StoreRefused,
    WrongType,
)
from dafka.overlay.errors import InvalidValue
from dafka.overlay.node.stores import store as store_module
from dafka.overlay.stores.content import EVENTS
from dafka.overlay.stores.errors import TypeClash
from dafka.overlay.values import NAN, Count, Set, Table, Timespan, Timestamp, types
from dafka.overlay.wire.codes import ErrorCode
from tests.compat.interrupting import InterruptedCall

NUMBERS = count()
WAIT = 100  # seconds, for what takes tenths of one


@pytest.fixture
def endpoints():
    """A master's, a clone's and a proxy's, in a chain: the proxy is two hops from the master."""
    with (
        Endpoint(listen="127.0.0.1:0") as master,
        Endpoint(listen="127.0.0.1:0", peers=[master.address]) as clone,
        Endpoint(peers=[clone.address]) as proxy,
    ):
        assert clone.await_peer(master.id, WAIT) and proxy.await_peer(master.id, WAIT)
        yield master, clone, proxy


@pytest.fixture
def stores(endpoints):
    master, clone, proxy = endpoints
    stores = master.attach_master("st"), clone.attach_clone("st"), proxy.attach_proxy("st")
    assert all(store.await_idle(WAIT) for store in stores)
    return stores


def settle(stores):
    """All writes, of any store, are everywhere then."""
    assert all(store.await_idle(WAIT) for store in (*reversed(stores), stores[0]))


OPERATIONS = [
    (lambda store: store.put("k", [1, "two", NAN]), "k", (1, "two", NAN)),
    (lambda store: store.put(("key", 1), {"a": float("-inf")}), ("key", 1), Table({"a": float("-inf")})),
    (lambda store: store.increment("count", Count(3)), "count", Count(3)),
    (lambda store: store.increment("integer", 3), "integer", 3),
    (lambda store: store.increment("real", 0.5), "real", 0.5),
    (lambda store: store.increment("time", Timespan(5)), "time", Timestamp(5)),
    (lambda store: store.decrement("there", Count(4)), "there", Count(6)),
    (lambda store: store.append("text", "abc"), "text", "abc"),
    (lambda store: store.insert_into("set", 1), "set", Set([1])),
    (lambda store: store.insert_into("table", "a", 1), "table", Table({"a": 1})),
    (lambda store: store.push("vector", None), "vector", (None,)),
    (lambda store: store.pop("elements"), "elements", (1,)),
    (lambda store: store.remove_from("members", 1), "members", Set([2])),
    (lambda store: store.remove_from("rows", "a"), "rows", Table({"b": 2})),
    (lambda store: store.add("added", 2, types.INTEGER), "added", 2),
    (lambda store: store.subtract("too", Count(1)), "too", Count(9)),
]


@pytest.mark.parametrize("role", [0, 1, 2], ids=["master", "clone", "proxy"])
def test_every_operation_at_every_role(stores, role):
    numbers = {"there": Count(10), "too": Count(10)}
    for name, value in {**numbers, "elements": (1, 2), "members": {1, 2}, "rows": {"a": 1, "b": 2}}.items():
        stores[0].put(name, value)
    settle(stores[:1])
    for operate, _, _ in OPERATIONS:
        operate(stores[role])
    settle(stores)
    for store in stores:
        assert store.keys() == stores[0].keys()
        for number, (_, key, expected) in enumerate(OPERATIONS):
            assert repr(store.get(key)) == repr(expected), number
        assert store.get_index_from_value("k", 1) == "two"
        assert store.get_index_from_value("set", 1) is True
        assert store.get_index_from_value("rows", "b") == 2
        assert store.exists("k") and not store.exists("x")
        assert store.get("x", "nothing") == "nothing"
    stores[role].erase("k")
    settle(stores)
    assert not any(store.exists("k") for store in stores)
    stores[role].clear()
    settle(stores)
    assert [len(store.keys()) for store in stores] == [0, 0, 0]


def test_questions_without_an_answer_are_named_errors_with_brokers_code(stores):
    stores[0].put("number", 1)
    stores[0].put("vector", [1])
    settle(stores)
    for store in stores:
        for ask, kind, code in [
            (lambda store=store: store.get("x"), NoSuchKey, ErrorCode.NO_SUCH_KEY),
            (lambda store=store: store.get_index_from_value("vector", 7), NoSuchKey, ErrorCode.NO_SUCH_KEY),
            (lambda store=store: store.get_index_from_value("number", 0), WrongType, ErrorCode.TYPE_CLASH),
        ]:
            with pytest.raises(kind) as caught:
                ask()
            assert caught.value.code is code and "'st'" in str(caught.value)


def test_a_value_that_stores_do_not_take_is_refused_where_it_enters(stores):
    for store in stores:
        for write in (
            lambda store=store: store.put("k", object()),
            lambda store=store: store.put("k", 1, expiry=0),
            lambda store=store: store.put("k", 1, expiry=math.nan),
            lambda store=store: store.put("k", 1, expiry=math.inf),
            lambda store=store: store.put("k", 1, expiry=1e300),
            lambda store=store: store.put("k", 1, expiry=timedelta.max),
            lambda store=store: store.increment("k", "text"),
            lambda store=store: store.append("k", 1),
        ):
            with pytest.raises((InvalidValue, TypeClash)):
                write()
        with pytest.raises(StoreError) as caught:
            store.put("x" * 70_000, 1)
        assert caught.value.code is ErrorCode.BACKEND_FAILURE


def test_operations_the_type_of_a_value_lacks_change_nothing(stores):
    stores[0].put("k", "text")
    for store in stores:
        store.increment("k", Count(1))
        store.remove_from("nothing", 1)
    settle(stores)
    assert [store.get("k") for store in stores] == ["text"] * 3


def test_one_of_all_that_put_a_unique_key_wins(stores):
    won: list[str] = []

    def put(store, number):
        if store.put_unique("k", number):
            won.append(f"{store.role} {number}")

    threads = [threading.Thread(target=put, args=(store, n)) for n in range(4) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    settle(stores)
    assert {store.get("k") for store in stores} == {int(won[0].split()[1])}


def test_keys_expire_everywhere(stores):
    with stores[1].events() as events:
        stores[1].put("seconds", 1, expiry=0.2)
        stores[2].put("span", 1, expiry=timedelta(milliseconds=200))
        stores[0].put("stays", 1)
        settle(stores)
        expired = set()
        while len(expired) < 2:
            event = events.get(timeout=WAIT)
            expired |= {event.key} if event.kind == "expire" else set()
    settle(stores)
    assert [list(store.keys()) for store in stores] == [["stays"]] * 3


def test_events_tell_what_has_changed_and_by_whom(endpoints, stores):
    with stores[1].events() as events:
        stores[1].put("k", 1)
        stores[0].put("k", 2, expiry=100)
        settle(stores)
        stores[2].erase("k")
        settle(stores)
        first, second, third = events.poll() if events.available == 3 else [events.get(WAIT) for _ in "abc"]
    assert first[:5] in [("insert", "st", "k", 1, None), ("insert", "st", "k", 2, None)]
    assert second.kind == "update" and {first.value, second.value} == {1, 2} and second.old == first.value
    assert third[:3] == ("erase", "st", "k") and third.endpoint == str(endpoints[2].id)
    with pytest.raises(Closed):
        events.get()


def test_events_are_also_messages_of_the_endpoint_itself(endpoints, stores):
    with endpoints[1].subscribe(EVENTS + b"st") as local, endpoints[2].subscribe(b"") as other:
        stores[0].put("k", 1)
        assert local.get(timeout=WAIT).value[:4] == ("insert", "st", "k", 1)
        assert other.poll() == []


def test_events_of_a_subscriber_that_is_too_slow_end_with_an_error(stores):
    with stores[0].events(capacity=2) as events:
        for number in range(4):
            stores[0].put(number, number)
        settle(stores)
        assert [events.get().key for _ in range(2)] == [0, 1]
        with pytest.raises(SlowSubscriber):
            events.get()


@each_time
def test_a_large_content_arrives_and_is_cleared_in_short_turns(endpoints):
    master, clone, proxy = endpoints
    name = f"large {next(NUMBERS)}"
    store = master.attach_master(name)
    for number in range(3000):
        store.put(number, "x" * 20)
    store.await_idle(WAIT)
    get_hub().turns.reset()
    copy, asking = clone.attach_clone(name), proxy.attach_proxy(name)
    with copy.events(capacity=10_000) as events:
        assert copy.await_idle(WAIT) and len(copy.keys()) == 3000
        assert len(asking.keys(timeout=WAIT)) == 3000
        store.clear()
        assert store.await_idle(WAIT) and copy.await_idle(WAIT)
        erased = 0
        while erased < 3000:
            erased += events.get(timeout=WAIT).kind == "erase"
    no_long_turn(get_hub().turns.longest_cpu, 0.1)  # of two endpoints' work


def test_without_a_master_questions_end_in_time():
    with Endpoint() as alone:
        clone, proxy = alone.attach_clone("a"), alone.attach_proxy("b")
        for ask, code in [
            (lambda: clone.get("k", timeout=0.3), ErrorCode.STALE_DATA),
            (lambda: clone.put_unique("k", 1, timeout=0.3), ErrorCode.NO_SUCH_MASTER),
            (lambda: proxy.get("k", timeout=0.3), ErrorCode.NO_SUCH_MASTER),
            (lambda: proxy.keys(timeout=0.3), ErrorCode.NO_SUCH_MASTER),
        ]:
            with pytest.raises(NotAnswered) as caught:
                ask()
            assert caught.value.code is code
        assert not clone.await_idle(0.1) and not proxy.await_idle(0.1)


def test_entries_written_before_there_was_a_master_arrive(endpoints):
    master, clone, proxy = endpoints
    early, asking = clone.attach_clone("st"), proxy.attach_proxy("st")
    early.put("a", 1)
    asking.put("b", 2)
    store = master.attach_master("st", Memory())
    settle([store, early, asking])
    assert store.get("a") == early.get("a") == asking.get("a") == 1
    assert store.get("b") == early.get("b") == asking.get("b") == 2


def test_a_second_master_is_refused(endpoints, stores):
    for endpoint in endpoints:
        with pytest.raises(StoreRefused) as caught:
            endpoint.attach_master("st")
        assert caught.value.code is ErrorCode.MASTER_EXISTS


def test_a_name_that_no_store_can_have_is_refused_where_it_enters(endpoints):
    one = endpoints[0]
    for attach in (one.attach_master, one.attach_clone, one.attach_proxy):
        with pytest.raises(InvalidValue, match="not Unicode"):
            attach("\ud800")
        for name in (None, 5, b"octets"):
            with pytest.raises(TypeError, match="the name of a store is a str"):
                attach(name)


def test_a_closed_store_says_so_and_its_name_is_free(endpoints):
    with endpoints[0].attach_master("st") as store:
        events = store.events()
        store.put("k", 1)
    assert not store.is_valid
    for use in (lambda: store.put("k", 1), lambda: store.get("k"), store.events, store.await_idle):
        with pytest.raises(Closed):
            use()
    assert [event.kind for event in events] == ["insert"]
    assert endpoints[0].attach_master("st").keys() == Set()


def test_the_guides_three_endpoints_share_a_store_in_processes_of_their_own():
    first = Program("first")
    address = first.said()
    programs = [first, Program("second", address), Program("third", address)]
    try:
        assert [program.said() for program in programs] == EXPECTED
    finally:
        for program in programs:
            program.end()


def test_writes_are_carried_out_whichever_call_ctrl_c_ends():
    with Endpoint() as endpoint:
        store = endpoint.attach_master("st")
        for number in count(1):
            assert store.await_idle(WAIT)
            interruption = InterruptedCall(number, store_module, hub)
            with suppress(KeyboardInterrupt), interruption:
                store.put("k", "interrupted")
            store.put("k", number)
            until(lambda: not store._hosted.queue)
            assert store.get("k") == number
            if not interruption.interrupted:
                break
    assert number > 5
