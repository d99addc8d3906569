"""Names and calls of libbroker's Python bindings (2.8.0-dev.329), each of which these have.

A call is written as its arguments: ``_`` is one given by its place, ``name=_`` one given by its name.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from compat import broker

NAMES = {
    "APIFlags",
    "Address",
    "Backend",
    "BrokerOptions",
    "Configuration",
    "Count",
    "Data",
    "EC",
    "Endpoint",
    "EndpointInfo",
    "Enum",
    "Error",
    "Frontend",
    "ImmutableData",
    "NetworkInfo",
    "PeerFlags",
    "PeerInfo",
    "PeerStatus",
    "Port",
    "Publisher",
    "SC",
    "SafeSubscriber",
    "Set",
    "Status",
    "StatusSubscriber",
    "Store",
    "Subnet",
    "Subscriber",
    "Table",
    "Timespan",
    "Timestamp",
    "Topic",
    "Vector",
    "Version",
    "now",
    "utc",
    "zeek",
}

EXPIRING = ("_ _", "_ _ _", "_ _ expiry=_")

CALLS: dict[str, dict[str, tuple[str, ...]]] = {
    "Address": {
        "__init__": ("", "_ _"),
        "mask": ("_", "top_bits_to_keep=_"),
        "is_v4": ("",),
        "is_v6": ("",),
        "bytes": ("",),
    },
    "BrokerOptions": {"__init__": ("",)},
    "Configuration": {"__init__": ("", "_")},
    "Count": {"__init__": ("_",)},
    "Data": {
        "__init__": ("", "_", "x=_"),
        "from_py": ("_",),
        "to_py": ("_",),
        "get_type": ("",),
        "as_address": ("",),
        "as_boolean": ("",),
        "as_count": ("",),
        "as_enum_value": ("",),
        "as_integer": ("",),
        "as_none": ("",),
        "as_port": ("",),
        "as_real": ("",),
        "as_set": ("",),
        "as_string": ("",),
        "as_subnet": ("",),
        "as_table": ("",),
        "as_timespan": ("",),
        "as_timestamp": ("",),
        "as_vector": ("",),
    },
    "Endpoint": {
        "__init__": ("", "_"),
        "node_id": ("",),
        "listen": ("_ _",),
        "peer": ("_ _", "_ _ _", "addr=_ port=_ retry=_"),
        "peer_nosync": ("_ _", "_ _ _", "addr=_ port=_ retry=_"),
        "unpeer": ("_ _",),
        "unpeer_nosync": ("_ _",),
        "peers": ("",),
        "peer_subscriptions": ("",),
        "forward": ("_", "topics=_"),
        "publish": ("_ _", "topic=_ data=_"),
        "publish_batch": ("", "_", "_ _ _"),
        "make_publisher": ("_", "topic=_"),
        "make_subscriber": ("_", "_ _", "_ _ _", "topics=_ qsize=_ subscriber_class=_"),
        "make_safe_subscriber": ("_", "_ _", "topics=_ qsize=_"),
        "make_status_subscriber": ("", "_", "receive_statuses=_"),
        "attach_master": ("_", "_ _", "_ _ _", "name=_ type=_ opts=_"),
        "attach_clone": ("_", "name=_"),
        "await_peer": ("_", "_ _", "node=_ timeout=_"),
        "shutdown": ("",),
        "__enter__": ("",),
        "__exit__": ("_ _ _",),
    },
    "EndpointInfo": {"node_id": ("",)},
    "Enum": {"__init__": ("_",)},
    "Error": {"__init__": ("",), "code": ("",)},
    "ImmutableData": {"__init__": ("", "_"), "to_py": ("_",), "from_py": ("_",)},
    "Port": {"__init__": ("", "_ _"), "number": ("",), "get_type": ("",)},
    "Publisher": {
        "__enter__": ("",),
        "__exit__": ("_ _ _",),
        "reset": ("",),
        "buffered": ("",),
        "capacity": ("",),
        "free_capacity": ("",),
        "fd": ("",),
        "publish": ("_", "data=_"),
        "publish_batch": ("", "_ _"),
        "drop_all_on_destruction": ("",),
    },
    "Set": {"__init__": ("", "_"), "add": ("_", "x=_"), "remove": ("_", "x=_"), "clear": ("",)},
    "StatusSubscriber": {
        "__enter__": ("",),
        "__exit__": ("_ _ _",),
        "get": ("", "_", "_ _"),
        "poll": ("",),
        "available": ("",),
        "fd": ("",),
        "reset": ("",),
    },
    "Status": {"__init__": ("",), "code": ("",), "context": ("",)},
    "Store": {
        "__enter__": ("",),
        "__exit__": ("_ _ _",),
        "name": ("",),
        "exists": ("_", "key=_"),
        "get": ("_", "key=_"),
        "get_index_from_value": ("_ _", "key=_ index=_"),
        "keys": ("",),
        "put": (*EXPIRING, "key=_ value=_"),
        "put_unique": (*EXPIRING, "key=_ value=_"),
        "erase": ("_", "data=_"),
        "clear": ("",),
        "increment": (*EXPIRING, "key=_ amount=_"),
        "decrement": (*EXPIRING, "key=_ amount=_"),
        "append": (*EXPIRING, "key=_ s=_"),
        "insert_into": ("_ _", "_ _ _", "_ _ _ _", "key=_ index=_ value=_ expiry=_"),
        "remove_from": (*EXPIRING, "key=_ index=_"),
        "push": (*EXPIRING, "key=_ value=_"),
        "pop": ("_", "_ _", "key=_ expiry=_"),
        "await_idle": ("", "_", "timeout=_"),
    },
    "Subnet": {
        "__init__": ("", "_ _"),
        "contains": ("_", "addr=_"),
        "network": ("",),
        "length": ("",),
    },
    "Subscriber": {
        "__enter__": ("",),
        "__exit__": ("_ _ _",),
        "get": ("", "_", "_ _"),
        "poll": ("",),
        "available": ("",),
        "fd": ("",),
        "add_topic": ("_", "_ _", "topic=_ block=_"),
        "remove_topic": ("_", "_ _", "topic=_ block=_"),
        "reset": ("",),
    },
    "Table": {"__init__": ("",), "keys": ("",), "values": ("",), "items": ("",)},
    "Timespan": {"__init__": ("", "_"), "count": ("",)},
    "Timestamp": {"__init__": ("", "_"), "time_since_epoch": ("",)},
    "Topic": {"__init__": ("_",), "string": ("",)},
    "Vector": {
        "__init__": ("", "_"),
        "append": ("_",),
        "clear": ("",),
        "count": ("_",),
        "extend": ("_",),
        "insert": ("_ _",),
        "pop": ("", "_"),
        "remove": ("_",),
    },
    "zeek.Event": {
        "__init__": ("_", "_ _ _", "_ _ metadata=_"),
        "as_data": ("",),
        "valid": ("",),
        "name": ("",),
        "args": ("",),
        "metadata": ("",),
    },
    "zeek.SafeEvent": {"args": ("",), "name": ("",)},
}

DEFAULTS = {
    "Endpoint.peer": {"retry": 10.0},
    "Endpoint.peer_nosync": {"retry": 10.0},
    "Endpoint.make_subscriber": {"qsize": 20, "subscriber_class": broker.Subscriber},
    "Endpoint.make_safe_subscriber": {"qsize": 20},
    "Endpoint.make_status_subscriber": {"receive_statuses": False},
    "Endpoint.await_peer": {"timeout": None},
    "Subscriber.add_topic": {"block": False},
    "Subscriber.remove_topic": {"block": False},
    "Store.put": {"expiry": None},
    "Store.insert_into": {"value": None, "expiry": None},
    "Store.await_idle": {"timeout": None},
}

ATTRIBUTES = {
    "Address": ["Family", "ByteOrder"],
    "Port": ["Protocol", "ICMP", "TCP", "UDP", "Unknown"],
    "Data": ["Type"],
    "ImmutableData": ["HashableReadOnlyDict"],
    "Version": ["MAJOR", "MINOR", "PATCH", "PROTOCOL", "compatible", "string"],
    "zeek.MetadataType": ["NetworkTimestamp", "UserMetadataStart"],
}


def found(name: str) -> Any:
    there: Any = broker
    for part in name.split("."):
        there = getattr(there, part)
    return there


def test_the_names_are_the_same_and_no_others():
    assert set(broker.__all__) == NAMES


def test_every_class_with_methods_is_looked_at():
    enumerations = {name for name in NAMES if hasattr(found(name), "__members__")}
    plain = {"NetworkInfo", "PeerInfo", "SafeSubscriber", "Version", "now", "utc", "zeek"}
    assert {name for name in CALLS if "." not in name} | enumerations | plain == NAMES
    assert issubclass(broker.SafeSubscriber, broker.Subscriber)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        (f"{kind}.{method}", call)
        for kind, methods in CALLS.items()
        for method, calls in methods.items()
        for call in calls
    ],
)
def test_calls_of_the_bindings_are_taken(name: str, call: str):
    kind, _, method = name.rpartition(".")
    places = [None for one in call.split() if one == "_"]
    names = {one.partition("=")[0]: None for one in call.split() if one != "_"}
    declared = inspect.getattr_static(found(kind), method)
    if not isinstance(declared, staticmethod):
        places = [None, *places]
    inspect.signature(found(name)).bind(*places, **names)


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults(name: str):
    parameters = inspect.signature(found(name)).parameters.values()
    assert {
        one.name: one.default for one in parameters if one.default is not inspect.Parameter.empty
    } == DEFAULTS[name]


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes(name: str):
    assert [one for one in ATTRIBUTES[name] if not hasattr(found(name), one)] == []


def test_subclasses_of_the_bindings():
    assert issubclass(broker.ImmutableData, broker.Data)
    assert issubclass(broker.zeek.SafeEvent, broker.zeek.Event)
