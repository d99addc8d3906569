from __future__ import annotations

import pytest

from compat.broker import Backend, Enum
from compat.broker._backends import backend_of
from dafka.overlay import BackendFailure, Disk, Memory


def test_memory_looks_at_no_option():
    assert backend_of(Backend.Memory, {"path": 5}) == Memory()


@pytest.mark.parametrize(
    ("options", "durability"),
    [
        ({}, "power"),
        ({"synchronous": Enum("Broker::SQLITE_SYNCHRONOUS_OFF")}, "process"),
        ({"synchronous": Enum("Broker::SQLITE_SYNCHRONOUS_NORMAL")}, "process"),
        ({"synchronous": Enum("Broker::SQLITE_SYNCHRONOUS_FULL")}, "power"),
        ({"synchronous": Enum("Broker::SQLITE_SYNCHRONOUS_EXTRA")}, "power"),
        ({"journal_mode": Enum("Broker::SQLITE_JOURNAL_MODE_WAL")}, "power"),
        ({"failure_mode": Enum("Broker::SQLITE_FAILURE_MODE_DELETE"), "integrity_check": True}, "power"),
    ],
)
def test_options_of_sqlite(options: dict, durability: str):
    assert backend_of(Backend.SQLite, {"path": "folder", **options}) == Disk("folder", durability)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"path": 5},
        {"path": "folder", "journal_mode": Enum("Foo::SQLITE_JOURNAL_MODE_WAL")},
        {"path": "folder", "journal_mode": Enum("Broker::SQLITE_MODE_SUPER_AWESOME")},
        {"path": "folder", "synchronous": Enum("Foo::SQLITE_SYNCHRONOUS_OFF")},
        {"path": "folder", "synchronous": "Broker::SQLITE_SYNCHRONOUS_OFF"},
        {"path": "folder", "failure_mode": True},
        {"path": "folder", "integrity_check": "yes"},
    ],
)
def test_options_that_libbroker_refuses(options: dict):
    with pytest.raises(BackendFailure):
        backend_of(Backend.SQLite, options)


@pytest.mark.parametrize("wrong", [None, 0, "SQLite"])
def test_anything_but_a_backend_is_refused(wrong: object):
    with pytest.raises(TypeError, match="a backend is"):
        backend_of(wrong, {})
