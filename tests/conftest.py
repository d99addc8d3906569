"""What holds for all tests, and the fixtures of the package's own pytest plugin.

pytest finds the plugin by itself where the package is installed; the import is for where it is not.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from dafka.log.repeating import forget_repeats
from dafka.mesh import options
from dafka.sockets import listening
from dafka.testing.plugin import (
    dafka_broker,
    dafka_broker_session,
    kafka_consumer_factory,
    kafka_producer,
)

__all__ = ["dafka_broker", "dafka_broker_session", "kafka_consumer_factory", "kafka_producer"]

# A deadline for each example would measure what else the machine is doing. More examples for each property:
# DAFKA_TEST_EXAMPLES, see .github/CONTRIBUTING.md.
EXAMPLES = int(os.environ.get("DAFKA_TEST_EXAMPLES", "30"))
settings.register_profile("dafka", deadline=None, max_examples=EXAMPLES)
settings.load_profile("dafka")

# The tests of the mesh over another transport than the default one: see .github/CONTRIBUTING.md.
options.TRANSPORT = os.environ.get("DAFKA_TEST_TRANSPORT", options.TRANSPORT)

# Ignored in what a shell runs in the background, and inherited: processes of tests are ended with Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """The collected tests stay until the end: the garbage collector does not go through them each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _closed_sockets_are_let_go() -> Iterator[None]:
    """The hub lists its open sockets, for forked children: one that is closed has to leave the list."""
    yield
    closed = [socket for socket in list(listening._open) if socket._sock.fileno() < 0]
    for socket in closed:
        listening.forget(socket)
    assert not closed


@pytest.fixture(autouse=True)
def _first_lines() -> None:
    """What a test logs is the first of its kind, whatever the tests before it have logged."""
    forget_repeats()
