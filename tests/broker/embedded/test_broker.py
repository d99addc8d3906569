"""The broker as a whole: its state after stop and restart, and after a kill."""

from __future__ import annotations

import inspect
import signal
import subprocess
import sys
import textwrap

import forking
import gevent
import pytest
from broker.clients import Client, batch

from dafka import Broker
from dafka.broker import BrokerStoppedError
from dafka.broker.interface.broker import BrokerInterface, CommittedOffset, FetchFrom

CALLS = [
    (name, method)
    for part in BrokerInterface.__bases__
    for name, method in inspect.getmembers(part, inspect.isfunction)
]


def test_everything_comes_back_after_a_restart(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t", 2)
        client.produce("t", b"a", b"b", partition=1)
        client.call("commit_offsets", "g", {("t", 1): CommittedOffset(1, "half", 0)})
        before = client.call("metadata", None)
    with Broker(tmp_path) as broker:
        client = Client(broker)
        after = client.call("metadata", None)
        assert (after.cluster_id, after.topics) == (before.cluster_id, before.topics)
        assert client.values("t", partition=1) == [b"a", b"b"]
        assert client.call("fetch_offsets", "g") == {("t", 1): CommittedOffset(1, "half", 0)}
        assert client.produce("t", b"c", partition=1).base_offset == 2


def test_a_stopped_broker_says_so_to_every_caller(tmp_path):
    broker = Broker(tmp_path).start()
    client = Client(broker)
    client.create("t")
    broker.stop()
    for method, args in [
        ("metadata", (None,)),
        ("create_topics", ({},)),
        ("create_partitions", ({},)),
        ("delete_topics", ([],)),
        ("produce", ({("t", 0): [batch(b"a")]},)),
        ("list_offsets", ({},)),
        ("commit_offsets", ("g", {})),
        ("fetch_offsets", ("g",)),
    ]:
        with pytest.raises(BrokerStoppedError, match="stopped"):
            client.call(method, *args)
    with pytest.raises(BrokerStoppedError):
        client.fetch("t")


def test_stop_wakes_fetches_and_commits_accepted_batches(tmp_path):
    broker = Broker(tmp_path).start()
    client = Client(broker)
    client.create("t")
    hub = client.connection.hub

    def fetch():
        with pytest.raises(BrokerStoppedError):
            client.core.fetch({("t", 0): FetchFrom(0, 100)}, max_wait=30, min_bytes=10**9, max_bytes=10**9)
        return True

    def accept_and_stop():
        waiting = gevent.spawn(fetch)
        gevent.sleep(0)
        for number in range(20):
            client.core.produce({("t", 0): [batch(b"%d" % number)]}, acks=0)
        gevent.sleep(0)
        client.core.close()
        return waiting.get(timeout=100)

    assert hub.run(accept_and_stop)
    broker.stop()
    with Broker(tmp_path) as again:
        assert len(Client(again).values("t")) == 20


KILLED = textwrap.dedent(
    """
    import os, sys
    sys.path[:0] = {path!r}
    from broker.clients import Client
    from dafka import Broker

    broker = Broker({folder!r}).start()
    client = Client(broker)
    client.create("t")
    for number in range(100_000):
        assert client.produce("t", b"%d" % number).base_offset == number
        os.write(1, b"%d\\n" % number)
    """
)


def test_every_acknowledged_record_survives_sigkill(tmp_path):
    script = KILLED.format(folder=str(tmp_path / "data"), path=sys.path)
    with forking.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        acknowledged = [int(child.stdout.readline()) for _ in range(150)]
        child.send_signal(signal.SIGKILL)
        *lines, _incomplete = child.stdout.read().split(b"\n")
        acknowledged += map(int, lines)
    with Broker(tmp_path / "data") as broker:
        client = Client(broker)
        values = client.values("t")
        assert values[: len(acknowledged)] == [b"%d" % number for number in acknowledged]
        assert len(values) <= len(acknowledged) + 1
        assert client.produce("t", b"next").base_offset == len(values)


@pytest.fixture(scope="module")
def stopped():
    """The interface of a broker that was stopped."""
    with Broker() as broker:
        core = Client(broker).core
    return core


@pytest.mark.parametrize(("name", "method"), CALLS)
def test_no_call_is_answered_when_the_broker_is_stopped(stopped, name, method):
    needed = [
        one.name
        for one in inspect.signature(method).parameters.values()
        if one.default is one.empty and one.name != "self"
    ]
    with pytest.raises(BrokerStoppedError):
        getattr(stopped, name)(**dict.fromkeys(needed))
