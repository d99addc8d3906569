"""A broker with a console, and clients of it."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from console.asking import SECONDS, Client

import dafka.broker
from dafka.testing import TestBroker

collect_ignore_glob = [] if find_spec("flask") and find_spec("jsonschema") else ["*"]  # the extra "console"


@pytest.fixture(scope="module")
def shared():
    """A broker for all tests of a file, each of which takes names of its own; other tests run without it."""
    with TestBroker(console=True) as broker:
        yield broker


@pytest.fixture(params=["embedded", "tcp"])
def client(request, shared, over_tcp):
    """The console of that broker: the one within it, and one that reaches it over TCP."""
    return Client(shared.console if request.param == "embedded" else over_tcp)


@pytest.fixture
def local(shared):
    """The console within the broker."""
    return Client(shared.console)


@pytest.fixture(scope="module")
def over_tcp(shared):
    from dafka.broker.connecting import Connection
    from dafka.broker.remote.remote import Remote
    from dafka.console import Console
    from dafka.hub.hub import get_hub

    hub = get_hub()
    host, port = shared.bootstrap_servers.split(":")
    remote = hub.run(Remote, hub, [(host, int(port))])
    try:
        with Console(Connection(hub, remote)) as console:
            yield console.url
    finally:
        hub.run(remote.close)


@pytest.fixture
def read_only(shared):
    """A console of that broker in which nothing may be changed."""
    from dafka.console import Console, ConsoleOptions

    connection = dafka.broker.connect(shared.bootstrap_servers, SECONDS)
    with Console(connection, ConsoleOptions(write=False)) as console:
        yield Client(console.url)
