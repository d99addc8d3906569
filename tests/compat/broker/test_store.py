"""Stores as programs of the bindings use them: a master and two clones at three endpoints."""

from __future__ import annotations

import datetime
from typing import NamedTuple

import pytest

from compat.broker import Backend, Count, Endpoint, Enum, Store
from dafka.overlay import StoreError
from tests.compat.broker.waiting import until


class Stores(NamedTuple):
    master: Store
    clone: Store
    other: Store

    def settle(self) -> None:
        assert self.clone.await_idle() and self.other.await_idle() and self.master.await_idle()


@pytest.fixture
def stores(new_endpoint) -> Stores:
    ends = [new_endpoint() for _ in range(3)]
    three = Stores(
        ends[0].attach_master("s", Backend.Memory), ends[1].attach_clone("s"), ends[2].attach_clone("s")
    )
    port = ends[0].listen("127.0.0.1", 0)
    assert ends[1].peer("127.0.0.1", port) and ends[2].peer("127.0.0.1", port)
    three.settle()
    return three


@pytest.fixture
def master(new_endpoint) -> Store:
    return new_endpoint().attach_master("s", Backend.Memory)


def test_entries_put_anywhere_are_everywhere(stores: Stores):
    things = {"a": {"b": {1, 2}}, 5: (1, (2, None)), Count(5): datetime.timedelta(seconds=3), (1,): Enum("x")}
    for number, (key, value) in enumerate(things.items()):
        stores[number % 3].put(key, value)
    stores.settle()
    for store in stores:
        assert {key: store.get(key) for key in things} == things
        assert store.keys() == set(things)
        assert store.exists("a") is True
        assert store.exists("b") is False
        assert store.get("b") is None


def test_elements_of_values(master: Store):
    master.put("table", {"a": 1})
    master.put("set", {"a"})
    master.put("vector", ["a"])
    assert master.get_index_from_value("table", "a") == 1
    assert master.get_index_from_value("table", "b") is None
    assert master.get_index_from_value("set", "a") is True
    assert master.get_index_from_value("set", "b") is False
    assert master.get_index_from_value("vector", 0) == "a"
    assert master.get_index_from_value("vector", 1) is None
    assert master.get_index_from_value("missing", 1) is None


def test_changes(stores: Stores):
    clone = stores.clone
    clone.put("number", 5)
    clone.increment("number", 3)
    clone.decrement("number", 1)
    clone.append("text", "ab")
    clone.append("text", "c")
    clone.insert_into("set", "x")
    clone.insert_into("set", "y")
    clone.remove_from("set", "x")
    clone.insert_into("table", "k", 0)
    clone.insert_into("table", "l", "v")
    clone.remove_from("table", "l")
    clone.push("vector", 1)
    clone.push("vector", 2)
    clone.pop("vector")
    clone.put("gone", 1)
    clone.erase("gone")
    stores.settle()
    for store in stores:
        found = {key: store.get(key) for key in ("number", "text", "set", "table", "vector", "gone")}
        assert found == {
            "number": 7,
            "text": "abc",
            "set": {"y"},
            "table": {"k": 0},
            "vector": (1,),
            "gone": None,
        }
    stores.other.clear()
    stores.settle()
    assert stores.master.keys() == stores.clone.keys() == set()


def test_one_of_all_that_put_a_missing_key_succeeds(stores: Stores):
    assert sorted(store.put_unique("key", number) for number, store in enumerate(stores)) == [
        False,
        False,
        True,
    ]


def test_a_key_expires(stores: Stores):
    stores.master.put("key", 1, 0.05)
    stores.clone.put("other", 1, expiry=60)
    stores.clone.put_unique("unique", 1, 0.05)
    stores.settle()
    until(lambda: stores.other.keys() == {"other"})


def test_a_clone_waits_for_its_master(new_endpoint):
    here, there = new_endpoint(), new_endpoint()
    clone = here.attach_clone("s")
    clone.put("early", 1)
    assert not clone.await_idle(0.05)
    master = there.attach_master("s", Backend.Memory)
    assert here.peer("127.0.0.1", there.listen("127.0.0.1", 0))
    assert clone.await_idle()
    assert master.get("early") == 1


def test_a_store_has_one_master(new_endpoint):
    endpoint = new_endpoint()
    assert endpoint.attach_master("s", Backend.Memory).name() == "s"
    assert endpoint.attach_master("s", Backend.Memory) is None
    with pytest.raises(TypeError, match="a backend is"):
        endpoint.attach_master("t")


def test_a_store_on_disk_is_there_again(new_endpoint, tmp_path):
    first = new_endpoint()
    options = {"path": str(tmp_path / "store"), "synchronous": Enum("Broker::SQLITE_SYNCHRONOUS_OFF")}
    with first.attach_master("s", Backend.SQLite, options) as master:
        master.put("key", {"a": (1, 2)})
    with new_endpoint().attach_master("s", Backend.SQLite, options) as master:
        assert master.get("key") == {"a": (1, 2)}
    assert first.attach_master("s", Backend.SQLite, {"path": 5}) is None


def test_a_store_that_was_reset_says_so(new_endpoint):
    endpoint = new_endpoint()
    with endpoint.attach_master("s", Backend.Memory) as master:
        assert master.is_valid()
    assert not master.is_valid()
    with pytest.raises(AttributeError, match="this Store was reset"):
        master.get("key")
    master.reset()
    assert endpoint.attach_master("s", Backend.Memory).exists("key") is False


def test_a_store_keeps_its_endpoint():
    store = Endpoint().attach_master("s", Backend.Memory)
    store.put("key", 1)
    assert store.get("key") == 1
    store.reset()


def test_values_without_a_data_type_are_refused(master: Store):
    with pytest.raises(TypeError, match="unsupported data type"):
        master.put("key", object())
    with pytest.raises(TypeError, match="unsupported data type"):
        master.get(1j)


def test_without_an_answer_nobody_knows_whether_a_key_exists(new_endpoint, monkeypatch):
    monkeypatch.setattr("compat.broker._store.READ_SECONDS", 0.05)
    clone = new_endpoint().attach_clone("s")
    with pytest.raises(StoreError):
        clone.exists("key")
