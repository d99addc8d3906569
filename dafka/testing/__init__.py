"""A Kafka broker for tests of any program: the pytest plugin, and a broker that tests can look into.

pytest loads the plugin (:mod:`dafka.testing.plugin`) in every run in an environment that has this package.
Until a test uses a fixture the plugin therefore imports only pytest, and this package nothing.
:class:`~dafka.testing.broker.TestBroker` works without pytest as well.

This package is above all others, because its fixtures make clients of :mod:`compat.kafka`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dafka.lazy_names import lazy_names

if TYPE_CHECKING:
    from dafka.testing.broker import TestBroker
    from dafka.testing.groups import GroupMember
    from dafka.testing.snapshots import Snapshot
    from dafka.testing.torture.broker import chaos
    from dafka.testing.torture.plan import Fault
    from dafka.testing.waiting import NotInTimeError, async_wait_until, wait_until

__all__ = [
    "Fault",
    "GroupMember",
    "NotInTimeError",
    "Snapshot",
    "TestBroker",
    "async_wait_until",
    "chaos",
    "wait_until",
]

_HOMES = {
    "Fault": "dafka.testing.torture.plan",
    "GroupMember": "dafka.testing.groups",
    "NotInTimeError": "dafka.testing.waiting",
    "Snapshot": "dafka.testing.snapshots",
    "TestBroker": "dafka.testing.broker",
    "chaos": "dafka.testing.torture.broker",
    "async_wait_until": "dafka.testing.waiting",
    "wait_until": "dafka.testing.waiting",
}

__getattr__, __dir__ = lazy_names(globals(), _HOMES)
