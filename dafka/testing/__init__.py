"""A Kafka broker inside anybody's tests: the pytest plugin, and a broker that lets itself be looked into.

The plugin (:mod:`dafka.testing.plugin`) comes with the package, and pytest loads it in every run of
everybody who has the package installed. So it imports nothing but pytest, and this package nothing at all,
until a test asks for a fixture. :class:`~dafka.testing.broker.TestBroker` works without pytest, too.

This package stands above all others, because its fixtures make clients of the facade.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dafka.testing.broker import TestBroker
    from dafka.testing.groups import GroupMember
    from dafka.testing.waiting import NotInTimeError, async_wait_until, wait_until

__all__ = ["GroupMember", "NotInTimeError", "TestBroker", "async_wait_until", "wait_until"]

_HOMES = {
    "GroupMember": "dafka.testing.groups",
    "NotInTimeError": "dafka.testing.waiting",
    "TestBroker": "dafka.testing.broker",
    "async_wait_until": "dafka.testing.waiting",
    "wait_until": "dafka.testing.waiting",
}


def __getattr__(name: str) -> object:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
